//! Somebody else's registry, kept as it is told: what clients and readers of other regions hold.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use crate::listing::Listing;
use crate::model::InstanceKey;
use crate::snapshot::{LeaseView, Reads, Snapshot};

/// A copy of a registry: no leases and no rules, only what was told, frozen as a [`Snapshot`] whenever somebody asks.
///
/// ```
/// use eureka_registry_core::wire::{Format, read_applications};
/// use eureka_registry_core::Mirror;
///
/// let list = br#"{"applications":{"application":[{"name":"ORDERS","instance":[{"app":"ORDERS","hostName":"h1",
///     "ipAddr":"10.0.0.1","status":"UP","dataCenterInfo":{"name":"MyOwn"}}]}]}}"#;
/// let mut mirror = Mirror::new();
/// for view in read_applications(Format::Json, list)?.instances {
///     mirror.put(view);
/// }
/// assert_eq!(mirror.snapshot().hash(), "UP_1_");
/// # Ok::<(), eureka_registry_core::wire::DecodeError>(())
/// ```
#[derive(Debug)]
pub struct Mirror {
    listing: Listing,
    /// How many instances each application has.
    applications: BTreeMap<Arc<str>, usize>,
    version: u64,
}

impl Default for Mirror {
    fn default() -> Self {
        Self::new()
    }
}

impl Mirror {
    /// Nothing.
    pub fn new() -> Self {
        Self {
            listing: Listing::new(),
            applications: BTreeMap::new(),
            version: 0,
        }
    }

    /// Lists an instance, or its new state.
    pub fn put(&mut self, view: LeaseView) {
        let key = Arc::new(view.key());
        self.version += 1;
        if !self.listing.has(&key) {
            *self.applications.entry(Arc::clone(key.app())).or_default() += 1;
        }
        self.listing.put(&key, view, false);
    }

    /// Lists an instance no more; false if it was not listed.
    pub fn remove(&mut self, key: &InstanceKey) -> bool {
        if !self.listing.has(key) {
            return false;
        }
        self.version += 1;
        self.listing.take(key, None);
        if let Some(count) = self.applications.get_mut(key.app()) {
            *count -= 1;
            if *count == 0 {
                self.applications.remove(key.app());
            }
        }
        true
    }

    /// Puts a state into the delta alone.
    pub fn note(&mut self, view: LeaseView) {
        self.version += 1;
        self.listing.note(view);
    }

    /// Takes an instance out of the delta.
    pub fn forget(&mut self, key: &InstanceKey) {
        self.version += 1;
        self.listing.leave_delta(key);
    }

    /// How many instances have each status, in the order of [`Status::ALL`](crate::Status::ALL).
    pub fn counts(&self) -> [usize; 5] {
        self.listing.counts()
    }

    /// What it is now. Its version counts the changes of this copy; its reads are open. Dear only after a change, and then
    /// by what changed.
    pub fn snapshot(&mut self) -> Snapshot {
        self.listing.dispose();
        self.listing
            .snapshot(self.version, self.applications.len(), Reads::Open)
    }
}
