//! Lists: pages that join, one gzip member out of segments, ETags, how long they may lag, and how much is kept.

use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use eureka_http_api::{Config, Gzip};
use serde_json::{Value, json};

use crate::fixture::{Fixture, Read, instance_with};
use crate::follow::Counted;

const CODECS: [(&str, &str); 4] = [
    ("application/json", "full"),
    ("application/json", "compact"),
    ("application/xml", "full"),
    ("application/xml", "compact"),
];

/// More than two pages of instances in applications that begin and end inside pages.
fn many(fixture: &Fixture) {
    for number in 0..700 {
        fixture.register(&format!("APP{}", number / 45), &format!("i{number:03}"));
    }
}

fn fetch(fixture: &Fixture, codec: (&str, &str), coding: &str) -> Read {
    let headers = [
        ("accept", codec.0),
        ("x-eureka-accept", codec.1),
        ("accept-encoding", coding),
    ];
    fixture.send("GET", "apps", &headers, "")
}

fn unpacked(read: &Read) -> Vec<u8> {
    assert_eq!(read.headers["content-encoding"], "gzip");
    let mut text = Vec::new();
    // A plain decoder, not one for several members: it must be one.
    let mut decoder = flate2::read::GzDecoder::new(&read.body[..]);
    decoder.read_to_end(&mut text).unwrap();
    let rest = decoder.into_inner();
    assert!(rest.is_empty(), "{} bytes behind the member", rest.len());
    text
}

#[test]
fn pages_join_to_what_one_writer_would_write() {
    let fixture = Fixture::new();
    many(&fixture);
    let snapshot = fixture.registry.snapshot();
    assert!(snapshot.pages().count() > 2);
    let all: Vec<_> = snapshot.instances().cloned().collect();
    for (name, codec) in [
        (CODECS[0], eureka_registry_core::wire::Codec::Json),
        (CODECS[1], eureka_registry_core::wire::Codec::CompactJson),
        (CODECS[2], eureka_registry_core::wire::Codec::Xml),
        (CODECS[3], eureka_registry_core::wire::Codec::CompactXml),
    ] {
        let whole = written(codec, &snapshot.hash(), &all);
        let plain = fetch(&fixture, name, "identity");
        assert!(!plain.headers.contains_key("content-encoding"));
        assert_eq!(plain.text(), whole, "{name:?}");
        assert_eq!(
            unpacked(&fetch(&fixture, name, "gzip")),
            whole.as_bytes(),
            "{name:?}"
        );
    }
}

#[test]
fn the_length_is_known_once_all_pages_are() {
    let fixture = Fixture::new();
    many(&fixture);
    for coding in ["identity", "gzip"] {
        let first = fetch(&fixture, CODECS[0], coding);
        let second = fetch(&fixture, CODECS[0], coding);
        assert!(!first.len_known, "{coding}");
        assert!(second.len_known, "{coding}");
        assert_eq!(first.body, second.body, "{coding}");
    }
    // After a change in one page the other pages are still there, in both forms, and the one is encoded at once.
    fixture.put("apps/APP3/i150/status?value=DOWN");
    for coding in ["identity", "gzip"] {
        let changed = fetch(&fixture, CODECS[0], coding);
        assert!(changed.len_known);
        let text = if coding == "gzip" {
            unpacked(&changed)
        } else {
            changed.body
        };
        let list: Value = serde_json::from_slice(&text).unwrap();
        let instances = list["applications"]["application"].as_array().unwrap().iter();
        let count: usize = instances
            .map(|app| app["instance"].as_array().unwrap().len())
            .sum();
        assert_eq!(count, 700);
        assert_eq!(list["applications"]["apps__hashcode"], "DOWN_1_UP_699_");
    }
}

#[test]
fn a_list_asked_for_again_comes_in_one_piece() {
    let fixture = Fixture::new();
    many(&fixture);
    for codec in CODECS {
        for coding in ["identity", "gzip"] {
            let first = fetch(&fixture, codec, coding);
            assert!(first.pieces > 3, "{codec:?} {coding}: {}", first.pieces);
            let pages = fixture.api.encoded_bytes();
            // What is short is put together for the first who finds all pages there, what is longer for the one after.
            fetch(&fixture, codec, coding);
            for _ in 0..2 {
                let again = fetch(&fixture, codec, coding);
                assert_eq!(again.pieces, 1, "{codec:?} {coding}");
                assert!(again.len_known);
                assert_eq!(again.body, first.body, "{codec:?} {coding}");
            }
            assert_eq!(fixture.api.encoded_bytes(), pages + first.body.len());
        }
    }
}

#[test]
fn readers_of_the_delta_alone_keep_no_old_pages() {
    let fixture = Fixture::new();
    many(&fixture);
    fetch(&fixture, CODECS[0], "gzip");
    let old: Vec<_> = fixture.registry.snapshot().pages().map(Arc::downgrade).collect();
    for round in 0..2 {
        for number in 0..700 {
            let status = if round == 0 { "DOWN" } else { "UP" };
            fixture.put(&format!(
                "apps/APP{}/i{number:03}/status?value={status}",
                number / 45
            ));
            fixture.get("apps/delta");
        }
    }
    let held = old.iter().filter(|page| page.upgrade().is_some()).count();
    assert_eq!(held, 0, "of {} pages of which every instance changed", old.len());
    assert_eq!(
        unpacked(&fetch(&fixture, CODECS[0], "gzip")),
        fetch(&fixture, CODECS[0], "identity").body
    );
}

#[test]
fn a_whole_list_counts_until_its_last_reader_is_done() {
    let fixture = Fixture::new();
    many(&fixture);
    for _ in 0..2 {
        fetch(&fixture, CODECS[0], "identity");
    }
    let len = fetch(&fixture, CODECS[0], "identity").body.len();
    let mut request = http::Request::get("/eureka/apps");
    for (name, value) in [("accept", "application/json"), ("accept-encoding", "identity")] {
        request = request.header(name, value);
    }
    let reader = fixture.api.respond(request.body(bytes::Bytes::new()).unwrap());
    fixture.put("apps/APP3/i150/status?value=DOWN");
    fetch(&fixture, CODECS[0], "identity");
    let before = fixture.api.encoded_bytes();
    drop(reader);
    assert_eq!(before - fixture.api.encoded_bytes(), len);
}

#[test]
fn whole_lists_take_no_room_that_pages_need() {
    let fixture = Fixture::new();
    many(&fixture);
    let len = fetch(&fixture, CODECS[0], "identity").body.len();
    let mut config = Config::new("boot");
    config.limits.encoded = 3 * len;
    let fixture = Fixture::with(config);
    many(&fixture);
    for _ in 0..4 {
        let read = fetch(&fixture, CODECS[0], "identity");
        assert!(read.pieces > 3, "{}", read.pieces);
    }
    assert!(fixture.api.encoded_bytes() < 2 * len);
}

#[test]
fn plain_pages_leave_room_for_compressed_ones() {
    let fixture = Fixture::new();
    many(&fixture);
    let [plain, packed] = ["identity", "gzip"].map(|coding| fetch(&fixture, CODECS[0], coding).body.len());
    let mut config = Config::new("boot");
    // The plain ones would not leave room for any.
    config.limits.encoded = plain + packed / 2;
    let fixture = Fixture::with(config);
    many(&fixture);
    fetch(&fixture, CODECS[0], "identity");
    assert!(
        !fetch(&fixture, CODECS[0], "identity").len_known,
        "some pages are not kept"
    );
    fetch(&fixture, CODECS[0], "gzip");
    assert!(fetch(&fixture, CODECS[0], "gzip").len_known);
}

#[test]
fn forms_that_nobody_asks_for_are_let_go() {
    let fixture = Fixture::new();
    let lasting = json!({"leaseInfo": {"renewalIntervalInSecs": 600, "durationInSecs": 1800}});
    for number in 0..700 {
        let (app, id) = (format!("APP{}", number / 45), format!("i{number:03}"));
        fixture.post(&app, &instance_with(&app, &id, &lasting));
    }
    let xml = fetch(&fixture, CODECS[2], "identity").body.len();
    fetch(&fixture, CODECS[0], "gzip");
    let left_after = |minutes: u64, status: &str| {
        fixture.advance(Duration::from_secs(60 * minutes));
        fixture.put(&format!("apps/APP3/i150/status?value={status}"));
        assert!(
            fetch(&fixture, CODECS[0], "gzip").len_known,
            "the form in use is still there"
        );
        fixture.api.encoded_bytes()
    };
    let after_nine = left_after(9, "DOWN");
    assert!(
        after_nine > xml / 3,
        "{after_nine}: pages without a change are still there, of {xml} bytes"
    );
    let after_eleven = left_after(2, "UP");
    assert!(after_eleven < xml / 4, "{after_eleven}");
    assert!(!fetch(&fixture, CODECS[2], "identity").len_known);
}

#[test]
fn a_page_is_encoded_again_when_another_application_ends_before_it() {
    let counted = Counted::default();
    let _recorder = metrics::set_default_local_recorder(&counted);
    let encoded = || counted.counter("eureka_http_pages_encoded_total");
    let fixture = Fixture::new();
    many(&fixture);
    let check = || {
        let snapshot = fixture.registry.snapshot();
        let all: Vec<_> = snapshot.instances().cloned().collect();
        let written = written(eureka_registry_core::wire::Codec::Json, &snapshot.hash(), &all);
        assert_eq!(fetch(&fixture, CODECS[0], "identity").text(), written);
    };
    check();
    let pages: Vec<_> = fixture.registry.snapshot().pages().cloned().collect();
    assert_eq!(encoded(), pages.len() as u64);
    // The application that ends the first page begins the second one, and then goes from the first.
    let app = &pages[0].instances().next_back().unwrap().instance.app;
    assert_eq!(pages[1].instances().next().unwrap().instance.app, *app);
    for view in pages[0].instances().filter(|view| view.instance.app == *app) {
        fixture.delete(&format!("apps/{app}/{}", view.instance.id()));
    }
    check();
    assert_eq!(encoded(), pages.len() as u64 + 2);
    // A change in the last page concerns no other; nor does one in the first.
    for page in [pages.last(), pages.first()] {
        let first = &page.unwrap().instances().next().unwrap().instance;
        fixture.put(&format!("apps/{}/{}/status?value=DOWN", first.app, first.id()));
        let before = encoded();
        check();
        assert_eq!(encoded(), before + 1);
    }
}

#[test]
fn a_change_encodes_one_page() {
    let fixture = Fixture::new();
    many(&fixture);
    fetch(&fixture, CODECS[0], "identity");
    let pages = |fixture: &Fixture| {
        let numbers = fixture
            .registry
            .snapshot()
            .pages()
            .map(|page| page.number())
            .collect();
        let numbers: Vec<u64> = numbers;
        numbers
    };
    let before = pages(&fixture);
    fixture.put("apps/APP3/i150/status?value=OUT_OF_SERVICE");
    let after = pages(&fixture);
    let changed = after.iter().filter(|number| !before.contains(number)).count();
    assert_eq!(changed, 1);
    // What is kept grows by nothing but the changed page: the old one went with its list.
    let kept = fixture.api.encoded_bytes();
    fetch(&fixture, CODECS[0], "identity");
    let grown = fixture.api.encoded_bytes();
    assert!(grown.abs_diff(kept) < kept / 2, "{kept} then {grown}");
}

#[test]
fn what_is_kept_is_bounded() {
    let mut config = Config::new("boot");
    config.limits.encoded = 40_000;
    let fixture = Fixture::with(config);
    many(&fixture);
    for round in 0..5 {
        for codec in CODECS {
            for coding in ["identity", "gzip"] {
                let read = fetch(&fixture, codec, coding);
                assert_eq!(read.status, 200);
                if coding == "gzip" {
                    unpacked(&read);
                }
                assert!(fixture.api.encoded_bytes() <= 40_000);
            }
        }
        fixture.get("apps/delta");
        fixture.get(&format!("apps/APP{round}"));
        assert!(fixture.api.encoded_bytes() <= 40_000);
        fixture.register("APP0", &format!("new{round}"));
    }
}

#[test]
fn what_is_kept_does_not_grow_with_versions() {
    let fixture = Fixture::new();
    many(&fixture);
    let mut kept = Vec::new();
    for round in 0..20 {
        let status = if round % 2 == 0 { "DOWN" } else { "UP" };
        fixture.put(&format!("apps/APP3/i150/status?value={status}"));
        for codec in CODECS {
            fetch(&fixture, codec, "gzip");
        }
        fixture.get("apps/APP3");
        fixture.get("vips/app3");
        fixture.get("apps/delta");
        kept.push(fixture.api.encoded_bytes());
    }
    assert!(kept[19] <= kept[3] + kept[3] / 10, "{kept:?}");
}

#[test]
fn what_is_kept_is_never_old() {
    let fixture = Fixture::new();
    fixture.register("A", "i");
    fixture.register("B", "i");
    for status in ["DOWN", "OUT_OF_SERVICE", "UP"] {
        fixture.put(&format!("apps/A/i/status?value={status}"));
        for path in ["apps", "apps/delta", "apps/A", "vips/a", "svips/s-a"] {
            for _ in 0..2 {
                let text = fixture.get(path).text().to_owned();
                assert!(
                    text.contains(&format!("\"status\":\"{status}\"")),
                    "{path}: {text}"
                );
            }
        }
        // Changes elsewhere leave it as it was.
        fixture.put(&format!("apps/B/i/status?value={status}"));
        assert!(
            fixture
                .get("apps/A")
                .text()
                .contains(&format!("\"status\":\"{status}\""))
        );
    }
}

#[test]
fn unknown_addresses_are_not_kept() {
    let fixture = Fixture::new();
    fixture.register("A", "i");
    fixture.get("vips/a");
    let kept = fixture.api.encoded_bytes();
    for number in 0..100 {
        let read = fixture.get(&format!("vips/unknown{number}"));
        assert_eq!(read.json()["applications"]["application"], json!([]));
        assert_eq!(read.json()["applications"]["versions__delta"], "-1");
    }
    assert_eq!(fixture.api.encoded_bytes(), kept);
}

#[test]
fn an_empty_registry_is_an_empty_list() {
    let fixture = Fixture::new();
    for coding in ["identity", "gzip"] {
        for codec in CODECS {
            let read = fetch(&fixture, codec, coding);
            assert_eq!(read.status, 200);
            let text = if coding == "gzip" {
                unpacked(&read)
            } else {
                read.body
            };
            if codec.0 == "application/json" {
                let list: Value = serde_json::from_slice(&text).unwrap();
                assert_eq!(list["applications"]["application"], json!([]));
                assert_eq!(list["applications"]["versions__delta"], "1");
                assert_eq!(list["applications"]["apps__hashcode"], "");
            } else {
                assert!(text.starts_with(b"<applications>"));
            }
        }
    }
}

#[test]
fn gzip_is_sent_when_asked_and_only_then() {
    let fixture = Fixture::new();
    fixture.register("A", "i");
    for path in [
        "apps",
        "apps/delta",
        "apps/A",
        "apps/A/i",
        "vips/a",
        "svips/s-a",
        "instances/i",
    ] {
        for (coding, packed) in [
            ("gzip", true),
            ("deflate, gzip;q=0.5", true),
            ("gzip;q=0", false),
            ("identity", false),
            ("br", false),
            ("*;q=0", false),
        ] {
            let headers = [("accept", "application/json"), ("accept-encoding", coding)];
            let read = fixture.send("GET", path, &headers, "");
            assert_eq!(read.status, 200);
            assert_eq!(
                read.headers.contains_key("content-encoding"),
                packed,
                "{path} {coding}"
            );
            let text = if packed { unpacked(&read) } else { read.body };
            serde_json::from_slice::<Value>(&text).unwrap();
        }
        assert!(!fixture.get(path).headers.contains_key("content-encoding"));
    }
    // Nothing is never compressed.
    let gzip = [("accept-encoding", "gzip")];
    fixture.send("PUT", "apps/A/i", &gzip, "").is_empty_with(200);
    fixture.send("GET", "apps/NONE", &gzip, "").is_empty_with(404);
    fixture.send("DELETE", "apps/A/i", &gzip, "").is_empty_with(200);
}

#[test]
fn netflix_compresses_unasked_below_apps() {
    let fixture = Fixture::with(Config {
        update_interval: Duration::ZERO,
        ..Config::eureka_netflix("boot")
    });
    fixture.register("A", "i");
    assert_eq!(fixture.api.config().gzip, Gzip::Enforced);
    for path in ["apps", "apps/delta", "apps/A", "apps/A/i"] {
        unpacked(&fixture.get(path));
        fixture
            .send("GET", path, &[("accept-encoding", "identity")], "")
            .is_empty_with(406);
    }
    let plain = fixture.send("GET", "vips/a", &[("accept-encoding", "identity")], "");
    assert_eq!(plain.status, 200);
    assert!(!fixture.get("vips/a").headers.contains_key("content-encoding"));
}

#[test]
fn etags_answer_304_until_something_changes() {
    let fixture = Fixture::new();
    fixture.register("A", "i");
    for path in ["apps", "apps/delta", "apps/A", "vips/a", "svips/s-a"] {
        let read = fixture.get(path);
        let tag = read.headers["etag"].to_str().unwrap().to_owned();
        assert!(tag.starts_with("W/\"boot-") && tag.ends_with("-json\""), "{tag}");
        assert_eq!(read.headers["cache-control"], "no-cache");
        assert_eq!(read.headers["vary"], "Accept, Accept-Encoding, X-Eureka-Accept");
        for held in [
            tag.clone(),
            format!("\"other\", {tag}"),
            tag.replace("W/", ""),
            "*".into(),
        ] {
            let headers = [("accept", "application/json"), ("if-none-match", &*held)];
            let again = fixture.send("GET", path, &headers, "");
            again.is_empty_with(304);
            assert_eq!(again.headers["etag"], *tag);
            assert_eq!(again.headers["vary"], read.headers["vary"]);
        }
        // A heartbeat is no change; another codec, and a registration, is.
        fixture.put("apps/A/i");
        let held = [("accept", "application/json"), ("if-none-match", &*tag)];
        assert_eq!(fixture.send("GET", path, &held, "").status, 304);
        let xml = [("accept", "application/xml"), ("if-none-match", &*tag)];
        assert_eq!(fixture.send("GET", path, &xml, "").status, 200);
        fixture.register("B", path);
        assert_eq!(fixture.send("GET", path, &held, "").status, 200);
    }
}

#[test]
fn a_node_whose_id_is_no_text_of_a_header_says_of_no_list_that_it_is_held() {
    let fixture = Fixture::with(Config::new("k\u{f6}ln"));
    let headers = [("accept", "application/json"), ("if-none-match", "")];
    assert_eq!(fixture.send("GET", "apps", &headers, "").status, 200);
}

#[test]
fn lists_lag_only_where_that_is_asked() {
    let lagging = Fixture::with(Config {
        update_interval: Duration::from_secs(30),
        ..Config::new("boot")
    });
    lagging.advance(Duration::from_secs(1));
    assert_eq!(lagging.get("apps/A").status, 404);
    lagging.register("A", "i");
    assert_eq!(lagging.get("apps/A/i").status, 200);
    lagging.get("apps/A").is_empty_with(404);
    assert_eq!(
        lagging.get("apps/delta").json()["applications"]["application"],
        json!([])
    );
    // Java renews its copy at multiples of the wall clock.
    lagging.advance(Duration::from_secs(30));
    assert_eq!(lagging.get("apps/A").status, 200);
    assert_eq!(
        lagging.get("apps/delta").json()["applications"]["application"][0]["name"],
        "A"
    );
}

#[test]
fn delta_hash_and_list_are_of_one_moment() {
    let fixture = Fixture::new();
    fixture.register("A", "i");
    fixture.post("A", &instance_with("A", "j", &json!({"status": "DOWN"})));
    let hash = |path: &str| fixture.get(path).json()["applications"]["apps__hashcode"].clone();
    assert_eq!(hash("apps"), "DOWN_1_UP_1_");
    assert_eq!(hash("apps/delta"), "DOWN_1_UP_1_");
    fixture.delete("apps/A/j");
    assert_eq!(hash("apps"), "UP_1_");
    assert_eq!(hash("apps/delta"), "UP_1_");
    assert_eq!(hash("vips/a"), "UP_1_");
}

#[test]
fn versions_are_javas() {
    let fixture = Fixture::new();
    let version = |path: &str| fixture.get(path).json()["applications"]["versions__delta"].clone();
    assert_eq!(version("apps"), "1");
    assert_eq!(version("apps/delta"), "1");
    assert_eq!(version("apps/delta"), "1");
    fixture.register("A", "i");
    assert_eq!(version("apps/delta"), "2");
    // Other codecs count on the same counter.
    assert!(
        fixture
            .get_xml("apps/delta")
            .contains("<versions__delta>3</versions__delta>")
    );
    assert_eq!(version("apps"), "1");
    assert_eq!(version("vips/a"), "-1");
    assert_eq!(version("svips/nobody"), "-1");
}

/// What one writer writes for all instances.
fn written(
    codec: eureka_registry_core::wire::Codec,
    hash: &str,
    all: &[Arc<eureka_registry_core::LeaseView>],
) -> String {
    let frame = eureka_registry_core::wire::ListFrame {
        version: "1",
        hash,
        tell_empty: false,
    };
    String::from_utf8(eureka_registry_core::wire::write_list(codec, &frame, all)).unwrap()
}
