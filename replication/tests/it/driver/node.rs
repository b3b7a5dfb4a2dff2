//! A node as the server puts it together.

use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{
    self as core, Clock, Instance, InstanceKey, Mono, Now, Origin, RegistryHandle, Wall,
};
use eureka_replication::driver::{AlarmSink, Handle, Own, Replicator, Resolver, Settings, Sources};
use eureka_replication::resolve::{DnsSource, Template};
use eureka_replication::{Alarm, Config, Facts, NodeId, PeerAddress, PeerFacts, Rules};
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

/// No test waits longer for what must come.
const BOUND: Duration = Duration::from_secs(20);

/// A registry, its mesh and the task that drives it, which ends when this is dropped.
pub(crate) struct Node {
    pub(crate) registry: RegistryHandle,
    pub(crate) handle: Handle,
    /// Alarms that were raised.
    pub(crate) alarms: Arc<Mutex<Vec<Alarm>>>,
    task: JoinHandle<()>,
}

/// 2023, plus the time of the runtime.
struct RuntimeClock(Instant);

impl Clock for RuntimeClock {
    fn now(&self) -> Now {
        let elapsed = u64::try_from(self.0.elapsed().as_millis()).expect("not for ever");
        Now {
            mono: Mono(elapsed),
            wall: Wall(1_700_000_000_000 + elapsed),
        }
    }
}

impl Node {
    /// With peers at these URLs.
    pub(crate) async fn start(id: NodeId, urls: &[String]) -> Self {
        Self::with(id, sources(urls, &[]), Resolver::system(), settings())
            .ready()
            .await
    }

    /// Once it has peers.
    pub(crate) async fn ready(self) -> Self {
        self.until("peers", |node| !node.facts().peers.is_empty()).await;
        self
    }

    /// Impatient, as tests are.
    pub(crate) fn with(id: NodeId, sources: Sources, resolver: Resolver, settings: Settings) -> Self {
        let alarms = Arc::new(Mutex::new(Vec::new()));
        let raised = Arc::clone(&alarms);
        let note: AlarmSink = Box::new(move |alarm, is_raised| {
            if is_raised {
                raised.lock().push(alarm.clone());
            }
        });
        let config = Config {
            node: id,
            rules: Rules {
                lease_expiry: Arc::from("exact"),
                eviction_interval: Duration::from_secs(60),
                preservation: true,
            },
            linger: Duration::from_millis(1),
            linger_java: Duration::from_millis(1),
            digest_interval: Duration::from_millis(200),
            retry_interval: Duration::from_millis(20),
            refresh_interval: Duration::from_millis(100),
            ..Config::default()
        };
        Self::build(config, sources, resolver, settings, note, alarms)
    }

    /// Panics when it is told of an alarm.
    pub(crate) fn with_a_bug(id: NodeId, urls: &[String]) -> Self {
        let config = Config {
            node: id,
            ..Config::default()
        };
        let alarms: AlarmSink = Box::new(|alarm, _| panic!("planted: {}", alarm.text));
        let none = Arc::default();
        Self::build(
            config,
            sources(urls, &[]),
            Resolver::system(),
            settings(),
            alarms,
            none,
        )
    }

    fn build(
        config: Config,
        sources: Sources,
        resolver: Resolver,
        settings: Settings,
        sink: AlarmSink,
        alarms: Arc<Mutex<Vec<Alarm>>>,
    ) -> Self {
        let clock = Arc::new(RuntimeClock(Instant::now()));
        let handle = Handle::new(config, sources, Arc::clone(&clock) as Arc<dyn Clock>);
        let events = Arc::new(handle.clone());
        let registry = RegistryHandle::new(core::Config::default(), clock, events);
        let replicator = Replicator::new(handle.clone(), registry.clone(), resolver, settings, sink);
        let task = tokio::spawn(replicator.run(std::future::pending()));
        Self {
            registry,
            handle,
            alarms,
            task,
        }
    }

    /// A client registers an instance.
    pub(crate) fn register(&self, app: &str, id: &str) -> InstanceKey {
        let mut instance = Instance::new(app, id, "host", "10.0.0.1");
        instance.last_dirty = Some(1_700_000_000_000);
        let key = instance.key();
        self.registry
            .register(Origin::Client, Arc::new(instance), Duration::ZERO);
        key
    }

    /// Waits until something holds.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let come = timeout(BOUND, async {
            while !holds(self) {
                tokio::task::yield_now().await;
            }
        });
        if come.await.is_err() {
            panic!("{what} never came: {:#?}", self.facts());
        }
    }

    pub(crate) fn facts(&self) -> Facts {
        self.handle.facts()
    }

    /// The only peer.
    pub(crate) fn peer(&self) -> PeerFacts {
        let facts = self.facts();
        let [peer] = &facts.peers[..] else {
            panic!("one peer, not {:#?}", facts.peers);
        };
        peer.clone()
    }

    pub(crate) fn holds(&self, key: &InstanceKey) -> bool {
        self.registry.lease(key).is_some()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) fn settings() -> Settings {
    Settings {
        address: Arc::from("10.0.0.9"),
        request_timeout: Duration::from_secs(5),
        copy_timeout: Duration::from_secs(5),
        ..Settings::default()
    }
}

pub(crate) fn sources(urls: &[String], dns: &[&str]) -> Sources {
    let urls = urls.iter().map(|url| PeerAddress::parse(url).expect("a URL"));
    let dns = dns.iter().map(|text| DnsSource::parse(text).expect("an entry"));
    Sources::new(urls.collect(), dns.collect(), Template::default(), Own::default()).expect("no TLS")
}
