//! How a registry behaves: every rule in which Java and we differ is a field here.

use alloc::sync::Arc;
use core::time::Duration;

/// The settings of a [`Registry`](crate::Registry).
#[derive(Clone, Debug)]
pub struct Config {
    /// Key of the hash maps and seed of the random victims of eviction; `server` draws it from the operating system.
    pub seed: [u64; 2],
    /// Effective id of the node's own instance: it is shown as the coordinating discovery server.
    pub own_id: Option<Arc<str>>,
    /// First half of the node's id: it tells its overrides from those of other nodes set in the same millisecond.
    pub node: u64,
    /// The owner calls [`handle_timeout`](crate::Registry::handle_timeout) at least this often, whether or not anything is
    /// due: a longer gap between any two calls was a pause. `None`: it calls only when something is due, so that a pause
    /// before that cannot be noticed.
    pub called_every: Option<Duration>,
    /// When a lease that was renewed expires.
    pub lease_expiry: LeaseExpiry,
    /// How much longer than its duration a lease is kept that was last heard through a peer that cannot be reached now,
    /// in lease durations.
    pub silent_peer_hold: u32,
    /// Time between two eviction runs.
    pub eviction_interval: Duration,
    /// How long a change stays in the delta.
    pub delta_retention: Duration,
    /// Age at which the lease times shown in lists are taken again.
    pub listed_lease_age: Duration,
    /// When nobody is evicted although leases ran out.
    pub preservation: PreservationConfig,
    /// How long the override of an evicted instance is remembered.
    pub override_retention: Duration,
    /// At most this many overrides of absent instances are remembered.
    pub override_limit: usize,
    /// How long a cancel is remembered.
    pub tombstone_retention: Duration,
    /// At most this many cancels are remembered.
    pub tombstone_limit: usize,
    /// At most this many changes are kept for readers that follow with a cursor, and to show the registry as it was. The
    /// delta ends where they do: of more changes within its retention, the oldest leave it early. Its readers notice by the
    /// hash, or by a full fetch.
    pub change_log_limit: usize,
    /// Changes are also kept only as long as they take at most this many bytes: each counts its instance, and the one
    /// before it if that was another. The newest is kept in any case.
    pub change_log_bytes: usize,
    /// Java's ways, one switch each.
    pub compat: Compat,
}

/// How long reads are held although the registry is open, while clients that renew are sent to register again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Settle {
    /// This long in any case.
    pub at_least: Duration,
    /// Then until this long no renewal was answered Missing.
    pub quiet: Duration,
    /// This long at most.
    pub at_most: Duration,
}

impl Settle {
    /// Exactly this long.
    pub const fn exactly(hold: Duration) -> Self {
        Self {
            at_least: hold,
            quiet: Duration::ZERO,
            at_most: hold,
        }
    }
}

/// When a lease expires after a renewal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LeaseExpiry {
    /// Exactly one duration after it was last heard of.
    Exact,
    /// As in Java: one duration after a registration, two after a renewal.
    Doubled,
}

/// How preservation is measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Measure {
    /// Leases that are on time against leases expected.
    LeasesOnTime,
    /// As in Java: heartbeats of the last whole minute against a threshold.
    Heartbeats,
}

/// When nobody is evicted although leases ran out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PreservationConfig {
    /// Off: every overdue lease may go (in each run at most the quota).
    pub enabled: bool,
    /// How it is measured.
    pub measure: Measure,
    /// Share of what is expected, 0 to 1, below which nobody is evicted; also sets the eviction quota.
    pub threshold: f64,
    /// Time between two updates of what is expected.
    pub update_interval: Duration,
    /// This many missing leases never start preservation (leases on time only).
    pub tolerated_losses: usize,
    /// The interval at which clients are expected to renew (heartbeats only).
    pub renewal_interval: Duration,
    /// Clients expected before anyone registered (heartbeats only): 1 in Spring, 0 at Netflix.
    pub initial_clients: usize,
}

/// Behaviours of Java that are off by default and on in the presets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Compat {
    /// `lastRenewalTimestamp` lies one duration ahead after a renewal.
    pub renewal_shown_ahead: bool,
    /// Overrides are kept by instance id alone.
    pub override_by_id: bool,
    /// An override equal to the current status is not stored, and one of UNKNOWN is.
    pub override_equal_ignored: bool,
    /// Eviction drops the override.
    pub override_lost_on_eviction: bool,
    /// A metadata change leaves the dirty timestamp as it is, and every registration at least as new replaces it.
    pub metadata_keeps_dirty: bool,
    /// Status changes by rule at a renewal stay out of the delta.
    pub rule_flips_hidden: bool,
    /// Cancels leave no tombstone: a late registration from a peer revives the instance.
    pub no_tombstones: bool,
    /// A cancel of an unknown instance is listed among the recent cancels.
    pub failed_cancels_listed: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            seed: [0, 0],
            own_id: None,
            node: 0,
            called_every: None,
            lease_expiry: LeaseExpiry::Exact,
            silent_peer_hold: 2,
            eviction_interval: Duration::from_secs(60),
            delta_retention: Duration::from_secs(180),
            listed_lease_age: Duration::from_secs(180),
            preservation: PreservationConfig::default(),
            override_retention: Duration::from_secs(3600),
            override_limit: 100_000,
            tombstone_retention: Duration::from_secs(300),
            tombstone_limit: 100_000,
            change_log_limit: 100_000,
            change_log_bytes: 128 << 20,
            compat: Compat::default(),
        }
    }
}

impl Default for PreservationConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            measure: Measure::LeasesOnTime,
            threshold: 0.85,
            update_interval: Duration::from_secs(900),
            tolerated_losses: 1,
            renewal_interval: Duration::from_secs(30),
            initial_clients: 1,
        }
    }
}

impl Config {
    /// Spring Cloud Netflix 5.0.3 as measured.
    pub fn eureka_java() -> Self {
        Self {
            lease_expiry: LeaseExpiry::Doubled,
            silent_peer_hold: 0,
            preservation: PreservationConfig {
                measure: Measure::Heartbeats,
                ..PreservationConfig::default()
            },
            compat: Compat {
                renewal_shown_ahead: true,
                override_by_id: true,
                override_equal_ignored: true,
                override_lost_on_eviction: true,
                metadata_keeps_dirty: true,
                rule_flips_hidden: true,
                no_tombstones: true,
                failed_cancels_listed: true,
            },
            ..Self::default()
        }
    }

    /// Netflix's own values.
    pub fn eureka_netflix() -> Self {
        let java = Self::eureka_java();
        Self {
            preservation: PreservationConfig {
                initial_clients: 0,
                ..java.preservation
            },
            ..java
        }
    }
}
