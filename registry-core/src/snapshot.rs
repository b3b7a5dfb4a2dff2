//! An immutable view of the whole registry, frozen at one version.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::model::{Action, Instance, InstanceKey, LeaseTerms, Status};
use crate::time::{Mono, Wall};

/// One instance with its lease, as readers see it.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaseView {
    /// The instance, with its effective status.
    pub instance: Arc<Instance>,
    /// What last happened to it.
    pub action: Action,
    /// When that was.
    pub last_updated: Wall,
    /// Its lease.
    pub lease: LeaseTimes,
    /// Whether it is the node that answers.
    pub coordinating: bool,
}

impl LeaseView {
    /// Its key.
    pub fn key(&self) -> InstanceKey {
        self.instance.key()
    }
}

/// A lease as readers see it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LeaseTimes {
    /// Interval and duration.
    pub terms: LeaseTerms,
    /// When it was registered, last.
    pub registered: Wall,
    /// When it was renewed, last (one duration ahead of that where Java's way is configured).
    pub renewed: Wall,
    /// When it was evicted or cancelled; zero if it was not.
    pub evicted: Wall,
    /// When the instance was first UP; zero if never.
    pub service_up: Wall,
}

/// Up to 128 consecutive instances in the order of their keys. Never changes: a change makes a new page with a new number.
#[derive(Debug)]
pub struct Page {
    number: u64,
    instances: Vec<Arc<LeaseView>>,
    frozen: Mono,
}

impl Page {
    /// Unique among all pages of this registry: encoded copies can be kept by it.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The instances.
    pub fn instances(&self) -> &[Arc<LeaseView>] {
        &self.instances
    }
}

/// Whether lists may be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reads {
    /// They may.
    Open,
    /// They are held back: single instances and every write are served all the same.
    Held(Hold),
}

/// Why reads are held.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Hold {
    /// The node has not been opened yet.
    Starting,
    /// It started with nothing and waits for the clients' heartbeats to fill it.
    EmptySync,
}

/// An application as a run of consecutive instances.
#[derive(Clone, Copy, Debug)]
pub struct Application<'a> {
    snapshot: &'a Snapshot,
    first: (usize, usize),
    len: usize,
}

/// Everything a reader needs, frozen together. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Snapshot {
    frozen: Arc<Frozen>,
}

#[derive(Debug)]
struct Frozen {
    version: u64,
}

impl Snapshot {
    /// The version of the registry it shows: a count of changes since boot; heartbeats do not count.
    pub fn version(&self) -> u64 {
        self.frozen.version
    }

    /// Whether lists may be read.
    pub fn reads(&self) -> Reads {
        unimplemented!()
    }

    /// How many instances there are.
    pub fn len(&self) -> usize {
        unimplemented!()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All instances in the order of their keys, by pages. An application may begin and end inside a page.
    pub fn pages(&self) -> &[Arc<Page>] {
        unimplemented!()
    }

    /// All instances, in order.
    pub fn instances(&self) -> impl Iterator<Item = &Arc<LeaseView>> {
        self.pages().iter().flat_map(|page| page.instances())
    }

    /// The applications, by name.
    pub fn applications(&self) -> impl Iterator<Item = Application<'_>> {
        core::iter::from_fn(|| unimplemented!())
    }

    /// The application of this (upper-case) name, `None` if it has no instance.
    pub fn application(&self, _name: &str) -> Option<Application<'_>> {
        unimplemented!()
    }

    /// One instance as this snapshot has it (its lease times may be old: see `Config::listed_lease_age`).
    pub fn instance(&self, _key: &InstanceKey) -> Option<&Arc<LeaseView>> {
        unimplemented!()
    }

    /// Instances with this id, in the order of their applications.
    pub fn by_id(&self, _id: &str) -> Vec<Arc<LeaseView>> {
        unimplemented!()
    }

    /// Instances of which one element of the comma-separated `vipAddress` is exactly this, in the order of their keys.
    pub fn by_vip(&self, _vip: &str) -> Vec<Arc<LeaseView>> {
        unimplemented!()
    }

    /// The same for `secureVipAddress`.
    pub fn by_secure_vip(&self, _vip: &str) -> Vec<Arc<LeaseView>> {
        unimplemented!()
    }

    /// How many instances have each status, in the order of [`Status::ALL`].
    pub fn counts(&self) -> [usize; 5] {
        unimplemented!()
    }

    /// The reconcile hash of all instances: `STATUS_count_` for each status that occurs, by name.
    pub fn hash(&self) -> alloc::string::String {
        reconcile_hash(self.counts())
    }

    /// Whatever changed within the retention, each instance once in its latest state, cancelled ones as
    /// [`Action::Deleted`]; in the order of their keys.
    pub fn delta(&self) -> &[Arc<LeaseView>] {
        unimplemented!()
    }
}

/// The reconcile hash that Eureka clients compute: `STATUS_count_` for each status that occurs, by name.
pub fn reconcile_hash(counts: [usize; 5]) -> alloc::string::String {
    use core::fmt::Write as _;
    let mut hash = alloc::string::String::new();
    for (status, count) in Status::ALL.into_iter().zip(counts) {
        if count > 0 {
            write!(hash, "{status}_{count}_").expect("writing to a string cannot fail");
        }
    }
    hash
}
impl<'a> Application<'a> {
    /// Its name.
    pub fn name(&self) -> &'a Arc<str> {
        unimplemented!()
    }

    /// Its instances, by id.
    pub fn instances(&self) -> impl ExactSizeIterator<Item = &'a Arc<LeaseView>> + use<'a> {
        let _ = (self.snapshot, self.first, self.len);
        core::iter::empty()
    }
}
