//! Peer addresses that lead nowhere, elsewhere, or back.

use super::Diagnosis;
use super::scripted::{Fake, places};

#[test]
fn a_peer_address_that_java_servers_share() {
    let [a, b, shared] = places();
    let (first, second) = (a.java("a", &[&shared.url]), b.java("b", &[&shared.url]));
    let instance = Fake::new("ORDERS", "o-1");
    let shared = shared.balance(vec![first.clone(), second.clone()]);
    let (a, b) = (a.serve(first.has(instance)), b.serve(second));
    let diagnosis = Diagnosis::of(&[&a, &b], "orders", "o-1");
    diagnosis.is("shared-address", &[&a, &b]);
    diagnosis.evidence("a:eureka:");
    diagnosis.evidence("b:eureka:");
    assert!(diagnosis.output.contains(&shared), "{diagnosis:#?}");
}

#[test]
fn a_peer_address_that_nodes_of_ours_share() {
    let [a, b, shared] = places();
    let (first, second) = (a.ours(&[&shared.url]), b.ours(&[&shared.url]));
    shared.balance(vec![first.clone(), second.clone()]);
    let (a, b) = (
        a.serve(first.alarm("shared-address")),
        b.serve(second.alarm("self-loop")),
    );
    Diagnosis::compared(&[&a, &b]).is("shared-address", &[&a, &b]);
}

#[test]
fn a_server_that_was_named_by_a_shared_address() {
    let [a, b, shared] = places();
    let (first, second) = (a.ours(&[&b.url]), b.ours(&[&a.url]));
    let shared = shared.balance(vec![first.clone(), second.clone()]);
    a.serve(first);
    b.serve(second);
    Diagnosis::compared(&[&shared]).is("shared-address", &[&shared]);
}

#[test]
fn a_java_server_that_replicates_to_itself() {
    let [a, b, alias] = places();
    let (first, second) = (a.java("a", &[&alias.url]), b.java("b", &[&a.url]));
    alias.serve(first.clone());
    let instance = Fake::new("ORDERS", "o-1");
    let (a, b) = (a.serve(first.has(instance)), b.serve(second));
    let diagnosis = Diagnosis::of(&[&a, &b], "ORDERS", "o-1");
    diagnosis.is("self-loop", &[&a]);
    diagnosis.evidence("answers as");
}

#[test]
fn a_node_of_ours_that_says_its_peer_is_itself() {
    let [a, b] = places();
    let elsewhere = "http://10.255.255.1.invalid:8761/eureka";
    let (first, second) = (a.ours(&[elsewhere]).says("state", "own"), b.ours(&[&a.url]));
    let (a, b) = (a.serve(first.alarm("self-loop")), b.serve(second));
    let diagnosis = Diagnosis::compared(&[&a, &b]);
    diagnosis.is("self-loop", &[&a]);
    diagnosis.evidence("self-loop, it says");
}

#[test]
fn one_server_by_two_names() {
    let [a, alias] = places();
    let script = a.ours(&[]);
    let alias = alias.serve(script.clone());
    let a = a.serve(script);
    Diagnosis::compared(&[&a, &alias]).is("same-server", &[&a, &alias]);
}

#[test]
fn java_servers_of_one_host_name() {
    let [a, b] = places();
    let (first, second) = (a.java("127.0.0.1", &[]), b.java("127.0.0.1", &[]));
    let (a, b) = (a.serve(first.has(Fake::new("ORDERS", "o-1"))), b.serve(second));
    let diagnosis = Diagnosis::of(&[&a, &b], "ORDERS", "o-1");
    diagnosis.is("taken-for-itself", &[&a, &b]);
    diagnosis.evidence("127.0.0.1");
}

#[test]
fn a_java_server_with_the_host_name_of_a_node_of_ours() {
    let [a, b] = places();
    let (first, second) = (a.java("127.0.0.1", &[]), b.ours(&[&a.url]));
    let (a, b) = (a.serve(first.has(Fake::new("ORDERS", "o-1"))), b.serve(second));
    Diagnosis::of(&[&a, &b], "ORDERS", "o-1").is("taken-for-itself", &[&a, &b]);
}

#[test]
fn a_server_that_nobody_has_as_a_peer() {
    let [a, b, c] = places();
    let scripts = [a.java("a", &[&b.url]), b.java("b", &[&a.url]), c.java("c", &[])];
    let [first, second, third] = scripts;
    let third = third.has(Fake::new("ORDERS", "o-1"));
    let (a, b, c) = (a.serve(first), b.serve(second), c.serve(third));
    let diagnosis = Diagnosis::of(&[&a, &b, &c], "ORDERS", "o-1");
    diagnosis.is("not-a-peer", &[&c, &a, &b]);
    diagnosis.evidence("tells these peers: none");
    assert!(
        diagnosis
            .checked
            .iter()
            .any(|line| line.contains("first at") && line.contains(&c)),
        "where the client's heartbeats arrive: {diagnosis:#?}"
    );
}

#[test]
fn nodes_of_ours_without_peers() {
    let [a, b] = places();
    let (first, second) = (a.ours(&[]), b.ours(&[]));
    let (a, b) = (a.serve(first.has(Fake::new("ORDERS", "o-1"))), b.serve(second));
    Diagnosis::compared(&[&a, &b]).is("not-a-peer", &[&a, &b]);
}

#[test]
fn a_peer_that_knows_only_one_way() {
    let [a, b] = places();
    let (first, second) = (a.ours(&[]), b.java("b", &[&a.url]));
    let (a, b) = (a.serve(first.has(Fake::new("ORDERS", "o-1"))), b.serve(second));
    Diagnosis::of(&[&a, &b], "ORDERS", "o-1").is("not-a-peer", &[&a, &b]);
}
