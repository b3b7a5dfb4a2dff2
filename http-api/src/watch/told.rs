//! What followers are told of a change: encoded by the first of them, and the same bytes for all others.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use eureka_registry_core::{Cursor, Filter, Seen, Told};

use crate::bodies::ChangeBody;
use crate::encoder::Encoder;

/// The encoded forms of one change, by what a filter lets through of it.
#[derive(Debug, Default)]
pub(crate) struct Forms {
    whole: OnceLock<Kept>,
    entered: OnceLock<Kept>,
    left: OnceLock<Kept>,
}

/// A change as an event; its JSON is a part of that.
#[derive(Clone, Debug)]
pub(super) struct Form {
    event: Bytes,
    json: Range<usize>,
}

/// A form whose bytes count as kept until it is dropped.
#[derive(Debug)]
struct Kept {
    form: Form,
    encoder: Arc<Encoder>,
}

/// The change as this reader is told it; `None` if the filter lets nothing through. `cursor` is the place behind it.
pub(super) fn form(
    encoder: &Arc<Encoder>,
    told: &Told<Forms>,
    filter: Option<&Filter>,
    cursor: Cursor,
) -> Option<Form> {
    let seen = filter.map_or(Seen::Whole, |filter| filter.sees(&told.change));
    let kept = match seen {
        Seen::Hidden => return None,
        Seen::Whole => &told.encoded.whole,
        Seen::Entered => &told.encoded.entered,
        Seen::Left => &told.encoded.left,
    };
    if let Some(kept) = kept.get() {
        return Some(kept.form.clone());
    }
    let form = Form::new(&ChangeBody::new(&told.change, seen)?, cursor);
    if encoder.reserve(form.event.len()) {
        // Where another reader was quicker, this one's bytes stop counting with it.
        let _ = kept.set(Kept {
            form: form.clone(),
            encoder: Arc::clone(encoder),
        });
    }
    Some(form)
}

impl Form {
    fn new(change: &ChangeBody<'_>, cursor: Cursor) -> Self {
        let mut text = format!("id: {cursor}\nevent: change\ndata: ").into_bytes();
        let start = text.len();
        // On one line: JSON escapes whatever would end it.
        serde_json::to_writer(&mut text, change).expect("plain structs are JSON");
        let json = start..text.len();
        text.extend_from_slice(b"\n\n");
        text.shrink_to_fit();
        Self {
            event: text.into(),
            json,
        }
    }

    /// As an event, with the blank line that ends it.
    pub(super) fn event(self) -> Bytes {
        self.event
    }

    /// As JSON.
    pub(super) fn json(&self) -> Bytes {
        self.event.slice(self.json.clone())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.encoder.release(self.form.event.len());
    }
}
