//! Figures, and why the registry wants to be called.

/// Why the registry wants to be called at a time.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Reason {
    /// Changes leave the delta.
    Delta,
    /// Leases may have run out.
    Eviction,
    /// A bucket of leases is due.
    Leases,
    /// What changed has settled and counts in the digest.
    Digest,
    /// Listed lease times are to be taken again.
    Listing,
    /// Remembered overrides or tombstones are to be forgotten.
    Memory,
    /// A minute of heartbeats is complete.
    Minute,
    /// What preservation expects is to be counted again.
    Preservation,
    /// The hold on reads ends.
    Reads,
}

/// Counts since boot and sizes now; cheap to take.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Leases held.
    pub instances: usize,
    /// Applications with a lease.
    pub applications: usize,
    /// Instances by status, in the order of [`Status::ALL`](crate::Status::ALL).
    pub by_status: [usize; 5],
    /// Registrations accepted or refreshed.
    pub registrations: u64,
    /// Renewals answered Ok, Ahead or Behind.
    pub renewals: u64,
    /// Renewals answered Missing.
    pub renewals_missing: u64,
    /// Heartbeats of peers for instances cancelled seconds before, taken and ignored.
    pub renewals_ignored: u64,
    /// Registrations of peers that were refused.
    pub refused: u64,
    /// Heartbeats of peers for what was refused, taken and ignored.
    pub renewals_refused: u64,
    /// Registrations of peers remembered as refused for what they were.
    pub refusals: usize,
    /// Leases in the digest that is compared with other nodes.
    pub digest: usize,
    /// Leases that changed too lately for that.
    pub moving: usize,
    /// Leases late or run out.
    pub late: usize,
    /// Cancels of a lease that was there.
    pub cancels: u64,
    /// Evictions.
    pub evictions: u64,
    /// Overrides held, also of absent instances.
    pub overrides: usize,
    /// Tombstones held.
    pub tombstones: usize,
    /// Overrides, tombstones and changes in the delta forgotten early because of their limits.
    pub forgotten: u64,
    /// Changes in the log for cursors; those from version 1 up to theirs have left it.
    pub changes: usize,
    /// Bytes that the instances in them take, about.
    pub change_bytes: usize,
    /// Entries of the delta.
    pub delta: usize,
    /// Version of the registry.
    pub version: u64,
    /// Whether nobody is evicted, as the last [`Event::Preserving`](crate::Event::Preserving) told.
    pub preserving: bool,
}
