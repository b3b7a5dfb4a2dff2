//! A Eureka registry as a deterministic state machine without clock, thread or socket.
#![cfg_attr(not(any(feature = "shared", feature = "wire")), no_std)]

extern crate alloc;

mod config;
mod event;
mod filter;
mod hash;
mod model;
mod preservation;
mod registry;
mod rng;
#[cfg(feature = "shared")]
mod shared;
mod snapshot;
mod time;
#[cfg(feature = "wire")]
pub mod wire;

pub use config::{Compat, Config, LeaseExpiry, Measure, PreservationConfig};
pub use event::{AppliedKind, Event};
pub use filter::{Filter, FilterError};
pub use model::{
    Action, DEFAULT_DURATION_SECS, DEFAULT_RENEWAL_INTERVAL_SECS, DataCenter, Instance, InstanceKey,
    LeaseTerms, Metadata, Port, Status,
};
pub use preservation::{Heartbeats, Preservation, Share};
pub use registry::{
    Changed, Command, Origin, PeerId, Reason, Recent, Registered, Registry, Renewed, Reply, Stats,
};
#[cfg(feature = "shared")]
pub use shared::{Clock, EventSink, RegistryHandle, Subscription};
pub use snapshot::{Application, Hold, LeaseTimes, LeaseView, Page, Reads, Snapshot, reconcile_hash};
pub use time::{Mono, Now, Wall};
