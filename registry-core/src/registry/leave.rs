//! How instances go: by cancel or by eviction.

use alloc::sync::Arc;
use core::time::Duration;

use super::{Registry, before, millis};
use crate::changes::{Author, Cause, Why};
use crate::command::{Changed, Origin};
use crate::event::{AppliedKind, Event};
use crate::lease::Lease;
use crate::leases::Slot;
use crate::model::{Action, InstanceKey};
use crate::time::Now;
use crate::watch::Moment;

impl Registry {
    /// Removes an instance and its override.
    pub fn cancel(&mut self, now: Now, origin: Origin, key: &InstanceKey) -> Changed {
        self.observe(now);
        self.forget_override(now, key);
        let Some(slot) = self.leases.find(key) else {
            if self.config.compat.failed_cancels_listed {
                self.cancels.push(Moment::of(now.mono), key);
            }
            return Changed::Missing;
        };
        let lease = self.leases.get(slot);
        let (dirty, at) = (lease.dirty(), Moment::of(now.mono));
        self.take_leave(now, origin, slot, dirty, at);
        Changed::Ok
    }

    /// Another node says that an instance was cancelled, so long ago: taken over unless what is known here is newer, by the
    /// greater dirty timestamp, and between equal ones by what happened last. A dirty timestamp that only an operator
    /// raised does not save what nobody heard of since. Tells whether anything changed.
    pub(super) fn bury(
        &mut self,
        now: Now,
        origin: Origin,
        key: &InstanceKey,
        dirty: i64,
        ago: Duration,
    ) -> bool {
        self.observe(now);
        let at = before(now, ago);
        if ago >= self.config.tombstone_retention {
            return false;
        }
        let known = self.tombstones.get(key);
        if known.is_some_and(|known| (dirty, at) <= (known.dirty, known.at)) {
            return false;
        }
        let slot = self.leases.find(key);
        let lease = slot.map(|slot| self.leases.get(slot));
        let ended = |lease: &Lease| lease.client_dirty <= dirty && lease.heard <= at;
        if lease.is_some_and(|lease| (lease.dirty(), lease.heard) > (dirty, at) && !ended(lease)) {
            return false;
        }
        // Not behind what it ends: that must not come back from elsewhere.
        let dirty = lease.map_or(dirty, |lease| lease.dirty().max(dirty));
        if let Some(slot) = slot
            && self.is_back(slot, at)
        {
            self.outdo(now, &origin, slot, dirty);
            return true;
        }
        self.forget_override(now, key);
        match slot {
            Some(slot) => self.take_leave(now, origin, slot, dirty, at),
            None if self.config.compat.no_tombstones => return false,
            None => self.tombstones.add(at, key, dirty),
        }
        true
    }

    /// Whether the instance itself registered here after it was cancelled elsewhere.
    fn is_back(&self, slot: Slot, cancelled: Moment) -> bool {
        let lease = self.leases.get(slot);
        lease.heard_via.is_none() && lease.registered > cancelled
    }

    /// Gives a lease the dirty timestamp of what was cancelled before it: at equal ones, what happened last wins.
    fn outdo(&mut self, now: Now, origin: &Origin, slot: Slot, dirty: i64) {
        let lease = self.leases.get_mut(slot);
        let why = Why {
            before: Some(Arc::clone(&lease.instance)),
            author: origin.clone().into(),
            cause: Cause::Adopted,
        };
        Arc::make_mut(&mut lease.instance).last_dirty = Some(dirty);
        self.publish(now, slot, false, why);
        self.moved(now, slot);
        self.conclude(now);
    }

    /// Removes a cancelled instance, and remembers that.
    fn take_leave(&mut self, now: Now, origin: Origin, slot: Slot, dirty: i64, at: Moment) {
        let lease = self.remove(now, slot, origin.clone().into(), Cause::Cancelled);
        self.preserver
            .removed(lease.key.app(), lease.zone(), lease.standing);
        if !self.config.compat.no_tombstones {
            self.tombstones.add(at, &lease.key, dirty);
        }
        self.counters.cancels += 1;
        self.applied(
            &lease.key,
            AppliedKind::Cancelled,
            Some(lease.instance),
            None,
            origin,
        );
        self.conclude(now);
    }

    /// Removes an instance whose lease ran out. Its override stays, for it may come back.
    pub(super) fn evict(&mut self, now: Now, slot: Slot) {
        let lease = self.remove(now, slot, Author::Eviction, Cause::Expired);
        self.preserver
            .evicted(lease.key.app(), lease.zone(), lease.standing, &lease.key);
        if self.config.compat.override_lost_on_eviction {
            self.overrides.remove(&lease.key);
        } else {
            let until = self.ticks(now).after(millis(self.config.override_retention));
            self.overrides.left(&lease.key, until);
        }
        self.counters.evictions += 1;
        self.seq += 1;
        self.events.push_back(Event::Expired {
            seq: self.seq,
            version: self.changes.version(),
            key: (*lease.key).clone(),
            before: lease.instance,
        });
    }

    /// Takes a lease away and shows it to readers as deleted.
    fn remove(&mut self, now: Now, slot: Slot, author: Author, cause: Cause) -> Lease {
        self.digest.leave(&mut self.leases, slot);
        let mut lease = self.leases.remove(slot);
        lease.action = Action::Deleted;
        lease.last_updated = Moment::of(now.mono);
        let mut last = self.view(now, &lease);
        last.lease.evicted = now.wall;
        let (key, instance) = (Arc::clone(&lease.key), Arc::clone(&lease.instance));
        let why = Why {
            before: Some(Arc::clone(&instance)),
            author,
            cause,
        };
        let version = self.log(now, key, Action::Deleted, instance, why);
        self.changes.set_gone(Arc::clone(&lease.key), version);
        self.listing.take(&lease.key, Some(last));
        self.cancels.push(Moment::of(now.mono), &lease.key);
        lease
    }
}
