//! Where something is in a sorted list of pointers, mostly without following them.
//!
//! A binary search among a million instances compares twenty times, and each comparison used to wait for memory three or
//! four times: for the instance, its application, its id. Here every list has a few bytes of each key beside its pointers,
//! those behind what all its keys begin with, so that a search follows one or two pointers.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::Range;

/// Sorted by three texts, one after the other; who has less leaves the last ones empty.
pub(crate) trait Sorted {
    /// They.
    fn texts(&self) -> [&str; 3];
}

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sought<'a> {
    texts: [&'a str; 3],
    /// How many of the texts count.
    given: usize,
    edge: Edge,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Edge {
    /// Before all entries that begin with the texts.
    Before,
    /// The entry with exactly these.
    Exact,
    /// Behind all that begin with them.
    Behind,
}

/// Entries with the first `HEAD` bytes of their keys behind what all begin with. One unbroken sequence of bytes stands for a
/// key: each text with its bytes raised by one, then a zero, so that sequences are ordered as the keys are.
#[derive(Clone, Debug)]
pub(crate) struct Node<T, const HEAD: usize = 8> {
    /// With this all keys begin.
    prefix: Box<[u8]>,
    /// The bytes of each key behind that.
    heads: Vec<[u8; HEAD]>,
    items: Vec<T>,
}

impl<'a> Sought<'a> {
    /// The entry with these texts.
    pub(crate) const fn exactly(texts: [&'a str; 3]) -> Self {
        Self {
            texts,
            given: 3,
            edge: Edge::Exact,
        }
    }

    /// The place before the first entry with this first text.
    pub(crate) const fn before(text: &'a str) -> Self {
        Self {
            texts: [text, "", ""],
            given: 1,
            edge: Edge::Before,
        }
    }

    /// The place behind the last one.
    pub(crate) const fn behind(text: &'a str) -> Self {
        Self {
            edge: Edge::Behind,
            ..Self::before(text)
        }
    }

    /// The place behind the entry with these texts.
    pub(crate) const fn after(texts: [&'a str; 3]) -> Self {
        Self {
            texts,
            given: 3,
            edge: Edge::Behind,
        }
    }

    /// How an entry compares with it.
    pub(crate) fn order(&self, entry: &impl Sorted) -> Ordering {
        let texts = entry.texts();
        let order = texts[..self.given].cmp(&self.texts[..self.given]);
        order.then(match self.edge {
            Edge::Before => Ordering::Greater,
            Edge::Exact => Ordering::Equal,
            Edge::Behind => Ordering::Less,
        })
    }

    fn texts(&self) -> &[&'a str] {
        &self.texts[..self.given]
    }

    /// What stands behind the texts, as far as it matters.
    fn padding(&self) -> u8 {
        if self.edge == Edge::Behind { u8::MAX } else { 0 }
    }
}

impl<T: Sorted, const HEAD: usize> Node<T, HEAD> {
    /// Of one entry.
    pub(crate) fn of(item: T) -> Self {
        let mut node = Self {
            items: alloc::vec![item],
            ..Self::empty()
        };
        node.look_again();
        node
    }

    /// Nothing.
    pub(crate) fn empty() -> Self {
        Self {
            prefix: Box::default(),
            heads: Vec::new(),
            items: Vec::new(),
        }
    }

    /// How many entries are not behind what is sought.
    pub(crate) fn partition(&self, sought: &Sought<'_>) -> usize {
        let Some(same) = self.undecided(sought) else {
            return 0;
        };
        let start = same.start;
        start + self.items[same].partition_point(|item| sought.order(item).is_le())
    }

    /// Where the entry is, or belongs.
    pub(crate) fn search(&self, sought: &Sought<'_>) -> Result<usize, usize> {
        let Some(same) = self.undecided(sought) else {
            return Err(0);
        };
        let start = same.start;
        let found = self.items[same].binary_search_by(|item| sought.order(item));
        found.map(|at| start + at).map_err(|at| start + at)
    }

    /// Puts an entry in its place.
    pub(crate) fn insert(&mut self, at: usize, item: T) {
        grow(&mut self.items);
        self.items.insert(at, item);
        if begins_with(&self.items[at].texts(), 0, &self.prefix).is_eq() {
            grow(&mut self.heads);
            self.heads
                .insert(at, head(&self.items[at].texts(), self.prefix.len(), 0));
        } else {
            self.look_again();
        }
    }

    /// Takes out an entry.
    pub(crate) fn remove(&mut self, at: usize) -> T {
        self.heads.remove(at);
        self.items.remove(at)
    }

    /// The key of the entry there has changed.
    pub(crate) fn renamed(&mut self, at: usize) {
        let texts = self.items[at].texts();
        if begins_with(&texts, 0, &self.prefix).is_eq() {
            self.heads[at] = head(&texts, self.prefix.len(), 0);
        } else {
            self.look_again();
        }
    }

    /// The entry there, to be changed in all but its key, unless [`renamed`](Self::renamed) is told.
    pub(crate) fn item_mut(&mut self, at: usize) -> &mut T {
        &mut self.items[at]
    }

    /// Takes out the entries from there on.
    pub(crate) fn split_off(&mut self, at: usize) -> Self {
        let mut behind = Self {
            prefix: self.prefix.clone(),
            heads: self.heads.split_off(at),
            items: self.items.split_off(at),
        };
        for half in [&mut *self, &mut behind] {
            half.heads.shrink_to_fit();
            half.items.shrink_to_fit();
            if half.common() > half.prefix.len() {
                half.look_again();
            }
        }
        behind
    }

    /// Adds those of another, which all lie behind.
    pub(crate) fn append(&mut self, other: &Self)
    where
        T: Clone,
    {
        self.items.extend_from_slice(&other.items);
        self.look_again();
    }

    /// The same entries, with room for so many more.
    pub(crate) fn copy(&self, room: usize) -> Self
    where
        T: Clone,
    {
        let mut copy = Self {
            prefix: self.prefix.clone(),
            heads: Vec::with_capacity(self.len() + room),
            items: Vec::with_capacity(self.len() + room),
        };
        copy.heads.extend_from_slice(&self.heads);
        copy.items.extend_from_slice(&self.items);
        copy
    }

    /// The entries whose heads are those of what is sought; all before them are before it, all behind them behind it.
    /// `None` if all are behind it.
    fn undecided(&self, sought: &Sought<'_>) -> Option<Range<usize>> {
        let len = self.items.len();
        match begins_with(sought.texts(), sought.padding(), &self.prefix) {
            Ordering::Less => return None,
            Ordering::Greater => return Some(len..len),
            Ordering::Equal => {}
        }
        let wanted = head(sought.texts(), self.prefix.len(), sought.padding());
        let start = self.heads.partition_point(|head| *head < wanted);
        let same = self.heads[start..].partition_point(|head| *head == wanted);
        Some(start..start + same)
    }

    /// Makes prefix and heads anew.
    fn look_again(&mut self) {
        let common = self.common();
        let first = self.items.first().map(Sorted::texts);
        let bytes = first.iter().flatten().flat_map(|text| bytes(text));
        self.prefix = bytes.take(common).collect();
        let heads = self.items.iter().map(|item| head(&item.texts(), common, 0));
        self.heads = heads.collect();
    }

    /// How many bytes all keys have in common: those that the first and the last have.
    fn common(&self) -> usize {
        let (Some(first), Some(last)) = (self.items.first(), self.items.last()) else {
            return 0;
        };
        let mut common = 0;
        for (one, other) in first.texts().iter().zip(last.texts()) {
            let pairs = one.bytes().zip(other.bytes());
            let same = pairs.take_while(|(one, other)| one == other).count();
            common += same;
            if same < one.len().max(other.len()) {
                return common;
            }
            common += 1;
        }
        common
    }
}

impl<T, const HEAD: usize> Node<T, HEAD> {
    /// The entries.
    pub(crate) fn items(&self) -> &[T] {
        &self.items
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// The entries, to be taken apart: nothing is found any more.
    pub(crate) fn ruins(&mut self) -> &mut Vec<T> {
        &mut self.items
    }
}

/// Makes room for one more, and for a few, but not for twice as many: there are many lists.
fn grow<T>(list: &mut Vec<T>) {
    if list.len() == list.capacity() {
        list.reserve_exact((list.len() / 8).max(4));
    }
}

/// The bytes that stand for a text.
fn bytes(text: &str) -> impl Iterator<Item = u8> {
    // No byte of UTF-8 is so high that adding one would overflow.
    text.bytes().map(|byte| byte + 1).chain([0])
}

/// How the beginning of a key, followed by `padding`, compares with a prefix.
fn begins_with(texts: &[&str], padding: u8, prefix: &[u8]) -> Ordering {
    let mut rest = prefix;
    for text in texts {
        let same = text.len().min(rest.len());
        let (own, other) = (&text.as_bytes()[..same], &rest[..same]);
        for (own, other) in own.iter().zip(other) {
            let order = (own + 1).cmp(other);
            if order.is_ne() {
                return order;
            }
        }
        rest = &rest[same..];
        match rest.split_first() {
            None => return Ordering::Equal,
            Some((0, behind)) => rest = behind,
            Some(_) => return Ordering::Less,
        }
    }
    match rest.first() {
        None => Ordering::Equal,
        Some(next) => padding.cmp(next),
    }
}

/// The bytes of a key behind the first `skipped`, followed by `padding`.
fn head<const HEAD: usize>(texts: &[&str], mut skipped: usize, padding: u8) -> [u8; HEAD] {
    let mut head = [padding; HEAD];
    let mut filled = 0;
    for text in texts {
        let Some(rest) = text.as_bytes().get(skipped..) else {
            skipped -= text.len() + 1;
            continue;
        };
        skipped = 0;
        for byte in rest.iter().map(|byte| byte + 1).chain([0]) {
            let Some(place) = head.get_mut(filled) else {
                return head;
            };
            *place = byte;
            filled += 1;
        }
    }
    head
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec::Vec;
    use core::cmp::Ordering;

    use super::{Node, Sorted, Sought};
    use crate::rng::Rng;

    #[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
    struct Key([String; 3]);

    impl Sorted for Key {
        fn texts(&self) -> [&str; 3] {
            self.0.each_ref().map(|text| &**text)
        }
    }

    /// Texts that begin alike, contain each other and have the lowest and highest characters.
    fn key(rng: &mut Rng) -> Key {
        let mut text = || {
            let mut text = String::from(["", "common-", "common-prefix-of-many"][rng.below(3)]);
            for _ in 0..rng.below(4) {
                text.push(['\0', '\u{1}', 'a', 'b', '\u{10ffff}'][rng.below(5)]);
            }
            text
        };
        Key([text(), text(), text()])
    }

    #[test]
    fn finds_what_a_plain_search_finds() {
        let mut rng = Rng::new(7);
        for round in 0..30 {
            let mut model: Vec<Key> = Vec::new();
            let mut node = Node::<_>::empty();
            for step in 0..300 {
                let key = key(&mut rng);
                let sought = Sought::exactly(key.texts());
                let found = model.binary_search(&key);
                assert_eq!(node.search(&sought), found);
                match found {
                    Err(at) => {
                        model.insert(at, key);
                        node.insert(at, model[at].clone());
                    }
                    Ok(at) if step % 3 == 0 => {
                        model.remove(at);
                        node.remove(at);
                    }
                    Ok(_) => {}
                }
            }
            let behind = node.split_off(model.len() / (1 + round % 3));
            let model_behind = model.split_off(node.len());
            for (node, model) in [(&node, &model), (&behind, &model_behind)] {
                assert_eq!(node.items(), model);
                for _ in 0..100 {
                    check(node, model, &key(&mut rng));
                }
            }
            node.append(&behind);
            model.extend(model_behind);
            check(&node, &model, &key(&mut rng));
        }
    }

    fn check(node: &Node<Key>, model: &[Key], key: &Key) {
        let first = &key.0[0];
        let count = |is_in: &dyn Fn(&Key) -> bool| model.iter().filter(|other| is_in(other)).count();
        let exactly = Sought::exactly(key.texts());
        assert_eq!(node.partition(&exactly), count(&|other| other <= key));
        let (Ok(at) | Err(at)) = node.search(&exactly);
        assert_eq!(at, count(&|other| other < key));
        let after = node.search(&Sought::after(key.texts()));
        assert_eq!(after, Err(count(&|other| other <= key)));
        let before = node.search(&Sought::before(first));
        assert_eq!(before, Err(count(&|other| other.0[0] < *first)));
        let behind = node.search(&Sought::behind(first));
        assert_eq!(behind, Err(count(&|other| other.0[0] <= *first)));
        assert_eq!(exactly.order(key), Ordering::Equal);
    }
}
