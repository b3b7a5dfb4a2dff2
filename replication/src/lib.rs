//! The peer mesh of a Eureka registry, as a deterministic state machine without clock, thread or socket.

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
