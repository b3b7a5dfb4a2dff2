//! The leases evicted since the last update and not seen again.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::BuildHasher as _;
use core::mem;

use crate::hash::Keyed;
use crate::model::InstanceKey;
use crate::table::Table;

/// At most this many are remembered by name between two updates; of more, only the number is.
const LIMIT: usize = 250_000;

/// Who they are, with the zone they were in.
#[derive(Debug)]
pub(super) struct Evicted {
    keyed: Keyed,
    entries: Table<(InstanceKey, Arc<str>)>,
    /// Forgotten, to be dropped a few at a time.
    forgotten: Vec<Table<(InstanceKey, Arc<str>)>>,
}

impl Evicted {
    /// None.
    pub(super) fn new(keyed: Keyed) -> Self {
        Self {
            keyed,
            entries: Table::new(),
            forgotten: Vec::new(),
        }
    }

    /// Adds one; false if there are too many to remember. It was not there: it was held meanwhile.
    pub(super) fn add(&mut self, key: &InstanceKey, zone: &str) -> bool {
        let fits = self.entries.len() < LIMIT;
        if fits {
            let hash = self.keyed.hash_one(key);
            self.entries.insert(hash, (key.clone(), Arc::from(zone)));
        }
        fits
    }

    /// Takes one out, and tells the zone it was in.
    pub(super) fn remove(&mut self, key: &InstanceKey) -> Option<Arc<str>> {
        if self.entries.len() == 0 {
            return None;
        }
        let hash = self.keyed.hash_one(key);
        let (_, zone) = self.entries.remove(hash, |(other, _)| other == key)?;
        Some(zone)
    }

    /// Forgets all of them.
    pub(super) fn forget(&mut self) {
        if self.entries.len() > 0 {
            self.forgotten.push(mem::replace(&mut self.entries, Table::new()));
        }
    }

    /// Some of those forgotten, for the last time.
    pub(super) fn dispose(&mut self) -> impl Iterator<Item = (InstanceKey, Arc<str>)> + use<> {
        let part = self.forgotten.last_mut().and_then(Table::dismantle);
        if part.is_none() {
            self.forgotten.pop();
        }
        part.into_iter().flatten()
    }
}
