//! One peer as the driver has it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use eureka_registry_core::{PeerId, RegistryHandle};

use super::Settings;
use crate::address::PeerAddress;
use crate::http::{Identity, Transport};
use crate::message::NodeId;

/// The way to a peer, and what is going on there.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) peer: PeerId,
    pub(super) transport: Transport,
    /// By the last probe. Ours take compressed bodies.
    ours: AtomicBool,
    /// By [`Lane`]: whether one is under way.
    lanes: [AtomicBool; 4],
}

/// At most one request of each is under way to a peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Lane {
    Send,
    Probe,
    Repair,
    Pull,
}

/// What a request needs.
#[derive(Clone, Debug)]
pub(super) struct Errand {
    pub(super) link: Arc<Link>,
    pub(super) registry: RegistryHandle,
    pub(super) settings: Arc<Settings>,
    pub(super) own: NodeId,
}

impl Link {
    pub(super) fn new(address: PeerAddress, identity: &Identity) -> Self {
        Self {
            peer: address.id(),
            transport: Transport::new(address, identity),
            ours: AtomicBool::new(false),
            lanes: [const { AtomicBool::new(false) }; 4],
        }
    }

    /// Whether a request of this kind may begin; it has begun then.
    pub(super) fn begin(&self, lane: Lane) -> bool {
        !self.lane(lane).swap(true, Ordering::AcqRel)
    }

    pub(super) fn end(&self, lane: Lane) {
        self.lane(lane).store(false, Ordering::Release);
    }

    pub(super) fn is_ours(&self) -> bool {
        self.ours.load(Ordering::Relaxed)
    }

    pub(super) fn set_ours(&self, ours: bool) {
        self.ours.store(ours, Ordering::Relaxed);
    }

    fn lane(&self, lane: Lane) -> &AtomicBool {
        &self.lanes[lane as usize]
    }
}
