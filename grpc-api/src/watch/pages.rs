//! The pages of a snapshot as messages: made once for all readers who are told everything.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use eureka_registry_core::{CachedPage, LeaseView};
use prost::Message as _;

use crate::convert;
use crate::encoded::Encoded;
use crate::proto;
use crate::proto::watch_response::Event;

/// A message is full when its instances have this many bytes.
pub(super) const MESSAGE_BYTES: usize = 64 * 1024;
/// At most this many bytes of messages are kept for further readers.
const KEPT_BYTES: usize = 64 << 20;

/// How many bytes of messages are kept.
#[derive(Debug, Default)]
pub(crate) struct Kept(AtomicUsize);

/// The messages of a page, once somebody needed them. Their bytes count as kept until it is dropped.
#[derive(Debug)]
pub(crate) struct Messages {
    kept: Arc<Kept>,
    messages: OnceLock<Arc<[Encoded]>>,
}

impl Messages {
    pub(super) fn new(kept: &Arc<Kept>) -> Self {
        Self {
            kept: Arc::clone(kept),
            messages: OnceLock::new(),
        }
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        if let Some(messages) = self.messages.get() {
            self.kept.release(bytes(messages));
        }
    }
}

impl Kept {
    fn reserve(&self, len: usize) -> bool {
        let fits = self.0.fetch_add(len, Ordering::Relaxed) + len <= KEPT_BYTES;
        if !fits {
            self.release(len);
        }
        fits
    }

    fn release(&self, len: usize) {
        self.0.fetch_sub(len, Ordering::Relaxed);
    }
}

/// The messages of a page, at least one.
pub(super) fn messages(CachedPage { page, encoded }: &CachedPage<Messages>) -> Arc<[Encoded]> {
    if let Some(messages) = encoded.messages.get() {
        return Arc::clone(messages);
    }
    let messages = encode(page.instances());
    let len = bytes(&messages);
    if encoded.kept.reserve(len) && encoded.messages.set(Arc::clone(&messages)).is_err() {
        encoded.kept.release(len);
    }
    messages
}

fn encode<'a>(views: impl Iterator<Item = &'a Arc<LeaseView>>) -> Arc<[Encoded]> {
    let mut messages = Vec::new();
    let mut instances = Vec::new();
    let mut len = 0;
    for view in views {
        let instance = convert::instance(&view.instance);
        len += instance.encoded_len();
        instances.push(instance);
        if len >= MESSAGE_BYTES {
            messages.push(message(std::mem::take(&mut instances)));
            len = 0;
        }
    }
    if !instances.is_empty() {
        messages.push(message(instances));
    }
    messages.into()
}

/// Some instances of a snapshot.
pub(super) fn message(instances: Vec<proto::Instance>) -> Encoded {
    Encoded::new(&proto::WatchResponse {
        cursor: String::new(),
        event: Some(Event::SnapshotPage(proto::SnapshotPage { instances })),
    })
}

fn bytes(messages: &[Encoded]) -> usize {
    messages.iter().map(prost::Message::encoded_len).sum()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use eureka_registry_core::{Config, Instance, Now, Origin, PageCache, Registry};

    use super::*;

    #[test]
    fn all_readers_are_told_the_same_bytes_and_nothing_is_kept_for_none() {
        let now = Now::default();
        let mut registry = Registry::new(now, Config::default());
        let instance = Instance::new("a", "1", "host", "10.0.0.1");
        registry.register(now, Origin::Client, Arc::new(instance), Duration::ZERO);
        let (cache, kept) = (PageCache::default(), Arc::default());
        let begin = |snapshot| cache.pages(snapshot, || Messages::new(&kept));
        let (one, other) = (begin(registry.snapshot(now)), begin(registry.snapshot(now)));
        let (told, told_other) = (messages(&one.pages()[0]), messages(&other.pages()[0]));
        assert!(Arc::ptr_eq(&told, &told_other));
        assert_eq!(kept.0.load(Ordering::Relaxed), bytes(&told));
        drop((one, other));
        assert_eq!(kept.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_does_not_fit_is_made_for_each_reader_alone() {
        let kept = Kept::default();
        assert!(kept.reserve(KEPT_BYTES));
        assert!(!kept.reserve(1));
        kept.release(1);
        assert!(kept.reserve(1));
    }
}
