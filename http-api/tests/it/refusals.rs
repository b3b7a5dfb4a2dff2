//! Whatever is wrong with a request: a 4xx with one line, and the registry as it was.

use std::io::Write as _;

use eureka_http_api::Config;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use crate::fixture::{Fixture, instance, instance_with};

const JSON: (&str, &str) = ("content-type", "application/json");
const XML: (&str, &str) = ("content-type", "application/xml");

/// Sends a registration of A/bad that must be refused, and sees that nothing changed.
#[track_caller]
fn refused(fixture: &Fixture, headers: &[(&str, &str)], body: impl Into<bytes::Bytes>) -> (u16, String) {
    let version = fixture.registry.snapshot().version();
    let read = fixture.send("POST", "apps/A", headers, body);
    assert!(read.status.is_client_error(), "{}", read.status);
    assert!(read.text().len() < 300, "{}", read.text());
    assert!(!read.text().contains('\n'), "{}", read.text());
    assert_eq!(fixture.registry.snapshot().version(), version);
    fixture.get("apps/A/bad").is_empty_with(404);
    (read.status.as_u16(), read.text().to_owned())
}

#[test]
fn malformed_bodies() {
    let fixture = Fixture::new();
    for body in [
        "",
        "{",
        "{nope",
        "[]",
        "null",
        "{\"instance\":",
        "{\"instance\":null}",
        "{\"instance\":[]}",
        "\u{0}",
    ] {
        let (status, text) = refused(&fixture, &[JSON], body);
        assert_eq!(status, 400, "{body}");
        assert!(
            text.starts_with("{\"error\": \"cannot parse request body"),
            "{text}"
        );
        serde_json::from_str::<serde_json::Value>(&text).unwrap();
    }
    for body in [
        "",
        "not xml",
        "<instance>",
        "<instance><app>A</instance>",
        "<other/>",
        "<a><b></a></b>",
    ] {
        let (status, text) = refused(&fixture, &[XML], body);
        assert_eq!(status, 400, "{body}");
        assert!(
            text.starts_with("<error><message>cannot parse request body"),
            "{text}"
        );
    }
}

#[test]
fn reasons_do_not_repeat_all_that_was_sent() {
    let fixture = Fixture::new();
    let long = "e\r\n".repeat(100_000);
    for xml in [
        format!("<instance><app>&{};</app></instance>", "e".repeat(100_000)),
        format!("<instance><{0}></f></instance>", "e".repeat(100_000)),
    ] {
        assert_eq!(refused(&fixture, &[XML], xml).0, 400);
    }
    let body = instance_with("A", "bad", &json!({ "app": long })).to_string();
    let (status, text) = refused(&fixture, &[JSON], body);
    assert_eq!(status, 400);
    assert!(
        text.starts_with("Mismatched appName, expecting A but was E  E"),
        "{text}"
    );
}

#[test]
fn the_refusal_of_a_body_is_labelled_as_the_body_was() {
    let fixture = Fixture::new();
    let read = fixture.send("POST", "apps/A", &[JSON], "{");
    assert_eq!(read.headers["content-type"], "application/json");
    let read = fixture.send("POST", "apps/A", &[XML], "{");
    assert_eq!(read.headers["content-type"], "application/xml");
}

#[test]
fn presets_give_javas_texts_alone() {
    let java = Fixture::java();
    let read = java.send("POST", "apps/A", &[JSON], "{");
    assert_eq!(read.text(), r#"{"error": "cannot parse request body"}"#);
    let read = java.send("POST", "apps/A", &[XML], "{");
    assert_eq!(
        read.text(),
        "<error><message>cannot parse request body</message></error>"
    );
    let read = java.post("A", &instance_with("A", "bad", &json!({"hostName": null})));
    assert_eq!((read.status.as_u16(), read.text()), (400, "Missing hostname"));
    assert_eq!(read.headers["content-type"], "application/xml");
    java.send("POST", "apps/A", &[("content-type", "text/plain")], "x")
        .is_empty_with(415);
}

#[test]
fn what_is_missing_is_named_as_in_java() {
    let fixture = Fixture::new();
    for (fields, text) in [
        (
            json!({"hostName": null, "instanceId": null}),
            "Missing instanceId",
        ),
        (json!({"hostName": ""}), "Missing hostname"),
        (json!({"ipAddr": null}), "Missing ip address"),
        (json!({"app": ""}), "Missing appName"),
        (json!({"app": "B"}), "Mismatched appName, expecting A but was B"),
        (json!({"dataCenterInfo": null}), "Missing dataCenterInfo"),
    ] {
        let body = instance_with("A", "bad", &fields).to_string();
        let (status, said) = refused(&fixture, &[JSON], body);
        assert_eq!((status, &*said), (400, text));
    }
}

#[test]
fn wrong_types_that_mean_nothing() {
    let fixture = Fixture::new();
    for fields in [
        json!({"hostName": {"a": 1}}),
        json!({"app": ["A"]}),
        json!({"ipAddr": {}}),
    ] {
        let body = instance_with("A", "bad", &fields).to_string();
        assert_eq!(refused(&fixture, &[JSON], body).0, 400, "{fields}");
    }
}

#[test]
fn invalid_utf8() {
    let fixture = Fixture::new();
    let mut body = instance("A", "bad").to_string().into_bytes();
    let at = body.windows(8).position(|window| window == b"host-bad").unwrap();
    body[at] = 0xff;
    assert_eq!(refused(&fixture, &[JSON], body).0, 400);
    let mut body = b"<instance><hostName>".to_vec();
    body.extend_from_slice(b"\xff\xfe</hostName></instance>");
    assert_eq!(refused(&fixture, &[XML], body).0, 400);
    for path in ["apps/%ff%fe", "apps/A/%ff", "instances/%c3", "vips/%ff"] {
        let read = fixture.get(path);
        assert!(matches!(read.status.as_u16(), 400 | 404), "{path}");
    }
}

#[test]
fn doctypes_and_entities() {
    let fixture = Fixture::new();
    let doctype = "<!DOCTYPE a [<!ENTITY b \"c\">]><instance><hostName>&b;</hostName></instance>";
    assert_eq!(refused(&fixture, &[XML], doctype).0, 400);
    let file = "<!DOCTYPE a [<!ENTITY b SYSTEM \"file:///etc/passwd\">]><instance>&b;</instance>";
    assert_eq!(refused(&fixture, &[XML], file).0, 400);
    let entity = "<instance><instanceId>bad</instanceId><hostName>&unknown;</hostName></instance>";
    assert_eq!(refused(&fixture, &[XML], entity).0, 400);
}

#[test]
fn deep_nesting() {
    let fixture = Fixture::new();
    let deep = 100_000;
    for unit in ["[", "{\"metadata\":", "{\"a\":["] {
        let body = format!("{{\"instance\":{}", unit.repeat(deep));
        assert_eq!(refused(&fixture, &[JSON], body).0, 400);
    }
    assert_eq!(refused(&fixture, &[XML], "<instance>".repeat(deep)).0, 400);
    // What nobody knows is skipped, however deep, without a stack.
    let unknown = format!("{}1{}", "[".repeat(deep), "]".repeat(deep));
    let body = instance("A", "i")
        .to_string()
        .replacen('{', &format!("{{\"x\":{unknown},"), 1);
    fixture.send("POST", "apps/A", &[JSON], body).is_empty_with(204);
}

#[test]
fn bodies_over_the_limit() {
    let mut config = Config::new("boot");
    config.limits.body = 10_000;
    let fixture = Fixture::with(config);
    let long = instance_with("A", "bad", &json!({"homePageUrl": "x".repeat(10_000)})).to_string();
    let (status, text) = refused(&fixture, &[JSON], long);
    assert_eq!((status, &*text), (413, "body over 10000 bytes"));

    let gzip = ("content-encoding", "gzip");
    let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
    bomb.write_all(&vec![b' '; 5_000_000]).unwrap();
    let bomb = bomb.finish().unwrap();
    assert!(bomb.len() < 10_000);
    assert_eq!(refused(&fixture, &[JSON, gzip], bomb).0, 413);
    assert_eq!(refused(&fixture, &[JSON, gzip], "not gzip").0, 400);
    assert_eq!(
        refused(&fixture, &[JSON, ("content-encoding", "br")], "{}").0,
        415
    );
}

#[test]
fn types_we_do_not_read() {
    let fixture = Fixture::new();
    let body = instance("A", "bad").to_string();
    for content_type in [
        "text/plain",
        "text/json",
        "text/xml",
        "application/x-www-form-urlencoded",
        "application/vnd.x+json",
        "application/json; charset=utf-16",
        "*/*",
        "zzz",
    ] {
        let (status, _) = refused(&fixture, &[("content-type", content_type)], body.clone());
        assert_eq!(status, 415, "{content_type}");
    }
    assert_eq!(refused(&fixture, &[], body).0, 415);
}

#[test]
fn answers_nobody_accepts() {
    let fixture = Fixture::new();
    fixture.register("A", "i");
    for path in [
        "apps",
        "apps/delta",
        "apps/A",
        "apps/A/i",
        "instances/i",
        "vips/a",
        "status",
    ] {
        for accept in [
            "text/html",
            "text/xml",
            "image/png",
            "zzz",
            "application/json;q=0",
        ] {
            fixture
                .send("GET", path, &[("accept", accept)], "")
                .is_empty_with(406);
        }
    }
}

#[test]
fn paths_that_are_none() {
    let fixture = Fixture::new();
    for path in [
        "/",
        "/apps",
        "/v2/apps",
        "/eureka",
        "/eureka/v1/apps",
        "/eureka/APPS",
        "/eureka/foo",
        "/eureka/apps/A/i/foo",
        "/eureka/apps/A/i/status/x",
        "/eureka/v2/v2/apps",
        "/api/v2/node",
    ] {
        fixture.send("GET", path, &[], "").is_empty_with(404);
    }
}

#[test]
fn methods_that_are_none_and_options() {
    let fixture = Fixture::new();
    fixture.register("A", "i");
    for (path, allow) in [
        ("apps", "GET,HEAD,OPTIONS"),
        ("apps/delta", "GET,HEAD,OPTIONS"),
        ("apps/A", "POST,GET,HEAD,OPTIONS"),
        ("apps/A/i", "DELETE,GET,HEAD,OPTIONS,PUT"),
        ("apps/A/i/status", "DELETE,OPTIONS,PUT"),
        ("vips/a", "GET,HEAD,OPTIONS"),
        ("peerreplication/batch", "POST,OPTIONS"),
    ] {
        for method in ["PATCH", "TRACE", "FOO"] {
            let read = fixture.send(method, path, &[], "");
            read.is_empty_with(405);
            assert_eq!(read.headers["allow"], allow, "{method} {path}");
        }
        let options = fixture.send("OPTIONS", path, &[], "");
        options.is_empty_with(200);
        assert_eq!(options.headers["allow"], allow);
    }
}

#[test]
fn presets_allow_as_their_servers_do() {
    let spring = Fixture::java();
    assert_eq!(spring.put("apps").headers["allow"], "GET,OPTIONS");
    assert_eq!(
        spring.send("OPTIONS", "apps", &[], "").headers["allow"],
        "GET,HEAD,OPTIONS"
    );
    let netflix = Fixture::with(Config::eureka_netflix("boot"));
    assert_eq!(netflix.put("apps").headers["allow"], "GET,HEAD,OPTIONS");
    netflix.send("OPTIONS", "apps", &[], "").is_empty_with(204);
    let head = netflix.send("HEAD", "apps", &[], "");
    assert!(!head.headers.contains_key("content-encoding"));
}

#[test]
fn head_is_get_without_a_body() {
    let fixture = Fixture::new();
    fixture.register("A", "i");
    for path in ["apps", "apps/delta", "apps/A", "apps/A/i", "vips/a"] {
        // The first GET encodes what has a length then.
        fixture.get(path);
        let get = fixture.get(path);
        let head = fixture.send("HEAD", path, &[("accept", "application/json")], "");
        assert_eq!(head.status, 200);
        assert_eq!(head.text(), "");
        assert_eq!(head.headers["content-type"], "application/json");
        assert_eq!(head.headers["content-length"], get.body.len().to_string());
    }
    assert_eq!(fixture.send("HEAD", "apps/NONE", &[], "").status, 404);
}

#[test]
fn urls_over_the_limit() {
    let fixture = Fixture::new();
    let id = "x".repeat(8 << 10);
    assert_eq!(fixture.put(&format!("apps/A/{id}")).status, 414);
    assert_eq!(fixture.put(&format!("apps/A/i?status={id}")).status, 414);
    assert_eq!(fixture.get(&format!("apps/A/{}", "x".repeat(8000))).status, 404);
}

#[test]
fn groups_are_amazons() {
    let fixture = Fixture::new();
    fixture.put("asg/name/status?value=ENABLED").is_empty_with(400);
}

#[test]
fn a_poisonous_registration_breaks_no_list() {
    let fixture = Fixture::new();
    fixture.register("GOOD", "good");
    let poison = json!({"dataCenterInfo": {
        "@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo", "name": "Amazon"}});
    let control =
        json!({"metadata": {"k\u{0}": "\u{1}\u{b}", "<": "]]>", "a b": "&"}, "homePageUrl": "\u{c}"});
    for (id, fields) in [("p", poison), ("c", control)] {
        fixture.post("BAD", &instance_with("BAD", id, &fields));
        assert!(fixture.get("apps").text().contains("good"));
        let xml = fixture.get_xml("apps");
        assert!(xml.contains("good") && xml.ends_with("</applications>"));
        assert!(!xml.contains(['\u{0}', '\u{1}', '\u{b}', '\u{c}']), "{xml}");
        fixture.get("apps").json();
    }
}
