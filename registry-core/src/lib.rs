//! A Eureka registry as a deterministic state machine without clock, thread or socket.
#![cfg_attr(not(any(feature = "shared", feature = "wire")), no_std)]

extern crate alloc;

mod changes;
mod command;
mod config;
mod digest;
mod event;
mod filter;
mod hash;
mod lease;
mod leases;
mod listing;
mod model;
mod overrides;
mod pages;
mod peers;
mod preservation;
mod registry;
mod rng;
#[cfg(feature = "shared")]
mod shared;
mod snapshot;
mod stats;
mod status;
mod table;
mod time;
mod tombstones;
mod watch;
#[cfg(feature = "wire")]
pub mod wire;

pub use changes::{Change, Changes, Recent};
pub use command::{Changed, Command, Origin, PeerId, Registered, Renewed, Reply};
pub use config::{Compat, Config, LeaseExpiry, Measure, PreservationConfig};
pub use event::{AppliedKind, Event};
pub use filter::{Filter, FilterError};
pub use model::{
    Action, DEFAULT_DURATION_SECS, DEFAULT_RENEWAL_INTERVAL_SECS, DataCenter, Instance, InstanceKey,
    LeaseTerms, Metadata, Port, Status,
};
pub use pages::Page;
pub use preservation::{Heartbeats, Preservation, Share};
pub use registry::Registry;
#[cfg(feature = "shared")]
pub use shared::{Clock, Cursor, EventSink, RegistryHandle, Subscription};
pub use snapshot::{Application, Hold, LeaseTimes, LeaseView, Reads, Snapshot, reconcile_hash};
pub use stats::{Reason, Stats};
pub use time::{Mono, Now, Wall};
