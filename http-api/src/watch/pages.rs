//! The registry as events, for readers who begin. Many come at once when a node was started again, so pages that
//! nothing filters are encoded once for all of them.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use eureka_registry_core::{LeaseView, Page, Snapshot};
use parking_lot::Mutex;

use crate::bodies::ListedBody;
use crate::encoder::Encoder;

/// Finds the encoded pages that are in use.
#[derive(Debug)]
pub(crate) struct EventPages {
    encoder: Arc<Encoder>,
    /// Of the newest snapshot that a reader began with; only readers keep it.
    newest: Mutex<Weak<Listed>>,
}

/// A snapshot, page by page.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) snapshot: Snapshot,
    pub(super) pages: Box<[Arc<Events>]>,
}

/// A page and, once somebody needed them, its instances as events.
#[derive(Debug)]
pub(super) struct Events {
    page: Arc<Page>,
    encoder: Arc<Encoder>,
    text: OnceLock<Bytes>,
}

impl EventPages {
    pub(crate) fn new(encoder: Arc<Encoder>) -> Self {
        Self {
            encoder,
            newest: Mutex::default(),
        }
    }

    /// The pages of `snapshot`, with what is encoded already of those that other readers still read.
    pub(super) fn listed(&self, snapshot: Snapshot) -> Arc<Listed> {
        let mut newest = self.newest.lock();
        let before = newest.upgrade();
        if let Some(before) = &before
            && before.snapshot.edition() == snapshot.edition()
        {
            return Arc::clone(before);
        }
        let known = before.iter().flat_map(|before| &before.pages);
        let mut known: HashMap<u64, &Arc<Events>> =
            known.map(|events| (events.page.number(), events)).collect();
        let pages = snapshot.pages().map(|page| match known.remove(&page.number()) {
            Some(events) => Arc::clone(events),
            None => Arc::new(Events {
                page: Arc::clone(page),
                encoder: Arc::clone(&self.encoder),
                text: OnceLock::new(),
            }),
        });
        let listed = Arc::new(Listed {
            pages: pages.collect(),
            snapshot,
        });
        *newest = Arc::downgrade(&listed);
        drop(newest);
        // May be the last to hold the pages before: not under the lock.
        drop(before);
        listed
    }
}

impl Events {
    /// The instances.
    pub(super) fn instances(&self) -> &[Arc<LeaseView>] {
        self.page.instances()
    }

    /// All of them as events, and whether they had to be encoded.
    pub(super) fn text(&self) -> (Bytes, bool) {
        if let Some(text) = self.text.get() {
            return (text.clone(), false);
        }
        self.encoder.figures.pages_encoded.increment(1);
        let mut text = Vec::new();
        for view in self.instances() {
            write(view, &mut text);
        }
        text.shrink_to_fit();
        let text = Bytes::from(text);
        if self.encoder.reserve(text.len()) && self.text.set(text.clone()).is_err() {
            self.encoder.release(text.len());
        }
        (text, true)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        if let Some(text) = self.text.get() {
            self.encoder.release(text.len());
        }
    }
}

/// Appends an instance as an event.
pub(super) fn write(view: &LeaseView, text: &mut Vec<u8>) {
    text.extend_from_slice(b"event: instance\ndata: ");
    // On one line: JSON escapes whatever would end it.
    serde_json::to_writer(&mut *text, &ListedBody::new(view)).expect("plain structs are JSON");
    text.extend_from_slice(b"\n\n");
}
