//! A hash table that grows a little with each insertion, so that no single one has to move everything.

use alloc::vec::Vec;
use core::mem;

use hashbrown::HashTable;

/// Entries per part, on average, before a part is split: then those not split yet stay just below 896, where their tables
/// would double.
const LOAD: usize = 430;

/// Many small tables, of which an insertion splits at most one (linear hashing). The caller hashes.
#[derive(Debug)]
pub(crate) struct Table<T> {
    parts: Vec<HashTable<(Kept, T)>>,
    len: usize,
}

/// What is kept of a hash. Half of it is enough: entries are compared besides.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Kept(u32);

/// From this bit on a hash tells the part.
const PART_BITS: u32 = 12;

impl Kept {
    const fn of(hash: u64) -> Self {
        Self(hash as u32)
    }

    /// As a table takes it, which looks at the lowest and at the highest bits.
    const fn spread(self) -> u64 {
        (self.0 as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

impl<T> Table<T> {
    /// An empty table.
    pub(crate) fn new() -> Self {
        Self {
            parts: Vec::new(),
            len: 0,
        }
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The entry with this hash that `matches`.
    pub(crate) fn find(&self, hash: u64, mut matches: impl FnMut(&T) -> bool) -> Option<&T> {
        let part = self.parts.get(self.part(hash))?;
        let kept = Kept::of(hash);
        part.find(kept.spread(), |(other, entry)| *other == kept && matches(entry))
            .map(|(_, entry)| entry)
    }

    /// The same, to be changed (but not in what its hash depends on).
    pub(crate) fn find_mut(&mut self, hash: u64, mut matches: impl FnMut(&T) -> bool) -> Option<&mut T> {
        let part = self.part(hash);
        let kept = Kept::of(hash);
        self.parts
            .get_mut(part)?
            .find_mut(kept.spread(), |(other, entry)| *other == kept && matches(entry))
            .map(|(_, entry)| entry)
    }

    /// Adds an entry that is not there yet.
    pub(crate) fn insert(&mut self, hash: u64, entry: T) {
        if self.len >= self.parts.len() * LOAD {
            self.split();
        }
        self.put(Kept::of(hash), entry);
        self.len += 1;
    }

    /// Takes out the entry with this hash that `matches`.
    pub(crate) fn remove(&mut self, hash: u64, mut matches: impl FnMut(&T) -> bool) -> Option<T> {
        let part = self.part(hash);
        let kept = Kept::of(hash);
        let found = self
            .parts
            .get_mut(part)?
            .find_entry(kept.spread(), |(other, entry)| *other == kept && matches(entry))
            .ok()?;
        self.len -= 1;
        Some(found.remove().0.1)
    }

    /// All entries, in no order: nothing seen outside may depend on it.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.parts.iter().flatten().map(|(_, entry)| entry)
    }

    /// Takes away some of the entries of a table that is not asked for anything else any more; `None` when it is empty.
    pub(crate) fn dismantle(&mut self) -> Option<impl Iterator<Item = T> + use<T>> {
        let part = self.parts.pop()?;
        Some(part.into_iter().map(|(_, entry)| entry))
    }

    /// Adds one part and moves to it what now belongs there, all from one other part.
    fn split(&mut self) {
        let added = self.parts.len();
        self.parts.push(HashTable::new());
        if added == 0 {
            return;
        }
        let highest = 1 << added.ilog2();
        let source = mem::take(&mut self.parts[added - highest]);
        for (kept, entry) in source {
            self.put(kept, entry);
        }
    }

    fn put(&mut self, kept: Kept, entry: T) {
        let part = self.part_of(kept);
        self.parts[part].insert_unique(kept.spread(), (kept, entry), |(kept, _)| kept.spread());
    }

    fn part(&self, hash: u64) -> usize {
        self.part_of(Kept::of(hash))
    }

    /// Which part a hash belongs to: the tables themselves use its lowest bits, so this takes the others.
    fn part_of(&self, kept: Kept) -> usize {
        let mask = self.parts.len().next_power_of_two() - 1;
        let part = kept.0.rotate_right(PART_BITS) as usize & mask;
        if part < self.parts.len() {
            part
        } else {
            part & (mask >> 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LOAD, Table};

    /// Spreads like a hash: the finaliser of SplitMix64.
    fn hash(value: usize) -> u64 {
        let mut mixed = value as u64;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    #[test]
    fn finds_everything_after_every_split() {
        let mut table = Table::new();
        assert_eq!(table.find(hash(0), |_| true), None);
        for value in 0..20 * LOAD {
            table.insert(hash(value), value);
            if value % 97 == 0 {
                assert!((0..=value).all(|old| table.find(hash(old), |entry| *entry == old) == Some(&old)));
            }
        }
        assert_eq!(table.len(), 20 * LOAD);
        assert_eq!(table.parts.len(), 20);
        for value in (0..20 * LOAD).step_by(2) {
            assert_eq!(table.remove(hash(value), |entry| *entry == value), Some(value));
            assert_eq!(table.remove(hash(value), |entry| *entry == value), None);
        }
        assert_eq!(table.len(), 10 * LOAD);
        assert!(table.find(hash(1), |entry| *entry == 1).is_some());
        assert!(table.find(hash(2), |entry| *entry == 2).is_none());
    }

    #[test]
    fn equal_hashes_are_told_apart() {
        let mut table = Table::new();
        table.insert(7, "a");
        table.insert(7, "b");
        assert_eq!(table.find(7, |entry| *entry == "b"), Some(&"b"));
        assert_eq!(table.remove(7, |entry| *entry == "a"), Some("a"));
        assert_eq!(table.find(7, |entry| *entry == "a"), None);
    }
}
