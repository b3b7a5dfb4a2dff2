//! The change feed: what changed behind a cursor, as a long poll or as a stream of events.

use std::time::Duration;

use eureka_registry_core::{Cursor, Filter, Reads};
use http::header::{HeaderName, VARY};
use http::{HeaderValue, StatusCode};

use super::ours::{filter, page_size, parameter};
use crate::body::Body;
use crate::call::{Call, Part, X_NODE};
use crate::negotiate;
use crate::outcome::{self, Refusal};
use crate::respond::Reply;
use crate::watch::{Events, LongPoll, Question, Reset, WAIT, WAIT_MAX, changes_text};

/// The place of a browser's stream that comes back after it broke.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Asks proxies of the nginx kind to pass on what comes at once.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// GET `/api/v1/changes?since=&filter=&limit=&wait=`: what changed behind a cursor, as soon as there is something that the
/// filter lets through; without a cursor, at once, the one of now. 410 with the cursor of now where too much lies between,
/// or the node was started again: read the instances, and go on from there. With `Accept: text/event-stream` a stream of
/// events, which sends the instances itself where that is needed.
pub(crate) fn changes(call: &Call<'_>) -> Result<Reply, Refusal> {
    if parameter(call, "at")?.is_some() {
        return Err(Refusal::Misplaced {
            name: "at",
            path: "/api/v1/instances",
        });
    }
    let filter = filter(call)?;
    let limit = page_size(call)?;
    let wait = wait(call)?;
    let since = since(call)?;
    if let Reads::Held(hold) = call.registry().snapshot().reads() {
        return Err(Refusal::FeedHeld(hold));
    }
    if negotiate::accepts_events(&call.parts.headers) {
        return Ok(events(call, since, filter));
    }
    let gzip = call.gzip(Part::Other)?;
    let Some(since) = since else {
        let cursor = call.registry().cursor(call.registry().version());
        let mut answer = call
            .api
            .encoded("application/json", changes_text(call.api, cursor, &[]), gzip);
        outcome::mark_momentary(&mut answer);
        return Ok(Reply::Now(answer));
    };
    let question = Question {
        since,
        filter,
        limit,
        wait,
        gzip,
        from_node: call.parts.headers.contains_key(X_NODE),
    };
    Ok(Reply::Later(Box::new(LongPoll::new(call.api, question))))
}

/// The stream: from where `Last-Event-ID` says, else from `since`, else from the start.
fn events(call: &Call<'_>, since: Option<Cursor>, filter: Option<Filter>) -> Reply {
    let last = call.parts.headers.get(LAST_EVENT_ID);
    let since = match last.filter(|last| !last.is_empty()) {
        // Browsers send the last one they have, of whatever server: what is no cursor of ours is of another.
        Some(last) => last
            .to_str()
            .ok()
            .and_then(Cursor::parse)
            .ok_or(Reset::OtherServer),
        None => since.ok_or(Reset::Start),
    };
    let body = Body::events(Events::new(call.api, since, filter));
    let mut answer = outcome::with_body(StatusCode::OK, "text/event-stream", body);
    outcome::mark_momentary(&mut answer);
    let headers = answer.headers_mut();
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    Reply::Now(answer)
}

fn since(call: &Call<'_>) -> Result<Option<Cursor>, Refusal> {
    let Some(text) = parameter(call, "since")? else {
        return Ok(None);
    };
    let expected = "a cursor";
    let name = "since";
    Cursor::parse(&text)
        .map(Some)
        .ok_or(Refusal::Parameter { name, expected })
}

fn wait(call: &Call<'_>) -> Result<Duration, Refusal> {
    let Some(text) = parameter(call, "wait")? else {
        return Ok(WAIT);
    };
    let expected = "a time from 0 to 60s, as in 30s or 500ms,";
    let name = "wait";
    duration(&text)
        .filter(|wait| *wait <= WAIT_MAX)
        .ok_or(Refusal::Parameter { name, expected })
}

/// Whole seconds, with or without `s`, or milliseconds.
fn duration(text: &str) -> Option<Duration> {
    let number = |digits: &str| {
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse().ok().filter(|_| plain)
    };
    if let Some(digits) = text.strip_suffix("ms") {
        return number(digits).map(Duration::from_millis);
    }
    number(text.strip_suffix('s').unwrap_or(text)).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_whole_seconds_or_milliseconds() {
        for (text, millis) in [
            ("0", 0),
            ("0ms", 0),
            ("30", 30_000),
            ("30s", 30_000),
            ("500ms", 500),
            ("007s", 7_000),
        ] {
            assert_eq!(duration(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in [
            "",
            "s",
            "ms",
            "-1",
            "+1",
            "1.5s",
            "1m",
            " 1",
            "1 s",
            "99999999999999999999",
        ] {
            assert_eq!(duration(text), None, "{text}");
        }
    }
}
