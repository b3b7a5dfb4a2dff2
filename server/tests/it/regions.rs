//! Two regions that read each other: real nodes.

use std::net::TcpListener;

use rustix::process::Signal;
use serde_json::Value;

use crate::node::{Node, run, until};

/// An address at which nobody answers, held as long as the listener is not dropped: it never accepts.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    drop(listener);
    format!("http://{address}/eureka/")
}

fn url(node: &Node) -> String {
    format!("http://operator:hunter2@{}/eureka/", node.address)
}

fn is_listed(node: &Node, path: &str, id: &str) -> Result<(), String> {
    let answer = node.send("GET", path, "accept: application/json\r\n", "");
    match answer.body.contains(&format!("\"instanceId\":\"{id}\"")) {
        true => Ok(()),
        false => Err(format!("{path}: {answer:?}")),
    }
}

fn region(node: &Node) -> Value {
    node.json("/api/v1/node")["regions"][0].take()
}

#[test]
fn the_next_server_is_read_when_one_is_dead() {
    let east = Node::start(&[]);
    assert_eq!(east.register("ORDERS", "e").status, 204);
    assert_eq!(east.register("SECRET", "s").status, 204);
    let west = Node::start(&[
        &format!("regions.urls=east={} {}", nobody(), url(&east)),
        "regions.applications=*=orders",
        "regions.fetch-interval=100ms",
    ]);
    until("the other region is listed", || {
        is_listed(&west, "/eureka/apps", "e")
    });
    for path in [
        "/eureka/apps?regions=EAST",
        "/eureka/apps/ORDERS",
        "/eureka/apps/ORDERS/e",
    ] {
        is_listed(&west, path, "e").expect("it is in the list");
    }
    assert!(is_listed(&west, "/eureka/apps", "s").is_err());
    let told = region(&west);
    assert_eq!(told["name"], "east");
    assert_eq!(told["instances"], 1);
    assert_eq!(told["server"], format!("http://{}/eureka/", east.address));
    assert!(told["ageMs"].as_u64().is_some_and(|age| age < 20_000), "{told}");
    west.metric_becomes("eureka_region_instances{region=\"east\"}", 1.0);
    assert!(west.metric("eureka_region_age_seconds{region=\"east\"}") < 20.0);
    assert!(west.metric("eureka_region_reads_total{region=\"east\",result=\"success\"}") >= 1.0);
    let page = west.ask("GET", "/").body;
    assert!(
        page.contains("<h1>Other regions</h1>") && page.contains("<b>east</b>"),
        "{page}"
    );
    // What leaves there leaves here.
    assert_eq!(east.ask("DELETE", "/eureka/apps/ORDERS/e").status, 200);
    assert_eq!(east.register("ORDERS", "e2").status, 204);
    until("the new one is listed", || is_listed(&west, "/eureka/apps", "e2"));
    until("the old one is not", || {
        match is_listed(&west, "/eureka/apps", "e") {
            Ok(()) => Err("it is".to_owned()),
            Err(_) => Ok(()),
        }
    });
}

#[test]
fn a_region_that_is_dead_keeps_what_was_read_and_says_how_old_it_is() {
    let east = Node::start(&[]);
    assert_eq!(east.register("ORDERS", "e").status, 204);
    let west = Node::start(&[
        &format!("regions.urls=east={}", url(&east)),
        "regions.fetch-interval=100ms",
    ]);
    until("the other region is listed", || {
        is_listed(&west, "/eureka/apps", "e")
    });
    east.signal(Signal::KILL);
    east.end();
    let told = until("it is told that nobody answers", || {
        let told = region(&west);
        if told["error"].is_string() && told["failures"].as_u64() > Some(1) {
            Ok(told)
        } else {
            Err(told.to_string())
        }
    });
    assert!(!told.to_string().contains("hunter2"), "{told}");
    is_listed(&west, "/eureka/apps", "e").expect("what was known stays");
    assert_eq!(west.register("HERE", "h").status, 204);
    is_listed(&west, "/eureka/apps", "h").expect("this region lives on");
    west.signal(Signal::TERM);
    let (_, log) = west.end_with_log();
    assert!(
        log.iter()
            .any(|line| line.contains("another region cannot be read")),
        "{log:?}"
    );
    assert!(log.iter().all(|line| !line.contains("hunter2")), "{log:?}");
}

#[test]
fn regions_that_read_each_other_hand_nothing_back() {
    let east = Node::start(&[]);
    let west = Node::start(&[
        &format!("regions.urls=east={}", url(&east)),
        "regions.fetch-interval=100ms",
    ]);
    let third = Node::start(&[
        &format!("regions.urls=west={}", url(&west)),
        "regions.fetch-interval=100ms",
    ]);
    assert_eq!(east.register("ORDERS", "e").status, 204);
    until("the other region is listed", || {
        is_listed(&west, "/eureka/apps", "e")
    });
    // What registers in the west later is in the third region: so what was there before would be.
    assert_eq!(west.register("HERE", "h").status, 204);
    until("the west is listed", || is_listed(&third, "/eureka/apps", "h"));
    assert!(
        is_listed(&third, "/eureka/apps", "e").is_err(),
        "it is not the west's"
    );
}

#[test]
fn who_names_a_region_that_never_answers_is_refused_for_a_while() {
    let west = Node::start(&[&format!("regions.urls=east={}", nobody()), "regions.wait=2s"]);
    assert_eq!(west.ask("GET", "/eureka/apps?regions=east").status, 403);
    assert_eq!(west.ask("GET", "/eureka/apps").status, 200);
    until("it waits no longer", || {
        match west.ask("GET", "/eureka/apps?regions=east").status {
            200 => Ok(()),
            status => Err(status.to_string()),
        }
    });
}

#[test]
fn what_is_wrong_with_regions_is_said_without_passwords() {
    for (pair, mistake) in [
        (
            "regions.urls=http://u:hunter2@h/",
            "regions.urls: region number 1: a name and URLs are expected",
        ),
        (
            "regions.urls=a=http://h:1/,b=x://u:hunter2@h/",
            "region number 2: the URL of a server begins with http",
        ),
        (
            "regions.urls=a=https://u:hunter2@h/",
            "region number 1: https is not available in this version",
        ),
        ("regions.urls=a=", "region number 1: it has no URL"),
        (
            "regions.urls=a b=http://h/",
            "region number 1: \"a b\" is not a name of a region",
        ),
        (
            "regions.applications=ORDERS",
            "regions.applications: \"ORDERS\" is not a region with applications",
        ),
        (
            "regions.applications=west=ORDERS",
            "there is no region \"west\" in regions.urls",
        ),
        ("regions.wait=soon", "or \"forever\""),
    ] {
        let output = run(&["config", "--set", pair]);
        assert_eq!(output.status.code(), Some(64), "{pair}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains(mistake), "{mistake} is not in {text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
    let many: Vec<String> = (0..17).map(|number| format!("r{number}=http://h/")).collect();
    let output = run(&["config", "--set", &format!("regions.urls={}", many.join(","))]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("more than 16 regions"));
    let pair = "regions.urls=West=http://u:hunter2@a:1/eureka http://b:1/,west=http://u:hunter2@c/";
    let output = run(&[
        "config",
        "--set",
        pair,
        "--set",
        "regions.applications=west=A,B,*=C",
    ]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let shown = "regions.urls = [\"West=http://***@a:1/eureka http://b:1/\", \"west=http://***@c/\"]";
    assert!(text.contains(shown), "{text}");
    assert!(
        text.contains("regions.applications = [\"west=A\", \"B\", \"*=C\"]"),
        "{text}"
    );
}
