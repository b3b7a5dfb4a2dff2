//! When nobody is evicted although leases ran out, and why.
//!
//! By default *leases on time* decide. A lease is expected while it is held, and after an eviction until the next update
//! unless it is seen again; it is on time while it was heard of within two thirds of its duration. When fewer than the
//! threshold's share of what is expected are on time, the network is the likelier culprit, and nobody is evicted. Java's
//! heartbeat arithmetic is computed beside it, and decides under [`Measure::Heartbeats`].

mod evicted;
mod groups;
mod meter;
#[cfg(test)]
mod tests;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use crate::config::{Measure, PreservationConfig};
use crate::hash::Keyed;
use crate::model::InstanceKey;
use crate::stats::Reason;
use crate::time::{Mono, Now};

use evicted::Evicted;
use groups::{Counts, Epoch, Groups};
use meter::Meter;

/// At most this many overdue leases are named.
const NAMED: usize = 100;

/// Why nobody is evicted, or why somebody may be.
#[derive(Clone, Debug, PartialEq)]
pub struct Preservation {
    /// Whether it is switched on.
    pub enabled: bool,
    /// Whether it holds now: nobody is evicted.
    pub active: bool,
    /// What decides.
    pub measure: Measure,
    /// Share of what is expected below which nobody is evicted.
    pub threshold: f64,
    /// Leases expected: held, and evicted since the last update without being seen again.
    pub expected: usize,
    /// Leases heard within two thirds of their duration.
    pub on_time: usize,
    /// Missing leases that never start it.
    pub tolerated_losses: usize,
    /// Java's figures, computed in any case.
    pub heartbeats: Heartbeats,
    /// At most this many would go in one run.
    pub quota: usize,
    /// By application, sorted by name; of more than 1,000, those that miss a lease first.
    pub applications: Vec<Share>,
    /// By zone, likewise; instances without one under the empty name.
    pub zones: Vec<Share>,
    /// How many leases have run out.
    pub overdue: usize,
    /// The first of them (at most 100), in the order of their keys: what could be evicted.
    pub overdue_named: Vec<InstanceKey>,
}

/// Java's arithmetic.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Heartbeats {
    /// Clients expected to renew.
    pub expected_clients: usize,
    /// Renewals per minute that must be exceeded.
    pub threshold: usize,
    /// Renewals of the last whole minute.
    pub last_minute: usize,
    /// Whether Java would evict.
    pub evicts: bool,
}

/// The leases of one application or zone.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Share {
    /// Its name.
    pub name: Arc<str>,
    /// Leases expected.
    pub expected: usize,
    /// Leases on time.
    pub on_time: usize,
}

/// How a lease counts. Kept in the lease and handed back at its next transition.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Standing {
    /// Heard of within two thirds of its duration.
    OnTime,
    /// Not heard of in time. The number tells on which side of the last [`Preserver::accept`] that was.
    Late(u32),
    /// Held, but expected by nobody: a copy taken at start that was never confirmed.
    WrittenOff,
}

/// A beginning or end of preservation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Turn {
    /// From now on nobody is evicted.
    Began,
    /// Leases that ran out may be evicted again.
    Ended {
        /// Every overdue lease gets one more duration first: its client may have had no way to reach us.
        grace: bool,
    },
}

/// Decides whether leases that ran out may be evicted. Every transition costs a look-up or two, however many leases
/// there are.
#[derive(Debug)]
pub(crate) struct Preserver {
    config: PreservationConfig,
    meter: Meter,
    total: Counts,
    by_app: Groups,
    by_zone: Groups,
    evicted: Evicted,
    /// Leases late before the last [`Preserver::accept`], and evicted before the last update, are no longer expected.
    epoch: Epoch,
    /// `None` until [`Preserver::opened`].
    next_update: Option<Mono>,
    preserving: bool,
    accepted: bool,
}

impl Preservation {
    /// Puts in order what was collected under a lock: sorting takes longer than collecting.
    pub(crate) fn sorted(mut self) -> Self {
        self.applications.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        self.zones.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        self.overdue_named.sort_unstable();
        self.overdue_named.truncate(NAMED);
        self
    }
}

impl Preserver {
    /// Nothing held, nothing expected (but by Java's arithmetic), not opened.
    pub(crate) fn new(config: &PreservationConfig, keyed: Keyed) -> Self {
        Self {
            config: *config,
            meter: Meter::new(config),
            total: Counts::default(),
            by_app: Groups::new(keyed),
            by_zone: Groups::new(keyed),
            evicted: Evicted::new(keyed),
            epoch: Epoch::default(),
            next_update: None,
            preserving: false,
            accepted: false,
        }
    }

    /// Reads were opened after `synced` instances came from peers: minutes and updates are counted from here.
    pub(crate) fn opened(&mut self, now: Now, synced: usize) {
        self.meter.opened(now.mono, &self.config, synced);
        self.next_update = Some(now.mono.after(self.config.update_interval));
    }

    /// A lease that was not held before, on time. `zone` is empty for none, here and below.
    pub(crate) fn added(&mut self, app: &Arc<str>, zone: &str, key: &InstanceKey) -> Standing {
        if let Some(zone) = self.evicted.remove(key) {
            self.count(key.app(), &zone, |counts| counts.evicted -= 1);
        }
        self.meter.joined();
        self.count(app, zone, |counts| counts.on_time += 1);
        Standing::OnTime
    }

    /// A lease was cancelled: nobody expects it any more.
    pub(crate) fn removed(&mut self, app: &Arc<str>, zone: &str, standing: Standing) {
        self.meter.left();
        self.uncount(app, zone, standing);
    }

    /// A lease was evicted: it stays expected until the next update or until it is added again.
    pub(crate) fn evicted(&mut self, app: &Arc<str>, zone: &str, standing: Standing, key: &InstanceKey) {
        self.meter.left();
        if !self.uncount(app, zone, standing) {
            return;
        }
        if self.evicted.add(key, zone) {
            self.count(app, zone, |counts| counts.evicted += 1);
        } else {
            self.total.evicted += 1;
        }
    }

    /// A held lease changed its zone.
    pub(crate) fn moved(&mut self, app: &Arc<str>, from: &str, to: &str, standing: Standing) {
        self.uncount(app, from, standing);
        if let Some(field) = self.field(standing) {
            self.count(app, to, |counts| *field(counts) += 1);
        }
    }

    /// A lease that was on time was not heard of for two thirds of its duration.
    pub(crate) fn late(&mut self, app: &Arc<str>, zone: &str) -> Standing {
        self.count(app, zone, |counts| {
            counts.on_time -= 1;
            counts.late += 1;
        });
        Standing::Late(self.epoch.acceptance)
    }

    /// A lease that was late or written off was heard of.
    pub(crate) fn on_time_again(&mut self, app: &Arc<str>, zone: &str, standing: Standing) -> Standing {
        self.uncount(app, zone, standing);
        self.count(app, zone, |counts| counts.on_time += 1);
        Standing::OnTime
    }

    /// A copy taken at start that nobody confirmed within two durations is no longer expected.
    pub(crate) fn written_off(&mut self, app: &Arc<str>, zone: &str, standing: Standing) -> Standing {
        self.uncount(app, zone, standing);
        Standing::WrittenOff
    }

    /// A renewal that was not answered Missing, for Java's meter.
    pub(crate) fn heartbeat(&mut self, now: Now) {
        self.meter.heartbeat(now.mono);
    }

    /// An operator says that whoever is missing now is really gone: nobody missing is expected any more, and overdue
    /// leases may be evicted (in each run at most the quota).
    pub(crate) fn accept(&mut self) {
        self.epoch.acceptance = self.epoch.acceptance.wrapping_add(1);
        self.forget_evicted();
        self.accepted = true;
    }

    /// Nothing was heard or done for `pause`: what is due by the clock is due that much later.
    pub(crate) fn paused(&mut self, pause: Duration) {
        self.meter.paused(pause);
        self.next_update = self.next_update.map(|due| due.after(pause));
    }

    /// Does what is due. `up` is how many instances are UP: what the client inside a Java server sees and counts.
    pub(crate) fn handle_timeout(&mut self, now: Now, up: usize) {
        self.meter.roll(now.mono);
        if self.next_update.is_some_and(|due| due <= now.mono) {
            self.next_update = Some(now.mono.after(self.config.update_interval));
            self.meter.update(&self.config, up);
            self.forget_evicted();
        }
        for (key, zone) in self.evicted.dispose() {
            // Groups of which nothing else was left go now.
            self.count(key.app(), &zone, |_| {});
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due. Minutes matter only where heartbeats decide.
    pub(crate) fn poll_timeout(&self) -> Option<(Mono, Reason)> {
        let update = self.next_update.map(|due| (due, Reason::Preservation));
        match self.config.measure {
            Measure::LeasesOnTime => update,
            Measure::Heartbeats => {
                let minute = self.meter.window_end().map(|due| (due, Reason::Minute));
                [update, minute].into_iter().flatten().min()
            }
        }
    }

    /// Whether preservation began or ended since the last call. To be asked after every change and every time-out.
    pub(crate) fn turn(&mut self, now: Now) -> Option<Turn> {
        let accepted = core::mem::take(&mut self.accepted);
        let preserving = !self.evicts(now);
        if preserving == core::mem::replace(&mut self.preserving, preserving) {
            None
        } else if preserving {
            Some(Turn::Began)
        } else {
            let grace = !accepted && self.config.measure == Measure::LeasesOnTime;
            Some(Turn::Ended { grace })
        }
    }

    /// What the last turn left.
    pub(crate) fn preserving(&self) -> bool {
        self.preserving
    }

    /// Whether leases that ran out may be evicted at `now`.
    pub(crate) fn evicts(&self, now: Now) -> bool {
        match self.config.measure {
            Measure::Heartbeats => self.meter.figures(now.mono, &self.config).evicts,
            Measure::LeasesOnTime => {
                let missing = self.total.late + self.total.evicted;
                !self.config.enabled
                    || missing <= self.config.tolerated_losses
                    || self.total.on_time as f64 >= self.config.threshold * self.total.expected() as f64
            }
        }
    }

    /// At most this many of `size` leases may go in one eviction run.
    pub(crate) fn quota(&self, size: usize) -> usize {
        size.saturating_sub((size as f64 * self.config.threshold) as usize)
    }

    /// All figures at `now`, not in order yet; the overdue leases are for the caller to fill in.
    pub(crate) fn explain(&self, now: Now, size: usize) -> Preservation {
        Preservation {
            enabled: self.config.enabled,
            active: !self.evicts(now),
            measure: self.config.measure,
            threshold: self.config.threshold,
            expected: self.total.expected(),
            on_time: self.total.on_time,
            tolerated_losses: self.config.tolerated_losses,
            heartbeats: self.meter.figures(now.mono, &self.config),
            quota: self.quota(size),
            applications: self.by_app.shares(self.epoch),
            zones: self.by_zone.shares(self.epoch),
            overdue: 0,
            overdue_named: Vec::new(),
        }
    }

    /// Takes a lease out of the counts; tells whether it was expected.
    fn uncount(&mut self, app: &Arc<str>, zone: &str, standing: Standing) -> bool {
        match self.field(standing) {
            Some(field) => {
                self.count(app, zone, |counts| *field(counts) -= 1);
                true
            }
            None => {
                self.count(app, zone, |_| {});
                false
            }
        }
    }

    /// Which count a lease of this standing is in.
    fn field(&self, standing: Standing) -> Option<fn(&mut Counts) -> &mut usize> {
        match standing {
            Standing::OnTime => Some(|counts| &mut counts.on_time),
            Standing::Late(acceptance) if acceptance == self.epoch.acceptance => {
                Some(|counts| &mut counts.late)
            }
            Standing::Late(_) | Standing::WrittenOff => None,
        }
    }

    /// Changes the counts in total, of the application and of the zone.
    fn count(&mut self, app: &Arc<str>, zone: &str, change: impl Fn(&mut Counts)) {
        change(&mut self.total);
        self.by_app.change(app, self.epoch, &change);
        self.by_zone.change(zone, self.epoch, &change);
    }

    /// From now on nobody expects those evicted so far.
    fn forget_evicted(&mut self) {
        self.epoch.update = self.epoch.update.wrapping_add(1);
        self.evicted.forget();
        self.total = self.total.at(self.epoch);
    }
}
