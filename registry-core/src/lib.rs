//! A Eureka registry as a deterministic state machine without clock, thread or socket.
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//! use eureka_registry_core::{
//!     Config, Event, Instance, Mono, Now, Origin, Registered, Registry, Renewed, Wall,
//! };
//!
//! let mut now = Now { mono: Mono(0), wall: Wall(1_700_000_000_000) };
//! let mut registry = Registry::new(now, Config::default());
//! registry.open(now, 0, None);
//!
//! // An instance with the default lease of 90 seconds registers and renews once.
//! let instance = Instance::new("orders", "host-1:orders:8080", "host-1", "10.0.0.1");
//! let key = instance.key();
//! let registered = registry.register(now, Origin::Client, Arc::new(instance), Duration::ZERO);
//! assert_eq!(registered, Registered::Accepted);
//! assert_eq!(registry.renew(now, Origin::Client, &key, None, None), Renewed::Ok);
//! assert_eq!(registry.snapshot(now).hash(), "UP_1_");
//!
//! // Then it falls silent. The owner does nothing but call when it is asked to, and drain the events.
//! let mut expired = None;
//! while expired.is_none() {
//!     let (due, _reason) = registry.poll_timeout().expect("a lease is always waited for");
//!     now.wall.0 += due.0 - now.mono.0;
//!     now.mono = due;
//!     registry.handle_timeout(now);
//!     while let Some(event) = registry.poll_event() {
//!         if let Event::Expired { key, .. } = event {
//!             expired = Some((key, now.mono));
//!         }
//!     }
//! }
//! // The first eviction run, one a minute, after its lease had run out.
//! assert_eq!(expired, Some((key, Mono(120_000))));
//! assert_eq!(registry.snapshot(now).delta().len(), 1, "and for three minutes deltas tell of it");
//! ```
//!
//! # What is here
//!
//! * [`Registry`] is the machine: methods take [`Now`] first and return outcomes, not errors; [`Event`]s tell the owner
//!   what happened; [`Command`] is the same as a value, for batches. It reads no clock and draws no randomness but from
//!   [`Config::seed`], so the same calls give the same results.
//! * [`Snapshot`] is what readers get: the whole registry, its delta, hash and indexes, frozen together. Taking one
//!   costs a few reference counts, and so does keeping it.
//! * [`Config`] has a field for every rule in which Java's registry and ours differ;
//!   [`Config::eureka_java`] and [`Config::eureka_netflix`] set them all to Java's side.
//! * [`Step`], [`RepairRequest`] and [`RepairAnswer`] are how nodes compare what they hold and become equal again:
//!   [`Registry::repair_request`], [`Registry::repair_answer`] and [`Registry::learn`] fill in, answer and take over.
//! * [`Filter`] is a small language to select instances; [`Preservation`] explains why nobody is evicted.
//!
//! # Features
//!
//! Without features this is `no_std` with `alloc`, and depends on hashbrown alone.
//!
//! * `shared`: `RegistryHandle`, the registry behind one lock, for many threads.
//! * `wire`: Eureka's JSON and XML, its paths and its replication batches, as pure functions.
//!
//! # How time is treated
//!
//! Deadlines are kept by [`Mono`], what is shown is [`Wall`], and `last_dirty` is somebody else's clock that is only ever
//! compared with its like. If nobody calls [`Registry::handle_timeout`] for more than a second after it was due, the
//! machine concludes that nobody watched, and moves every deadline by as much: who pauses evicts nobody for it. An owner
//! that calls in any case every so often says so in [`Config::called_every`]; then pauses before that are noticed, too.
#![cfg_attr(not(any(feature = "shared", feature = "wire")), no_std)]

extern crate alloc;

mod changes;
mod command;
mod config;
mod content;
mod differences;
mod digest;
mod event;
mod filter;
mod hash;
mod lease;
mod leases;
mod leaves;
mod limits;
mod listing;
mod metadata;
mod mirror;
mod model;
mod overrides;
mod pages;
mod peers;
mod preservation;
mod registry;
mod repair;
mod rng;
#[cfg(feature = "shared")]
mod shared;
mod snapshot;
mod sorted;
mod stats;
mod status;
mod table;
mod time;
mod tombstones;
mod watch;
#[cfg(feature = "wire")]
pub mod wire;

pub use changes::{Author, Cause, Change, Changes, Recent};
pub use command::{Changed, Command, Origin, PeerId, Registered, Renewal, Renewed, Reply};
pub use config::{Compat, Config, LeaseExpiry, Measure, PreservationConfig, Settle};
pub use differences::Difference;
pub use event::{AppliedKind, Event};
pub use filter::{Filter, FilterError, Seen};
pub use limits::{Excess, InstanceLimits};
pub use mirror::Mirror;
pub use model::{
    Action, DEFAULT_DURATION_SECS, DEFAULT_RENEWAL_INTERVAL_SECS, DataCenter, Instance, InstanceKey, KeyRef,
    LeaseTerms, Metadata, Port, Status,
};
pub use pages::Page;
pub use preservation::{Heartbeats, Preservation, Share};
pub use registry::Registry;
pub use repair::{
    BUCKETS, EXCHANGE_MAX, Entry, EntryState, LATE_MAX, LIST_MAX, Learned, Offer, RepairAnswer,
    RepairRequest, Stamp, Stamped, Step,
};
#[cfg(feature = "shared")]
pub use shared::{
    CachedPage, CachedPages, Clock, Cursor, EventSink, Feed, Follower, News, PageCache, Past, PastError,
    Point, RegistryHandle, Subscription, Told,
};
pub use snapshot::{Application, Hold, LeaseTimes, LeaseView, Reads, Snapshot, reconcile_hash};
pub use stats::{Reason, Stats};
pub use time::{Mono, Now, Wall};
