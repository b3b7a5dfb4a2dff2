//! What is forwarded, what replaces what, and what becomes of answers.

use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{AppliedKind, Event, Instance, InstanceKey, Origin};

use super::{Bench, instance, item, peer_origin};
use crate::facts::PeerKind;
use crate::message::{Action, Failure, ItemOutcome};

const KINDS: [(AppliedKind, Option<Action>); 7] = [
    (AppliedKind::Registered, Some(Action::Register)),
    (AppliedKind::Renewed, Some(Action::Renew)),
    (AppliedKind::Cancelled, Some(Action::Cancel)),
    (AppliedKind::Overridden, Some(Action::Override)),
    (AppliedKind::OverrideCleared, Some(Action::ClearOverride)),
    (AppliedKind::MetadataChanged, Some(Action::Register)),
    (AppliedKind::Adopted, None),
];

#[test]
fn only_what_did_not_come_from_a_peer_is_forwarded() {
    for (kind, action) in KINDS {
        for origin in [Origin::Client, Origin::Operator, Origin::Own] {
            let mut bench = Bench::new(PeerKind::Java);
            bench.hears("a", kind, origin);
            bench.pass(Duration::from_secs(1));
            let expected = action.map(|action| vec![item("a", action)]);
            assert_eq!(bench.poll(), expected, "{kind:?}");
        }
        let mut bench = Bench::new(PeerKind::Java);
        bench.hears("a", kind, peer_origin());
        bench.pass(Duration::from_secs(1));
        assert_eq!(bench.poll(), None, "{kind:?} from a peer");
        assert!(bench.peer.is_idle());
    }
}

#[test]
fn what_expired_is_not_forwarded_and_takes_along_what_waited() {
    let mut bench = Bench::new(PeerKind::Java);
    bench.expires("a");
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.poll(), None);

    for kind in [
        AppliedKind::Registered,
        AppliedKind::Renewed,
        AppliedKind::Overridden,
    ] {
        bench.says("a", kind);
        bench.expires("a");
        bench.pass(Duration::from_secs(1));
        assert_eq!(bench.poll(), None, "{kind:?}");
        assert!(bench.peer.is_idle());
    }
}

#[test]
fn what_expired_in_flight_comes_back_neither_by_failure_nor_by_a_not_found() {
    let mut bench = Bench::new(PeerKind::Java);
    bench.says("a", AppliedKind::Overridden);
    bench.batch();
    bench.expires("a");
    bench.answer(vec![ItemOutcome::Missing]);
    assert!(bench.peer.is_idle());

    bench.says("a", AppliedKind::Registered);
    bench.batch();
    bench.expires("a");
    bench.fail(Failure::Unreachable);
    assert!(bench.peer.is_idle());
}

#[test]
fn a_late_lease_and_preservation_are_nobodys_business() {
    let mut bench = Bench::new(PeerKind::Ours);
    let key = InstanceKey::new("app", "a");
    bench.peer.note(bench.now, &Event::Late { key });
    bench.peer.note(bench.now, &Event::Preserving(true));
    assert!(bench.peer.is_idle());
}

#[test]
fn the_newest_word_wins_in_each_slot_and_slots_keep_their_order() {
    let mut bench = Bench::new(PeerKind::Java);
    bench.says("b", AppliedKind::Renewed);
    bench.says("a", AppliedKind::Renewed);
    bench.says("a", AppliedKind::Overridden);
    bench.says("a", AppliedKind::OverrideCleared);
    bench.says("b", AppliedKind::Overridden);
    bench.says("b", AppliedKind::Cancelled);
    bench.says("b", AppliedKind::Registered);
    bench.says("b", AppliedKind::Overridden);
    let expected = vec![
        item("b", Action::Register),
        item("b", Action::Override),
        item("a", Action::ClearOverride),
        item("a", Action::Renew),
    ];
    assert_eq!(bench.batch(), expected);
}

#[test]
fn a_cancel_empties_the_other_slots() {
    let mut bench = Bench::new(PeerKind::Java);
    for kind in [
        AppliedKind::Registered,
        AppliedKind::Overridden,
        AppliedKind::Renewed,
        AppliedKind::Cancelled,
    ] {
        bench.says("a", kind);
    }
    assert_eq!(bench.batch(), vec![item("a", Action::Cancel)]);
    bench.answer(vec![ItemOutcome::Missing]);
    assert!(bench.peer.is_idle(), "not found is as good as cancelled");
    assert_eq!(bench.facts().missing, 0);
}

#[test]
fn a_registration_renews_too() {
    let mut bench = Bench::new(PeerKind::Java);
    bench.says("a", AppliedKind::Renewed);
    bench.says("a", AppliedKind::Registered);
    bench.says("a", AppliedKind::Renewed);
    assert_eq!(bench.batch(), vec![item("a", Action::Register)]);
    bench.answer(vec![ItemOutcome::Ok]);
    assert!(bench.peer.is_idle());
}

#[test]
fn there_is_one_batch_in_flight_and_answers_to_others_are_ignored() {
    let mut bench = Bench::new(PeerKind::Java);
    bench.says("a", AppliedKind::Registered);
    bench.batch();
    bench.says("b", AppliedKind::Registered);
    assert_eq!(bench.poll(), None);
    assert_eq!(bench.peer.poll_timeout(), None);
    let real = bench.id;
    bench.id.0 += 1;
    bench.answer(vec![ItemOutcome::Ok]);
    bench.fail(Failure::Unreachable);
    assert_eq!(bench.poll(), None);
    bench.id = real;
    bench.answer(vec![ItemOutcome::Ok]);
    assert_eq!(bench.batch(), vec![item("b", Action::Register)]);
}

#[test]
fn a_failed_batch_waits_again_in_its_place_unless_something_newer_took_it() {
    let mut bench = Bench::new(PeerKind::Java);
    for id in ["a", "b", "c"] {
        bench.says(id, AppliedKind::Registered);
    }
    bench.batch();
    bench.says("d", AppliedKind::Registered);
    bench.says("b", AppliedKind::Cancelled);
    bench.says("c", AppliedKind::Overridden);
    bench.fail(Failure::Unreachable);
    bench.pass(Duration::from_millis(100));
    let expected = vec![
        item("a", Action::Register),
        item("c", Action::Register),
        item("c", Action::Override),
        item("d", Action::Register),
        item("b", Action::Cancel),
    ];
    assert_eq!(bench.batch(), expected);
    assert_eq!(bench.facts().retries, 1);
    assert_eq!(bench.facts().lag, Duration::from_millis(100));
}

#[test]
fn a_not_found_registers_the_instance_with_its_override() {
    let mut bench = Bench::new(PeerKind::Java);
    bench.says("a", AppliedKind::Overridden);
    bench.says("b", AppliedKind::Renewed);
    bench.batch();
    bench.answer(vec![ItemOutcome::Missing, ItemOutcome::Missing]);
    let expected = vec![
        item("a", Action::Register),
        item("a", Action::Override),
        item("b", Action::Register),
    ];
    assert_eq!(bench.batch(), expected);
    assert_eq!(bench.facts().missing, 2);
    // A peer that does not take the registration is not asked without end.
    bench.answer(vec![
        ItemOutcome::Failed(500),
        ItemOutcome::Missing,
        ItemOutcome::Missing,
    ]);
    assert!(bench.peer.is_idle());
    assert_eq!(bench.facts().failed, 3);
}

#[test]
fn a_not_found_does_not_register_what_was_cancelled_meanwhile() {
    let mut bench = Bench::new(PeerKind::Java);
    bench.says("a", AppliedKind::Overridden);
    bench.batch();
    bench.says("a", AppliedKind::Cancelled);
    bench.answer(vec![ItemOutcome::Missing]);
    assert_eq!(bench.batch(), vec![item("a", Action::Cancel)]);
    bench.answer(vec![ItemOutcome::Ok]);
    assert!(bench.peer.is_idle());
}

#[test]
fn a_newer_copy_is_handed_over_unless_the_instance_is_cancelled() {
    let mut bench = Bench::new(PeerKind::Java);
    bench.says("a", AppliedKind::Registered);
    bench.batch();
    let copy: Arc<Instance> = instance("a");
    let adopted = bench.answer(vec![ItemOutcome::Conflict(Arc::clone(&copy))]);
    assert_eq!(adopted, vec![Arc::clone(&copy)]);
    assert_eq!(bench.facts().conflicts, 1);
    assert!(bench.peer.is_idle());

    bench.says("a", AppliedKind::Registered);
    bench.batch();
    bench.says("a", AppliedKind::Cancelled);
    assert!(bench.answer(vec![ItemOutcome::Conflict(copy)]).is_empty());
    assert_eq!(bench.batch(), vec![item("a", Action::Cancel)]);
}

#[test]
fn an_item_that_fails_is_given_up_but_not_one_the_peer_has_no_time_for() {
    let mut bench = Bench::new(PeerKind::Java);
    bench.says("a", AppliedKind::Registered);
    bench.says("b", AppliedKind::Registered);
    bench.says("c", AppliedKind::Registered);
    bench.batch();
    bench.answer(vec![
        ItemOutcome::Failed(400),
        ItemOutcome::Failed(503),
        ItemOutcome::Void,
    ]);
    let facts = bench.facts();
    assert_eq!((facts.failed, facts.sent, facts.queue), (1, 0, 1));
    assert_eq!(bench.poll(), None, "it is left alone for a while");
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.batch(), vec![item("b", Action::Register)]);
}

#[test]
fn an_answer_of_another_length_says_nothing_of_any_item() {
    let mut bench = Bench::new(PeerKind::Java);
    bench.says("a", AppliedKind::Registered);
    bench.batch();
    bench.answer(vec![ItemOutcome::Ok, ItemOutcome::Ok]);
    assert_eq!(bench.facts().sent, 0);
    bench.pass(Duration::from_millis(100));
    assert_eq!(bench.batch(), vec![item("a", Action::Register)]);
}

#[test]
fn our_cancel_survives_a_peers_cancel_but_not_a_peers_registration() {
    let mut bench = Bench::new(PeerKind::Java);
    bench.says("a", AppliedKind::Cancelled);
    bench.hears("a", AppliedKind::Cancelled, peer_origin());
    assert_eq!(bench.batch(), vec![item("a", Action::Cancel)]);
    bench.hears("a", AppliedKind::Registered, peer_origin());
    bench.fail(Failure::Unreachable);
    assert!(bench.peer.is_idle(), "not even from the flight");

    for kind in [AppliedKind::Registered, AppliedKind::Adopted] {
        bench.says("b", AppliedKind::Cancelled);
        bench.hears("b", kind, peer_origin());
        assert!(bench.peer.is_idle(), "{kind:?}");
    }
}

#[test]
fn what_a_peer_cancelled_is_not_registered_elsewhere() {
    let mut bench = Bench::new(PeerKind::Java);
    for kind in [
        AppliedKind::Registered,
        AppliedKind::Overridden,
        AppliedKind::Renewed,
    ] {
        bench.says("a", kind);
    }
    bench.hears("a", AppliedKind::Cancelled, peer_origin());
    assert!(bench.peer.is_idle());
    bench.says("a", AppliedKind::Registered);
    bench.batch();
    bench.hears("a", AppliedKind::Cancelled, peer_origin());
    bench.fail(Failure::Unreachable);
    assert!(bench.peer.is_idle());
}

#[test]
fn a_peers_registration_does_not_take_the_place_of_ours() {
    let mut bench = Bench::new(PeerKind::Java);
    bench.says("a", AppliedKind::Registered);
    bench.hears("a", AppliedKind::Registered, peer_origin());
    assert_eq!(bench.batch(), vec![item("a", Action::Register)]);
}

#[test]
fn a_registration_in_place_of_a_cancel_also_ends_the_override() {
    let expected = vec![item("a", Action::Register), item("a", Action::ClearOverride)];
    let mut bench = Bench::new(PeerKind::Java);
    bench.says("a", AppliedKind::Cancelled);
    bench.says("a", AppliedKind::Registered);
    assert_eq!(bench.batch(), expected);
    bench.answer(vec![ItemOutcome::Ok; 2]);

    bench.says("a", AppliedKind::Cancelled);
    bench.batch();
    bench.says("a", AppliedKind::Registered);
    bench.fail(Failure::Unreachable);
    bench.pass(Duration::from_millis(100));
    assert_eq!(bench.batch(), expected);
}
