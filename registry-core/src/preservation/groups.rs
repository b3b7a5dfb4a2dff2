//! Leases counted by application or by zone.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::BuildHasher as _;

use super::Share;
use crate::hash::Keyed;
use crate::table::Table;

/// At most this many groups are shown.
const SHOWN: usize = 1_000;
/// At most this many are considered for that: looking at a million would take too long.
const CONSIDERED: usize = 16_384;

/// Which counts still mean something. Forgetting many counts at once is one step here; each is set to zero when it is
/// touched next.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Epoch {
    /// Counts how often those evicted were forgotten.
    pub(super) update: u32,
    /// Counts how often those late were forgotten.
    pub(super) acceptance: u32,
}

/// Expected is the sum of the three.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Counts {
    pub(super) on_time: usize,
    pub(super) late: usize,
    pub(super) evicted: usize,
    epoch: Epoch,
}

/// The counts of all applications, or of all zones.
#[derive(Debug)]
pub(super) struct Groups {
    keyed: Keyed,
    counts: Table<(Arc<str>, Counts)>,
}

impl Counts {
    /// Leases expected.
    pub(super) const fn expected(self) -> usize {
        self.on_time + self.late + self.evicted
    }

    /// What still means something.
    pub(super) fn at(mut self, epoch: Epoch) -> Self {
        if self.epoch.update != epoch.update {
            self.evicted = 0;
        }
        if self.epoch.acceptance != epoch.acceptance {
            self.late = 0;
        }
        self.epoch = epoch;
        self
    }
}

impl Groups {
    /// None.
    pub(super) fn new(keyed: Keyed) -> Self {
        Self {
            keyed,
            counts: Table::new(),
        }
    }

    /// Changes the counts of `name`, which come and go with its leases.
    pub(super) fn change(&mut self, name: &str, epoch: Epoch, change: impl Fn(&mut Counts)) {
        let hash = self.keyed.hash_one(name);
        let is_it = |(other, _): &(Arc<str>, Counts)| **other == *name;
        let known = self.counts.find_mut(hash, is_it);
        let mut counts = known
            .as_ref()
            .map_or_else(Counts::default, |(_, counts)| *counts)
            .at(epoch);
        change(&mut counts);
        match known {
            Some(_) if counts.expected() == 0 => {
                self.counts.remove(hash, is_it);
            }
            Some((_, known)) => *known = counts,
            None if counts.expected() > 0 => self.counts.insert(hash, (Arc::from(name), counts)),
            None => {}
        }
    }

    /// In no order. Of more than a thousand, those that miss somebody come first; of more than 16,384, any so many count.
    pub(super) fn shares(&self, epoch: Epoch) -> Vec<Share> {
        let (mut missing, mut complete) = (Vec::new(), Vec::new());
        for (name, counts) in self.counts.iter().take(CONSIDERED) {
            let counts = counts.at(epoch);
            let kind = if counts.on_time < counts.expected() {
                &mut missing
            } else {
                &mut complete
            };
            if counts.expected() > 0 && kind.len() < SHOWN {
                kind.push(Share {
                    name: Arc::clone(name),
                    expected: counts.expected(),
                    on_time: counts.on_time,
                });
            }
        }
        missing.append(&mut complete);
        missing.truncate(SHOWN);
        missing
    }
}
