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
    sending: AtomicBool,
    asking: AtomicBool,
}

/// At most one request of each is under way to a peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Lane {
    /// Batches.
    Send,
    /// Probes, steps of a repair, pulls.
    Ask,
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
            sending: AtomicBool::new(false),
            asking: AtomicBool::new(false),
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
        match lane {
            Lane::Send => &self.sending,
            Lane::Ask => &self.asking,
        }
    }
}
