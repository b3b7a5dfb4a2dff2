//! What was seen, and nothing concluded from it.

use std::collections::BTreeMap;
use std::time::Duration;

use eureka_registry_core::{InstanceKey, LeaseView};

/// Everything that was asked and answered.
#[derive(Debug, Default)]
pub(super) struct Observations {
    /// The servers, as they were named.
    pub(super) servers: Vec<Server>,
    /// What answers at the addresses of their peers, asked from here, by address.
    pub(super) addresses: BTreeMap<String, Answering>,
    /// The instance in question; without one the servers are compared as wholes.
    pub(super) subject: Option<InstanceKey>,
    /// For how long leases were watched.
    pub(super) watched: Duration,
}

/// One server.
#[derive(Debug)]
pub(super) struct Server {
    /// Its URL without credentials.
    pub(super) name: String,
    /// The host in it.
    pub(super) host: String,
    /// What it said, or why it said nothing that can be used.
    pub(super) answers: Result<Answers, String>,
}

/// What a server said.
#[derive(Debug)]
pub(super) struct Answers {
    /// What it is.
    pub(super) kind: Kind,
    /// Who answered, each time on a connection of its own.
    pub(super) identities: Vec<Identity>,
    /// Its clock minus the one here, in milliseconds: the smallest difference that fits its answers.
    pub(super) clock_offset: i64,
    /// When it was started, by the clock here, if it says so.
    pub(super) started: Option<i64>,
    /// Its list of everything.
    pub(super) list: List,
    /// Its peers, if it tells them.
    pub(super) peers: Option<Vec<Peer>>,
    /// What it says is wrong with its peers.
    pub(super) alarms: Vec<Alarm>,
    /// Whether it evicts nobody.
    pub(super) preserving: Option<bool>,
    /// Whether it shows the time of the last renewal one duration ahead, as Java does.
    pub(super) renewals_ahead: bool,
    /// How it looked up single instances, which no cache answers: in the order of time.
    pub(super) looks: BTreeMap<InstanceKey, Vec<Look>>,
    /// What it answers for the id in question alone.
    pub(super) by_id: Option<InstanceKey>,
}

/// What kind of server answers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// A node of ours.
    Ours,
    /// Java's, or anything else without `/api/v1`.
    Java,
}

/// Who answered.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Identity {
    /// The node of ours with this id.
    Node(String),
    /// The Java server with this instance of its own.
    Java {
        /// Its instance id.
        id: String,
        /// Its host name, by which it knows itself among its peers.
        host: String,
        /// Its address and port.
        place: String,
    },
    /// A server that does not say, though others behind the same address do.
    Unnamed,
}

/// A list of everything.
#[derive(Debug)]
pub(super) enum List {
    /// As a client gets it.
    Open(Vec<LeaseView>),
    /// Answered 403.
    Held,
    /// Nothing that could be read, and why.
    Unreadable(String),
}

/// A peer as a server tells of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Peer {
    /// Its address, without credentials.
    pub(super) address: String,
    /// The node behind it, if the server knows.
    pub(super) node: Option<String>,
    /// How the way to it is, if the server knows.
    pub(super) link: Option<Link>,
    /// Whether it reaches the server, if the server knows.
    pub(super) reaches_back: Option<bool>,
    /// Whether Java has an instance of its own application for it; says nothing about the way.
    pub(super) available: Option<bool>,
}

/// How the way to a peer is, as the sender says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Link {
    /// Nothing is known yet.
    Starting,
    /// It answers.
    Up,
    /// It does not, or not in time: what was last seen of it.
    Down(String),
    /// It refuses what is sent.
    Refused(String),
    /// The address leads to the sender itself.
    Own,
}

/// Something a node of ours says is wrong with its peers.
#[derive(Clone, Debug)]
pub(super) struct Alarm {
    /// As in `/api/v1/peers`.
    pub(super) name: String,
    /// With whom.
    pub(super) address: String,
    /// The evidence.
    pub(super) text: String,
}

/// One look at one instance.
#[derive(Clone, Debug)]
pub(super) struct Look {
    /// When it was answered, by the clock here.
    pub(super) at: i64,
    /// The instance; `None` for 404.
    pub(super) seen: Option<LeaseView>,
}

/// What answers at a peer's address when asked from here.
#[derive(Clone, Debug, Default)]
pub(super) struct Answering {
    /// Who, each time on a connection of its own.
    pub(super) identities: Vec<Identity>,
    /// Why nobody answered.
    pub(super) failure: Option<String>,
}

impl Answers {
    /// The last look at an instance.
    pub(super) fn look(&self, key: &InstanceKey) -> Option<&Look> {
        self.looks.get(key)?.last()
    }

    /// The instance as a single look shows it.
    pub(super) fn single(&self, key: &InstanceKey) -> Option<&LeaseView> {
        self.look(key)?.seen.as_ref()
    }

    /// The instance as the list shows it.
    pub(super) fn listed(&self, key: &InstanceKey) -> Option<&LeaseView> {
        self.instances().iter().find(|view| view.key() == *key)
    }

    /// What the list shows, if there is one.
    pub(super) fn instances(&self) -> &[LeaseView] {
        match &self.list {
            List::Open(instances) => instances,
            List::Held | List::Unreadable(_) => &[],
        }
    }

    /// What it last said of itself.
    pub(super) fn identity(&self) -> Option<&Identity> {
        self.identities.last()
    }

    /// The host name by which a Java server knows itself.
    pub(super) fn own_host(&self) -> Option<&str> {
        match self.identity()? {
            Identity::Java { host, .. } => Some(host),
            Identity::Node(_) | Identity::Unnamed => None,
        }
    }
}
