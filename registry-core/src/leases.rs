//! All leases: found by application and id, filed by when they are to be looked at, and those that have run out.
//!
//! No operation here costs more than a few steps, however many leases there are: tables grow a part at a time, leases
//! never move, and a due lease is taken from a bucket one at a time.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::BuildHasher as _;
use core::num::NonZeroU32;

use crate::hash::Keyed;
use crate::lease::Lease;
use crate::model::KeyRef;
use crate::table::Table;
use crate::watch::Ticks;

/// Milliseconds per expiry bucket.
const BUCKET: i64 = 1_000;
/// Leases per chunk of memory.
const CHUNK: usize = 1_024;

/// Where a lease is. Good until the lease is removed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Slot(NonZeroU32);

impl Slot {
    /// The one with this number.
    fn new(index: usize) -> Self {
        let number = u32::try_from(index + 1).ok().and_then(NonZeroU32::new);
        Self(number.expect("there are fewer than four thousand million leases"))
    }

    const fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// The leases.
#[derive(Debug)]
pub(crate) struct Leases {
    /// A lease never moves, and the place of one that has left is for the next that comes.
    chunks: Vec<Vec<Entry>>,
    free: Option<Slot>,
    /// By application and id together: one hash and one table for a renewal to look at.
    index: Table<Slot>,
    apps: Table<App>,
    keyed: Keyed,
    /// By the second in which they are to be looked at: the first of a doubly linked list.
    buckets: BTreeMap<i64, Slot>,
    overdue: Vec<Slot>,
    late: Vec<Slot>,
}

/// Leases of an application that a new one is shown, to share texts with.
const NEIGHBOURS: usize = 4;

#[derive(Debug)]
struct App {
    name: Arc<str>,
    /// How many leases it has.
    len: usize,
    neighbours: [Option<Slot>; NEIGHBOURS],
}

impl App {
    fn add(&mut self, slot: Slot) {
        self.len += 1;
        if let Some(free) = self.neighbours.iter_mut().find(|place| place.is_none()) {
            *free = Some(slot);
        }
    }

    fn remove(&mut self, slot: Slot) {
        self.len -= 1;
        let places = self.neighbours.iter_mut();
        places
            .filter(|place| **place == Some(slot))
            .for_each(|place| *place = None);
    }
}

/// In place, and not behind a pointer that would be one more cache line to wait for. The place of a lease that has gone is kept for
/// one that comes, until the process ends.
#[derive(Debug)]
enum Entry {
    Free(Option<Slot>),
    Held(Filed),
}

#[derive(Debug)]
struct Filed {
    lease: Lease,
    bucket: Option<i64>,
    previous: Option<Slot>,
    next: Option<Slot>,
    /// Place among those that have run out.
    overdue: Option<u32>,
    /// Place among the late ones.
    late: Option<u32>,
}

/// There are as many of them as instances, and these are three cache lines.
const _: () = assert!(size_of::<Entry>() <= 192);

/// Where the next one in a list of leases will be.
fn next_place(list: &[Slot]) -> u32 {
    u32::try_from(list.len()).expect("there are no more than leases")
}

/// The first whole second after `at`.
fn bucket(at: Ticks) -> i64 {
    at.0.div_euclid(BUCKET) + 1
}

/// Whether a lease filed at `at` is due: what is found out then must not depend on where it was filed before.
pub(crate) fn is_due(now: Ticks, at: Ticks) -> bool {
    bucket(at) * BUCKET <= now.0
}

impl Leases {
    /// None.
    pub(crate) fn new(keyed: Keyed) -> Self {
        Self {
            chunks: Vec::new(),
            free: None,
            index: Table::new(),
            apps: Table::new(),
            keyed,
            buckets: BTreeMap::new(),
            overdue: Vec::new(),
            late: Vec::new(),
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// How many applications have one.
    pub(crate) fn applications(&self) -> usize {
        self.apps.len()
    }

    /// Where the lease of this key is.
    pub(crate) fn find<'a>(&self, key: impl Into<KeyRef<'a>>) -> Option<Slot> {
        let key = key.into();
        self.index
            .find(self.keyed.hash_key(key.app(), key.id()), |slot| {
                let held = &self.get(*slot).key;
                **held.id() == *key.id() && **held.app() == *key.app()
            })
            .copied()
    }

    /// A few leases of an application; fewer, or none, if those have gone that were the first.
    pub(crate) fn neighbours(&self, app: &str) -> impl Iterator<Item = &Lease> {
        let found = self
            .apps
            .find(self.keyed.hash_one(app), |known| *known.name == *app);
        let slots = found.into_iter().flat_map(|app| app.neighbours);
        slots.flatten().map(|slot| self.get(slot))
    }

    /// The lease there.
    pub(crate) fn get(&self, slot: Slot) -> &Lease {
        &self.filed(slot).lease
    }

    /// The lease there, to be changed (but not its key).
    pub(crate) fn get_mut(&mut self, slot: Slot) -> &mut Lease {
        &mut self.filed_mut(slot).lease
    }

    /// Adds a lease; there must be none of its key. All leases of an application share the memory of its name.
    pub(crate) fn insert(&mut self, mut lease: Lease) -> Slot {
        let hash = self.keyed.hash_key(lease.key.app(), lease.key.id());
        let app_hash = self.keyed.hash_one(&**lease.key.app());
        let known = self.apps.find(app_hash, |app| app.name == *lease.key.app());
        let name = known.map_or_else(|| Arc::clone(lease.key.app()), |app| Arc::clone(&app.name));
        lease.share_app(&name);
        let slot = self.place(Filed {
            lease,
            bucket: None,
            previous: None,
            next: None,
            overdue: None,
            late: None,
        });
        match self.apps.find_mut(app_hash, |app| app.name == name) {
            Some(app) => app.add(slot),
            None => {
                let mut app = App {
                    name,
                    len: 0,
                    neighbours: [None; NEIGHBOURS],
                };
                app.add(slot);
                self.apps.insert(app_hash, app);
            }
        }
        self.index.insert(hash, slot);
        slot
    }

    /// Takes a lease out of everything.
    pub(crate) fn remove(&mut self, slot: Slot) -> Lease {
        self.unfile(slot);
        self.clear_overdue(slot);
        self.clear_late(slot);
        let free = Entry::Free(self.free.replace(slot));
        let Entry::Held(filed) = core::mem::replace(self.entry_mut(slot), free) else {
            unreachable!("a slot is removed once");
        };
        let key = &filed.lease.key;
        let hash = self.keyed.hash_key(key.app(), key.id());
        self.index.remove(hash, |other| *other == slot);
        let app_hash = self.keyed.hash_one(&**key.app());
        let app = self
            .apps
            .find_mut(app_hash, |app| app.name == *key.app())
            .expect("the application of a lease is there");
        app.remove(slot);
        if app.len == 0 {
            self.apps.remove(app_hash, |app| app.name == *key.app());
        }
        filed.lease
    }

    /// Sees to it that the lease is looked at as soon as `at` has passed, and not before.
    pub(crate) fn file(&mut self, slot: Slot, at: Ticks) {
        let bucket = bucket(at);
        if self.filed(slot).bucket == Some(bucket) {
            return;
        }
        self.unfile(slot);
        let next = self.buckets.insert(bucket, slot);
        if let Some(next) = next {
            self.filed_mut(next).previous = Some(slot);
        }
        let filed = self.filed_mut(slot);
        filed.bucket = Some(bucket);
        filed.next = next;
    }

    /// When the next lease is to be looked at.
    pub(crate) fn next_due(&self) -> Option<Ticks> {
        let (bucket, _) = self.buckets.first_key_value()?;
        Some(Ticks(bucket * BUCKET))
    }

    /// Takes a lease that is to be looked at by `now`; it is not filed any more.
    pub(crate) fn take_due(&mut self, now: Ticks) -> Option<Slot> {
        let (bucket, slot) = self.buckets.first_key_value()?;
        if bucket * BUCKET > now.0 {
            return None;
        }
        let slot = *slot;
        self.unfile(slot);
        Some(slot)
    }

    /// The leases that have run out, in no order.
    pub(crate) fn overdue(&self) -> &[Slot] {
        &self.overdue
    }

    /// Whether this one is among them.
    pub(crate) fn is_overdue(&self, slot: Slot) -> bool {
        self.filed(slot).overdue.is_some()
    }

    /// Puts it among them.
    pub(crate) fn set_overdue(&mut self, slot: Slot) {
        if !self.is_overdue(slot) {
            self.filed_mut(slot).overdue = Some(next_place(&self.overdue));
            self.overdue.push(slot);
        }
    }

    /// Takes it from among them.
    pub(crate) fn clear_overdue(&mut self, slot: Slot) {
        if let Some(index) = self.filed_mut(slot).overdue.take() {
            self.overdue.swap_remove(index as usize);
            if let Some(moved) = self.overdue.get(index as usize).copied() {
                self.filed_mut(moved).overdue = Some(index);
            }
        }
    }

    /// The leases that are late, in no order, also those that have run out.
    pub(crate) fn late(&self) -> &[Slot] {
        &self.late
    }

    /// Puts a lease among them.
    pub(crate) fn set_late(&mut self, slot: Slot) {
        if self.filed(slot).late.is_none() {
            self.filed_mut(slot).late = Some(next_place(&self.late));
            self.late.push(slot);
        }
    }

    /// Takes it from among them.
    pub(crate) fn clear_late(&mut self, slot: Slot) {
        if let Some(index) = self.filed_mut(slot).late.take() {
            self.late.swap_remove(index as usize);
            if let Some(moved) = self.late.get(index as usize).copied() {
                self.filed_mut(moved).late = Some(index);
            }
        }
    }

    /// Takes a lease out of its bucket.
    fn unfile(&mut self, slot: Slot) {
        let filed = self.filed_mut(slot);
        let (previous, next) = (filed.previous.take(), filed.next.take());
        let Some(bucket) = filed.bucket.take() else { return };
        if let Some(next) = next {
            self.filed_mut(next).previous = previous;
        }
        match (previous, next) {
            (Some(previous), next) => self.filed_mut(previous).next = next,
            (None, Some(next)) => {
                self.buckets.insert(bucket, next);
            }
            (None, None) => {
                self.buckets.remove(&bucket);
            }
        }
    }

    fn place(&mut self, filed: Filed) -> Slot {
        let held = Entry::Held(filed);
        if let Some(slot) = self.free {
            let Entry::Free(next) = core::mem::replace(self.entry_mut(slot), held) else {
                unreachable!("the list of free slots holds free ones");
            };
            self.free = next;
            return slot;
        }
        if self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        let index = (self.chunks.len() - 1) * CHUNK;
        let chunk = self.chunks.last_mut().expect("one was just added");
        chunk.push(held);
        Slot::new(index + chunk.len() - 1)
    }

    fn filed(&self, slot: Slot) -> &Filed {
        let index = slot.index();
        match &self.chunks[index / CHUNK][index % CHUNK] {
            Entry::Held(filed) => filed,
            Entry::Free(_) => unreachable!("a slot is not used after its lease was removed"),
        }
    }

    fn filed_mut(&mut self, slot: Slot) -> &mut Filed {
        match self.entry_mut(slot) {
            Entry::Held(filed) => filed,
            Entry::Free(_) => unreachable!("a slot is not used after its lease was removed"),
        }
    }

    fn entry_mut(&mut self, slot: Slot) -> &mut Entry {
        let index = slot.index();
        &mut self.chunks[index / CHUNK][index % CHUNK]
    }
}
