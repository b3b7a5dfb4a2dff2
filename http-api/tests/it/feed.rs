//! The change feed as long polls.

use std::time::Duration;

use bytes::Bytes;
use eureka_http_api::Config;
use eureka_registry_core::{InstanceKey, Origin, PeerId, Status};
use http::Request;
use http_body::Body as _;
use serde_json::{Value, json};

use crate::fixture::{BEGIN, Fixture, Read, instance_with};
use crate::follow::Counted;

const WATCHERS: &str = "eureka_watchers interface=http";
const OTHER: &str = "0123456789abcdef.1";

fn changes(since: &str, more: &str) -> String {
    format!("/api/v1/changes?since={since}{more}")
}

/// `action id status` of each change.
fn told(read: &Read) -> Vec<String> {
    assert_eq!(read.status, 200, "{}", read.text());
    let page = read.json();
    let changes = page["changes"].as_array().unwrap();
    let text = |change: &Value, name: &str| change[name].as_str().unwrap().to_owned();
    let line = |change| {
        format!(
            "{} {} {}",
            text(change, "action"),
            text(change, "id"),
            text(change, "status")
        )
    };
    changes.iter().map(line).collect()
}

/// A log of so many changes.
fn with_log(changes: usize) -> Fixture {
    let core = eureka_registry_core::Config {
        change_log_limit: changes,
        ..Default::default()
    };
    Fixture::over(core, Config::new("boot"))
}

fn cursor(read: &Read) -> String {
    read.json()["cursor"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn changes_are_followed_by_cursor() {
    let fixture = Fixture::new();
    fixture.register("A", "i");
    let start = fixture.get("/api/v1/instances").json()["changes"].clone();
    let now = fixture.ask("/api/v1/changes", &[]).read();
    assert_eq!(
        now.json(),
        json!({"cursor": start, "changes": []}),
        "without a cursor at once"
    );
    fixture.register("A", "j");
    fixture.put("apps/A/i/status?value=DOWN");
    fixture.delete("apps/A/j");
    let mut since = start.as_str().unwrap().to_owned();
    let mut seen = Vec::new();
    for _ in 0..2 {
        let read = fixture.ask(&changes(&since, "&limit=2"), &[]).read();
        since = cursor(&read);
        seen.extend(told(&read));
    }
    assert_eq!(seen, ["ADDED j UP", "MODIFIED i DOWN", "DELETED j UP"]);
    // A heartbeat is no change.
    let mut waiting = fixture.ask(&changes(&since, "&limit=2"), &[]);
    assert!(waiting.poll().is_none());
    fixture.put("apps/A/i");
    assert!(waiting.poll().is_none());
}

#[tokio::test(start_paused = true)]
async fn who_asks_too_early_waits_for_the_change() {
    let fixture = Fixture::new();
    let waiting = tokio::spawn(fixture.ask(&changes(&fixture.cursor(), ""), &[]).wait());
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    fixture.register("A", "i");
    let read = waiting.await.unwrap();
    assert_eq!(told(&read), ["ADDED i UP"]);
    assert_eq!(cursor(&read), fixture.cursor());
    assert_eq!(read.headers["cache-control"], "no-store, no-transform");
}

#[tokio::test(start_paused = true)]
async fn waiting_has_an_end() {
    let fixture = Fixture::new();
    let since = fixture.cursor();
    for (wait, millis) in [
        ("", 30_000),
        ("&wait=500ms", 500),
        ("&wait=60s", 60_000),
        ("&wait=2", 2_000),
    ] {
        let mut waiting = fixture.ask(&changes(&since, wait), &[]);
        assert!(waiting.poll().is_none());
        tokio::time::advance(Duration::from_millis(millis - 1)).await;
        assert!(waiting.poll().is_none(), "{wait}");
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(
            waiting.read().json(),
            json!({"cursor": since, "changes": []}),
            "{wait}"
        );
    }
    let at_once = fixture.ask(&changes(&since, "&wait=0"), &[]).read();
    assert_eq!(at_once.json(), json!({"cursor": since, "changes": []}));
    // The function without the service does not wait.
    assert_eq!(fixture.get(&changes(&since, "")).json(), at_once.json());
}

#[tokio::test(start_paused = true)]
async fn a_filter_lets_through_what_it_selects_before_or_after() {
    let fixture = Fixture::new();
    fixture.register("A", "i");
    let since = fixture.cursor();
    let filter = "&filter=app%20==%20A%20%26%26%20status%20==%20UP";
    let mut waiting = fixture.ask(&changes(&since, filter), &[]);
    fixture.register("B", "hidden");
    assert!(waiting.poll().is_none());
    fixture.put("apps/A/i/status?value=DOWN");
    let left = waiting.read();
    assert_eq!(told(&left), ["DELETED i UP"]);
    assert_eq!(left.json()["changes"][0]["why"], "filtered");
    fixture.register("A", "j");
    fixture.delete("apps/A/i/status?value=UP");
    let entered = fixture.ask(&changes(&cursor(&left), filter), &[]).read();
    assert_eq!(told(&entered), ["ADDED j UP", "ADDED i UP"]);
    let whys: Vec<_> = (0..2)
        .map(|at| entered.json()["changes"][at]["why"].clone())
        .collect();
    assert_eq!(whys, ["registered", "filtered"]);
    // Without the filter they are what they were.
    let whole = fixture.ask(&changes(&since, ""), &[]).read();
    assert_eq!(
        told(&whole),
        [
            "ADDED hidden UP",
            "MODIFIED i DOWN",
            "ADDED j UP",
            "MODIFIED i UP"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_cursor_moves_past_what_the_filter_hides() {
    let fixture = with_log(5_000);
    fixture.register("A", "i");
    let mut since = fixture.cursor();
    for round in 0..3 {
        let target = changes(&since, "&filter=app%20==%20NONE");
        let mut waiting = fixture.ask(&target, &[]);
        assert!(waiting.poll().is_none());
        for number in 0..4_000 {
            fixture.put(&format!("apps/A/i/metadata?k={round}-{number}"));
        }
        assert!(waiting.poll().is_none(), "it looks at them and goes on waiting");
        fixture.put(&format!("apps/A/i/metadata?k={round}-last"));
        tokio::time::advance(Duration::from_secs(30)).await;
        let read = waiting.read();
        assert_eq!(read.json(), json!({"cursor": fixture.cursor(), "changes": []}));
        since = cursor(&read);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_ends_by_count_and_by_bytes_and_goes_on() {
    let fixture = Fixture::new();
    let since = fixture.cursor();
    let long = "x".repeat(60_000);
    for number in 0..40 {
        let body = instance_with("A", &format!("i{number}"), &json!({"metadata": {"k": long}}));
        assert_eq!(fixture.post("A", &body).status, 204);
    }
    for (limit, most) in [(7, 7), (1_000, 18)] {
        let mut since = since.clone();
        let mut seen = Vec::new();
        while seen.len() < 40 {
            let read = fixture
                .ask(&changes(&since, &format!("&limit={limit}")), &[])
                .read();
            let told = told(&read);
            assert!((1..=most).contains(&told.len()), "{}", told.len());
            seen.extend(told);
            since = cursor(&read);
        }
        let all: Vec<_> = (0..40).map(|number| format!("ADDED i{number} UP")).collect();
        assert_eq!(seen, all);
        assert_eq!(since, fixture.cursor());
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_lost_is_410_with_the_cursor_of_now() {
    let fixture = with_log(2);
    let start = fixture.cursor();
    let other = fixture.ask(&changes(OTHER, ""), &[]).read();
    assert_eq!(
        (other.status.as_u16(), other.json()),
        (410, json!({"cursor": start}))
    );
    for id in ["i", "j", "k"] {
        fixture.register("A", id);
    }
    let old = fixture.ask(&changes(&start, ""), &[]).read();
    assert_eq!(
        (old.status.as_u16(), old.json()),
        (410, json!({"cursor": fixture.cursor()}))
    );
}

#[tokio::test(start_paused = true)]
async fn bad_questions_are_400_in_both_forms() {
    let presets = [Config::new("boot"), Config::eureka_java("boot")];
    for fixture in presets.map(Fixture::with) {
        let since = fixture.cursor();
        for (query, reason) in [
            ("since=yesterday", "parameter since: a cursor expected"),
            ("since=", "parameter since: a cursor expected"),
            ("limit=0", "parameter limit: a number from 1 to 1000 expected"),
            (
                "wait=61s",
                "parameter wait: a time from 0 to 60s, as in 30s or 500ms, expected",
            ),
            (
                "wait=-1",
                "parameter wait: a time from 0 to 60s, as in 30s or 500ms, expected",
            ),
            (
                "wait=1m",
                "parameter wait: a time from 0 to 60s, as in 30s or 500ms, expected",
            ),
            (
                "filter=app%20=%20x",
                "filter: at byte 4: expected `==`, `!=`, `~` or `in`, found `=`",
            ),
            ("filter=%ff", "query is not UTF-8"),
            (
                "at=1795000000000",
                "parameter at: it belongs to /api/v1/instances",
            ),
        ] {
            for accept in ["application/json", "text/event-stream"] {
                let target = format!("/api/v1/changes?{query}&since={since}");
                let read = fixture.ask(&target, &[("accept", accept)]).read();
                assert_eq!(read.status, 400, "{query}");
                assert_eq!(read.text(), reason);
            }
        }
        let post = fixture.send("POST", "/api/v1/changes", &[], "");
        assert_eq!(post.status, 405);
    }
}

#[tokio::test(start_paused = true)]
async fn while_reads_are_held_the_feed_is_503_and_says_why() {
    for config in [Config::new("boot"), Config::eureka_netflix("boot")] {
        let held = Fixture::held(eureka_registry_core::Config::default(), config);
        for accept in ["application/json", "text/event-stream"] {
            for query in ["", "?wait=0", "?since=0123456789abcdef.1"] {
                let target = format!("/api/v1/changes{query}");
                let read = held.ask(&target, &[("accept", accept)]).read();
                assert_eq!(read.status, 503);
                assert_eq!(read.headers["retry-after"], "5");
                assert_eq!(read.text(), "reads are held: the node is starting");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn head_does_not_wait() {
    let fixture = Fixture::new();
    fixture.register("A", "i");
    let target = changes(&fixture.cursor(), "");
    let full = fixture.get(&target);
    let head = fixture.send("HEAD", &target, &[("accept", "application/json")], "");
    assert_eq!((head.status.as_u16(), head.text()), (200, ""));
    assert_eq!(head.headers["content-length"], full.body.len().to_string());
    let lost = fixture.send("HEAD", &changes(OTHER, ""), &[], "");
    assert_eq!((lost.status.as_u16(), lost.text()), (410, ""));
    let request = Request::head("/api/v1/changes").header("accept", "text/event-stream");
    let stream = fixture.api.respond(request.body(Bytes::new()).unwrap());
    assert_eq!(stream.status(), 200);
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    assert!(stream.body().is_end_stream(), "it would never end");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_stops_answers_who_waits() {
    let fixture = Fixture::new();
    let since = fixture.cursor();
    let waiting = tokio::spawn(fixture.ask(&changes(&since, ""), &[]).wait());
    tokio::task::yield_now().await;
    fixture.api.close_feeds();
    assert_eq!(
        waiting.await.unwrap().json(),
        json!({"cursor": since, "changes": []})
    );
    let next = fixture.ask(&changes(&since, ""), &[]).read();
    assert_eq!(next.json(), json!({"cursor": since, "changes": []}));
}

#[tokio::test(start_paused = true)]
async fn who_goes_away_leaves_nothing() {
    let counted = Counted::default();
    let _recorder = metrics::set_default_local_recorder(&counted);
    let fixture = Fixture::new();
    let since = fixture.cursor();
    let mut waiting: Vec<_> = (0..3).map(|_| fixture.ask(&changes(&since, ""), &[])).collect();
    for waiting in &mut waiting {
        assert!(waiting.poll().is_none());
    }
    let stream = fixture.stream("", None);
    assert_eq!(counted.gauge(WATCHERS), 4.0);
    drop(waiting.pop());
    drop(stream);
    assert_eq!(counted.gauge(WATCHERS), 2.0);
    fixture.register("A", "i");
    for waiting in waiting {
        assert_eq!(told(&waiting.read()), ["ADDED i UP"]);
    }
    assert_eq!(counted.gauge(WATCHERS), 0.0);
    assert_eq!(counted.counter("eureka_watch_changes_total interface=http"), 2);
    assert_eq!(
        counted.counter("eureka_http_requests_total operation=changes status=200"),
        3,
        "two polls and the stream: who went away was not answered"
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_compressed_and_says_who_answers_like_any_other() {
    let fixture = Fixture::new();
    let since = fixture.cursor();
    let headers = [("accept-encoding", "gzip"), ("x-eureka-node", "another")];
    let mut waiting = fixture.ask(&changes(&since, ""), &headers);
    assert!(waiting.poll().is_none());
    fixture.register("A", "i");
    let read = waiting.read();
    assert_eq!(read.headers["content-encoding"], "gzip");
    assert_eq!(read.headers["x-eureka-node"], "boot");
}

#[tokio::test(start_paused = true)]
async fn a_change_says_what_when_by_whom_and_why() {
    let mut core = eureka_registry_core::Config::default();
    core.preservation.enabled = false;
    let fixture = Fixture::over(core, Config::new("boot"));
    let since = fixture.cursor();
    fixture.post("A", &instance_with("A", "i", &json!({"metadata": {"zone": "z"}})));
    fixture.advance(Duration::from_millis(1_500));
    let key = InstanceKey::new("A", "i");
    let peer = Origin::Peer(PeerId("http://user:secret@peer:8761/eureka/".into()));
    let registry = &fixture.registry;
    registry.set_override(peer, &key, Status::Down, None);
    registry.clear_override(Origin::Operator, &key, Some(Status::Up), None);
    fixture.put("apps/A/i/metadata?zone=y");
    let copy = registry.find(&key).unwrap().instance;
    registry.register(Origin::Own, copy, Duration::ZERO);
    fixture.delete("apps/A/i");
    fixture.register("A", "i");
    fixture.advance(Duration::from_secs(200));
    let page = fixture.get(&changes(&since, "")).json();
    let all = page["changes"].as_array().unwrap();
    let told = |change: &Value| {
        let text = |name: &str| change[name].as_str().unwrap_or("-").to_owned();
        format!(
            "{} by {} {} because {}",
            text("action"),
            text("by"),
            text("peer"),
            text("why")
        )
    };
    assert_eq!(
        all.iter().map(told).collect::<Vec<_>>(),
        [
            "ADDED by client - because registered",
            "MODIFIED by peer http://peer:8761/eureka/ because overridden",
            "MODIFIED by operator - because override-cleared",
            "ADDED by client - because metadata-changed",
            "ADDED by own - because registered",
            "DELETED by client - because cancelled",
            "ADDED by client - because registered",
            "DELETED by eviction - because expired",
        ]
    );
    let version = fixture.registry.version();
    assert_eq!(all[7]["version"], version);
    assert_eq!(
        (&all[0]["at"], &all[1]["at"]),
        (&json!(BEGIN), &json!(BEGIN + 1_500))
    );
    assert!(all[7]["at"].as_u64().unwrap() > BEGIN + 90_000);
    assert_eq!(
        all[0],
        json!({
            "version": version - 7, "at": BEGIN, "action": "ADDED", "by": "client", "why": "registered",
            "app": "A", "id": "i", "host": "host-i", "ip": "10.0.0.1", "status": "UP",
            "overriddenStatus": "UNKNOWN", "port": {"number": 8080, "enabled": true},
            "securePort": {"number": 443, "enabled": false}, "vip": "a", "secureVip": "s-a", "zone": "z",
            "group": null, "dataCenter": "MyOwn", "metadata": {"zone": "z"}, "renewalIntervalSecs": 30,
            "durationSecs": 90, "lastDirty": crate::fixture::DIRTY,
        })
    );
}
