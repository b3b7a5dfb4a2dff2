//! Compares the pages with a plain sorted vector.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Edits, PAGE_EFFORT, Place};

use crate::rng::Rng;
use crate::sorted::{Sorted, Sought};

const WIDTH: usize = 128;

type Pages = super::Pages<Number, WIDTH>;

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

fn entries(pages: &Pages) -> Vec<u64> {
    pages
        .pages()
        .flat_map(|page| page.entries.items().iter().map(|number| number.value))
        .collect()
}

fn put(pages: &mut Pages, edits: &mut Edits, value: u64) -> Option<u64> {
    pages.put(edits, value.into()).map(|number| number.value)
}

fn remove(pages: &mut Pages, edits: &mut Edits, value: u64) -> Option<u64> {
    let sought = Number::from(value);
    let removed = pages.remove(edits, &Sought::exactly(sought.texts()));
    removed.map(|number| number.value)
}

fn seek(pages: &Pages, value: u64) -> (Place, bool) {
    pages.seek(&Sought::exactly(Number::from(value).texts()))
}

#[test]
fn behaves_as_a_sorted_vector_and_old_copies_stay_as_they_were() {
    let mut rng = Rng::new(5);
    let (mut pages, mut edits, mut model) = (Pages::new(), Edits::default(), Vec::new());
    let mut kept = Vec::new();
    for step in 0..60_000_u64 {
        let value = rng.next_u64() % 40_000;
        // Grows for the first half, shrinks for the second.
        let grows = (rng.below(100) < 80) == (step < 30_000);
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
        if step % 5_000 == 0 {
            assert_eq!(entries(&pages), model);
            kept.push((pages.clone(), model.clone()));
        }
    }
    for (pages, model) in kept {
        assert_eq!(entries(&pages), model);
    }
}

#[test]
fn pages_stay_within_their_width_and_do_not_crumble() {
    let (mut pages, mut edits) = (Pages::new(), Edits::default());
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
    assert!(
        pages.page_count() <= 800 / (WIDTH / 4),
        "{} pages",
        pages.page_count()
    );
    assert!(pages.blocks.len() <= 2);
}

#[test]
fn a_change_copies_one_page_and_only_while_it_is_shared() {
    let (mut pages, mut edits) = (Pages::new(), Edits::default());
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
    drop(old);
    put(&mut pages, &mut edits, 900);
    assert_eq!(edits.copies(), 1);
}

#[test]
fn seeks_iterates_and_counts() {
    let (mut pages, mut edits) = (Pages::new(), Edits::default());
    assert!(!seek(&pages, 1).1);
    assert_eq!(pages.iter_from(seek(&pages, 1).0).count(), 0);
    for value in 0..30_000 {
        put(&mut pages, &mut edits, 2 * value);
    }
    for wanted in [0, 1, 254, 255, 256, 257, 30_001, 59_998] {
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
    let (mut pages, mut edits) = (Pages::new(), Edits::default());
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
    while !pages.dispose(&mut (2 * PAGE_EFFORT)) {
        calls += 1;
    }
    assert!((3..=6).contains(&calls), "{calls}");

    // A copy of which one page is its own: letting go of it is quick.
    for value in 0..1_000_u64 {
        put(&mut pages, &mut edits, value);
    }
    let mut old = pages.clone();
    put(&mut pages, &mut edits, 500);
    let mut effort = 2 * PAGE_EFFORT;
    assert!(old.dispose(&mut effort));
    assert!(effort > PAGE_EFFORT / 2, "{effort}");
}
