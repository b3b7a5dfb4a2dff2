//! Compares the pages with a plain sorted vector.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Edits, Page, Place};
use crate::rng::Rng;
use crate::sorted::{Sorted, Sought};

const WIDTH: usize = 320;
const LEAF: usize = 32;

type Pages<const WIDTH: usize = 320, const LEAF: usize = 32> = super::Pages<Number, WIDTH, LEAF>;

/// A number and its digits, by which it is sorted.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Number {
    value: u64,
    digits: String,
}

impl From<u64> for Number {
    fn from(value: u64) -> Self {
        let digits = format!("{value:06}");
        Self { value, digits }
    }
}

impl Sorted for Number {
    fn texts(&self) -> [&str; 3] {
        [&self.digits[..2], &self.digits[2..3], &self.digits[3..]]
    }
}

fn entries<const W: usize, const L: usize>(pages: &Pages<W, L>) -> Vec<u64> {
    pages
        .pages()
        .flat_map(|page| page.entries.iter().map(|number| number.value))
        .collect()
}

fn put<const W: usize, const L: usize>(
    pages: &mut Pages<W, L>,
    edits: &mut Edits,
    value: u64,
) -> Option<u64> {
    pages.put(edits, value.into()).map(|number| number.value)
}

fn remove<const W: usize, const L: usize>(
    pages: &mut Pages<W, L>,
    edits: &mut Edits,
    value: u64,
) -> Option<u64> {
    let sought = Number::from(value);
    let removed = pages.remove(edits, &Sought::exactly(sought.texts()));
    removed.map(|number| number.value)
}

fn seek(pages: &Pages, value: u64) -> (Place, bool) {
    pages.seek(&Sought::exactly(Number::from(value).texts()))
}

/// How many entries each leaf of each page has.
fn leaves<const W: usize, const L: usize>(pages: &Pages<W, L>) -> Vec<Vec<usize>> {
    let leaves = |page: &Arc<Page<Number>>| page.entries.slices().map(<[_]>::len).collect();
    pages.pages().map(leaves).collect()
}

#[test]
fn behaves_as_a_sorted_vector_and_old_copies_stay_as_they_were() {
    grow_and_shrink::<WIDTH, LEAF>(30_000, 40_000);
}

#[test]
fn splits_and_joins_on_every_level() {
    let most = grow_and_shrink::<12, 4>(15_000, 10_000);
    assert!(most > 60, "{most} blocks");
    grow_and_shrink::<6, 6>(3_000, 500);
}

/// Grows for so many steps and then shrinks for as many, with values below `values`. The greatest number of blocks.
fn grow_and_shrink<const W: usize, const L: usize>(steps: u64, values: u64) -> usize {
    let mut rng = Rng::new(5);
    let (mut pages, mut edits, mut model) = (Pages::<W, L>::new(), Edits::default(), Vec::new());
    let mut kept = Vec::new();
    let mut blocks = 0;
    for step in 0..2 * steps {
        let value = rng.next_u64() % values;
        let grows = (rng.below(100) < 80) == (step < steps);
        match (model.binary_search(&value), grows) {
            (Ok(_), true) => assert_eq!(put(&mut pages, &mut edits, value), Some(value)),
            (Err(at), true) => {
                model.insert(at, value);
                assert_eq!(put(&mut pages, &mut edits, value), None);
            }
            (Ok(at), false) => {
                model.remove(at);
                assert_eq!(remove(&mut pages, &mut edits, value), Some(value));
            }
            (Err(_), false) => assert_eq!(remove(&mut pages, &mut edits, value), None),
        }
        assert_eq!(pages.len(), model.len());
        if step % (steps / 10) == 0 {
            assert_eq!(entries(&pages), model);
            let lens = leaves(&pages);
            assert!(lens.iter().flatten().all(|len| (1..=L).contains(len)));
            assert!(lens.iter().all(|lens| lens.iter().sum::<usize>() <= W));
            assert!(pages.blocks.iter().all(|block| block.pages.len() <= W));
            blocks = blocks.max(pages.blocks.len());
            kept.push((pages.clone(), model.clone()));
        }
    }
    for (pages, model) in kept {
        assert_eq!(entries(&pages), model);
        for (at, value) in model.iter().enumerate() {
            let (place, found) = pages.seek(&Sought::exactly(Number::from(*value).texts()));
            assert!(found);
            assert_eq!(pages.between(Place::FIRST, place), at);
            assert_eq!(pages.entry(place).map(|number| number.value), Some(*value));
        }
    }
    blocks
}

#[test]
fn pages_stay_within_their_width_and_do_not_crumble() {
    let (mut pages, mut edits) = (<Pages>::new(), Edits::default());
    for value in 0..40_000 {
        put(&mut pages, &mut edits, value);
    }
    assert_eq!(
        pages.page_count(),
        40_000_usize.div_ceil(WIDTH),
        "in order they are full"
    );
    for value in 0..40_000 {
        if value % 50 != 0 {
            remove(&mut pages, &mut edits, value);
        }
    }
    let lens = leaves(&pages);
    assert!(lens.len() <= 800 / (WIDTH / 4), "{} pages", lens.len());
    let leaves = lens.iter().flatten().count();
    assert!(leaves <= 800 / (LEAF / 4), "{leaves} leaves");
    assert!(pages.blocks.len() <= 2);
}

#[test]
fn a_change_copies_one_leaf_of_one_page_and_only_while_it_is_shared() {
    let (mut pages, mut edits) = (<Pages>::new(), Edits::default());
    for value in 0..1_000 {
        put(&mut pages, &mut edits, value);
    }
    assert_eq!(edits.copies(), 0);
    let old = pages.clone();
    put(&mut pages, &mut edits, 500);
    put(&mut pages, &mut edits, 501);
    assert_eq!(edits.copies(), 1);
    let shared = old
        .pages()
        .zip(pages.pages())
        .filter(|(a, b)| a.number == b.number);
    assert_eq!(shared.count(), pages.page_count() - 1);
    let changed = |old: &Pages, new: &Pages| {
        let places = |pages: &Pages| -> Vec<_> {
            let leaves = pages.pages().flat_map(|page| page.entries.slices());
            leaves.map(<[_]>::as_ptr).collect()
        };
        let pairs = places(old).into_iter().zip(places(new));
        pairs.filter(|(old, new)| old != new).count()
    };
    assert_eq!(changed(&old, &pages), 1, "of {:?}", leaves(&pages));
    drop(old);
    let places = leaves(&pages);
    put(&mut pages, &mut edits, 900);
    assert_eq!(edits.copies(), 1);
    assert_eq!(leaves(&pages), places);
}

#[test]
fn seeks_iterates_and_counts() {
    let (mut pages, mut edits) = (<Pages>::new(), Edits::default());
    assert!(!seek(&pages, 1).1);
    assert_eq!(pages.iter_from(seek(&pages, 1).0).count(), 0);
    for value in 0..30_000 {
        put(&mut pages, &mut edits, 2 * value);
    }
    for wanted in [0, 1, 62, 63, 64, 65, 510, 511, 512, 513, 30_001, 59_998] {
        let (place, found) = seek(&pages, wanted);
        assert_eq!(found, wanted % 2 == 0);
        let expected = Number::from(wanted + wanted % 2);
        assert_eq!(pages.entry(place), Some(&expected));
        assert_eq!(pages.iter_from(place).next(), Some(&expected));
        let (start, _) = seek(&pages, 0);
        assert_eq!(pages.between(start, place) as u64, wanted.div_ceil(2));
        let rest = pages.iter_from(place).count();
        assert_eq!(rest as u64, 30_000 - wanted.div_ceil(2));
    }
    let (end, found) = seek(&pages, 60_000);
    assert!(!found && pages.entry(end).is_none());
    assert_eq!(pages.iter_from(end).count(), 0);
    assert_eq!(pages.between(seek(&pages, 0).0, end), 30_000);
}

#[test]
fn rewriting_and_disposing() {
    let (mut pages, mut edits) = (<Pages>::new(), Edits::default());
    for value in 0..1_000_u64 {
        put(&mut pages, &mut edits, value);
    }
    let (place, _) = seek(&pages, 0);
    let number = pages.page(place).expect("there is one").number;
    assert!(!pages.rewrite(&mut edits, place, |_| None));
    assert_eq!(pages.page(place).expect("there is one").number, number);
    assert!(pages.rewrite(&mut edits, place, |entry| {
        (entry.value == 1).then(|| Number::from(1))
    }));
    assert_ne!(pages.page(place).expect("there is one").number, number);

    let mut retired = pages.clone();
    assert!(retired.dispose(&mut 1), "all of it is shared");
    let mut calls = 0;
    while !pages.dispose(&mut (2 * WIDTH)) {
        calls += 1;
    }
    assert!((3..=6).contains(&calls), "{calls}");

    // A copy of which one leaf is its own: letting go of it is quick.
    for value in 0..1_000_u64 {
        put(&mut pages, &mut edits, value);
    }
    let mut old = pages.clone();
    put(&mut pages, &mut edits, 500);
    let mut effort = 2 * WIDTH;
    assert!(old.dispose(&mut effort));
    assert!(effort > WIDTH, "{effort}");
}
