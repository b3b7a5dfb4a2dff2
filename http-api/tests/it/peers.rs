//! Nodes of ours among themselves: repair, ids on requests and answers, and requests that come back to their sender.

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use eureka_http_api::{Config, Sender};
use eureka_registry_core::wire::{RepairKind, read_repair_answer, write_repair_request};
use eureka_registry_core::{
    Event, Instance, InstanceKey, Learned, Offer, Origin, PeerId, RepairAnswer, RepairRequest, Stamp,
    Stamped, Status, Step, Wall,
};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::Request;
use parking_lot::Mutex;
use serde_json::json;

use crate::fixture::{DIRTY, Fixture, Read, instance, instance_with, read};

const JSON: (&str, &str) = ("content-type", "application/json");

fn with_repair() -> Config {
    Config {
        repair: true,
        ..Config::new("boot")
    }
}

fn path(kind: RepairKind) -> String {
    format!("/api/v1/repair/{}", kind.as_str())
}

fn post(fixture: &Fixture, request: &RepairRequest, headers: &[(&str, &str)]) -> Read {
    let headers = [&[JSON], headers].concat();
    let path = path(RepairKind::from(request));
    fixture.send("POST", &path, &headers, write_repair_request(request))
}

fn ask(fixture: &Fixture, request: &RepairRequest) -> RepairAnswer {
    let read = post(fixture, request, &[]);
    assert_eq!(read.status, 200, "{}", read.text());
    assert_eq!(read.headers["content-type"], "application/json");
    read_repair_answer(RepairKind::from(request), &read.body).expect("it is an answer")
}

/// A copy as another node would offer it.
fn copy(id: &str) -> Offer {
    let mut instance = Instance::new("A", id, "h", "10.0.0.1");
    instance.last_dirty = Some(DIRTY);
    Offer::Copy {
        instance: Arc::new(instance),
        age: Duration::from_secs(5),
        overridden: Some(Stamped {
            status: Some(Status::OutOfService),
            stamp: Stamp { at: Wall(1), node: 2 },
        }),
    }
}

fn push(offers: Vec<Offer>) -> RepairRequest {
    RepairRequest::Exchange {
        pull: Vec::new(),
        push: offers,
    }
}

fn packed(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

#[test]
fn repair_is_served_only_where_it_is_configured() {
    for config in [Config::new("boot"), Config::eureka_java("boot")] {
        let fixture = Fixture::with(config);
        for kind in RepairKind::ALL {
            for method in ["POST", "GET", "HEAD", "PUT", "OPTIONS"] {
                let read = fixture.send(method, &path(kind), &[JSON], "{}");
                assert_eq!(
                    (read.status.as_u16(), read.text()),
                    (404, ""),
                    "{method} {kind:?}"
                );
            }
        }
    }
}

#[test]
fn repair_is_posted_and_nothing_else() {
    let fixture = Fixture::with(with_repair());
    for kind in RepairKind::ALL {
        for method in ["GET", "HEAD", "PUT", "DELETE"] {
            let read = fixture.send(method, &path(kind), &[JSON], "{}");
            assert_eq!(read.status, 405, "{method} {kind:?}");
            assert_eq!(read.headers["allow"], "POST,OPTIONS");
        }
        let options = fixture.send("OPTIONS", &path(kind), &[], "");
        assert_eq!(
            (options.status.as_u16(), options.headers["allow"].as_bytes()),
            (200, &b"POST,OPTIONS"[..])
        );
    }
    for path in [
        "/api/v1/repair",
        "/api/v1/repair/x",
        "/api/v1/repair/copy/y",
        "/eureka/repair/copy",
    ] {
        fixture.send("POST", path, &[JSON], "{}").is_empty_with(404);
    }
}

#[test]
fn what_is_no_message_of_repair_is_refused_with_a_reason() {
    let fixture = Fixture::with(with_repair());
    let list = path(RepairKind::List);
    for content_type in ["application/xml", "text/plain", ""] {
        let read = fixture.send("POST", &list, &[("content-type", content_type)], "{}");
        assert_eq!(read.status, 415, "{content_type}");
    }
    for (body, reason) in [
        ("", "not JSON: it ends, or is not UTF-8, at byte 0"),
        (r#"{"buckets":[1024]}"#, "there is no bucket 1024"),
        (r#"{"root":"0000000000000000","late":[]}"#, "missing buckets"),
    ] {
        let read = fixture.send("POST", &list, &[JSON], body);
        assert_eq!(read.status, 400, "{body}");
        assert_eq!(
            read.json()["error"],
            format!("cannot parse request body: {reason}")
        );
    }
}

#[test]
fn an_offer_that_is_not_valid_changes_nothing() {
    let fixture = Fixture::with(with_repair());
    let good =
        String::from_utf8(write_repair_request(&push(vec![copy("i"), copy("j")]))).expect("it is text");
    let bad = good.replacen(
        r#""instanceId":"j","hostName":"h""#,
        r#""instanceId":"j","hostName":"""#,
        1,
    );
    assert_ne!(good, bad);
    let read = fixture.send("POST", &path(RepairKind::Exchange), &[JSON], bad);
    assert_eq!(read.status, 400);
    assert_eq!(
        read.json()["error"],
        "cannot parse request body: an offer: Missing hostname"
    );
    fixture.get("apps/A/i").is_empty_with(404);
}

#[test]
fn copies_change_hands_and_name_their_sender() {
    let origins = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&origins);
    let sink = move |event: &Event| {
        if let Event::Applied { origin, .. } = event {
            seen.lock().push(origin.clone());
        }
    };
    let fixture = Fixture::with_sink(with_repair(), Arc::new(sink));
    let mut request = Request::post(path(RepairKind::Exchange))
        .header("content-type", "application/json")
        .body(write_repair_request(&push(vec![copy("i")])).into())
        .expect("a request");
    request.extensions_mut().insert(Sender("http://peer/".into()));
    assert_eq!(read(fixture.api.respond(request)).status, 200);
    assert_eq!(fixture.view("A", "i")["status"], "OUT_OF_SERVICE");
    let peer = Origin::Peer(PeerId("http://peer/".into()));
    let origins = origins.lock();
    assert!(
        !origins.is_empty() && origins.iter().all(|origin| *origin == peer),
        "{origins:?}"
    );

    let pull = RepairRequest::Exchange {
        pull: vec![InstanceKey::new("A", "i"), InstanceKey::new("A", "none")],
        push: Vec::new(),
    };
    let RepairAnswer::Exchange { offers } = ask(&fixture, &pull) else {
        panic!("another kind");
    };
    let [Offer::Copy { instance, .. }] = &*offers else {
        panic!("{offers:?}");
    };
    assert_eq!((instance.id(), instance.status), ("i", Status::Up));
}

/// A step of a repair that `from` does with `to`, all in bytes.
fn step(from: &Fixture, to: &Fixture, step: &Step) -> Learned {
    let asked = from.registry.now().mono;
    let answer = ask(to, &from.registry.repair_request(step));
    let origin = Origin::Peer(PeerId("other".into()));
    from.registry.learn(origin, asked, step, answer)
}

/// Compares, and brings what differs to both.
fn repaired(from: &Fixture, to: &Fixture) -> Learned {
    let Learned::Differ { buckets } = step(from, to, &Step::Compare) else {
        panic!("they are equal");
    };
    let Learned::Plan { pull, push, .. } = step(from, to, &Step::List { buckets }) else {
        panic!("no plan");
    };
    step(from, to, &Step::Exchange { pull, push });
    for fixture in [from, to] {
        fixture.advance(Duration::from_secs(4));
    }
    step(from, to, &Step::Compare)
}

#[test]
fn what_json_would_change_is_equal_after_one_round() {
    let nodes = [Fixture::with(with_repair()), Fixture::with(with_repair())];
    let xml = "<instance><hostName>h</hostName><app>A</app><ipAddr>1</ipAddr><appGroupName>group</appGroupName>\
        <sid>s</sid><vipAddress>v</vipAddress><dataCenterInfo><name>Amazon</name><metadata><x>y</x></metadata>\
        </dataCenterInfo><metadata><instanceId>other</instanceId><a__b>c</a__b></metadata></instance>";
    let headers = [("content-type", "application/xml")];
    assert_eq!(nodes[0].send("POST", "apps/A", &headers, xml).status, 204);
    assert_eq!(
        nodes[0]
            .put("apps/A/h/metadata?%40class=x&k=%F0%9F%98%80%01")
            .status,
        200
    );
    // Both hold a copy of this one, and they differ.
    nodes[0].register("B", "i");
    let other = instance_with("B", "i", &json!({"metadata": {"k": "v"}, "countryId": 5}));
    assert_eq!(nodes[1].post("B", &other).status, 204);
    nodes[1].register("B", "j");
    nodes[1].put("apps/B/j/status?value=OUT_OF_SERVICE");
    for node in &nodes {
        node.advance(Duration::from_secs(4));
    }
    assert_eq!(repaired(&nodes[0], &nodes[1]), Learned::Equal);
    for (app, id) in [("A", "h"), ("B", "i"), ("B", "j")] {
        let [one, two] = [0, 1].map(|node: usize| nodes[node].registry.find(&InstanceKey::new(app, id)));
        assert_eq!(
            one.expect("it is here").instance,
            two.expect("it is there").instance
        );
    }
}

#[test]
fn a_page_of_everything_tells_whether_lists_are_held() {
    for held in [false, true] {
        let fixture = Fixture::held(eureka_registry_core::Config::default(), with_repair());
        fixture.register("A", "i");
        if !held {
            fixture.registry.open(0, None);
        }
        let RepairAnswer::Copy {
            offers,
            total,
            held: told,
            ..
        } = ask(&fixture, &RepairRequest::Copy { after: None })
        else {
            panic!("another kind");
        };
        assert_eq!((offers.len(), total, told), (1, 1, held));
    }
}

#[test]
fn bodies_and_answers_may_be_packed_whatever_java_does() {
    let java = Config {
        repair: true,
        ..Config::eureka_java("boot")
    };
    for config in [with_repair(), java] {
        let fixture = Fixture::with(config);
        let body = packed(&write_repair_request(&push(vec![copy("i")])));
        let headers = [JSON, ("content-encoding", "gzip"), ("accept-encoding", "gzip")];
        let read = fixture.send("POST", &path(RepairKind::Exchange), &headers, body);
        assert_eq!(
            (read.status.as_u16(), read.headers["content-encoding"].as_bytes()),
            (200, &b"gzip"[..])
        );
        let mut text = String::new();
        flate2::read::GzDecoder::new(&*read.body)
            .read_to_string(&mut text)
            .expect("it is packed");
        assert_eq!(text, r#"{"offers":[]}"#);
        assert_eq!(fixture.view("A", "i")["status"], "OUT_OF_SERVICE");
        assert!(
            !post(&fixture, &push(Vec::new()), &[])
                .headers
                .contains_key("content-encoding")
        );
    }
}

#[test]
fn the_limit_is_that_of_batches_and_counts_what_is_unpacked() {
    let mut config = with_repair();
    config.limits.body = 100;
    config.limits.batch = 2_000;
    let fixture = Fixture::with(config);
    let exchange = path(RepairKind::Exchange);
    let plain = write_repair_request(&push(vec![copy("i"), copy("j")]));
    assert!((100..2_000).contains(&plain.len()));
    assert_eq!(fixture.send("POST", &exchange, &[JSON], plain).status, 200);
    let spaced = format!(r#"{{"pull":[],"push":[]{}}}"#, " ".repeat(2_000));
    let bomb = packed(spaced.as_bytes());
    assert!(bomb.len() < 100);
    let encoding = ("content-encoding", "gzip");
    assert_eq!(
        fixture
            .send("POST", &exchange, &[JSON, encoding], bomb.clone())
            .status,
        413
    );
    assert_eq!(
        fixture
            .send("POST", &exchange, &[JSON, encoding], bomb[..20].to_vec())
            .status,
        400
    );
    assert_eq!(fixture.send("POST", &exchange, &[JSON], spaced).status, 413);
    assert_eq!(
        fixture
            .send("POST", &exchange, &[JSON, ("content-encoding", "br")], "")
            .status,
        415
    );
}

#[test]
fn pages_of_long_instances_are_short() {
    let fixture = Fixture::with(with_repair());
    let long = "\u{1}".repeat(8_000);
    let texts = json!({"homePageUrl": long, "statusPageUrl": long, "healthCheckUrl": long, "vipAddress": long,
        "secureVipAddress": long, "asgName": long, "metadata": {"k": long}});
    for number in 0..60 {
        let body = instance_with("A", &format!("i{number}"), &texts);
        assert_eq!(fixture.post("A", &body).status, 204);
    }
    let pull = RepairRequest::Exchange {
        pull: (0..60)
            .map(|number| InstanceKey::new("A", &format!("i{number}")))
            .collect(),
        push: Vec::new(),
    };
    for request in [RepairRequest::Copy { after: None }, pull] {
        let read = post(&fixture, &request, &[]);
        assert!(
            (200_000..5 << 20).contains(&read.body.len()),
            "{}",
            read.body.len()
        );
    }
}

#[test]
fn an_answer_no_peer_would_take_is_not_sent() {
    let mut config = with_repair();
    config.limits.batch = 2_000;
    let fixture = Fixture::with(config);
    for number in 0..50 {
        fixture.register("A", &format!("i{number}"));
    }
    let read = post(&fixture, &RepairRequest::Copy { after: None }, &[]);
    assert_eq!(
        (read.status.as_u16(), read.text()),
        (413, "answer over 2000 bytes")
    );
}

/// What a server sends with its replication header, one by one.
fn replicated() -> [(&'static str, &'static str, String); 6] {
    [
        ("POST", "apps/A", instance("A", "new").to_string()),
        ("PUT", "apps/A/i?status=UP&overriddenstatus=DOWN", String::new()),
        ("DELETE", "apps/A/i", String::new()),
        ("PUT", "apps/A/i/status?value=OUT_OF_SERVICE", String::new()),
        ("DELETE", "apps/A/i/status", String::new()),
        ("PUT", "apps/A/i/metadata?k=v", String::new()),
    ]
}

#[test]
fn what_comes_back_to_its_sender_is_not_applied() {
    for config in [
        with_repair(),
        Config {
            repair: true,
            ..Config::eureka_java("boot")
        },
    ] {
        let fixture = Fixture::with(config);
        fixture.register("A", "i");
        let before = (fixture.registry.stats(), fixture.view("A", "i"));
        let own = ("x-eureka-node", "boot");
        let refused = |read: &Read| {
            read.is_empty_with(421);
            assert_eq!(read.headers["x-eureka-node"], "boot");
        };
        let batch = json!({"replicationList": [
            {"appName": "A", "id": "i", "action": "Cancel"},
            {"appName": "A", "id": "i", "action": "StatusUpdate", "status": "DOWN", "lastDirtyTimestamp": DIRTY + 1},
        ]});
        refused(&fixture.send("POST", "peerreplication/batch/", &[JSON, own], batch.to_string()));
        refused(&post(&fixture, &push(vec![copy("j")]), &[own]));
        for (method, target, body) in replicated() {
            let headers = [JSON, own, ("x-netflix-discovery-replication", "true")];
            refused(&fixture.send(method, target, &headers, body));
        }
        assert_eq!((fixture.registry.stats(), fixture.view("A", "i")), before);
    }
}

#[test]
fn other_ids_are_applied_and_every_answer_introduces_us() {
    let mut config = with_repair();
    config.limits.body = 2_000;
    let fixture = Fixture::with(config);
    fixture.register("A", "i");
    let peer = ("x-eureka-node", "another");
    let mut answered = Vec::new();
    let mut see = |read: Read| {
        assert_eq!(read.headers["x-eureka-node"], "boot", "{:?}", read.status);
        assert_eq!(read.headers.get_all("x-eureka-node").iter().count(), 1);
        answered.push(read.status.as_u16());
    };
    let batch = json!({"replicationList": [{"appName": "A", "id": "i", "action": "Cancel"}]});
    see(fixture.send("POST", "peerreplication/batch/", &[JSON, peer], batch.to_string()));
    fixture.get("apps/A/i").is_empty_with(404);
    let replication = ("x-netflix-discovery-replication", "true");
    for (method, target, body) in replicated() {
        see(fixture.send(method, target, &[JSON, peer, replication], body));
    }
    assert_eq!(fixture.view("A", "new")["status"], "UP");
    see(fixture.send("GET", "/api/v1/node", &[peer], ""));
    // Who only looks is answered even if it is ourselves: so a node learns that an address leads back to it.
    see(fixture.send("GET", "/api/v1/node", &[("x-eureka-node", "boot")], ""));
    see(fixture.send("GET", "apps", &[peer], ""));
    see(fixture.send("GET", "/nowhere", &[peer], ""));
    see(fixture.send("GET", "peerreplication/batch", &[peer], ""));
    see(fixture.send("GET", "apps", &[peer, ("accept", "image/png")], ""));
    see(fixture.send("POST", "peerreplication/batch", &[peer, JSON], "{"));
    see(fixture.send("POST", "apps/A", &[peer, JSON], " ".repeat(3_000)));
    see(fixture.send("GET", &"x".repeat(9_000), &[peer], ""));
    assert_eq!(
        answered,
        [
            200, 204, 404, 404, 404, 404, 404, 200, 200, 200, 404, 405, 406, 400, 413, 414
        ]
    );
    assert!(!fixture.get("/api/v1/node").headers.contains_key("x-eureka-node"));
}
