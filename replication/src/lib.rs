//! The peer mesh of a Eureka registry, as a deterministic state machine without clock, thread or socket.
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//! use eureka_registry_core::{Instance, Now, Origin, PeerId, Registry};
//! use eureka_replication::{
//!     Config, ItemOutcome, Live, Mesh, NodeId, Outcome, Output, Probed, Sending,
//! };
//!
//! // Two nodes. North has a mesh with south as its only peer; in a server both have one.
//! let now = Now::default();
//! let mut north = Registry::new(now, eureka_registry_core::Config::default());
//! let mut south = Registry::new(now, eureka_registry_core::Config::default());
//! let mut mesh = Mesh::new(now, Config { node: NodeId([1, 1]), ..Config::default() });
//! mesh.set_peers(now, vec![PeerId("http://south:8761/eureka".into())]);
//!
//! // A client registers at north. Events go to the mesh in the order in which they happened.
//! let instance = Instance::new("orders", "host-1:orders:8080", "host-1", "10.0.0.1");
//! let key = instance.key();
//! north.register(now, Origin::Client, Arc::new(instance), Duration::ZERO);
//! while let Some(event) = north.poll_event() {
//!     mesh.handle_event(now, &event);
//! }
//!
//! // Whoever owns the mesh does what it asks for and tells what came of it; here both ends are in one place.
//! let north_name = Origin::Peer(PeerId("http://north:8761/eureka".into()));
//! mesh.handle_timeout(now);
//! while let Some(output) = mesh.poll_output() {
//!     match output {
//!         // First of all: who is behind this address? One of ours.
//!         Output::Probe { peer, id } => {
//!             let node = Some(NodeId([2, 1]));
//!             let probed = Probed { node, wall: None, preserving: None, rules: None, reaches_us: None };
//!             mesh.handle_outcome(now, &peer, id, node, Outcome::Probed(probed));
//!         }
//!         // Then a copy of everything it has, which is nothing.
//!         Output::Repair { peer, id, step } => {
//!             let request = north.repair_request(now, &step);
//!             let answer = south.repair_answer(now, north_name.clone(), request);
//!             let learned = north.learn(now, Origin::Peer(peer.clone()), now.mono, &step, answer);
//!             mesh.handle_outcome(now, &peer, id, None, Outcome::Learned(learned));
//!         }
//!         // And what happened here. Items are filled in when they are sent.
//!         Output::Send { peer, id, items } => {
//!             let mut outcomes = Vec::new();
//!             for item in items {
//!                 let view = north.lease(now, &item.key).expect("registered");
//!                 let age = north.age(now, &item.key).expect("registered");
//!                 if let Some(Sending::Register(live)) = item.render(Some(Live { view, age })) {
//!                     south.register(now, north_name.clone(), Arc::clone(&live.view.instance), live.age);
//!                     outcomes.push(ItemOutcome::Ok);
//!                 }
//!             }
//!             mesh.handle_outcome(now, &peer, id, None, Outcome::Answered(outcomes));
//!         }
//!         Output::Open { synced, settle } => north.open(now, synced, settle),
//!         other => panic!("not in this example: {other:?}"),
//!     }
//! }
//! assert!(south.lease(now, &key).is_some());
//! assert_eq!(mesh.facts(now).peers[0].sent, 1);
//! ```
//!
//! # What is here
//!
//! * [`Mesh`] is the machine. Events of the registry, outcomes of requests and the time go in; [`Output`]s come out. It
//!   keeps a queue for each peer, probes who is behind each address, copies at start-up, compares and repairs, and raises
//!   alarms. It draws no randomness but from [`Config::seed`], so the same calls give the same outputs.
//! * [`Facts`] is what it knows, for operators.
//! * [`PeerAddress`] and [`resolve`] turn configured URLs and answers of DNS into peers, without asking anybody.
//!
//! # Features
//!
//! * `driver`: the task that gives the mesh the time and executes what it asks for, over HTTP and DNS.

mod address;
mod alarms;
mod bootstrap;
mod config;
#[cfg(feature = "driver")]
mod dns;
#[cfg(feature = "driver")]
pub mod driver;
mod facts;
#[cfg(feature = "driver")]
mod http;
mod inbound;
mod link;
mod mesh;
mod message;
mod peer;
mod repair;
pub mod resolve;
mod shaper;

pub use address::{AddressError, PeerAddress};
pub use config::Config;
pub use facts::{Alarm, AlarmKind, Facts, Inbound, LinkState, PeerFacts, PeerKind};
pub use mesh::Mesh;
pub use message::{
    Action, Failure, Item, ItemOutcome, Live, NodeId, Outcome, Output, Probed, Pulled, RequestId, Rules,
    Sender, Sending,
};
