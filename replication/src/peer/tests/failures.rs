//! Whole requests that fail: how long the peer is left alone, and who is to blame.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{AppliedKind, Wall};

use super::{Bench, item};
use crate::config::Config;
use crate::facts::{LinkState, PeerKind};
use crate::message::{Action, Failure, ItemOutcome};

/// A bench with a registration that waits, for which the time passes as asked.
fn waiting() -> Bench {
    let mut bench = Bench::new(PeerKind::Java);
    bench.says("a", AppliedKind::Registered);
    bench
}

/// Fails batches of a registration that is told again each time, and checks that each pause is between half of what is
/// given and all of it.
fn pauses(failure: Failure, longest: &[u64]) {
    let mut bench = waiting();
    for &longest in longest {
        bench.batch();
        bench.says("a", AppliedKind::Registered);
        bench.fail(failure);
        let pause = bench.pause().as_millis();
        assert!(
            (u128::from(longest / 2)..=longest.into()).contains(&pause),
            "{pause} of {longest}"
        );
        assert_eq!(bench.poll(), None);
        bench.pass(bench.pause());
    }
    // An answer ends it: the next failure is a first one again.
    bench.batch();
    bench.answer(vec![ItemOutcome::Ok]);
    assert_eq!(bench.peer.state(), LinkState::Up);
    bench.says("a", AppliedKind::Registered);
    bench.batch();
    bench.fail(failure);
    assert!(bench.pause() <= Duration::from_millis(longest[0]));
}

#[test]
fn a_busy_peer_is_left_alone_from_one_to_thirty_seconds() {
    pauses(
        Failure::Busy,
        &[1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000],
    );
}

#[test]
fn a_peer_out_of_reach_is_left_alone_from_a_tenth_to_ten_seconds() {
    pauses(
        Failure::Unreachable,
        &[100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000, 10_000],
    );
}

#[test]
fn the_pause_depends_on_the_seed_alone() {
    let pause = |seed| {
        let mut bench = waiting();
        bench.peer = super::Peer::new(bench.now, &Config::default(), seed);
        bench.peer.set_kind(bench.now, PeerKind::Java);
        bench.says("a", AppliedKind::Registered);
        bench.batch();
        bench.fail(Failure::Busy);
        bench.pause()
    };
    assert_eq!(pause(1), pause(1));
    assert!((2..20).any(|seed| pause(seed) != pause(1)));
}

#[test]
fn retry_after_wins_up_to_a_minute() {
    for (asked, pause) in [(2, 2), (45, 45), (60, 60), (3_600, 60)] {
        let mut bench = waiting();
        bench.batch();
        bench.fail_until(Failure::Busy, Some(Duration::from_secs(asked)));
        assert_eq!(bench.pause(), Duration::from_secs(pause));
    }
    let mut bench = waiting();
    bench.batch();
    bench.fail_until(Failure::Busy, Some(Duration::ZERO));
    assert!(bench.pause() >= Duration::from_millis(500), "zero is no answer");
}

#[test]
fn who_refuses_us_or_is_us_is_left_alone_for_thirty_seconds() {
    for (failure, state) in [
        (Failure::Misconfigured, LinkState::Misconfigured),
        (Failure::Own, LinkState::Own),
    ] {
        let mut bench = waiting();
        assert_eq!(bench.peer.state(), LinkState::Starting);
        bench.batch();
        bench.fail(failure);
        assert_eq!(bench.pause(), Duration::from_secs(30));
        assert_eq!(bench.peer.state(), state);
        assert_eq!(bench.facts().error.as_deref(), Some("as told"));
        bench.pass(Duration::from_secs(30));
        assert_eq!(bench.batch().len(), 1, "nothing is lost by it");
    }
}

#[test]
fn probes_and_repairs_move_the_same_state() {
    let text = Arc::from("connection refused");
    let mut bench = waiting();
    bench.peer.unreached(bench.now, Failure::Unreachable, &text, None);
    assert_eq!(bench.peer.state(), LinkState::Unreachable);
    assert_eq!(bench.poll(), None);
    // A second failure in the same back-off counts once.
    let until = bench.peer.blocked_until();
    bench.peer.unreached(bench.now, Failure::Unreachable, &text, None);
    assert_eq!(bench.peer.blocked_until(), until);
    bench.peer.reached(bench.now);
    assert_eq!(bench.peer.state(), LinkState::Up);
    assert_eq!(bench.peer.last_success(), Some(bench.now.mono));
    assert_eq!(bench.facts().last_success, Some(Wall(bench.now.wall.0)));
    bench.batch();
    bench.fail(Failure::Busy);
    // That something else is answered is no reason to be at a busy peer again.
    bench.peer.reached(bench.now);
    assert_eq!(bench.peer.state(), LinkState::Busy);
    assert_eq!(bench.poll(), None);
    bench.pass(bench.pause());
    bench.peer.reached(bench.now);
    assert_eq!(bench.peer.state(), LinkState::Up);
    // What a repair is refused says nothing of batches.
    for failure in [Failure::Rejected, Failure::TooLarge] {
        bench.peer.unreached(bench.now, failure, &text, None);
        assert_eq!(bench.peer.state(), LinkState::Up);
    }
    assert_eq!(bench.batch().len(), 1);
}

#[test]
fn answers_to_probes_do_not_shorten_the_pauses_that_batches_earn() {
    let mut bench = waiting();
    for _ in 0..6 {
        bench.batch();
        bench.says("a", AppliedKind::Registered);
        bench.fail(Failure::Unreachable);
        bench.peer.reached(bench.now);
    }
    bench.batch();
    bench.fail(Failure::Unreachable);
    assert!(bench.pause() >= Duration::from_millis(3_200));
}

#[test]
fn a_batch_of_which_nothing_was_sent_says_nothing_of_the_peer() {
    for failure in [Failure::Busy, Failure::Unreachable, Failure::Misconfigured] {
        let mut bench = waiting();
        bench.batch();
        bench.fail(failure);
        let state = bench.peer.state();
        bench.pass(bench.pause());
        bench.batch();
        bench.answer(vec![ItemOutcome::Void]);
        let facts = bench.facts();
        assert_eq!((facts.state, facts.last_success), (state, None), "{failure:?}");
        assert!(bench.peer.is_idle());
    }
}

#[test]
fn a_batch_too_large_is_halved_and_grows_again() {
    let mut bench = Bench::new(PeerKind::Java);
    for number in 0..200 {
        bench.says(&format!("{number:03}"), AppliedKind::Registered);
    }
    assert_eq!(bench.batch().len(), 200);
    bench.fail(Failure::TooLarge);
    assert_eq!(bench.batch().len(), 100);
    bench.fail(Failure::TooLarge);
    let batch = bench.batch();
    assert_eq!((batch.len(), batch[0].0.as_str()), (50, "000"));
    bench.answer(vec![ItemOutcome::Ok; 50]);
    // By an eighth each time: what was too large would be again.
    assert_eq!(bench.batch().len(), 57);
    assert_eq!(bench.facts().poisoned, 0);
}

#[test]
fn a_single_item_too_large_is_set_aside_for_one_lease() {
    let mut bench = waiting();
    bench.batch();
    bench.fail(Failure::TooLarge);
    assert!(bench.peer.is_idle());
    assert_eq!(bench.facts().poisoned, 1);
    bench.pass(Duration::from_millis(89_999));
    bench.says("a", AppliedKind::Registered);
    assert!(bench.peer.is_idle());
    assert_eq!(bench.facts().poisoned, 2);
    // Only that: it is cancelled as always.
    bench.says("a", AppliedKind::Cancelled);
    assert_eq!(bench.batch(), vec![item("a", Action::Cancel)]);
    bench.answer(vec![ItemOutcome::Ok]);
    bench.pass(Duration::from_millis(1));
    bench.says("a", AppliedKind::Registered);
    assert_eq!(bench.batch(), vec![item("a", Action::Register)]);
}

#[test]
fn who_finds_every_single_item_too_large_is_misconfigured() {
    let mut bench = Bench::new(PeerKind::Java);
    bench.says("a", AppliedKind::Registered);
    bench.batch();
    bench.says("b", AppliedKind::Registered);
    bench.fail(Failure::TooLarge);
    bench.batch();
    bench.fail(Failure::TooLarge);
    assert_eq!(bench.peer.state(), LinkState::Misconfigured);
    assert_eq!(bench.facts().queue, 1);
}

#[test]
fn a_refused_batch_is_tried_with_one_item_and_then_it_is_the_peer() {
    let mut bench = Bench::new(PeerKind::Java);
    for id in ["a", "b", "c"] {
        bench.says(id, AppliedKind::Registered);
    }
    bench.batch();
    bench.fail(Failure::Rejected);
    assert_eq!(bench.batch(), vec![item("a", Action::Register)]);
    bench.fail(Failure::Rejected);
    assert_eq!(bench.peer.state(), LinkState::Misconfigured);
    assert_eq!(bench.pause(), Duration::from_secs(30));
    assert_eq!(bench.facts().queue, 3);
    bench.pass(Duration::from_secs(30));
    // The next one, lest it was the culprit that was tried.
    assert_eq!(bench.batch(), vec![item("b", Action::Register)]);
}

/// Plays a peer that refuses whatever contains one of `poison`, until nothing waits; returns how many requests were
/// sent, at most within `most` seconds.
fn play(bench: &mut Bench, poison: &BTreeSet<String>, seconds: u64) -> usize {
    let end = bench.now.mono.after(Duration::from_secs(seconds));
    let mut requests = 0;
    while bench.now.mono < end {
        let Some(due) = bench.peer.poll_timeout() else {
            break;
        };
        bench.pass(due.since(bench.now.mono));
        let Some(batch) = bench.poll() else {
            continue;
        };
        requests += 1;
        if batch.iter().any(|(id, _)| poison.contains(id)) {
            bench.fail(Failure::Rejected);
        } else {
            bench.answer(vec![ItemOutcome::Ok; batch.len()]);
        }
    }
    requests
}

#[test]
fn the_culprit_is_found_wherever_it_is_and_set_aside() {
    for culprit in 0..200 {
        let mut bench = Bench::new(PeerKind::Java);
        for number in 0..200 {
            bench.says(&format!("{number:03}"), AppliedKind::Registered);
        }
        let poison = BTreeSet::from([format!("{culprit:03}")]);
        let requests = play(&mut bench, &poison, 70);
        assert!(bench.peer.is_idle());
        assert_eq!((bench.facts().sent, bench.facts().poisoned), (199, 1));
        // Refused, alone (once more if that was the culprit), at most 16, and what was left.
        assert!(requests <= 20, "{requests} for {culprit}");
        assert_eq!(bench.facts().outdated, 0);
    }
}

#[test]
fn many_culprits_do_not_make_a_storm() {
    let mut bench = Bench::new(PeerKind::Java);
    for number in 0..250 {
        bench.says(&format!("{number:03}"), AppliedKind::Registered);
    }
    let poison: BTreeSet<_> = (0..250).filter(|number| number % 2 == 1).collect();
    let poison: BTreeSet<_> = poison.iter().map(|number| format!("{number:03}")).collect();
    let requests = play(&mut bench, &poison, 29);
    // Sixteen for the search; each batch that begins one, and the item alone, come on top.
    assert!((16..=24).contains(&requests), "{requests}");
    assert_eq!(bench.peer.state(), LinkState::Misconfigured);
}

#[test]
fn what_is_set_aside_is_bounded() {
    let config = Config {
        queue_limit: 10,
        max_rate: 100_000,
        ..Config::default()
    };
    let mut bench = Bench::with(PeerKind::Java, &config);
    for number in 0..1_100 {
        bench.says(&number.to_string(), AppliedKind::Registered);
        bench.batch();
        bench.fail(Failure::TooLarge);
        bench.says("good", AppliedKind::Cancelled);
        bench.batch();
        bench.answer(vec![ItemOutcome::Ok]);
    }
    assert_eq!(bench.peer.aside.len(), 1_000);
    bench.says("99", AppliedKind::Registered);
    assert_eq!(bench.batch().len(), 1, "the first ones are tried again");
    bench.answer(vec![ItemOutcome::Ok]);
    bench.says("100", AppliedKind::Registered);
    assert!(bench.peer.is_idle());
}

#[test]
fn a_search_goes_on_after_other_failures_and_without_what_vanished() {
    let mut bench = Bench::new(PeerKind::Java);
    for id in ["a", "b", "c", "d", "e"] {
        bench.says(id, AppliedKind::Registered);
    }
    bench.batch();
    bench.fail(Failure::Rejected);
    assert_eq!(bench.batch().len(), 1);
    bench.answer(vec![ItemOutcome::Void]);
    // Nothing was sent: that proves nothing.
    assert_eq!(bench.batch(), vec![item("b", Action::Register)]);
    bench.answer(vec![ItemOutcome::Ok]);
    // Left are a (gone), c, d and e.
    bench.expires("c");
    let half = bench.batch();
    assert_eq!(half, vec![item("d", Action::Register)]);
    bench.fail(Failure::Unreachable);
    bench.pass(bench.pause());
    assert_eq!(bench.batch(), half);
    bench.fail(Failure::Rejected);
    assert_eq!(bench.facts().poisoned, 1);
    assert_eq!(bench.batch(), vec![item("e", Action::Register)]);
    bench.answer(vec![ItemOutcome::Ok]);
    assert!(bench.peer.is_idle());
}
