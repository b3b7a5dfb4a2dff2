//! Ways on which nothing arrives.

use super::Diagnosis;
use super::scripted::{Fake, Place, Script, places};

fn java_pair() -> ([Place; 2], Script, Script) {
    let [a, b] = places();
    let (first, second) = (a.java("a", &[&b.url]), b.java("b", &[&a.url]));
    ([a, b], first, second)
}

fn our_pair() -> ([Place; 2], Script, Script) {
    let [a, b] = places();
    let (first, second) = (a.ours(&[&b.url]), b.ours(&[&a.url]));
    ([a, b], first, second)
}

#[test]
fn a_registration_that_does_not_arrive() {
    let ([a, b], first, second) = java_pair();
    let (a, b) = (a.serve(first.has(Fake::new("ORDERS", "o-1"))), b.serve(second));
    let diagnosis = Diagnosis::of(&[&a, &b], "ORDERS", "o-1");
    diagnosis.is("one-way-link", &[&a, &b]);
    diagnosis.evidence("does not have it");
}

#[test]
fn heartbeats_that_do_not_arrive() {
    let ([a, b], first, second) = java_pair();
    let first = first
        .has(Fake::new("ORDERS", "o-1"))
        .has(Fake::new("ORDERS", "o-2"));
    let second = second
        .has(Fake::new("ORDERS", "o-1").heard(80))
        .has(Fake::new("ORDERS", "o-2").heard(80));
    let (a, b) = (a.serve(first), b.serve(second));
    let diagnosis = Diagnosis::compared(&[&a, &b]);
    diagnosis.is("one-way-link", &[&a, &b]);
    diagnosis.evidence("ORDERS/o-2");
}

#[test]
fn a_peer_address_that_leads_nowhere() {
    let [a, b, dead] = places();
    let (first, second) = (a.java("a", &[&dead.url]), b.java("b", &[&a.url]));
    let address = dead.url.clone();
    drop(dead);
    let (a, b) = (a.serve(first.has(Fake::new("ORDERS", "o-1"))), b.serve(second));
    let diagnosis = Diagnosis::of(&[&a, &b], "ORDERS", "o-1");
    diagnosis.is("one-way-link", &[&a, &b]);
    diagnosis.evidence(&address);
}

#[test]
fn a_peer_that_a_node_of_ours_does_not_reach() {
    let ([a, b], first, second) = our_pair();
    let first = first
        .says("state", "unreachable")
        .says("error", "connection refused");
    let (a, b) = (a.serve(first.alarm("one-way-link")), b.serve(second));
    let diagnosis = Diagnosis::compared(&[&a, &b]);
    diagnosis.is("one-way-link", &[&a, &b]);
    diagnosis.evidence("connection refused");
}

#[test]
fn a_java_server_that_does_not_reach_a_node_of_ours() {
    let [a, b] = places();
    let (first, second) = (a.java("a", &[&b.url]), b.ours(&[&a.url]).says("reachesUs", false));
    let (a, b) = (a.serve(first.has(Fake::new("ORDERS", "o-1"))), b.serve(second));
    let diagnosis = Diagnosis::of(&[&a, &b], "ORDERS", "o-1");
    diagnosis.is("one-way-link", &[&a, &b]);
    diagnosis.evidence("does not reach it");
}

#[test]
fn nothing_goes_either_way() {
    let ([a, b], first, second) = our_pair();
    let first = first.says("state", "unreachable").alarm("peer-silent");
    let second = second.says("state", "busy").alarm("peer-silent");
    let (a, b) = (a.serve(first), b.serve(second));
    Diagnosis::compared(&[&a, &b]).is("peer-silent", &[&a, &b]);
}

#[test]
fn java_servers_that_both_lack_what_the_other_hears() {
    let ([a, b], first, second) = java_pair();
    let first = first.has(Fake::new("ORDERS", "o-1"));
    let second = second.has(Fake::new("STOCK", "s-1"));
    let (a, b) = (a.serve(first), b.serve(second));
    Diagnosis::compared(&[&a, &b]).is("peer-silent", &[&a, &b]);
}

#[test]
fn a_peer_that_refuses() {
    let ([a, b], first, second) = our_pair();
    let first = first.says("state", "misconfigured").says("error", "401");
    let first = first.alarm("peer-misconfigured").has(Fake::new("ORDERS", "o-1"));
    let (a, b) = (a.serve(first), b.serve(second));
    let diagnosis = Diagnosis::of(&[&a, &b], "ORDERS", "o-1");
    diagnosis.is("peer-misconfigured", &[&a, &b]);
    diagnosis.evidence("401");
}

#[test]
fn what_was_registered_just_now_may_be_on_its_way() {
    let ([a, b], first, second) = java_pair();
    let (a, b) = (
        a.serve(first.has(Fake::new("ORDERS", "o-1").new_now())),
        b.serve(second),
    );
    Diagnosis::of(&[&a, &b], "ORDERS", "o-1").is_healthy();
}

#[test]
fn what_is_missing_for_no_known_reason_is_said_to_be() {
    let ([a, b], first, second) = our_pair();
    let (a, b) = (a.serve(first.has(Fake::new("ORDERS", "o-1"))), b.serve(second));
    Diagnosis::of(&[&a, &b], "ORDERS", "o-1").is("not-visible", &[&b]);
    Diagnosis::compared(&[&a, &b]).is("not-visible", &[&b]);
}
