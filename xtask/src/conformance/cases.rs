//! Public bug reports as checks: a few requests each, and what the answers must be.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::expect::Expect;
use super::http::Request;
use super::report::Outcome;
use super::target::{Target, instances};

const CASES: &str = include_str!("../../conformance/cases.jsonl");

/// One report; `source` links to where it was told.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) why: String,
    pub(crate) source: Vec<String>,
    /// Needs a server that has never had an instance.
    #[serde(default)]
    pub(crate) fresh: bool,
    /// Needs a server that evicts every second, without self-preservation.
    #[serde(default)]
    pub(crate) evicts: bool,
    steps: Vec<Step>,
    #[serde(default)]
    cleanup: Vec<Step>,
}

/// One request; `WAIT` as the method only waits.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    method: String,
    path: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// A string as it is, anything else as JSON, in the order in which it is written.
    body: Option<Box<RawValue>>,
    body_repeat: Option<Repeat>,
    #[serde(default)]
    sleep_ms: u64,
    #[serde(default = "once")]
    repeat: usize,
    /// The path starts at the server's root, not at the API's.
    #[serde(default)]
    root: bool,
    #[serde(default)]
    expect: Expect,
}

fn once() -> usize {
    1
}

/// A body of one unit many times.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Repeat {
    #[serde(default)]
    prefix: String,
    unit: String,
    count: usize,
    #[serde(default)]
    suffix: String,
}

/// Every case, in the order in which they run.
pub(crate) fn all() -> Result<Vec<Case>> {
    CASES
        .lines()
        .map(|line| serde_json::from_str(line).with_context(|| format!("cases.jsonl: {line}")))
        .collect()
}

/// Cancels what the cases registered; what a server keeps in spite of that runs out.
pub(crate) fn clean_up(target: &Target, cases: &[Case]) {
    let steps = cases
        .iter()
        .flat_map(|case| &case.steps)
        .filter(|step| step.method == "POST");
    let apps: BTreeSet<_> = steps
        .filter_map(|step| step.path.split("/apps/").nth(1))
        .map(|app| {
            percent_decode_str(app.trim_end_matches('/'))
                .decode_utf8_lossy()
                .to_uppercase()
        })
        .collect();
    let Ok(document) = target.get_json("/apps") else {
        return;
    };
    for instance in instances(&document) {
        let app = instance["app"].as_str().unwrap_or_default();
        let id = instance["instanceId"]
            .as_str()
            .or_else(|| instance["hostName"].as_str())
            .unwrap_or_default();
        if apps.contains(app) {
            let _ = target.remove(app, id);
        }
    }
}

impl Case {
    /// Runs the steps, and the cleanup whatever came of them.
    pub(crate) fn run(&self, target: &Target) -> Outcome {
        let outcome = self.steps(target);
        for step in &self.cleanup {
            // What is gone already needs no cleaning.
            let _ = target.send(&step.request(target));
        }
        outcome.map(|()| self.why.clone()).into()
    }

    fn steps(&self, target: &Target) -> Result<(), String> {
        for (at, step) in self.steps.iter().enumerate() {
            for _ in 0..step.repeat {
                let named = |why: String| format!("step {} {} {}: {why}", at + 1, step.method, step.path);
                step.once(target).map_err(named)?;
            }
        }
        Ok(())
    }
}

impl Step {
    fn once(&self, target: &Target) -> Result<(), String> {
        thread::sleep(Duration::from_millis(self.sleep_ms));
        if self.method == "WAIT" {
            return Ok(());
        }
        let start = Instant::now();
        let response = target
            .send(&self.request(target))
            .map_err(|error| error.to_string())?;
        let wrong = self.expect.unmet(&response, start.elapsed());
        if wrong.is_empty() {
            Ok(())
        } else {
            Err(wrong.join("; "))
        }
    }

    fn request(&self, target: &Target) -> Request {
        let mut request = match self.root {
            true => target.authorized(Request::new(&self.method, &self.path)),
            false => target.request(&self.method, &self.path),
        };
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if let Some(repeat) = &self.body_repeat {
            return request.body(repeat.bytes());
        }
        let Some(body) = &self.body else { return request };
        if let Ok(text) = serde_json::from_str::<String>(body.get()) {
            return request.body(text.into_bytes());
        }
        if !request.has_header("content-type") {
            request = request.header("Content-Type", "application/json");
        }
        request.body(body.get().as_bytes().to_vec())
    }
}

impl Repeat {
    fn bytes(&self) -> Vec<u8> {
        format!("{}{}{}", self.prefix, self.unit.repeat(self.count), self.suffix).into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cases_can_be_read_and_each_says_why_and_whence() {
        let cases = all().unwrap();
        assert_eq!(cases.len(), 60);
        assert!(
            cases
                .iter()
                .all(|case| !case.why.is_empty() && case.source[0].starts_with("https://"))
        );
    }

    #[test]
    fn a_step_becomes_the_request_it_describes() {
        let target = Target::parse("http://h:1/eureka").unwrap();
        let step = |text: &str| serde_json::from_str::<Step>(text).unwrap().request(&target);
        let json = step(r#"{"method":"POST","path":"/apps/A","body":{"b":1,"a":2}}"#);
        assert_eq!(
            (json.target.as_str(), json.body.as_slice()),
            ("/eureka/apps/A", br#"{"b":1,"a":2}"#.as_slice())
        );
        assert!(json.has_header("content-type"));
        let text = step(r#"{"method":"POST","path":"/","root":true,"body":"x"}"#);
        assert_eq!(
            (text.target.as_str(), text.has_header("content-type")),
            ("/", false)
        );
        let long = step(r#"{"method":"POST","path":"/","body_repeat":{"prefix":"(","unit":"ab","count":3}}"#);
        assert_eq!(long.body, b"(ababab");
    }
}
