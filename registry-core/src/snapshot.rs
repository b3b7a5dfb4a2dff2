//! An immutable view of the whole registry, frozen at one version.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::listing::{Address, Lists, listed};
use crate::model::{Action, Instance, InstanceKey, LeaseTerms, Status};
use crate::pages::{Page, Pages, Place};
use crate::sorted::Sought;
use crate::time::Wall;

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
    name: &'a Arc<str>,
    first: Place,
    len: usize,
}

/// Everything a reader needs, frozen together. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Snapshot {
    frozen: Arc<Frozen>,
}

#[derive(Debug)]
pub(crate) struct Frozen {
    pub(crate) version: u64,
    pub(crate) edition: u64,
    pub(crate) reads: Reads,
    pub(crate) applications: usize,
    pub(crate) instances: Pages<Arc<LeaseView>>,
    pub(crate) ids: Pages<Arc<InstanceKey>>,
    pub(crate) vips: Pages<Address>,
    pub(crate) delta: Pages<Arc<LeaseView>>,
    pub(crate) counts: [usize; 5],
}

impl Snapshot {
    pub(crate) fn new(frozen: Frozen) -> Self {
        Self {
            frozen: Arc::new(frozen),
        }
    }

    /// What is in it, if nobody else holds it.
    pub(crate) fn unshared(self) -> Option<Frozen> {
        Arc::into_inner(self.frozen)
    }

    /// The version of the registry it shows: a count of changes since boot; heartbeats do not count.
    pub fn version(&self) -> u64 {
        self.frozen.version
    }

    /// Counts whatever a snapshot may show differently from the one before: changes, but also what leaves the delta, lease
    /// times taken again, and whether lists may be read. Equal editions are equal snapshots.
    pub fn edition(&self) -> u64 {
        self.frozen.edition
    }

    /// Whether lists may be read.
    pub fn reads(&self) -> Reads {
        self.frozen.reads
    }

    /// How many instances there are.
    pub fn len(&self) -> usize {
        self.frozen.instances.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many applications there are.
    pub fn application_count(&self) -> usize {
        self.frozen.applications
    }

    /// All instances in the order of their keys, by pages. An application may begin and end inside a page.
    pub fn pages(&self) -> impl Iterator<Item = &Arc<Page>> {
        self.frozen.instances.pages()
    }

    /// All instances, in order.
    pub fn instances(&self) -> impl Iterator<Item = &Arc<LeaseView>> {
        self.pages().flat_map(|page| page.instances())
    }

    /// The applications, by name.
    pub fn applications(&self) -> impl Iterator<Item = Application<'_>> {
        let mut next = Place::FIRST;
        core::iter::from_fn(move || {
            let name = &self.frozen.instances.entry(next)?.instance.app;
            let application = self.run(name, next);
            next = self.end(name);
            Some(application)
        })
    }

    /// The application of this (upper-case) name, `None` if it has no instance.
    pub fn application(&self, name: &str) -> Option<Application<'_>> {
        let (first, _) = self.frozen.instances.seek(&Sought::before(name));
        let app = &self.frozen.instances.entry(first)?.instance.app;
        (**app == *name).then(|| self.run(app, first))
    }

    /// One instance as this snapshot has it (its lease times may be old: see `Config::listed_lease_age`).
    pub fn instance(&self, key: &InstanceKey) -> Option<&Arc<LeaseView>> {
        let (place, found) = self.frozen.instances.seek(&listed(key));
        self.frozen.instances.entry(place).filter(|_| found)
    }

    /// All instances from the first one behind `after` on (from the very first for `None`), in order: for readers that
    /// come page by page.
    pub fn instances_after<'a>(
        &'a self,
        after: Option<&InstanceKey>,
    ) -> impl Iterator<Item = &'a Arc<LeaseView>> + use<'a> {
        let place = after.map_or(Place::FIRST, |key| {
            let behind = Sought::after([key.app(), key.id(), ""]);
            self.frozen.instances.seek(&behind).0
        });
        self.frozen.instances.iter_from(place)
    }

    /// Instances with this id, in the order of their applications.
    pub fn by_id(&self, id: &str) -> Vec<Arc<LeaseView>> {
        let ids = &self.frozen.ids;
        let (first, _) = ids.seek(&Sought::before(id));
        let keys = ids
            .iter_from(first)
            .map(|key| &**key)
            .take_while(|key| **key.id() == *id);
        self.views(keys)
    }

    /// Instances of which one element of the comma-separated `vipAddress` is exactly this, in the order of their keys.
    /// Only the first 32 elements of each are looked at.
    pub fn by_vip(&self, vip: &str) -> Vec<Arc<LeaseView>> {
        self.by_address(vip, |lists| lists.plain)
    }

    /// The same for `secureVipAddress`.
    pub fn by_secure_vip(&self, vip: &str) -> Vec<Arc<LeaseView>> {
        self.by_address(vip, |lists| lists.secure)
    }

    /// How many instances have each status, in the order of [`Status::ALL`].
    pub fn counts(&self) -> [usize; 5] {
        self.frozen.counts
    }

    /// The reconcile hash of all instances: `STATUS_count_` for each status that occurs, by name.
    pub fn hash(&self) -> String {
        reconcile_hash(self.counts())
    }

    /// Whatever changed within the retention, each instance once in its latest state, cancelled ones as
    /// [`Action::Deleted`]; in the order of their keys.
    pub fn delta(&self) -> Vec<Arc<LeaseView>> {
        let pages = self.delta_pages();
        pages.flat_map(|page| page.instances()).cloned().collect()
    }

    /// The same, by pages.
    pub fn delta_pages(&self) -> impl Iterator<Item = &Arc<Page>> {
        self.frozen.delta.pages()
    }

    /// What the delta has of one instance.
    pub fn delta_instance(&self, key: &InstanceKey) -> Option<&Arc<LeaseView>> {
        let (place, found) = self.frozen.delta.seek(&listed(key));
        self.frozen.delta.entry(place).filter(|_| found)
    }

    /// How many instances are in the delta.
    pub fn delta_len(&self) -> usize {
        self.frozen.delta.len()
    }

    fn by_address(&self, address: &str, is_in: impl Fn(Lists) -> bool) -> Vec<Arc<LeaseView>> {
        let vips = &self.frozen.vips;
        let (first, _) = vips.seek(&Sought::before(address));
        let entries = vips.iter_from(first).take_while(|entry| *entry.name == *address);
        let entries = entries.filter(|entry| is_in(entry.lists));
        self.views(entries.map(|entry| &*entry.key))
    }

    fn views<'a>(&self, keys: impl Iterator<Item = &'a InstanceKey>) -> Vec<Arc<LeaseView>> {
        keys.filter_map(|key| self.instance(key).cloned()).collect()
    }

    /// The application whose first instance is there.
    fn run<'a>(&'a self, name: &'a Arc<str>, first: Place) -> Application<'a> {
        Application {
            snapshot: self,
            name,
            first,
            len: self.frozen.instances.between(first, self.end(name)),
        }
    }

    /// The place behind the last instance of an application.
    fn end(&self, name: &str) -> Place {
        self.frozen.instances.seek(&Sought::behind(name)).0
    }
}

impl<'a> Application<'a> {
    /// Its name.
    pub fn name(&self) -> &'a Arc<str> {
        self.name
    }

    /// Its instances, by id; at least one.
    pub fn instances(&self) -> impl ExactSizeIterator<Item = &'a Arc<LeaseView>> + use<'a> {
        let mut rest = self.snapshot.frozen.instances.iter_from(self.first);
        (0..self.len).map(move |_| rest.next().expect("an application is as long as it was counted"))
    }
}

/// The reconcile hash that Eureka clients compute: `STATUS_count_` for each status that occurs, by name.
pub fn reconcile_hash(counts: [usize; 5]) -> String {
    use core::fmt::Write as _;
    let mut hash = String::new();
    for (status, count) in Status::ALL.into_iter().zip(counts) {
        if count > 0 {
            write!(hash, "{status}_{count}_").expect("writing to a string cannot fail");
        }
    }
    hash
}
