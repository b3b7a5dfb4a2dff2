//! The conformance vectors of Java that concern the API, under the preset `eureka-java`. The numbers are those of
//! docs/compat.md; vectors about senders, clients and Amazon's groups have no place here.

use std::time::Duration;

use serde_json::json;

use crate::fixture::{BEGIN, DIRTY, Fixture, instance, instance_with};

#[test]
fn v01_unknown_registered_renewed() {
    let java = Fixture::java();
    java.put("apps/A/i").is_empty_with(404);
    java.post("A", &instance("A", "i")).is_empty_with(204);
    java.put("apps/A/i").is_empty_with(200);
}

#[test]
fn v02_the_last_renewal_lies_ahead_after_one() {
    let java = Fixture::java();
    java.register("A", "i");
    let lease = &java.view("A", "i")["leaseInfo"];
    assert_eq!(lease["lastRenewalTimestamp"], lease["registrationTimestamp"]);
    java.advance(Duration::from_secs(5));
    java.put("apps/A/i");
    let lease = &java.view("A", "i")["leaseInfo"];
    assert_eq!(lease["registrationTimestamp"], BEGIN);
    assert_eq!(lease["lastRenewalTimestamp"], BEGIN + 5_000 + 90_000);
}

#[test]
fn v03_dirty_timestamps_of_renewals() {
    let java = Fixture::java();
    java.register("A", "i");
    let renew = |dirty: &str| format!("apps/A/i?status=UP&lastDirtyTimestamp={dirty}");
    java.put(&renew(&DIRTY.to_string())).is_empty_with(200);
    java.put(&renew(&(DIRTY + 1).to_string())).is_empty_with(404);
    java.put(&renew(&(DIRTY - 1).to_string())).is_empty_with(200);
    let conflict = java.put_as_peer(&renew(&(DIRTY - 1).to_string()));
    assert_eq!(conflict.status, 409);
    assert_eq!(conflict.json()["instance"]["instanceId"], "i");
    java.put(&renew("abc")).is_empty_with(500);
}

#[test]
fn v04_a_peers_override_is_stored_when_it_is_ahead() {
    let java = Fixture::java();
    java.register("A", "i");
    let ahead = format!(
        "apps/A/i?lastDirtyTimestamp={}&overriddenstatus=OUT_OF_SERVICE",
        DIRTY + 1
    );
    java.put_as_peer(&ahead).is_empty_with(404);
    let view = java.view("A", "i");
    assert_eq!(
        (&view["status"], &view["overriddenStatus"]),
        (&json!("UP"), &json!("OUT_OF_SERVICE"))
    );
    java.put("apps/A/i").is_empty_with(200);
    let view = java.view("A", "i");
    assert_eq!(view["status"], "OUT_OF_SERVICE");
    assert_eq!(view["actionType"], "ADDED");
}

#[test]
fn v05_a_status_removed_without_a_value() {
    let java = Fixture::java();
    java.register("A", "i");
    let service_up = java.view("A", "i")["leaseInfo"]["serviceUpTimestamp"].clone();
    java.advance(Duration::from_secs(1));
    java.put("apps/A/i/status?value=OUT_OF_SERVICE")
        .is_empty_with(200);
    java.delete("apps/A/i/status").is_empty_with(200);
    let view = java.view("A", "i");
    assert_eq!(
        (&view["status"], &view["actionType"]),
        (&json!("UNKNOWN"), &json!("MODIFIED"))
    );
    java.put("apps/A/i").is_empty_with(404);

    let older = json!({"lastDirtyTimestamp": DIRTY - 5, "hostName": "other"});
    assert_eq!(java.post("A", &instance_with("A", "i", &older)).status, 204);
    let view = java.view("A", "i");
    assert_eq!(
        (&view["status"], &view["hostName"]),
        (&json!("UNKNOWN"), &json!("host-i"))
    );

    java.register("A", "i");
    let view = java.view("A", "i");
    assert_eq!(view["status"], "UP");
    assert_eq!(view["leaseInfo"]["serviceUpTimestamp"], service_up);
    assert_eq!(view["leaseInfo"]["registrationTimestamp"], BEGIN + 1_000);
}

#[test]
fn v06_overrides_against_registrations() {
    let java = Fixture::java();
    java.register("A", "i");
    java.put("apps/A/i/status?value=OUT_OF_SERVICE")
        .is_empty_with(200);
    let newer = DIRTY + 100;
    java.put(&format!(
        "apps/A/i/status?value=OUT_OF_SERVICE&lastDirtyTimestamp={newer}"
    ))
    .is_empty_with(200);
    assert_eq!(java.view("A", "i")["lastDirtyTimestamp"], DIRTY.to_string());
    java.put(&format!("apps/A/i/status?value=DOWN&lastDirtyTimestamp={newer}"))
        .is_empty_with(200);
    assert_eq!(java.view("A", "i")["lastDirtyTimestamp"], newer.to_string());

    let with =
        |status: &str| instance_with("A", "i", &json!({"status": status, "lastDirtyTimestamp": newer}));
    java.post("A", &with("UP"));
    assert_eq!(java.view("A", "i")["status"], "DOWN");
    java.post("A", &with("STARTING"));
    let view = java.view("A", "i");
    assert_eq!(
        (&view["status"], &view["overriddenStatus"]),
        (&json!("STARTING"), &json!("DOWN"))
    );
    java.put("apps/A/i").is_empty_with(200);
    assert_eq!(java.view("A", "i")["status"], "STARTING");
}

#[test]
fn v07_removing_an_override_twice() {
    let java = Fixture::java();
    java.register("A", "i");
    java.delete("apps/A/i/status?value=UP").is_empty_with(200);
    java.delete("apps/A/i/status?value=UP").is_empty_with(200);
}

#[test]
fn v08_a_live_lease_keeps_its_status() {
    let java = Fixture::java();
    let with = |status: &str| instance_with("A", "i", &json!({"status": status}));
    let status = || java.view("A", "i")["status"].clone();
    java.post("A", &with("OUT_OF_SERVICE"));
    java.post("A", &with("UP"));
    assert_eq!(status(), "OUT_OF_SERVICE");
    java.post_as_peer("A", &with("UP"));
    assert_eq!(status(), "UP");
    java.post("A", &with("OUT_OF_SERVICE"));
    assert_eq!(status(), "UP");
    java.post("A", &with("DOWN"));
    assert_eq!(status(), "DOWN");
    java.post("A", &with("OUT_OF_SERVICE"));
    assert_eq!(status(), "OUT_OF_SERVICE");
}

#[test]
fn v09_metadata() {
    let java = Fixture::java();
    java.register("A", "i");
    java.put("apps/A/i/metadata?k=v&a=1&a=2&e=").is_empty_with(200);
    let view = java.view("A", "i");
    assert_eq!(view["metadata"], json!({"k": "v", "a": "1", "e": ""}));
    assert_eq!(view["lastDirtyTimestamp"], DIRTY.to_string());
    assert_eq!(view["actionType"], "ADDED");
    java.put("apps/A/nobody/metadata?k=v").is_empty_with(404);
}

#[test]
fn v10_cancel() {
    let java = Fixture::java();
    java.register("A", "i");
    java.delete("apps/A/i").is_empty_with(200);
    java.delete("apps/A/i").is_empty_with(404);
    java.get("apps/A/i").is_empty_with(404);
    java.get("apps/A").is_empty_with(404);
    assert_eq!(java.get("apps").json()["applications"]["application"], json!([]));
    let delta = java.get("apps/delta").json();
    assert_eq!(
        delta["applications"]["application"][0]["instance"][0]["actionType"],
        "DELETED"
    );
}

#[test]
fn v11_a_batch_of_everything() {
    let java = Fixture::java();
    let unwrapped = instance("A", "i")["instance"].clone();
    let mut without_host = unwrapped.clone();
    without_host.as_object_mut().unwrap().remove("hostName");
    let item = |id: &str, action: &str, dirty: i64, status: &str| json!({"appName": "A", "id": id, "lastDirtyTimestamp": dirty, "status": status, "action": action});
    let register = |id: &str, body: &serde_json::Value| {
        json!({"appName": "A", "id": id, "lastDirtyTimestamp": DIRTY, "status": "UP",
               "instanceInfo": body, "action": "Register"})
    };
    let items = json!([
        register("i", &unwrapped),
        item("i", "Heartbeat", DIRTY, "UP"),
        item("i", "Heartbeat", DIRTY - 1, "UP"),
        item("i", "Heartbeat", DIRTY + 1, "UP"),
        item("ghost", "Heartbeat", DIRTY, "UP"),
        item("i", "StatusUpdate", DIRTY, "OUT_OF_SERVICE"),
        item("i", "DeleteStatusOverride", DIRTY, "UP"),
        {"appName": "A", "id": "i", "status": "UP", "action": "DeleteStatusOverride"},
        {"appName": "A", "id": "ghost", "action": "Cancel"},
        {"appName": "A", "id": "i", "action": "Cancel"},
        register("j", &without_host),
        {"appName": "A", "id": "j", "lastDirtyTimestamp": DIRTY, "status": "UP", "action": "Register"},
        {"appName": "A", "id": "j"},
    ]);
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json"),
    ];
    let body = json!({"replicationList": items}).to_string();
    let answer = java.send("POST", "peerreplication/batch/", &headers, body);
    assert_eq!(answer.status, 200);
    let list = answer.json()["responseList"].take();
    let codes: Vec<u64> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["statusCode"].as_u64().unwrap())
        .collect();
    assert_eq!(
        codes,
        [200, 200, 409, 404, 404, 200, 200, 500, 404, 200, 200, 500, 500]
    );
    assert_eq!(list[2]["responseEntity"]["instanceId"], "i");
    assert!(list[1].get("responseEntity").is_none());
}

#[test]
fn v12_bodies_of_registrations() {
    let java = Fixture::java();
    let unwrapped = instance("A", "i")["instance"].clone();
    assert_eq!(java.post("A", &unwrapped).status, 400);
    let mismatch = java.post("OTHER", &instance("A", "i"));
    assert_eq!(mismatch.status, 400);
    assert_eq!(mismatch.text(), "Mismatched appName, expecting OTHER but was A");
    let lower = json!({"app": "a"});
    assert_eq!(java.post("A", &instance_with("A", "lower", &lower)).status, 204);
    assert_eq!(
        java.post("A", &instance_with("A", "p", &json!({"port": 8080})))
            .status,
        400
    );
    let port = json!({"port": {"$": "8081", "@enabled": true}});
    assert_eq!(java.post("A", &instance_with("A", "p2", &port)).status, 204);
    assert_eq!(
        java.view("A", "p2")["port"],
        json!({"$": 8081, "@enabled": "true"})
    );
    assert_eq!(
        java.post("A", &instance_with("A", "u", &json!({"wild": 1})))
            .status,
        204
    );
    assert_eq!(
        java.post("A", &instance_with("A", "u2", &json!({"wild": [{"a": 1}]})))
            .status,
        400
    );
    let metadata = json!({"metadata": {"n": 5, "b": true, "z": null}});
    assert_eq!(java.post("A", &instance_with("A", "m", &metadata)).status, 204);
    assert_eq!(
        java.view("A", "m")["metadata"],
        json!({"n": "5", "b": "true", "z": "null"})
    );
    assert_eq!(
        java.post("A", &instance_with("A", "s", &json!({"status": "up"})))
            .status,
        204
    );
    assert_eq!(java.view("A", "s")["status"], "UNKNOWN");
    let no_class = json!({"dataCenterInfo": {"name": "MyOwn"}});
    assert_eq!(java.post("A", &instance_with("A", "c", &no_class)).status, 400);
    let amazon = json!({"dataCenterInfo": {
        "@class": "com.netflix.appinfo.AmazonInfo", "name": "Amazon", "metadata": {"ami-id": "x"}}});
    assert_eq!(java.post("A", &instance_with("A", "aws", &amazon)).status, 204);
    assert_eq!(
        java.view("A", "aws")["dataCenterInfo"]["metadata"]["instance-id"],
        "aws"
    );
    let lease = json!({"leaseInfo": {"renewalIntervalInSecs": 0, "durationInSecs": -5}});
    assert_eq!(java.post("A", &instance_with("A", "l", &lease)).status, 204);
    let lease = &java.view("A", "l")["leaseInfo"];
    assert_eq!(
        (&lease["renewalIntervalInSecs"], &lease["durationInSecs"]),
        (&json!(30), &json!(90))
    );
}

#[test]
fn v17_the_rate_limiter() {
    let mut config = eureka_http_api::Config::eureka_java("boot");
    config.update_interval = Duration::ZERO;
    config.rate_limits.enabled = true;
    config.rate_limits.burst = 2;
    config.rate_limits.full_fetches = 1;
    let java = Fixture::over(eureka_registry_core::Config::eureka_java(), config.clone());
    for path in ["apps", "/eureka/v2/apps/"] {
        assert_eq!(java.get(path).status, 200);
    }
    java.get("apps").is_empty_with(503);
    let privileged = [("discoveryidentity-name", "DefaultClient")];
    assert_eq!(java.send("GET", "apps", &privileged, "").status, 200);
    java.advance(Duration::from_secs(1));
    assert_eq!(java.get("apps").status, 200);

    config.rate_limits.enabled = false;
    let off = Fixture::over(eureka_registry_core::Config::eureka_java(), config);
    assert!((0..10).all(|_| off.get("apps").status == 200));
}

#[test]
fn v18_reads_are_held_after_an_empty_start() {
    let core = eureka_registry_core::Config::eureka_java();
    let java = Fixture::held(core, eureka_http_api::Config::eureka_java("boot"));
    java.register("A", "i");
    for path in ["apps", "apps/delta", "apps/A", "vips/a", "svips/s-a"] {
        java.get(path).is_empty_with(403);
    }
    assert_eq!(java.get("apps/A/i").status, 200);
    assert_eq!(java.get("instances/i").status, 200);
    java.put("apps/A/i").is_empty_with(200);
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json"),
    ];
    let batch = java.send(
        "POST",
        "peerreplication/batch",
        &headers,
        r#"{"replicationList":[]}"#,
    );
    assert_eq!(batch.json(), json!({"responseList": []}));
    java.registry.open(1, None);
    assert_eq!(java.get("apps").status, 200);
}

#[test]
fn v19_what_spring_compresses() {
    let java = Fixture::java();
    java.register("A", "i");
    let gzip = [("accept-encoding", "gzip"), ("accept", "application/json")];
    assert_eq!(
        java.send("GET", "apps", &gzip, "").headers["content-encoding"],
        "gzip"
    );
    assert_eq!(
        java.send("GET", "apps/delta", &gzip, "").headers["content-encoding"],
        "gzip"
    );
    for path in ["apps/A", "apps/A/i", "vips/a", "svips/x", "instances/i"] {
        let read = java.send("GET", path, &gzip, "");
        assert!(!read.headers.contains_key("content-encoding"), "{path}");
    }
}
