//! Bytes that real servers and clients sent (tests/golden/README.md): each is read, and written again as it was.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::Arc;

use eureka_registry_core::wire::{
    Applications, BatchItem, Codec, DecodeError, Dialect, Format, ItemAnswer, ListFrame, OutgoingItem,
    Registration, read_applications, read_batch, read_batch_answer, read_instance, read_registration,
    write_application, write_batch, write_batch_answer, write_instance, write_list,
};
use eureka_registry_core::{Action, Instance, LeaseTimes, LeaseView, Wall};
use serde_json::Value;
use serde_json::value::RawValue;

/// The lines of a recording.
fn lines(compressed: &[u8]) -> Vec<Value> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(compressed)
        .read_to_string(&mut text)
        .expect("a recording is compressed text");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect()
}

pub(crate) fn registrations() -> Vec<Value> {
    lines(include_bytes!("../golden/registrations.jsonl.gz"))
}

pub(crate) fn answers() -> Vec<Value> {
    lines(include_bytes!("../golden/answers.jsonl.gz"))
}

pub(crate) fn batches() -> Vec<Value> {
    lines(include_bytes!("../golden/batches.jsonl.gz"))
}

/// The body of a line, `None` if it is not text.
pub(crate) fn body(line: &Value) -> Option<&str> {
    line["body"].as_str()
}

fn label(line: &Value) -> String {
    format!("{} {}", line["source"], line["case"])
}

fn format(line: &Value) -> Format {
    match line["format"].as_str() {
        Some("json") => Format::Json,
        Some("xml") => Format::Xml,
        other => panic!("format {other:?}"),
    }
}

/// What Java's answer to a registration says: its status, and the text of a refusal that names a field.
fn outcome(result: Result<Registration, DecodeError>, app: &str) -> Result<Instance, String> {
    match result {
        Err(_) => Err("cannot parse request body".into()),
        Ok(registration) => registration.validate(app).map_err(|invalid| invalid.to_string()),
    }
}

#[test]
fn java_rules_take_and_refuse_what_java_did() {
    let mut wrong = Vec::new();
    for line in registrations() {
        let Some(body) = body(&line) else { continue };
        let app = line["app"].as_str().expect("an app");
        if line["case"] == "11-unusual/246-app-slash" {
            // Refused for its path: Tomcat takes no encoded slash.
            continue;
        }
        let decoded = read_registration(format(&line), body.as_bytes(), Dialect::Java);
        match (line["status"].as_u64(), outcome(decoded.clone(), app)) {
            (Some(204), Ok(_)) => {}
            // Java answers 500 to a document that is `null`.
            (Some(500), Err(_)) if matches!(decoded, Err(DecodeError::Absent(_))) => {}
            (Some(400), Err(text))
                if line["answer"]
                    .as_str()
                    .is_some_and(|answer| answer.contains(&text)) => {}
            (status, outcome) => wrong.push(format!("{}: {status:?} {outcome:?} {decoded:?}", label(&line))),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn lenient_rules_take_whatever_java_took_and_understand_the_same() {
    let mut compared = 0;
    for line in registrations() {
        let Some(body) = body(&line) else { continue };
        if line["status"] != 204 {
            continue;
        }
        let app = line["app"].as_str().expect("an app");
        let read = |dialect| {
            let decoded = read_registration(format(&line), body.as_bytes(), dialect);
            outcome(decoded, app).unwrap_or_else(|text| panic!("{}: {text}", label(&line)))
        };
        assert_eq!(read(Dialect::Lenient), read(Dialect::Java), "{}", label(&line));
        compared += 1;
    }
    assert!(compared > 200, "only {compared}");
}

#[test]
fn instances_are_stored_as_java_showed_them_next() {
    let mut compared = 0;
    for line in registrations() {
        let (Some(body), stored) = (body(&line), &line["stored"]) else {
            continue;
        };
        // The first was older than what was there, the registry kept that.
        if stored.is_null() || line["case"] == "08-status/063-rereg-older-dirty" {
            continue;
        }
        let app = line["app"].as_str().expect("an app");
        let decoded = read_registration(format(&line), body.as_bytes(), Dialect::Java);
        let instance = outcome(decoded, app).expect("it was taken");
        let shown_id = stored["instanceId"]
            .as_str()
            .or_else(|| stored["hostName"].as_str());
        if shown_id != Some(instance.id()) && stored["dataCenterInfo"]["name"] != "Amazon" {
            continue;
        }
        let shown = encoded(instance);
        assert_eq!(comparable(&shown), comparable(stored), "{}", label(&line));
        compared += 1;
    }
    assert!(compared > 150, "only {compared}");
}

/// An instance as the full JSON has it.
fn encoded(instance: Instance) -> Value {
    let view = LeaseView {
        lease: LeaseTimes {
            terms: instance.lease,
            registered: Wall(1),
            renewed: Wall(1),
            evicted: Wall(0),
            service_up: Wall(1),
        },
        instance: Arc::new(instance),
        action: Action::Added,
        last_updated: Wall(1),
        coordinating: false,
    };
    let mut out = Vec::new();
    write_instance(Format::Json, &view, false, &mut out);
    let document: Value = serde_json::from_slice(&out).expect("it is JSON");
    document["instance"].clone()
}

/// Without what time and the registry add, and without the status: rules may change it.
fn comparable(instance: &Value) -> BTreeMap<String, Value> {
    let mut members: BTreeMap<String, Value> =
        serde_json::from_value(instance.clone()).expect("an instance is an object");
    for volatile in ["lastUpdatedTimestamp", "actionType", "status", "overriddenStatus"] {
        members.remove(volatile);
    }
    // A body without one gets the time of its arrival.
    let dirty = members.get("lastDirtyTimestamp").and_then(Value::as_str);
    if dirty.is_some_and(|text| text.starts_with("179")) {
        members.remove("lastDirtyTimestamp");
    }
    let lease = members.get_mut("leaseInfo").and_then(Value::as_object_mut);
    let lease = lease.expect("leaseInfo is an object");
    lease.retain(|name, _| name.ends_with("InSecs"));
    members
}

#[test]
fn answers_are_read_and_written_again_byte_for_byte() {
    let mut wrong = Vec::new();
    for line in answers() {
        let body = expected(body(&line).expect("answers are text"));
        let codec = codec(&line);
        let again = match line["kind"].as_str() {
            Some("list") => list_again(codec, &body),
            Some("application") => application_again(codec, &body),
            _ => instance_again(codec.format(), &body),
        };
        if again != body {
            let at = again
                .bytes()
                .zip(body.bytes())
                .take_while(|(a, b)| a == b)
                .count();
            let around = |text: &str| {
                text.get(at.saturating_sub(60)..(at + 60).min(text.len()))
                    .map(str::to_owned)
            };
            wrong.push(format!(
                "{}: {:?} instead of {:?}",
                label(&line),
                around(&again),
                around(&body)
            ));
        }
    }
    assert!(wrong.is_empty(), "{} differ: {wrong:#?}", wrong.len());
}

/// The only places where we write other bytes than Java: its XML is none there, and the data centre is the one that makes
/// Java unable to encode its full lists.
fn expected(body: &str) -> String {
    body.replace("        <>4</>\n", "")
        .replace("    <>4</>\n", "")
        .replace("&#x1;&#x0;", "\u{fffd}\u{fffd}")
        .replace(
            r#""com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo","name":"Amazon"}"#,
            r#""com.netflix.appinfo.AmazonInfo","name":"Amazon","metadata":{}}"#,
        )
}

fn codec(line: &Value) -> Codec {
    match line["codec"].as_str() {
        Some("json") => Codec::Json,
        Some("compact-json") => Codec::CompactJson,
        Some("xml") => Codec::Xml,
        Some("compact-xml") => Codec::CompactXml,
        other => panic!("codec {other:?}"),
    }
}

fn read_list(codec: Codec, body: &str) -> (Applications, Vec<Arc<LeaseView>>) {
    let list = read_applications(codec.format(), body.as_bytes()).expect("it is a list");
    assert_eq!(list.left_out, 0);
    let instances = list.instances.iter().cloned().map(Arc::new).collect();
    (list, instances)
}

fn list_again(codec: Codec, body: &str) -> String {
    let (list, instances) = read_list(codec, body);
    let frame = ListFrame {
        version: list.version.as_deref().expect("a version"),
        hash: list.hash.as_deref().expect("a hash"),
        tell_empty: body.contains("registeredApplicationsEmpty"),
    };
    String::from_utf8(write_list(codec, &frame, &instances)).expect("it is text")
}

fn application_again(codec: Codec, body: &str) -> String {
    let (_, instances) = read_list(codec, body);
    let mut out = Vec::new();
    write_application(codec, &instances[0].instance.app, &instances, &mut out);
    String::from_utf8(out).expect("it is text")
}

fn instance_again(format: Format, body: &str) -> String {
    let view = read_instance(format, body.as_bytes()).expect("it is an instance");
    let mut out = Vec::new();
    write_instance(format, &view, true, &mut out);
    String::from_utf8(out).expect("it is text")
}

#[test]
fn every_recorded_batch_is_read_as_java_read_it() {
    for line in batches() {
        let body = body(&line).expect("batches are text");
        let read = read_batch(body.as_bytes(), Dialect::Java);
        match (line["status"].as_u64(), read) {
            (Some(200), Ok(items)) => {
                let answer = line["answer"].as_str().expect("an answer");
                if !answer.starts_with('{') || line["case"] == "13-batch/034-instanceInfo-wrapped" {
                    // Java answers two items to the one that has a root too many.
                    continue;
                }
                let answers = read_batch_answer(answer.as_bytes()).expect("it is an answer");
                assert_eq!(items.len(), answers.len(), "{}", label(&line));
                for (item, answer) in items.iter().zip(answers) {
                    assert_eq!(item.is_err(), answer.status == 500, "{}: {item:?}", label(&line));
                }
            }
            (Some(400), Err(error)) => assert!(!matches!(error, DecodeError::Absent(_)), "{}", label(&line)),
            (Some(500), Err(error)) => assert!(matches!(error, DecodeError::Absent(_)), "{}", label(&line)),
            (status, read) => panic!("{}: {status:?} {read:?}", label(&line)),
        }
    }
}

#[test]
fn one_bad_item_does_not_fail_a_batch_under_lenient_rules() {
    let mut bad = 0;
    for line in batches() {
        let body = body(&line).expect("batches are text");
        let (java, lenient) = (
            read_batch(body.as_bytes(), Dialect::Java),
            read_batch(body.as_bytes(), Dialect::Lenient),
        );
        match (java, lenient) {
            (Ok(java), Ok(lenient)) => assert_eq!(java.len(), lenient.len(), "{}", label(&line)),
            (Err(_), Ok(lenient)) => bad += lenient.iter().filter(|item| item.is_err()).count(),
            (Err(_), Err(_)) => {}
            (Ok(_), Err(error)) => panic!("{}: {error}", label(&line)),
        }
    }
    assert!(bad > 0);
}

#[test]
fn batches_of_real_servers_are_written_again_byte_for_byte() {
    let mut compared = 0;
    for line in batches() {
        if !line["source"]
            .as_str()
            .is_some_and(|source| source.starts_with("server-"))
        {
            continue;
        }
        let body = body(&line).expect("batches are text");
        let items = read_batch(body.as_bytes(), Dialect::Java).expect("servers send good batches");
        let raw: BTreeMap<&str, Vec<BTreeMap<&str, &RawValue>>> =
            serde_json::from_str(body).expect("it is JSON");
        let again: Vec<OutgoingItem> = items
            .into_iter()
            .zip(&raw["replicationList"])
            .map(|(item, raw)| outgoing(item.expect("servers send good items"), raw))
            .collect();
        let again = String::from_utf8(write_batch(&again)).expect("it is text");
        // The Jackson of Spring's server escapes what takes two UTF-16 units in batches, and nowhere else; that of the
        // classic server does not. And readers drop a metadata key that looks like Java's own marker.
        let read = body
            .replace(r"\uD83D\uDE00", "\u{1f600}")
            .replace(r#"{"@class":"x","#, "{");
        assert_eq!(again, read, "{}", label(&line));
        compared += 1;
    }
    assert!(compared >= 46, "only {compared}");
}

/// An item as its sender had it; `raw` has what a receiver does not need.
fn outgoing(item: BatchItem<'_>, raw: &BTreeMap<&str, &RawValue>) -> OutgoingItem {
    let status = || {
        let text: &str = serde_json::from_str(raw["status"].get()).expect("a status is text");
        eureka_registry_core::Status::parse(text).expect("it is a status")
    };
    match item {
        BatchItem::Cancel { key } => OutgoingItem::Cancel { key },
        BatchItem::DeleteStatusOverride {
            key,
            status,
            last_dirty,
        } => OutgoingItem::DeleteStatusOverride {
            key,
            status,
            last_dirty: last_dirty.expect("servers send it"),
        },
        BatchItem::Heartbeat(heartbeat) => OutgoingItem::Heartbeat {
            key: heartbeat.key().to_key(),
            last_dirty: heartbeat.last_dirty,
            status: status(),
            overridden: heartbeat.overridden,
        },
        BatchItem::Register { .. } => OutgoingItem::Register(entity(raw["instanceInfo"])),
        BatchItem::StatusUpdate {
            key,
            status,
            last_dirty,
        } => OutgoingItem::StatusUpdate {
            key,
            status,
            last_dirty,
        },
    }
}

/// An instance that stands without its root.
fn entity(raw: &RawValue) -> Arc<LeaseView> {
    let document = format!(r#"{{"instance":{raw}}}"#);
    Arc::new(read_instance(Format::Json, document.as_bytes()).expect("it is an instance"))
}

#[test]
fn answers_to_batches_are_written_again_byte_for_byte() {
    let mut entities = 0;
    for line in batches() {
        let answer = line["answer"].as_str().expect("an answer");
        if line["status"] != 200 {
            continue;
        }
        let answers: Vec<ItemAnswer> = if answer.starts_with('{') {
            let raw: BTreeMap<&str, Vec<BTreeMap<&str, &RawValue>>> =
                serde_json::from_str(answer).expect("it is JSON");
            let answers = raw["responseList"].iter().map(|item| ItemAnswer {
                status: item["statusCode"].get().parse().expect("it is a number"),
                newer: item.get("responseEntity").map(|raw| entity(raw)),
            });
            answers.collect()
        } else {
            // Those recorded in XML are answers to one renewal.
            vec![ItemAnswer {
                status: 200,
                newer: None,
            }]
        };
        entities += answers.iter().filter(|answer| answer.newer.is_some()).count();
        let format = if answer.starts_with('{') {
            Format::Json
        } else {
            Format::Xml
        };
        let again = write_batch_answer(format, &answers, usize::MAX);
        let again = String::from_utf8(again.text).expect("it is text");
        assert_eq!(again, answer, "{}", label(&line));
    }
    assert!(entities > 0);
}
