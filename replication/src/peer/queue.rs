//! What waits for one peer: three slots for each instance, the newest word in each, in the order in which instances
//! first had to wait.

use std::collections::{BTreeMap, HashMap};

use eureka_registry_core::{Instance, InstanceKey, LeaseTerms, Mono};

use crate::facts::PeerKind;
use crate::message::{Action, Item};

/// A node of ours is not sent changes that waited longer (milliseconds): repair moves them, with their age.
const PATIENCE_OURS: u64 = 5_000;
/// What everything but a registration takes in a batch, about.
const ITEM_BYTES: u32 = 160;
/// Registrations whose instance was not at hand when they were noted.
const UNSEEN_REGISTRATION_BYTES: u32 = 2_000;
/// So many instances are looked at in one call, at most: those whose time has passed are not sent, but cost time.
const LOOKED_AT_MAX: usize = 10_000;

/// The slots of one peer.
#[derive(Debug)]
pub(super) struct Queue {
    /// Nothing depends on the order in it. Its hasher is keyed, because clients choose the names.
    entries: HashMap<InstanceKey, Entry>,
    order: BTreeMap<u64, InstanceKey>,
    next: u64,
    urgent: usize,
    limit: usize,
}

/// What is known of one instance. It is kept while a slot waits or is on its way.
#[derive(Debug, Default)]
struct Entry {
    /// Its place in the order, if anything waits.
    place: u64,
    /// Since when something waits.
    since: Mono,
    terms: LeaseTerms,
    waiting: [Option<Note>; 3],
    flying: [Option<Action>; 3],
}

/// One slot filled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    pub(super) action: Action,
    pub(super) noted: Mono,
    /// About as much it takes in a batch.
    pub(super) bytes: u32,
    /// A repetition, after the peer did not know the instance. It is not repeated again.
    pub(super) again: bool,
}

/// The slots of an instance, in the order in which they are sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Slot {
    Life,
    Status,
    Renew,
}

/// An item on its way.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) key: InstanceKey,
    pub(super) slot: Slot,
    pub(super) note: Note,
    place: u64,
    pub(super) since: Mono,
}

/// What may be taken at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Portion {
    pub(super) kind: PeerKind,
    pub(super) items: usize,
    pub(super) bytes: usize,
}

/// What was taken.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) items: Vec<Sent>,
    /// So many were given up: their time had passed.
    pub(super) outdated: u64,
    bytes: usize,
}

impl Slot {
    pub(super) const ALL: [Self; 3] = [Self::Life, Self::Status, Self::Renew];

    const fn of(action: Action) -> Self {
        match action {
            Action::Register | Action::Cancel => Self::Life,
            Action::Override | Action::ClearOverride => Self::Status,
            Action::Renew => Self::Renew,
        }
    }
}

impl Note {
    /// `instance`: as it is after a registration, if it is at hand.
    pub(super) fn new(now: Mono, action: Action, instance: Option<&Instance>) -> Self {
        let bytes = match (action, instance) {
            (Action::Register, Some(instance)) => u32::try_from(instance.encoded_bytes()).unwrap_or(u32::MAX),
            (Action::Register, None) => UNSEEN_REGISTRATION_BYTES,
            (Action::Cancel | Action::Override | Action::ClearOverride | Action::Renew, _) => ITEM_BYTES,
        };
        Self {
            action,
            noted: now,
            bytes,
            again: false,
        }
    }

    /// Whether it waited too long: to a node of ours, changes five seconds; to Java, as long as the lease lasts;
    /// renewals, until the next one is due.
    fn is_late(&self, now: Mono, kind: PeerKind, terms: LeaseTerms) -> bool {
        let duration = u64::from(terms.duration_secs) * 1_000;
        let patience = match (Slot::of(self.action), kind) {
            (Slot::Renew, _) => u64::from(terms.renewal_interval_secs) * 1_000,
            (Slot::Life | Slot::Status, PeerKind::Ours) => PATIENCE_OURS.min(duration),
            (Slot::Life | Slot::Status, PeerKind::Java | PeerKind::Unknown) => duration,
        };
        now.0.saturating_sub(self.noted.0) > patience
    }
}

impl Sent {
    pub(super) fn item(&self) -> Item {
        Item {
            key: self.key.clone(),
            action: self.note.action,
        }
    }
}

impl Taken {
    fn has_room_for(&self, note: &Note, portion: Portion) -> bool {
        let fits = self.bytes + note.bytes as usize <= portion.bytes || portion.kind == PeerKind::Java;
        self.items.is_empty() || (self.items.len() < portion.items && fits)
    }
}

impl Queue {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            entries: HashMap::new(),
            order: BTreeMap::new(),
            next: 0,
            urgent: 0,
            limit: limit.max(1),
        }
    }

    /// Instances with something that waits.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Instances that are known of, because something waits or is on its way.
    #[cfg(test)]
    pub(super) fn holds(&self) -> usize {
        self.entries.len()
    }

    /// Whether anything but renewals waits.
    pub(super) fn is_urgent(&self) -> bool {
        self.urgent > 0
    }

    /// Since when the first one waits.
    pub(super) fn oldest(&self) -> Option<Mono> {
        let (_, key) = self.order.first_key_value()?;
        self.entries.get(key).map(|entry| entry.since)
    }

    /// Fills a slot; what was in it is forgotten. Returned is how many slots were given up because the queue is full.
    pub(super) fn put(&mut self, key: &InstanceKey, note: Note, terms: LeaseTerms) -> u64 {
        let entry = self.entries.entry(key.clone()).or_default();
        entry.terms = terms;
        if !entry.waits() {
            entry.place = self.next;
            entry.since = note.noted;
            self.order.insert(self.next, key.clone());
            self.next += 1;
        }
        let urgent = entry.urgent();
        if note.action == Action::Cancel {
            entry.waiting = [None; 3];
            entry.flying = [None; 3];
        }
        let replaced = entry.waiting[Slot::of(note.action) as usize].replace(note);
        if let Some(replaced) = replaced {
            entry.superseded(replaced);
        }
        self.urgent = self.urgent + entry.urgent() - urgent;
        self.trim()
    }

    /// The same if the slot is empty.
    pub(super) fn put_if_empty(&mut self, key: &InstanceKey, note: Note, terms: LeaseTerms) -> u64 {
        let full = |entry: &Entry| entry.waiting[Slot::of(note.action) as usize].is_some();
        if self.entries.get(key).is_some_and(full) {
            0
        } else {
            self.put(key, note, terms)
        }
    }

    /// Its lease ran out: nothing is said of it any more.
    pub(super) fn expired(&mut self, key: &InstanceKey) {
        self.keep(key, |_| false);
    }

    /// A peer cancelled it: only our own cancel stays, if there is one.
    pub(super) fn cancelled_by_peer(&mut self, key: &InstanceKey) {
        self.keep(key, |action| action == Action::Cancel);
    }

    /// A peer registered it: our cancel is of the past.
    pub(super) fn registered_by_peer(&mut self, key: &InstanceKey) {
        self.keep(key, |action| action != Action::Cancel);
    }

    /// Whether our cancel waits or is on its way.
    pub(super) fn is_cancelled(&self, key: &InstanceKey) -> bool {
        self.entries.get(key).is_some_and(|entry| {
            entry.action(Slot::Life) == Some(Action::Cancel)
                || entry.flying[Slot::Life as usize] == Some(Action::Cancel)
        })
    }

    /// Takes what is to be sent next.
    pub(super) fn take(&mut self, now: Mono, portion: Portion) -> Taken {
        let mut taken = Taken::default();
        for _ in 0..LOOKED_AT_MAX {
            let Some((_, key)) = self.order.first_key_value() else {
                break;
            };
            let key = key.clone();
            if !self.take_of(now, &key, &Slot::ALL, portion, &mut taken) {
                break;
            }
        }
        taken
    }

    /// Takes these slots, where they are still filled, and says how many of them there was room to look at.
    pub(super) fn take_these(
        &mut self,
        now: Mono,
        slots: &[(InstanceKey, Slot)],
        portion: Portion,
    ) -> (Taken, usize) {
        let mut taken = Taken::default();
        let fits = |(key, slot): &&(InstanceKey, Slot)| self.take_of(now, key, &[*slot], portion, &mut taken);
        let looked_at = slots.iter().take_while(fits).count();
        (taken, looked_at)
    }

    /// Takes a single item, of the instance that has so many others before it (counted round).
    pub(super) fn take_one(&mut self, now: Mono, before: usize, portion: Portion) -> Taken {
        let mut taken = Taken::default();
        let portion = Portion { items: 1, ..portion };
        for _ in 0..LOOKED_AT_MAX {
            if !taken.items.is_empty() || self.order.is_empty() {
                break;
            }
            let nth = self.order.values().nth(before % self.order.len());
            let Some(key) = nth.cloned() else {
                break;
            };
            self.take_of(now, &key, &Slot::ALL, portion, &mut taken);
        }
        taken
    }

    /// An item was dealt with. `None`: something made it void meanwhile.
    pub(super) fn settle(&mut self, sent: &Sent) -> Option<LeaseTerms> {
        let entry = self.entries.get_mut(&sent.key)?;
        entry.flying[sent.slot as usize].take()?;
        let terms = entry.terms;
        if entry.is_empty() {
            self.entries.remove(&sent.key);
        }
        Some(terms)
    }

    /// An item was not dealt with: it waits again in its old place, unless something newer has taken its slot.
    pub(super) fn give_back(&mut self, sent: Sent) {
        let Some(entry) = self.entries.get_mut(&sent.key) else {
            return;
        };
        if entry.flying[sent.slot as usize].take().is_none() {
            return;
        }
        let waited = entry.waits();
        let urgent = entry.urgent();
        if entry.waiting[sent.slot as usize].is_some() {
            entry.superseded(sent.note);
        } else {
            entry.waiting[sent.slot as usize] = Some(sent.note);
        }
        self.urgent = self.urgent + entry.urgent() - urgent;
        if waited && entry.place <= sent.place {
            return;
        }
        if waited {
            self.order.remove(&entry.place);
        }
        (entry.place, entry.since) = (sent.place, sent.since);
        self.order.insert(sent.place, sent.key);
    }

    /// Gives up the oldest while there are too many, and says how many slots that were.
    pub(super) fn trim(&mut self) -> u64 {
        let mut dropped = 0;
        while self.order.len() > self.limit {
            let Some((_, key)) = self.order.pop_first() else {
                break;
            };
            if let Some(entry) = self.entries.get_mut(&key) {
                self.urgent -= entry.urgent();
                dropped += entry.waiting.iter().flatten().count() as u64;
                entry.waiting = [None; 3];
                if entry.is_empty() {
                    self.entries.remove(&key);
                }
            }
        }
        dropped
    }

    /// Takes slots of one instance. `false`: there is no room for all of them.
    fn take_of(
        &mut self,
        now: Mono,
        key: &InstanceKey,
        slots: &[Slot],
        portion: Portion,
        taken: &mut Taken,
    ) -> bool {
        let Some(entry) = self.entries.get_mut(key) else {
            return true;
        };
        let urgent = entry.urgent();
        let mut complete = true;
        for &slot in slots {
            let Some(note) = entry.waiting[slot as usize] else {
                continue;
            };
            if note.is_late(now, portion.kind, entry.terms) {
                entry.waiting[slot as usize] = None;
                taken.outdated += 1;
            } else if taken.has_room_for(&note, portion) {
                entry.fly(key, slot, note, taken);
            } else {
                complete = false;
                break;
            }
        }
        self.urgent = self.urgent + entry.urgent() - urgent;
        if entry.waits() {
            let noted = entry.waiting.iter().flatten().map(|note| note.noted);
            entry.since = noted.min().unwrap_or(entry.since);
        } else {
            self.order.remove(&entry.place);
            if entry.is_empty() {
                self.entries.remove(key);
            }
        }
        complete
    }

    /// Empties the slots of an instance, waiting or on their way, whose action is not to be kept.
    fn keep(&mut self, key: &InstanceKey, keeps: impl Fn(Action) -> bool) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        let (waited, urgent) = (entry.waits(), entry.urgent());
        for note in &mut entry.waiting {
            note.take_if(|note| !keeps(note.action));
        }
        for action in &mut entry.flying {
            action.take_if(|action| !keeps(*action));
        }
        self.urgent = self.urgent + entry.urgent() - urgent;
        if waited && !entry.waits() {
            self.order.remove(&entry.place);
        }
        if entry.is_empty() {
            self.entries.remove(key);
        }
    }
}

impl Entry {
    fn waits(&self) -> bool {
        self.waiting.iter().any(Option::is_some)
    }

    fn is_empty(&self) -> bool {
        !self.waits() && self.flying.iter().all(Option::is_none)
    }

    fn action(&self, slot: Slot) -> Option<Action> {
        self.waiting[slot as usize].map(|note| note.action)
    }

    /// How many of its slots do not wait for company.
    fn urgent(&self) -> usize {
        usize::from(self.action(Slot::Life).is_some()) + usize::from(self.action(Slot::Status).is_some())
    }

    /// A word will not be sent because there is a newer one in its slot. A cancel would have ended the override, too: that is
    /// still to be said, as a registration alone leaves the peer the override it has.
    fn superseded(&mut self, old: Note) {
        let registers = self.waiting[Slot::Life as usize].filter(|note| note.action == Action::Register);
        if let (Action::Cancel, Some(register)) = (old.action, registers) {
            let clear = Note::new(register.noted, Action::ClearOverride, None);
            self.waiting[Slot::Status as usize].get_or_insert(clear);
        }
    }

    /// Puts a slot into the batch. A registration renews, too.
    fn fly(&mut self, key: &InstanceKey, slot: Slot, note: Note, taken: &mut Taken) {
        self.waiting[slot as usize] = None;
        self.flying[slot as usize] = Some(note.action);
        if note.action == Action::Register {
            self.waiting[Slot::Renew as usize] = None;
        }
        taken.bytes += note.bytes as usize;
        taken.items.push(Sent {
            key: key.clone(),
            slot,
            note,
            place: self.place,
            since: self.since,
        });
    }
}
