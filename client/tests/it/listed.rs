//! A cache whose content and clock a test sets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use eureka_client::cache::Publisher;
use eureka_client::{Cache, Server};
use eureka_registry_core::{
    Action, Instance, InstanceKey, LeaseTerms, LeaseTimes, LeaseView, Mirror, Mono, Now, Wall,
};

pub(crate) struct Listed {
    mirror: Mirror,
    publisher: Publisher,
    millis: Arc<AtomicU64>,
}

impl Listed {
    /// Nothing has been read.
    pub(crate) fn new() -> Self {
        let millis = Arc::new(AtomicU64::new(0));
        let clock = Arc::clone(&millis);
        Self {
            mirror: Mirror::new(),
            publisher: Publisher::new(move || now(clock.load(Ordering::Relaxed))),
            millis,
        }
    }

    /// These are listed.
    pub(crate) fn of(instances: impl IntoIterator<Item = Instance>) -> Self {
        let mut listed = Self::new();
        for instance in instances {
            listed.put(instance);
        }
        listed.show();
        listed
    }

    pub(crate) fn put(&mut self, instance: Instance) {
        let wall = Wall(1);
        self.mirror.put(LeaseView {
            lease: LeaseTimes {
                terms: LeaseTerms::default(),
                registered: wall,
                renewed: wall,
                evicted: Wall(0),
                service_up: wall,
            },
            instance: Arc::new(instance),
            action: Action::Added,
            last_updated: wall,
            coordinating: false,
        });
    }

    pub(crate) fn remove(&mut self, app: &str, id: &str) {
        assert!(
            self.mirror.remove(&InstanceKey::new(app, id)),
            "{app}/{id} was listed"
        );
    }

    /// Readers see what is listed now.
    pub(crate) fn show(&mut self) {
        let server = Server::parse("http://localhost:8761/eureka/").expect("a URL");
        let now = now(self.millis.load(Ordering::Relaxed));
        self.publisher
            .publish(now, self.mirror.snapshot(), Arc::new(server));
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.millis.fetch_add(seconds * 1_000, Ordering::Relaxed);
    }

    pub(crate) fn cache(&self) -> Cache {
        self.publisher.cache()
    }
}

/// An instance on a host of its own name.
pub(crate) fn instance(app: &str, id: &str) -> Instance {
    let mut instance = Instance::new(app, id, id, "10.0.0.1");
    instance.port.number = 80;
    instance
}

fn now(millis: u64) -> Now {
    Now {
        mono: Mono(millis),
        wall: Wall(1_700_000_000_000 + millis),
    }
}
