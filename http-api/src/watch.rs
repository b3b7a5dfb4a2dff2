//! Following the changes: long polls and streams of events. They share the encoded changes and hold no queue: each reader
//! is a place in the changes, and what it is sent is put together when it is asked for. The timers are here.

use std::time::Duration;

use bytes::Bytes;
use eureka_registry_core::Cursor;
use metrics::Gauge;

use crate::respond::Api;

mod events;
mod pages;
mod poll;
mod told;

pub(crate) use events::{Events, Reset};
pub(crate) use pages::Text;
pub(crate) use poll::{LongPoll, Question};
pub(crate) use told::Forms;

/// The longest that a long poll may wait.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(60);
/// How long it waits unless it says so.
pub(crate) const WAIT: Duration = Duration::from_secs(30);

/// The media type of what is not events.
const JSON: &str = "application/json";
/// Changes taken from the feed at once.
const PORTION: usize = 64;
/// Changes or instances that one reader looks at before others get their turn.
const LOOKED_AT_MAX: usize = 4096;

/// One who follows, as the gauge counts them: until it is dropped.
#[derive(Debug)]
struct Watching(Gauge);

impl Watching {
    fn new(api: &Api) -> Self {
        let gauge = api.figures().watchers.clone();
        gauge.increment(1.0);
        Self(gauge)
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

/// The JSON of a long poll's answer: changes, and the cursor for the next question. It says if lists show other regions,
/// too: of those the feed does not tell.
pub(crate) fn changes_text(api: &Api, cursor: Cursor, changes: &[Bytes]) -> Vec<u8> {
    let len: usize = changes.iter().map(|change| change.len() + 1).sum();
    let mut text = Vec::with_capacity(len + 80);
    let regions = api.config().regions.as_ref();
    let remote = regions.is_some_and(|regions| regions.rules().fallback);
    let remote = if remote { "\"remote\":true," } else { "" };
    text.extend_from_slice(format!("{{\"cursor\":\"{cursor}\",{remote}\"changes\":[").as_bytes());
    for (position, change) in changes.iter().enumerate() {
        if position > 0 {
            text.push(b',');
        }
        text.extend_from_slice(change);
    }
    text.extend_from_slice(b"]}");
    text
}

/// The JSON for who has lost its place: where to go on after reading the instances.
fn lost_text(cursor: Cursor) -> Vec<u8> {
    format!("{{\"cursor\":\"{cursor}\"}}").into_bytes()
}
