//! What a node says of its peers, and what it does not say.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use rustix::process::Signal;

use crate::cluster::{free_ports, member, url};
use crate::node::{Node, run, until};

#[test]
fn without_peers_everything_is_there_and_empty() {
    let node = Node::start(&[]);
    let peers = node.json("/api/v1/peers");
    assert_eq!(peers["nodeId"], node.json("/api/v1/node")["nodeId"]);
    assert_eq!(peers["reads"], "open");
    for list in ["peers", "strangers", "alarms"] {
        assert_eq!(peers[list], serde_json::json!([]), "{peers}");
    }
    assert_eq!(node.metric("eureka_mesh_strangers"), 0.0);
    assert!(node.ask("GET", "/").body.contains("<p>No peers</p>"));
    let repair = node.send(
        "POST",
        "/api/v1/repair/compare",
        "content-type: application/json\r\n",
        "{}",
    );
    assert_eq!(repair.status, 404, "{repair:?}");
}

#[test]
fn both_sides_of_a_link_are_told() {
    let ports = free_ports::<2>();
    let [one, other] = [0, 1].map(|position| member(ports[position], &ports, &[]));
    for (app, node, peer) in [("A", &one, &other), ("B", &other, &one)] {
        let link = until("the link is up both ways", || {
            let peers = node.json("/api/v1/peers");
            let link = peers["peers"][0].clone();
            let is_up =
                link["state"] == "up" && link["reachesUs"] == true && link["inbound"]["requests"] != 0;
            if is_up { Ok(link) } else { Err(peers.to_string()) }
        });
        assert_eq!(link["url"], url(peer.address.port()));
        assert_eq!(link["kind"], "ours");
        assert_eq!(link["nodeId"], peer.json("/api/v1/node")["nodeId"]);
        assert_eq!(link["rules"]["leaseExpiry"], "exact");
        let label = url(peer.address.port());
        assert_eq!(node.metric(&format!("eureka_peer_up{{peer=\"{label}\"}}")), 1.0);
        let page = node.ask("GET", "/").body;
        assert!(
            page.contains(&format!("href=\"{label}\"")) && page.contains("<b>up</b>"),
            "{page}"
        );
        let status = node
            .send("GET", "/eureka/status", "accept: application/json\r\n", "")
            .body;
        assert!(
            status.contains(&format!("\"available-replicas\":\"{label}")),
            "{status}"
        );
        node.line("link to a peer");
        // Whoever is known is called by the URL it is configured by.
        assert_eq!(peer.register(app, &label).status, 204);
        let line = node.line(&format!("registered app=\"{app}\""));
        assert!(line.ends_with(&format!("origin=\"{label}\"")), "{line}");
    }
}

#[test]
fn its_own_url_is_no_peer() {
    let [port] = free_ports();
    let node = member(port, &[port], &[]);
    crate::cluster::opens(&node);
    assert_eq!(node.json("/api/v1/peers")["peers"], serde_json::json!([]));
}

#[test]
fn an_address_that_leads_back_is_detected_and_nothing_is_applied_twice() {
    let [port] = free_ports();
    let listen = format!("0.0.0.0:{port}");
    // Another name of this machine, as a load balancer would be.
    let peer = format!("http://127.0.0.2:{port}/eureka");
    let mut node = Node::serve(&[
        "--listen",
        &listen,
        "--peer",
        &peer,
        "--set",
        "bootstrap.retry-interval=100ms",
    ]);
    node.address = ([127, 0, 0, 1], port).into();
    until("it is recognised", || {
        let peers = node.json("/api/v1/peers");
        let is_own = peers["peers"][0]["state"] == "own" && peers["alarms"][0]["name"] == "self-loop";
        if is_own { Ok(()) } else { Err(peers.to_string()) }
    });
    let alarm = format!("eureka_mesh_alarm{{name=\"self-loop\",peer=\"{peer}\"}}");
    assert_eq!(node.metric(&alarm), 1.0);
    node.line("alarm began");
    assert_eq!(node.register("A", "i").status, 204);
    assert_eq!(node.ask("DELETE", "/eureka/apps/A/i").status, 200);
    node.signal(Signal::TERM);
    let (_, log) = node.end_with_log();
    let events = log.iter().filter(|line| line.contains("app=\"A\"")).count();
    assert_eq!(events, 2, "one registration, one cancel: {log:#?}");
}

/// A server that answers every request with 401 and gives away the heads of the requests.
fn closed_door() -> (u16, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let (heads, seen) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut head = [0; 4096];
            let length = stream.read(&mut head).unwrap_or_default();
            // Either may be gone when the test is over.
            drop(heads.send(String::from_utf8_lossy(&head[..length]).into_owned()));
            drop(
                stream.write_all(
                    b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
                ),
            );
        }
    });
    (port, seen)
}

#[test]
fn credentials_are_sent_to_the_peer_and_shown_to_nobody() {
    let (port, heads) = closed_door();
    let peer = format!("http://operator:hunter2@127.0.0.1:{port}/eureka");
    let config = run(&["config", "--peer", &peer]);
    let text = String::from_utf8_lossy(&config.stdout).into_owned();
    assert!(
        text.contains(&format!("peers.urls = [\"http://***@127.0.0.1:{port}/eureka\"]")),
        "{text}"
    );
    let node = Node::serve(&[
        "--listen",
        "127.0.0.1:0",
        "--peer",
        &peer,
        "--set",
        "log.level=trace",
    ]);
    let head = heads
        .recv_timeout(crate::node::BOUND)
        .expect("it asks who the peer is");
    let sent = head.to_ascii_lowercase();
    assert!(sent.contains("authorization: basic "), "{head}");
    assert!(head.contains("b3BlcmF0b3I6aHVudGVyMg=="), "{head}");
    until("the failure is known", || {
        let peers = node.json("/api/v1/peers");
        if peers["peers"][0]["error"].is_string() {
            Ok(())
        } else {
            Err(peers.to_string())
        }
    });
    let mut shown = vec![text];
    for path in [
        "/api/v1/peers",
        "/api/v1/node",
        "/metrics",
        "/",
        "/eureka/status",
        "/health/ready",
    ] {
        shown.push(node.ask("GET", path).body);
    }
    shown.extend(node.started.iter().cloned());
    node.signal(Signal::TERM);
    shown.extend(node.end_with_log().1);
    for text in &shown {
        for secret in ["hunter2", "operator", "b3BlcmF0b3I6"] {
            assert!(!text.contains(secret), "{secret} is in {text}");
        }
    }
}

#[test]
fn a_wrong_url_is_a_mistake_that_is_told_without_the_url() {
    for (url, mistake) in [
        (
            "ftp://operator:hunter2@b",
            "URL number 1: the URL of a peer begins with http://",
        ),
        (
            "operator:hunter2@b:8761",
            "URL number 1: the URL of a peer begins with http://",
        ),
        (
            "https://operator:hunter2@b",
            "URL number 1: https is not available in this version",
        ),
        ("http://operator:hunter2@b:0", "URL number 1: the port"),
    ] {
        let output = run(&["serve", "--peer", url]);
        assert_eq!(output.status.code(), Some(64), "{output:?}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            text.contains(&format!("flag --peer: peers.urls: {mistake}")),
            "{text}"
        );
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[test]
fn a_url_among_the_names_is_a_mistake_without_its_password() {
    let output = run(&[
        "config",
        "--set",
        "peers.dns=http://operator:hunter2@b:8761/eureka",
    ]);
    assert_eq!(output.status.code(), Some(64), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        text.contains("peers.dns: \"http://***@b:8761/eureka\": an entry name:port"),
        "{text}"
    );
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn peers_add_up() {
    let output = run(&[
        "config",
        "--peer",
        "http://b:1/eureka/",
        "--set",
        "peers.urls=http://a:1/eureka",
        "--peer",
        "http://c:1",
    ]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let urls = "peers.urls = [\"http://a:1/eureka\", \"http://b:1/eureka/\", \"http://c:1\"]";
    assert!(text.contains(urls), "{text}");
}
