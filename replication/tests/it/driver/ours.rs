//! Beside nodes of ours, each with just so much of a server as its peers need.

use std::io::Read as _;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use eureka_registry_core::wire::{self, BatchItem, Dialect, ItemAnswer, RepairKind, Route};
use eureka_registry_core::{Changed, Instance, Origin, Reads, RegistryHandle, Renewed};
use eureka_replication::driver::{Handle, Resolver};
use eureka_replication::{AlarmKind, LinkState, NodeId, PeerKind, Sender};
use flate2::read::GzDecoder;

use super::node::{Node, settings, sources};
use super::scripted::{Received, Reply, Scripted, answer};

const A: NodeId = NodeId([1, 10]);
const B: NodeId = NodeId([1, 11]);

/// A node that others can reach.
struct Served {
    node: Node,
    server: Scripted,
}

type Slot = Arc<OnceLock<(RegistryHandle, Handle)>>;

/// A place to listen at before there is a node.
async fn place(id: NodeId) -> (Scripted, Slot) {
    let slot = Slot::default();
    let served = Arc::clone(&slot);
    (
        Scripted::start(move |request| serve(id, &served, request)).await,
        slot,
    )
}

fn start(id: NodeId, (server, slot): (Scripted, Slot), peers: &[String]) -> Served {
    let node = Node::with(id, sources(peers, &[]), Resolver::system(), settings());
    let parts = (node.registry.clone(), node.handle.clone());
    assert!(slot.set(parts).is_ok(), "started once");
    Served { node, server }
}

fn is_open(node: &Node) -> bool {
    node.registry.snapshot().reads() == Reads::Open
}

fn url(server: &Scripted) -> String {
    format!("http://{}/eureka", server.address)
}

fn serve(id: NodeId, slot: &Slot, request: &Received) -> Reply {
    let name = id.to_string();
    let named = |status, body: &[u8]| {
        let headers = [("content-type", "application/json"), ("x-eureka-node", &*name)];
        Reply::Keep(answer(status, &headers, body))
    };
    let Some((registry, handle)) = slot.get() else {
        return named(503, b"");
    };
    let node = request.header("x-eureka-node").and_then(NodeId::parse);
    if node == Some(id) && request.target.starts_with("POST") {
        return named(421, b"");
    }
    let (method, path) = request.target.split_once(' ').expect("a method");
    match Route::parse(path) {
        Some(Route::Node) => {
            let time = registry.now().wall.0;
            let rules = r#"{"leaseExpiry":"exact","evictionIntervalMs":60000,"preservation":true}"#;
            let body =
                format!(r#"{{"nodeId":"{name}","time":{time},"preserving":false,"rules":{rules},"more":1}}"#);
            named(200, body.as_bytes())
        }
        Some(Route::Peers) => named(200, peers(handle).as_bytes()),
        Some(Route::Repair(kind)) if method == "POST" => {
            named(200, &repair(registry, handle, node, kind, request))
        }
        Some(Route::Batch) => named(200, &batch(registry, handle, node, request)),
        _ => named(404, b""),
    }
}

fn peers(handle: &Handle) -> String {
    let peers = handle.facts().peers.into_iter().map(|peer| {
        let state = if peer.state == LinkState::Up {
            "up"
        } else {
            "unreachable"
        };
        let node = peer
            .node
            .map_or_else(|| String::from("null"), |node| format!("\"{node}\""));
        format!(r#"{{"nodeId":{node},"state":"{state}"}}"#)
    });
    format!(r#"{{"peers":[{}]}}"#, peers.collect::<Vec<_>>().join(","))
}

fn body(request: &Received) -> Vec<u8> {
    let mut body = request.body.clone();
    if request.header("content-encoding") == Some("gzip") {
        body.clear();
        GzDecoder::new(&request.body[..])
            .read_to_end(&mut body)
            .expect("it is packed");
    }
    body
}

fn origin(handle: &Handle, node: Option<NodeId>) -> Origin {
    Origin::Peer(handle.inbound(&Sender {
        node,
        ..Sender::default()
    }))
}

fn repair(
    registry: &RegistryHandle,
    handle: &Handle,
    node: Option<NodeId>,
    kind: RepairKind,
    request: &Received,
) -> Vec<u8> {
    let asked = wire::read_repair_request(kind, &body(request)).expect("a request");
    wire::write_repair_answer(&registry.repair_answer(origin(handle, node), asked))
}

fn batch(registry: &RegistryHandle, handle: &Handle, node: Option<NodeId>, request: &Received) -> Vec<u8> {
    let body = body(request);
    let items = wire::read_batch(&body, Dialect::Java).expect("a batch");
    let origin = origin(handle, node);
    let changed = |changed| if changed == Changed::Ok { 200 } else { 404 };
    let answers = items.into_iter().map(|item| {
        let origin = origin.clone();
        let status = match item.expect("an item") {
            BatchItem::Cancel { key } => changed(registry.cancel(origin, &key)),
            BatchItem::Register { key, registration } => {
                let instance = Arc::new(registration.validate(key.app()).expect("an instance"));
                registry.register(origin, instance, Duration::ZERO);
                200
            }
            BatchItem::Heartbeat(heartbeat) => match registry.renew(
                origin,
                heartbeat.key(),
                heartbeat.last_dirty,
                heartbeat.overridden,
            ) {
                Renewed::Ok => 200,
                Renewed::Missing | Renewed::Ahead | Renewed::Behind(_) => 404,
            },
            BatchItem::StatusUpdate {
                key,
                status,
                last_dirty,
            } => changed(registry.set_override(origin, &key, status, last_dirty)),
            BatchItem::DeleteStatusOverride {
                key,
                status,
                last_dirty,
            } => changed(registry.clear_override(origin, &key, status, last_dirty)),
        };
        ItemAnswer { status, newer: None }
    });
    wire::write_batch_answer(wire::Format::Json, &answers.collect::<Vec<_>>(), usize::MAX).text
}

#[tokio::test]
async fn two_nodes_tell_each_other() {
    let (at_a, at_b) = (place(A).await, place(B).await);
    let (of_a, of_b) = (url(&at_a.0), url(&at_b.0));
    let a = start(A, at_a, &[of_b]);
    let b = start(B, at_b, &[of_a]);
    for (served, other) in [(&a, B), (&b, A)] {
        served
            .node
            .until("the other one", |node| {
                let facts = node.facts();
                facts
                    .peers
                    .iter()
                    .any(|peer| peer.kind == PeerKind::Ours && peer.node == Some(other))
            })
            .await;
    }
    let key = a.node.register("a", "1");
    b.node.until("the instance", |node| node.holds(&key)).await;
    a.node
        .until("an acknowledgement", |node| node.peer().sent == 1)
        .await;
    b.node.registry.cancel(Origin::Client, &key);
    a.node.until("the cancel", |node| !node.holds(&key)).await;
    for served in [&a, &b] {
        served
            .node
            .until("facts", |node| {
                let facts = node.peer();
                facts.reaches_us == Some(true)
                    && facts.state == LinkState::Up
                    && facts.digests > 1
                    && facts.inbound.requests > 0
                    && facts.rules.is_some()
                    && facts.preserving == Some(false)
                    && facts.clock_skew.is_some()
            })
            .await;
        assert_eq!(served.node.facts().alarms, []);
        assert_eq!(served.node.handle.counts().panics, 0);
    }
    assert!(a.node.peer().clock_skew.expect("known").abs() < 5_000);
    let packed = |request: &Received| request.header("content-encoding") == Some("gzip");
    assert!(
        !b.server
            .received()
            .iter()
            .any(|request| request.target.starts_with("GET") && packed(request))
    );
}

#[tokio::test]
async fn a_node_that_starts_late_copies_page_by_page() {
    let (at_a, at_b) = (place(A).await, place(B).await);
    let (of_a, of_b) = (url(&at_a.0), url(&at_b.0));
    let a = start(A, at_a, &[]);
    a.node
        .until("an open registry, for there are no peers", is_open)
        .await;
    for id in 0..2_500 {
        a.node.register("a", &id.to_string());
    }
    let mut long = Instance::new("a", "long", "host", "10.0.0.1");
    long.last_dirty = Some(1);
    long.home_page_url = Some("x".repeat(2 << 20).as_str().into());
    a.node
        .registry
        .register(Origin::Client, Arc::new(long), Duration::ZERO);
    a.node.handle.set_peer_sources(sources(&[of_b], &[]));
    let b = start(B, at_b, &[of_a]);
    b.node
        .until("an open registry", |node| {
            node.registry.snapshot().reads() == Reads::Open
        })
        .await;
    assert_eq!(b.node.registry.snapshot().hash(), "UP_2501_");
    let copies = a.server.received();
    let copies = copies
        .iter()
        .filter(|request| request.target == "POST /api/v1/repair/copy");
    assert!(copies.count() >= 3);
}

#[tokio::test]
async fn an_address_that_leads_back_is_found_out_and_nothing_is_applied() {
    let at_a = place(A).await;
    let of_a = url(&at_a.0);
    let a = start(A, at_a, &[of_a]);
    let key = a.node.register("a", "1");
    a.node
        .until("the link to itself", |node| {
            node.facts().peers.iter().any(|peer| peer.state == LinkState::Own)
        })
        .await;
    a.node
        .until("an alarm", |node| {
            node.alarms
                .lock()
                .iter()
                .any(|alarm| alarm.kind == AlarmKind::SelfLoop)
        })
        .await;
    a.node.registry.cancel(Origin::Client, &key);
    assert!(!a.node.holds(&key));
    let batches = a.server.received();
    assert!(batches.iter().all(|request| !request.target.ends_with("/batch/")));
}
