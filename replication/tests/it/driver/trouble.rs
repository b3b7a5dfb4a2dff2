//! Peers that fail, and come back; peers that change.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use eureka_replication::driver::{Resolver, Settings};
use eureka_replication::{LinkState, NodeId, PeerKind};

use super::java::{all_done, empty, java};
use super::names::Names;
use super::node::{Node, settings, sources};
use super::scripted::{Reply, Scripted, answer, json};

const OWN: NodeId = NodeId([7, 7]);

fn url(peer: &Scripted) -> String {
    format!("http://{}/eureka", peer.address)
}

/// A peer whose batches fail like this until it is repaired.
async fn broken(reply: Reply) -> (Scripted, Arc<AtomicBool>) {
    let repaired = Arc::new(AtomicBool::new(false));
    let is_repaired = Arc::clone(&repaired);
    let peer = Scripted::start(move |request| {
        if request.target.ends_with("/batch/") && !is_repaired.load(Ordering::Acquire) {
            return reply.clone();
        }
        java(request, &empty())
    });
    (peer.await, repaired)
}

#[tokio::test]
async fn whatever_fails_is_told_again() {
    let one_too_many = r#"{"responseList":[{"statusCode":200},{"statusCode":200}]}"#;
    for (reply, state) in [
        (Reply::Keep(answer(503, &[], b"")), LinkState::Busy),
        (
            Reply::Keep(answer(429, &[("retry-after", "1")], b"")),
            LinkState::Busy,
        ),
        (Reply::Hang(Vec::new()), LinkState::Busy),
        (Reply::Keep(answer(500, &[], b"")), LinkState::Unreachable),
        (Reply::Keep(json(200, "")), LinkState::Unreachable),
        (Reply::Keep(json(200, "{")), LinkState::Unreachable),
        (Reply::Keep(json(200, one_too_many)), LinkState::Unreachable),
        (Reply::Close(b"what?\r\n".to_vec()), LinkState::Unreachable),
        (Reply::Close(Vec::new()), LinkState::Unreachable),
    ] {
        let what = format!("{reply:?}");
        let (peer, repaired) = broken(reply).await;
        let impatient = Settings {
            request_timeout: Duration::from_millis(300),
            ..settings()
        };
        let node = Node::with(OWN, sources(&[url(&peer)], &[]), Resolver::system(), impatient);
        let node = node.ready().await;
        node.register("a", "1");
        node.until(&what, |node| {
            node.peer().state == state && node.peer().error.is_some()
        })
        .await;
        assert_eq!(node.peer().queue, 1, "{what}");
        repaired.store(true, Ordering::Release);
        node.until(&what, |node| {
            let facts = node.peer();
            facts.state == LinkState::Up && facts.queue == 0 && facts.sent == 1
        })
        .await;
    }
}

#[tokio::test]
async fn whoever_refuses_us_is_left_alone() {
    let (peer, _repaired) = broken(Reply::Keep(answer(401, &[], b"who are you?"))).await;
    let node = Node::start(OWN, &[url(&peer)]).await;
    node.register("a", "1");
    node.until("a refusal", |node| node.peer().state == LinkState::Misconfigured)
        .await;
    let error = node.peer().error.expect("known");
    assert!(error.contains("401"), "{error}");
    assert!(error.contains("who are you?"), "{error}");
}

#[tokio::test]
async fn an_error_does_not_tell_what_a_peer_is() {
    let mut requests = 0;
    let peer = Scripted::start(move |request| {
        requests += 1;
        match requests {
            1 => Reply::Keep(answer(502, &[], b"")),
            2 => Reply::Keep(answer(503, &[], b"")),
            _ => java(request, &empty()),
        }
    })
    .await;
    let node = Node::start(OWN, &[url(&peer)]).await;
    node.until("a kind", |node| node.peer().kind != PeerKind::Unknown)
        .await;
    let received = peer.received();
    assert!(
        received[..3]
            .iter()
            .all(|request| request.target == "GET /api/v1/node"),
        "asked until it says: {received:#?}"
    );
}

#[tokio::test]
async fn a_peer_that_is_not_there_and_then_is() {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = free.local_addr().expect("it is bound");
    drop(free);
    let node = Node::start(OWN, &[format!("http://{address}/eureka")]).await;
    node.register("a", "1");
    node.until("a failure", |node| node.peer().state == LinkState::Unreachable)
        .await;
    let listener = tokio::net::TcpListener::bind(address).await.expect("still free");
    let _peer = Scripted::on(listener, |request| java(request, &empty()));
    node.until("the instance", |node| node.peer().sent == 1).await;
}

#[tokio::test]
async fn other_peers_without_a_restart() {
    let first = Scripted::start(|request| java(request, &empty())).await;
    let second = Scripted::start(|request| java(request, &empty())).await;
    let node = Node::start(OWN, &[url(&first)]).await;
    node.until("the first", |node| node.peer().kind == PeerKind::Java)
        .await;
    node.handle.set_peer_sources(sources(&[url(&second)], &[]));
    node.until("the second", |node| {
        let facts = node.facts();
        facts.peers.len() == 1
            && *facts.peers[0].peer.0 == *url(&second)
            && facts.peers[0].kind == PeerKind::Java
    })
    .await;
    node.register("a", "1");
    second
        .until("a batch", |received| {
            received.iter().any(|request| request.target.ends_with("/batch/"))
        })
        .await;
    assert!(
        !first
            .received()
            .iter()
            .any(|request| request.target.ends_with("/batch/"))
    );
}

#[tokio::test]
async fn peers_come_and_go_with_their_names() {
    let peer = Scripted::start(|request| java(request, &empty())).await;
    let port = peer.address.port();
    let names = Names::start("eureka.test SERVFAIL").await;
    let dns = sources(&[], &[&format!("eureka.test:{port}")]);
    let node = Node::with(OWN, dns, Resolver::at(names.address), settings());
    node.until("a failure", |node| node.facts().unresolved.is_some())
        .await;
    assert_eq!(node.facts().peers, []);
    names.set("eureka.test A 127.0.0.1");
    node.until("the peer", |node| {
        node.facts().peers.len() == 1 && node.facts().unresolved.is_none()
    })
    .await;
    assert_eq!(*node.peer().peer.0, *url(&peer));
    names.set("");
    node.until("a failure", |node| node.facts().unresolved.is_some())
        .await;
    assert_eq!(node.facts().peers.len(), 1, "the old ones stay");
    names.set("eureka.test A 127.0.0.1\neureka.test A 127.0.0.2");
    node.until("another peer", |node| node.facts().peers.len() == 2)
        .await;
}

#[tokio::test]
async fn a_panic_does_not_end_replication() {
    let own = OWN.to_string();
    let peer = Scripted::start(move |_| Reply::Keep(answer(421, &[("x-eureka-node", &own)], b""))).await;
    let node = Node::with_a_bug(OWN, &[url(&peer)]);
    node.until("a panic", |node| node.handle.counts().panics > 0)
        .await;
    let fine = Scripted::start(|request| java(request, &empty())).await;
    node.handle.set_peer_sources(sources(&[url(&fine)], &[]));
    node.until("another peer", |node| {
        node.facts().peers.iter().any(|peer| peer.kind == PeerKind::Java)
    })
    .await;
    node.register("a", "1");
    fine.until("a batch", |received| {
        received.iter().any(|request| request.target.ends_with("/batch/"))
    })
    .await;
}

#[tokio::test]
async fn a_flush_does_not_wait_for_ever() {
    let endless = b"HTTP/1.1 200 So\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for reply in [
        Reply::Hang(Vec::new()),
        Reply::Flood(endless, b"1\r\n \r\n".to_vec()),
    ] {
        let (peer, _repaired) = broken(reply).await;
        let node = Node::start(OWN, &[url(&peer)]).await;
        node.register("a", "1");
        peer.until("a batch", |received| {
            received.iter().any(|request| request.target.ends_with("/batch/"))
        })
        .await;
        assert!(!node.handle.flush(Duration::from_millis(300)).await);
    }
}

#[tokio::test]
async fn a_slow_answer_does_not_keep_others_waiting() {
    let slow = Scripted::start(|_| Reply::Hang(Vec::new())).await;
    let quick = Scripted::start(|request| {
        if request.target.ends_with("/batch/") {
            return Reply::Keep(all_done(request));
        }
        java(request, &empty())
    })
    .await;
    let node = Node::start(OWN, &[url(&slow), url(&quick)]).await;
    slow.until("a probe", |received| !received.is_empty()).await;
    node.register("a", "1");
    quick
        .until("a batch", |received| {
            received.iter().any(|request| request.target.ends_with("/batch/"))
        })
        .await;
    assert_eq!(slow.received().len(), 1, "one request at a time");
}
