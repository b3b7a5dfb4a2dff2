//! The node: everything put together, from its start to its end.

mod compose;
mod own;
mod ports;
mod reload;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context as _;
use eureka_grpc_api::Grpc;
use eureka_http_api::{Api, ApiService};
use eureka_registry_core::{RegistryHandle, Settle};
use eureka_replication::NodeId;
use eureka_replication::driver::{self, Handle, Replicator, Resolver};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tracing::{info, warn};

pub(crate) use self::reload::Reload;

use self::own::OwnInstance;
use self::ports::Ports;
use crate::clock::{self, SystemClock};
use crate::config::{Config, Preset, Settings};
use crate::console::Console;
use crate::evict;
use crate::http::{Front, Health, Interfaces, Own, Stack};
use crate::peers::Peers;
use crate::regions::Regions;
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
    mesh: Handle,
    peers: Peers,
    front: Arc<Front>,
    health: Arc<Health>,
    ports: Ports,
    api: Api,
    regions: Regions,
    grpc: Grpc,
    recorder: Recorder,
    log: LogWriter,
    /// Logs what happens in the registry.
    events: Task,
}

/// A task that runs until it is told to stop, or nobody could tell it any more.
#[derive(Debug)]
struct Task {
    stop: oneshot::Sender<()>,
    ended: JoinHandle<()>,
}

impl App {
    /// Binds and builds everything; inside a runtime, whose tasks it starts.
    pub(crate) fn start(config: &Config, recorder: Recorder, log: LogWriter) -> anyhow::Result<Self> {
        let settings = config.settings.clone();
        let ports = Ports::bind(&settings)?;
        let address = ports.http_address();
        let [seed_one, seed_two, seed_three, node @ ..] =
            random().context("no randomness from the operating system")?;
        let clock = Arc::new(SystemClock::start());
        let mesh = Handle::new(
            compose::mesh(&settings, seed_three, NodeId(node)),
            compose::sources(&settings, address),
            Arc::clone(&clock) as _,
        );
        let meters = Arc::new(Meters::new());
        let front = Arc::new(Front::new(&settings.limits, Arc::clone(&meters)));
        let (sink, events) = Sink::new(mesh.clone(), meters);
        let rules = compose::registry(&settings, [seed_one, seed_two], mesh.node(), address);
        let regions = Regions::new(compose::regions(&settings), Arc::clone(&clock) as _);
        let api = compose::api(config, &rules, &mesh, address, regions.shown().cloned());
        let registry = RegistryHandle::new(rules, clock, Arc::new(sink));
        let api = Api::new(registry.clone(), api);
        let grpc = Grpc::new(registry.clone(), compose::grpc(&settings.limits));
        let events = Task::spawn(|stopped| sink::log(events, stopped));
        tokio::spawn(evict::run(registry.clone(), Arc::clone(&front.meters)));
        tokio::spawn(Arc::clone(&front.pressure).probe());
        tokio::spawn(upkeep(recorder.clone()));
        Ok(Self {
            peers: Peers::new(mesh.clone(), registry.clone(), !settings.peers.is_empty()),
            settings,
            registry,
            mesh,
            front,
            health: Arc::new(Health::default()),
            ports,
            api,
            regions,
            grpc,
            recorder,
            log,
            events,
        })
    }

    /// Serves until SIGTERM or SIGINT and then until requests under way have ended and what waits for peers has reached
    /// them, `server.drain-timeout` at most; a second signal ends it at once.
    pub(crate) async fn run(self, reload: Reload) -> anyhow::Result<()> {
        let mut signals = Signals::new().context("cannot wait for signals")?;
        let hangup = signal(SignalKind::hangup()).context("cannot wait for signals")?;
        let (cut, second) = oneshot::channel();
        let address = self.ports.http_address();
        let replicating = self.replicate(address);
        tokio::spawn(reload_on(hangup, reload, self.peers.clone(), address));
        let reading = self.read_regions();
        let own = self.settings.server.register.then(|| self.register(address));
        self.say_hello();
        let stack_of = {
            let front = Arc::clone(&self.front);
            let api = ApiService::new(self.api.clone());
            let interfaces = Interfaces::new(self.own_routes(address), api, self.grpc.service());
            move |speaks| Stack::new(&front, speaks, interfaces.clone())
        };
        let drain_timeout = self.settings.server.drain_timeout;
        let leaving = Leaving {
            own,
            health: Arc::clone(&self.health),
            mesh: self.mesh.clone(),
            api: self.api.clone(),
            grpc: self.grpc.clone(),
        };
        let (tell, told) = watch::channel(false);
        let began = Arc::new(OnceLock::new());
        let stop = async {
            signals.next().await;
            tokio::spawn(async move {
                signals.next().await;
                // The node may have ended already.
                let _ = cut.send(());
            });
            info!(
                ?drain_timeout,
                "stopping: no new connections, requests under way may end, watches are ended"
            );
            leaving.leave().await;
            began.get_or_init(clock::instant);
            tell.send_replace(true);
        };
        let serving = self.ports.serve(&self.settings, &self.front, stack_of, told);
        let ending = async {
            let ((), drained) = tokio::join!(stop, serving);
            let left = drain_timeout.saturating_sub(began.get_or_init(clock::instant).elapsed());
            (drained, flush(&self.mesh, left).await)
        };
        let (drained, flushed) = tokio::select! {
            ended = ending => ended,
            Ok(()) = second => (false, false),
        };
        if !flushed {
            warn!(
                "stopped before everything had reached the peers: they find out by repair, or when leases run out"
            );
        }
        if drained {
            info!("stopped");
        } else {
            warn!("stopped before all requests under way had ended");
        }
        drop(reading);
        replicating.stop().await;
        self.events.stop().await;
        Ok(())
    }

    /// Registers the node itself, and renews it.
    fn register(&self, address: SocketAddr) -> Task {
        let own = OwnInstance::new(&self.settings, address, self.registry.clone());
        own.register();
        Task::spawn(|leave| own.live(leave))
    }

    /// Reads the other regions, each for itself.
    fn read_regions(&self) -> Vec<Task> {
        let readers = self.regions.readers(&self.settings.regions);
        let tasks = readers.map(|reader| Task::spawn(|stopped| reader.run(stopped)));
        tasks.collect()
    }

    /// Starts replication, which opens the registry when it has copied from the peers. Without peers there is nobody to ask
    /// for a copy: reads are open at once, or held as configured.
    fn replicate(&self, address: SocketAddr) -> Task {
        let alone = self.settings.peers.is_empty();
        if alone {
            self.open();
        }
        let replicator = Replicator::new(
            self.mesh.clone(),
            self.registry.clone(),
            Resolver::system(),
            driver::Settings {
                opens: !alone,
                ..compose::driver(&self.settings, address)
            },
            // The log tells of them by the facts, and more slowly.
            Box::new(|_, _| {}),
        );
        tokio::spawn(self.peers.clone().watch());
        Task::spawn(|stopped| {
            replicator.run(async {
                // Sent or dropped, it is the end.
                let _ = stopped.await;
            })
        })
    }

    fn open(&self) {
        let bootstrap = &self.settings.bootstrap;
        let hold = bootstrap
            .hold_alone
            .then_some(Settle::exactly(bootstrap.wait_when_empty));
        // Spring takes one client for granted when it opens with nothing, unless it is told to hold.
        let synced = usize::from(self.settings.compat.preset == Preset::EurekaJava && hold.is_none());
        self.registry.open(synced, hold);
    }

    fn own_routes(&self, address: SocketAddr) -> Own {
        let settings = &self.settings;
        Own {
            registry: self.registry.clone(),
            peers: self.peers.clone(),
            regions: self.regions.clone(),
            front: Arc::clone(&self.front),
            health: Arc::clone(&self.health),
            metrics: settings.metrics.enabled.then(|| self.recorder.clone()),
            log: self.log.clone(),
            console: settings
                .console
                .enabled
                .then(|| Console::new(settings, address, self.ports.grpc_address(), &self.registry)),
        }
    }

    fn say_hello(&self) {
        let address = self.ports.http_address();
        let grpc = self.ports.grpc_address();
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
        let grpc = grpc.map(|grpc| format!(" grpc={grpc}")).unwrap_or_default();
        self.log.announce(&format!("ready http={address}{grpc}"));
    }
}

impl Task {
    fn spawn<F>(task: impl FnOnce(oneshot::Receiver<()>) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (stop, stopped) = oneshot::channel();
        Self {
            stop,
            ended: tokio::spawn(task(stopped)),
        }
    }

    /// Tells it to stop, and waits until it has.
    async fn stop(self) {
        drop(self.stop);
        // A panic in it was logged.
        let _ = self.ended.await;
    }
}

/// What is done before the node stops to listen.
struct Leaving {
    own: Option<Task>,
    health: Arc<Health>,
    mesh: Handle,
    api: Api,
    grpc: Grpc,
}

impl Leaving {
    async fn leave(self) {
        self.health.stop();
        if let Some(own) = self.own {
            own.stop().await;
        }
        // Nothing lingers from now on.
        self.mesh.flush(Duration::ZERO).await;
        // Who stays does not end by itself. The node's own leave was among what they were told.
        self.api.close_feeds();
        self.grpc.close();
    }
}

/// Waits until everything has reached the peers that can be reached, and tells whether it has.
async fn flush(mesh: &Handle, within: Duration) -> bool {
    if mesh.flush(Duration::ZERO).await {
        return true;
    }
    info!(?within, "sending what waits for peers");
    mesh.flush(within).await
}

/// Reads the configuration again at each signal, for ever.
async fn reload_on(mut hangup: Signal, mut reload: Reload, peers: Peers, address: SocketAddr) {
    while hangup.recv().await.is_some() {
        if let Some(settings) = reload.read() {
            peers.configure(&settings.peers, compose::sources(settings, address));
        }
    }
}

async fn upkeep(recorder: Recorder) {
    let mut interval = tokio::time::interval(UPKEEP_INTERVAL);
    loop {
        interval.tick().await;
        recorder.upkeep();
    }
}

/// Five numbers from the operating system.
fn random() -> Result<[u64; 5], getrandom::Error> {
    Ok([
        getrandom::u64()?,
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
