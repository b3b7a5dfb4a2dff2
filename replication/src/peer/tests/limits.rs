//! Waiting for company, lateness, sizes, rate, and what a full queue gives up.

use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{AppliedKind, Event, Origin};

use super::{Bench, instance, item};
use crate::config::Config;
use crate::facts::PeerKind;
use crate::message::{Action, Failure, ItemOutcome};

#[test]
fn renewals_wait_for_company_and_nothing_else_does() {
    for (kind, linger) in [(PeerKind::Ours, 100), (PeerKind::Java, 500)] {
        let linger = Duration::from_millis(linger);
        let mut bench = Bench::new(kind);
        bench.says("a", AppliedKind::Renewed);
        bench.pass(Duration::from_millis(60));
        bench.says("b", AppliedKind::Renewed);
        assert_eq!(bench.poll(), None);
        assert_eq!(bench.pause(), linger - Duration::from_millis(60));
        bench.pass(bench.pause());
        let expected = vec![item("a", Action::Renew), item("b", Action::Renew)];
        assert_eq!(bench.batch(), expected);
        bench.answer(vec![ItemOutcome::Ok; 2]);

        bench.says("a", AppliedKind::Renewed);
        bench.says("b", AppliedKind::Cancelled);
        let expected = vec![item("a", Action::Renew), item("b", Action::Cancel)];
        assert_eq!(bench.batch(), expected);
        bench.answer(vec![ItemOutcome::Ok; 2]);

        bench.peer.flush(bench.now);
        bench.says("a", AppliedKind::Renewed);
        assert_eq!(bench.batch(), vec![item("a", Action::Renew)]);
    }
}

#[test]
fn who_could_not_be_reached_is_tried_once_more_at_the_end() {
    let mut bench = Bench::new(PeerKind::Java);
    bench.says("a", AppliedKind::Cancelled);
    bench.batch();
    bench.fail(Failure::Unreachable);
    assert_eq!(bench.poll(), None, "the back-off is not over");
    bench.peer.flush(bench.now);
    assert!(!bench.peer.is_flushed());
    assert_eq!(bench.batch(), vec![item("a", Action::Cancel)]);
    bench.fail(Failure::Unreachable);
    assert!(bench.peer.is_flushed(), "there is no time for more");
}

#[test]
fn a_full_batch_does_not_wait() {
    let config = Config {
        batch_items_java: 2,
        ..Config::default()
    };
    let mut bench = Bench::with(PeerKind::Java, &config);
    for id in ["a", "b", "c"] {
        bench.says(id, AppliedKind::Renewed);
    }
    assert_eq!(bench.batch().len(), 2);
    bench.answer(vec![ItemOutcome::Ok; 2]);
    assert_eq!(bench.poll(), None);
    bench.pass(Duration::from_millis(500));
    assert_eq!(bench.batch(), vec![item("c", Action::Renew)]);
}

#[test]
fn nothing_is_sent_to_who_is_not_known() {
    let mut bench = Bench::new(PeerKind::Unknown);
    bench.says("a", AppliedKind::Registered);
    assert_eq!((bench.poll(), bench.peer.poll_timeout()), (None, None));
    bench.peer.set_kind(bench.now, PeerKind::Java);
    assert_eq!(bench.batch(), vec![item("a", Action::Register)]);
}

#[test]
fn what_waited_too_long_is_given_up_and_the_peer_is_behind() {
    // Kind of peer, what happened, and seconds after which it is still sent; a millisecond later it is not.
    let cases = [
        (PeerKind::Ours, AppliedKind::Registered, 5),
        (PeerKind::Ours, AppliedKind::Cancelled, 5),
        (PeerKind::Ours, AppliedKind::Overridden, 5),
        (PeerKind::Ours, AppliedKind::Renewed, 30),
        (PeerKind::Java, AppliedKind::Registered, 90),
        (PeerKind::Java, AppliedKind::Cancelled, 90),
        (PeerKind::Java, AppliedKind::OverrideCleared, 90),
        (PeerKind::Java, AppliedKind::Renewed, 30),
    ];
    for (kind, applied, seconds) in cases {
        let mut bench = Bench::new(kind);
        bench.says("a", applied);
        bench.pass(Duration::from_secs(seconds));
        assert_eq!(bench.batch().len(), 1, "{kind:?} {applied:?}");
        bench.fail(Failure::Unreachable);
        assert!(!bench.peer.take_behind());
        bench.pass(Duration::from_millis(100));
        assert_eq!(bench.poll(), None, "{kind:?} {applied:?}");
        assert!(bench.peer.is_idle());
        assert_eq!(bench.facts().outdated, 1);
        assert!(bench.peer.take_behind());
        assert!(!bench.peer.take_behind());
    }
}

#[test]
fn a_newer_renewal_is_not_late_because_an_older_change_is() {
    let mut bench = Bench::new(PeerKind::Ours);
    bench.says("a", AppliedKind::Registered);
    bench.pass(Duration::from_secs(6));
    bench.says("a", AppliedKind::Renewed);
    assert_eq!(bench.batch(), vec![item("a", Action::Renew)]);
    assert_eq!(bench.facts().outdated, 1);
}

#[test]
fn a_full_queue_gives_up_the_oldest() {
    let config = Config {
        queue_limit: 3,
        ..Config::default()
    };
    let mut bench = Bench::with(PeerKind::Java, &config);
    bench.says("a", AppliedKind::Registered);
    bench.says("a", AppliedKind::Overridden);
    for id in ["b", "c"] {
        bench.says(id, AppliedKind::Registered);
    }
    assert!(!bench.peer.take_behind());
    bench.says("d", AppliedKind::Registered);
    assert_eq!(bench.facts().overflowed, 2);
    assert!(bench.peer.take_behind());
    let ids: Vec<_> = bench.batch().into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["b", "c", "d"]);
    // What comes back from a failed batch does not exceed the limit either.
    bench.says("e", AppliedKind::Registered);
    bench.fail(Failure::Unreachable);
    assert_eq!((bench.facts().overflowed, bench.facts().queue), (3, 3));
}

#[test]
fn a_million_instances_that_come_and_go_leave_nothing_at_a_dead_peer() {
    let config = Config {
        queue_limit: 500,
        ..Config::default()
    };
    let mut bench = Bench::with(PeerKind::Ours, &config);
    for number in 0..1_000_000_u32 {
        if number == 500_000 {
            bench.peer.set_kind(bench.now, PeerKind::Java);
        }
        let id = number.to_string();
        bench.says(&id, AppliedKind::Registered);
        match number % 3 {
            0 => bench.says(&id, AppliedKind::Cancelled),
            1 => bench.expires(&id),
            _ => bench.says(&id, AppliedKind::Renewed),
        }
        if number % 100 == 0 {
            bench.pass(Duration::from_millis(50));
            if bench.poll().is_some() {
                bench.fail(Failure::Unreachable);
            }
            assert!(bench.peer.queue.len() <= 500);
            assert!(bench.peer.queue.holds() <= 500);
        }
    }
    assert!(bench.facts().overflowed > 500_000);
    bench.pass(Duration::from_secs(100));
    assert_eq!(bench.poll(), None);
    assert!(bench.peer.is_idle());
    assert_eq!(bench.peer.queue.holds(), 0);
}

#[test]
fn a_storm_of_not_founds_stays_within_limit_and_rate() {
    let config = Config {
        queue_limit: 400,
        max_rate: 1_000,
        ..Config::default()
    };
    let mut bench = Bench::with(PeerKind::Java, &config);
    let mut sent = 0;
    for round in 0..1_000 {
        for number in 0..20 {
            bench.says(&format!("{}", round * 20 + number), AppliedKind::Renewed);
        }
        while let Some(batch) = bench.poll() {
            sent += batch.len();
            bench.answer(vec![ItemOutcome::Missing; batch.len()]);
            assert!(bench.peer.queue.len() <= 400);
        }
        bench.pass(Duration::from_millis(10));
    }
    // Ten seconds, and what was saved up before.
    assert!(sent > 9_000, "{sent}");
    assert!(sent <= 10_100, "{sent}");
}

#[test]
fn batches_to_java_are_limited_by_items_and_to_ours_by_bytes() {
    let config = Config {
        batch_bytes: 17_000,
        batch_items_java: 3,
        ..Config::default()
    };
    let mut bench = Bench::with(PeerKind::Java, &config);
    for id in ["a", "b", "c", "d"] {
        bench.says(id, AppliedKind::Registered);
    }
    assert_eq!(bench.batch().len(), 3);

    let mut bench = Bench::with(PeerKind::Ours, &config);
    let mut large = (*instance("large")).clone();
    large.metadata.insert("text", &"x".repeat(7_000));
    let large = Arc::new(large);
    let event = Event::Applied {
        seq: 1,
        version: 1,
        key: large.key(),
        kind: AppliedKind::Registered,
        before: None,
        after: Some(Arc::clone(&large)),
        origin: Origin::Client,
    };
    bench.says("a", AppliedKind::Registered);
    bench.peer.note(bench.now, &event);
    bench.says("b", AppliedKind::Registered);
    bench.says("b", AppliedKind::Overridden);
    let expected = vec![item("a", Action::Register), item("large", Action::Register)];
    assert_eq!(bench.batch(), expected);
    bench.answer(vec![ItemOutcome::Ok; 2]);
    let expected = vec![item("b", Action::Register), item("b", Action::Override)];
    assert_eq!(bench.batch(), expected);
    bench.answer(vec![ItemOutcome::Ok; 2]);

    // One that is larger than a batch goes alone; renewals take little.
    let mut bench = Bench::with(
        PeerKind::Ours,
        &Config {
            batch_bytes: 1_600,
            ..Config::default()
        },
    );
    bench.peer.note(bench.now, &event);
    bench.says("a", AppliedKind::Registered);
    assert_eq!(bench.batch(), vec![item("large", Action::Register)]);
    bench.answer(vec![ItemOutcome::Ok]);
    bench.batch();
    bench.answer(vec![ItemOutcome::Ok]);
    for number in 0..11 {
        bench.says(&number.to_string(), AppliedKind::Renewed);
    }
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.batch().len(), 10);
}

#[test]
fn a_batch_to_ours_has_at_most_4000_items() {
    let config = Config {
        max_rate: 100_000,
        ..Config::default()
    };
    let mut bench = Bench::with(PeerKind::Ours, &config);
    for number in 0..4_001 {
        bench.says(&number.to_string(), AppliedKind::Renewed);
    }
    assert_eq!(bench.batch().len(), 4_000);
}

#[test]
fn the_rate_shortens_batches_and_repairs_share_it() {
    let config = Config {
        max_rate: 1_000,
        ..Config::default()
    };
    let mut bench = Bench::with(PeerKind::Java, &config);
    for number in 0..250 {
        bench.says(&number.to_string(), AppliedKind::Registered);
    }
    assert_eq!(bench.batch().len(), 100);
    bench.answer(vec![ItemOutcome::Ok; 100]);
    assert_eq!((bench.poll(), bench.peer.allowance(bench.now)), (None, 0));
    assert_eq!(bench.pause(), Duration::from_millis(50));
    bench.pass(Duration::from_millis(49));
    assert_eq!(bench.poll(), None);
    bench.pass(Duration::from_millis(1));
    assert_eq!(bench.batch().len(), 50);
    bench.answer(vec![ItemOutcome::Ok; 50]);
    bench.pass(Duration::from_secs(60));
    assert_eq!(
        bench.peer.allowance(bench.now),
        100,
        "a tenth of a second's worth is saved at most"
    );
    bench.peer.spend(bench.now, 110);
    assert_eq!(bench.peer.allowance(bench.now), 0);
    assert_eq!(
        bench.pause(),
        Duration::from_millis(60),
        "what is owed comes first"
    );
    bench.pass(Duration::from_millis(60));
    assert_eq!(bench.batch().len(), 50);
}

#[test]
fn lag_is_the_age_of_the_oldest_word_not_acknowledged() {
    let mut bench = Bench::new(PeerKind::Java);
    assert_eq!(bench.facts().lag, Duration::ZERO);
    bench.says("a", AppliedKind::Registered);
    bench.pass(Duration::from_secs(1));
    bench.batch();
    bench.says("b", AppliedKind::Registered);
    bench.pass(Duration::from_secs(2));
    assert_eq!(
        (bench.facts().lag, bench.facts().queue),
        (Duration::from_secs(3), 1)
    );
    bench.answer(vec![ItemOutcome::Ok]);
    assert_eq!(bench.facts().lag, Duration::from_secs(2));
    assert_eq!(bench.facts().sent, 1);
    assert_eq!(bench.peer.queue.holds(), 1);
}
