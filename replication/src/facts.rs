//! What the mesh knows of itself, for operators.

use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{PeerId, Wall};

use crate::message::{NodeId, Rules};

/// Everything, now.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// Configured peers, by their ids.
    pub peers: Vec<PeerFacts>,
    /// Senders that are no configured peer, by their names; at most 100.
    pub strangers: Vec<(PeerId, Inbound)>,
    /// What is wrong.
    pub alarms: Vec<Alarm>,
    /// Why the names of the peers could not be resolved the last time.
    pub unresolved: Option<Arc<str>>,
    /// Outcomes of requests that were not under way, and which were therefore ignored.
    pub ignored: u64,
}

/// What kind of server a peer is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum PeerKind {
    /// Not known yet.
    #[default]
    Unknown,
    /// One of ours.
    Ours,
    /// Java's, or anything else that does not know `/api/v1`.
    Java,
}

/// How the way to a peer is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum LinkState {
    /// Nothing was tried yet.
    #[default]
    Starting,
    /// The last request was answered.
    Up,
    /// It answers that it is busy, or not in time.
    Busy,
    /// It cannot be reached.
    Unreachable,
    /// It refuses what we send.
    Misconfigured,
    /// The address leads to this very node.
    Own,
}

/// One peer, both directions.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerFacts {
    /// Its URL without credentials.
    pub peer: PeerId,
    /// What it is.
    pub kind: PeerKind,
    /// Node behind the URL, if it is one of ours.
    pub node: Option<NodeId>,
    /// How the way to it is.
    pub state: LinkState,
    /// Last thing that went wrong.
    pub error: Option<Arc<str>>,
    /// Last request that was answered.
    pub last_success: Option<Wall>,
    /// Age of the oldest change it has not acknowledged.
    pub lag: Duration,
    /// Instances with something to send.
    pub queue: usize,
    /// Items sent and acknowledged.
    pub sent: u64,
    /// Requests sent again.
    pub retries: u64,
    /// Its copies that were newer.
    pub conflicts: u64,
    /// Instances it did not know.
    pub missing: u64,
    /// Items it answered with an error of their own, which were given up.
    pub failed: u64,
    /// Items given up: the queue was full.
    pub overflowed: u64,
    /// Items given up: too old.
    pub outdated: u64,
    /// Items set aside because the peer refuses them.
    pub poisoned: u64,
    /// Digests compared.
    pub digests: u64,
    /// Of those, so many differed.
    pub differing: u64,
    /// Instances pulled or pushed by repair.
    pub repaired: u64,
    /// How long the two have differed.
    pub diverged: Option<Duration>,
    /// Its clock minus ours, in milliseconds.
    pub clock_skew: Option<i64>,
    /// Whether it evicts nobody now.
    pub preserving: Option<bool>,
    /// Its lease rules.
    pub rules: Option<Rules>,
    /// Whether it can reach us.
    pub reaches_us: Option<bool>,
    /// What came from it.
    pub inbound: Inbound,
}

impl PeerFacts {
    /// Nothing is known of it yet.
    pub(crate) fn of(peer: PeerId) -> Self {
        Self {
            peer,
            kind: PeerKind::Unknown,
            node: None,
            state: LinkState::Starting,
            error: None,
            last_success: None,
            lag: Duration::ZERO,
            queue: 0,
            sent: 0,
            retries: 0,
            failed: 0,
            conflicts: 0,
            missing: 0,
            overflowed: 0,
            outdated: 0,
            poisoned: 0,
            digests: 0,
            differing: 0,
            repaired: 0,
            diverged: None,
            clock_skew: None,
            preserving: None,
            rules: None,
            reaches_us: None,
            inbound: Inbound::default(),
        }
    }
}

/// What came from a sender.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Inbound {
    /// Last time.
    pub last: Option<Wall>,
    /// Batches, replicated requests and repairs.
    pub requests: u64,
}

/// Something is wrong with the mesh.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Alarm {
    /// What.
    pub kind: AlarmKind,
    /// With whom.
    pub peer: PeerId,
    /// Since when.
    pub since: Wall,
    /// The evidence, a plain sentence.
    pub text: Arc<str>,
}

/// What can be wrong.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum AlarmKind {
    /// A peer's address leads back to this node.
    SelfLoop,
    /// One address is answered by changing nodes.
    SharedAddress,
    /// We reach it, but nothing comes from it, or the other way round.
    OneWayLink,
    /// Nothing goes or comes.
    PeerSilent,
    /// It refuses what we send.
    PeerMisconfigured,
    /// It evicts nobody, and we would.
    PeerPreserving,
    /// Its leases have other rules.
    DifferentRules,
    /// Its content has differed for longer than repair takes.
    Diverged,
}

impl AlarmKind {
    /// Its name in `/api/v1/peers` and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SelfLoop => "self-loop",
            Self::SharedAddress => "shared-address",
            Self::OneWayLink => "one-way-link",
            Self::PeerSilent => "peer-silent",
            Self::PeerMisconfigured => "peer-misconfigured",
            Self::PeerPreserving => "peer-preserving",
            Self::DifferentRules => "different-rules",
            Self::Diverged => "diverged",
        }
    }
}
