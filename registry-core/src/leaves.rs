//! A list in leaves that copies of it share: a change copies the list of the leaves and one leaf, and the leaf only while
//! somebody else has it too.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::sorted::{Node, Sorted, Sought};

/// The list. Whoever changes it says how many entries a leaf has at most.
#[derive(Clone, Debug)]
pub(crate) struct Leaves<T> {
    /// With twice the bytes of each key that entries have: there are few leaves, and to look into one is dear.
    leaves: Node<Leaf<T>, 16>,
    len: usize,
}

/// Never empty.
#[derive(Debug)]
struct Leaf<T> {
    /// How many entries it has: beside the pointer, so that a place is found without following others.
    len: usize,
    entries: Arc<Node<T>>,
}

impl<T> Clone for Leaf<T> {
    fn clone(&self) -> Self {
        Self {
            len: self.len,
            entries: Arc::clone(&self.entries),
        }
    }
}

/// A leaf stands where its first entry does.
impl<T: Sorted> Sorted for Leaf<T> {
    fn texts(&self) -> [&str; 3] {
        self.entries.items()[0].texts()
    }
}

impl<T> Leaves<T> {
    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The entries of each leaf.
    pub(crate) fn slices(&self) -> impl DoubleEndedIterator<Item = &[T]> {
        self.leaves.items().iter().map(|leaf| leaf.entries.items())
    }

    /// The entries.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.slices().flatten()
    }

    /// The entries from there on.
    pub(crate) fn iter_from(&self, at: usize) -> impl Iterator<Item = &T> {
        let (leaf, offset) = self.find(at);
        let leaves = self.leaves.items().get(leaf..).unwrap_or_default();
        leaves.iter().flat_map(|leaf| leaf.entries.items()).skip(offset)
    }

    /// The entry there.
    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        let (leaf, offset) = self.find(at);
        self.leaves.items().get(leaf)?.entries.items().get(offset)
    }

    /// The first one.
    pub(crate) fn first(&self) -> Option<&T> {
        self.leaves.items().first()?.entries.items().first()
    }

    /// What it costs to drop them: one for each leaf that somebody else has too, two for each other entry.
    pub(crate) fn weight(&self) -> usize {
        let weight = |leaf: &Leaf<T>| match Arc::strong_count(&leaf.entries) {
            1 => 2 * leaf.len,
            _ => 1,
        };
        self.leaves.items().iter().map(weight).sum()
    }

    /// The last entry, if nobody else has it, for taking all apart; leaves that somebody has are let go of.
    pub(crate) fn last_own(&mut self) -> Option<&mut T> {
        self.own_end()?.last_mut()
    }

    /// The same, taken out.
    pub(crate) fn pop_own(&mut self) -> Option<T> {
        self.own_end()?.pop()
    }

    /// The last leaf that is not empty, of those that nobody else has.
    fn own_end(&mut self) -> Option<&mut Vec<T>> {
        let leaves = self.leaves.ruins();
        while let Some(leaf) = leaves.last_mut() {
            if leaf.entries.len() > 0 && Arc::get_mut(&mut leaf.entries).is_some() {
                break;
            }
            leaves.pop();
        }
        Some(Arc::get_mut(&mut leaves.last_mut()?.entries)?.ruins())
    }

    /// The leaf of an entry, and where in the leaf it is. What is behind all entries is behind all leaves.
    fn find(&self, at: usize) -> (usize, usize) {
        let mut offset = at;
        for (index, leaf) in self.leaves.items().iter().enumerate() {
            if offset < leaf.len {
                return (index, offset);
            }
            offset -= leaf.len;
        }
        (self.leaves.len(), 0)
    }
}

impl<T: Clone + Sorted> Leaves<T> {
    /// Nothing.
    pub(crate) fn empty() -> Self {
        Self {
            leaves: Node::empty(),
            len: 0,
        }
    }

    /// One entry.
    pub(crate) fn of(entry: T) -> Self {
        Self {
            leaves: Node::of(Leaf::of(Node::of(entry))),
            len: 1,
        }
    }

    /// How many entries are not behind what is sought.
    pub(crate) fn partition(&self, sought: &Sought<'_>) -> usize {
        let (before, leaf) = self.leaf(sought);
        before + leaf.map_or(0, |leaf| leaf.entries.partition(sought))
    }

    /// Where the entry is, or belongs.
    pub(crate) fn search(&self, sought: &Sought<'_>) -> Result<usize, usize> {
        let (before, leaf) = self.leaf(sought);
        let found = leaf.map_or(Err(0), |leaf| leaf.entries.search(sought));
        found.map(|at| before + at).map_err(|at| before + at)
    }

    /// The leaf in which an entry is or belongs, and how many entries are in those before it.
    fn leaf(&self, sought: &Sought<'_>) -> (usize, Option<&Leaf<T>>) {
        let index = self.leaves.partition(sought).saturating_sub(1);
        let (before, rest) = self.leaves.items().split_at(index);
        (before.iter().map(|leaf| leaf.len).sum(), rest.first())
    }

    /// The entry there, to be changed in all but its key, unless [`renamed`](Self::renamed) is told.
    pub(crate) fn item_mut(&mut self, at: usize) -> &mut T {
        let (leaf, offset) = self.find(at);
        self.leaves.item_mut(leaf).own(0).item_mut(offset)
    }

    /// The key of the entry there has changed.
    pub(crate) fn renamed(&mut self, at: usize) {
        let (leaf, offset) = self.find(at);
        self.leaves.item_mut(leaf).own(0).renamed(offset);
        if offset == 0 {
            self.leaves.renamed(leaf);
        }
    }

    /// Puts an entry in its place.
    pub(crate) fn insert(&mut self, at: usize, entry: T, width: usize) {
        // Between two leaves it goes behind the one before, so that entries that come in order fill one after the other.
        let (index, offset) = match at.checked_sub(1).map(|before| self.find(before)) {
            Some((index, offset)) => (index, offset + 1),
            None => (0, 0),
        };
        if self.len == 0 {
            *self = Self::of(entry);
            return;
        }
        self.len += 1;
        let leaf = self.leaves.item_mut(index);
        leaf.len += 1;
        leaf.own(1).insert(offset, entry);
        let rest = (leaf.len > width).then(|| leaf.split_off(half(leaf.len, offset)));
        if offset == 0 {
            self.leaves.renamed(index);
        }
        if let Some(rest) = rest {
            self.leaves.insert(index + 1, rest);
        }
    }

    /// Takes out the entry there.
    pub(crate) fn remove(&mut self, at: usize, width: usize) -> T {
        let (index, offset) = self.find(at);
        self.len -= 1;
        let leaf = self.leaves.item_mut(index);
        leaf.len -= 1;
        let entry = leaf.own(0).remove(offset);
        if leaf.len == 0 {
            self.leaves.remove(index);
            return entry;
        }
        let was_first = offset == 0;
        if was_first {
            self.leaves.renamed(index);
        }
        self.join(index, width);
        entry
    }

    /// Takes out the entries from there on.
    pub(crate) fn split_off(&mut self, at: usize) -> Self {
        let (index, offset) = self.find(at);
        let len = self.len - at;
        self.len = at;
        if offset == 0 {
            let leaves = self.leaves.split_off(index);
            return Self { leaves, len };
        }
        let rest = self.leaves.item_mut(index).split_off(offset);
        let mut leaves = self.leaves.split_off(index + 1);
        leaves.insert(0, rest);
        Self { leaves, len }
    }

    /// Adds those of another, which all lie behind.
    pub(crate) fn append(&mut self, other: &Self, width: usize) {
        let seam = self.leaves.len();
        self.len += other.len;
        self.leaves.append(&other.leaves);
        self.join(seam, width);
    }

    /// Joins a leaf that has become small with its neighbour, if that is small too.
    fn join(&mut self, at: usize, width: usize) {
        let len = |leaf: usize| Some(self.leaves.items().get(leaf)?.len);
        if let Some(first) = small_pair(at, width / 2, len) {
            let next = self.leaves.remove(first + 1);
            let leaf = self.leaves.item_mut(first);
            leaf.len += next.len;
            leaf.own(next.len).append(&next.entries);
        }
    }
}

impl<T> Leaf<T> {
    fn of(entries: Node<T>) -> Self {
        Self {
            len: entries.len(),
            entries: Arc::new(entries),
        }
    }
}

impl<T: Clone + Sorted> Leaf<T> {
    /// The entries, to be changed; copied if somebody else has them, with room for so many more.
    fn own(&mut self, room: usize) -> &mut Node<T> {
        if Arc::get_mut(&mut self.entries).is_none() {
            self.entries = Arc::new(self.entries.copy(room));
        }
        Arc::get_mut(&mut self.entries).expect("nobody else has a leaf just made")
    }

    fn split_off(&mut self, at: usize) -> Self {
        self.len = at;
        Self::of(self.own(0).split_off(at))
    }
}

/// Where to cut a list of `len` entries that is too long since one was put at `inserted`: in the middle, but before that one
/// if it came last, as it does when entries come in order.
pub(crate) fn half(len: usize, inserted: usize) -> usize {
    if inserted + 1 == len { inserted } else { len / 2 }
}

/// The first of two neighbours that have at most so many entries together: the one at `at`, or the one before it.
pub(crate) fn small_pair(at: usize, most: usize, len: impl Fn(usize) -> Option<usize>) -> Option<usize> {
    let small = |first: usize| (len(first)? + len(first + 1)? <= most).then_some(first);
    small(at).or_else(|| small(at.checked_sub(1)?))
}
