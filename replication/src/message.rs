//! What the mesh asks its owner to do, and what it is told of it.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{
    Command, Instance, InstanceKey, Learned, LeaseView, PeerId, Settle, Status, Step, Wall,
};

/// A random id of one boot of a node of ours.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct NodeId(pub [u64; 2]);

impl NodeId {
    /// Reads 32 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let (high, low) = text.split_at(16);
        Some(Self([
            u64::from_str_radix(high, 16).ok()?,
            u64::from_str_radix(low, 16).ok()?,
        ]))
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.0[0], self.0[1])
    }
}

/// Lease rules that must be the same on all nodes, or some evict what others hold.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Rules {
    /// `exact` or `doubled`.
    pub lease_expiry: Arc<str>,
    /// Time between two eviction runs.
    pub eviction_interval: Duration,
    /// Whether preservation is on.
    pub preservation: bool,
}

/// Names one request to one peer; of two, the later is greater.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RequestId(pub u64);

/// What is to be done with one instance at a peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Action {
    /// It registered, or its content changed.
    Register,
    /// It is gone.
    Cancel,
    /// It has an override.
    Override,
    /// It has none any more.
    ClearOverride,
    /// It renewed.
    Renew,
}

/// One item of a batch: what it says of the instance is looked up when it is sent, see [`Item::render`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Item {
    /// Whom it concerns.
    pub key: InstanceKey,
    /// What to do.
    pub action: Action,
}

/// An instance as it is at the moment of sending.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    /// Content and status.
    pub view: LeaseView,
    /// How long ago anybody heard of it.
    pub age: Duration,
}

/// An item filled in.
#[derive(Clone, Debug, PartialEq)]
pub enum Sending {
    /// See [`Action::Register`].
    Register(Live),
    /// See [`Action::Cancel`].
    Cancel(InstanceKey),
    /// See [`Action::Override`].
    Override(Live),
    /// See [`Action::ClearOverride`].
    ClearOverride(Live),
    /// See [`Action::Renew`].
    Renew(Live),
}

impl Item {
    /// Fills in the instance as it is `now`. `None`: there is nothing to say any more (the instance is gone and its cancel has an item of
    /// its own, or its lease has run out), which counts as [`ItemOutcome::Void`]. An override that was cleared meanwhile
    /// is sent as cleared, and the other way round.
    pub fn render(&self, live: Option<Live>) -> Option<Sending> {
        if self.action == Action::Cancel {
            return Some(Sending::Cancel(self.key.clone()));
        }
        let live = live?;
        if live.age >= Duration::from_secs(live.view.instance.lease.duration_secs.into()) {
            return None;
        }
        let overridden = live.view.instance.overridden_status != Status::Unknown;
        Some(match self.action {
            Action::Register => Sending::Register(live),
            Action::Override | Action::ClearOverride if overridden => Sending::Override(live),
            Action::Override | Action::ClearOverride => Sending::ClearOverride(live),
            Action::Renew | Action::Cancel => Sending::Renew(live),
        })
    }
}

/// What the mesh asks for. Executed without any lock held.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Output {
    /// Send a batch: [`Mesh::handle_outcome`](crate::Mesh::handle_outcome) with [`Outcome::Answered`] or a failure.
    Send {
        /// To whom.
        peer: PeerId,
        /// Of this batch.
        id: RequestId,
        /// In this order.
        items: Vec<Item>,
    },
    /// Ask who a peer is and how it does: [`Outcome::Probed`].
    Probe {
        /// Whom.
        peer: PeerId,
        /// Of this request.
        id: RequestId,
    },
    /// Do a step of a repair with a peer of ours: fill it in from the registry (`Registry::repair_request`), send it, let
    /// the registry learn from the answer (`Registry::learn`): [`Outcome::Learned`].
    Repair {
        /// With whom.
        peer: PeerId,
        /// Of this request.
        id: RequestId,
        /// What to do.
        step: Step,
    },
    /// Fetch all instances of a Java server, check count and hash, and adopt them with age 0: [`Outcome::Pulled`].
    Pull {
        /// From whom.
        peer: PeerId,
        /// Of this request.
        id: RequestId,
    },
    /// Apply a command that a peer's answer implies, with the peer as its origin.
    Adopt {
        /// Who answered.
        peer: PeerId,
        /// What follows.
        command: Command,
    },
    /// Tell the registry whether a peer can be reached.
    Reachable {
        /// As origins name it.
        peer: PeerId,
        /// Whether it can.
        reachable: bool,
    },
    /// Open the registry. `settle`: reads are held longer, while clients come back.
    Open {
        /// Instances copied from peers.
        synced: usize,
        /// If nobody had anything.
        settle: Option<Settle>,
    },
    /// Resolve the names of peers again, and call [`Mesh::set_peers`](crate::Mesh::set_peers) with what came out.
    Resolve,
    /// For the log: an alarm began or ended.
    Alarm {
        /// Which.
        alarm: crate::facts::Alarm,
        /// Began, or ended.
        raised: bool,
    },
}

/// What became of an [`Output`] that has an id.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// A batch was answered, item by item, in its order.
    Answered(Vec<ItemOutcome>),
    /// A probe was answered.
    Probed(Probed),
    /// The registry learned from a step.
    Learned(Learned),
    /// Everything a Java server holds was taken over, or it does not fit its own count and hash.
    Pulled(Pulled),
    /// It failed.
    Failed {
        /// How.
        failure: Failure,
        /// For people: what was seen. No secrets.
        text: Arc<str>,
        /// From `Retry-After`.
        retry_after: Option<Duration>,
    },
}

/// What became of one item.
#[derive(Clone, Debug, PartialEq)]
pub enum ItemOutcome {
    /// 2xx.
    Ok,
    /// There was nothing to send: see [`Item::render`].
    Void,
    /// 404: the peer does not know it.
    Missing,
    /// 409 with the peer's newer copy, validated.
    Conflict(Arc<Instance>),
    /// Anything else, also a 409 without a copy that can be used.
    Failed(u16),
}

/// Classes of failures of a whole request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Failure {
    /// 503, 429, or no answer in time.
    Busy,
    /// 400.
    Rejected,
    /// 413.
    TooLarge,
    /// 401, 403, 404 and whatever else says that we are not understood.
    Misconfigured,
    /// No connection, 5xx, an answer that is none.
    Unreachable,
    /// Our own node answered.
    Own,
}

/// Who a peer is and how it does.
#[derive(Clone, Debug, PartialEq)]
pub struct Probed {
    /// `None`: a Java server.
    pub node: Option<NodeId>,
    /// What its clock showed when it answered.
    pub wall: Option<Wall>,
    /// Whether it evicts nobody now.
    pub preserving: Option<bool>,
    /// Its lease rules.
    pub rules: Option<Rules>,
    /// Whether it says of itself that it can reach this node (by node id); `None`: it does not know this node.
    pub reaches_us: Option<bool>,
}

/// How a pull went.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pulled {
    /// Instances taken over.
    pub instances: usize,
    /// The count and the hash fit what the answer says of itself.
    pub checked: bool,
    /// It answered 403: its lists are held.
    pub held: bool,
}

/// Who sent a batch, a replicated request or a repair, as far as can be told.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Sender {
    /// The id it sent with the request, if it is one of ours.
    pub node: Option<NodeId>,
    /// Where the connection comes from.
    pub address: Option<IpAddr>,
    /// What it says in `DiscoveryIdentity-Id`.
    pub identity: Option<Arc<str>>,
}
