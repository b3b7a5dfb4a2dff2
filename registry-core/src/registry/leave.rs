//! How instances go: by cancel or by eviction.

use super::{Registry, millis};
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
        self.overrides.remove(key);
        let Some(slot) = self.leases.find(key) else {
            if self.config.compat.failed_cancels_listed {
                self.cancels.push(Moment::of(now.mono), key);
            }
            return Changed::Missing;
        };
        let lease = self.remove(now, slot);
        self.preserver
            .removed(lease.key.app(), lease.zone(), lease.standing);
        if !self.config.compat.no_tombstones {
            let ticks = self.ticks(now);
            self.tombstones.add(ticks, key, lease.dirty());
        }
        self.counters.cancels += 1;
        self.applied(
            lease.key,
            AppliedKind::Cancelled,
            Some(lease.instance),
            None,
            origin,
        );
        self.conclude(now);
        Changed::Ok
    }

    /// Removes an instance whose lease ran out. Its override stays, for it may come back.
    pub(super) fn evict(&mut self, now: Now, slot: Slot) {
        let lease = self.remove(now, slot);
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
            key: lease.key,
            before: lease.instance,
        });
    }

    /// Takes a lease away and shows it to readers as deleted.
    fn remove(&mut self, now: Now, slot: Slot) -> Lease {
        let mut lease = self.leases.remove(slot);
        lease.action = Action::Deleted;
        lease.last_updated = Moment::of(now.mono);
        let mut last = self.view(now, &lease);
        last.lease.evicted = now.wall;
        let version = self.log(now, lease.key.clone(), Action::Deleted, lease.instance.clone());
        self.changes.set_gone(lease.key.clone(), version);
        self.listing.take(&lease.key, Some(last));
        self.cancels.push(Moment::of(now.mono), &lease.key);
        lease
    }
}
