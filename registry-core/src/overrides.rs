//! Statuses that operators set, also of instances that were evicted meanwhile.

use alloc::collections::BTreeMap;

use crate::model::{InstanceKey, Status};
use crate::watch::Ticks;

/// The overrides.
#[derive(Debug)]
pub(crate) struct Overrides {
    by_id: bool,
    limit: usize,
    held: BTreeMap<InstanceKey, Override>,
    /// Those of absent instances, the next to be forgotten first.
    absent: BTreeMap<(Ticks, u64), InstanceKey>,
    marks: u64,
    forgotten: u64,
}

/// One of them.
#[derive(Clone, Copy, Debug)]
struct Override {
    status: Status,
    absent: Option<(Ticks, u64)>,
}

impl Overrides {
    /// None. `by_id` keeps them by instance id alone, as Java does; at most `limit` are kept of absent instances.
    pub(crate) fn new(by_id: bool, limit: usize) -> Self {
        Self {
            by_id,
            limit,
            held: BTreeMap::new(),
            absent: BTreeMap::new(),
            marks: 0,
            forgotten: 0,
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    /// How many were forgotten early because of the limit.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The one that applies to an instance.
    pub(crate) fn get(&self, key: &InstanceKey) -> Option<Status> {
        if self.held.is_empty() {
            return None;
        }
        self.held.get(&self.scope(key)).map(|entry| entry.status)
    }

    /// Sets it.
    pub(crate) fn set(&mut self, key: &InstanceKey, status: Status) {
        self.remove(key);
        let entry = Override { status, absent: None };
        self.held.insert(self.scope(key), entry);
    }

    /// Takes it away; tells whether it was there.
    pub(crate) fn remove(&mut self, key: &InstanceKey) -> bool {
        let Some(entry) = self.held.remove(&self.scope(key)) else {
            return false;
        };
        if let Some(mark) = entry.absent {
            self.absent.remove(&mark);
        }
        true
    }

    /// Takes it away if it is only kept, for an instance that is absent.
    pub(crate) fn remove_kept(&mut self, key: &InstanceKey) {
        let entry = self.held.get(&self.scope(key));
        if entry.is_some_and(|entry| entry.absent.is_some()) {
            self.remove(key);
        }
    }

    /// The instance is gone: its override is kept until `until`.
    pub(crate) fn left(&mut self, key: &InstanceKey, until: Ticks) {
        let scope = self.scope(key);
        let Some(entry) = self.held.get_mut(&scope) else {
            return;
        };
        if let Some(mark) = entry.absent {
            self.absent.remove(&mark);
        }
        self.marks += 1;
        let mark = (until, self.marks);
        entry.absent = Some(mark);
        self.absent.insert(mark, scope);
        if self.absent.len() > self.limit {
            self.forget_first();
            self.forgotten += 1;
        }
    }

    /// The instance is there again.
    pub(crate) fn back(&mut self, key: &InstanceKey) {
        if self.absent.is_empty() {
            return;
        }
        let scope = self.scope(key);
        if let Some(mark) = self.held.get_mut(&scope).and_then(|entry| entry.absent.take()) {
            self.absent.remove(&mark);
        }
    }

    /// When the next one is to be forgotten.
    pub(crate) fn next_due(&self) -> Option<Ticks> {
        self.absent.first_key_value().map(|((until, _), _)| *until)
    }

    /// Forgets one that is due.
    pub(crate) fn forget_due(&mut self, now: Ticks) -> bool {
        let due = self.next_due().is_some_and(|until| until <= now);
        if due {
            self.forget_first();
        }
        due
    }

    /// Those behind `after`, by key.
    pub(crate) fn iter(&self, after: Option<&InstanceKey>) -> impl Iterator<Item = (&InstanceKey, Status)> {
        use core::ops::Bound::{Excluded, Unbounded};
        let from = after.map_or(Unbounded, Excluded);
        let entries = self.held.range::<InstanceKey, _>((from, Unbounded));
        entries.map(|(key, entry)| (key, entry.status))
    }

    fn forget_first(&mut self) {
        if let Some((_, key)) = self.absent.pop_first() {
            self.held.remove(&key);
        }
    }

    fn scope(&self, key: &InstanceKey) -> InstanceKey {
        if self.by_id {
            InstanceKey::new("", key.id())
        } else {
            key.clone()
        }
    }
}
