//! The registry as events, for readers who begin. Pages that nothing filters are encoded once for all of them.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use eureka_registry_core::{CachedPage, LeaseView};

use crate::bodies::ListedBody;
use crate::encoder::Encoder;

/// The instances of a page as events, once somebody needed them. Their bytes count as kept until it is dropped.
#[derive(Debug)]
pub(crate) struct Text {
    encoder: Arc<Encoder>,
    events: OnceLock<Bytes>,
}

impl Text {
    pub(super) fn new(encoder: &Arc<Encoder>) -> Self {
        Self {
            encoder: Arc::clone(encoder),
            events: OnceLock::new(),
        }
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        if let Some(events) = self.events.get() {
            self.encoder.release(events.len());
        }
    }
}

/// A page as events, and whether it had to be encoded.
pub(super) fn events(CachedPage { page, encoded }: &CachedPage<Text>) -> (Bytes, bool) {
    if let Some(events) = encoded.events.get() {
        return (events.clone(), false);
    }
    encoded.encoder.figures.pages_encoded.increment(1);
    let mut text = Vec::new();
    for view in page.instances() {
        write(view, &mut text);
    }
    text.shrink_to_fit();
    let text = Bytes::from(text);
    if encoded.encoder.reserve(text.len()) && encoded.events.set(text.clone()).is_err() {
        encoded.encoder.release(text.len());
    }
    (text, true)
}

/// Appends an instance as an event.
pub(super) fn write(view: &LeaseView, text: &mut Vec<u8>) {
    text.extend_from_slice(b"event: instance\ndata: ");
    // On one line: JSON escapes whatever would end it.
    serde_json::to_writer(&mut *text, &ListedBody::new(view)).expect("plain structs are JSON");
    text.extend_from_slice(b"\n\n");
}
