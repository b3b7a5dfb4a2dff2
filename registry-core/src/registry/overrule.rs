//! Overrides: what an operator says against an instance's own word.

use alloc::sync::Arc;

use super::{Registry, millis};
use crate::changes::{Cause, Why};
use crate::command::{Changed, Origin};
use crate::event::AppliedKind;
use crate::leases::Slot;
use crate::model::{Action, Instance, InstanceKey, Status};
use crate::repair::Stamped;
use crate::status::{self, in_or_out};
use crate::time::Now;
use crate::watch::Moment;

impl Registry {
    /// Sets the status readers see until it is cleared. `last_dirty` is adopted if it is greater. The lease is renewed, as
    /// in Java. `Unknown` is no override but clears the one there is: a Java server sends an override that waited as the
    /// status of the moment, and that is `Unknown` once the override was cleared.
    pub fn set_override(
        &mut self,
        now: Now,
        origin: Origin,
        key: &InstanceKey,
        status: Status,
        last_dirty: Option<i64>,
    ) -> Changed {
        if status == Status::Unknown && !self.config.compat.override_equal_ignored {
            return self.clear_override(now, origin, key, None, last_dirty);
        }
        self.observe(now);
        let Some(slot) = self.visible(now, key) else {
            return Changed::Missing;
        };
        self.hear(now, &origin, slot);
        let before = Arc::clone(&self.leases.get(slot).instance);
        let held = if self.config.compat.override_equal_ignored {
            before.status == status
        } else {
            before.status == status && self.overrides.get(key) == Some(status)
        };
        if !held {
            self.overrides.set(now.wall, key, status);
            // An override says more than DOWN or STARTING only until the instance says that again: as in Java, where there
            // is one status, it takes the place of what was reported.
            let reported = self.leases.get(slot).reported;
            let reported = if in_or_out(reported) { reported } else { status };
            let last_dirty = self.report(&origin, slot, reported, last_dirty);
            let why = Why {
                before: Some(Arc::clone(&before)),
                author: origin.clone().into(),
                cause: Cause::Overridden,
            };
            self.overrule(now, slot, (status, status), last_dirty, why);
        }
        self.overruled(now, slot, AppliedKind::Overridden, before, origin)
    }

    /// Removes the override and sets the plain status to `status` (`Unknown` if `None`: the next renewal is then
    /// answered Missing, and the client registers again). Nothing happens if there is none. The override that is kept of
    /// an absent instance can be removed by an operator.
    pub fn clear_override(
        &mut self,
        now: Now,
        origin: Origin,
        key: &InstanceKey,
        status: Option<Status>,
        last_dirty: Option<i64>,
    ) -> Changed {
        self.observe(now);
        let Some(slot) = self.visible(now, key) else {
            let kept = origin == Origin::Operator && self.leases.find(key).is_none();
            return if kept && self.forget_override(now, key) {
                Changed::Ok
            } else {
                Changed::Missing
            };
        };
        self.hear(now, &origin, slot);
        let before = Arc::clone(&self.leases.get(slot).instance);
        if self.forget_override(now, key) {
            let status = status.unwrap_or(Status::Unknown);
            let last_dirty = self.report(&origin, slot, status, last_dirty);
            let why = Why {
                before: Some(Arc::clone(&before)),
                author: origin.clone().into(),
                cause: Cause::OverrideCleared,
            };
            self.overrule(now, slot, (status, Status::Unknown), last_dirty, why);
        }
        self.overruled(now, slot, AppliedKind::OverrideCleared, before, origin)
    }

    /// Clears an override and remembers that for a while; tells whether it was there.
    pub(super) fn forget_override(&mut self, now: Now, key: &InstanceKey) -> bool {
        let until = self.ticks(now).after(millis(self.config.override_retention));
        self.overrides.clear(now.wall, key, until)
    }

    /// Takes over what another node knows of the override of an instance, if that is newer: the status that readers see
    /// follows by the ordinary rules. Tells whether it is another override now.
    pub(super) fn merge_override(
        &mut self,
        now: Now,
        origin: &Origin,
        key: &InstanceKey,
        theirs: Stamped,
    ) -> bool {
        let until = self.ticks(now).after(millis(self.config.override_retention));
        if !self.overrides.merge(now.wall, key, theirs, until) {
            return false;
        }
        let Some(slot) = self.leases.find(key) else {
            return true;
        };
        let lease = self.leases.get(slot);
        let before = Arc::clone(&lease.instance);
        let status = status::effective(lease.reported, theirs.status, None, true);
        let overridden = theirs.status.unwrap_or(Status::Unknown);
        let kind = match theirs.status {
            Some(_) => AppliedKind::Overridden,
            None => AppliedKind::OverrideCleared,
        };
        let why = Why {
            before: Some(Arc::clone(&before)),
            author: origin.clone().into(),
            cause: kind.into(),
        };
        self.overrule(now, slot, (status, overridden), None, why);
        self.overruled(now, slot, kind, before, origin.clone());
        true
    }

    /// What an operator makes of an instance's own status takes the place of that, as in Java. It is a change of its
    /// content: the dirty timestamp is raised by one, as for metadata, so that nodes agree on which is newer. `Unknown` only
    /// makes the instance register again, which an older dirty timestamp of its own must not keep it from at a Java peer.
    fn report(
        &mut self,
        origin: &Origin,
        slot: Slot,
        status: Status,
        last_dirty: Option<i64>,
    ) -> Option<i64> {
        let lease = self.leases.get_mut(slot);
        let changed = core::mem::replace(&mut lease.reported, status) != status;
        let raises = changed
            && status != Status::Unknown
            && !origin.is_peer()
            && !self.config.compat.metadata_keeps_dirty;
        let raised = raises.then(|| lease.dirty().saturating_add(1));
        last_dirty.max(raised)
    }

    fn overrule(
        &mut self,
        now: Now,
        slot: Slot,
        (status, overridden): (Status, Status),
        last_dirty: Option<i64>,
        why: Why,
    ) {
        let lease = self.leases.get_mut(slot);
        let held = lease.dirty();
        let instance = Arc::make_mut(&mut lease.instance);
        instance.status = status;
        instance.overridden_status = overridden;
        instance.last_dirty = Some(last_dirty.map_or(held, |dirty| dirty.max(held)));
        lease.note_up(now);
        lease.action = Action::Modified;
        lease.last_updated = Moment::of(now.mono);
        self.publish(now, slot, false, why);
        self.moved(now, slot);
    }

    fn overruled(
        &mut self,
        now: Now,
        slot: Slot,
        kind: AppliedKind,
        before: Arc<Instance>,
        origin: Origin,
    ) -> Changed {
        let lease = self.leases.get(slot);
        let (key, after) = (Arc::clone(&lease.key), Arc::clone(&lease.instance));
        self.applied(&key, kind, Some(before), Some(after), origin);
        self.conclude(now);
        Changed::Ok
    }
}
