//! Text pairs in one piece of memory: an instance has a few short ones, and there are many instances.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

/// Text pairs in the order they were given, each key once; cheap to clone.
#[derive(Clone, Default, Eq, Hash, PartialEq)]
pub struct Metadata {
    /// `None` without pairs. Else how many there are, then the length of each text before it, as [`write_number`] does it:
    /// a text for each key and value would cost more in counters and rounding than what is in it.
    packed: Option<Arc<str>>,
}

/// Bits of a number in one character, all of which are ASCII: the packed form is a text.
const DIGIT: u32 = 6;
/// Marks a digit behind which more follow.
const MORE: u8 = 1 << DIGIT;
/// Up to this many pairs, looking through all of them for each is quicker than sorting them.
const FEW: usize = 16;

impl Metadata {
    /// The pairs, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        let mut pairs = Pairs {
            rest: self.packed.as_deref().unwrap_or_default(),
            left: 0,
        };
        if !pairs.rest.is_empty() {
            pairs.left = pairs.number();
        }
        pairs
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter()
            .find_map(|(name, value)| (name == key).then_some(value))
    }

    /// Whether there is no pair.
    pub fn is_empty(&self) -> bool {
        self.packed.is_none()
    }

    /// How many pairs there are.
    pub fn len(&self) -> usize {
        self.iter().len()
    }

    /// Bytes of all keys and values: what the limit on metadata counts.
    pub fn bytes(&self) -> usize {
        self.iter().map(|(key, value)| key.len() + value.len()).sum()
    }

    /// Sets `key` to `value`, in its old place if it was there. Takes time for all pairs; see [`extend`](Self::extend).
    pub fn insert(&mut self, key: &str, value: &str) {
        let mut pairs: Vec<_> = self.iter().collect();
        match pairs.iter_mut().find(|(name, _)| *name == key) {
            Some(pair) => pair.1 = value,
            None => pairs.push((key, value)),
        }
        *self = Self::packing(&pairs);
    }

    /// Bytes of memory it takes, allocator aside.
    pub(crate) fn held_bytes(&self) -> usize {
        self.packed.as_deref().map_or(0, str::len)
    }

    /// The same pairs in the memory of `other`, if those are the same.
    pub(crate) fn share(&mut self, other: &Self) {
        if self.packed == other.packed {
            self.packed.clone_from(&other.packed);
        }
    }

    /// Keys come once.
    fn packing(pairs: &[(&str, &str)]) -> Self {
        if pairs.is_empty() {
            return Self::default();
        }
        let texts = || pairs.iter().flat_map(|(key, value)| [*key, *value]);
        let len: usize = texts().map(|text| digits(text.len()) + text.len()).sum();
        let mut packed = String::with_capacity(digits(pairs.len()) + len);
        write_number(pairs.len(), &mut packed);
        for text in texts() {
            write_number(text.len(), &mut packed);
            packed.push_str(text);
        }
        Self {
            packed: Some(Arc::from(packed)),
        }
    }
}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl Extend<(Arc<str>, Arc<str>)> for Metadata {
    /// Sets each key, as [`insert`](Metadata::insert) does one by one, but in a time that does not grow with the product
    /// of both numbers of pairs: an attacker chooses both.
    fn extend<T: IntoIterator<Item = (Arc<str>, Arc<str>)>>(&mut self, pairs: T) {
        let mut values: BTreeMap<Arc<str>, Arc<str>> = BTreeMap::new();
        let mut order = Vec::new();
        for (key, value) in pairs {
            if values.insert(Arc::clone(&key), value).is_none() {
                order.push(key);
            }
        }
        let mut held: Vec<(&str, &str)> = self.iter().collect();
        let mut known = Vec::new();
        for (key, old) in &mut held {
            if let Some((key, value)) = values.get_key_value(*key) {
                known.push(key);
                *old = value;
            }
        }
        known.sort_unstable();
        let new = order.iter().filter(|key| known.binary_search(key).is_err());
        held.extend(new.filter_map(|key| Some((&**key, &**values.get(key)?))));
        *self = Self::packing(&held);
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for Metadata {
    /// Later pairs replace earlier ones of the same key.
    fn from_iter<T: IntoIterator<Item = (&'a str, &'a str)>>(pairs: T) -> Self {
        let mut pairs: Vec<_> = pairs.into_iter().collect();
        let is_new = |index: usize| pairs[..index].iter().all(|(key, _)| *key != pairs[index].0);
        if pairs.len() > FEW || !(1..pairs.len()).all(is_new) {
            pairs = once_each(&pairs);
        }
        Self::packing(&pairs)
    }
}

/// Each key where it first came, with the value that came last.
fn once_each<'a>(pairs: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    // Sorted by key, equal keys in their order. Inserting one by one would take quadratic time, and how many there are is
    // for an attacker to choose.
    let mut order: Vec<usize> = (0..pairs.len()).collect();
    order.sort_by_key(|&index| pairs[index].0);
    let mut values = alloc::vec![None; pairs.len()];
    for run in order.chunk_by(|&a, &b| pairs[a].0 == pairs[b].0) {
        values[run[0]] = run.last().map(|&last| pairs[last].1);
    }
    let kept = pairs.iter().zip(values);
    kept.filter_map(|((key, _), value)| Some((*key, value?)))
        .collect()
}

/// The pairs that are still to come.
struct Pairs<'a> {
    rest: &'a str,
    left: usize,
}

impl<'a> Pairs<'a> {
    fn number(&mut self) -> usize {
        let mut number = 0;
        for (index, digit) in self.rest.bytes().enumerate() {
            number |= usize::from(digit & (MORE - 1)) << (DIGIT as usize * index);
            if digit & MORE == 0 {
                self.rest = &self.rest[index + 1..];
                break;
            }
        }
        number
    }

    fn text(&mut self) -> &'a str {
        let len = self.number();
        let (text, rest) = self.rest.split_at(len);
        self.rest = rest;
        text
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let key = self.text();
        Some((key, self.text()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Pairs<'_> {}

/// Characters that [`write_number`] writes.
const fn digits(number: usize) -> usize {
    match number.checked_ilog2() {
        Some(bits) => (bits / DIGIT) as usize + 1,
        None => 1,
    }
}

/// Writes a number in digits of six bits, the lowest first.
fn write_number(mut number: usize, packed: &mut String) {
    loop {
        let digit = number as u8 & (MORE - 1);
        number >>= DIGIT;
        if number == 0 {
            packed.push(digit.into());
            return;
        }
        packed.push((digit | MORE).into());
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::sync::Arc;
    use alloc::vec::Vec;

    use super::{FEW, Metadata, digits, write_number};

    #[test]
    fn setting_many_pairs_is_setting_them_one_by_one() {
        let held: Metadata = [("a", "1"), ("b", "2"), ("c", "3")].into_iter().collect();
        let given = [("d", "4"), ("b", "5"), ("e", "6"), ("d", "7"), ("a", "8")];
        let mut one_by_one = held.clone();
        for (key, value) in given {
            one_by_one.insert(key, value);
        }
        let mut at_once = held;
        at_once.extend(given.map(|(key, value)| (Arc::from(key), Arc::from(value))));
        assert_eq!(at_once, one_by_one);
        let pairs: Vec<_> = at_once.iter().collect();
        assert_eq!(
            pairs,
            [("a", "8"), ("b", "5"), ("c", "3"), ("d", "7"), ("e", "6")]
        );
    }

    #[test]
    fn later_pairs_replace_earlier_ones_few_or_many() {
        for count in [2, FEW, FEW + 1, 200] {
            let keys: Vec<String> = (0..count).map(|key| alloc::format!("{}", key % 7)).collect();
            let mut one_by_one = Metadata::default();
            for key in &keys {
                one_by_one.insert(key, key);
            }
            one_by_one.insert("0", "last");
            let pairs = keys.iter().map(|key| (&**key, &**key));
            let at_once: Metadata = pairs.chain([("0", "last")]).collect();
            assert_eq!(at_once, one_by_one);
            assert_eq!(at_once.len(), count.min(7));
        }
    }

    #[test]
    fn texts_of_every_length_come_back() {
        for len in [0, 1, 62, 63, 64, 65, 4_095, 4_096, 300_000] {
            let text = "é".repeat(len);
            let metadata: Metadata = [("", &*text), (&*text, ""), ("k", "v")].into_iter().collect();
            let pairs: Vec<_> = metadata.iter().collect();
            if len == 0 {
                assert_eq!(pairs, [("", ""), ("k", "v")]);
            } else {
                assert_eq!(pairs, [("", &*text), (&*text, ""), ("k", "v")]);
                assert_eq!(metadata.bytes(), 4 * len + 2);
            }
        }
        assert!(Metadata::default().is_empty());
    }

    #[test]
    fn numbers_take_the_room_that_was_made_for_them() {
        for number in [0, 1, 63, 64, 4_095, 4_096, 262_143, 262_144, usize::MAX] {
            let mut packed = String::new();
            write_number(number, &mut packed);
            assert_eq!(packed.len(), digits(number), "{number}");
        }
    }
}
