//! Tests of the whole machine.

mod authors;
mod content;
mod leases;
mod readers;
mod vectors;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::Registry;
use crate::command::{Origin, PeerId};
use crate::config::Config;
use crate::event::Event;
use crate::model::{Instance, InstanceKey};
use crate::snapshot::LeaseView;
use crate::time::{Mono, Now, Wall};

/// A registry with a clock, advanced as its owner should: it is called whenever it wants to be.
pub(super) struct Bench {
    pub(super) registry: Registry,
    pub(super) now: Now,
    pub(super) events: Vec<Event>,
}

impl Bench {
    /// An open registry.
    pub(super) fn new(config: Config) -> Self {
        let mut bench = Self::starting(config);
        bench.registry.open(bench.now, 0, None);
        bench
    }

    /// One that is not open yet.
    pub(super) fn starting(config: Config) -> Self {
        let now = Now {
            mono: Mono(5_000),
            wall: Wall(1_700_000_000_000),
        };
        Self {
            registry: Registry::new(now, config),
            now,
            events: Vec::new(),
        }
    }

    pub(super) fn advance(&mut self, millis: u64) {
        let end = self.now.mono.0 + millis;
        while let Some((due, _)) = self.registry.poll_timeout()
            && due.0 <= end
        {
            self.step(due.0.max(self.now.mono.0));
            self.registry.handle_timeout(self.now);
            self.drain();
        }
        self.step(end);
    }

    /// Time passes and nobody is called.
    pub(super) fn sleep(&mut self, millis: u64) {
        self.step(self.now.mono.0 + millis);
    }

    pub(super) fn drain(&mut self) {
        while let Some(event) = self.registry.poll_event() {
            self.events.push(event);
        }
    }

    pub(super) fn register(&mut self, origin: Origin, instance: Instance) -> crate::Registered {
        let registered = self
            .registry
            .register(self.now, origin, Arc::new(instance), Duration::ZERO);
        self.drain();
        registered
    }

    pub(super) fn renew(&mut self, origin: Origin, key: &InstanceKey) -> crate::Renewed {
        self.registry.renew(self.now, origin, key, None, None)
    }

    pub(super) fn find(&self, key: &InstanceKey) -> Option<LeaseView> {
        self.registry.find(self.now, key)
    }

    fn step(&mut self, mono: u64) {
        self.now.wall.0 += mono - self.now.mono.0;
        self.now.mono.0 = mono;
    }
}

pub(super) fn peer() -> Origin {
    Origin::Peer(PeerId(Arc::from("http://peer/eureka/")))
}

/// `FOO/i-1` with a lease of 90 seconds.
pub(super) fn instance(dirty: i64) -> Instance {
    Instance {
        last_dirty: Some(dirty),
        ..Instance::new("foo", "i-1", "host-1", "10.0.0.1")
    }
}

pub(super) fn key() -> InstanceKey {
    InstanceKey::new("FOO", "i-1")
}
