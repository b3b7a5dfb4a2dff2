//! Instances: what they remember of themselves, and what they ask of servers.

use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{Command, Instance, InstanceKey, LeaseTerms, Metadata, Status};

use super::scenario::ClientPlan;

/// What the clocks of clients show when the run begins.
const EPOCH: i64 = 1_700_000_000_000;

/// One instance.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) plan: ClientPlan,
    pub(super) key: InstanceKey,
    pub(super) home: usize,
    /// Whether its process runs.
    pub(super) running: bool,
    /// Counts its processes: steps of an earlier one are void.
    pub(super) process: u32,
    /// It reaches nobody before.
    pub(super) silent_until: u64,
    /// Whether it believes it is registered.
    registered: bool,
    /// Whether it ever reported OUT_OF_SERVICE.
    pub(super) wavered: bool,
    /// The statuses it reported, all under one dirty timestamp, if that is constant.
    told: Vec<Status>,
    status: Status,
    dirty: i64,
}

impl Client {
    /// Not started yet.
    pub(super) fn new(index: usize, plan: ClientPlan) -> Self {
        Self {
            plan,
            key: InstanceKey::new("APP", &format!("i-{index}")),
            home: plan.home,
            running: false,
            process: 0,
            silent_until: 0,
            registered: false,
            wavered: false,
            told: Vec::new(),
            status: Status::Up,
            dirty: EPOCH,
        }
    }

    /// The number of the instance with this key.
    pub(super) fn index(key: &InstanceKey) -> usize {
        key.id()[2..].parse().expect("ids are i- and a number")
    }

    /// How long its lease lasts, in milliseconds.
    pub(super) fn duration(&self) -> u64 {
        self.plan.duration * 1_000
    }

    /// Time between its renewals, in milliseconds.
    pub(super) fn interval(&self) -> u64 {
        self.duration() / 3
    }

    /// A process starts.
    pub(super) fn start(&mut self, at: u64) {
        self.running = true;
        self.process += 1;
        self.registered = false;
        self.status = Status::Up;
        self.told.push(Status::Up);
        self.touch(at);
    }

    /// It ends.
    pub(super) fn stop(&mut self) {
        self.running = false;
        self.registered = false;
    }

    /// It reports another status from now on.
    pub(super) fn report(&mut self, at: u64, status: Status) {
        self.status = status;
        self.wavered |= status == Status::OutOfService;
        self.told.push(status);
        self.touch(at);
        self.registered = false;
    }

    /// Whether it reported both statuses under the same dirty timestamp: who missed one of them never learns of it by that.
    pub(super) fn told_both(&self, one: Status, other: Status) -> bool {
        self.plan.clock.is_none() && self.told.contains(&one) && self.told.contains(&other)
    }

    /// What it asks for next.
    pub(super) fn request(&self) -> Command {
        if self.registered {
            Command::Renew {
                key: self.key.clone(),
                last_dirty: Some(self.dirty),
                overridden: None,
            }
        } else {
            Command::Register {
                instance: Arc::new(self.instance()),
                age: Duration::ZERO,
            }
        }
    }

    /// Its registration was taken.
    pub(super) fn registered(&mut self) {
        self.registered = true;
    }

    /// Its heartbeat was answered 404: it registers again, as something new.
    pub(super) fn unknown(&mut self, at: u64) {
        self.registered = false;
        self.touch(at);
    }

    fn touch(&mut self, at: u64) {
        if let Some(ahead) = self.plan.clock {
            self.dirty = EPOCH + at as i64 + ahead;
        }
    }

    fn instance(&self) -> Instance {
        let duration_secs = self.plan.duration as u32;
        let process = self.process.to_string();
        Instance {
            status: self.status,
            lease: LeaseTerms {
                renewal_interval_secs: duration_secs / 3,
                duration_secs,
            },
            metadata: Metadata::from_iter([("process", &*process)]),
            last_dirty: Some(self.dirty),
            ..Instance::new(self.key.app(), self.key.id(), self.key.id(), "10.1.0.1")
        }
    }
}
