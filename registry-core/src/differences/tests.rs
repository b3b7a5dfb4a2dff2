//! Compares with a plain comparison of everything, and counts the pages that were looked into.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::ToString as _;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Difference, between};
use crate::mirror::Mirror;
use crate::model::{Action, Instance, InstanceKey, LeaseTerms, Status};
use crate::rng::Rng;
use crate::snapshot::{LeaseTimes, LeaseView, Snapshot};
use crate::time::Wall;

fn view(number: u64, status: Status, updated: u64) -> LeaseView {
    let (app, id) = (format!("APP-{}", number % 7), format!("i-{number:05}"));
    let mut instance = Instance::new(&app, &id, "host", "10.0.0.1");
    instance.status = status;
    LeaseView {
        instance: Arc::new(instance),
        action: Action::Added,
        last_updated: Wall(updated),
        lease: LeaseTimes {
            terms: LeaseTerms::default(),
            registered: Wall(1),
            renewed: Wall(updated),
            evicted: Wall(0),
            service_up: Wall(1),
        },
        coordinating: false,
    }
}

/// Everything of both, in order, without a thought for pages.
fn naive(before: &Snapshot, after: &Snapshot) -> Vec<Difference> {
    let mut both: BTreeMap<InstanceKey, [Option<Arc<LeaseView>>; 2]> = BTreeMap::new();
    for (side, snapshot) in [before, after].into_iter().enumerate() {
        for view in snapshot.instances() {
            both.entry(view.key()).or_default()[side] = Some(Arc::clone(view));
        }
    }
    let differing = both.into_iter().filter(|(_, [before, after])| before != after);
    differing
        .map(|(key, [before, after])| Difference { key, before, after })
        .collect()
}

#[test]
fn are_those_of_a_comparison_of_everything() {
    let mut rng = Rng::new(11);
    let mut mirror = Mirror::new();
    let mut kept = alloc::vec![mirror.snapshot()];
    let (mut found, mut unchanged) = (0, 0);
    for round in 0..120_u64 {
        // Grows, then shrinks, so that pages split and join; sometimes hardly anything happens.
        let changes = [0, 1, 3, 400][rng.below(4)];
        for _ in 0..changes {
            let number = rng.next_u64() % 4_000;
            let status = Status::ALL[rng.below(5)];
            if (rng.below(100) < 80) == (round < 60) {
                mirror.put(view(number, status, rng.next_u64() % 3));
            } else {
                mirror.remove(&view(number, status, 0).key());
            }
        }
        let after = mirror.snapshot();
        for before in [kept.last(), kept.get(rng.below(kept.len()))] {
            let before = before.expect("the first is kept");
            let expected = naive(before, &after);
            (found, unchanged) = (
                found + expected.len(),
                unchanged + usize::from(expected.is_empty()),
            );
            assert_eq!(after.differences(before), expected, "round {round}");
            assert_eq!(before.differences(&after), naive(&after, before), "round {round}");
        }
        kept.push(after);
    }
    assert!(found > 20_000 && unchanged > 10, "{found} {unchanged}");
}

#[test]
fn of_strangers_with_the_same_content_there_are_none() {
    let (mut one, mut other) = (Mirror::new(), Mirror::new());
    (0..900).for_each(|number| one.put(view(number, Status::Up, 1)));
    (0..900)
        .rev()
        .for_each(|number| other.put(view(number, Status::Up, 1)));
    let (one, other) = (one.snapshot(), other.snapshot());
    assert_ne!(
        one.pages().map(|page| page.instance_count()).collect::<Vec<_>>(),
        other
            .pages()
            .map(|page| page.instance_count())
            .collect::<Vec<_>>(),
        "their pages are cut alike: nothing is tested"
    );
    assert_eq!(one.differences(&other), []);
}

#[test]
fn cost_the_pages_that_changed() {
    let mut mirror = Mirror::new();
    (0..40_000_u64).for_each(|number| mirror.put(view(number, Status::Up, 1)));
    let before = mirror.snapshot();
    let opened = |after: &Snapshot| between(before.pages(), after.pages()).1;
    assert!(before.pages().count() > 150);
    assert_eq!(opened(&before), 0);

    mirror.put(view(7_000, Status::Down, 1));
    assert_eq!(opened(&mirror.snapshot()), 2, "one page, as it was and as it is");
    mirror.put(view(15_000, Status::Down, 1));
    assert_eq!(opened(&mirror.snapshot()), 4);

    // So many in one place that a page is split in two, and all of one page gone: what lies behind is still passed over.
    for number in 0..100 {
        let mut more = view(7_000, Status::Up, 1);
        let instance = Arc::make_mut(&mut more.instance);
        instance.instance_id = Some(format!("i-07000-{number:03}").into());
        mirror.put(more);
    }
    let page = before.pages().nth(100).expect("there are more");
    for view in page.instances() {
        mirror.remove(&view.key());
    }
    let after = mirror.snapshot();
    let (found, opened) = between(before.pages(), after.pages());
    assert_eq!(found.len(), 102 + page.instance_count());
    assert!(opened <= 12, "{opened} pages were looked into");
}

#[test]
fn of_the_delta_are_told_too() {
    let mut mirror = Mirror::new();
    let before = mirror.snapshot();
    mirror.note(view(1, Status::Up, 1));
    mirror.note(view(2, Status::Up, 1));
    let noted = mirror.snapshot();
    mirror.forget(&view(1, Status::Up, 1).key());
    mirror.note(view(2, Status::Down, 1));
    let after = mirror.snapshot();
    let told = |after: &Snapshot, before: &Snapshot| -> Vec<_> {
        let status = |view: Option<Arc<LeaseView>>| view.map(|view| view.instance.status);
        let differences = after.delta_differences(before).into_iter();
        differences
            .map(|found| {
                (
                    found.key.id().to_string(),
                    status(found.before),
                    status(found.after),
                )
            })
            .collect()
    };
    assert_eq!(
        told(&noted, &before),
        [
            ("i-00001".to_string(), None, Some(Status::Up)),
            ("i-00002".to_string(), None, Some(Status::Up))
        ]
    );
    assert_eq!(
        told(&after, &noted),
        [
            ("i-00001".to_string(), Some(Status::Up), None),
            ("i-00002".to_string(), Some(Status::Up), Some(Status::Down))
        ]
    );
    assert_eq!(after.differences(&before), [], "they are not listed");
}
