//! Through whom leases were heard, and who of them is silent.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::command::{Origin, PeerId};

/// At most this many peers are told apart; leases heard through further ones are never held for their silence.
const LIMIT: usize = 1_000;

/// Stands for a peer inside a lease.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PeerIndex(u16);

/// The peers heard of so far.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    indexes: BTreeMap<PeerId, PeerIndex>,
    silent: Vec<bool>,
}

impl Peers {
    /// The index of the peer that an origin names.
    pub(crate) fn index(&mut self, origin: &Origin) -> Option<PeerIndex> {
        match origin {
            Origin::Peer(peer) => self.of(peer),
            Origin::Client | Origin::Operator | Origin::Own => None,
        }
    }

    /// Notes whether a peer can be reached.
    pub(crate) fn reachable(&mut self, peer: &PeerId, reachable: bool) {
        if let Some(PeerIndex(index)) = self.of(peer) {
            self.silent[usize::from(index)] = !reachable;
        }
    }

    /// Whether that peer is known to be unreachable.
    pub(crate) fn silent(&self, peer: Option<PeerIndex>) -> bool {
        peer.is_some_and(|PeerIndex(index)| self.silent[usize::from(index)])
    }

    fn of(&mut self, peer: &PeerId) -> Option<PeerIndex> {
        if let Some(index) = self.indexes.get(peer) {
            return Some(*index);
        }
        if self.silent.len() == LIMIT {
            return None;
        }
        let index = PeerIndex(u16::try_from(self.silent.len()).ok()?);
        self.silent.push(false);
        self.indexes.insert(peer.clone(), index);
        Some(index)
    }
}
