//! The commands.

use std::time::Duration;

use eureka_registry_core::{
    Action, AppliedKind, Author, Cause, Command, Instance, InstanceKey, Now, Origin, Status,
};

use super::{Held, Millis, Reference, Standing, length, looked_at, millis};

/// What is to be shown for a copy.
struct Copy {
    instance: Instance,
    reported: Status,
    client_dirty: i64,
    heard: Millis,
    fresh: bool,
}

impl Reference {
    /// The answer in words.
    pub(in super::super) fn apply(&mut self, now: Now, origin: &Origin, command: &Command) -> &'static str {
        self.because = (author(origin), cause(command));
        match command {
            Command::Register { instance, age } => self.register(now, origin, instance, *age),
            Command::Adopt { instance, age } => self.adopt(now, origin, instance, *age),
            Command::Renew {
                key,
                last_dirty,
                overridden,
            } => self.renew(now, origin, key, *last_dirty, *overridden),
            Command::Cancel { key } => self.cancel(now, key),
            Command::Override {
                key,
                status,
                last_dirty,
            } => self.set_override(now, origin, key, *status, *last_dirty),
            Command::ClearOverride {
                key,
                status,
                last_dirty,
            } => self.clear_override(now, origin, key, *status, *last_dirty),
            Command::Metadata { key, entries } => {
                if !self.visible(now, key) {
                    return "missing";
                }
                let held = self.leases[key].clone();
                let mut instance = held.instance;
                for (name, value) in entries {
                    instance.metadata.insert(name, value);
                }
                if !self.config.compat.metadata_keeps_dirty {
                    instance.last_dirty = instance.last_dirty.map(|dirty| dirty + 1);
                }
                let copy = Copy {
                    instance,
                    reported: held.reported,
                    client_dirty: held.client_dirty,
                    heard: millis(now.mono),
                    fresh: true,
                };
                self.place(now, origin, key, copy, AppliedKind::MetadataChanged);
                "ok"
            }
            other => panic!("there is no model of {other:?}"),
        }
    }

    fn register(&mut self, now: Now, origin: &Origin, instance: &Instance, age: Duration) -> &'static str {
        let key = instance.key();
        let age = if origin.is_peer() { length(age) } else { 0 };
        if origin.is_peer() {
            let ran_out = age > 0 && age >= Millis::from(instance.lease.duration_secs) * 1_000;
            let tombstone = self.tombstones.get(&key);
            let tried = Millis::from(instance.lease.renewal_interval_secs) * 1_000;
            let cancelled = tombstone.is_some_and(|(dirty, at, _)| {
                instance.last_dirty.is_some_and(|own| own < *dirty)
                    && self.now_ticks(now) <= self.ticks(*at) + tried.max(10_000)
            });
            if ran_out || cancelled {
                return "refused";
            }
        }
        let heard = millis(now.mono) - age;
        let wins = self.newer(now, origin, &key, instance);
        let copy = match (wins, self.leases.get(&key)) {
            (Some(dirty), _) => Copy {
                instance: Instance {
                    last_dirty: Some(dirty),
                    ..instance.clone()
                },
                reported: instance.status,
                client_dirty: match instance.last_dirty {
                    Some(own) if !origin.is_peer() => own,
                    _ => dirty,
                },
                heard,
                fresh: true,
            },
            (None, Some(held)) => Copy {
                instance: held.instance.clone(),
                reported: held.reported,
                client_dirty: held.client_dirty,
                heard,
                fresh: true,
            },
            (None, None) => panic!("nothing newer is held"),
        };
        self.place(now, origin, &key, copy, AppliedKind::Registered);
        if wins.is_some() { "accepted" } else { "kept newer" }
    }

    /// The dirty timestamp to store if the registration replaces what is held.
    fn newer(&self, now: Now, origin: &Origin, key: &InstanceKey, instance: &Instance) -> Option<i64> {
        let clock = i64::try_from(now.wall.0).expect("short");
        let Some(held) = self.leases.get(key) else {
            return Some(instance.last_dirty.unwrap_or(clock));
        };
        let stored = held.instance.last_dirty.expect("it has one");
        let by_stored = |offered: i64| (offered >= stored).then_some(offered);
        match (self.config.compat.metadata_keeps_dirty, instance.last_dirty) {
            (true, offered) => by_stored(offered.unwrap_or(clock)),
            (false, None) => Some(clock.max(stored + 1)),
            (false, Some(offered)) if origin.is_peer() => by_stored(offered),
            (false, Some(offered)) if offered < held.client_dirty => None,
            (false, Some(offered)) => {
                let same = content(instance, instance.status) == content(&held.instance, held.reported);
                Some(offered.max(if same { stored } else { stored + 1 }))
            }
        }
    }

    fn adopt(&mut self, now: Now, origin: &Origin, instance: &Instance, age: Duration) -> &'static str {
        let key = instance.key();
        let heard = millis(now.mono) - length(age);
        let dirty = instance.last_dirty.unwrap_or(0);
        let tombstone = self.tombstones.get(&key);
        let offered = (dirty, heard);
        if length(age) >= Millis::from(instance.lease.duration_secs) * 1_000
            || tombstone.is_some_and(|(dirty, at, _)| offered <= (*dirty, *at))
        {
            return "refused";
        }
        if let Some(held) = self.leases.get(&key) {
            let stored = held.instance.last_dirty.expect("it has one");
            let contents = (
                content(instance, instance.status),
                content(&held.instance, held.reported),
            );
            let wins = match dirty.cmp(&stored) {
                std::cmp::Ordering::Less => false,
                std::cmp::Ordering::Greater => true,
                std::cmp::Ordering::Equal => self.content_wins(contents),
            };
            if !wins {
                if heard > held.heard {
                    let held = self.leases.get_mut(&key).expect("it is there");
                    held.heard = heard;
                    held.unconfirmed = false;
                    self.on_time_if_so(now, &key);
                    self.turn(now);
                }
                return "kept newer";
            }
        }
        let copy = Copy {
            instance: Instance {
                last_dirty: Some(dirty),
                ..instance.clone()
            },
            reported: instance.status,
            client_dirty: dirty,
            heard,
            fresh: false,
        };
        self.place(now, origin, &key, copy, AppliedKind::Adopted);
        "accepted"
    }

    /// Which of two contents wins is for the registry to say, but always the same one.
    fn content_wins(&self, (theirs, ours): (Instance, Instance)) -> bool {
        theirs != ours && self.winners.get(&(theirs, ours)).copied().unwrap_or(false)
    }

    fn place(&mut self, now: Now, origin: &Origin, key: &InstanceKey, mut copy: Copy, kind: AppliedKind) {
        let moment = millis(now.mono);
        let scope = self.scope(key);
        let before = self.leases.get(key).cloned();
        self.tombstones.remove(key);
        let own = copy.instance.overridden_status;
        let cleared = origin.is_peer() && own == Status::Unknown && kind == AppliedKind::Registered;
        let kept = matches!(self.overrides.get(&scope), Some((_, Some(_))));
        if before.is_none() && cleared && kept {
            self.overrides.remove(&scope);
        }
        if let Some((_, absent)) = self.overrides.get_mut(&scope) {
            *absent = None;
        } else if own != Status::Unknown && !(origin.is_peer() && self.remembers_clear(&scope)) {
            self.override_set(scope.clone(), own);
        }
        let overridden = self.overrides.get(&scope).map(|(status, _)| *status);
        let holder = before.as_ref().map(|held| held.instance.status);
        let reported = before.as_ref().map(|held| (held.reported, held.instance.clone()));
        copy.instance.status = effective(copy.instance.status, overridden, holder, origin.is_peer());
        copy.instance.overridden_status = overridden.unwrap_or(Status::Unknown);
        copy.reported = overridden.map_or(copy.instance.status, |_| copy.reported);
        let held = match before {
            None => {
                self.expected.joined(key);
                Held {
                    action: Action::Added,
                    updated: moment,
                    registered: moment,
                    renewed: false,
                    unconfirmed: self.opened.is_none() && origin.is_peer() && copy.heard == moment,
                    up: None,
                    standing: Standing::OnTime,
                    out: false,
                    changed: self.now_ticks(now),
                    settled: false,
                    heard: copy.heard,
                    reported: copy.reported,
                    client_dirty: copy.client_dirty,
                    instance: copy.instance,
                }
            }
            Some(held) => Held {
                action: Action::Added,
                updated: moment,
                registered: if copy.fresh { moment } else { held.registered },
                renewed: held.renewed && !copy.fresh,
                unconfirmed: held.unconfirmed && (copy.heard < held.heard || origin.is_peer()),
                heard: held.heard.max(copy.heard),
                reported: copy.reported,
                client_dirty: copy.client_dirty,
                instance: copy.instance,
                ..held
            },
        };
        let changed = reported.as_ref() != Some(&(held.reported, held.instance.clone()));
        self.leases.insert(key.clone(), held);
        self.on_time_if_so(now, key);
        if changed {
            self.changed(now, key);
        }
        self.show(now, key, false);
        self.counts.registrations += 1;
        self.registered.push((moment, key.clone()));
        self.applied(key, kind);
        self.turn(now);
    }

    fn renew(
        &mut self,
        now: Now,
        origin: &Origin,
        key: &InstanceKey,
        last_dirty: Option<i64>,
        overridden: Option<Status>,
    ) -> &'static str {
        let ticks = self.now_ticks(now);
        let scope = self.scope(key);
        let Some(held) = self.leases.get(key) else {
            let ignored = self.tombstones.get(key).is_some_and(|(dirty, at, _)| {
                origin.is_peer()
                    && last_dirty.is_some_and(|own| own <= *dirty)
                    && ticks <= self.ticks(*at) + 10_000
            });
            if ignored {
                self.counts.ignored += 1;
                return "ok";
            }
            self.renewal_missing(ticks);
            return "missing";
        };
        let shown = held.instance.status;
        let stored = held.instance.last_dirty.expect("it has one");
        let entry = self.overrides.get(&scope).map(|(status, _)| *status);
        let status = effective(shown, entry, Some(shown), origin.is_peer());
        if let (false, Some(theirs), Some(held)) = (origin.is_peer(), last_dirty, self.leases.get_mut(key)) {
            held.client_dirty = held.client_dirty.min(theirs);
        }
        if status == Status::Unknown {
            self.renewal_missing(ticks);
            return "missing";
        }
        self.counts.renewals += 1;
        self.expected.beat(ticks);
        self.hear(now, key);
        if status != shown {
            self.flip(now, key, |instance| instance.status = status);
        }
        let answer = match last_dirty {
            Some(theirs) if theirs > stored => "ahead",
            Some(theirs) if theirs < stored && origin.is_peer() => "behind",
            _ => "ok",
        };
        let theirs =
            overridden.filter(|theirs| answer == "ahead" && origin.is_peer() && *theirs != Status::Unknown);
        if let Some(theirs) = theirs.filter(|theirs| entry != Some(*theirs)) {
            self.override_set(scope, theirs);
            self.because.1 = Cause::Overridden;
            self.flip(now, key, |instance| instance.overridden_status = theirs);
            self.changed(now, key);
        }
        self.applied(key, AppliedKind::Renewed);
        self.turn(now);
        answer
    }

    fn cancel(&mut self, now: Now, key: &InstanceKey) -> &'static str {
        let scope = self.scope(key);
        self.override_cleared(&scope, self.now_ticks(now));
        if !self.leases.contains_key(key) {
            if self.config.compat.failed_cancels_listed {
                self.cancelled.push((millis(now.mono), key.clone()));
            }
            return "missing";
        }
        let held = self.remove(now, key);
        if !self.config.compat.no_tombstones {
            self.marks += 1;
            let dirty = held.instance.last_dirty.expect("it has one");
            self.tombstones
                .insert(key.clone(), (dirty, millis(now.mono), self.marks));
            if self.tombstones.len() > self.config.tombstone_limit {
                let oldest = self.tombstones.iter().min_by_key(|(_, (.., mark))| *mark);
                let oldest = oldest.map(|(key, _)| key.clone()).expect("there are some");
                self.tombstones.remove(&oldest);
                self.counts.forgotten += 1;
            }
        }
        self.counts.cancels += 1;
        self.applied(key, AppliedKind::Cancelled);
        self.turn(now);
        "ok"
    }

    fn remembers_clear(&self, scope: &InstanceKey) -> bool {
        !self.config.compat.no_tombstones && self.cleared.contains_key(scope)
    }

    fn set_override(
        &mut self,
        now: Now,
        origin: &Origin,
        key: &InstanceKey,
        status: Status,
        last_dirty: Option<i64>,
    ) -> &'static str {
        if status == Status::Unknown && !self.config.compat.override_equal_ignored {
            return self.clear_override(now, origin, key, None, last_dirty);
        }
        if !self.visible(now, key) {
            return "missing";
        }
        let scope = self.scope(key);
        self.hear(now, key);
        let shown = self.leases[key].instance.status == status;
        let stored = self
            .overrides
            .get(&scope)
            .is_some_and(|(held, _)| *held == status);
        if !(shown && (stored || self.config.compat.override_equal_ignored)) {
            self.override_set(scope, status);
            let reported = match self.leases[key].reported {
                reported @ (Status::Up | Status::OutOfService) => reported,
                _ => status,
            };
            let last_dirty = self.report(origin, key, reported, last_dirty);
            self.overrule(now, key, status, status, last_dirty);
        }
        self.applied(key, AppliedKind::Overridden);
        self.turn(now);
        "ok"
    }

    fn clear_override(
        &mut self,
        now: Now,
        origin: &Origin,
        key: &InstanceKey,
        status: Option<Status>,
        last_dirty: Option<i64>,
    ) -> &'static str {
        self.because.1 = Cause::OverrideCleared;
        let scope = self.scope(key);
        if !self.visible(now, key) {
            let absent = !self.leases.contains_key(key) && *origin == Origin::Operator;
            let removed = absent && self.override_cleared(&scope, self.now_ticks(now));
            return if removed { "ok" } else { "missing" };
        }
        self.hear(now, key);
        if self.override_cleared(&scope, self.now_ticks(now)) {
            let status = status.unwrap_or(Status::Unknown);
            let last_dirty = self.report(origin, key, status, last_dirty);
            self.overrule(now, key, status, Status::Unknown, last_dirty);
        }
        self.applied(key, AppliedKind::OverrideCleared);
        self.turn(now);
        "ok"
    }

    fn report(
        &mut self,
        origin: &Origin,
        key: &InstanceKey,
        status: Status,
        last_dirty: Option<i64>,
    ) -> Option<i64> {
        let keeps = origin.is_peer() || self.config.compat.metadata_keeps_dirty;
        let held = self.leases.get_mut(key).expect("it is visible");
        let raises = !keeps && held.reported != status && status != Status::Unknown;
        held.reported = status;
        let raised = held.instance.last_dirty.map(|dirty| dirty + 1);
        last_dirty.max(raised.filter(|_| raises))
    }

    fn overrule(
        &mut self,
        now: Now,
        key: &InstanceKey,
        status: Status,
        overridden: Status,
        last_dirty: Option<i64>,
    ) {
        let held = self.leases.get_mut(key).expect("it is visible");
        held.instance.status = status;
        held.instance.overridden_status = overridden;
        held.instance.last_dirty = held.instance.last_dirty.max(last_dirty);
        held.action = Action::Modified;
        held.updated = millis(now.mono);
        self.show(now, key, false);
        self.changed(now, key);
    }

    fn hear(&mut self, now: Now, key: &InstanceKey) {
        let held = self.leases.get_mut(key).expect("it is there");
        held.heard = millis(now.mono);
        held.renewed = true;
        held.unconfirmed = false;
        self.on_time_if_so(now, key);
    }

    fn on_time_if_so(&mut self, now: Now, key: &InstanceKey) {
        let held = &self.leases[key];
        let ticks = self.now_ticks(now);
        let on_time = ticks <= self.late_at(held);
        let runs_on = !looked_at(self.runs_out(held), ticks);
        let held = self.leases.get_mut(key).expect("it is there");
        if on_time {
            held.standing = Standing::OnTime;
        }
        if held.out && runs_on {
            held.out = false;
            if !held.settled {
                held.changed = ticks;
            }
        }
    }

    /// What is compared of a lease is another.
    fn changed(&mut self, now: Now, key: &InstanceKey) {
        let ticks = self.now_ticks(now);
        let held = self.leases.get_mut(key).expect("it is there");
        held.settled = false;
        if !held.out {
            held.changed = ticks;
        }
    }

    fn flip(&mut self, now: Now, key: &InstanceKey, change: impl FnOnce(&mut Instance)) {
        let hidden = self.config.compat.rule_flips_hidden;
        let held = self.leases.get_mut(key).expect("it is there");
        change(&mut held.instance);
        if !hidden {
            held.action = Action::Modified;
            held.updated = millis(now.mono);
        }
        self.show(now, key, hidden);
    }

    /// A new version of what readers see.
    fn show(&mut self, now: Now, key: &InstanceKey, hidden: bool) {
        let held = self.leases.get_mut(key).expect("it is there");
        if held.instance.status == Status::Up && held.up.is_none() && !hidden {
            held.up = Some(millis(now.mono));
        }
        let action = if hidden { Action::Modified } else { held.action };
        let instance = held.instance.clone();
        self.note(now, key, action, instance, hidden);
    }

    /// Learns which content the registry preferred at equal dirty timestamps; fails if it once preferred the other.
    pub(in super::super) fn learn_winner(
        &mut self,
        instance: &Instance,
        age: Duration,
        accepted: bool,
    ) -> Result<(), String> {
        let key = instance.key();
        let Some(held) = self.leases.get(&key) else {
            return Ok(());
        };
        let theirs = content(instance, instance.status);
        let ours = content(&held.instance, held.reported);
        let equal = held.instance.last_dirty == Some(instance.last_dirty.unwrap_or(0)) && theirs != ours;
        if !equal || length(age) >= Millis::from(instance.lease.duration_secs) * 1_000 {
            return Ok(());
        }
        for (pair, wins) in [
            ((theirs.clone(), ours.clone()), accepted),
            ((ours, theirs), !accepted),
        ] {
            if *self.winners.entry(pair).or_insert(wins) != wins {
                return Err(String::from("the other content won before"));
            }
        }
        Ok(())
    }
}

fn author(origin: &Origin) -> Author {
    match origin {
        Origin::Client => Author::Client,
        Origin::Operator => Author::Operator,
        Origin::Own => Author::Own,
        Origin::Peer(peer) => Author::Peer(peer.clone()),
    }
}

fn cause(command: &Command) -> Cause {
    match command {
        Command::Register { .. } => Cause::Registered,
        Command::Adopt { .. } => Cause::Adopted,
        Command::Renew { .. } => Cause::Renewed,
        Command::Cancel { .. } => Cause::Cancelled,
        Command::Override { .. } => Cause::Overridden,
        Command::ClearOverride { .. } => Cause::OverrideCleared,
        Command::Metadata { .. } => Cause::MetadataChanged,
        other => panic!("there is no model of {other:?}"),
    }
}

/// What an instance said of itself.
fn content(instance: &Instance, reported: Status) -> Instance {
    Instance {
        status: reported,
        overridden_status: Status::Unknown,
        last_dirty: None,
        ..instance.clone()
    }
}

/// Java's rules: the first that matches.
fn effective(own: Status, overridden: Option<Status>, holder: Option<Status>, from_peer: bool) -> Status {
    let in_or_out = |status| status == Status::Up || status == Status::OutOfService;
    if !in_or_out(own) {
        own
    } else if let Some(status) = overridden {
        status
    } else if let Some(status) = holder.filter(|status| !from_peer && in_or_out(*status)) {
        status
    } else {
        own
    }
}
