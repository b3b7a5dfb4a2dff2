//! What is compared with other nodes: every lease that has not run out, summed up by the hash of its key.
//!
//! A lease is in the sums once it was left alone for two seconds, so that a change on its way to everybody is no
//! difference. Renewals change nothing here. All sums are kept on transition; nothing looks at all leases.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::hash::Hasher as _;

use crate::content::content_hash;
use crate::lease::Lease;
use crate::leases::{Leases, Slot};
use crate::model::{InstanceKey, Status};
use crate::repair::BUCKETS;
use crate::watch::Ticks;

/// What changed is summed up when it was left alone for this long, in milliseconds.
const SETTLED: i64 = 2_000;

/// The sums, and who is in which.
#[derive(Debug)]
pub(crate) struct Digest {
    sums: Vec<u64>,
    /// All leases by bucket, in no order, also those that are in no sum.
    rosters: Vec<Vec<Slot>>,
    /// Those that changed lately, by when.
    moving: BTreeMap<(Ticks, u64), Slot>,
    marks: u64,
    entries: usize,
}

/// How a lease counts. Kept in the lease.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    hash: u64,
    /// Its place in the roster of the bucket.
    position: usize,
    /// Hash of its content, unless that changed since.
    content: Option<u64>,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// It has run out.
    Out,
    /// It changed lately.
    Moving((Ticks, u64)),
    /// This is in the sum of its bucket.
    Summed(u64),
}

impl Part {
    /// Of a lease that was not there before; it counts from [`Digest::join`] on.
    pub(crate) fn new(key: &InstanceKey) -> Self {
        Self {
            hash: key_hash(key),
            position: 0,
            content: None,
            state: State::Out,
        }
    }

    /// The hash of the key, see [`key_hash`].
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// Whether it is compared, or will be soon: it has not run out.
    pub(crate) fn is_in(&self) -> bool {
        !matches!(self.state, State::Out)
    }

    /// The hash of the content, if it is in a sum.
    pub(crate) fn settled(&self) -> Option<u64> {
        match self.state {
            State::Summed(_) => self.content,
            State::Out | State::Moving(_) => None,
        }
    }
}

impl Digest {
    /// Of nothing.
    pub(crate) fn new() -> Self {
        Self {
            sums: vec![0; BUCKETS],
            rosters: vec![Vec::new(); BUCKETS],
            moving: BTreeMap::new(),
            marks: 0,
            entries: 0,
        }
    }

    /// Leases summed up.
    pub(crate) fn len(&self) -> usize {
        self.entries
    }

    /// Leases that changed lately.
    pub(crate) fn moving(&self) -> usize {
        self.moving.len()
    }

    /// The sums, [`BUCKETS`] of them.
    pub(crate) fn sums(&self) -> &[u64] {
        &self.sums
    }

    /// One number for all sums.
    pub(crate) fn root(&self) -> u64 {
        let mut hasher = crate::hash::unkeyed();
        for sum in &self.sums {
            hasher.write(&sum.to_le_bytes());
        }
        hasher.finish()
    }

    /// All leases of a bucket, in no order.
    pub(crate) fn roster(&self, bucket: u16) -> &[Slot] {
        self.rosters.get(usize::from(bucket)).map_or(&[], Vec::as_slice)
    }

    /// A lease was added.
    pub(crate) fn join(&mut self, now: Ticks, leases: &mut Leases, slot: Slot) {
        let part = &mut leases.get_mut(slot).part;
        let roster = &mut self.rosters[usize::from(bucket(part.hash))];
        part.position = roster.len();
        roster.push(slot);
        self.start_moving(now, leases, slot);
    }

    /// A lease is about to be removed.
    pub(crate) fn leave(&mut self, leases: &mut Leases, slot: Slot) {
        self.run_out(leases, slot);
        let Part { hash, position, .. } = leases.get(slot).part;
        let roster = &mut self.rosters[usize::from(bucket(hash))];
        roster.swap_remove(position);
        if let Some(moved) = roster.get(position) {
            leases.get_mut(*moved).part.position = position;
        }
    }

    /// What is compared of a lease changed.
    pub(crate) fn change(&mut self, now: Ticks, leases: &mut Leases, slot: Slot) {
        let part = &mut leases.get_mut(slot).part;
        part.content = None;
        if part.is_in() {
            self.run_out(leases, slot);
            self.start_moving(now, leases, slot);
        }
    }

    /// A lease ran out.
    pub(crate) fn run_out(&mut self, leases: &mut Leases, slot: Slot) {
        let part = &mut leases.get_mut(slot).part;
        match core::mem::replace(&mut part.state, State::Out) {
            State::Out => {}
            State::Moving(mark) => {
                self.moving.remove(&mark);
            }
            State::Summed(hash) => {
                let sum = &mut self.sums[usize::from(bucket(part.hash))];
                *sum = sum.wrapping_sub(hash);
                self.entries -= 1;
            }
        }
    }

    /// A lease that had run out was heard of.
    pub(crate) fn come_back(&mut self, now: Ticks, leases: &mut Leases, slot: Slot) {
        let part = &leases.get(slot).part;
        if part.is_in() {
            return;
        }
        if part.content.is_some() {
            self.sum_up(leases, slot);
        } else {
            self.start_moving(now, leases, slot);
        }
    }

    /// When the next lease has settled.
    pub(crate) fn next_due(&self) -> Option<Ticks> {
        self.moving
            .first_key_value()
            .map(|((at, _), _)| at.after(SETTLED))
    }

    /// Sums up one lease that has settled.
    pub(crate) fn settle(&mut self, now: Ticks, leases: &mut Leases) -> bool {
        if self.next_due().is_none_or(|due| due > now) {
            return false;
        }
        let Some((_, slot)) = self.moving.pop_first() else {
            return false;
        };
        self.sum_up(leases, slot);
        true
    }

    fn start_moving(&mut self, now: Ticks, leases: &mut Leases, slot: Slot) {
        self.marks += 1;
        let mark = (now, self.marks);
        leases.get_mut(slot).part.state = State::Moving(mark);
        self.moving.insert(mark, slot);
    }

    fn sum_up(&mut self, leases: &mut Leases, slot: Slot) {
        let lease = leases.get_mut(slot);
        let content = lease
            .part
            .content
            .unwrap_or_else(|| content_hash(&lease.instance, lease.reported));
        let hash = entry_hash(lease, content);
        lease.part.content = Some(content);
        lease.part.state = State::Summed(hash);
        let sum = &mut self.sums[usize::from(bucket(lease.part.hash))];
        *sum = sum.wrapping_add(hash);
        self.entries += 1;
    }
}

/// The hash of a key: the same on every node and in every release.
pub(crate) fn key_hash(key: &InstanceKey) -> u64 {
    let mut hasher = crate::hash::unkeyed();
    write_key(&mut hasher, key);
    hasher.finish()
}

/// The bucket of a key by its hash.
pub(crate) fn bucket(hash: u64) -> u16 {
    u16::try_from(hash % BUCKETS as u64).expect("there are fewer buckets")
}

/// The override as it is compared.
pub(crate) fn shown_override(lease: &Lease) -> Option<Status> {
    Some(lease.instance.overridden_status).filter(|status| *status != Status::Unknown)
}

/// What a lease adds to its bucket.
fn entry_hash(lease: &Lease, content: u64) -> u64 {
    let mut hasher = crate::hash::unkeyed();
    write_key(&mut hasher, &lease.key);
    hasher.write(&lease.dirty().to_le_bytes());
    hasher.write(&content.to_le_bytes());
    let overridden = shown_override(lease).map_or("", Status::as_str);
    hasher.write(overridden.as_bytes());
    hasher.finish()
}

fn write_key(hasher: &mut crate::hash::Hasher, key: &InstanceKey) {
    hasher.write(&(key.app().len() as u64).to_le_bytes());
    hasher.write(key.app().as_bytes());
    hasher.write(&(key.id().len() as u64).to_le_bytes());
    hasher.write(key.id().as_bytes());
}
