//! Cancels that are remembered, so that nothing older brings the instance back.

use alloc::collections::BTreeMap;

use crate::model::InstanceKey;
use crate::watch::Ticks;

/// The cancels remembered.
#[derive(Debug)]
pub(crate) struct Tombstones {
    limit: usize,
    held: BTreeMap<InstanceKey, Tombstone>,
    by_age: BTreeMap<u64, InstanceKey>,
    marks: u64,
    forgotten: u64,
}

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tombstone {
    /// Dirty timestamp of the instance when it was cancelled.
    pub(crate) dirty: i64,
    /// When that was.
    pub(crate) at: Ticks,
    mark: u64,
}

impl Tombstones {
    /// None; at most `limit` are kept.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            held: BTreeMap::new(),
            by_age: BTreeMap::new(),
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

    /// The one of this key.
    pub(crate) fn get(&self, key: &InstanceKey) -> Option<Tombstone> {
        self.held.get(key).copied()
    }

    /// Remembers a cancel.
    pub(crate) fn add(&mut self, now: Ticks, key: &InstanceKey, dirty: i64) {
        self.remove(key);
        self.marks += 1;
        let mark = self.marks;
        let tombstone = Tombstone { dirty, at: now, mark };
        self.held.insert(key.clone(), tombstone);
        self.by_age.insert(mark, key.clone());
        if self.held.len() > self.limit {
            self.forget_first();
            self.forgotten += 1;
        }
    }

    /// Forgets the one of this key.
    pub(crate) fn remove(&mut self, key: &InstanceKey) {
        if let Some(tombstone) = self.held.remove(key) {
            self.by_age.remove(&tombstone.mark);
        }
    }

    /// When the oldest was added.
    pub(crate) fn oldest(&self) -> Option<Ticks> {
        let (_, key) = self.by_age.first_key_value()?;
        self.held.get(key).map(|tombstone| tombstone.at)
    }

    /// Forgets the oldest if it was added by `then`.
    pub(crate) fn forget_older(&mut self, then: Ticks) -> bool {
        let due = self.oldest().is_some_and(|at| at <= then);
        if due {
            self.forget_first();
        }
        due
    }

    fn forget_first(&mut self) {
        if let Some((_, key)) = self.by_age.pop_first() {
            self.held.remove(&key);
        }
    }
}
