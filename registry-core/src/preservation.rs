//! When nobody is evicted although leases ran out, and why.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::config::Measure;
use crate::model::InstanceKey;

/// Why nobody is evicted, or why somebody may be.
#[derive(Clone, Debug, PartialEq)]
pub struct Preservation {
    /// Whether it is switched on.
    pub enabled: bool,
    /// Whether it holds now: nobody is evicted.
    pub active: bool,
    /// What decides.
    pub measure: Measure,
    /// Share of what is expected below which nobody is evicted.
    pub threshold: f64,
    /// Leases expected: held, and evicted since the last update without being seen again.
    pub expected: usize,
    /// Leases heard within two thirds of their duration.
    pub on_time: usize,
    /// Missing leases that never start it.
    pub tolerated_losses: usize,
    /// Java's figures, computed in any case.
    pub heartbeats: Heartbeats,
    /// At most this many would go in one run.
    pub quota: usize,
    /// By application, sorted by name.
    pub applications: Vec<Share>,
    /// By zone, sorted by name; instances without one under the empty name.
    pub zones: Vec<Share>,
    /// How many leases have run out.
    pub overdue: usize,
    /// The first of them (at most 100), in the order of their keys: what could be evicted.
    pub overdue_named: Vec<InstanceKey>,
}

/// Java's arithmetic.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Heartbeats {
    /// Clients expected to renew.
    pub expected_clients: usize,
    /// Renewals per minute that must be exceeded.
    pub threshold: usize,
    /// Renewals of the last whole minute.
    pub last_minute: usize,
    /// Whether Java would evict.
    pub evicts: bool,
}

/// The leases of one application or zone.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Share {
    /// Its name.
    pub name: Arc<str>,
    /// Leases expected.
    pub expected: usize,
    /// Leases on time.
    pub on_time: usize,
}
