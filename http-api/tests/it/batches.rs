//! Batches of peers, item by item.

use std::sync::Arc;

use eureka_http_api::{Config, Sender};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::fixture::{DIRTY, Fixture, instance, instance_with, read};

fn send(fixture: &Fixture, items: &Value) -> Value {
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json"),
    ];
    let body = json!({"replicationList": items}).to_string();
    let answer = fixture.send("POST", "peerreplication/batch/", &headers, body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["responseList"].take()
}

fn codes(list: &Value) -> Vec<u64> {
    let items = list.as_array().unwrap().iter();
    items.map(|item| item["statusCode"].as_u64().unwrap()).collect()
}

fn heartbeat(id: &str, dirty: i64) -> Value {
    json!({"appName": "A", "id": id, "lastDirtyTimestamp": dirty, "status": "UP", "action": "Heartbeat"})
}

#[test]
fn an_item_that_cannot_be_read_is_refused_alone() {
    let fixture = Fixture::new();
    fixture.register("A", "i");
    let list = send(
        &fixture,
        &json!([
            {"appName": "A", "id": "x", "lastDirtyTimestamp": DIRTY, "action": "Register"},
            heartbeat("i", DIRTY),
            {"appName": "A", "id": "i", "action": "Dance"},
            {"appName": "A", "action": "Heartbeat"},
            {"id": "i", "action": "Heartbeat"},
            {"appName": "A", "id": "i", "action": "StatusUpdate", "status": "BOGUS"},
            "text",
            {"appName": "A", "id": "i", "action": "Cancel"},
        ]),
    );
    assert_eq!(codes(&list), [400, 200, 400, 400, 400, 400, 400, 200]);
    fixture.get("apps/A/i").is_empty_with(404);
    fixture.get("apps/A/x").is_empty_with(404);
}

#[test]
fn items_are_applied_in_their_order() {
    let fixture = Fixture::new();
    for id in ["i", "j"] {
        fixture.register("A", id);
    }
    let cancel = json!({"appName": "a", "id": "i", "action": "Cancel"});
    let clear =
        json!({"appName": "A", "id": "j", "action": "DeleteStatusOverride", "lastDirtyTimestamp": DIRTY});
    // More renewals than one hold of the lock takes, behind an unknown one, and names that have to be decoded.
    let mut items = vec![heartbeat("x", DIRTY)];
    items.extend(vec![heartbeat("i", DIRTY); 200]);
    items.extend([cancel, heartbeat("i", DIRTY + 1), clear, heartbeat("j", DIRTY)]);
    let body = json!({"replicationList": items}).to_string();
    let spelled = body.replacen(r#""appName":"A""#, r#""appName":"\u0061""#, 100);
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json"),
    ];
    let answer = fixture.send("POST", "peerreplication/batch/", &headers, spelled);
    let mut expected = vec![404];
    expected.extend([200; 201]);
    expected.extend([404, 200, 200]);
    assert_eq!(codes(&answer.json()["responseList"]), expected);
}

#[test]
fn fields_we_do_not_know_are_skipped() {
    let fixture = Fixture::new();
    fixture.register("A", "i");
    let mut item = heartbeat("i", DIRTY);
    item["future"] = json!({"deep": [1, 2, {"x": null}]});
    assert_eq!(codes(&send(&fixture, &json!([item]))), [200]);
}

#[test]
fn a_conflict_carries_the_newer_copy_unwrapped() {
    let fixture = Fixture::new();
    fixture.register("A", "i");
    let list = send(
        &fixture,
        &json!([
            heartbeat("i", DIRTY - 5),
            heartbeat("i", DIRTY + 5),
            heartbeat("g", 1)
        ]),
    );
    assert_eq!(codes(&list), [409, 404, 404]);
    assert_eq!(list[0]["responseEntity"]["instanceId"], "i");
    assert_eq!(list[0]["responseEntity"]["lastDirtyTimestamp"], DIRTY.to_string());
}

#[test]
fn the_answer_to_a_small_batch_is_not_a_large_one() {
    let mut config = Config::new("boot");
    config.limits.batch = 100_000;
    let fixture = Fixture::with(config);
    let large = instance_with("A", "i", &json!({"metadata": {"k": "x".repeat(30_000)}}));
    assert_eq!(fixture.post("A", &large).status, 204);
    let list = send(&fixture, &json!(vec![heartbeat("i", DIRTY - 5); 300]));
    assert_eq!(codes(&list), [409; 300]);
    let copies = list.as_array().unwrap().iter();
    let copies = copies.filter(|item| item.get("responseEntity").is_some());
    assert_eq!(copies.count(), 4);
    assert!(list[299].get("responseEntity").is_none());
}

#[test]
fn an_invalid_registration_is_answered_as_java_does_and_not_taken() {
    let fixture = Fixture::new();
    let mut body = instance("A", "i")["instance"].clone();
    body["hostName"] = json!("");
    let item = json!({"appName": "A", "id": "i", "lastDirtyTimestamp": DIRTY, "status": "UP",
                      "instanceInfo": body, "action": "Register"});
    assert_eq!(codes(&send(&fixture, &json!([item]))), [200]);
    fixture.get("apps/A/i").is_empty_with(404);
}

/// An item that registers `id`, with these fields changed.
fn registration(id: &str, fields: &Value) -> Value {
    let body = instance_with("A", id, fields)["instance"].take();
    json!({"appName": "A", "id": id, "lastDirtyTimestamp": DIRTY, "status": "UP",
           "instanceInfo": body, "action": "Register"})
}

#[test]
fn heartbeats_for_what_was_refused_do_not_bring_it_again() {
    let fixture = Fixture::new();
    let invalid = registration("i", &json!({"hostName": ""}));
    let unreadable = registration("j", &json!({"port": [8080]}));
    assert_eq!(codes(&send(&fixture, &json!([invalid, unreadable]))), [200, 400]);
    for id in ["i", "j"] {
        let beats = json!([
            heartbeat(id, DIRTY),
            heartbeat(id, DIRTY - 1),
            heartbeat(id, DIRTY + 1)
        ]);
        assert_eq!(codes(&send(&fixture, &beats)), [200, 200, 404], "{id}");
        // Its client is told the truth, and it is in no list.
        fixture
            .put(&format!("apps/A/{id}?lastDirtyTimestamp={DIRTY}"))
            .is_empty_with(404);
        fixture.get(&format!("apps/A/{id}")).is_empty_with(404);
    }
    assert_eq!(codes(&send(&fixture, &json!([heartbeat("k", DIRTY)]))), [404]);
    // Once it is sent as it should be, it is there.
    assert_eq!(
        codes(&send(&fixture, &json!([registration("i", &json!({}))]))),
        [200]
    );
    assert_eq!(fixture.view("A", "i")["status"], "UP");
    assert_eq!(codes(&send(&fixture, &json!([heartbeat("i", DIRTY - 1)]))), [409]);

    let java = Fixture::java();
    let beat = heartbeat("i", DIRTY);
    let invalid = registration("i", &json!({"hostName": ""}));
    assert_eq!(codes(&send(&java, &json!([invalid, beat]))), [200, 404]);
}

#[test]
fn overrides_travel() {
    let fixture = Fixture::new();
    fixture.register("A", "i");
    let item = |action: &str, status: &str| json!([{"appName": "a", "id": "i", "lastDirtyTimestamp": DIRTY, "action": action, "status": status}]);
    assert_eq!(
        codes(&send(&fixture, &item("StatusUpdate", "OUT_OF_SERVICE"))),
        [200]
    );
    assert_eq!(fixture.view("A", "i")["status"], "OUT_OF_SERVICE");
    fixture.put("apps/A/i").is_empty_with(200);
    assert_eq!(fixture.view("A", "i")["status"], "OUT_OF_SERVICE");
    assert_eq!(codes(&send(&fixture, &item("DeleteStatusOverride", "UP"))), [200]);
    let view = fixture.view("A", "i");
    assert_eq!(
        (&view["status"], &view["overriddenStatus"]),
        (&json!("UP"), &json!("UNKNOWN"))
    );
}

#[test]
fn nothing_in_nothing_out() {
    let fixture = Fixture::new();
    assert_eq!(send(&fixture, &json!([])), json!([]));
}

#[test]
fn batches_that_are_none() {
    let fixture = Fixture::new();
    let json = [
        ("content-type", "application/json"),
        ("accept", "application/json"),
    ];
    for body in ["", "{", "[]", "{}", "{\"replicationList\":null}"] {
        assert_eq!(
            fixture.send("POST", "peerreplication/batch", &json, body).status,
            400,
            "{body}"
        );
    }
    let xml = [("content-type", "application/xml")];
    let refused = fixture.send("POST", "peerreplication/batch", &xml, "<replicationList/>");
    assert_eq!(refused.status, 400);
    assert!(refused.text().starts_with("<error>"));
    assert_eq!(
        fixture.send("POST", "peerreplication/batch", &[], "{}").status,
        415
    );
}

#[test]
fn java_refuses_a_batch_for_one_bad_item() {
    let java = Fixture::java();
    java.register("A", "i");
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json"),
    ];
    let body = json!({"replicationList": [
        {"appName": "A", "id": "i", "action": "Cancel"}, {"appName": "A", "id": "i", "action": "Dance"}]});
    let answer = java.send("POST", "peerreplication/batch", &headers, body.to_string());
    assert_eq!(answer.status, 400);
    assert_eq!(java.view("A", "i")["status"], "UP");
}

#[test]
fn the_answer_comes_in_xml_where_nothing_is_asked() {
    let fixture = Fixture::new();
    let headers = [("content-type", "application/json")];
    let body = json!({"replicationList": [heartbeat("i", 1)]}).to_string();
    let answer = fixture.send("POST", "peerreplication/batch", &headers, body);
    assert_eq!(answer.headers["content-type"], "application/xml");
    assert!(answer.text().contains("<statusCode>404</statusCode>"));
}

#[test]
fn batches_may_be_longer_than_other_bodies() {
    let mut config = Config::new("boot");
    config.limits.body = 1_000;
    config.limits.batch = 20_000;
    let fixture = Fixture::with(config);
    fixture.register("A", "i");
    let many = |count| Value::Array((0..count).map(|_| heartbeat("i", DIRTY)).collect());
    assert_eq!(codes(&send(&fixture, &many(100))).len(), 100);
    let headers = [("content-type", "application/json")];
    let body = json!({"replicationList": many(1_000)}).to_string();
    assert_eq!(
        fixture
            .send("POST", "peerreplication/batch", &headers, body)
            .status,
        413
    );
}

#[test]
fn what_a_peer_sent_names_it() {
    let origins = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&origins);
    let sink = move |event: &eureka_registry_core::Event| {
        if let eureka_registry_core::Event::Applied { origin, .. } = event {
            seen.lock().push(origin.clone());
        }
    };
    let fixture = Fixture::with_sink(Config::new("boot"), Arc::new(sink));
    fixture.register("A", "i");
    let body = json!({"replicationList": [heartbeat("i", DIRTY)]}).to_string();
    let request = |sender: Option<Sender>| {
        let mut request = http::Request::post("/eureka/peerreplication/batch")
            .header("content-type", "application/json")
            .header("discoveryidentity-id", "10.1.1.1")
            .body(bytes::Bytes::from(body.clone()))
            .unwrap();
        if let Some(sender) = sender {
            request.extensions_mut().insert(sender);
        }
        request
    };
    read(fixture.api.respond(request(None)));
    read(fixture.api.respond(request(Some(Sender("10.2.2.2".into())))));
    let origins = origins.lock();
    let named: Vec<String> = origins.iter().map(|origin| format!("{origin:?}")).collect();
    assert_eq!(
        named,
        [
            "Client",
            "Peer(PeerId(\"10.1.1.1\"))",
            "Peer(PeerId(\"10.2.2.2\"))"
        ]
    );
}
