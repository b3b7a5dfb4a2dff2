//! What Eureka tells about the server, and our own endpoints.

use std::sync::Arc;
use std::time::Duration;

use eureka_http_api::{Config, Facts, Rules};
use eureka_registry_core::InstanceKey;
use serde_json::{Value, json};

use crate::fixture::{BEGIN, Fixture, Read, instance_with};

#[test]
fn status_in_both_formats() {
    let mut config = Config::new("boot");
    config.facts = Arc::new(|| Facts {
        cpus: 2,
        memory_total: 114 << 20,
        memory_used: 57 << 20,
        replicas: vec!["http://a/eureka/".into(), "http://b/eureka/".into()],
        available: vec!["http://a/eureka/".into()],
        unavailable: vec!["http://b/eureka/".into()],
        healthy: None,
    });
    config.own = Some(InstanceKey::new("EUREKA", "me"));
    let fixture = Fixture::with(config);
    fixture.register("EUREKA", "me");
    fixture.advance(Duration::from_secs(3_700));
    let status = fixture.get("status").json();
    assert_eq!(status["generalStats"]["num-of-cpus"], "2");
    assert_eq!(status["generalStats"]["current-memory-usage"], "57mb (50%)");
    assert_eq!(status["generalStats"]["server-uptime"], "01:01");
    assert_eq!(
        status["applicationStats"]["registered-replicas"],
        "http://a/eureka/,http://b/eureka/,"
    );
    assert_eq!(
        status["applicationStats"]["available-replicas"],
        "http://a/eureka/,"
    );
    assert!(
        fixture
            .get_xml("status")
            .starts_with("<com.netflix.eureka.util.StatusInfo>")
    );
}

#[test]
fn overrides_are_listed_by_id() {
    for path in ["serverinfo/statusoverrides", "v2/serverinfo/statusoverrides"] {
        let fixture = Fixture::new();
        fixture.register("A", "i");
        fixture.register("A", "j");
        assert_eq!(fixture.get(path).json(), json!({}));
        fixture.put("apps/A/j/status?value=OUT_OF_SERVICE");
        assert_eq!(fixture.get(path).json(), json!({"j": "OUT_OF_SERVICE"}));
        Fixture::java().get(path).is_empty_with(404);
    }
}

#[test]
fn node_tells_who_it_is() {
    let mut config = Config::new("boot");
    config.summary = vec![("compat.preset".into(), "none".into())];
    let fixture = Fixture::with(config);
    fixture.register("A", "i");
    fixture.advance(Duration::from_millis(1_500));
    let node = fixture.get("/api/v1/node").json();
    assert_eq!(node["nodeId"], "boot");
    assert_eq!(node["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(node["uptimeMs"], 1_500);
    assert_eq!(node["time"], BEGIN + 1_500);
    assert_eq!(node["instances"], 1);
    assert_eq!(node["reads"], "open");
    assert_eq!(node["config"], json!({"compat.preset": "none"}));
    assert_eq!(node["preserving"], false);
    assert_eq!(
        node["rules"],
        json!({"leaseExpiry": "exact", "evictionIntervalMs": 60_000, "preservation": true})
    );
}

#[test]
fn node_tells_what_peers_must_agree_about() {
    let mut core = eureka_registry_core::Config::eureka_java();
    core.preservation.measure = eureka_registry_core::Measure::LeasesOnTime;
    let config = Config {
        rules: Rules::from(&core),
        ..Config::new("boot")
    };
    let fixture = Fixture::over(core, config);
    for number in 0..10 {
        fixture.register("A", &format!("i{number}"));
    }
    let node = fixture.get("/api/v1/node").json();
    assert_eq!(node["rules"]["leaseExpiry"], "doubled");
    assert_eq!(node["preserving"], false);
    // Everybody is late.
    fixture.advance(Duration::from_secs(70));
    assert_eq!(fixture.get("/api/v1/node").json()["preserving"], true);
}

#[test]
fn preservation_is_explained_by_application_and_zone() {
    let fixture = Fixture::over(eureka_registry_core::Config::default(), Config::new("boot"));
    for number in 0..10 {
        let zone = if number < 4 { "a" } else { "b" };
        let body = instance_with("A", &format!("i{number}"), &json!({"metadata": {"zone": zone}}));
        fixture.post("A", &body);
    }
    let keep_alive = |range: std::ops::Range<usize>| {
        for _ in 0..10 {
            fixture.advance(Duration::from_secs(30));
            for number in range.clone() {
                fixture.put(&format!("apps/A/i{number}"));
            }
        }
    };
    let explained = fixture.get("/api/v1/preservation").json();
    assert_eq!(explained["active"], false);
    assert_eq!(explained["expected"], 10);
    keep_alive(0..4);
    let explained = fixture.get("/api/v1/preservation").json();
    assert_eq!(explained["active"], true);
    assert_eq!(explained["measure"], "leases-on-time");
    assert_eq!(
        (&explained["expected"], &explained["onTime"]),
        (&json!(10), &json!(4))
    );
    assert_eq!(explained["overdue"], 6);
    assert_eq!(explained["wouldGo"][0], json!({"app": "A", "id": "i4"}));
    assert_eq!(
        explained["applications"],
        json!([{"name": "A", "expected": 10, "onTime": 4}])
    );
    assert_eq!(
        explained["zones"],
        json!([{"name": "a", "expected": 4, "onTime": 4}, {"name": "b", "expected": 6, "onTime": 0}])
    );
    assert!(explained["heartbeats"]["threshold"].is_u64());
}

#[test]
fn losses_are_accepted_only_where_that_is_switched_on() {
    let off = Fixture::new();
    assert_eq!(
        off.send("POST", "/api/v1/preservation/accept", &[], "").status,
        403
    );
    let on = Fixture::over(
        eureka_registry_core::Config::default(),
        Config {
            operator: true,
            ..Config::new("boot")
        },
    );
    for number in 0..10 {
        on.register("A", &format!("i{number}"));
    }
    on.advance(Duration::from_secs(100));
    assert_eq!(on.get("/api/v1/preservation").json()["active"], true);
    let answer = on.send("POST", "/api/v1/preservation/accept", &[], "");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["active"], false);
}

#[test]
fn the_last_registrations_and_cancels() {
    let fixture = Fixture::new();
    fixture.register("A", "i");
    fixture.advance(Duration::from_secs(1));
    fixture.register("A", "j");
    fixture.delete("apps/A/i");
    let last = fixture.get("/api/v1/lastn").json();
    assert_eq!(
        last["registered"],
        json!([{"at": BEGIN + 1_000, "app": "A", "id": "j"}, {"at": BEGIN, "app": "A", "id": "i"}])
    );
    assert_eq!(
        last["cancelled"],
        json!([{"at": BEGIN + 1_000, "app": "A", "id": "i"}])
    );
}

#[test]
fn instances_are_filtered_and_paged() {
    let fixture = Fixture::new();
    for number in 0..300 {
        let fields = json!({"status": if number % 3 == 0 { "DOWN" } else { "UP" }});
        let app = format!("APP{}", number % 7);
        fixture.post(&app, &instance_with(&app, &format!("i/{number:03}"), &fields));
    }
    assert_eq!(paged(&fixture, "limit=7"), 300);
    assert_eq!(paged(&fixture, "limit=1000"), 300);
    assert_eq!(paged(&fixture, "limit=7&filter=status%20==%20DOWN"), 100);
}

/// Reads all pages; how many instances there are.
fn paged(fixture: &Fixture, query: &str) -> usize {
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = fixture.get(&format!("/api/v1/instances?{query}{cursor}")).json();
        let instances = page["instances"].as_array().unwrap();
        if query.contains("limit=7") {
            assert!(instances.len() <= 7);
        }
        seen.extend(instances.iter().map(|instance| {
            assert!(!query.contains("DOWN") || instance["status"] == "DOWN");
            let text = |name: &str| instance[name].as_str().unwrap().to_owned();
            (text("app"), text("id"))
        }));
        let Some(next) = page.get("next") else { break };
        cursor = format!("&cursor={}", next.as_str().unwrap().replace('%', "%25"));
    }
    assert!(seen.is_sorted());
    let all = seen.len();
    seen.dedup();
    assert_eq!(seen.len(), all);
    all
}

#[test]
fn instances_tell_all_there_is() {
    let fixture = Fixture::new();
    let fields = json!({"metadata": {"zone": "z1", "k": "v"}});
    fixture.post("A", &instance_with("A", "i", &fields));
    let page = fixture.get("/api/v1/instances?filter=zone%20==%20z1").json();
    assert_eq!(page["version"], fixture.registry.snapshot().version());
    let instance = &page["instances"][0];
    assert_eq!(instance["zone"], "z1");
    assert_eq!(instance["port"], json!({"number": 8080, "enabled": true}));
    assert_eq!(instance["metadata"], json!({"zone": "z1", "k": "v"}));
    assert_eq!(instance["vip"], "a");
    assert_eq!(instance["registered"], BEGIN);
    assert!(page.get("next").is_none());
    assert_eq!(
        fixture.get("/api/v1/instances?filter=zone%20==%20z2").json()["instances"],
        Value::Array(vec![])
    );
}

/// What a faithful copy of an instance needs, wherever one is told.
#[test]
fn nothing_of_an_instance_is_left_out() {
    let fixture = Fixture::new();
    let start = fixture.cursor();
    let fields = json!({
        "homePageUrl": "http://h/", "statusPageUrl": "http://h/info", "healthCheckUrl": "http://h/health",
        "secureHealthCheckUrl": "https://h/health", "asgName": "a-1", "appGroupName": "G", "countryId": 49, "sid": "s",
        "metadata": {"z": "1", "a": "2"},
        "dataCenterInfo": {
            "@class": "com.netflix.appinfo.AmazonInfo", "name": "Amazon",
            "metadata": {"instance-id": "i-0", "availability-zone": "us-east-1a", "ami-id": "ami"},
        },
    });
    // Not in the order of their names, which is how `Value` writes them.
    let body = instance_with("A", "i", &fields).to_string();
    let body = body.replace(r#"{"a":"2","z":"1"}"#, r#"{"z":"1","a":"2"}"#);
    fixture.send("POST", "apps/A", &[("content-type", "application/json")], body);
    let told = |path: &str| {
        let answer = fixture.get(path);
        let end = answer
            .text()
            .find(r#","registered":"#)
            .unwrap_or_else(|| answer.text().len());
        let begin = answer.text().find(r#""app":"#).unwrap();
        (
            answer.text()[begin..end].trim_end_matches("}]}").to_owned(),
            answer.json(),
        )
    };
    let (text, page) = told("/api/v1/instances");
    let (changed, _) = told(&format!("/api/v1/changes?since={start}"));
    assert_eq!(text, changed.split("}],").next().unwrap(), "both tell the same");
    let instance = &page["instances"][0];
    for (name, value) in [
        ("homePage", json!("http://h/")),
        ("statusPage", json!("http://h/info")),
        ("healthCheck", json!("http://h/health")),
        ("secureHealthCheck", json!("https://h/health")),
        ("asg", json!("a-1")),
        ("group", json!("G")),
        ("countryId", json!(49)),
        ("sid", json!("s")),
        ("dataCenter", json!("Amazon")),
        (
            "amazon",
            json!({"instance-id": "i-0", "availability-zone": "us-east-1a", "ami-id": "ami"}),
        ),
    ] {
        assert_eq!(instance[name], value, "{name}");
    }
    assert!(
        text.contains(r#""metadata":{"z":"1","a":"2"}"#),
        "in the order given: {text}"
    );
    assert!(instance.get("instanceId").is_none(), "it is the id");
}

#[test]
fn an_id_that_was_not_sent_is_told_as_such() {
    let fixture = Fixture::new();
    for (app, sent) in [
        ("A", json!({"instanceId": null})),
        ("B", json!({"instanceId": ""})),
    ] {
        fixture.post(app, &instance_with(app, "h", &sent));
    }
    let page = fixture.get("/api/v1/instances").json();
    let told = |number: usize| {
        (
            &page["instances"][number]["id"],
            page["instances"][number].get("instanceId"),
        )
    };
    assert_eq!(told(0), (&json!("host-h"), Some(&Value::Null)));
    assert_eq!(told(1), (&json!("host-h"), Some(&json!(""))));
}

#[test]
fn the_registry_is_shown_as_it_was() {
    let fixture = Fixture::new();
    for number in 0..10 {
        fixture.register("A", &format!("i{number}"));
    }
    fixture.put("apps/A/i3/metadata?k=old");
    let then = fixture.registry.cursor(fixture.registry.version()).to_string();
    fixture.advance(Duration::from_millis(1_500));
    fixture.put("apps/A/i3/metadata?k=new");
    fixture.put("apps/A/i4/status?value=DOWN");
    fixture.delete("apps/A/i5");
    fixture.register("B", "later");
    // By cursor, and by time in both its forms.
    let points = [
        then.clone(),
        format!("{}", BEGIN + 1_499),
        "2026-11-18T11:06:41.499Z".to_owned(),
    ];
    for point in points {
        let mut seen = Vec::new();
        let mut more = format!("at={point}");
        loop {
            let page = fixture.get(&format!("/api/v1/instances?limit=4&{more}")).json();
            assert_eq!(page["changes"], then, "the place it is of, for the next page");
            assert_eq!(page["version"].to_string(), then.split_once('.').unwrap().1);
            let instances = page["instances"].as_array().unwrap();
            assert!(instances.len() <= 4);
            seen.extend(instances.iter().cloned());
            // Meanwhile it goes on changing.
            fixture.put("apps/A/i3/metadata?k=newer");
            let Some(next) = page.get("next") else { break };
            more = format!("at={then}&cursor={}", next.as_str().unwrap().replace('%', "%25"));
        }
        let ids: Vec<_> = seen
            .iter()
            .map(|instance| instance["id"].as_str().unwrap())
            .collect();
        assert_eq!(ids, ["i0", "i1", "i2", "i3", "i4", "i5", "i6", "i7", "i8", "i9"]);
        assert_eq!(seen[3]["metadata"], json!({"k": "old"}));
        assert_eq!(seen[4]["status"], "UP");
        assert!(
            seen[0].get("renewed").is_none(),
            "nobody keeps the leases of the past"
        );
    }
    let filtered = fixture.get(&format!(
        "/api/v1/instances?at={then}&filter=metadata.k%20==%20old"
    ));
    assert_eq!(filtered.json()["instances"].as_array().unwrap().len(), 1);
    // What follows is what has happened since.
    let changes = fixture.get(&format!("/api/v1/changes?since={then}")).json();
    assert_eq!(changes["changes"][0]["metadata"], json!({"k": "new"}));
}

#[test]
fn a_moment_that_is_read_page_by_page_is_kept_until_its_last_page() {
    let core = eureka_registry_core::Config {
        change_log_limit: 20,
        ..Default::default()
    };
    let fixture = Fixture::over(core, Config::new("boot"));
    for number in 0..10 {
        fixture.register("A", &format!("i{number}"));
    }
    let then = fixture.registry.cursor(fixture.registry.version()).to_string();
    fixture.delete("apps/A/i9");
    let page = |more: &str| fixture.get(&format!("/api/v1/instances?limit=5&at={then}{more}"));
    let next = |read: &Read| format!("&cursor={}", read.json()["next"].as_str().unwrap());
    let first = page("");
    for number in 0..100 {
        fixture.put(&format!("apps/A/i1/metadata?k={number}"));
    }
    // Nobody could undo as much; another moment in between, read in one page, does not matter.
    let now = fixture.registry.cursor(fixture.registry.version());
    assert_eq!(fixture.get(&format!("/api/v1/instances?at={now}")).status, 200);
    let last = page(&next(&first));
    assert_eq!(last.json()["instances"][4]["id"], "i9");
    assert!(last.json().get("next").is_none());
    assert_eq!(page("").status, 410);
}

#[test]
fn a_moment_that_nobody_knows_is_410_and_one_to_come_400() {
    let core = eureka_registry_core::Config {
        change_log_limit: 2,
        ..Default::default()
    };
    for config in [Config::new("boot"), Config::eureka_java("boot")] {
        let fixture = Fixture::over(core.clone(), config);
        let start = fixture.registry.cursor(fixture.registry.version()).to_string();
        fixture.advance(Duration::from_secs(1));
        for id in ["i", "j", "k"] {
            fixture.register("A", id);
        }
        let future = format!("{}9", fixture.registry.cursor(fixture.registry.version()));
        let later = (BEGIN + 1_001).to_string();
        let before = BEGIN.to_string();
        for (at, status, reason) in [
            (
                "0123456789abcdef.1",
                410,
                "the cursor is of another server, or of this one before it was started again",
            ),
            (&*start, 410, "changes since then are not kept any more"),
            (&*before, 410, "changes since then are not kept any more"),
            (&*later, 400, "parameter at: that is still to come"),
            (&*future, 400, "parameter at: that is still to come"),
            (
                "noon",
                400,
                "parameter at: a cursor, Unix milliseconds or a time such as 2026-11-30T08:15:00Z expected",
            ),
        ] {
            let read = fixture.get(&format!("/api/v1/instances?at={at}"));
            assert_eq!((read.status.as_u16(), read.text()), (status, reason), "{at}");
        }
    }
    let held = Fixture::held(core, Config::new("boot"));
    held.get("/api/v1/instances?at=1").is_empty_with(403);
}

#[test]
fn bad_questions_are_400() {
    let fixture = Fixture::new();
    for query in [
        "filter=app%20=%20x",
        "filter=(",
        "limit=0",
        "limit=1001",
        "limit=x",
        "cursor=x",
        "filter=%ff",
    ] {
        let read = fixture.get(&format!("/api/v1/instances?{query}"));
        assert_eq!(read.status, 400, "{query}");
        assert_eq!(read.text().lines().count(), 1, "{query}");
    }
    let read = fixture.get("/api/v1/instances?filter=app%20=%20x");
    assert!(read.text().starts_with("filter: at byte 4"), "{}", read.text());
}

#[test]
fn our_lists_are_held_too() {
    let fixture = Fixture::held(eureka_registry_core::Config::default(), Config::new("boot"));
    fixture.get("/api/v1/instances").is_empty_with(403);
    assert_eq!(fixture.get("/api/v1/node").json()["reads"], "held");
}

#[test]
fn healthcheck_is_the_status_of_the_own_instance() {
    let alone = Fixture::new();
    alone.get("healthcheck").is_empty_with(200);
    let mut config = Config::new("boot");
    config.own = Some(InstanceKey::new("EUREKA", "me"));
    let fixture = Fixture::with(config);
    for (status, code) in [("STARTING", 204), ("DOWN", 500), ("UP", 200)] {
        fixture.post(
            "EUREKA",
            &instance_with("EUREKA", "me", &json!({"status": status})),
        );
        fixture.get("healthcheck").is_empty_with(code);
    }
    fixture.put("apps/EUREKA/me/status?value=OUT_OF_SERVICE");
    fixture.get("healthcheck").is_empty_with(503);
}
