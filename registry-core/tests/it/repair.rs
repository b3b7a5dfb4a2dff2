//! Repair of more than fits one request.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{
    Config, EXCHANGE_MAX, Instance, InstanceKey, LATE_MAX, LIST_MAX, Learned, Mono, Now, Offer, Origin,
    PeerId, PreservationConfig, Registry, RepairAnswer, RepairRequest, Step, Wall,
};

const START: Wall = Wall(1_700_000_000_000);

fn at(seconds: u64) -> Now {
    Now {
        mono: Mono(seconds * 1_000),
        wall: Wall(START.0 + seconds * 1_000),
    }
}

fn peer() -> Origin {
    Origin::Peer(PeerId(Arc::from("peer")))
}

fn instance(number: usize) -> Arc<Instance> {
    let id = format!("i-{number:05}");
    let mut instance = Instance::new(&format!("APP-{}", number % 7), &id, "host", "10.0.0.1");
    instance.last_dirty = Some(1);
    Arc::new(instance)
}

fn registry() -> Registry {
    let mut registry = Registry::new(
        at(0),
        Config {
            preservation: PreservationConfig {
                enabled: false,
                ..PreservationConfig::default()
            },
            ..Config::default()
        },
    );
    registry.open(at(0), 0, None);
    registry
}

fn register(now: Now, registry: &mut Registry, numbers: impl IntoIterator<Item = usize>) {
    for number in numbers {
        registry.register(now, Origin::Client, instance(number), Duration::ZERO);
        drain(registry);
    }
}

fn drain(registry: &mut Registry) {
    while registry.poll_event().is_some() {}
}

/// Calls the registry when it wants to be called.
fn advance(registry: &mut Registry, to: u64) {
    while let Some((due, _)) = registry.poll_timeout()
        && due <= at(to).mono
    {
        let now = Now {
            mono: due,
            wall: Wall(START.0 + due.0),
        };
        registry.handle_timeout(now);
        drain(registry);
    }
}

fn step(now: Now, asking: &mut Registry, answering: &mut Registry, step: &Step) -> Learned {
    let request = asking.repair_request(now, step);
    let answer = answering.repair_answer(now, peer(), request);
    let learned = asking.learn(now, peer(), now.mono, step, answer);
    drain(asking);
    drain(answering);
    learned
}

/// One comparison with what follows from it; tells how many keys were exchanged.
fn repair(now: Now, asking: &mut Registry, answering: &mut Registry) -> usize {
    let Learned::Differ { buckets } = step(now, asking, answering, &Step::Compare) else {
        return 0;
    };
    let Learned::Plan { pull, push, .. } = step(now, asking, answering, &Step::List { buckets }) else {
        panic!("a list leads to a plan");
    };
    assert!(pull.len() <= EXCHANGE_MAX && push.len() <= EXCHANGE_MAX);
    let exchanged = pull.len() + push.len();
    step(now, asking, answering, &Step::Exchange { pull, push });
    exchanged
}

#[test]
fn a_copy_comes_in_pages() {
    const COUNT: usize = 3_456;
    let (mut full, mut empty) = (registry(), registry());
    register(at(0), &mut full, 0..COUNT);
    let (mut received, mut pages) = (0, 0);
    let mut after = None;
    loop {
        let Learned::Copied {
            received: page,
            next,
            total,
            held,
        } = step(at(5), &mut empty, &mut full, &Step::Copy { after })
        else {
            panic!("a copy is copied");
        };
        assert_eq!((total, held), (COUNT, false));
        assert!(page <= EXCHANGE_MAX);
        (received, pages) = (received + page, pages + 1);
        match next {
            Some(key) => after = Some(key),
            None => break,
        }
    }
    assert_eq!((received, empty.stats().instances), (COUNT, COUNT));
    assert!(
        (COUNT / EXCHANGE_MAX..=2 * COUNT / EXCHANGE_MAX).contains(&pages),
        "{pages} pages"
    );
    let key = instance(1).key();
    assert_eq!(
        empty.age(at(5), &key),
        full.age(at(5), &key),
        "no copy is younger"
    );
}

#[test]
fn a_copy_leaves_out_what_has_run_out() {
    let mut full = Registry::new(at(0), Config::default());
    full.open(at(0), 0, None);
    register(at(0), &mut full, 0..7_000);
    advance(&mut full, 60);
    // The last ones in the order of the copy: whole pages before them have run out.
    let last = (6_930..7_000).filter(|number| number % 7 == 6);
    register(at(60), &mut full, last);
    advance(&mut full, 100);
    assert_eq!(
        full.stats().instances,
        7_000,
        "nobody is evicted while so many are missing"
    );
    let mut empty = registry();
    let mut after = None;
    let mut pages = 0;
    for _ in 0..100 {
        pages += 1;
        match step(at(100), &mut empty, &mut full, &Step::Copy { after }) {
            Learned::Copied { next: Some(key), .. } => after = Some(key),
            Learned::Copied { total, .. } => {
                assert!(pages < 6, "{pages} pages of what nobody takes");
                assert_eq!((total, empty.stats().instances), (10, 10));
                return;
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("there is no end to it");
}

#[test]
fn nodes_that_differ_in_thousands_become_equal_step_by_step() {
    let (mut one, mut other) = (registry(), registry());
    register(at(0), &mut one, 0..4_000);
    register(at(0), &mut other, 3_000..9_000);
    let mut exchanged = 0;
    let mut seconds = 0;
    for round in 1.. {
        seconds += 3;
        for registry in [&mut one, &mut other] {
            advance(registry, seconds);
        }
        let keys = repair(at(seconds), &mut one, &mut other);
        if keys == 0 {
            break;
        }
        exchanged += keys;
        assert!(round < 20, "too many rounds");
    }
    assert_eq!(exchanged, 8_000, "each difference is exchanged once");
    for registry in [&one, &other] {
        assert_eq!(registry.stats().instances, 9_000);
    }
}

#[test]
fn a_list_is_bounded_and_the_next_one_goes_on_behind_it() {
    let (mut one, mut other) = (registry(), registry());
    register(at(0), &mut one, 0..5_000);
    register(at(0), &mut other, 2_500..7_500);
    for registry in [&mut one, &mut other] {
        advance(registry, 3);
    }
    let buckets = |one: &mut Registry, other: &mut Registry| match step(at(3), one, other, &Step::Compare) {
        Learned::Differ { buckets } => buckets,
        different => panic!("{different:?}"),
    };
    let all = buckets(&mut one, &mut other);
    let list = RepairRequest::List { buckets: all.clone() };
    let RepairAnswer::List { entries } = other.repair_answer(at(3), peer(), list) else {
        panic!("a list is answered by a list");
    };
    assert!(
        (LIST_MAX..2 * LIST_MAX).contains(&entries.len()),
        "{}",
        entries.len()
    );
    let learned = step(at(3), &mut one, &mut other, &Step::List { buckets: all.clone() });
    let Learned::Plan { pull, push, left } = learned else {
        panic!("{learned:?}");
    };
    let both: Vec<_> = pull.iter().filter(|key| push.contains(key)).collect();
    assert!(both.is_empty(), "nothing is on both sides");
    let held = |registry: &Registry, key: &InstanceKey| registry.lease(at(3), key).is_some();
    assert!(
        push.iter().all(|key| !held(&other, key)),
        "only what the other lacks"
    );
    assert!(
        !left.is_empty() && all.ends_with(&left),
        "it tells which buckets it has not come to"
    );
    let learned = step(at(3), &mut one, &mut other, &Step::List { buckets: left });
    let Learned::Plan { pull: then, .. } = learned else {
        panic!("{learned:?}");
    };
    assert!(
        !then.is_empty() && !then.iter().any(|key| pull.contains(key)),
        "it goes on there"
    );
}

#[test]
fn every_late_lease_is_asked_about_in_its_turn() {
    let mut registry = registry();
    register(at(0), &mut registry, 0..2_500);
    advance(&mut registry, 62);
    assert_eq!(registry.stats().late, 2_500);
    let mut asked = BTreeSet::new();
    for _ in 0..3 {
        let RepairRequest::Compare { late, .. } = registry.repair_request(at(62), &Step::Compare) else {
            panic!("a comparison is asked for");
        };
        assert!(late.len() <= LATE_MAX);
        asked.extend(late);
    }
    assert_eq!(asked.len(), 2_500);
}

#[test]
fn an_answer_that_does_not_fit_teaches_nothing() {
    let mut registry = registry();
    let answer = RepairAnswer::List { entries: Vec::new() };
    let learned = registry.learn(at(1), peer(), at(1).mono, &Step::Compare, answer);
    assert_eq!(learned, Learned::Nonsense);
    let answer = RepairAnswer::Compare {
        root: 1,
        sums: vec![0; 3],
        ages: Vec::new(),
        gone: Vec::new(),
    };
    let learned = registry.learn(at(1), peer(), at(1).mono, &Step::Compare, answer);
    assert_eq!(learned, Learned::Nonsense);
}

#[test]
fn only_what_was_asked_for_is_taken_and_each_once() {
    let mut registry = registry();
    let offer = |number| Offer::Copy {
        instance: instance(number),
        age: Duration::ZERO,
        overridden: None,
    };
    let step = Step::Exchange {
        pull: vec![instance(1).key(), instance(2).key()],
        push: Vec::new(),
    };
    let answer = RepairAnswer::Exchange {
        offers: vec![offer(3), offer(1), offer(1), offer(4)],
    };
    let learned = registry.learn(at(1), peer(), at(1).mono, &step, answer);
    let one = Learned::Exchanged {
        adopted: 1,
        received: 1,
        sent: 0,
    };
    assert_eq!(learned, one);
    assert_eq!(registry.stats().instances, 1);
}

#[test]
fn a_page_of_a_copy_that_leads_back_is_not_taken() {
    for (after, taken) in [
        (Some(63), true),
        (Some(70), false),
        (Some(77), false),
        (None, true),
    ] {
        let mut registry = registry();
        let step = Step::Copy {
            after: after.map(|number| instance(number).key()),
        };
        let answer = RepairAnswer::Copy {
            offers: vec![Offer::Copy {
                instance: instance(70),
                age: Duration::ZERO,
                overridden: None,
            }],
            more: true,
            total: 9,
            held: false,
        };
        let learned = registry.learn(at(1), peer(), at(1).mono, &step, answer);
        assert_eq!(learned != Learned::Nonsense, taken, "{after:?}");
        assert_eq!(registry.stats().instances, usize::from(taken), "{after:?}");
    }
}
