//! The lists of the newest snapshot that anybody asked for. Everything in one answer comes from one of them.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use eureka_registry_core::wire::Codec;
use eureka_registry_core::{Mono, Snapshot};
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, VARY};
use http::{HeaderMap, HeaderValue};
use parking_lot::{Mutex, RwLock};

use crate::encoder::{Encoder, Form};
use crate::sequence::{Sequence, Version};

/// `versions__delta` of every full list, as in Java.
const FULL_VERSION: Version = Version::Fixed("1");

/// Keeps the lists of one snapshot.
#[derive(Debug)]
pub(crate) struct Pages {
    encoder: Arc<Encoder>,
    current: RwLock<Option<Arc<Listing>>>,
    /// Deltas made so far.
    deltas: Arc<AtomicU64>,
}

/// The list and the delta of one snapshot, in every codec that was asked for.
#[derive(Debug)]
pub(crate) struct Listing {
    encoder: Arc<Encoder>,
    snapshot: Snapshot,
    hash: Arc<str>,
    /// Equal for equal lists, lease times aside.
    version: Arc<str>,
    /// By form; every answer that shows these lists, or a part of them, begins with a copy.
    heads: [OnceLock<HeaderMap>; Form::COUNT],
    full: Late,
    delta: Late,
    /// Deltas made so far.
    deltas: Arc<AtomicU64>,
}

/// A list that is made when somebody asks for it, out of what is encoded of the last one that was made: the reader of a delta
/// does not pay for pages that it is not sent.
#[derive(Debug, Default)]
struct Late {
    made: OnceLock<Arc<Sequence>>,
    before: Mutex<Option<Before>>,
}

/// The last list that was made, and the edition of the registry that it shows.
#[derive(Clone, Debug)]
struct Before {
    edition: u64,
    list: Arc<Sequence>,
}

impl Pages {
    pub(crate) fn new(encoder: Arc<Encoder>) -> Self {
        Self {
            encoder,
            current: RwLock::new(None),
            deltas: Arc::default(),
        }
    }

    /// The lists of `snapshot`, with every encoded page of those before that still stands. `version` names what they show.
    pub(crate) fn listing(
        &self,
        now: Mono,
        snapshot: &Snapshot,
        version: impl FnOnce() -> Arc<str>,
    ) -> Arc<Listing> {
        if let Some(listing) = &*self.current.read()
            && listing.shows(snapshot)
        {
            return Arc::clone(listing);
        }
        let mut current = self.current.write();
        let (listing, old) = match &*current {
            Some(listing) if listing.shows(snapshot) => return Arc::clone(listing),
            before => {
                let listing = Arc::new(self.made(snapshot, version(), before.as_deref()));
                (Arc::clone(&listing), current.replace(listing))
            }
        };
        drop(current);
        // Frees encoded pages, perhaps many: not under the lock.
        drop(old);
        listing.bring_up_to_date(now);
        listing
    }

    fn made(&self, snapshot: &Snapshot, name: Arc<str>, before: Option<&Listing>) -> Listing {
        let late = |of: fn(&Listing) -> &Late| {
            let after = |listing| Late::after(of(listing), listing.snapshot.edition());
            before.map(after).unwrap_or_default()
        };
        Listing {
            encoder: Arc::clone(&self.encoder),
            hash: snapshot.hash().into(),
            version: name,
            heads: Default::default(),
            full: late(|listing| &listing.full),
            delta: late(|listing| &listing.delta),
            deltas: Arc::clone(&self.deltas),
            snapshot: snapshot.clone(),
        }
    }
}

impl Late {
    /// In the place of `late`, which was of this edition.
    fn after(late: &Self, edition: u64) -> Self {
        // In this order: while a list is being made, the one before it is still there.
        let before = late.before.lock().clone();
        let before = match late.made.get() {
            Some(list) => Some(Before {
                edition,
                list: Arc::clone(list),
            }),
            None => before,
        };
        Self {
            made: OnceLock::new(),
            before: Mutex::new(before),
        }
    }

    /// Whether the last one that was made holds on to pages that may all have changed since. Making it anew takes as long as
    /// there are pages, so that is paid by as many changes.
    fn is_old(&self, edition: u64) -> bool {
        let before = self.before.lock();
        before
            .as_ref()
            .is_some_and(|Before { edition: then, list }| edition.abs_diff(*then) > list.page_count() as u64)
    }

    fn get(&self, make: impl FnOnce(Option<&Sequence>) -> Sequence) -> &Arc<Sequence> {
        if let Some(list) = self.made.get() {
            return list;
        }
        let list = self.made.get_or_init(|| {
            let before = self.before.lock().clone();
            Arc::new(make(before.as_ref().map(|before| &*before.list)))
        });
        let before = self.before.lock().take();
        // Frees encoded pages, perhaps many: not under the lock.
        drop(before);
        list
    }
}

impl Listing {
    /// Whether these are the lists of that very snapshot: they can differ in lease times within one version.
    fn shows(&self, snapshot: &Snapshot) -> bool {
        self.snapshot.edition() == snapshot.edition()
    }

    /// Makes lists of which the last made one holds on to much that is gone.
    fn bring_up_to_date(&self, now: Mono) {
        if self.full.is_old(self.snapshot.edition()) {
            self.full(now);
        }
        if self.delta.is_old(self.snapshot.edition()) {
            self.delta();
        }
    }

    /// All instances. What is encoded in forms that nobody asks for any more is not taken over from the list before.
    pub(crate) fn full(&self, now: Mono) -> &Arc<Sequence> {
        let make = |before: Option<&Sequence>| {
            let unused = self.encoder.unused(now);
            Sequence::new(
                &self.encoder,
                FULL_VERSION,
                &self.hash,
                self.snapshot.pages(),
                before,
                &unused,
            )
        };
        self.full.get(make)
    }

    /// What changed lately.
    pub(crate) fn delta(&self) -> &Arc<Sequence> {
        let pages = self.snapshot.delta_pages();
        let version = || Version::Counted(Arc::clone(&self.deltas));
        self.delta
            .get(|before| Sequence::new(&self.encoder, version(), &self.hash, pages, before, &[]))
    }

    /// The headers of an answer in this form. There is no `ETag` if the node's id cannot stand in a header.
    pub(crate) fn head(&self, node_id: &str, form: Form) -> &HeaderMap {
        self.heads[form.index()].get_or_init(|| {
            let mut head = HeaderMap::new();
            head.insert(CONTENT_TYPE, HeaderValue::from_static(form.codec.content_type()));
            if form.gzip {
                head.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            }
            head.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
            head.insert(
                VARY,
                HeaderValue::from_static("Accept, Accept-Encoding, X-Eureka-Accept"),
            );
            let codec = match form.codec {
                Codec::CompactJson => "cjson",
                Codec::CompactXml => "cxml",
                Codec::Json => "json",
                Codec::Xml => "xml",
            };
            let tag = format!("W/\"{node_id}-{}-{codec}\"", self.version);
            if let Ok(tag) = HeaderValue::try_from(tag) {
                head.insert(ETAG, tag);
            }
            head
        })
    }

    /// The snapshot they show.
    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn a_list_made_meanwhile_does_not_lose_what_is_encoded() {
        let encoder = Arc::new(Encoder::new(&Config::new("node")));
        let empty = |before: Option<&Sequence>| {
            Sequence::new(
                &encoder,
                FULL_VERSION,
                &"".into(),
                std::iter::empty(),
                before,
                &[],
            )
        };
        let first = Late::default();
        first.get(|_| empty(None));
        let second = Late::after(&first, 1);
        let mut third = None;
        second.get(|before| {
            // Another reader comes with a newer snapshot.
            third = Some(Late::after(&second, 2));
            empty(before)
        });
        let third = third.expect("made above");
        let had = third.get(|before| {
            assert!(before.is_some(), "the first list was there");
            empty(before)
        });
        assert!(third.before.lock().is_none(), "{had:?} is the last one made");
    }
}
