//! Whatever time brings: late leases, eviction, and the forgetting of what was kept for a while.

use alloc::sync::Arc;
use core::time::Duration;

use super::{Phase, Registry, millis};
use crate::event::Event;
use crate::leases::{Slot, is_due};
use crate::model::Status;
use crate::pages::FULL_PAGE;
use crate::preservation::Standing;
use crate::stats::Reason;
use crate::time::{Mono, Now};
use crate::watch::Ticks;

/// Leases looked at per call, at most. Everything else is measured by how many of those looks it costs.
const LEASES: usize = 256;
/// What an eviction costs.
const EVICTION: usize = 32;
/// What it costs to sum up a lease that has settled.
const SETTLED: usize = 4;
/// What it costs to take a change out of the delta.
const DELTA: usize = 8;
/// A call stops when it had to copy this many pages, which is dearer than anything else.
const COPIES: usize = 16;
/// A lease that is held although it ran out is looked at again after this long, in milliseconds.
const HELD: i64 = 5_000;
/// Lease times in lists are taken again a little at a time, this often, in milliseconds.
const REFRESH: i64 = 1_000;
/// What it costs to take the lease times of a page again: a look for two instances.
const REFRESHED: usize = FULL_PAGE / 2;

/// When eviction runs, and the run under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Eviction {
    next: Ticks,
    /// When the last run began.
    last: Option<Ticks>,
    /// Leases that may still go in the run under way.
    left: usize,
    /// By how much that run came too late, in milliseconds: leases get that much longer, as in Java.
    compensation: i64,
}

/// How far the turn through all pages is behind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Refresh {
    last: Option<Ticks>,
    /// Pages due, in millionths.
    due: u64,
}

/// One page due.
const PAGE: u64 = 1_000_000;
/// A turn takes nine tenths of the age allowed, so that no page misses its own.
const HASTE: u64 = 1_100_000;

/// What one call may still do.
struct Budget {
    looks: usize,
    /// Pages copied when it is used up.
    copies: usize,
}

impl Budget {
    /// Whether there is something left after so many copies.
    const fn is_left(&self, copies: usize) -> bool {
        self.looks > 0 && copies < self.copies
    }

    const fn spend(&mut self, looks: usize) {
        self.looks = self.looks.saturating_sub(looks);
    }
}

impl Eviction {
    /// The first run comes after one interval.
    pub(super) fn starting(now: Ticks, interval: Duration) -> Self {
        Self {
            next: now.after(millis(interval)),
            last: None,
            left: 0,
            compensation: 0,
        }
    }
}

impl Registry {
    /// Does what is due: expiry, eviction, retention. At most 256 leases a call; what is left is due at once.
    pub fn handle_timeout(&mut self, now: Now) {
        self.observe(now);
        let ticks = self.ticks(now);
        let mut budget = Budget {
            looks: LEASES,
            copies: self.listing.copies() + COPIES,
        };
        self.end_hold(now);
        let up = self.listing.counts()[Status::Up as usize];
        self.preserver.handle_timeout(now, up);
        self.look_at_leases(ticks, &mut budget);
        if self.leases.next_due().is_none_or(|due| due > ticks) {
            self.conclude(now);
            self.run_eviction(now, ticks, &mut budget);
        }
        self.settle(ticks, &mut budget);
        self.forget(ticks, &mut budget);
        self.refresh(now, ticks, &mut budget);
        self.conclude(now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Mono, Reason)> {
        let delta = self.changes.oldest_in_delta();
        let kept = millis(self.config.tombstone_retention);
        let marks = [self.tombstones.oldest(), self.refusals.oldest()];
        let mark = marks.into_iter().flatten().min().map(|at| self.watch.ticks(at));
        let own = [
            delta.map(|at| (at.after(millis(self.config.delta_retention)), Reason::Delta)),
            self.eviction.map(|run| (run.due(), Reason::Eviction)),
            self.leases.next_due().map(|at| (at, Reason::Leases)),
            self.refresh_due().map(|at| (at, Reason::Listing)),
            self.digest.next_due().map(|at| (at, Reason::Digest)),
            self.overrides.next_due().map(|at| (at, Reason::Memory)),
            mark.map(|at| (at.after(kept), Reason::Memory)),
            match self.phase {
                Phase::Settling(settling) => Some((settling.until.after(1), Reason::Reads)),
                Phase::Open | Phase::Starting => None,
            },
        ];
        let own = own.into_iter().flatten();
        let own = own.map(|(at, reason)| (self.watch.mono(at), reason));
        own.chain(self.preserver.poll_timeout()).min()
    }

    /// Opens reads when they were held long enough.
    pub(super) fn end_hold(&mut self, now: Now) {
        if let Phase::Settling(settling) = self.phase
            && self.ticks(now) > settling.until
        {
            self.phase = Phase::Open;
            self.listing.touch();
        }
    }

    /// Looks at the leases that are due: they were renewed, or they are late now, or they have run out.
    fn look_at_leases(&mut self, ticks: Ticks, budget: &mut Budget) {
        while budget.looks > 0 {
            let Some(slot) = self.leases.take_due(ticks) else {
                return;
            };
            budget.spend(1);
            match self.leases.get(slot).standing {
                Standing::OnTime => self.look_at_timely(ticks, slot),
                Standing::Late(_) | Standing::WrittenOff => self.look_at_late(ticks, slot),
            }
        }
    }

    fn look_at_timely(&mut self, ticks: Ticks, slot: Slot) {
        let lease = self.leases.get_mut(slot);
        let late = lease.late(&self.watch);
        if !is_due(ticks, late) {
            self.leases.file(slot, late);
            return;
        }
        lease.standing = self.preserver.late(lease.key.app(), lease.zone());
        let key = (*lease.key).clone();
        self.leases.set_late(slot);
        self.events.push_back(Event::Late { key });
        // What may keep it longer (a silent peer) may end any time: it is looked at again when it would run out without.
        let next = self.leases.get(slot).runs_out(&self.watch);
        self.leases.file(slot, next);
    }

    fn look_at_late(&mut self, ticks: Ticks, slot: Slot) {
        if is_due(ticks, self.leases.get(slot).runs_out(&self.watch)) {
            self.digest.run_out(&mut self.leases, slot);
        }
        let lease = self.leases.get(slot);
        let deadline = self.deadline(lease);
        let write_off = lease.written_off(&self.watch);
        if is_due(ticks, deadline) {
            self.leases.set_overdue(slot);
        } else {
            let next = if lease.unconfirmed {
                deadline.min(write_off)
            } else {
                deadline
            };
            self.leases.clear_overdue(slot);
            self.leases.file(slot, next.min(ticks.after(HELD)));
        }
        let lease = self.leases.get_mut(slot);
        if !lease.unconfirmed {
            return;
        }
        if is_due(ticks, write_off) {
            lease.unconfirmed = false;
            let standing = lease.standing;
            lease.standing = self
                .preserver
                .written_off(lease.key.app(), lease.zone(), standing);
        } else if is_due(ticks, deadline) {
            self.leases.file(slot, write_off);
        }
    }

    /// Evicts what a run may take of the leases that have run out: not more than its share, each as likely as the others.
    fn run_eviction(&mut self, now: Now, ticks: Ticks, budget: &mut Budget) {
        let Some(mut run) = self.eviction else { return };
        if run.left == 0 && ticks >= run.next {
            let interval = millis(self.config.eviction_interval);
            run.compensation = run.last.map_or(0, |last| (ticks.0 - last.0 - interval).max(0));
            run.last = Some(ticks);
            run.next = ticks.after(interval.max(1));
            if self.preserver.evicts(now) {
                let quota = self.preserver.quota(self.leases.len());
                run.left = quota.min(self.leases.overdue().len());
            }
        }
        while run.left > 0 && budget.is_left(self.listing.copies()) {
            let overdue = self.leases.overdue();
            if overdue.is_empty() {
                run.left = 0;
                break;
            }
            let slot = overdue[self.rng.below(overdue.len())];
            budget.spend(EVICTION);
            let deadline = self.deadline(self.leases.get(slot)).after(run.compensation);
            if is_due(ticks, deadline) {
                self.evict(now, slot);
                run.left -= 1;
            } else {
                self.leases.clear_overdue(slot);
                self.leases.file(slot, deadline.min(ticks.after(HELD)));
            }
        }
        self.eviction = Some(run);
    }

    /// Sums up what was left alone for long enough.
    fn settle(&mut self, ticks: Ticks, budget: &mut Budget) {
        while budget.looks > 0 && self.digest.settle(ticks, &mut self.leases) {
            budget.spend(SETTLED);
        }
    }

    /// Forgets changes, overrides and tombstones that were kept long enough.
    fn forget(&mut self, ticks: Ticks, budget: &mut Budget) {
        let then = ticks.after(-millis(self.config.delta_retention));
        while budget.is_left(self.listing.copies()) {
            let Some((version, key)) = self.changes.leave_delta(then) else {
                break;
            };
            budget.spend(DELTA);
            self.leave_delta(&key, version);
        }
        while budget.looks > 0 && self.overrides.forget_due(ticks) {
            budget.spend(1);
        }
        let then = ticks.after(-millis(self.config.tombstone_retention));
        let is_over = |at| self.watch.ticks(at) <= then;
        while budget.looks > 0 && (self.tombstones.forget_if(is_over) || self.refusals.forget_if(is_over)) {
            budget.spend(1);
        }
    }

    /// Takes the lease times of a few pages again, so that each page has its turn once per `listed_lease_age`.
    fn refresh(&mut self, now: Now, ticks: Ticks, budget: &mut Budget) {
        let Some(due) = self.refresh_due() else {
            self.refresh = Refresh::default();
            return;
        };
        if due > ticks {
            return;
        }
        let age = self.listed_age();
        let pages = self.listing.page_count() as u64;
        let elapsed = self.refresh.last.map_or(0, |last| ticks.0.abs_diff(last.0));
        let share = elapsed.min(age) * pages * HASTE / age;
        self.refresh.last = Some(ticks);
        self.refresh.due = (self.refresh.due + share).min(pages * PAGE);
        while self.refresh.due >= PAGE && budget.looks > 0 {
            self.refresh.due -= PAGE;
            budget.spend(REFRESHED);
            let (leases, config) = (&self.leases, &self.config);
            self.listing.refresh_page(|view| {
                let lease = leases.get(leases.find(&view.key())?);
                let ahead = config.compat.renewal_shown_ahead;
                let current = lease.view(now, ahead, config.own_id.as_deref());
                (current != **view).then(|| Arc::new(current))
            });
        }
    }

    /// There is something to list: its turn begins.
    pub(super) fn start_refreshing(&mut self, now: Now) {
        let ticks = self.ticks(now);
        self.refresh.last.get_or_insert(ticks);
    }

    fn refresh_due(&self) -> Option<Ticks> {
        let last = self.refresh.last.filter(|_| self.leases.len() > 0)?;
        let Some(missing) = PAGE.checked_sub(self.refresh.due).filter(|missing| *missing > 0) else {
            return Some(last);
        };
        let pages = self.listing.page_count().max(1) as u64;
        let wait = (missing * self.listed_age()).div_ceil(pages * HASTE);
        let wait = i64::try_from(wait).unwrap_or(i64::MAX);
        Some(last.after(wait.max(REFRESH)))
    }

    /// `listed_lease_age` in milliseconds; at most a day, which keeps the arithmetic small.
    fn listed_age(&self) -> u64 {
        millis(self.config.listed_lease_age)
            .clamp(1, 86_400_000)
            .unsigned_abs()
    }
}

impl Eviction {
    /// When to go on.
    fn due(&self) -> Ticks {
        match self.last {
            Some(last) if self.left > 0 => last,
            Some(_) | None => self.next,
        }
    }
}
