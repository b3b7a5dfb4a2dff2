//! The machine: events, outcomes and time in; what to do out.

use eureka_registry_core::{Event, Mono, Now, PeerId};

use crate::config::Config;
use crate::facts::Facts;
use crate::message::{Outcome, Output, RequestId, Sender};

/// All peers of one node.
#[derive(Debug)]
pub struct Mesh {
    config: Config,
}

impl Mesh {
    /// No peers yet: nothing is decided before [`set_peers`](Self::set_peers) is called.
    pub fn new(_now: Now, config: Config) -> Self {
        Self { config }
    }

    /// The peers, resolved, this node itself left out. Queues of those that stay are kept. The first call begins the start-up:
    /// without peers it asks to open at once. An empty list later is taken too.
    pub fn set_peers(&mut self, _now: Now, _peers: Vec<PeerId>) {
        unimplemented!("{:?}", self.config)
    }

    /// The names could not be resolved; nothing changes but what is known of it.
    pub fn resolve_failed(&mut self, _now: Now, _text: &str) {
        unimplemented!()
    }

    /// Something happened in the registry. Called while it is locked.
    pub fn handle_event(&mut self, _now: Now, _event: &Event) {
        unimplemented!()
    }

    /// A request ended. `node` is who answered, as the answer says.
    pub fn handle_outcome(
        &mut self,
        _now: Now,
        _peer: &PeerId,
        _id: RequestId,
        _node: Option<crate::NodeId>,
        _outcome: Outcome,
    ) {
        unimplemented!()
    }

    /// A peer's request arrived: the name under which to apply it.
    pub fn handle_inbound(&mut self, _now: Now, _sender: &Sender) -> PeerId {
        unimplemented!()
    }

    /// Which addresses a peer's host has, to recognise Java servers by.
    pub fn set_addresses(&mut self, _peer: &PeerId, _addresses: Vec<std::net::IpAddr>) {
        unimplemented!()
    }

    /// Whether this node evicts nobody, to be compared with peers.
    pub fn set_preserving(&mut self, _now: Now, _preserving: bool) {
        unimplemented!()
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, _now: Now) {
        unimplemented!()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        unimplemented!()
    }

    /// The next thing to do.
    #[must_use]
    pub fn poll_output(&mut self) -> Option<Output> {
        unimplemented!()
    }

    /// The node stops: nothing lingers any more.
    pub fn flush(&mut self, _now: Now) {
        unimplemented!()
    }

    /// Whether every queue towards a peer that can be reached is empty and acknowledged.
    pub fn is_flushed(&self) -> bool {
        unimplemented!()
    }

    /// What there is to know.
    pub fn facts(&self, _now: Now) -> Facts {
        unimplemented!()
    }
}
