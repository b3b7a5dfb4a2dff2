//! Statuses that operators set, also of instances that were evicted meanwhile, and that they were cleared.

use alloc::collections::BTreeMap;
use core::hash::BuildHasher as _;

use crate::hash::Keyed;
use crate::model::{InstanceKey, Status};
use crate::repair::{Stamp, Stamped};
use crate::table::Table;
use crate::time::Wall;
use crate::watch::Ticks;

/// A stamp that is ahead of the clock here by more than this (milliseconds) comes from a clock that was wrong, and counts as
/// older than all others: else nobody could set or clear that override again.
const AHEAD: u64 = 24 * 60 * 60 * 1_000;

/// The overrides.
#[derive(Debug)]
pub(crate) struct Overrides {
    by_id: bool,
    limit: usize,
    /// First half of the id of this node.
    node: u64,
    held: BTreeMap<InstanceKey, Override>,
    /// Those of absent instances, the next to be forgotten first.
    absent: BTreeMap<(Ticks, u64), InstanceKey>,
    /// Those that were cleared, so that nobody's older word brings them back.
    cleared: Table<(InstanceKey, Cleared)>,
    keyed: Keyed,
    /// The same, the next to be forgotten first.
    cleared_by_age: BTreeMap<(Ticks, u64), InstanceKey>,
    marks: u64,
    forgotten: u64,
}

/// One of them.
#[derive(Clone, Copy, Debug)]
struct Override {
    status: Status,
    stamp: Stamp,
    absent: Option<(Ticks, u64)>,
}

/// One that is no more.
#[derive(Clone, Copy, Debug)]
struct Cleared {
    stamp: Stamp,
    mark: (Ticks, u64),
}

impl Overrides {
    /// None. `by_id` keeps them by instance id alone, as Java does; at most `limit` are kept of absent instances, and as
    /// many are remembered that were cleared. `node` is for their stamps.
    pub(crate) fn new(by_id: bool, limit: usize, node: u64, keyed: Keyed) -> Self {
        Self {
            by_id,
            limit,
            node,
            held: BTreeMap::new(),
            absent: BTreeMap::new(),
            cleared: Table::new(),
            keyed,
            cleared_by_age: BTreeMap::new(),
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

    /// The same with its stamp, or that it was cleared.
    pub(crate) fn stamped(&self, key: &InstanceKey) -> Option<Stamped> {
        if self.held.is_empty() && self.cleared.len() == 0 {
            return None;
        }
        let scope = self.scope(key);
        if let Some(entry) = self.held.get(&scope) {
            return Some(Stamped {
                status: Some(entry.status),
                stamp: entry.stamp,
            });
        }
        let hash = self.keyed.hash_one(&scope);
        let (_, cleared) = self.cleared.find(hash, |(other, _)| *other == scope)?;
        Some(Stamped {
            status: None,
            stamp: cleared.stamp,
        })
    }

    /// Sets it, now by the clock on the wall.
    pub(crate) fn set(&mut self, now: Wall, key: &InstanceKey, status: Status) {
        let stamp = self.stamp(now, key);
        self.put(key, status, stamp);
    }

    /// Clears it, now by the clock on the wall; tells whether it was there. That is remembered until `until`.
    pub(crate) fn clear(&mut self, now: Wall, key: &InstanceKey, until: Ticks) -> bool {
        let stamp = self.stamp(now, key);
        let removed = self.remove(key);
        if removed {
            self.remember(key, stamp, until);
        }
        removed
    }

    /// Takes over what another node knows, if that is newer: by the stamp. Tells whether the status is another now. A clear
    /// is remembered until `until`.
    pub(crate) fn merge(&mut self, now: Wall, key: &InstanceKey, theirs: Stamped, until: Ticks) -> bool {
        let ours = self.stamped(key);
        if ours.is_some_and(|ours| rank(now, theirs) <= rank(now, ours)) {
            return false;
        }
        let theirs = Stamped {
            stamp: believed(now, theirs.stamp),
            ..theirs
        };
        let before = ours.and_then(|ours| ours.status);
        match theirs.status {
            // The same, but newer: only the stamp is taken.
            Some(status) if before == Some(status) => {
                let scope = self.scope(key);
                if let Some(entry) = self.held.get_mut(&scope) {
                    entry.stamp = theirs.stamp;
                }
            }
            Some(status) => self.put(key, status, theirs.stamp),
            None => {
                self.remove(key);
                self.remember(key, theirs.stamp, until);
            }
        }
        theirs.status != before
    }

    /// Takes it away, and remembers nothing; tells whether it was there.
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
            self.forget_absent();
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
        let due = |queue: &BTreeMap<(Ticks, u64), _>| queue.first_key_value().map(|((until, _), _)| *until);
        [due(&self.absent), due(&self.cleared_by_age)]
            .into_iter()
            .flatten()
            .min()
    }

    /// Forgets one that is due.
    pub(crate) fn forget_due(&mut self, now: Ticks) -> bool {
        let is_due = |queue: &BTreeMap<(Ticks, u64), _>| {
            queue
                .first_key_value()
                .is_some_and(|((until, _), _)| *until <= now)
        };
        if is_due(&self.absent) {
            self.forget_absent();
            true
        } else if is_due(&self.cleared_by_age) {
            self.forget_cleared();
            true
        } else {
            false
        }
    }

    /// Those behind `after`, by key.
    pub(crate) fn iter(&self, after: Option<&InstanceKey>) -> impl Iterator<Item = (&InstanceKey, Status)> {
        use core::ops::Bound::{Excluded, Unbounded};
        let from = after.map_or(Unbounded, Excluded);
        let entries = self.held.range::<InstanceKey, _>((from, Unbounded));
        entries.map(|(key, entry)| (key, entry.status))
    }

    /// Of a change made here now: greater than that of whatever is known, for other clocks may be ahead of ours.
    fn stamp(&self, now: Wall, key: &InstanceKey) -> Stamp {
        let known = self
            .stamped(key)
            .map_or(0, |known| believed(now, known.stamp).at.0.saturating_add(1));
        Stamp {
            at: Wall(now.0.max(known)),
            node: self.node,
        }
    }

    fn put(&mut self, key: &InstanceKey, status: Status, stamp: Stamp) {
        self.remove(key);
        let scope = self.scope(key);
        self.forget_clear(&scope);
        let entry = Override {
            status,
            stamp,
            absent: None,
        };
        self.held.insert(scope, entry);
    }

    fn remember(&mut self, key: &InstanceKey, stamp: Stamp, until: Ticks) {
        let scope = self.scope(key);
        self.marks += 1;
        let mark = (until, self.marks);
        self.forget_clear(&scope);
        let hash = self.keyed.hash_one(&scope);
        self.cleared
            .insert(hash, (scope.clone(), Cleared { stamp, mark }));
        self.cleared_by_age.insert(mark, scope);
        if self.cleared.len() > self.limit {
            self.forget_cleared();
            self.forgotten += 1;
        }
    }

    fn forget_absent(&mut self) {
        if let Some((_, key)) = self.absent.pop_first() {
            self.held.remove(&key);
        }
    }

    fn forget_cleared(&mut self) {
        if let Some((_, key)) = self.cleared_by_age.pop_first() {
            self.take_clear(&key);
        }
    }

    fn forget_clear(&mut self, scope: &InstanceKey) {
        if let Some(cleared) = self.take_clear(scope) {
            self.cleared_by_age.remove(&cleared.mark);
        }
    }

    fn take_clear(&mut self, scope: &InstanceKey) -> Option<Cleared> {
        if self.cleared.len() == 0 {
            return None;
        }
        let hash = self.keyed.hash_one(scope);
        let (_, cleared) = self.cleared.remove(hash, |(other, _)| other == scope)?;
        Some(cleared)
    }

    fn scope(&self, key: &InstanceKey) -> InstanceKey {
        if self.by_id {
            InstanceKey::new("", key.id())
        } else {
            key.clone()
        }
    }
}

/// The greater of two wins. Equal stamps are of one change, or of two nodes that took the same half of an id: then any
/// rule will do that is the same on both sides.
pub(crate) fn rank(now: Wall, stamped: Stamped) -> (Stamp, Option<&'static str>) {
    (believed(now, stamped.stamp), stamped.status.map(Status::as_str))
}

/// The stamp as it counts: from the beginning of time if its clock was wrong.
fn believed(now: Wall, stamp: Stamp) -> Stamp {
    if stamp.at.0 > now.0.saturating_add(AHEAD) {
        Stamp { at: Wall(0), ..stamp }
    } else {
        stamp
    }
}
