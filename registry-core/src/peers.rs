//! Through whom leases were heard, and who of them is silent.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::command::{Origin, PeerId};
use crate::watch::Ticks;

/// At most this many peers are told apart, enough for years of pods whose addresses change; leases heard through further
/// ones are never held for their silence.
const LIMIT: usize = 60_000;

/// Stands for a peer inside a lease.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PeerIndex(u16);

/// The peers heard of so far.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    indexes: BTreeMap<PeerId, PeerIndex>,
    reaches: Vec<Reach>,
}

/// Whether a peer can be reached.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reach {
    /// It can, and always could, as far as is known.
    Always,
    /// It cannot.
    Silent,
    /// It can again, since then.
    Since(Ticks),
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
    pub(crate) fn reachable(&mut self, now: Ticks, peer: &PeerId, reachable: bool) {
        if let Some(PeerIndex(index)) = self.of(peer) {
            let reach = &mut self.reaches[usize::from(index)];
            *reach = match (reachable, *reach) {
                (false, _) => Reach::Silent,
                (true, Reach::Silent) => Reach::Since(now),
                (true, reach) => reach,
            };
        }
    }

    /// Whether that peer can be reached.
    pub(crate) fn reach(&self, peer: Option<PeerIndex>) -> Reach {
        peer.map_or(Reach::Always, |PeerIndex(index)| self.reaches[usize::from(index)])
    }

    fn of(&mut self, peer: &PeerId) -> Option<PeerIndex> {
        if let Some(index) = self.indexes.get(peer) {
            return Some(*index);
        }
        if self.reaches.len() == LIMIT {
            return None;
        }
        let index = PeerIndex(u16::try_from(self.reaches.len()).ok()?);
        self.reaches.push(Reach::Always);
        self.indexes.insert(peer.clone(), index);
        Some(index)
    }
}
