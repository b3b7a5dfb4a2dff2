//! One lease: an instance, and how long it has been heard of.

use alloc::sync::Arc;
use core::time::Duration;

use crate::config::LeaseExpiry;
use crate::digest::Part;
use crate::model::{Action, Instance, InstanceKey, Status};
use crate::peers::PeerIndex;
use crate::preservation::Standing;
use crate::snapshot::{LeaseTimes, LeaseView};
use crate::time::{Now, Wall};
use crate::watch::{Moment, Ticks, Watch};

/// An instance that is registered.
#[derive(Debug)]
pub(crate) struct Lease {
    /// Shared with the indexes.
    pub(crate) key: Arc<InstanceKey>,
    /// With the status that readers see.
    pub(crate) instance: Arc<Instance>,
    /// The status it was registered with.
    pub(crate) reported: Status,
    /// The dirty timestamp of the client itself: ours is ahead of it after a change of metadata.
    pub(crate) client_dirty: i64,
    pub(crate) action: Action,
    pub(crate) last_updated: Moment,
    pub(crate) registered: Moment,
    /// When any node last heard it. Below zero if that was before this node started.
    pub(crate) heard: Moment,
    /// Through whom, if not from itself.
    pub(crate) heard_via: Option<PeerIndex>,
    /// Whether it was renewed since it was registered.
    pub(crate) renewed: bool,
    /// A copy taken at start from somebody who could not tell its age, and not heard of since.
    pub(crate) unconfirmed: bool,
    pub(crate) service_up: Option<Moment>,
    pub(crate) standing: Standing,
    /// Version of its change that is in the delta.
    pub(crate) in_delta: Option<u64>,
    /// How it counts in what is compared with other nodes.
    pub(crate) part: Part,
}

impl Lease {
    /// Its dirty timestamp.
    pub(crate) fn dirty(&self) -> i64 {
        dirty(&self.instance)
    }

    /// Lets key and instance share the memory of the application name, which makes comparing them quick.
    pub(crate) fn share_app(&mut self, app: &Arc<str>) {
        if !Arc::ptr_eq(self.key.app(), app) {
            self.key = Arc::new(self.key.sharing(app));
        }
        if let Some(instance) = Arc::get_mut(&mut self.instance) {
            instance.app = Arc::clone(app);
        }
    }

    /// Notes when the instance is first UP.
    pub(crate) fn note_up(&mut self, now: Now) {
        if self.instance.status == Status::Up && self.service_up.is_none() {
            self.service_up = Some(Moment::of(now.mono));
        }
    }

    /// The zone it counts in, empty for none.
    pub(crate) fn zone(&self) -> &str {
        self.instance.zone().unwrap_or("")
    }

    /// How long it lasts, in milliseconds.
    pub(crate) fn duration(&self) -> i64 {
        duration(&self.instance)
    }

    /// The same as a duration.
    pub(crate) fn lasts(&self) -> Duration {
        Duration::from_secs(u64::from(self.instance.lease.duration_secs))
    }

    /// From when on it is late, if it is not heard of: at two thirds of its duration.
    pub(crate) fn late(&self, watch: &Watch) -> Ticks {
        watch.ticks(self.heard).after(self.duration() * 2 / 3)
    }

    /// From when on it has run out, leaving aside what may keep it longer.
    pub(crate) fn expires(&self, watch: &Watch, expiry: LeaseExpiry) -> Ticks {
        let lasts = match expiry {
            LeaseExpiry::Doubled if self.renewed => 2 * self.duration(),
            LeaseExpiry::Doubled | LeaseExpiry::Exact => self.duration(),
        };
        watch.ticks(self.heard).after(lasts)
    }

    /// From when on it is as old as it lasts: no other node would take it any more.
    pub(crate) fn runs_out(&self, watch: &Watch) -> Ticks {
        watch.ticks(self.heard).after(self.duration())
    }

    /// As it was reported: with its own status and without an override.
    pub(crate) fn as_reported(&self) -> Arc<Instance> {
        let mut instance = Arc::clone(&self.instance);
        if (instance.status, instance.overridden_status) != (self.reported, Status::Unknown) {
            let changed = Arc::make_mut(&mut instance);
            changed.status = self.reported;
            changed.overridden_status = Status::Unknown;
        }
        instance
    }

    /// From when on an unconfirmed copy is expected by nobody: two durations.
    pub(crate) fn written_off(&self, watch: &Watch) -> Ticks {
        watch.ticks(self.heard).after(2 * self.duration())
    }

    /// As readers see it. `ahead` shows renewals one duration later than they were, as Java does.
    pub(crate) fn view(&self, now: Now, ahead: bool, own_id: Option<&str>) -> LeaseView {
        let shown = if ahead && self.renewed {
            Moment(self.heard.0.saturating_add(self.duration()))
        } else {
            self.heard
        };
        LeaseView {
            instance: Arc::clone(&self.instance),
            action: self.action,
            last_updated: self.last_updated.wall(now),
            lease: LeaseTimes {
                terms: self.instance.lease,
                registered: self.registered.wall(now),
                renewed: shown.wall(now),
                evicted: Wall(0),
                service_up: self.service_up.map_or(Wall(0), |since| since.wall(now)),
            },
            coordinating: own_id == Some(&**self.key.id()),
        }
    }
}

/// The dirty timestamp of an instance; every registered one has one.
pub(crate) fn dirty(instance: &Instance) -> i64 {
    instance.last_dirty.unwrap_or(0)
}

/// How long the lease of an instance lasts, in milliseconds.
pub(crate) fn duration(instance: &Instance) -> i64 {
    i64::from(instance.lease.duration_secs) * 1_000
}
