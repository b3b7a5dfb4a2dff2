//! Differing content, and ids that stand for more than one thing.

use super::Diagnosis;
use super::scripted::{Fake, places};

fn java_pair_with(first: Fake, second: Fake) -> (String, String) {
    let [a, b] = places();
    let (one, two) = (a.java("a", &[&b.url]), b.java("b", &[&a.url]));
    (a.serve(one.has(first)), b.serve(two.has(second)))
}

#[test]
fn an_override_that_only_one_server_has() {
    let taken_out = Fake::new("ORDERS", "o-1")
        .with("status", "OUT_OF_SERVICE")
        .with("overriddenStatus", "OUT_OF_SERVICE");
    let (a, b) = java_pair_with(Fake::new("ORDERS", "o-1"), taken_out);
    let diagnosis = Diagnosis::of(&[&a, &b], "ORDERS", "o-1");
    diagnosis.is("override-differs", &[&a, &b]);
    diagnosis.evidence(&format!("OUT_OF_SERVICE at {b}"));
    Diagnosis::compared(&[&a, &b]).is("override-differs", &[&a, &b]);
}

#[test]
fn metadata_that_differs_at_equal_versions() {
    let [a, b] = places();
    let first = Fake::new("ORDERS", "o-1").with("metadata", serde_json::json!({"colour": "blue"}));
    let second = Fake::new("ORDERS", "o-1").with("metadata", serde_json::json!({"colour": "green"}));
    let (one, two) = (a.java("a", &[&b.url]).has(first), b.ours(&[&a.url]).has(second));
    let (a, b) = (a.serve(one), b.serve(two));
    let diagnosis = Diagnosis::of(&[&a, &b], "ORDERS", "o-1");
    diagnosis.is("differing-content", &[&a, &b]);
    diagnosis.evidence("colour=green");
}

#[test]
fn a_version_that_was_not_passed_on() {
    let newer = Fake::new("ORDERS", "o-1")
        .with("lastDirtyTimestamp", "2000")
        .with("status", "DOWN");
    let (a, b) = java_pair_with(Fake::new("ORDERS", "o-1"), newer);
    Diagnosis::of(&[&a, &b], "ORDERS", "o-1").is("differing-versions", &[&a, &b]);
}

#[test]
fn old_content_behind_a_broken_way_is_not_said_again() {
    let newer = Fake::new("ORDERS", "o-1").with("lastDirtyTimestamp", "2000");
    let (a, b) = java_pair_with(Fake::new("ORDERS", "o-1").heard(80), newer);
    Diagnosis::of(&[&a, &b], "ORDERS", "o-1").is("one-way-link", &[&b, &a]);
}

#[test]
fn an_id_of_two_applications() {
    let [a, b] = places();
    let both = [Fake::new("ORDERS", "i-1"), Fake::new("STOCK", "i-1")];
    let [first, second] = both.clone();
    let one = a.java("a", &[&b.url]).has(first).has(second);
    let [first, second] = both;
    let two = b.ours(&[&a.url]).has(first).has(second);
    let (a, b) = (a.serve(one), b.serve(two));
    let diagnosis = Diagnosis::of(&[&a, &b], "ORDERS", "i-1");
    diagnosis.is("id-in-two-apps", &[&a, &b]);
    diagnosis.evidence("ORDERS and STOCK");
    Diagnosis::compared(&[&a, &b]).is("id-in-two-apps", &[&a, &b]);
}

#[test]
fn an_id_of_two_machines() {
    let copy = Fake::new("ORDERS", "o-1")
        .with("hostName", "h2")
        .with("ipAddr", "10.0.0.2");
    let (a, b) = java_pair_with(Fake::new("ORDERS", "o-1"), copy);
    let diagnosis = Diagnosis::of(&[&a, &b], "ORDERS", "o-1");
    diagnosis.is("id-of-two-hosts", &[&a, &b]);
    diagnosis.evidence("host h2");
}

#[test]
fn an_instance_that_nobody_has() {
    let (a, b) = java_pair_with(Fake::new("ORDERS", "O-1"), Fake::new("ORDERS", "O-1"));
    let diagnosis = Diagnosis::of(&[&a, &b], "ORDERS", "o-1");
    diagnosis.is("not-registered", &[&a, &b]);
    diagnosis.evidence("there is ORDERS/O-1");
}

#[test]
fn an_instance_that_is_down_everywhere() {
    let down = || Fake::new("ORDERS", "o-1").with("status", "DOWN");
    let (a, b) = java_pair_with(down(), down());
    Diagnosis::of(&[&a, &b], "ORDERS", "o-1").is("not-up", &[&a, &b]);
}

#[test]
fn healthy_servers_are_healthy() {
    let (a, b) = java_pair_with(Fake::new("ORDERS", "o-1"), Fake::new("ORDERS", "o-1"));
    Diagnosis::of(&[&a, &b], "ORDERS", "o-1").is_healthy();
    let diagnosis = Diagnosis::compared(&[&a, &b]);
    diagnosis.is_healthy();
    let counted = format!("{b} lists 1 instances of 1 applications, hash UP_1_.");
    assert!(diagnosis.checked.contains(&counted), "{diagnosis:#?}");
}
