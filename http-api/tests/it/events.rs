//! The change feed as a stream of events.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use eureka_http_api::Config;
use http_body::Body as _;
use serde_json::{Value, json};

use crate::fixture::{BEGIN, Fixture, instance_with};
use crate::follow::{Counted, Event, Stream, Woken};

const UP_IN_A: &str = "filter=app%20==%20A%20%26%26%20status%20==%20UP";

/// A log of so many changes.
fn with_log(changes: usize, config: Config) -> Fixture {
    let mut core = eureka_registry_core::Config::default();
    core.preservation.enabled = false;
    core.change_log_limit = changes;
    Fixture::over(core, config)
}

fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| &*event.name).collect()
}

/// `action id` of changes.
fn told(events: &[Event]) -> Vec<String> {
    let text = |event: &Event, name: &str| event.data[name].as_str().unwrap().to_owned();
    let line = |event| format!("{} {}", text(event, "action"), text(event, "id"));
    events.iter().map(line).collect()
}

#[tokio::test(start_paused = true)]
async fn a_stream_begins_with_the_registry_and_goes_on_with_changes() {
    let fixture = Fixture::new();
    fixture.register("A", "i");
    let start = fixture.cursor();
    let mut stream = fixture.stream("", None);
    assert_eq!(stream.answer.headers["cache-control"], "no-store, no-transform");
    assert_eq!(stream.answer.headers["vary"], "Accept");
    assert!(!stream.answer.headers.contains_key("content-length"));
    let common = r#""host":"host-i","ip":"10.0.0.1","status":"UP","overriddenStatus":"UNKNOWN","port":{"number":8080,"enabled":true},"securePort":{"number":443,"enabled":false},"vip":"a","secureVip":"s-a","zone":null,"group":null,"dataCenter":"MyOwn","metadata":{},"renewalIntervalSecs":30,"durationSecs":90,"lastDirty":1700000000000"#;
    let times =
        format!(r#""registered":{BEGIN},"renewed":{BEGIN},"serviceUp":{BEGIN},"lastUpdated":{BEGIN}"#);
    assert_eq!(
        stream.text(),
        format!(
            "retry: 1000\n\n\
             event: reset\ndata: {{\"reason\":\"start\"}}\n\n\
             event: instance\ndata: {{\"app\":\"A\",\"id\":\"i\",{common},{times}}}\n\n\
             id: {start}\nevent: synced\ndata: {{\"instances\":1}}\n\n"
        )
    );
    fixture.delete("apps/A/i");
    let (end, version) = (fixture.cursor(), fixture.registry.version());
    assert_eq!(
        stream.text(),
        format!(
            "id: {end}\nevent: change\ndata: {{\"version\":{version},\"at\":{BEGIN},\"action\":\"DELETED\",\
             \"by\":\"client\",\"why\":\"cancelled\",\"app\":\"A\",\"id\":\"i\",{common}}}\n\n"
        )
    );
}

#[tokio::test(start_paused = true)]
async fn a_stream_goes_on_where_its_last_event_says() {
    let fixture = Fixture::new();
    let start = fixture.cursor();
    for id in ["i", "j"] {
        fixture.register("A", id);
    }
    let mut first = fixture.stream(&format!("since={start}"), None);
    let events = first.events();
    assert_eq!(told(&events), ["ADDED i", "ADDED j"]);
    fixture.register("A", "k");
    // The address still says `since`; the header is newer.
    let mut again = fixture.stream(&format!("since={start}"), Some(&events[0].id));
    assert_eq!(told(&again.events()), ["ADDED j", "ADDED k"]);
    assert_eq!(again.last, fixture.cursor());
    let mut empty = fixture.stream(&format!("since={start}"), Some(""));
    assert_eq!(told(&empty.events()), ["ADDED i", "ADDED j", "ADDED k"]);
}

#[tokio::test(start_paused = true)]
async fn who_has_lost_its_place_is_sent_the_registry() {
    let counted = Counted::default();
    let _recorder = metrics::set_default_local_recorder(&counted);
    let fixture = with_log(3, Config::new("boot"));
    let start = fixture.cursor();
    let mut slow = fixture.stream(&format!("since={start}"), None);
    assert_eq!(slow.events(), []);
    for id in ["i", "j", "k", "l"] {
        fixture.register("A", id);
    }
    let reasons = [
        ("", None, "start"),
        ("", Some("0123456789abcdef.1"), "other-server"),
        ("", Some("of some other page"), "other-server"),
        ("since=0123456789abcdef.1", None, "other-server"),
        ("", Some(&*start), "too-old"),
    ];
    for (query, last, reason) in reasons {
        let mut stream = fixture.stream(query, last);
        let events = stream.events();
        assert_eq!(
            names(&events),
            ["reset", "instance", "instance", "instance", "instance", "synced"]
        );
        assert_eq!(events[0].data, json!({"reason": reason}));
        assert_eq!(events[5].data, json!({"instances": 4}));
        assert_eq!(stream.last, fixture.cursor());
    }
    // A reader that was too slow, in mid-stream.
    let events = slow.events();
    assert_eq!(names(&events)[..2], ["reset", "instance"]);
    assert_eq!(events[0].data, json!({"reason": "too-old"}));
    fixture.register("A", "m");
    assert_eq!(told(&slow.events()), ["ADDED m"]);
    for (reason, count) in [("start", 1), ("other-server", 3), ("too-old", 2)] {
        let name = format!("eureka_watch_snapshots_total interface=http reason={reason}");
        assert_eq!(counted.counter(&name), count, "{reason}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_filter_holds_for_the_registry_and_for_changes() {
    let fixture = Fixture::new();
    for (app, id) in [("A", "i"), ("A", "down"), ("B", "j")] {
        fixture.register(app, id);
    }
    fixture.put("apps/A/down/status?value=DOWN");
    let mut stream = fixture.stream(UP_IN_A, None);
    let events = stream.events();
    assert_eq!(names(&events), ["reset", "instance", "synced"]);
    assert_eq!(events[1].data["id"], "i");
    assert_eq!(events[2].data, json!({"instances": 1}));
    fixture.put("apps/B/j/status?value=DOWN");
    assert_eq!(stream.events(), []);
    fixture.delete("apps/A/down/status?value=UP");
    fixture.put("apps/A/i/status?value=DOWN");
    let events = stream.events();
    assert_eq!(told(&events), ["ADDED down", "DELETED i"]);
    assert!(events.iter().all(|event| event.data["why"] == "filtered"));
}

#[tokio::test(start_paused = true)]
async fn a_sign_of_life_moves_the_place_of_who_is_told_nothing() {
    let fixture = with_log(10, Config::new("boot"));
    let mut stream = fixture.stream("filter=app%20==%20NONE", None);
    let synced = stream.events().pop().unwrap();
    tokio::time::advance(Duration::from_millis(14_999)).await;
    assert_eq!(stream.text(), "");
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(stream.text(), ":\n\n", "nothing has changed");
    fixture.register("A", "i");
    assert_eq!(stream.text(), "");
    tokio::time::advance(Duration::from_secs(15)).await;
    let text = stream.text();
    assert_eq!(text, format!(":\nid: {}\n\n", fixture.cursor()));
    assert_eq!(stream.parse(&text), []);
    assert_ne!(stream.last, synced.id);
    tokio::time::advance(Duration::from_secs(15)).await;
    assert_eq!(stream.text(), ":\n\n", "it is told once");
    for number in 0..100 {
        fixture.put(&format!("apps/A/i/metadata?k={number}"));
        assert_eq!(stream.text(), "");
    }
    tokio::time::advance(Duration::from_secs(15)).await;
    stream.events();
    // The stream breaks. It has not lost its place, although everything it was told is long gone.
    let mut again = fixture.stream("filter=app%20==%20NONE", Some(&stream.last));
    assert_eq!(again.events(), []);
}

#[tokio::test(start_paused = true)]
async fn a_hidden_flood_is_looked_at_in_turns() {
    let fixture = Fixture::new();
    fixture.register("A", "i");
    let mut stream = fixture.stream(
        &format!("since={}&filter=app%20==%20NONE", fixture.cursor()),
        None,
    );
    stream.events();
    for number in 0..10_000 {
        fixture.put(&format!("apps/A/i/metadata?k={number}"));
    }
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut turns = 0;
    loop {
        let frame = Pin::new(&mut stream.body).poll_frame(&mut Context::from_waker(&waker));
        assert!(frame.is_pending());
        if !woken.take() {
            break;
        }
        turns += 1;
    }
    assert_eq!(turns, 2, "4096 at a time");
}

#[tokio::test(start_paused = true)]
async fn streams_end_when_the_node_stops() {
    let fixture = Fixture::new();
    for number in 0..1_000 {
        fixture.register("A", &format!("i{number}"));
    }
    let mut following = fixture.stream(&format!("since={}", fixture.cursor()), None);
    assert_eq!(following.events(), []);
    let mut reading = fixture.stream("", None);
    reading.frame().unwrap();
    reading.frame().unwrap();
    let waiting = tokio::spawn(async move {
        let frame = std::future::poll_fn(|context| Pin::new(&mut following.body).poll_frame(context)).await;
        assert!(frame.is_none());
    });
    tokio::task::yield_now().await;
    fixture.api.close_feeds();
    waiting.await.unwrap();
    assert!(reading.is_over(), "in the middle of the registry, too");
    let mut late = fixture.stream("", None);
    assert_eq!(late.frame().unwrap(), "retry: 1000\n\n");
    assert!(late.is_over());
}

#[tokio::test(start_paused = true)]
async fn nothing_a_registrant_writes_breaks_a_line() {
    let fixture = Fixture::new();
    let hostile = "i\r\n\nevent: change\ndata: {}\nid: 7\u{2028}\u{0}";
    let fields = json!({"metadata": {"k\nid: 8": "v\rdata: x"}, "hostName": "a\nretry: 1"});
    assert_eq!(
        fixture.post("A", &instance_with("A", hostile, &fields)).status,
        204
    );
    let mut stream = fixture.stream("", None);
    let events = stream.events();
    assert_eq!(names(&events), ["reset", "instance", "synced"]);
    assert_eq!(events[1].data["id"], hostile);
    fixture.registry.cancel(
        eureka_registry_core::Origin::Client,
        &eureka_registry_core::InstanceKey::new("A", hostile),
    );
    let events = stream.events();
    assert_eq!(names(&events), ["change"]);
    assert_eq!(events[0].data["metadata"], json!({"k\nid: 8": "v\rdata: x"}));
    assert_eq!(events[0].id, fixture.cursor());
}

#[tokio::test(start_paused = true)]
async fn a_change_is_encoded_once_for_all_who_follow() {
    for (kept, once) in [(512 << 20, true), (0, false)] {
        let mut config = Config::new("boot");
        config.limits.encoded = kept;
        config.feed_kept = 1;
        let fixture = Fixture::with(config);
        let since = format!("since={}", fixture.cursor());
        let mut streams: Vec<_> = (0..3).map(|_| fixture.stream(&since, None)).collect();
        for stream in &mut streams {
            stream.events();
        }
        fixture.register("A", "i");
        let frames: Vec<_> = streams.iter_mut().map(|stream| stream.frame().unwrap()).collect();
        assert!(frames.iter().all(|frame| *frame == frames[0]));
        let shared = frames.iter().all(|frame| frame.as_ptr() == frames[0].as_ptr());
        assert_eq!(shared, once);
        let kept = if once { frames[0].len() } else { 0 };
        assert_eq!(fixture.api.encoded_bytes(), kept);
        // One change is kept: the next one takes its place.
        fixture.register("A", "long-id");
        let frames: Vec<_> = streams.iter_mut().map(|stream| stream.frame().unwrap()).collect();
        let kept = if once { frames[0].len() } else { 0 };
        assert_eq!(fixture.api.encoded_bytes(), kept);
    }
}

#[tokio::test(start_paused = true)]
async fn short_changes_go_together_and_long_ones_alone() {
    let fixture = Fixture::new();
    let mut stream = fixture.stream(&format!("since={}", fixture.cursor()), None);
    stream.events();
    for number in 0..150 {
        let len = if number % 50 == 20 { 60_000 } else { 10 };
        let metadata = json!({"metadata": {"k": "x".repeat(len)}});
        fixture.post("A", &instance_with("A", &format!("i{number}"), &metadata));
    }
    let mut seen = Vec::new();
    let mut frames = 0;
    while let Some(frame) = stream.frame() {
        assert!(frame.len() <= 64 << 10, "{}", frame.len());
        seen.extend(told(&stream.parse(std::str::from_utf8(&frame).unwrap())));
        frames += 1;
    }
    let all: Vec<_> = (0..150).map(|number| format!("ADDED i{number}")).collect();
    assert_eq!(seen, all);
    assert!((4..=9).contains(&frames), "{frames}");
}

#[tokio::test(start_paused = true)]
async fn the_registry_is_encoded_as_it_is_pulled_and_once_for_all() {
    let counted = Counted::default();
    let _recorder = metrics::set_default_local_recorder(&counted);
    let encoded = || counted.counter("eureka_http_pages_encoded_total");
    let fixture = Fixture::new();
    for number in 0..3_000 {
        fixture.register("A", &format!("i{number:04}"));
    }
    let mut first = fixture.stream("", None);
    first.frame().unwrap();
    assert_eq!(encoded(), 0, "the first bytes come before anything is encoded");
    first.frame().unwrap();
    assert_eq!(encoded(), 1);
    let mut stalled = fixture.stream("", None);
    stalled.frame().unwrap();
    assert_eq!(first.events().pop().unwrap().data, json!({"instances": 3_000}));
    let all = encoded();
    assert!((10..=24).contains(&all), "{all} pages");
    // The other reader shares what it still holds, and so does one who comes after a change, but for one page.
    fixture.put("apps/A/i1500/metadata?k=v");
    let mut third = fixture.stream("", None);
    assert_eq!(third.events().pop().unwrap().data, json!({"instances": 3_000}));
    assert_eq!(encoded(), all + 1);
    // What was changed is told to who read the registry as it was before.
    let events = stalled.events();
    assert_eq!(
        names(&events)[2_998..],
        ["instance", "instance", "synced", "change"]
    );
    assert_eq!(encoded(), all + 1);
    drop((first, third, stalled));
    let change = fixture.api.encoded_bytes();
    assert!(change < 1_000, "only the change is kept: {change}");
}

#[tokio::test(start_paused = true)]
async fn events_are_sent_to_who_names_them() {
    let fixture = Fixture::new();
    for (accept, named) in [
        ("text/event-stream", true),
        ("Text/Event-Stream;q=0.5, application/json", true),
        ("application/json, text/event-stream", true),
        ("text/event-stream;q=0", false),
        ("text/*", false),
        ("*/*", false),
    ] {
        let headers = [("accept", accept), ("accept-encoding", "gzip")];
        let answer = fixture.ask("/api/v1/changes", &headers).answer();
        let content_type = if named {
            "text/event-stream"
        } else {
            "application/json"
        };
        assert_eq!(answer.headers()["content-type"], content_type, "{accept}");
        assert_eq!(
            answer.headers().contains_key("content-encoding"),
            !named,
            "{accept}"
        );
    }
}

/// What a page that follows knows.
struct Page {
    stream: Stream,
    query: &'static str,
    instances: BTreeMap<(String, String), Value>,
    synced: bool,
    version: u64,
}

impl Page {
    fn new(fixture: &Fixture, query: &'static str) -> Self {
        Self {
            stream: fixture.stream(query, None),
            query,
            instances: BTreeMap::new(),
            synced: false,
            version: 0,
        }
    }

    /// The connection breaks, perhaps in the middle of something; the browser makes another.
    fn reconnect(&mut self, fixture: &Fixture) {
        let last = std::mem::take(&mut self.stream.last);
        self.stream = fixture.stream(self.query, Some(&last));
        self.stream.last = last;
    }

    /// Takes one frame; whether there was one.
    fn take(&mut self) -> bool {
        let Some(frame) = self.stream.frame() else {
            return false;
        };
        for event in self.stream.parse(std::str::from_utf8(&frame).unwrap()) {
            self.apply(event);
        }
        true
    }

    fn apply(&mut self, event: Event) {
        let key = |data: &Value| {
            let text = |name: &str| data[name].as_str().unwrap().to_owned();
            (text("app"), text("id"))
        };
        match &*event.name {
            "reset" => {
                self.instances.clear();
                self.synced = false;
            }
            "instance" => {
                assert!(!self.synced);
                let before = self.instances.insert(key(&event.data), plain(event.data));
                assert_eq!(before, None);
            }
            "synced" => {
                assert_eq!(event.data, json!({"instances": self.instances.len()}));
                self.synced = true;
                self.version = event.id.split_once('.').unwrap().1.parse().unwrap();
            }
            "change" => {
                assert!(self.synced);
                let version = event.data["version"].as_u64().unwrap();
                assert!(version > self.version, "{version} after {}", self.version);
                assert_eq!(event.id.split_once('.').unwrap().1, version.to_string());
                self.version = version;
                let key = key(&event.data);
                if event.data["action"] == "DELETED" {
                    assert!(self.instances.remove(&key).is_some(), "it was told of what goes");
                } else {
                    self.instances.insert(key, plain(event.data));
                }
            }
            name => panic!("{name}"),
        }
    }
}

/// The instance itself, without what was done to it and without its lease.
fn plain(mut data: Value) -> Value {
    let fields = data.as_object_mut().unwrap();
    for name in [
        "version",
        "at",
        "action",
        "by",
        "peer",
        "why",
        "registered",
        "renewed",
        "serviceUp",
        "lastUpdated",
    ] {
        fields.remove(name);
    }
    data
}

/// The same numbers for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Changes something, perhaps.
fn change(fixture: &Fixture, random: &mut Random) {
    let app = ["A", "B"][random.below(2) as usize];
    let id = format!("i{}", random.below(150));
    let path = format!("apps/{app}/{id}");
    let status = ["UP", "DOWN", "OUT_OF_SERVICE"][random.below(3) as usize];
    match random.below(10) {
        0..=3 => drop(fixture.post(app, &instance_with(app, &id, &json!({"status": status})))),
        4 | 5 => drop(fixture.put(&format!("{path}/status?value={status}"))),
        6 => drop(fixture.delete(&format!("{path}/status"))),
        7 => drop(fixture.put(&format!("{path}/metadata?k={}", random.below(9)))),
        8 => drop(fixture.delete(&path)),
        _ => fixture.advance(Duration::from_millis(random.below(9_000))),
    }
}

/// Whatever happens to the registry and to the connection: who follows knows what is there.
#[tokio::test(start_paused = true)]
async fn who_follows_knows_the_registry() {
    let mut resets = 0;
    for seed in 0..10 {
        let mut random = Random(seed);
        let mut config = Config::new("boot");
        config.feed_kept = 1 + random.below(40) as usize;
        let fixture = with_log(1 + random.below(80) as usize, config);
        for _ in 0..random.below(300) {
            change(&fixture, &mut random);
        }
        let mut pages = ["", UP_IN_A, "filter=metadata.k%20!=%203"].map(|query| Page::new(&fixture, query));
        for _ in 0..50 {
            for _ in 0..random.below(30) {
                change(&fixture, &mut random);
            }
            for page in &mut pages {
                match random.below(8) {
                    0 => page.reconnect(&fixture),
                    1 => {}
                    2 => drop(page.take()),
                    3 => tokio::time::advance(Duration::from_secs(15)).await,
                    _ => {
                        while page.take() {}
                        assert!(page.synced);
                        assert_eq!(
                            page.instances,
                            listed(&fixture, page.query),
                            "seed {seed}, {}",
                            page.query
                        );
                    }
                }
                resets += usize::from(!page.synced);
            }
        }
    }
    assert!(
        resets > 10,
        "the log is short: many lose their place in the middle ({resets})"
    );
}

/// What the registry has for a filter.
fn listed(fixture: &Fixture, query: &str) -> BTreeMap<(String, String), Value> {
    let page = fixture
        .get(&format!("/api/v1/instances?limit=1000&{query}"))
        .json();
    assert!(page.get("next").is_none());
    let instances = page["instances"].as_array().unwrap().iter();
    let text = |data: &Value, name: &str| data[name].as_str().unwrap().to_owned();
    instances
        .map(|data| ((text(data, "app"), text(data, "id")), plain(data.clone())))
        .collect()
}
