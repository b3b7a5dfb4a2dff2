//! Beside a Java server: what it is asked at start, and what it is told.

use std::time::Duration;

use eureka_registry_core::{InstanceKey, Origin, Reads, Status};
use eureka_replication::{LinkState, NodeId, PeerKind};

use super::node::Node;
use super::scripted::{Received, Reply, Scripted, answer, json};

const OWN: NodeId = NodeId([7, 7]);

/// What such a server does with any request, `apps` being its answer to a full fetch.
pub(super) fn java(request: &Received, apps: &[u8]) -> Reply {
    match request.target.as_str() {
        "GET /eureka/apps/?regions=none-but-your-own" => Reply::Keep(apps.to_vec()),
        "POST /eureka/peerreplication/batch/" => Reply::Keep(all_done(request)),
        _ => Reply::Keep(answer(
            404,
            &[("date", "Tue, 14 Nov 2023 22:13:30 GMT")],
            b"no such page",
        )),
    }
}

/// 200 for every item.
pub(super) fn all_done(request: &Received) -> Vec<u8> {
    let items = actions(request).len();
    let answers = vec![r#"{"statusCode":200}"#; items];
    json(200, &format!(r#"{{"responseList":[{}]}}"#, answers.join(",")))
}

/// The actions of a batch, in order.
pub(super) fn actions(request: &Received) -> Vec<String> {
    let batch: serde_json::Value = serde_json::from_slice(&request.body).expect("JSON");
    let items = batch["replicationList"].as_array().expect("a list");
    items
        .iter()
        .map(|item| {
            format!(
                "{} {}",
                item["action"].as_str().expect("a text"),
                item["id"].as_str().expect("a text")
            )
        })
        .collect()
}

pub(super) fn empty() -> Vec<u8> {
    list("", &[])
}

fn list(hash: &str, ids: &[&str]) -> Vec<u8> {
    let instances: Vec<_> = ids
        .iter()
        .map(|id| {
            format!(
                r#"{{"instanceId":"{id}","hostName":"h","app":"A","ipAddr":"10.0.0.1","status":"UP","overriddenStatus":"UNKNOWN",
                "port":{{"$":1,"@enabled":"true"}},"dataCenterInfo":{{"@class":"x","name":"MyOwn"}},"lastDirtyTimestamp":"5"}}"#
            )
        })
        .collect();
    let apps = format!(r#"{{"name":"A","instance":[{}]}}"#, instances.join(","));
    json(
        200,
        &format!(
            r#"{{"applications":{{"versions__delta":"1","apps__hashcode":"{hash}","application":[{apps}]}}}}"#
        ),
    )
}

fn batches(received: &[Received]) -> Vec<String> {
    let batch = |request: &&Received| request.target.ends_with("/batch/");
    received.iter().filter(batch).flat_map(actions).collect()
}

fn url(peer: &Scripted) -> String {
    format!("http://{}/eureka", peer.address)
}

#[tokio::test]
async fn a_start_copies_checks_and_opens() {
    let apps = list("UP_2_", &["1", "2"]);
    let peer = Scripted::start(move |request| java(request, &apps)).await;
    let node = Node::start(OWN, &[url(&peer)]).await;
    node.until("an open registry", |node| {
        node.registry.snapshot().reads() == Reads::Open
    })
    .await;
    assert_eq!(node.registry.snapshot().hash(), "UP_2_");
    let facts = node.peer();
    assert_eq!((facts.kind, facts.node), (PeerKind::Java, None));
    let skew = facts.clock_skew.expect("a Date");
    assert!(
        (8_000..=10_600).contains(&skew),
        "its clock is ten seconds ahead: {skew}"
    );
    let targets: Vec<_> = peer
        .received()
        .iter()
        .map(|request| request.target.clone())
        .collect();
    assert_eq!(
        targets[..2],
        ["GET /api/v1/node", "GET /eureka/apps/?regions=none-but-your-own"]
    );
}

#[tokio::test]
async fn a_copy_that_does_not_fit_its_hash_opens_nothing() {
    let mut fetches = 0;
    let peer = Scripted::start(move |request| {
        fetches += usize::from(request.target == "GET /eureka/apps/?regions=none-but-your-own");
        let hash = if fetches < 3 { "UP_3_" } else { "UP_2_" };
        java(request, &list(hash, &["1", "2"]))
    })
    .await;
    let node = Node::start(OWN, &[url(&peer)]).await;
    node.until("a copy", |node| node.holds(&InstanceKey::new("A", "1")))
        .await;
    assert_ne!(node.registry.snapshot().reads(), Reads::Open);
    node.until("an open registry", |node| {
        node.registry.snapshot().reads() == Reads::Open
    })
    .await;
    let fetched = |received: &[Received]| {
        received
            .iter()
            .filter(|request| request.target == "GET /eureka/apps/?regions=none-but-your-own")
            .count()
    };
    assert_eq!(fetched(&peer.received()), 3);
}

#[tokio::test]
async fn every_kind_of_change_is_told() {
    let peer = Scripted::start(|request| java(request, &empty())).await;
    let node = Node::start(OWN, &[url(&peer)]).await;
    let key = node.register("a", "1");
    let told =
        |what: &'static str| move |received: &[Received]| batches(received).iter().any(|item| item == what);
    peer.until("a registration", told("Register 1")).await;
    node.registry.renew(Origin::Client, &key, None, None);
    peer.until("a renewal", told("Heartbeat 1")).await;
    node.registry
        .set_override(Origin::Client, &key, Status::OutOfService, None);
    peer.until("an override", told("StatusUpdate 1")).await;
    node.registry.clear_override(Origin::Client, &key, None, None);
    peer.until("its removal", told("DeleteStatusOverride 1")).await;
    node.registry.cancel(Origin::Client, &key);
    let received = peer.until("a cancel", told("Cancel 1")).await;
    node.until("acknowledgements", |node| node.peer().queue == 0)
        .await;
    assert_eq!(node.peer().state, LinkState::Up);

    let batch = received
        .iter()
        .find(|request| request.target.ends_with("/batch/"));
    let batch: serde_json::Value =
        serde_json::from_slice(&batch.expect("there are five").body).expect("JSON");
    let item = &batch["replicationList"][0];
    assert_eq!(item["appName"], "A");
    assert_eq!(item["lastDirtyTimestamp"], 1_700_000_000_000_u64);
    assert_eq!(item["instanceInfo"]["hostName"], "host");
    let connections = received.iter().map(|request| request.connection).max();
    assert!(connections < Some(3), "connections are kept: {connections:?}");
}

#[tokio::test]
async fn answers_to_items_are_acted_upon() {
    let newer = r#"{"statusCode":409,"responseEntity":{"instanceId":"1","hostName":"newer","app":"A","ipAddr":"10.0.0.1",
        "status":"UP","dataCenterInfo":{"@class":"x","name":"MyOwn"},"lastDirtyTimestamp":"1800000000000"}}"#;
    let of_another = newer.replace(r#""instanceId":"1""#, r#""instanceId":"2""#);
    let mut renewals = 0;
    let peer = Scripted::start(move |request| {
        if !request.target.ends_with("/batch/") || !actions(request)[0].starts_with("Heartbeat") {
            return java(request, &empty());
        }
        renewals += 1;
        let item = match renewals {
            1 => r#"{"statusCode":404}"#,
            2 => &of_another,
            3 => newer,
            _ => r#"{"statusCode":200}"#,
        };
        Reply::Keep(json(200, &format!(r#"{{"responseList":[{item}]}}"#)))
    })
    .await;
    let node = Node::start(OWN, &[url(&peer)]).await;
    let key = node.register("a", "1");
    let so_often = |times: usize| {
        move |received: &[Received]| {
            batches(received)
                .iter()
                .filter(|item| *item == "Register 1")
                .count()
                == times
        }
    };
    peer.until("a registration", so_often(1)).await;
    node.registry.renew(Origin::Client, &key, None, None);
    peer.until("another one, which a 404 asks for", so_often(2)).await;
    node.until("an acknowledgement", |node| node.peer().queue == 0)
        .await;
    node.registry.renew(Origin::Client, &key, None, None);
    node.until("a useless answer", |node| node.peer().failed == 1)
        .await;
    assert!(!node.holds(&InstanceKey::new("A", "2")), "nobody asked for it");
    node.registry.renew(Origin::Client, &key, None, None);
    let host = |node: &Node| {
        node.registry
            .lease(&key)
            .map(|lease| lease.instance.host_name.to_string())
    };
    node.until("the newer copy", |node| host(node).as_deref() == Some("newer"))
        .await;
    assert_eq!((node.peer().missing, node.peer().conflicts), (1, 1));
}

#[tokio::test]
async fn a_flush_sends_what_lingers() {
    let peer = Scripted::start(|request| java(request, &empty())).await;
    let node = Node::start(OWN, &[url(&peer)]).await;
    node.until("a kind", |node| node.peer().kind == PeerKind::Java)
        .await;
    for id in 0..100 {
        node.register("a", &id.to_string());
    }
    assert!(node.handle.flush(Duration::from_secs(20)).await);
    let registered: std::collections::BTreeSet<_> = batches(&peer.received()).into_iter().collect();
    assert_eq!(registered.len(), 100);
}
