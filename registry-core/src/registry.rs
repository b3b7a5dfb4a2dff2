//! The state machine: commands in, outcomes and events out.

mod leave;
mod overrule;
mod register;
mod renew;
mod repair;
#[cfg(test)]
mod tests;
mod timeouts;

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use crate::changes::{self, ChangeLog, Changes, Recent, Recents, Why};
use crate::command::{Command, Origin, PeerId, Reply};
use crate::config::{Config, Settle};
use crate::digest::Digest;
use crate::event::{AppliedKind, Event};
use crate::hash::Keyed;
use crate::lease::Lease;
use crate::leases::{Leases, Slot, is_due};
use crate::listing::Listing;
use crate::model::{Action, Instance, InstanceKey, Status};
use crate::overrides::Overrides;
use crate::peers::{Peers, Reach};
use crate::preservation::{Preservation, Preserver, Standing, Turn};
use crate::rng::Rng;
use crate::snapshot::{Hold, LeaseView, Reads, Snapshot};
use crate::stats::Stats;
use crate::time::{Mono, Now, Wall};
use crate::tombstones::Tombstones;
use crate::watch::{Moment, Ticks, Watch};

use timeouts::{Eviction, Refresh};

/// A call that comes this much later than it was due means that nobody watched, in milliseconds.
const UNWATCHED: u64 = 1_000;
/// At most this many refused registrations of peers are remembered.
const REFUSALS: usize = 10_000;
/// At most this many overdue leases are considered for being named by [`Registry::explain`].
const NAMED_OF: usize = 1_024;

/// All leases of one node.
///
/// **Drain after mutate**: after any call with `&mut self` drain [`poll_event`](Self::poll_event) and read
/// [`poll_timeout`](Self::poll_timeout) again. `RegistryHandle` (feature `shared`) does that for you.
///
/// Nothing here takes longer with the number of leases than a look-up does: whatever concerns many of them is done a
/// few at a time in [`handle_timeout`](Self::handle_timeout).
#[derive(Debug)]
pub struct Registry {
    config: Config,
    watch: Watch,
    /// The last time anybody called.
    seen: Mono,
    phase: Phase,
    leases: Leases,
    preserver: Preserver,
    /// Leases that ran out before this moment, when preservation ended, get one more duration from it.
    grace: Option<Ticks>,
    eviction: Option<Eviction>,
    refresh: Refresh,
    overrides: Overrides,
    tombstones: Tombstones,
    /// Registrations of peers that were refused for what they were.
    refusals: Tombstones,
    digest: Digest,
    /// Where the next list of late leases begins.
    late_from: usize,
    changes: ChangeLog,
    listing: Listing,
    peers: Peers,
    registrations: Recents,
    cancels: Recents,
    events: VecDeque<Event>,
    seq: u64,
    rng: Rng,
    counters: Stats,
}

/// Whether lists may be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    Starting,
    Settling(Settling),
    Open,
}

/// Until when reads are held.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Settling {
    until: Ticks,
    /// Prolonged to this long after each renewal that is answered Missing, in milliseconds.
    quiet: i64,
    at_most: Ticks,
}

impl Registry {
    /// An empty registry whose reads are held until [`open`](Self::open).
    pub fn new(now: Now, config: Config) -> Self {
        let keyed = Keyed::new(config.seed);
        Self {
            watch: Watch::default(),
            seen: now.mono,
            phase: Phase::Starting,
            leases: Leases::new(keyed),
            preserver: Preserver::new(&config.preservation, keyed),
            grace: None,
            eviction: None,
            refresh: Refresh::default(),
            overrides: Overrides::new(
                config.compat.override_by_id,
                config.override_limit,
                config.node,
                keyed,
            ),
            tombstones: Tombstones::new(config.tombstone_limit),
            refusals: Tombstones::new(REFUSALS),
            digest: Digest::new(),
            late_from: 0,
            changes: ChangeLog::new(
                Moment::of(now.mono),
                changes::Limits {
                    count: config.change_log_limit,
                    bytes: config.change_log_bytes,
                },
            ),
            listing: Listing::new(),
            peers: Peers::default(),
            registrations: Recents::default(),
            cancels: Recents::default(),
            events: VecDeque::new(),
            seq: 0,
            rng: Rng::new(config.seed[0] ^ config.seed[1]),
            counters: Stats::default(),
            config,
        }
    }

    /// How it is configured.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Opens reads after `synced` instances came from peers, and starts the meter and eviction. With `settle`, reads stay
    /// held for a while first. A further call only changes how long reads are held.
    pub fn open(&mut self, now: Now, synced: usize, settle: Option<Settle>) {
        self.observe(now);
        let ticks = self.ticks(now);
        if self.phase == Phase::Starting {
            self.preserver.opened(now, synced);
            self.eviction = Some(Eviction::starting(ticks, self.config.eviction_interval));
        }
        self.phase = match settle {
            Some(settle) => {
                let until = ticks.after(millis(settle.at_least));
                Phase::Settling(Settling {
                    until,
                    quiet: millis(settle.quiet),
                    at_most: until.max(ticks.after(millis(settle.at_most))),
                })
            }
            None => Phase::Open,
        };
        self.listing.touch();
        self.conclude(now);
    }

    /// Carries out a command.
    pub fn apply(&mut self, now: Now, origin: Origin, command: Command) -> Reply {
        match command {
            Command::Adopt { instance, age } => Reply::Registered(self.adopt(now, origin, instance, age)),
            Command::Cancel { key } => Reply::Changed(self.cancel(now, origin, &key)),
            Command::ClearOverride {
                key,
                status,
                last_dirty,
            } => Reply::Changed(self.clear_override(now, origin, &key, status, last_dirty)),
            Command::Metadata { key, entries } => {
                Reply::Changed(self.update_metadata(now, origin, &key, &entries))
            }
            Command::Override {
                key,
                status,
                last_dirty,
            } => Reply::Changed(self.set_override(now, origin, &key, status, last_dirty)),
            Command::Register { instance, age } => {
                Reply::Registered(self.register(now, origin, instance, age))
            }
            Command::Renew {
                key,
                last_dirty,
                overridden,
            } => Reply::Renewed(self.renew(now, origin, &key, last_dirty, overridden)),
        }
    }

    /// Notes whether a peer can be reached. Late leases last heard through one that cannot are held for a while; when it
    /// can be reached again they get one more duration (but no longer than the hold), so that their clients can call.
    pub fn peer_reachable(&mut self, now: Now, peer: &PeerId, reachable: bool) {
        self.observe(now);
        let ticks = self.ticks(now);
        self.peers.reachable(ticks, peer, reachable);
    }

    /// An operator says that whoever is missing is really gone: preservation ends, and overdue leases may be evicted.
    pub fn accept_losses(&mut self, now: Now) {
        self.observe(now);
        self.preserver.accept();
        self.conclude(now);
    }

    /// The next thing that happened.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The registry as readers see it at `now`. Costs a few reference counts, and no more if nothing changed.
    pub fn snapshot(&mut self, now: Now) -> Snapshot {
        self.observe(now);
        self.end_hold(now);
        let reads = match self.phase {
            Phase::Starting => Reads::Held(Hold::Starting),
            Phase::Settling(_) => Reads::Held(Hold::EmptySync),
            Phase::Open => Reads::Open,
        };
        self.listing
            .snapshot(self.changes.version(), self.leases.applications(), reads)
    }

    /// What [`Snapshot::edition`] of a snapshot taken now would be: an older one with this edition is still current.
    pub fn edition(&self) -> u64 {
        self.listing.edition()
    }

    /// One lease, current, whether or not it has run out.
    pub fn lease(&self, now: Now, key: &InstanceKey) -> Option<LeaseView> {
        let slot = self.leases.find(key)?;
        Some(self.view(now, self.leases.get(slot)))
    }

    /// How long ago any node heard of an instance.
    pub fn age(&self, now: Now, key: &InstanceKey) -> Option<Duration> {
        let heard = self.leases.get(self.leases.find(key)?).heard;
        let age = Moment::of(now.mono).0.saturating_sub(heard.0);
        Some(Duration::from_millis(u64::try_from(age).unwrap_or(0)))
    }

    /// One instance as single look-ups show it: a lease that has run out is hidden while eviction is possible, as in Java.
    pub fn find(&self, now: Now, key: &InstanceKey) -> Option<LeaseView> {
        let slot = self.visible(now, key)?;
        Some(self.view(now, self.leases.get(slot)))
    }

    /// The first instance with this id in the order of applications, as [`find`](Self::find) shows it.
    pub fn find_by_id(&self, now: Now, id: &str) -> Option<LeaseView> {
        let mut keys = self.listing.with_id(id);
        keys.find_map(|key| self.find(now, key))
    }

    /// Why nobody is evicted, or why somebody may be, per application and zone.
    pub fn explain(&self, now: Now) -> Preservation {
        self.survey(now).sorted()
    }

    /// The same, not in order yet: what has to happen under a lock.
    pub(crate) fn survey(&self, now: Now) -> Preservation {
        let overdue = self.leases.overdue();
        let considered = overdue.iter().take(NAMED_OF);
        Preservation {
            overdue: overdue.len(),
            overdue_named: considered
                .map(|slot| (*self.leases.get(*slot).key).clone())
                .collect(),
            ..self.preserver.explain(now, self.leases.len())
        }
    }

    /// A count of the changes that readers can see.
    #[cfg(feature = "shared")]
    pub(crate) fn version(&self) -> u64 {
        self.changes.version()
    }

    /// Counts and sizes.
    pub fn stats(&self) -> Stats {
        Stats {
            instances: self.leases.len(),
            applications: self.leases.applications(),
            by_status: self.listing.counts(),
            overrides: self.overrides.len(),
            tombstones: self.tombstones.len(),
            refusals: self.refusals.len(),
            digest: self.digest.len(),
            moving: self.digest.moving(),
            late: self.leases.late().len(),
            forgotten: self.counters.forgotten
                + self.overrides.forgotten()
                + self.tombstones.forgotten()
                + self.refusals.forgotten(),
            changes: self.changes.len(),
            change_bytes: self.changes.bytes(),
            delta: self.listing.delta_len(),
            version: self.changes.version(),
            preserving: self.preserver.preserving(),
            ..self.counters
        }
    }

    /// At most `limit` changes after `version`, for readers that follow.
    pub fn changes(&self, now: Now, version: u64, limit: usize) -> Changes {
        self.changes.since(now, version, limit)
    }

    /// The version that the registry had at a time: that of the last change made until then. `None` if changes since then
    /// are not kept any more, or if it had not started.
    pub fn version_at(&self, now: Now, time: Wall) -> Option<u64> {
        self.changes.version_at(Moment::at(now, time))
    }

    /// At most `limit` overrides behind `after` in the order of their keys, also of absent instances; under Java's
    /// rule the application is empty.
    pub fn overrides(&self, after: Option<&InstanceKey>, limit: usize) -> Vec<(InstanceKey, Status)> {
        let entries = self.overrides.iter(after).take(limit);
        entries.map(|(key, status)| (key.clone(), status)).collect()
    }

    /// The last registrations, newest first, at most 1,000.
    pub fn recent_registrations(&self, now: Now) -> Vec<Recent> {
        self.registrations.list(now)
    }

    /// The last cancels and evictions, newest first, at most 1,000.
    pub fn recent_cancels(&self, now: Now) -> Vec<Recent> {
        self.cancels.list(now)
    }

    /// The watched time at `now`: if nobody called when it was due, the time when it was.
    fn ticks(&self, now: Now) -> Ticks {
        let watched = self.unwatched(now).unwrap_or(now.mono);
        self.watch.ticks(Moment::of(watched))
    }

    /// Takes note of `now` before anything is changed: what nobody watched moves every deadline.
    fn observe(&mut self, now: Now) {
        if let Some(from) = self.unwatched(now) {
            let missed = now.mono.since(from);
            self.watch.pause(Moment::of(from), millis(missed));
            self.preserver.paused(missed);
        }
        self.seen = self.seen.max(now.mono);
    }

    /// Since when nobody watched, if a call at `now` comes too late.
    fn unwatched(&self, now: Now) -> Option<Mono> {
        if now.mono.0 <= self.seen.0 + UNWATCHED {
            return None;
        }
        let due = self.poll_timeout().map(|(due, _)| due);
        let call = self.config.called_every.map(|every| self.seen.after(every));
        let promised = due.into_iter().chain(call).min()?.max(self.seen);
        (now.mono.0 > promised.0 + UNWATCHED).then_some(promised)
    }

    /// To be called at the end of whatever may begin or end preservation.
    fn conclude(&mut self, now: Now) {
        self.listing.dispose();
        match self.preserver.turn(now) {
            None => {}
            Some(Turn::Began) => self.events.push_back(Event::Preserving(true)),
            Some(Turn::Ended { grace }) => {
                if grace {
                    self.grace = Some(self.ticks(now));
                }
                self.events.push_back(Event::Preserving(false));
            }
        }
    }

    /// The lease of this key unless single look-ups hide it.
    fn visible(&self, now: Now, key: &InstanceKey) -> Option<Slot> {
        let slot = self.leases.find(key)?;
        let hidden = self.ticks(now) > self.deadline(self.leases.get(slot)) && self.preserver.evicts(now);
        (!hidden).then_some(slot)
    }

    /// From when on a lease may be evicted.
    fn deadline(&self, lease: &Lease) -> Ticks {
        let mut at = lease.expires(&self.watch, self.config.lease_expiry);
        let held = at.after(lease.duration() * i64::from(self.config.silent_peer_hold));
        at = match self.peers.reach(lease.heard_via) {
            Reach::Always => at,
            Reach::Silent => held,
            Reach::Since(back) => at.max(back.after(lease.duration()).min(held)),
        };
        match self.grace {
            Some(grace) if at < grace => grace.after(lease.duration()),
            Some(_) | None => at,
        }
    }

    fn view(&self, now: Now, lease: &Lease) -> LeaseView {
        lease.view(
            now,
            self.config.compat.renewal_shown_ahead,
            self.config.own_id.as_deref(),
        )
    }

    /// After `heard` of a lease has changed: it may be on time again.
    fn heard(&mut self, now: Now, slot: Slot) {
        let lease = self.leases.get(slot);
        if lease.standing == Standing::OnTime {
            return;
        }
        let ticks = self.ticks(now);
        let late = lease.late(&self.watch);
        let runs_out = lease.runs_out(&self.watch);
        let next = if late >= ticks {
            let (app, zone) = (lease.key.app(), lease.zone());
            let standing = self.preserver.on_time_again(app, zone, lease.standing);
            self.leases.get_mut(slot).standing = standing;
            self.leases.clear_late(slot);
            late
        } else {
            runs_out
        };
        if !is_due(ticks, runs_out) {
            self.digest.come_back(ticks, &mut self.leases, slot);
        }
        self.leases.clear_overdue(slot);
        self.leases.file(slot, next);
    }

    /// What other nodes compare of a lease has changed.
    fn moved(&mut self, now: Now, slot: Slot) {
        let ticks = self.ticks(now);
        self.digest.change(ticks, &mut self.leases, slot);
    }

    /// Shows the new state of a lease to readers, as a new version. A `hidden` change stays out of the delta.
    fn publish(&mut self, now: Now, slot: Slot, hidden: bool, why: Why) -> u64 {
        let lease = self.leases.get(slot);
        let (key, instance) = (Arc::clone(&lease.key), Arc::clone(&lease.instance));
        // What Java's lists do not tell of is a change all the same.
        let action = if hidden { Action::Modified } else { lease.action };
        let version = self.log(now, key, action, instance, why);
        let lease = self.leases.get_mut(slot);
        if !hidden {
            lease.in_delta = Some(version);
            self.changes.clear_gone(&lease.key);
        }
        let lease = self.leases.get(slot);
        let view = self.view(now, lease);
        self.listing.put(&lease.key, view, lease.in_delta.is_some());
        version
    }

    /// Notes a change in the log, which may push older ones out of it and of the delta.
    fn log(
        &mut self,
        now: Now,
        key: Arc<InstanceKey>,
        action: Action,
        instance: Arc<Instance>,
        why: Why,
    ) -> u64 {
        let at = (self.ticks(now), Moment::of(now.mono));
        let version = self.changes.push(at, key, action, instance, why);
        let mut left = changes::DISPLACED;
        while let Some((version, key)) = self.changes.displace(&mut left) {
            self.counters.forgotten += 1;
            self.leave_delta(&key, version);
        }
        version
    }

    /// Takes an instance out of the delta, if it has not changed again since `version`.
    fn leave_delta(&mut self, key: &InstanceKey, version: u64) {
        let gone = self.changes.forget_gone(key, version);
        let left = self.leases.find(key).is_some_and(|slot| {
            let lease = self.leases.get_mut(slot);
            let last = lease.in_delta == Some(version);
            if last {
                lease.in_delta = None;
            }
            last
        });
        if gone || left {
            self.listing.leave_delta(key);
        }
    }

    fn applied(
        &mut self,
        key: &InstanceKey,
        kind: AppliedKind,
        before: Option<Arc<Instance>>,
        after: Option<Arc<Instance>>,
        origin: Origin,
    ) {
        self.seq += 1;
        self.events.push_back(Event::Applied {
            seq: self.seq,
            version: self.changes.version(),
            key: key.clone(),
            kind,
            before,
            after,
            origin,
        });
    }
}

/// The moment so long before now.
fn before(now: Now, ago: Duration) -> Moment {
    Moment(Moment::of(now.mono).0.saturating_sub(millis(ago)))
}

/// Whole milliseconds of a duration, saturating.
fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
