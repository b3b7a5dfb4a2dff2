//! The node: everything put together, from its start to its end.

mod compose;
mod own;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use eureka_http_api::{Api, ApiService};
use eureka_registry_core::{RegistryHandle, Settle};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tracing::{info, warn};

use self::own::OwnInstance;
use crate::clock::SystemClock;
use crate::config::{Config, Preset, Settings};
use crate::console::Console;
use crate::evict;
use crate::http::{Front, Health, Listener, Own, Routes, stack};
use crate::sink::{self, Sink};
use crate::telemetry::{self, LogWriter, Meters, Recorder};

/// Time between two foldings of measurements into buckets.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(1);
/// Files the node opens besides connections, generously.
const OTHER_FILES: u64 = 64;

/// A node that has bound its sockets and holds its registry, and serves as soon as it is run.
#[derive(Debug)]
pub(crate) struct App {
    settings: Settings,
    registry: RegistryHandle,
    front: Arc<Front>,
    health: Arc<Health>,
    listener: Listener,
    api: Api,
    recorder: Recorder,
    log: LogWriter,
    /// Logs what happens in the registry until it is told to stop.
    events: (oneshot::Sender<()>, JoinHandle<()>),
}

impl App {
    /// Binds and builds everything; inside a runtime, whose tasks it starts.
    pub(crate) fn start(config: &Config, recorder: Recorder, log: LogWriter) -> anyhow::Result<Self> {
        let settings = config.settings.clone();
        let address = settings.server.listen;
        let listener = Listener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
        let [seed_one, seed_two, node_id @ ..] =
            random().context("no randomness from the operating system")?;
        let meters = Arc::new(Meters::new());
        let front = Arc::new(Front::new(&settings.limits, Arc::clone(&meters)));
        let (sink, events) = Sink::new(meters);
        let registry_config = eureka_registry_core::Config {
            node: node_id[0],
            ..compose::registry(&settings, [seed_one, seed_two], listener.address())
        };
        let api_config = eureka_http_api::Config {
            rules: eureka_http_api::Rules::from(&registry_config),
            ..compose::api(config, node_id)
        };
        let registry = RegistryHandle::new(registry_config, Arc::new(SystemClock::start()), Arc::new(sink));
        let api = Api::new(registry.clone(), api_config);
        let (stop_logging, stopped) = oneshot::channel();
        let logging = tokio::spawn(sink::log(events, stopped));
        tokio::spawn(evict::run(registry.clone(), Arc::clone(&front.meters)));
        tokio::spawn(Arc::clone(&front.pressure).probe());
        tokio::spawn(upkeep(recorder.clone()));
        Ok(Self {
            settings,
            registry,
            front,
            health: Arc::new(Health::default()),
            listener,
            api,
            recorder,
            log,
            events: (stop_logging, logging),
        })
    }

    /// Where the node listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Serves until SIGTERM or SIGINT and then until requests under way have ended, `server.drain-timeout` at most; a
    /// second signal ends it at once.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let mut signals = Signals::new().context("cannot wait for signals")?;
        let (cut, second) = oneshot::channel();
        let address = self.address();
        self.open();
        let own = self
            .settings
            .server
            .register
            .then(|| OwnInstance::new(&self.settings, address, self.registry.clone()));
        let renewing = own.clone().map(|own| {
            own.register();
            tokio::spawn(own.keep_registered())
        });
        self.say_hello(address);
        let stack = stack(&self.front, self.routes(address));
        let drain_timeout = self.settings.server.drain_timeout;
        let stop = async {
            signals.next().await;
            tokio::spawn(async move {
                signals.next().await;
                // The node may have ended already.
                let _ = cut.send(());
            });
            info!(
                ?drain_timeout,
                "stopping: no new connections, requests under way may end"
            );
            self.health.stop();
            if let (Some(renewing), Some(own)) = (renewing, own) {
                renewing.abort();
                own.leave();
            }
            drain_timeout
        };
        let serving = self
            .listener
            .serve(&self.settings.limits, Arc::clone(&self.front), stack, stop);
        let drained = tokio::select! {
            drained = serving => drained,
            Ok(()) = second => false,
        };
        if drained {
            info!("stopped");
        } else {
            warn!("stopped before all requests under way had ended");
        }
        let (stop_logging, logging) = self.events;
        drop(stop_logging);
        // It writes nothing itself, so it cannot get stuck; and a panic in it was logged.
        let _ = logging.await;
        Ok(())
    }

    /// No peers, so there is nobody to ask for a copy: reads are open at once, or held as configured.
    fn open(&self) {
        let bootstrap = &self.settings.bootstrap;
        let hold = bootstrap
            .hold_alone
            .then_some(Settle::exactly(bootstrap.wait_when_empty));
        // Spring takes one client for granted when it opens with nothing, unless it is told to hold.
        let synced = usize::from(self.settings.compat.preset == Preset::EurekaJava && hold.is_none());
        self.registry.open(synced, hold);
    }

    fn routes(&self, address: SocketAddr) -> Routes<ApiService> {
        let settings = &self.settings;
        let own = Own {
            registry: self.registry.clone(),
            front: Arc::clone(&self.front),
            health: Arc::clone(&self.health),
            metrics: settings.metrics.enabled.then(|| self.recorder.clone()),
            log: self.log.clone(),
            console: settings
                .console
                .enabled
                .then(|| Console::new(settings, address, &self.registry)),
        };
        Routes::new(own, ApiService::new(self.api.clone()))
    }

    fn say_hello(&self, address: SocketAddr) {
        warn!(
            %address,
            "the Eureka API is OPEN: whoever reaches this address can register, change and remove instances; \
             this version has no authentication"
        );
        let connections = self.settings.limits.connections as u64;
        if let Some(files) = telemetry::raise_file_limit().filter(|files| *files < connections + OTHER_FILES)
        {
            warn!(
                files,
                connections, "fewer files may be open than limits.connections allows connections"
            );
        }
        self.log.announce(&format!("ready http={address}"));
    }
}

async fn upkeep(recorder: Recorder) {
    let mut interval = tokio::time::interval(UPKEEP_INTERVAL);
    loop {
        interval.tick().await;
        recorder.upkeep();
    }
}

/// Four numbers from the operating system.
fn random() -> Result<[u64; 4], getrandom::Error> {
    Ok([
        getrandom::u64()?,
        getrandom::u64()?,
        getrandom::u64()?,
        getrandom::u64()?,
    ])
}

/// SIGTERM and SIGINT.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
