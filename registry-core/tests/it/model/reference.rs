//! The rules, each in the plainest form.

mod changing;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use eureka_registry_core::{
    Action, AppliedKind, Author, Cause, Config, Event, Instance, InstanceKey, LeaseExpiry, Mono, Now, Settle,
    Status, Wall,
};

use super::preserving::Expected;

/// Milliseconds by the monotonic clock, or by the same without pauses.
pub(super) type Millis = i64;

pub(super) struct Reference {
    pub(super) config: Config,
    /// From when, how long.
    pauses: Vec<(Millis, Millis)>,
    seen: Millis,
    /// Opened, and since when reads are open (later than now if they settle).
    pub(super) opened: Option<Millis>,
    pub(super) open_from: Option<Millis>,
    /// How long it has to be quiet, and until when reads are held at most.
    settling: Option<(Millis, Millis)>,
    pub(super) leases: BTreeMap<InstanceKey, Held>,
    /// With the time until which it is kept, if the instance is absent, and when it left among others.
    pub(super) overrides: BTreeMap<InstanceKey, (Status, Option<(Millis, u64)>)>,
    /// Cleared overrides, by when each is forgotten.
    cleared: BTreeMap<InstanceKey, (Millis, u64)>,
    /// Dirty timestamp, moment and order.
    pub(super) tombstones: BTreeMap<InstanceKey, (i64, Millis, u64)>,
    pub(super) log: Vec<Logged>,
    /// By whom and why something changes now.
    because: (Author, Cause),
    /// What the log says is there.
    pub(super) told: BTreeMap<InstanceKey, Instance>,
    /// Index of the first entry that may be in the delta.
    pub(super) delta_from: usize,
    pub(super) expected: Expected,
    pub(super) grace: Option<Millis>,
    next_eviction: Millis,
    last_eviction: Option<Millis>,
    pub(super) registered: Vec<(Millis, InstanceKey)>,
    pub(super) cancelled: Vec<(Millis, InstanceKey)>,
    pub(super) counts: Counts,
    /// The root of each digest so far, and the other way round.
    pub(super) roots: HashMap<Vec<(InstanceKey, Instance)>, u64>,
    pub(super) contents: HashMap<u64, Vec<(InstanceKey, Instance)>>,
    /// Which of two contents won at equal dirty timestamps: the same way every time.
    pub(super) winners: HashMap<(Instance, Instance), bool>,
    marks: u64,
    seq: u64,
    events: Vec<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) instance: Instance,
    pub(super) reported: Status,
    pub(super) client_dirty: i64,
    pub(super) action: Action,
    pub(super) updated: Millis,
    pub(super) registered: Millis,
    pub(super) heard: Millis,
    pub(super) renewed: bool,
    pub(super) unconfirmed: bool,
    pub(super) up: Option<Millis>,
    pub(super) standing: Standing,
    /// It has run out, so it is not compared with other nodes.
    pub(super) out: bool,
    /// When it changed last (or came back unsettled), and whether that was two seconds before some call since.
    changed: Millis,
    pub(super) settled: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Standing {
    OnTime,
    Late { accepted: bool },
    WrittenOff,
}

pub(super) struct Logged {
    pub(super) at: Millis,
    /// The same by the monotonic clock.
    pub(super) moment: Millis,
    pub(super) key: InstanceKey,
    pub(super) action: Action,
    pub(super) before: Option<Instance>,
    pub(super) instance: Instance,
    pub(super) because: (Author, Cause),
    /// Not in the delta.
    pub(super) hidden: bool,
}

#[derive(Default)]
pub(super) struct Counts {
    pub(super) registrations: u64,
    pub(super) renewals: u64,
    pub(super) renewals_missing: u64,
    pub(super) cancels: u64,
    pub(super) evictions: u64,
    pub(super) forgotten: u64,
    pub(super) late: u64,
    pub(super) turns: u64,
    pub(super) pauses: u64,
    pub(super) ignored: u64,
}

impl Reference {
    pub(super) fn new(now: Now, config: Config) -> Self {
        Self {
            expected: Expected::new(config.preservation),
            config,
            pauses: Vec::new(),
            seen: millis(now.mono),
            opened: None,
            open_from: None,
            settling: None,
            leases: BTreeMap::new(),
            overrides: BTreeMap::new(),
            cleared: BTreeMap::new(),
            tombstones: BTreeMap::new(),
            log: Vec::new(),
            because: (Author::Own, Cause::Registered),
            told: BTreeMap::new(),
            delta_from: 0,
            grace: None,
            next_eviction: 0,
            last_eviction: None,
            registered: Vec::new(),
            cancelled: Vec::new(),
            counts: Counts::default(),
            roots: HashMap::new(),
            contents: HashMap::new(),
            winners: HashMap::new(),
            marks: 0,
            seq: 0,
            events: Vec::new(),
        }
    }

    /// Whoever calls more than a second after what was `due` did not watch in between.
    pub(super) fn observe(&mut self, now: Now, due: Option<Mono>) {
        let now = millis(now.mono);
        if let Some(due) = due {
            let promised = millis(due).max(self.seen);
            if now > promised + 1_000 {
                self.counts.pauses += 1;
                self.pauses.push((promised, now - promised));
            }
        }
        self.seen = self.seen.max(now);
    }

    /// Watched time at a moment: less what of the pauses lies before it.
    pub(super) fn ticks(&self, moment: Millis) -> Millis {
        watched(&self.pauses, moment)
    }

    pub(super) fn now_ticks(&self, now: Now) -> Millis {
        self.ticks(millis(now.mono))
    }

    pub(super) fn open(&mut self, now: Now, synced: usize, settle: Option<Settle>) {
        let ticks = self.now_ticks(now);
        self.opened = Some(ticks);
        self.open_from = Some(settle.map_or(ticks, |settle| ticks + length(settle.at_least) + 1));
        self.settling = settle.map(|settle| (length(settle.quiet), ticks + length(settle.at_most)));
        self.next_eviction = ticks + length(self.config.eviction_interval);
        self.expected.opened(ticks, synced);
        self.turn(now);
    }

    pub(super) fn accept(&mut self, now: Now) {
        for held in self.leases.values_mut() {
            if let Standing::Late { accepted } = &mut held.standing {
                *accepted = true;
            }
        }
        self.expected.evicted.clear();
        self.turn_with_grace(now, false);
    }

    /// Does what is due. Who is evicted is random: `events` tell, and only how many and from among whom is checked.
    pub(super) fn handle_timeout(&mut self, now: Now, events: &[Event]) -> Result<(), String> {
        let ticks = self.now_ticks(now);
        let up = self
            .leases
            .values()
            .filter(|held| held.instance.status == Status::Up);
        self.expected.update_if_due(ticks, up.count());
        self.mark_late(ticks);
        self.turn(now);
        self.evict(now, ticks, events)?;
        while self.delta_from < self.log.len()
            && self.log[self.delta_from].at <= ticks - length(self.config.delta_retention)
        {
            self.delta_from += 1;
        }
        self.overrides
            .retain(|_, (_, absent)| absent.is_none_or(|(until, _)| until > ticks));
        let then = ticks - length(self.config.tombstone_retention);
        let pauses = &self.pauses;
        self.tombstones
            .retain(|_, (_, at, _)| watched(pauses, *at) > then);
        self.cleared.retain(|_, (until, _)| *until > ticks);
        self.turn(now);
        self.expect(now, events)
    }

    /// A lease is looked at in the first whole second after it became late, and after two durations if nobody ever
    /// confirmed it.
    fn mark_late(&mut self, ticks: Millis) {
        for key in self.keys() {
            let held = &self.leases[&key];
            let (late, written_off) = (self.late_at(held), self.ticks(held.heard) + 2 * duration(held));
            let runs_out = self.runs_out(held);
            let held = self.leases.get_mut(&key).expect("it is there");
            if held.standing == Standing::OnTime && looked_at(late, ticks) {
                held.standing = Standing::Late { accepted: false };
                self.counts.late += 1;
                self.events.push(format!("late {key}"));
            }
            let is_late = held.standing != Standing::OnTime;
            held.out |= is_late && looked_at(runs_out, ticks);
            if is_late && held.unconfirmed && looked_at(written_off, ticks) {
                held.unconfirmed = false;
                held.standing = Standing::WrittenOff;
            }
        }
    }

    fn evict(&mut self, now: Now, ticks: Millis, events: &[Event]) -> Result<(), String> {
        let victims: Vec<_> = events
            .iter()
            .filter_map(|event| {
                if let Event::Expired { key, .. } = event {
                    Some(key.clone())
                } else {
                    None
                }
            })
            .collect();
        let mut allowed = 0;
        let mut candidates = Vec::new();
        if self.opened.is_some() && ticks >= self.next_eviction {
            let interval = length(self.config.eviction_interval);
            let elapsed = self.last_eviction.map_or(0, |last| ticks - last - interval);
            self.last_eviction = Some(ticks);
            self.next_eviction = ticks + interval;
            let evicts = self.evicts(now);
            candidates = self.overdue(ticks);
            candidates
                .retain(|key| evicts && looked_at(self.deadline(&self.leases[key]) + elapsed.max(0), ticks));
            allowed = self.expected.quota(self.leases.len());
        }
        let count = allowed.min(candidates.len());
        if victims.len() != count || victims.iter().any(|key| !candidates.contains(key)) {
            return Err(format!("evicted {victims:?}, expected {count} of {candidates:?}"));
        }
        for key in victims {
            self.because = (Author::Eviction, Cause::Expired);
            let held = self.remove(now, &key);
            if let Standing::OnTime | Standing::Late { accepted: false } = held.standing {
                let zone = String::from(held.instance.zone().unwrap_or(""));
                self.expected.evicted.insert(key.clone(), zone);
            }
            let scope = self.scope(&key);
            if self.config.compat.override_lost_on_eviction {
                self.overrides.remove(&scope);
            } else {
                self.override_left(&scope, ticks);
            }
            self.counts.evictions += 1;
            self.seq += 1;
            self.events
                .push(format!("#{} v{} expired {key}", self.seq, self.log.len()));
        }
        Ok(())
    }

    /// The override of an instance that is gone is kept, but only so many of them.
    fn override_left(&mut self, scope: &InstanceKey, ticks: Millis) {
        self.marks += 1;
        let mark = (ticks + length(self.config.override_retention), self.marks);
        if let Some((_, absent)) = self.overrides.get_mut(scope) {
            *absent = Some(mark);
        }
        let absent: BTreeMap<_, _> = self
            .overrides
            .iter()
            .filter_map(|(key, (_, absent))| absent.map(|mark| (mark, key.clone())))
            .collect();
        if absent.len() > self.config.override_limit {
            let (_, first) = absent.first_key_value().expect("there are some");
            self.overrides.remove(first);
            self.counts.forgotten += 1;
        }
    }

    /// A renewal was answered Missing.
    fn renewal_missing(&mut self, ticks: Millis) {
        self.counts.renewals_missing += 1;
        if let (Some((quiet, at_most)), Some(open_from)) = (self.settling, &mut self.open_from)
            && *open_from > ticks
        {
            *open_from = (*open_from).max((ticks + quiet).min(at_most) + 1);
        }
    }

    /// An override is cleared, which is remembered, but only so many of them.
    fn override_cleared(&mut self, scope: &InstanceKey, ticks: Millis) -> bool {
        let removed = self.overrides.remove(scope).is_some();
        if removed {
            self.marks += 1;
            let until = ticks + length(self.config.override_retention);
            self.cleared.insert(scope.clone(), (until, self.marks));
            if self.cleared.len() > self.config.override_limit {
                let first = self.cleared.iter().min_by_key(|(_, mark)| **mark);
                let first = first.map(|(key, _)| key.clone()).expect("there are some");
                self.cleared.remove(&first);
                self.counts.forgotten += 1;
            }
        }
        removed
    }

    /// It was set.
    fn override_set(&mut self, scope: InstanceKey, status: Status) {
        self.cleared.remove(&scope);
        self.overrides.insert(scope, (status, None));
    }

    pub(super) fn keys(&self) -> Vec<InstanceKey> {
        self.leases.keys().cloned().collect()
    }

    pub(super) fn late_at(&self, held: &Held) -> Millis {
        self.ticks(held.heard) + duration(held) * 2 / 3
    }

    /// When it is as old as it lasts.
    fn runs_out(&self, held: &Held) -> Millis {
        self.ticks(held.heard) + duration(held)
    }

    /// What changed two seconds ago has settled.
    pub(super) fn settle(&mut self, now: Now) {
        let ticks = self.now_ticks(now);
        for held in self.leases.values_mut() {
            held.settled |= !held.out && held.changed + 2_000 <= ticks;
        }
    }

    /// What is compared with other nodes: dirty timestamp, content and override of everything that has settled.
    pub(super) fn digest(&self) -> Vec<(InstanceKey, Instance)> {
        let compared = self.leases.iter().filter(|(_, held)| held.settled && !held.out);
        let entry = |(key, held): (&InstanceKey, &Held)| {
            let instance = Instance {
                status: held.reported,
                ..held.instance.clone()
            };
            (key.clone(), instance)
        };
        compared.map(entry).collect()
    }

    /// The last moment at which a lease still holds.
    pub(super) fn deadline(&self, held: &Held) -> Millis {
        let doubled = self.config.lease_expiry == LeaseExpiry::Doubled && held.renewed;
        let at = self.ticks(held.heard) + duration(held) * if doubled { 2 } else { 1 };
        match self.grace {
            Some(grace) if at < grace => grace + duration(held),
            Some(_) | None => at,
        }
    }

    /// Late leases that were found to have run out.
    pub(super) fn overdue(&self, ticks: Millis) -> Vec<InstanceKey> {
        let overdue = self
            .leases
            .iter()
            .filter(|(_, held)| held.standing != Standing::OnTime && looked_at(self.deadline(held), ticks));
        overdue.map(|(key, _)| key.clone()).collect()
    }

    pub(super) fn evicts(&self, now: Now) -> bool {
        self.expected.evicts(self.now_ticks(now), &self.leases)
    }

    /// Whether single look-ups show this lease.
    pub(super) fn visible(&self, now: Now, key: &InstanceKey) -> bool {
        let ran_out = |held| self.now_ticks(now) > self.deadline(held);
        self.leases
            .get(key)
            .is_some_and(|held| !(ran_out(held) && self.evicts(now)))
    }

    pub(super) fn scope(&self, key: &InstanceKey) -> InstanceKey {
        if self.config.compat.override_by_id {
            InstanceKey::new("", key.id())
        } else {
            key.clone()
        }
    }

    /// Instances in the delta, with their last entry.
    pub(super) fn delta(&self) -> BTreeMap<InstanceKey, (Action, Instance)> {
        let mut delta = BTreeMap::new();
        for logged in self.log[self.delta_from..].iter().filter(|logged| !logged.hidden) {
            let current = self.leases.get(&logged.key);
            let entry = match (logged.action, current) {
                (Action::Added | Action::Modified, Some(held)) => (held.action, held.instance.clone()),
                _ => (logged.action, logged.instance.clone()),
            };
            delta.insert(logged.key.clone(), entry);
        }
        delta
    }

    /// Takes a lease away and notes that.
    fn remove(&mut self, now: Now, key: &InstanceKey) -> Held {
        let held = self.leases.remove(key).expect("it is there");
        self.expected.left();
        self.note(now, key, Action::Deleted, held.instance.clone(), false);
        self.cancelled.push((millis(now.mono), key.clone()));
        held
    }

    fn note(&mut self, now: Now, key: &InstanceKey, action: Action, instance: Instance, hidden: bool) {
        let before = match action {
            Action::Deleted => self.told.remove(key),
            Action::Added | Action::Modified => self.told.insert(key.clone(), instance.clone()),
        };
        let logged = Logged {
            at: self.now_ticks(now),
            moment: millis(now.mono),
            key: key.clone(),
            action,
            before,
            instance,
            because: self.because.clone(),
            hidden,
        };
        self.log.push(logged);
        let forgotten = self.log.len().saturating_sub(self.config.change_log_limit);
        self.counts.forgotten += forgotten.saturating_sub(self.delta_from) as u64;
        self.delta_from = self.delta_from.max(forgotten);
    }

    fn applied(&mut self, key: &InstanceKey, kind: AppliedKind) {
        self.seq += 1;
        self.events
            .push(format!("#{} v{} {kind:?} {key}", self.seq, self.log.len()));
    }

    fn turn(&mut self, now: Now) {
        self.turn_with_grace(now, true);
    }

    /// Notes when preservation begins or ends; at its end overdue leases get one more duration.
    fn turn_with_grace(&mut self, now: Now, grace: bool) {
        let preserving = !self.evicts(now);
        if self.expected.turned(preserving) {
            if !preserving && grace && self.expected.gives_grace() {
                self.grace = Some(self.now_ticks(now));
            }
            self.counts.turns += 1;
            self.events.push(format!("preserving {preserving}"));
        }
    }

    /// Compares what happened with what should have. Leases become late in no particular order.
    pub(super) fn expect(&mut self, _now: Now, events: &[Event]) -> Result<(), String> {
        let mut expected = std::mem::take(&mut self.events);
        let mut happened: Vec<_> = events.iter().map(describe).collect();
        let late = |events: &mut Vec<String>| {
            let (mut late, rest): (Vec<_>, Vec<_>) =
                events.drain(..).partition(|event| event.starts_with("late"));
            late.sort();
            *events = rest;
            late
        };
        let (late_expected, late_happened) = (late(&mut expected), late(&mut happened));
        if (&expected, &late_expected) == (&happened, &late_happened) {
            return Ok(());
        }
        Err(format!(
            "told {happened:?} {late_happened:?}, expected {expected:?} {late_expected:?}"
        ))
    }
}

fn describe(event: &Event) -> String {
    match event {
        Event::Applied {
            seq,
            version,
            key,
            kind,
            ..
        } => format!("#{seq} v{version} {kind:?} {key}"),
        Event::Expired {
            seq, version, key, ..
        } => format!("#{seq} v{version} expired {key}"),
        Event::Late { key } => format!("late {key}"),
        Event::Preserving(preserving) => format!("preserving {preserving}"),
        other => format!("{other:?}"),
    }
}

fn watched(pauses: &[(Millis, Millis)], moment: Millis) -> Millis {
    let missed = pauses
        .iter()
        .map(|(from, length)| (moment - from).clamp(0, *length));
    moment - missed.sum::<Millis>()
}

/// Whether something that holds up to `last` is found to be over at `ticks`: at whole seconds only.
fn looked_at(last: Millis, ticks: Millis) -> bool {
    last.div_euclid(1_000) < ticks.div_euclid(1_000)
}

pub(super) fn duration(held: &Held) -> Millis {
    Millis::from(held.instance.lease.duration_secs) * 1_000
}

pub(super) fn millis(mono: Mono) -> Millis {
    Millis::try_from(mono.0).expect("short")
}

pub(super) fn length(duration: Duration) -> Millis {
    Millis::try_from(duration.as_millis()).expect("short")
}

/// What the wall clock would have shown at a moment, by today's wall clock.
pub(super) fn wall(now: Now, moment: Millis) -> Wall {
    let wall = Millis::try_from(now.wall.0).expect("short") + moment - millis(now.mono);
    Wall(u64::try_from(wall).unwrap_or(0))
}
