//! Registrations, of whatever origin, and changes of metadata, which are registrations too.

use alloc::sync::Arc;
use core::time::Duration;

use super::renew::LATE_HEARTBEATS;
use super::{Phase, Registry, before, millis};
use crate::changes::Why;
use crate::command::{Changed, Origin, Registered};
use crate::content::content_hash;
use crate::digest::Part;
use crate::event::AppliedKind;
use crate::lease::{Lease, dirty, duration};
use crate::leases::Slot;
use crate::model::{Action, Instance, InstanceKey, Status};
use crate::status;
use crate::time::Now;
use crate::watch::Moment;

/// A copy that takes its place in the registry.
struct Copy {
    /// The instance, its dirty timestamp filled in.
    instance: Arc<Instance>,
    /// The status it reports.
    reported: Status,
    client_dirty: i64,
    /// When it was heard of.
    heard: Moment,
    /// Whether its lease starts afresh even if there is one.
    fresh: bool,
}

/// What becomes of a registration.
enum Verdict<'a> {
    /// The copy held is newer.
    Keep(&'a Lease),
    /// It replaces what is held, under this dirty timestamp.
    Take(i64),
}

impl Registry {
    /// Registers an instance or replaces its copy, and starts its lease afresh. A copy that is newer by its dirty timestamp
    /// is kept, but its lease starts afresh all the same, as in Java. Only a peer has an `age` other than zero.
    pub fn register(
        &mut self,
        now: Now,
        origin: Origin,
        instance: Arc<Instance>,
        age: Duration,
    ) -> Registered {
        self.observe(now);
        let key = instance.key();
        let age = if origin.is_peer() { millis(age) } else { 0 };
        if self.refuses(now, &origin, &key, &instance, age) {
            self.counters.refused += 1;
            return Registered::Refused;
        }
        let slot = self.leases.find(&key);
        let heard = Moment(Moment::of(now.mono).0.saturating_sub(age));
        let (copy, outcome) = match self.newer(now, &origin, &instance, slot) {
            Verdict::Keep(lease) => {
                let copy = Copy {
                    instance: Arc::clone(&lease.instance),
                    reported: lease.reported,
                    client_dirty: lease.client_dirty,
                    heard,
                    fresh: true,
                };
                (copy, Registered::KeptNewer)
            }
            Verdict::Take(dirty) => {
                let own = instance.last_dirty.filter(|_| !origin.is_peer());
                let copy = Copy {
                    reported: instance.status,
                    instance: with_dirty(instance, dirty),
                    client_dirty: own.unwrap_or(dirty),
                    heard,
                    fresh: true,
                };
                (copy, Registered::Accepted)
            }
        };
        self.place(now, origin, &key, slot, copy, AppliedKind::Registered);
        outcome
    }

    /// Takes over another node's copy if it wins: by the greater dirty timestamp, then by the greater hash of its content.
    /// Whoever wins, the lease is as old as the younger of the two, never fresh.
    pub fn adopt(&mut self, now: Now, origin: Origin, instance: Arc<Instance>, age: Duration) -> Registered {
        self.observe(now);
        let key = instance.key();
        let heard = before(now, age);
        let age = millis(age);
        if age >= duration(&instance) || self.is_cancelled(&key, &instance, heard) {
            self.counters.refused += 1;
            return Registered::Refused;
        }
        let slot = self.leases.find(&key);
        if let Some(slot) = slot {
            let lease = self.leases.get(slot);
            let ours = (lease.dirty(), content_hash(&lease.instance, lease.reported));
            let theirs = (dirty(&instance), content_hash(&instance, instance.status));
            if theirs <= ours {
                self.freshen(now, slot, heard);
                return Registered::KeptNewer;
            }
        }
        let dirty = dirty(&instance);
        let copy = Copy {
            reported: instance.status,
            client_dirty: dirty,
            instance: with_dirty(instance, dirty),
            heard,
            fresh: false,
        };
        self.place(now, origin, &key, slot, copy, AppliedKind::Adopted);
        Registered::Accepted
    }

    /// Sets metadata entries and starts the lease afresh, as Java does by registering what comes out. The dirty timestamp
    /// is raised by one, so that peers see which copy is newer; later registrations of the client win as theirs say.
    pub fn update_metadata(
        &mut self,
        now: Now,
        origin: Origin,
        key: &InstanceKey,
        entries: &[(Arc<str>, Arc<str>)],
    ) -> Changed {
        self.observe(now);
        let Some(slot) = self.visible(now, key) else {
            return Changed::Missing;
        };
        let lease = self.leases.get(slot);
        let mut instance = Arc::clone(&lease.instance);
        let changed = Arc::make_mut(&mut instance);
        changed.metadata.extend(entries.iter().cloned());
        if !self.config.compat.metadata_keeps_dirty {
            changed.last_dirty = Some(lease.dirty().saturating_add(1));
        }
        let copy = Copy {
            instance,
            reported: lease.reported,
            client_dirty: lease.client_dirty,
            heard: Moment::of(now.mono),
            fresh: true,
        };
        let key = Arc::clone(&lease.key);
        self.place(now, origin, &key, Some(slot), copy, AppliedKind::MetadataChanged);
        Changed::Ok
    }

    /// Whether a peer offers what has run out by its own age, or what was cancelled with a newer dirty timestamp.
    /// The latter only while it may be an old one that comes late: a peer tries no longer than a renewal interval. Later
    /// somebody registered there after the cancel, with a clock that is behind.
    fn refuses(&self, now: Now, origin: &Origin, key: &InstanceKey, instance: &Instance, age: i64) -> bool {
        if !origin.is_peer() {
            return false;
        }
        if age >= duration(instance) && age > 0 {
            return true;
        }
        let offered = instance.last_dirty.unwrap_or(i64::MAX);
        let tried = i64::from(instance.lease.renewal_interval_secs) * 1_000;
        self.tombstones.get(key).is_some_and(|tombstone| {
            let until = self.watch.ticks(tombstone.at).after(tried.max(LATE_HEARTBEATS));
            offered < tombstone.dirty && self.ticks(now) <= until
        })
    }

    /// Whether a cancel is newer than an adopted copy: by dirty timestamp, and between equal ones by what happened last.
    fn is_cancelled(&self, key: &InstanceKey, instance: &Instance, heard: Moment) -> bool {
        self.tombstones
            .get(key)
            .is_some_and(|tombstone| (dirty(instance), heard) <= (tombstone.dirty, tombstone.at))
    }

    /// Which of two copies a registration leaves, and under which dirty timestamp.
    fn newer(&self, now: Now, origin: &Origin, instance: &Instance, held: Option<Slot>) -> Verdict<'_> {
        let clock = i64::try_from(now.wall.0).unwrap_or(i64::MAX);
        let Some(held) = held.map(|slot| self.leases.get(slot)) else {
            return Verdict::Take(instance.last_dirty.unwrap_or(clock));
        };
        let at_least = |offered, limit| {
            if offered >= limit {
                Verdict::Take(offered)
            } else {
                Verdict::Keep(held)
            }
        };
        if self.config.compat.metadata_keeps_dirty {
            return at_least(instance.last_dirty.unwrap_or(clock), held.dirty());
        }
        let raised = held.dirty().saturating_add(1);
        match instance.last_dirty {
            None => Verdict::Take(clock.max(raised)),
            Some(offered) if origin.is_peer() => at_least(offered, held.dirty()),
            Some(offered) if offered < held.client_dirty => Verdict::Keep(held),
            Some(offered) if same_content(instance, held) => Verdict::Take(offered.max(held.dirty())),
            Some(offered) => Verdict::Take(offered.max(raised)),
        }
    }

    /// A copy that lost may still have been heard of later than ours.
    /// Through whom it calls is not told: it stays what is known.
    pub(super) fn freshen(&mut self, now: Now, slot: Slot, heard: Moment) {
        let lease = self.leases.get_mut(slot);
        if heard > lease.heard {
            lease.heard = heard;
            lease.unconfirmed = false;
            self.heard(now, slot);
            self.conclude(now);
        }
    }

    /// Puts a copy in its place: applies overrides and rules, files its lease, shows it to readers and tells about it.
    fn place(
        &mut self,
        now: Now,
        origin: Origin,
        key: &InstanceKey,
        slot: Option<Slot>,
        mut copy: Copy,
        kind: AppliedKind,
    ) {
        let from_peer = origin.is_peer();
        self.tombstones.remove(key);
        self.refusals.remove(key);
        let told = from_peer && kind == AppliedKind::Registered;
        if slot.is_none() && told && copy.instance.overridden_status == Status::Unknown {
            // The peer held it all the while and has no override: ours was removed there. Who adopts compares overrides
            // for themselves. Under Java's rule it may belong to an instance of another application, which is there.
            self.overrides.remove_kept(key);
        }
        self.overrides.back(key);
        let own = copy.instance.overridden_status;
        let known = self.overrides.stamped(key);
        // A peer that missed the clear of an override does not bring it back.
        let remembers = !self.config.compat.no_tombstones;
        let cleared = from_peer && remembers && known.is_some_and(|known| known.status.is_none());
        if own != Status::Unknown && self.overrides.get(key).is_none() && !cleared {
            self.overrides.set(now.wall, key, own);
        }
        self.share_memory(key, slot, &mut copy.instance);
        let overridden = self.overrides.get(key);
        let holder = slot.map(|slot| self.leases.get(slot).instance.status);
        let status = status::effective(copy.instance.status, overridden, holder, from_peer);
        if overridden.is_none() {
            // Java keeps no other status than the one its rules leave, and sends that to its peers.
            copy.reported = status;
        }
        let shown = overridden.unwrap_or(Status::Unknown);
        if (copy.instance.status, own) != (status, shown) {
            let instance = Arc::make_mut(&mut copy.instance);
            instance.status = status;
            instance.overridden_status = shown;
        }
        let before = slot.map(|slot| Arc::clone(&self.leases.get(slot).instance));
        let reported = slot.map(|slot| self.leases.get(slot).reported);
        let slot = match slot {
            Some(slot) => self.replace(now, &origin, slot, copy),
            None => self.add(now, &origin, key, copy),
        };
        let lease = self.leases.get_mut(slot);
        lease.note_up(now);
        let (key, after) = (Arc::clone(&lease.key), Arc::clone(&lease.instance));
        let why = Why {
            before: before.clone(),
            author: origin.clone().into(),
            cause: kind.into(),
        };
        self.publish(now, slot, false, why);
        if reported != Some(self.leases.get(slot).reported) || before.as_ref() != Some(&after) {
            self.moved(now, slot);
        }
        self.counters.registrations += 1;
        self.registrations.push(Moment::of(now.mono), &key);
        self.applied(&key, kind, before, Some(after), origin);
        self.conclude(now);
    }

    /// Lets a new copy share texts with the one before, or with a few others of its application.
    fn share_memory(&self, key: &InstanceKey, slot: Option<Slot>, copy: &mut Arc<Instance>) {
        let Some(copy) = Arc::get_mut(copy) else { return };
        copy.share_addresses();
        match slot {
            Some(slot) => copy.share_texts(&self.leases.get(slot).instance),
            None => {
                let neighbours = self.leases.neighbours(key.app());
                neighbours.for_each(|neighbour| copy.share_texts(&neighbour.instance));
            }
        }
    }

    fn add(&mut self, now: Now, origin: &Origin, key: &InstanceKey, copy: Copy) -> Slot {
        let moment = Moment::of(now.mono);
        let zone = copy.instance.zone().unwrap_or("");
        let standing = self.preserver.added(key.app(), zone, key);
        let slot = self.leases.insert(Lease {
            key: Arc::new(key.clone()),
            reported: copy.reported,
            client_dirty: copy.client_dirty,
            action: Action::Added,
            last_updated: moment,
            registered: moment,
            heard: copy.heard,
            heard_via: self.peers.index(origin),
            renewed: false,
            unconfirmed: self.phase == Phase::Starting && origin.is_peer() && copy.heard == moment,
            service_up: None,
            standing,
            in_delta: None,
            part: Part::new(key),
            instance: copy.instance,
        });
        let ticks = self.ticks(now);
        self.digest.join(ticks, &mut self.leases, slot);
        let late = self.leases.get(slot).late(&self.watch);
        self.leases.file(slot, late);
        self.start_refreshing(now);
        slot
    }

    fn replace(&mut self, now: Now, origin: &Origin, slot: Slot, copy: Copy) -> Slot {
        let moment = Moment::of(now.mono);
        let via = self.peers.index(origin);
        let lease = self.leases.get_mut(slot);
        let old_zone = lease.instance.zone().unwrap_or("");
        let new_zone = copy.instance.zone().unwrap_or("");
        if old_zone != new_zone {
            self.preserver
                .moved(lease.key.app(), old_zone, new_zone, lease.standing);
        }
        let shortened = duration(&copy.instance) < lease.duration();
        lease.instance = copy.instance;
        lease.reported = copy.reported;
        lease.client_dirty = copy.client_dirty;
        lease.action = Action::Added;
        lease.last_updated = moment;
        if copy.fresh {
            lease.registered = moment;
            lease.renewed = false;
        }
        if copy.heard >= lease.heard {
            lease.heard = copy.heard;
            if copy.fresh {
                lease.heard_via = via;
            }
            lease.unconfirmed &= origin.is_peer();
        }
        let late = lease.late(&self.watch);
        self.heard(now, slot);
        if shortened {
            self.leases.file(slot, late);
        }
        slot
    }
}

/// The instance under this dirty timestamp.
fn with_dirty(mut instance: Arc<Instance>, dirty: i64) -> Arc<Instance> {
    if instance.last_dirty != Some(dirty) {
        Arc::make_mut(&mut instance).last_dirty = Some(dirty);
    }
    instance
}

/// Whether an instance reports what is held already, whatever was made of its status.
fn same_content(instance: &Instance, held: &Lease) -> bool {
    instance.status == held.reported && instance.reports_like(&held.instance)
}
