//! Cancels that are remembered, so that nothing older brings the instance back; and, in the same way, registrations that
//! were refused.

use alloc::collections::{BTreeMap, BTreeSet};

use crate::digest::{bucket, key_hash};
use crate::model::InstanceKey;
use crate::watch::Moment;

/// The cancels remembered.
#[derive(Debug)]
pub(crate) struct Tombstones {
    limit: usize,
    held: BTreeMap<InstanceKey, Tombstone>,
    by_age: BTreeMap<(Moment, u64), InstanceKey>,
    by_bucket: BTreeSet<(u16, InstanceKey)>,
    marks: u64,
    forgotten: u64,
}

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tombstone {
    /// Dirty timestamp of the instance when it was cancelled.
    pub(crate) dirty: i64,
    /// When that was.
    pub(crate) at: Moment,
    mark: u64,
}

impl Tombstones {
    /// None; at most `limit` are kept.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            held: BTreeMap::new(),
            by_age: BTreeMap::new(),
            by_bucket: BTreeSet::new(),
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
        if self.held.is_empty() {
            return None;
        }
        self.held.get(key).copied()
    }

    /// Those of a bucket of the digest, in the order of their keys.
    pub(crate) fn of_bucket(&self, bucket: u16) -> impl Iterator<Item = (&InstanceKey, Tombstone)> {
        let from = (bucket, InstanceKey::new("", ""));
        let keys = self
            .by_bucket
            .range(from..)
            .take_while(move |(other, _)| *other == bucket);
        keys.filter_map(|(_, key)| Some((key, self.get(key)?)))
    }

    /// Remembers a cancel at `at`, in place of one that is remembered already.
    pub(crate) fn add(&mut self, at: Moment, key: &InstanceKey, dirty: i64) {
        self.remove(key);
        self.marks += 1;
        let mark = self.marks;
        self.held.insert(key.clone(), Tombstone { dirty, at, mark });
        self.by_age.insert((at, mark), key.clone());
        self.by_bucket.insert((bucket(key_hash(key)), key.clone()));
        if self.held.len() > self.limit {
            self.forget_first();
            self.forgotten += 1;
        }
    }

    /// Forgets the one of this key.
    pub(crate) fn remove(&mut self, key: &InstanceKey) {
        if let Some(tombstone) = self.get(key) {
            self.by_age.remove(&(tombstone.at, tombstone.mark));
            self.forget(key);
        }
    }

    /// When the oldest was cancelled.
    pub(crate) fn oldest(&self) -> Option<Moment> {
        self.by_age.first_key_value().map(|((at, _), _)| *at)
    }

    /// Forgets the oldest if it is `due`, told when it was cancelled.
    pub(crate) fn forget_if(&mut self, due: impl FnOnce(Moment) -> bool) -> bool {
        let due = self.oldest().is_some_and(due);
        if due {
            self.forget_first();
        }
        due
    }

    fn forget_first(&mut self) {
        if let Some((_, key)) = self.by_age.pop_first() {
            self.forget(&key);
        }
    }

    fn forget(&mut self, key: &InstanceKey) {
        self.held.remove(key);
        self.by_bucket.remove(&(bucket(key_hash(key)), key.clone()));
    }
}
