//! Leases that nobody renews, and clocks.

use super::Diagnosis;
use super::scripted::{Fake, places};

#[test]
fn a_client_that_uses_none_of_these_servers() {
    let [a, b, c] = places();
    let scripts = [a.java("a", &[&b.url, &c.url]), b.java("b", &[&a.url, &c.url])];
    let stale = || Fake::new("ORDERS", "o-1").heard(70);
    let [first, second] = scripts.map(|script| script.has(stale()));
    let elsewhere = c.java("c", &[]).has(Fake::new("ORDERS", "o-1"));
    let (a, b, c) = (a.serve(first), b.serve(second), c.serve(elsewhere));
    let diagnosis = Diagnosis::of(&[&a, &b], "ORDERS", "o-1");
    diagnosis.is("client-elsewhere", &[&a, &b]);
    diagnosis.evidence(&c);
}

#[test]
fn where_the_heartbeats_arrive_is_told() {
    let [a, b] = places();
    let first = a
        .java("a", &[&b.url])
        .has(Fake::new("ORDERS", "o-1").heard_ms(4_000));
    let second = b.ours(&[&a.url]).has(Fake::new("ORDERS", "o-1").heard_ms(4_900));
    let (a, b) = (a.serve(first), b.serve(second));
    let diagnosis = Diagnosis::of(&[&a, &b], "ORDERS", "o-1");
    diagnosis.is_healthy();
    let told = format!("the client most likely uses {b}.");
    assert!(
        diagnosis.checked.iter().any(|line| line.contains(&told)),
        "{diagnosis:#?}"
    );
}

#[test]
fn one_java_server_keeps_what_the_other_evicted() {
    let [a, b] = places();
    let first = a.java("a", &[&b.url]).preserving();
    let first = first.has(Fake::new("ORDERS", "o-1").heard(400));
    let second = b.java("b", &[&a.url]);
    let (a, b) = (a.serve(first), b.serve(second));
    let diagnosis = Diagnosis::of(&[&a, &b], "ORDERS", "o-1");
    diagnosis.is("preservation-on-one-side", &[&a, &b]);
    diagnosis.evidence("keeps it");
    Diagnosis::compared(&[&a, &b]).is("preservation-on-one-side", &[&a, &b]);
}

#[test]
fn one_node_of_ours_preserves() {
    let [a, b] = places();
    let (first, second) = (a.ours(&[&b.url]).preserving(), b.ours(&[&a.url]));
    let second = second.alarm("peer-preserving").alarm("different-rules");
    let (a, b) = (a.serve(first), b.serve(second));
    let diagnosis = Diagnosis::compared(&[&a, &b]);
    diagnosis.is("preservation-on-one-side", &[&a, &b]);
    diagnosis.evidence("different-rules, it says");
}

#[test]
fn nodes_of_ours_with_different_rules() {
    let [a, b] = places();
    let (first, second) = (a.ours(&[&b.url]), b.ours(&[&a.url]));
    let first = first.alarm("different-rules");
    let (a, b) = (a.serve(first), b.serve(second.alarm("different-rules")));
    Diagnosis::compared(&[&a, &b]).is("different-rules", &[&a, &b]);
}

#[test]
fn a_java_server_that_preserves_while_nothing_is_missing_is_none() {
    let [a, b] = places();
    let (first, second) = (a.java("a", &[&b.url]).preserving(), b.java("b", &[&a.url]));
    let (a, b) = (a.serve(first), b.serve(second));
    Diagnosis::compared(&[&a, &b]).is_healthy();
}

#[test]
fn a_server_with_a_wrong_clock() {
    let [a, b, c] = places();
    let first = a.java("a", &[&b.url, &c.url]).has(Fake::new("ORDERS", "o-1"));
    let second = b
        .java("b", &[&a.url, &c.url])
        .has(Fake::new("ORDERS", "o-1"))
        .skewed(-120);
    let third = c.ours(&[&a.url, &b.url]).has(Fake::new("ORDERS", "o-1"));
    let (a, b, c) = (a.serve(first), b.serve(second), c.serve(third));
    let diagnosis = Diagnosis::of(&[&a, &b, &c], "ORDERS", "o-1");
    diagnosis.is("clock-skew", &[&b]);
    diagnosis.evidence("-11");
}

#[test]
fn two_nodes_of_ours_whose_clocks_differ() {
    let [a, b] = places();
    let (first, second) = (a.ours(&[&b.url]).skewed(20), b.ours(&[&a.url]));
    let first = first.has(Fake::new("ORDERS", "o-1"));
    let second = second.has(Fake::new("ORDERS", "o-1"));
    let (a, b) = (a.serve(first), b.serve(second));
    Diagnosis::compared(&[&a, &b]).is("clock-skew", &[&b, &a]);
}

#[test]
fn a_client_from_the_future() {
    let [a] = places();
    let instance = Fake::new("ORDERS", "o-1").with("lastDirtyTimestamp", "9999999999999");
    let script = a.java("a", &[]).has(instance);
    let a = a.serve(script);
    Diagnosis::of(&[&a], "ORDERS", "o-1").is("client-clock-ahead", &[&a]);
}
