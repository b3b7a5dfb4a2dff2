//! How servers are asked, and what is said when they cannot be.

use super::scripted::{Fake, places};
use super::{Diagnosis, run};
use crate::node::Node;

#[test]
fn credentials_are_used_and_never_printed() {
    let [a, b] = places();
    let with_password = |url: &str| url.replace("http://", "http://eve:s3cr%40t@");
    // eve:s3cr@t
    let token = "ZXZlOnMzY3JAdA==";
    let first = a.java("a", &[&with_password(&b.url)]).asks_for(token);
    let second = b.java("b", &[&with_password(&a.url)]).asks_for(token);
    let (a, b) = (
        a.serve(first.has(Fake::new("ORDERS", "o-1"))),
        b.serve(second.has(Fake::new("ORDERS", "o-1"))),
    );
    let (a, b) = (with_password(&a), with_password(&b));
    let diagnosis = Diagnosis::of(&[&a, &b], "ORDERS", "o-1");
    diagnosis.is_healthy();
    for secret in ["eve", "s3cr", token] {
        assert!(!diagnosis.output.contains(secret), "{diagnosis:#?}");
    }
}

#[test]
fn a_server_that_asks_for_credentials_cannot_be_asked() {
    let [a, b] = places();
    let (first, second) = (a.java("a", &[&b.url]).asks_for("x"), b.java("b", &[&a.url]));
    let (a, b) = (a.serve(first), b.serve(second));
    let diagnosis = Diagnosis::compared(&[&a, &b]);
    assert_eq!(diagnosis.exit, Some(2), "{diagnosis:#?}");
    assert_eq!(diagnosis.findings.len(), 1, "{diagnosis:#?}");
    assert_eq!(diagnosis.findings[0]["name"], "server-unreachable");
    assert_eq!(diagnosis.findings[0]["servers"][0], a.as_str());
    diagnosis.evidence("401");
}

#[test]
fn a_server_that_is_down_is_a_finding_and_not_its_peers_besides() {
    let [a, b] = places();
    let second = b
        .ours(&[&a.url])
        .says("state", "unreachable")
        .alarm("peer-silent");
    let (down, b) = (a.url.clone(), b.serve(second));
    drop(a);
    let diagnosis = Diagnosis::compared(&[&down, &b]);
    assert_eq!(diagnosis.exit, Some(2), "{diagnosis:#?}");
    assert_eq!(diagnosis.findings.len(), 1, "{diagnosis:#?}");
    diagnosis.evidence("no connection");
}

#[test]
fn without_json_it_speaks_in_sentences() {
    let [a, b] = places();
    let (first, second) = (a.ours(&[]), b.ours(&[]));
    let (a, b) = (a.serve(first), b.serve(second));
    let output = run(&[&a, &b], &[]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.contains("1. not-a-peer: "), "{text}");
    assert!(text.contains("\n   seen: "), "{text}");
    assert!(text.contains("\n   do:   List every server"), "{text}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_real_node_of_ours_is_understood() {
    let node = Node::start(&[]);
    assert_eq!(node.register("ORDERS", "o-1").status, 204);
    let url = format!("http://{}", node.address);
    let diagnosis = Diagnosis::of(&[&url], "orders", "o-1");
    diagnosis.is_healthy();
    let told = &diagnosis.checked[0];
    assert!(told.contains("is a node of ours, id "), "{diagnosis:#?}");
    assert!(
        diagnosis
            .checked
            .iter()
            .any(|line| line.contains("ORDERS/o-1 is UP at"))
    );
}

#[test]
fn mistakes_of_the_command_line_are_told() {
    for wrong in [
        &["doctor"][..],
        &["doctor", "--server", "ftp://x"],
        &["doctor", "--server", "http://x", "--app", "A"],
        &["doctor", "--server", "http://x", "--watch", "1h"],
    ] {
        assert_eq!(crate::node::run(wrong).status.code(), Some(64), "{wrong:?}");
    }
}
