//! Exchanges recorded with real Java servers, sent again in their order and compared answer by answer.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use base64::Engine;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::Deserialize;

use super::expectations::{Difference, Expectations};
use super::http::{Request, Response};
use super::normal;
use super::report::{Outcome, Report};
use super::target::{Flavour, Target, instances, now_millis};

/// Longer than the three seconds for which the recorded servers kept changes in their deltas.
const UNTIL_DELTA_IS_EMPTY: Duration = Duration::from_millis(3800);

/// A recording, by the server that answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Recording {
    /// Spring Boot 4.0.7, Spring Cloud 2025.1.4 (eureka-core 2.0.6)
    Spring,
    /// The classic eureka-core 1.10.18
    Netflix,
}

/// One recorded exchange.
#[derive(Debug, Deserialize)]
struct Exchange {
    case: String,
    before: Option<Before>,
    /// What else was sent before it, with answers that were not kept.
    #[serde(default)]
    setup: Vec<Sent>,
    /// When it was answered, in Unix milliseconds.
    wall: u64,
    request: Sent,
    response: Answer,
}

/// What happened before the request.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Before {
    /// Every instance was cancelled, then the delta ran empty.
    Clear,
    /// The delta ran empty.
    Wait,
}

#[derive(Debug, Deserialize)]
struct Sent {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    #[serde(default)]
    body: String,
    body_base64: Option<String>,
    repeat: Option<(String, usize)>,
    #[serde(default)]
    gzip: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    #[serde(default)]
    body: String,
}

impl Recording {
    fn name(self) -> &'static str {
        match self {
            Self::Spring => "spring",
            Self::Netflix => "netflix",
        }
    }

    /// The path of the API in the recording.
    fn prefix(self) -> &'static str {
        match self {
            Self::Spring => "/eureka",
            Self::Netflix => "/eureka/v2",
        }
    }

    fn read(self) -> Result<Vec<Exchange>> {
        let compressed: &[u8] = match self {
            Self::Spring => include_bytes!("../../conformance/recorded/spring.jsonl.gz"),
            Self::Netflix => include_bytes!("../../conformance/recorded/netflix.jsonl.gz"),
        };
        let mut text = String::new();
        GzDecoder::new(compressed).read_to_string(&mut text)?;
        let line = |line| serde_json::from_str(line).with_context(|| format!("recording: {line}"));
        text.lines().map(line).collect()
    }
}

/// Replays a recording and reports each exchange.
pub(crate) fn replay(
    target: &Target,
    flavour: Flavour,
    recording: Recording,
    expectations: &Expectations,
    report: &Report,
) -> Result<()> {
    let name = recording.name();
    let mut replay = Replay {
        target,
        recording,
        listed: expectations.recorded(flavour, name),
        report,
        tally: Tally::default(),
    };
    let exchanges = recording.read()?;
    let mut registered = BTreeSet::new();
    for exchange in &exchanges {
        if exchange.before == Some(Before::Clear) {
            clear(target, &registered)?;
            registered.clear();
            thread::sleep(UNTIL_DELTA_IS_EMPTY);
        }
        for sent in &exchange.setup {
            target.send(&sent.to_request(recording.prefix(), target))?;
        }
        if exchange.before == Some(Before::Wait) {
            thread::sleep(UNTIL_DELTA_IS_EMPTY);
        }
        registered.extend(
            exchange
                .setup
                .iter()
                .chain([&exchange.request])
                .filter_map(Sent::registers),
        );
        replay.one(exchange);
    }
    replay.finish(exchanges.len());
    clear(target, &registered)
}

/// A replay under way.
struct Replay<'a> {
    target: &'a Target,
    recording: Recording,
    listed: Vec<&'a Difference>,
    report: &'a Report,
    tally: Tally,
}

#[derive(Default)]
struct Tally {
    equal: usize,
    listed: usize,
    unlisted: usize,
    /// Which of the listed differences were seen, by their place in the list.
    seen: BTreeSet<usize>,
    /// Equal and all exchanges of each group.
    groups: BTreeMap<String, (usize, usize)>,
}

impl Replay<'_> {
    fn one(&mut self, exchange: &Exchange) {
        let subject = format!("recorded {}", self.recording.name());
        let request = exchange.request.to_request(self.recording.prefix(), self.target);
        let response = match self.target.send(&request) {
            Ok(response) => response,
            Err(error) => {
                self.tally.unlisted += 1;
                return self
                    .report
                    .step(&subject, &exchange.case, &Outcome::Failed(error.to_string()));
            }
        };
        let differences = compare(now_millis(), exchange, &Answer::from(&response));
        let group = exchange.case.split('/').next().unwrap_or_default().to_owned();
        let (equal, all) = self.tally.groups.entry(group).or_default();
        *all += 1;
        if differences.is_empty() {
            *equal += 1;
            self.tally.equal += 1;
            return self.report.count(&Outcome::Passed(String::new()));
        }
        let parts: Vec<_> = differences.iter().map(|(part, _)| part.clone()).collect();
        let covering = self.listed.iter().enumerate().find(|(_, difference)| {
            difference.names(&exchange.case) && difference.allows(&parts, response.status)
        });
        if let Some((at, difference)) = covering {
            self.tally.listed += 1;
            self.tally.seen.insert(at);
            let row = difference
                .row
                .as_ref()
                .map(|row| format!(" (row {row})"))
                .unwrap_or_default();
            let why = format!("differs as listed{row}: {}", difference.reason);
            return self.report.step(&subject, &exchange.case, &Outcome::Skipped(why));
        }
        self.tally.unlisted += 1;
        let request = &exchange.request;
        let what = format!(
            "{} {} differs in {}",
            request.method,
            request.shown(),
            parts.join(", ")
        );
        self.report.step(&subject, &exchange.case, &Outcome::Failed(what));
        for line in differences.iter().flat_map(|(_, lines)| lines) {
            self.report.line(&format!("        {line}"));
        }
    }

    fn finish(&self, total: usize) {
        let name = self.recording.name();
        for (group, (equal, all)) in &self.tally.groups {
            self.report
                .line(&format!("      recorded {name}: {group}: {equal} of {all} equal"));
        }
        let Tally {
            equal,
            listed,
            unlisted,
            ..
        } = self.tally;
        self.report.line(&format!(
            "recorded {name}: {equal} of {total} equal, {listed} differ as listed, {unlisted} differ unlisted"
        ));
        for (at, difference) in self.listed.iter().enumerate() {
            if !self.tally.seen.contains(&at) {
                let why = format!("listed as different, but nothing was: {}", difference.cases());
                self.report.step(
                    &format!("recorded {name}"),
                    "expectations.toml",
                    &Outcome::Failed(why),
                );
            }
        }
    }
}

/// The parts in which an answer differs from the recorded one, each with lines that show how.
fn compare(now: u64, exchange: &Exchange, got: &Answer) -> Vec<(String, Vec<String>)> {
    let expected = &exchange.response;
    let mut parts = Vec::new();
    if expected.status != got.status {
        let shown = vec![
            format!("- status {}", expected.status),
            format!("+ status {}", got.status),
        ];
        parts.push(("status".to_owned(), shown));
    }
    let error_page = expected.is_error_page();
    let bodies = (expected.lines(exchange.wall), got.lines(now));
    if bodies.0 != bodies.1 {
        let mut shown = normal::difference(&bodies.0, &bodies.1);
        shown
            .iter_mut()
            .for_each(|line| *line = line.chars().take(300).collect());
        parts.push(("body".to_owned(), shown));
    }
    // What an empty body is labelled as says nothing, and the label of an error page goes with the page.
    let labelled = exchange.request.method == "HEAD" || (!got.body.is_empty() && !error_page);
    for name in ["content-type", "allow", "content-encoding"] {
        let (expected, got) = (expected.header(name), got.header(name));
        if expected != got && (name == "allow" || labelled) {
            let shown = |header: &Option<String>| header.clone().unwrap_or_else(|| "(none)".to_owned());
            let lines = vec![
                format!("- {name}: {}", shown(&expected)),
                format!("+ {name}: {}", shown(&got)),
            ];
            parts.push((format!("header {name}"), lines));
        }
    }
    parts
}

impl Answer {
    /// Spring Boot's error document, or a servlet container's page: volatile, and what ours leaves empty.
    fn is_error_page(&self) -> bool {
        let boot = self.body.starts_with("{\"timestamp\":") || self.body.starts_with("<Map><timestamp>");
        let html = self
            .header("content-type")
            .is_some_and(|label| label.starts_with("text/html"));
        self.status >= 400 && (boot || html)
    }

    fn lines(&self, wall: u64) -> Vec<String> {
        if self.is_error_page() {
            Vec::new()
        } else {
            normal::lines(&self.body, wall)
        }
    }

    /// A header in a form that can be compared: lower case, without spaces; lists sorted.
    fn header(&self, name: &str) -> Option<String> {
        let (_, value) = self
            .headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))?;
        let value: String = value
            .to_ascii_lowercase()
            .chars()
            .filter(|c| !c.is_whitespace())
            .collect();
        let mut list: Vec<_> = value.split(',').collect();
        list.sort_unstable();
        Some(list.join(","))
    }
}

impl From<&Response> for Answer {
    fn from(response: &Response) -> Self {
        Self {
            status: response.status,
            headers: response.headers.clone(),
            body: response.text(),
        }
    }
}

impl Sent {
    /// The request as it went out, with the path of this target's API in place of the recorded one.
    fn to_request(&self, prefix: &str, target: &Target) -> Request {
        let path = match self.target.strip_prefix(prefix) {
            Some(rest) if rest.is_empty() || rest.starts_with(['/', '?', ';']) => {
                format!("{}{rest}", target.prefix)
            }
            Some(_) | None => self.target.clone(),
        };
        let mut request = Request::new(&self.method, path);
        request.headers.clone_from(&self.headers);
        request.body = self.bytes();
        target.authorized(request)
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = match (&self.body_base64, &self.repeat) {
            (Some(encoded), _) => base64::engine::general_purpose::STANDARD
                .decode(encoded)
                .unwrap_or_default(),
            (None, Some((unit, count))) => self.body.replace("@REPEAT@", &unit.repeat(*count)).into_bytes(),
            (None, None) => self.body.clone().into_bytes(),
        };
        if self.gzip {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            // Writing into memory does not fail.
            if encoder.write_all(&bytes).is_ok()
                && let Ok(compressed) = encoder.finish()
            {
                bytes = compressed;
            }
        }
        bytes
    }

    /// The instance that this registers, as (application, id), as far as it can be seen.
    fn registers(&self) -> Option<(String, String)> {
        let (_, app) = self
            .target
            .split_once("/apps/")
            .filter(|_| self.method == "POST")?;
        let between = |start: &str, end: &str| {
            let (_, rest) = self.body.split_once(start)?;
            rest.split_once(end).map(|(id, _)| id.to_owned())
        };
        let id = between("\"instanceId\":\"", "\"").or_else(|| between("<instanceId>", "</instanceId>"))?;
        Some((app.trim_end_matches('/').to_owned(), id))
    }

    fn shown(&self) -> String {
        self.target.chars().take(80).collect()
    }
}

/// Cancels what the recording registered, and whatever else is listed. The former first: one of the recorded instances
/// makes Java's list unreadable.
fn clear(target: &Target, registered: &BTreeSet<(String, String)>) -> Result<()> {
    for (app, id) in registered {
        target.remove(app, id)?;
    }
    let document = target.get("/apps")?.json()?;
    for instance in instances(&document) {
        let app = instance["app"].as_str().unwrap_or_default();
        let id = instance["instanceId"]
            .as_str()
            .or_else(|| instance["hostName"].as_str())
            .unwrap_or_default();
        // On Amazon an instance without an id is known by its instance-id.
        let amazon = instance["dataCenterInfo"]["metadata"]["instance-id"].as_str();
        for id in [Some(id), amazon].into_iter().flatten() {
            target.remove(app, id)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(status: u16, label: &str, body: &str) -> Exchange {
        let response = Answer {
            status,
            headers: vec![("Content-Type".to_owned(), label.to_owned())],
            body: body.to_owned(),
        };
        let request = Sent {
            method: "GET".to_owned(),
            target: "/eureka/v2/apps".to_owned(),
            headers: Vec::new(),
            body: String::new(),
            body_base64: None,
            repeat: None,
            gzip: false,
        };
        Exchange {
            case: "x/1".to_owned(),
            before: None,
            setup: Vec::new(),
            wall: 1_000_000_000_000,
            request,
            response,
        }
    }

    fn parts(exchange: &Exchange, status: u16, label: &str, body: &str) -> Vec<String> {
        let headers = vec![("content-type".to_owned(), label.to_owned())];
        let got = Answer {
            status,
            headers,
            body: body.to_owned(),
        };
        compare(2_000_000_000_000, exchange, &got)
            .into_iter()
            .map(|(part, _)| part)
            .collect()
    }

    #[test]
    fn each_part_that_differs_is_named() {
        let recorded = exchange(
            200,
            "application/json",
            r#"{"a":1,"lastUpdatedTimestamp":"1000000000123"}"#,
        );
        let same = r#"{"a":1,"lastUpdatedTimestamp":"2000000000456"}"#;
        assert!(parts(&recorded, 200, "Application/JSON", same).is_empty());
        assert_eq!(parts(&recorded, 404, "application/json", same), ["status"]);
        assert_eq!(
            parts(&recorded, 200, "application/xml", same),
            ["header content-type"]
        );
        assert_eq!(parts(&recorded, 200, "application/json", r#"{"a":2}"#), ["body"]);
    }

    #[test]
    fn an_error_page_may_be_left_empty_but_not_replaced() {
        let recorded = exchange(
            404,
            "application/json",
            r#"{"timestamp":"now","status":404,"path":"/"}"#,
        );
        assert!(parts(&recorded, 404, "", "").is_empty());
        assert_eq!(parts(&recorded, 404, "text/plain", "gone"), ["body"]);
        let plain = exchange(
            400,
            "application/json",
            r#"{"error": "cannot parse request body"}"#,
        );
        assert_eq!(parts(&plain, 400, "", ""), ["body"]);
    }

    #[test]
    fn the_path_of_the_api_is_mapped_and_other_paths_are_not() {
        let target = Target::parse("http://h:1/registry").unwrap();
        let mapped = |path: &str| {
            let mut sent = exchange(200, "", "").request;
            path.clone_into(&mut sent.target);
            sent.to_request("/eureka", &target).target
        };
        assert_eq!(mapped("/eureka/apps?x=/eureka"), "/registry/apps?x=/eureka");
        assert_eq!(mapped("/eureka"), "/registry");
        assert_eq!(mapped("/eurekas/apps"), "/eurekas/apps");
        assert_eq!(mapped("/apps"), "/apps");
    }

    #[test]
    fn the_recordings_are_whole() {
        for recording in [Recording::Spring, Recording::Netflix] {
            let exchanges = recording.read().unwrap();
            assert_eq!(exchanges.len(), 1023);
            for exchange in &exchanges {
                let sent = exchange.request.bytes().len().to_string();
                let length = exchange
                    .request
                    .headers
                    .iter()
                    .find(|(name, _)| name == "Content-Length");
                assert!(
                    length.is_none_or(|(_, length)| *length == sent),
                    "{}: {sent}",
                    exchange.case
                );
            }
        }
    }
}
