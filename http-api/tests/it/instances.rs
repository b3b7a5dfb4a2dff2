//! Single instances in our own way: exact codes, empty answers, both flavours of path, and where we differ from Java.

use std::time::Duration;

use serde_json::json;

use crate::fixture::{BEGIN, DIRTY, Fixture, instance, instance_with};

#[test]
fn codes_and_nothing_else() {
    let fixture = Fixture::new();
    for prefix in ["/eureka/", "/eureka/v2/", "/eureka//"] {
        for slash in ["", "/"] {
            let path = |rest: &str| format!("{prefix}apps/A{rest}");
            let body = instance("A", "i").to_string();
            let json = [("content-type", "application/json")];
            fixture.send("POST", &path(slash), &json, body).is_empty_with(204);
            fixture.put(&path(&format!("/i{slash}"))).is_empty_with(200);
            fixture
                .put(&path(&format!("/i/status{slash}?value=DOWN")))
                .is_empty_with(200);
            fixture
                .delete(&path(&format!("/i/status{slash}?value=UP")))
                .is_empty_with(200);
            fixture
                .put(&path(&format!("/i/metadata{slash}?k=v")))
                .is_empty_with(200);
            assert_eq!(fixture.get(&path(&format!("/i{slash}"))).status, 200);
            assert_eq!(fixture.get(&path(slash)).status, 200);
            fixture.delete(&path(&format!("/i{slash}"))).is_empty_with(200);
            fixture.delete(&path(&format!("/i{slash}"))).is_empty_with(404);
        }
    }
}

#[test]
fn heartbeats_have_no_header_at_all() {
    let fixture = Fixture::new();
    fixture.register("A", "i");
    let read = fixture.put("apps/A/i?status=UP&lastDirtyTimestamp=1700000000000");
    assert!(read.headers.is_empty(), "{:?}", read.headers);
}

#[test]
fn bodies_of_puts_and_deletes_mean_nothing() {
    let fixture = Fixture::new();
    fixture.register("A", "i");
    for (content_type, body) in [
        ("application/json", "{}"),
        ("text/plain", "x"),
        ("application/x-www-form-urlencoded", ""),
        ("a/b", "{"),
    ] {
        let headers = [("content-type", content_type)];
        fixture.send("PUT", "apps/A/i", &headers, body).is_empty_with(200);
    }
    fixture
        .send("DELETE", "apps/A/i", &[("content-type", "x")], "{")
        .is_empty_with(200);
}

#[test]
fn names_are_decoded() {
    let fixture = Fixture::new();
    for (id, paths) in [
        ("h:a:8080", &["h:a:8080", "h%3Aa%3A8080", "h%3aa%3a8080"][..]),
        ("a/b", &["a%2Fb", "a%2fb"]),
        ("my host", &["my%20host"]),
        ("a+b", &["a+b", "a%2Bb"]),
        ("ümläut", &["%C3%BCml%C3%A4ut"]),
    ] {
        fixture.register("A", id);
        for path in paths {
            fixture.put(&format!("apps/a/{path}")).is_empty_with(200);
            let view = fixture.get(&format!("apps/A/{path}")).json();
            assert_eq!(view["instance"]["instanceId"], id);
            assert_eq!(fixture.get(&format!("instances/{path}")).status, 200);
        }
    }
    // Ids mind case, applications do not.
    fixture.register("Mixed", "Id");
    assert_eq!(fixture.get("apps/mIXED/Id").json()["instance"]["app"], "MIXED");
    fixture.get("apps/MIXED/ID").is_empty_with(404);
    assert_eq!(fixture.get("apps/mixed").json()["application"]["name"], "MIXED");
}

#[test]
fn dirty_timestamps_of_renewals() {
    let fixture = Fixture::new();
    fixture.register("A", "i");
    let renew = |dirty: i64| format!("apps/A/i?lastDirtyTimestamp={dirty}");
    fixture.put(&renew(DIRTY)).is_empty_with(200);
    fixture.put(&renew(DIRTY - 5)).is_empty_with(200);
    fixture.put(&renew(DIRTY + 5)).is_empty_with(404);
    fixture.put_as_peer(&renew(DIRTY + 5)).is_empty_with(404);
    let conflict = fixture.put_as_peer(&renew(DIRTY - 5));
    assert_eq!(conflict.status, 409);
    assert_eq!(
        conflict.json()["instance"]["lastDirtyTimestamp"],
        DIRTY.to_string()
    );
    // Only the exact word makes a peer.
    for word in ["True", "TRUE", "1", " true"] {
        let headers = [("x-netflix-discovery-replication", word)];
        fixture
            .send("PUT", &renew(DIRTY - 5), &headers, "")
            .is_empty_with(200);
    }
    // The conflict comes in the format that is accepted.
    let headers = [("x-netflix-discovery-replication", "true")];
    let conflict = fixture.send("PUT", &renew(DIRTY - 5), &headers, "");
    assert_eq!(conflict.headers["content-type"], "application/xml");
    assert!(conflict.text().starts_with("<instance>"));
}

#[test]
fn the_last_renewal_is_told_as_it_was() {
    let fixture = Fixture::new();
    fixture.register("A", "i");
    fixture.advance(Duration::from_secs(7));
    fixture.put("apps/A/i");
    fixture.advance(Duration::from_secs(3));
    let lease = &fixture.view("A", "i")["leaseInfo"];
    assert_eq!(lease["lastRenewalTimestamp"], BEGIN + 7_000);
    assert_eq!(lease["registrationTimestamp"], BEGIN);
}

#[test]
fn a_bad_value_is_400_and_changes_nothing() {
    let fixture = Fixture::new();
    fixture.register("A", "i");
    let before = fixture.view("A", "i");
    for (method, target) in [
        ("PUT", "apps/A/i?lastDirtyTimestamp=abc"),
        ("PUT", "apps/A/i?lastDirtyTimestamp="),
        ("PUT", "apps/A/i/status"),
        ("PUT", "apps/A/i/status?value=down"),
        ("PUT", "apps/A/i/status?value=DOWN&lastDirtyTimestamp=abc"),
        ("DELETE", "apps/A/i/status?value=BOGUS"),
        ("DELETE", "apps/A/i/status?value=UP&lastDirtyTimestamp=x"),
        ("PUT", "apps/A/i/metadata?k=%ff"),
        ("PUT", "apps/A/i?lastDirtyTimestamp=%ff"),
    ] {
        let read = fixture.send(method, target, &[], "");
        assert_eq!(read.status, 400, "{target}");
        assert_eq!(read.text().lines().count(), 1, "{target}: {}", read.text());
        assert_eq!(fixture.view("A", "i"), before, "{target}");
    }
    let peer = fixture.put_as_peer("apps/A/i?overriddenstatus=BOGUS");
    assert_eq!(peer.status, 400);
    // Clients' own words about overrides are not read at all.
    fixture
        .put("apps/A/i?overriddenstatus=BOGUS&status=whatever")
        .is_empty_with(200);
}

#[test]
fn java_does_half_and_fails() {
    let java = Fixture::java();
    java.register("A", "i");
    for (method, target, status) in [
        ("PUT", "apps/A/ghost?lastDirtyTimestamp=abc", 404),
        ("PUT", "apps/A/i?lastDirtyTimestamp=", 500),
        ("PUT", "apps/A/ghost/status?value=BOGUS", 404),
        ("PUT", "apps/A/i/status?value=BOGUS", 500),
        ("PUT", "apps/A/i/status", 500),
        ("DELETE", "apps/A/i/status?value=BOGUS", 500),
        // Nothing to change: the timestamp is never read.
        ("PUT", "apps/A/i/status?value=UP&lastDirtyTimestamp=abc", 200),
        ("DELETE", "apps/A/i/status?value=UP&lastDirtyTimestamp=abc", 200),
    ] {
        java.send(method, target, &[], "").is_empty_with(status);
    }
    java.put("apps/A/i/status?value=OUT_OF_SERVICE&lastDirtyTimestamp=abc")
        .is_empty_with(500);
    assert_eq!(java.view("A", "i")["status"], "OUT_OF_SERVICE");
    java.delete("apps/A/i/status?value=UP&lastDirtyTimestamp=abc")
        .is_empty_with(500);
    assert_eq!(java.view("A", "i")["status"], "UP");
    let ahead = format!("apps/A/i?lastDirtyTimestamp={}&overriddenstatus=BOGUS", DIRTY + 1);
    java.put_as_peer(&ahead).is_empty_with(500);
    java.put_as_peer("apps/A/i?overriddenstatus=BOGUS")
        .is_empty_with(200);
}

#[test]
fn single_instances_in_xml_are_masked_only_in_presets() {
    for (fixture, shown) in [(Fixture::new(), "OUT_OF_SERVICE"), (Fixture::java(), "DOWN")] {
        fixture.register("A", "i");
        fixture.put("apps/A/i/status?value=OUT_OF_SERVICE");
        for path in ["apps/A/i", "instances/i"] {
            let xml = fixture.get_xml(path);
            assert!(xml.contains(&format!("<status>{shown}</status>")), "{xml}");
        }
        assert!(
            fixture
                .get_xml("apps/A")
                .contains("<status>OUT_OF_SERVICE</status>")
        );
        assert_eq!(fixture.view("A", "i")["status"], "OUT_OF_SERVICE");
    }
}

#[test]
fn a_metadata_put_raises_the_dirty_timestamp_by_one() {
    let fixture = Fixture::new();
    fixture.register("A", "i");
    fixture
        .put("apps/A/i/metadata?zone=a%20b&plus=x+y&d=1&d=2&flag")
        .is_empty_with(200);
    let view = fixture.view("A", "i");
    assert_eq!(
        view["metadata"],
        json!({"zone": "a b", "plus": "x y", "d": "1", "flag": ""})
    );
    assert_eq!(view["lastDirtyTimestamp"], (DIRTY + 1).to_string());
}

#[test]
fn metadata_is_limited_for_clients() {
    let fixture = Fixture::new();
    let big = instance_with("A", "i", &json!({"metadata": {"k": "x".repeat(64 << 10)}}));
    let read = fixture.post("A", &big);
    assert_eq!(read.status, 413);
    assert_eq!(read.text(), "metadata over 65536 bytes");
    fixture.get("apps/A/i").is_empty_with(404);
    // What a peer took already is not refused here.
    assert_eq!(fixture.post_as_peer("A", &big).status, 204);

    let almost = instance_with("A", "j", &json!({"metadata": {"k": "x".repeat((64 << 10) - 10)}}));
    assert_eq!(fixture.post("A", &almost).status, 204);
    assert_eq!(fixture.put("apps/A/j/metadata?more=0123456789").status, 413);
    fixture.put("apps/A/j/metadata?k=short").is_empty_with(200);
}

#[test]
fn every_text_of_an_instance_is_limited_for_clients() {
    let fixture = Fixture::new();
    let fields = [
        ("instanceId", "instance_id"),
        ("hostName", "host_name"),
        ("ipAddr", "ip_address"),
        ("appGroupName", "app_group"),
        ("sid", "sid"),
        ("homePageUrl", "home_page_url"),
        ("statusPageUrl", "status_page_url"),
        ("healthCheckUrl", "health_check_url"),
        ("secureHealthCheckUrl", "secure_health_check_url"),
        ("vipAddress", "vip_address"),
        ("secureVipAddress", "secure_vip_address"),
        ("asgName", "asg_name"),
    ];
    for (field, name) in fields {
        let body = |len| instance_with("A", "i", &json!({ field: ",".repeat(len) }));
        let before = fixture.registry.snapshot().version();
        let read = fixture.post("A", &body((8 << 10) + 1));
        assert_eq!(
            (read.status.as_u16(), read.text()),
            (413, &*format!("{name} over 8192 bytes"))
        );
        assert_eq!(fixture.registry.snapshot().version(), before, "{field}");
        assert_eq!(fixture.post("A", &body(8 << 10)).status, 204, "{field}");
    }
    let machine = |len| {
        let center = json!({"name": "Amazon", "metadata": {"instance-id": "m", "k": "x".repeat(len)}});
        instance_with(
            "A",
            "m",
            &json!({"dataCenterInfo": center, "metadata": {"k": "x".repeat(1000)}}),
        )
    };
    assert_eq!(fixture.post("A", &machine(64 << 10)).status, 413);
    assert_eq!(fixture.post("A", &machine((64 << 10) - 1020)).status, 204);
    assert_eq!(fixture.put("apps/A/m/metadata?more=0123456789").status, 413);
}

#[test]
fn what_registers_without_an_id_goes_by_its_host() {
    let fixture = Fixture::new();
    for (id, echoed) in [(json!(null), None), (json!(""), Some(json!("")))] {
        let body = instance_with("A", "x", &json!({"instanceId": id, "hostName": "the-host"}));
        assert_eq!(fixture.post("A", &body).status, 204);
        fixture.put("apps/A/the-host").is_empty_with(200);
        // Java gives back what was sent, and nothing for nothing.
        assert_eq!(fixture.view("A", "the-host").get("instanceId"), echoed.as_ref());
    }
}

#[test]
fn xml_registrations_are_taken() {
    let fixture = Fixture::new();
    let body = "<instance><instanceId>x</instanceId><hostName>h</hostName><app>A</app><ipAddr>10.0.0.1</ipAddr>\
                <status>UP</status><port enabled=\"true\">80</port>\
                <dataCenterInfo><name>MyOwn</name></dataCenterInfo></instance>";
    let headers = [("content-type", "application/xml;charset=utf-8")];
    fixture.send("POST", "apps/A", &headers, body).is_empty_with(204);
    assert_eq!(
        fixture.view("A", "x")["port"],
        json!({"$": 80, "@enabled": "true"})
    );
}

#[test]
fn packed_registrations_are_taken() {
    use std::io::Write as _;
    let fixture = Fixture::new();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed
        .write_all(instance("A", "i").to_string().as_bytes())
        .unwrap();
    let packed = packed.finish().unwrap();
    let headers = [("content-type", "application/json"), ("content-encoding", "gzip")];
    fixture
        .send("POST", "apps/A", &headers, packed)
        .is_empty_with(204);
    assert_eq!(fixture.view("A", "i")["status"], "UP");
}
