//! What an answer must be: the expectations of one step of a case.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::http::{Response, excerpt};
use super::normal::xml_well_formed;
use super::target::now_millis;

/// All of it must hold.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Expect {
    status: Option<Statuses>,
    utf8: bool,
    body_contains: Vec<String>,
    body_not_contains: Vec<String>,
    body_empty: bool,
    /// How a header starts; null: it must not be there.
    headers: BTreeMap<String, Option<String>>,
    json_path: BTreeMap<String, Value>,
    json_absent: Vec<String>,
    json_not_future: Vec<String>,
    json_type: BTreeMap<String, Kind>,
    xml_well_formed: bool,
    max_ms: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Statuses {
    One(u16),
    Any(Vec<u16>),
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Array,
    Object,
    String,
    Number,
}

impl Expect {
    /// What does not hold.
    pub(crate) fn unmet(&self, response: &Response, took: Duration) -> Vec<String> {
        let mut wrong = Vec::new();
        let status = response.status;
        let listed = match &self.status {
            Some(Statuses::One(one)) => *one == status,
            Some(Statuses::Any(any)) => any.contains(&status),
            None => true,
        };
        if !listed {
            let want = self.status.as_ref().map(Statuses::shown).unwrap_or_default();
            wrong.push(format!("status {status}, want {want}"));
        }
        if let Err(error) = response.content() {
            wrong.push(error.to_string());
        }
        self.body(response, &mut wrong);
        self.headers(response, &mut wrong);
        self.json(response, &mut wrong);
        if let Some(limit) = self.max_ms
            && took > Duration::from_millis(limit)
        {
            wrong.push(format!("took {} ms, more than {limit}", took.as_millis()));
        }
        wrong
    }

    fn body(&self, response: &Response, wrong: &mut Vec<String>) {
        let text = response.text();
        if self.utf8
            && !response
                .content()
                .is_ok_and(|content| String::from_utf8(content).is_ok())
        {
            wrong.push("the body is not UTF-8".to_owned());
        }
        for part in self.body_contains.iter().filter(|part| !text.contains(*part)) {
            wrong.push(format!("the body lacks {part:?}"));
        }
        for part in self.body_not_contains.iter().filter(|part| text.contains(*part)) {
            wrong.push(format!("the body has {part:?}"));
        }
        if self.body_empty && !response.body.is_empty() {
            wrong.push(format!("the body is not empty: {}", excerpt(&text)));
        }
        if self.xml_well_formed {
            wrong.extend(xml_well_formed(&text).err());
        }
    }

    fn headers(&self, response: &Response, wrong: &mut Vec<String>) {
        for (name, want) in &self.headers {
            let got = response.header(name);
            let right = match (want, got) {
                (None, None) => true,
                (Some(want), Some(got)) => got.to_lowercase().starts_with(&want.to_lowercase()),
                (Some(_), None) | (None, Some(_)) => false,
            };
            if !right {
                wrong.push(format!("header {name} is {got:?}, want {want:?}"));
            }
        }
    }

    fn json(&self, response: &Response, wrong: &mut Vec<String>) {
        let paths = self
            .json_path
            .keys()
            .chain(self.json_type.keys())
            .chain(&self.json_absent);
        if paths.chain(&self.json_not_future).next().is_none() {
            return;
        }
        let document = match response.json() {
            Ok(document) => document,
            Err(error) => return wrong.push(error.to_string()),
        };
        for (path, want) in &self.json_path {
            match at(&document, path) {
                Some(got) if got == *want => {}
                Some(got) => wrong.push(format!("{path} is {got}, want {want}")),
                None => wrong.push(format!("{path} is missing, want {want}")),
            }
        }
        for path in self
            .json_absent
            .iter()
            .filter(|path| at(&document, path).is_some())
        {
            wrong.push(format!("{path} is there"));
        }
        for path in &self.json_not_future {
            let read = |value: &Value| value.as_u64().or_else(|| value.as_str()?.parse().ok());
            let time = at(&document, path).as_ref().and_then(read);
            if time.is_none_or(|time| time > now_millis() + 1500) {
                wrong.push(format!("{path} is {time:?}, which lies in the future"));
            }
        }
        for (path, kind) in &self.json_type {
            if !at(&document, path).is_some_and(|value| kind.fits(&value)) {
                wrong.push(format!("{path} is no {kind:?}"));
            }
        }
    }
}

impl Statuses {
    fn shown(&self) -> String {
        match self {
            Self::One(one) => one.to_string(),
            Self::Any(any) => format!("one of {any:?}"),
        }
    }
}

impl Kind {
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
            Self::String => value.is_string(),
            Self::Number => value.is_number(),
        }
    }
}

/// The value at a path such as `applications.application[?name=A].instance[0].port["$"]`; a last `#` counts a list.
fn at(document: &Value, path: &str) -> Option<Value> {
    let mut value = document;
    let mut rest = path;
    while !rest.is_empty() {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        if rest == "#" {
            return value.as_array().map(|list| Value::from(list.len()));
        }
        if let Some(inside) = rest.strip_prefix('[') {
            let (selector, after) = inside.split_once(']')?;
            value = selected(value, selector)?;
            rest = after;
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            value = value.get(&rest[..end])?;
            rest = &rest[end..];
        }
    }
    Some(value.clone())
}

fn selected<'a>(value: &'a Value, selector: &str) -> Option<&'a Value> {
    if let Some(quoted) = selector.strip_prefix('"') {
        return value.get(quoted.strip_suffix('"')?);
    }
    let Some(condition) = selector.strip_prefix('?') else {
        return value.get(selector.parse::<usize>().ok()?);
    };
    let (key, want) = condition.split_once('=')?;
    value.as_array()?.iter().find(|item| match item.get(key) {
        Some(Value::String(text)) => text == want,
        Some(other) => *want == format!("{other}"),
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_reach_into_lists_objects_and_counts() {
        let document = json!({"a": {"list": [{"n": "x", "p": {"$": 1}}, {"n": 7, "m": {"a.b": 2}}]}});
        assert_eq!(at(&document, "a.list.#"), Some(json!(2)));
        assert_eq!(at(&document, "a.list[0].p.$"), Some(json!(1)));
        assert_eq!(at(&document, "a.list[?n=7].m[\"a.b\"]"), Some(json!(2)));
        assert_eq!(at(&document, "a.list[?n=y].p"), None);
        assert_eq!(at(&document, "a.none"), None);
    }

    #[test]
    fn what_does_not_hold_is_named() {
        let expect: Expect = serde_json::from_value(json!({
            "status": [200, 204],
            "headers": {"content-type": "application/json", "x-gone": null},
            "json_path": {"a": 1, "b": "1"},
            "json_absent": ["c"],
            "json_type": {"a": "number"},
            "json_not_future": ["t"],
        }))
        .unwrap();
        let answer = |status, body: Value| Response {
            status,
            headers: vec![("Content-Type".to_owned(), "application/json;x".to_owned())],
            body: body.to_string().into_bytes(),
        };
        for time in [json!("5"), json!(5)] {
            let good = answer(204, json!({"a": 1, "b": "1", "t": time}));
            assert_eq!(expect.unmet(&good, Duration::ZERO), Vec::<String>::new());
        }
        let bad = answer(
            404,
            json!({"a": "1", "b": 1, "c": 0, "t": now_millis() + 100_000}),
        );
        assert_eq!(expect.unmet(&bad, Duration::ZERO).len(), 6);
    }

    #[test]
    fn an_empty_body_and_the_time_are_checked() {
        let expect: Expect = serde_json::from_value(json!({"body_empty": true, "max_ms": 10})).unwrap();
        let response = Response {
            body: b"x".to_vec(),
            ..Response::default()
        };
        assert_eq!(expect.unmet(&response, Duration::from_millis(11)).len(), 2);
        assert!(
            expect
                .unmet(&Response::default(), Duration::from_millis(10))
                .is_empty()
        );
    }
}
