//! Renewals: the hot path.

use alloc::sync::Arc;

use super::{Phase, Registry};
use crate::changes::{Cause, Why};
use crate::command::{Origin, Renewal, Renewed};
use crate::event::AppliedKind;
use crate::leases::Slot;
use crate::model::{Action, Instance, InstanceKey, KeyRef, Status};
use crate::status;
use crate::time::Now;
use crate::watch::Moment;

/// For this long after a cancel the heartbeats of a peer that has not heard of it yet are taken and ignored, in
/// milliseconds; then they are answered Missing, and the peer registers what it still holds.
pub(super) const LATE_HEARTBEATS: i64 = 10_000;

impl Registry {
    /// Renews a lease and compares dirty timestamps. `overridden` is stored when a peer is ahead, as in Java.
    pub fn renew<'a>(
        &mut self,
        now: Now,
        origin: Origin,
        key: impl Into<KeyRef<'a>>,
        last_dirty: Option<i64>,
        overridden: Option<Status>,
    ) -> Renewed {
        let renewal = Renewal {
            key: key.into(),
            last_dirty,
            overridden,
        };
        self.renew_telling(now, &origin, &renewal, true)
    }

    /// The same; `told` is whether there is to be an event. Without one the reference counts of the instance and its key are left
    /// alone: what several processors write travels from cache to cache, and that takes longer than the renewal.
    pub(crate) fn renew_telling(
        &mut self,
        now: Now,
        origin: &Origin,
        renewal: &Renewal<'_>,
        told: bool,
    ) -> Renewed {
        self.observe(now);
        let Renewal {
            ref key,
            last_dirty,
            overridden,
        } = *renewal;
        let Some(slot) = self.leases.find(key) else {
            return self.renew_absent(now, origin, &key.to_key(), last_dirty);
        };
        let lease = self.leases.get(slot);
        let before = lease.instance.status;
        let set = self.overrides.get(&lease.key);
        let status = status::effective(before, set, Some(before), origin.is_peer());
        if status == Status::Unknown {
            // What it is asked to register again with must not be taken for older than what is held.
            if let (false, Some(theirs)) = (origin.is_peer(), last_dirty) {
                let lease = self.leases.get_mut(slot);
                lease.client_dirty = lease.client_dirty.min(theirs);
            }
            return self.renewal_missing(now);
        }
        let instance = told.then(|| Arc::clone(&lease.instance));
        self.counters.renewals += 1;
        self.preserver.heartbeat(now);
        self.hear(now, origin, slot);
        if status != before {
            self.flip(now, origin, slot, Cause::Renewed, |instance| {
                instance.status = status;
            });
        }
        let renewed = self.compare(now, origin, slot, last_dirty, overridden);
        if told {
            let lease = self.leases.get(slot);
            let (key, after) = (Arc::clone(&lease.key), Arc::clone(&lease.instance));
            self.applied(&key, AppliedKind::Renewed, instance, Some(after), origin.clone());
        }
        self.conclude(now);
        renewed
    }

    /// A sign of life of the client itself, now, directly or through a peer.
    pub(super) fn hear(&mut self, now: Now, origin: &Origin, slot: Slot) {
        let via = self.peers.index(origin);
        let lease = self.leases.get_mut(slot);
        lease.heard = Moment::of(now.mono);
        lease.heard_via = via;
        lease.renewed = true;
        lease.unconfirmed = false;
        self.heard(now, slot);
    }

    /// Changes what is shown of an instance although nobody registered it. Java keeps such changes out of the delta.
    pub(super) fn flip(
        &mut self,
        now: Now,
        origin: &Origin,
        slot: Slot,
        cause: Cause,
        change: impl FnOnce(&mut Instance),
    ) {
        let hidden = self.config.compat.rule_flips_hidden;
        let lease = self.leases.get_mut(slot);
        let why = Why {
            before: Some(Arc::clone(&lease.instance)),
            author: origin.clone().into(),
            cause,
        };
        change(Arc::make_mut(&mut lease.instance));
        if !hidden {
            lease.note_up(now);
            lease.action = Action::Modified;
            lease.last_updated = Moment::of(now.mono);
        }
        self.publish(now, slot, hidden, why);
    }

    fn renew_absent(
        &mut self,
        now: Now,
        origin: &Origin,
        key: &InstanceKey,
        last_dirty: Option<i64>,
    ) -> Renewed {
        let ticks = self.ticks(now);
        if let (true, Some(dirty), Some(tombstone)) = (origin.is_peer(), last_dirty, self.tombstones.get(key))
            && dirty <= tombstone.dirty
            && ticks <= self.watch.ticks(tombstone.at).after(LATE_HEARTBEATS)
        {
            self.counters.renewals_ignored += 1;
            return Renewed::Ok;
        }
        if let (true, Some(dirty), Some(refused)) = (origin.is_peer(), last_dirty, self.refusals.get(key))
            && dirty <= refused.dirty
        {
            self.counters.renewals_refused += 1;
            return Renewed::Ok;
        }
        self.renewal_missing(now)
    }

    /// The client will register again: reads that are held until everybody has come back wait for it.
    fn renewal_missing(&mut self, now: Now) -> Renewed {
        self.counters.renewals_missing += 1;
        let ticks = self.ticks(now);
        if let Phase::Settling(settling) = &mut self.phase {
            let until = ticks.after(settling.quiet).min(settling.at_most);
            settling.until = settling.until.max(until);
        }
        Renewed::Missing
    }

    fn compare(
        &mut self,
        now: Now,
        origin: &Origin,
        slot: Slot,
        last_dirty: Option<i64>,
        overridden: Option<Status>,
    ) -> Renewed {
        let lease = self.leases.get_mut(slot);
        let held = lease.dirty();
        let Some(theirs) = last_dirty else {
            return Renewed::Ok;
        };
        if !origin.is_peer() {
            // What the client says of itself is where it is: it may have registered elsewhere with this.
            lease.client_dirty = lease.client_dirty.min(theirs);
        }
        if theirs > held {
            if let (true, Some(status)) = (origin.is_peer(), overridden) {
                self.store_override(now, origin, slot, status);
            }
            return Renewed::Ahead;
        }
        if theirs < held && origin.is_peer() {
            let view = self.view(now, self.leases.get(slot));
            return Renewed::Behind(Arc::new(view));
        }
        Renewed::Ok
    }

    /// Stores the override that a peer holds, if it is another; it takes effect at the next renewal or registration.
    fn store_override(&mut self, now: Now, origin: &Origin, slot: Slot, status: Status) {
        let key = Arc::clone(&self.leases.get(slot).key);
        if status == Status::Unknown || self.overrides.get(&key) == Some(status) {
            return;
        }
        self.overrides.set(now.wall, &key, status);
        self.flip(now, origin, slot, Cause::Overridden, |instance| {
            instance.overridden_status = status;
        });
        self.moved(now, slot);
    }
}
