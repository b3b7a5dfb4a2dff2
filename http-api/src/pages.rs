//! The lists of the newest snapshot that anybody asked for. Everything in one answer comes from one of them.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use eureka_registry_core::Snapshot;
use eureka_registry_core::wire::Codec;
use http::HeaderValue;
use parking_lot::RwLock;

use crate::encoder::Encoder;
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
    snapshot: Snapshot,
    /// Equal for equal lists, lease times aside.
    version: Arc<str>,
    /// By codec; of every request that list is answered with.
    tags: [OnceLock<Option<HeaderValue>>; 4],
    pub(crate) full: Arc<Sequence>,
    pub(crate) delta: Arc<Sequence>,
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
    pub(crate) fn listing(&self, snapshot: &Snapshot, version: impl FnOnce() -> Arc<str>) -> Arc<Listing> {
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
        listing
    }

    fn made(&self, snapshot: &Snapshot, name: Arc<str>, before: Option<&Listing>) -> Listing {
        let encoder = &self.encoder;
        let hash: Arc<str> = snapshot.hash().into();
        let full_before = before.map(|listing| &*listing.full);
        let delta_before = before.map(|listing| &*listing.delta);
        let full = Sequence::new(encoder, FULL_VERSION, &hash, snapshot.pages(), full_before);
        let version = Version::Counted(Arc::clone(&self.deltas));
        let delta = Sequence::new(encoder, version, &hash, snapshot.delta_pages(), delta_before);
        Listing {
            snapshot: snapshot.clone(),
            version: name,
            tags: Default::default(),
            full: Arc::new(full),
            delta: Arc::new(delta),
        }
    }
}

impl Listing {
    /// Whether these are the lists of that very snapshot: they can differ in lease times within one version.
    fn shows(&self, snapshot: &Snapshot) -> bool {
        self.snapshot.edition() == snapshot.edition()
    }

    /// The `ETag` of these lists; there is none if the node's id cannot stand in a header.
    pub(crate) fn tag(&self, node_id: &str, codec: Codec) -> Option<&HeaderValue> {
        let tag = self.tags[codec as usize].get_or_init(|| {
            let name = match codec {
                Codec::CompactJson => "cjson",
                Codec::CompactXml => "cxml",
                Codec::Json => "json",
                Codec::Xml => "xml",
            };
            let tag = format!("W/\"{node_id}-{}-{name}\"", self.version);
            HeaderValue::try_from(tag).ok()
        });
        tag.as_ref()
    }

    /// The snapshot they show.
    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }
}
