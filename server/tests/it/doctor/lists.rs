//! Lists that lag, are held back, or cannot be read.

use super::Diagnosis;
use super::scripted::{Fake, places};

#[test]
fn a_list_from_a_cache() {
    let [a, b] = places();
    let first = a.java("a", &[&b.url]).has(Fake::new("ORDERS", "o-1"));
    let second = b
        .java("b", &[&a.url])
        .has(Fake::new("ORDERS", "o-1"))
        .lists(Vec::new());
    let (a, b) = (a.serve(first), b.serve(second));
    let diagnosis = Diagnosis::of(&[&a, &b], "ORDERS", "o-1");
    diagnosis.is("read-cache", &[&b]);
    diagnosis.evidence("does not list it");
    Diagnosis::compared(&[&a, &b]).is("read-cache", &[&b]);
}

#[test]
fn a_list_of_ours_with_javas_cache() {
    let [a, b] = places();
    let old = Fake::new("ORDERS", "o-1").with("status", "STARTING");
    let first = a.ours(&[&b.url]).has(Fake::new("ORDERS", "o-1"));
    let second = b.ours(&[&a.url]).has(Fake::new("ORDERS", "o-1")).lists(vec![old]);
    let (a, b) = (a.serve(first), b.serve(second));
    let diagnosis = Diagnosis::of(&[&a, &b], "ORDERS", "o-1");
    diagnosis.is("read-cache", &[&b]);
    diagnosis.evidence("still STARTING");
}

#[test]
fn a_list_that_still_shows_what_was_cancelled() {
    let [a] = places();
    let script = a.java("a", &[]).lists(vec![Fake::new("ORDERS", "o-1")]);
    let a = a.serve(script);
    Diagnosis::of(&[&a], "ORDERS", "o-1").is("read-cache", &[&a]);
}

#[test]
fn a_java_server_that_was_just_started() {
    let [a, b] = places();
    let first = a.java("a", &[&b.url]).has(Fake::new("ORDERS", "o-1"));
    let second = b.java("b", &[&a.url]).held();
    let (a, b) = (a.serve(first), b.serve(second));
    let diagnosis = Diagnosis::of(&[&a, &b], "ORDERS", "o-1");
    diagnosis.is("reads-held", &[&b]);
    diagnosis.evidence("403");
    Diagnosis::compared(&[&a, &b]).is("reads-held", &[&b]);
}

#[test]
fn a_node_of_ours_that_was_just_started() {
    let [a, b] = places();
    let first = a.java("a", &[&b.url]).has(Fake::new("ORDERS", "o-1"));
    let second = b.ours(&[&a.url]).has(Fake::new("ORDERS", "o-1")).held();
    let (a, b) = (a.serve(first), b.serve(second));
    Diagnosis::of(&[&a, &b], "ORDERS", "o-1").is("reads-held", &[&b]);
}

#[test]
fn a_list_that_is_refused_for_too_much_to_do() {
    let [a] = places();
    let script = a.ours(&[]).sheds();
    let a = a.serve(script);
    let diagnosis = Diagnosis::compared(&[&a]);
    diagnosis.is("list-unreadable", &[&a]);
    diagnosis.evidence("503");
    let remedy = diagnosis.findings[0]["remedy"].as_str();
    assert!(
        remedy.is_some_and(|text| text.contains("too much to do")),
        "{remedy:?}"
    );
}

#[test]
fn a_list_that_is_empty_bytes() {
    let [a] = places();
    let script = a.java("a", &[]).lists_text("");
    let a = a.serve(script);
    let diagnosis = Diagnosis::compared(&[&a]);
    diagnosis.is("list-unreadable", &[&a]);
    diagnosis.evidence("empty body");
}
