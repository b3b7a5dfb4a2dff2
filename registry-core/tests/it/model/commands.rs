//! Random commands over a few names, so that they meet each other.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{Command, Instance, InstanceKey, Mono, Now, Origin, PeerId, Settle, Status, Wall};

use crate::numbers::Numbers;

/// One thing that happens.
pub(super) enum Step {
    /// Time passes, and nobody calls.
    Pass(Duration),
    /// The wall clock alone is set.
    SetWall(Wall),
    Timeout,
    Open {
        synced: usize,
        settle: Option<Settle>,
    },
    Accept,
    Apply(Origin, Command),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Apply(origin, command) = self else {
            return match self {
                Self::Pass(by) => write!(f, "pass {by:?}"),
                Self::SetWall(to) => write!(f, "wall {to:?}"),
                Self::Open { synced, settle } => write!(f, "open {synced} {settle:?}"),
                Self::Accept => f.write_str("accept"),
                Self::Timeout | Self::Apply(..) => f.write_str("timeout"),
            };
        };
        let (name, instance, age) = match command {
            Command::Register { instance, age } => ("register", instance, age),
            Command::Adopt { instance, age } => ("adopt", instance, age),
            other => return write!(f, "{other:?} from {origin:?}"),
        };
        write!(
            f,
            "{name} {} {} override {} dirty {:?} duration {} vip {:?} {:?} age {age:?} from {origin:?}",
            instance.key(),
            instance.status,
            instance.overridden_status,
            instance.last_dirty,
            instance.lease.duration_secs,
            instance.vip_address,
            instance.metadata
        )
    }
}

/// A seeded source of steps.
pub(super) struct Random {
    numbers: Numbers,
    opened: bool,
    /// A time-out follows.
    due: bool,
}

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            numbers: Numbers::new(seed),
            opened: false,
            due: false,
        }
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.numbers.below(bound)
    }

    pub(super) fn one_in(&mut self, count: usize) -> bool {
        self.numbers.one_in(count)
    }

    pub(super) fn start(&mut self) -> Now {
        Now {
            mono: Mono(self.below(5_000) as u64),
            wall: Wall(1_700_000_000_000),
        }
    }

    /// The next step; `due` is when the registry wants to be called.
    pub(super) fn step(&mut self, now: Mono, due: Option<Mono>) -> Step {
        if std::mem::take(&mut self.due) {
            return Step::Timeout;
        }
        if !self.opened && self.one_in(10) {
            self.opened = true;
            let settle = self.one_in(3).then_some(Settle {
                at_least: Duration::from_secs(20),
                quiet: Duration::from_secs(10),
                at_most: Duration::from_secs(50),
            });
            let synced = [0, 0, 1, 5][self.below(4)];
            return Step::Open { synced, settle };
        }
        match self.below(100) {
            0 => Step::Accept,
            1 => Step::SetWall(Wall(1_700_000_000_000 + self.below(100_000_000) as u64)),
            2..=5 => Step::Timeout,
            6..=44 => self.pass(now, due),
            _ => Step::Apply(self.origin(), self.command()),
        }
    }

    /// Mostly to when something is due, or not quite; sometimes past it, rarely far past it.
    fn pass(&mut self, now: Mono, due: Option<Mono>) -> Step {
        let until_due = due.map_or(5_000, |due| due.0.saturating_sub(now.0));
        let millis = match self.below(40) {
            0 => until_due + self.below(200_000) as u64,
            1 => until_due + 1_000,
            2 => until_due + 1_001,
            3..=7 => self.below(1 + usize::try_from(until_due).expect("short")) as u64,
            8..=12 => until_due + self.below(900) as u64,
            _ => until_due,
        };
        self.due = millis >= until_due && !self.one_in(10);
        Step::Pass(Duration::from_millis(millis))
    }

    fn origin(&mut self) -> Origin {
        match self.below(8) {
            0 => Origin::Operator,
            1 => Origin::Own,
            2..=4 => Origin::Peer(PeerId(Arc::from("http://peer/eureka"))),
            _ => Origin::Client,
        }
    }

    fn key(&mut self) -> InstanceKey {
        let app = ["A", "B", "C"][self.below(3)];
        InstanceKey::new(app, ["1", "2", "3", "4"][self.below(4)])
    }

    fn dirty(&mut self) -> i64 {
        100 + self.below(6) as i64
    }

    fn dirty_or_none(&mut self) -> Option<i64> {
        (!self.one_in(5)).then(|| self.dirty())
    }

    fn status(&mut self) -> Status {
        let usual = [Status::Up, Status::Up, Status::Up, Status::OutOfService];
        if self.one_in(3) {
            Status::ALL[self.below(5)]
        } else {
            usual[self.below(4)]
        }
    }

    fn command(&mut self) -> Command {
        let key = self.key();
        match self.below(20) {
            0..=6 => Command::Register {
                instance: Arc::new(self.instance(&key)),
                age: self.age(),
            },
            7 => Command::Adopt {
                instance: Arc::new(self.instance(&key)),
                age: self.age(),
            },
            8..=13 => Command::Renew {
                key,
                last_dirty: self.dirty_or_none(),
                overridden: self.one_in(3).then(|| self.status()),
            },
            14 => Command::Cancel { key },
            15 | 16 => Command::Override {
                key,
                status: self.status(),
                last_dirty: self.dirty_or_none(),
            },
            17 => Command::ClearOverride {
                key,
                status: self.one_in(2).then(|| self.status()),
                last_dirty: self.dirty_or_none(),
            },
            _ => Command::Metadata {
                key,
                entries: vec![(Arc::from("zone"), Arc::from(["x", "y"][self.below(2)]))],
            },
        }
    }

    fn instance(&mut self, key: &InstanceKey) -> Instance {
        let mut instance = Instance::new(key.app(), key.id(), "host", "10.0.0.1");
        instance.status = self.status();
        instance.last_dirty = self.dirty_or_none();
        instance.lease.duration_secs = [5, 10, 20, 40][self.below(4)];
        if self.one_in(3) {
            instance.metadata.insert("zone", ["x", "y"][self.below(2)]);
        }
        if self.one_in(8) {
            instance.overridden_status = self.status();
        }
        if self.one_in(3) {
            instance.vip_address = Some(Arc::from(["v", "v,w", "w"][self.below(3)]));
        }
        instance
    }

    fn age(&mut self) -> Duration {
        let millis = [0, 0, 1, 3_000, 5_000, 9_999, 10_000, 30_000][self.below(8)];
        Duration::from_millis(millis)
    }
}
