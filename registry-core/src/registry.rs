//! The state machine: commands in, outcomes and events out.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use crate::config::Config;
use crate::event::Event;
use crate::model::{Instance, InstanceKey, Status};
use crate::preservation::Preservation;
use crate::snapshot::{LeaseView, Snapshot};
use crate::time::{Mono, Now, Wall};

/// Who asks for a change. Only what a peer sent is not forwarded to peers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Origin {
    /// A client.
    Client,
    /// An operator, by our own interfaces.
    Operator,
    /// The node itself, for its own instance.
    Own,
    /// Another server.
    Peer(PeerId),
}

/// Names a peer: the URL or address it is known by.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PeerId(pub Arc<str>);

/// A change to the registry as a value: what frontends decode and peers send.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Command {
    /// Takes over another node's copy if it wins by (dirty, content hash).
    Adopt {
        /// The copy.
        instance: Arc<Instance>,
        /// How long ago anybody heard of it.
        age: Duration,
    },
    /// See [`Registry::cancel`].
    Cancel {
        /// Whom.
        key: InstanceKey,
    },
    /// See [`Registry::clear_override`].
    ClearOverride {
        /// Whose.
        key: InstanceKey,
        /// The status to fall back to; `None` is `Unknown`.
        status: Option<Status>,
        /// New dirty timestamp, adopted if it is greater.
        last_dirty: Option<i64>,
    },
    /// See [`Registry::update_metadata`].
    Metadata {
        /// Whose.
        key: InstanceKey,
        /// What to set.
        entries: Vec<(Arc<str>, Arc<str>)>,
    },
    /// See [`Registry::set_override`].
    Override {
        /// Whose.
        key: InstanceKey,
        /// The status to show.
        status: Status,
        /// New dirty timestamp, adopted if it is greater.
        last_dirty: Option<i64>,
    },
    /// See [`Registry::register`].
    Register {
        /// The instance.
        instance: Arc<Instance>,
        /// How long ago the sender heard of it; zero from a client.
        age: Duration,
    },
    /// See [`Registry::renew`].
    Renew {
        /// Whose lease.
        key: InstanceKey,
        /// The sender's version of the content.
        last_dirty: Option<i64>,
        /// The override the sending peer holds.
        overridden: Option<Status>,
    },
}

/// What became of a [`Command`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reply {
    /// Of `Register` and `Adopt`.
    Registered(Registered),
    /// Of `Renew`.
    Renewed(Renewed),
    /// Of everything else.
    Changed(Changed),
}

/// What became of a registration.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Registered {
    /// It is in the registry.
    Accepted,
    /// A copy with a newer dirty timestamp was kept; its lease starts afresh.
    KeptNewer,
    /// Refused: a tombstone with a newer dirty timestamp is there, or the offer is as old as its lease. Peers only.
    Refused,
}

/// What became of a renewal: outcomes, not errors (200, 404, 404, 409 with the copy).
#[derive(Clone, Debug, PartialEq)]
pub enum Renewed {
    /// Renewed.
    Ok,
    /// No such lease (or its status is unknown): register.
    Missing,
    /// Renewed, but the sender has newer content: register.
    Ahead,
    /// Renewed, but ours is newer than the sending peer's: take this copy.
    Behind(Arc<LeaseView>),
}

/// What became of a cancel, override or metadata change.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Changed {
    /// Done.
    Ok,
    /// No such instance; nothing changed.
    Missing,
}

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
    /// Instances by status, in the order of [`Status::ALL`].
    pub by_status: [usize; 5],
    /// Registrations accepted or refreshed.
    pub registrations: u64,
    /// Renewals answered Ok, Ahead or Behind.
    pub renewals: u64,
    /// Renewals answered Missing.
    pub renewals_missing: u64,
    /// Cancels of a lease that was there.
    pub cancels: u64,
    /// Evictions.
    pub evictions: u64,
    /// Overrides held, also of absent instances.
    pub overrides: usize,
    /// Tombstones held.
    pub tombstones: usize,
    /// Overrides and tombstones forgotten early because of their limits.
    pub forgotten: u64,
    /// Changes in the log for cursors.
    pub changes: usize,
    /// Entries of the delta.
    pub delta: usize,
    /// Version of the registry.
    pub version: u64,
}

/// One line of the recent registrations or cancels.
#[derive(Clone, Debug, PartialEq)]
pub struct Recent {
    /// When.
    pub at: Wall,
    /// Who.
    pub key: InstanceKey,
}

/// All leases of one node.
///
/// **Drain after mutate**: after any call with `&mut self` drain [`poll_event`](Self::poll_event) and read
/// [`poll_timeout`](Self::poll_timeout) again. `RegistryHandle` (feature `shared`) does that for you.
#[derive(Debug)]
pub struct Registry {
    config: Config,
}

impl Registry {
    /// An empty registry whose reads are held until [`open`](Self::open).
    pub fn new(_now: Now, config: Config) -> Self {
        Self { config }
    }

    /// How it is configured.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Opens reads after `synced` instances came from peers, and starts the meter and eviction. With `settle`, reads stay
    /// held that long first.
    pub fn open(&mut self, _now: Now, _synced: usize, _settle: Option<Duration>) {
        unimplemented!()
    }

    /// Carries out a command.
    pub fn apply(&mut self, _now: Now, _origin: Origin, _command: Command) -> Reply {
        unimplemented!()
    }

    /// Registers an instance or replaces its copy, and starts its lease afresh.
    pub fn register(
        &mut self,
        _now: Now,
        _origin: Origin,
        _instance: Arc<Instance>,
        _age: Duration,
    ) -> Registered {
        unimplemented!()
    }

    /// Renews a lease and compares dirty timestamps. `overridden` is stored when a peer is ahead, as in Java.
    pub fn renew(
        &mut self,
        _now: Now,
        _origin: Origin,
        _key: &InstanceKey,
        _last_dirty: Option<i64>,
        _overridden: Option<Status>,
    ) -> Renewed {
        unimplemented!()
    }

    /// Removes an instance and its override.
    pub fn cancel(&mut self, _now: Now, _origin: Origin, _key: &InstanceKey) -> Changed {
        unimplemented!()
    }

    /// Sets the status readers see until it is cleared.
    pub fn set_override(
        &mut self,
        _now: Now,
        _origin: Origin,
        _key: &InstanceKey,
        _status: Status,
        _last_dirty: Option<i64>,
    ) -> Changed {
        unimplemented!()
    }

    /// Removes the override and sets the plain status to `status` (`Unknown` if `None`: the next renewal is then
    /// answered Missing, and the client registers again).
    pub fn clear_override(
        &mut self,
        _now: Now,
        _origin: Origin,
        _key: &InstanceKey,
        _status: Option<Status>,
        _last_dirty: Option<i64>,
    ) -> Changed {
        unimplemented!()
    }

    /// Sets metadata entries; later registrations of the client win as its dirty timestamps say.
    pub fn update_metadata(
        &mut self,
        _now: Now,
        _origin: Origin,
        _key: &InstanceKey,
        _entries: &[(Arc<str>, Arc<str>)],
    ) -> Changed {
        unimplemented!()
    }

    /// Does what is due: expiry, eviction, retention. At most 4,096 leases a call; what is left is due at once.
    pub fn handle_timeout(&mut self, _now: Now) {
        unimplemented!()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Mono, Reason)> {
        unimplemented!()
    }

    /// The next thing that happened.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event> {
        unimplemented!()
    }

    /// The registry as readers see it at `now`, frozen again only if something changed.
    pub fn snapshot(&mut self, _now: Now) -> Snapshot {
        unimplemented!()
    }

    /// One lease, current, whether or not it has run out.
    pub fn lease(&self, _now: Now, _key: &InstanceKey) -> Option<LeaseView> {
        unimplemented!()
    }

    /// One instance as single look-ups show it: a lease that has run out is hidden while eviction is possible, as in Java.
    pub fn find(&self, _now: Now, _key: &InstanceKey) -> Option<LeaseView> {
        unimplemented!()
    }

    /// The first instance with this id in the order of applications, as [`find`](Self::find) shows it.
    pub fn find_by_id(&self, _now: Now, _id: &str) -> Option<LeaseView> {
        unimplemented!()
    }

    /// Why nobody is evicted, or why somebody may be, per application and zone.
    pub fn explain(&self, _now: Now) -> Preservation {
        unimplemented!()
    }

    /// Counts and sizes.
    pub fn stats(&self) -> Stats {
        unimplemented!()
    }

    /// The last registrations, newest first, at most 1,000.
    pub fn recent_registrations(&self, _now: Now) -> Vec<Recent> {
        unimplemented!()
    }

    /// The last cancels and evictions, newest first, at most 1,000.
    pub fn recent_cancels(&self, _now: Now) -> Vec<Recent> {
        unimplemented!()
    }
}
