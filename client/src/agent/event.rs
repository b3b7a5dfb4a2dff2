//! What an agent tells its owner.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{Instance, Now, Snapshot};

use crate::server::Server;

/// What happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A server took the registration, the first one or another one.
    Registered {
        /// Which server.
        server: Arc<Server>,
    },
    /// A server took a renewal.
    Renewed {
        /// Which server.
        server: Arc<Server>,
    },
    /// A server did not know the instance at a renewal. It is registered again at once.
    Missing {
        /// Which server.
        server: Arc<Server>,
    },
    /// A registration failed; it is tried again.
    RegistrationFailed {
        /// Where.
        server: Arc<Server>,
        /// Why.
        why: Why,
    },
    /// A renewal failed; it is tried again.
    RenewalFailed {
        /// Where.
        server: Arc<Server>,
        /// Why.
        why: Why,
        /// How long the lease lasts if nothing is heard from now on.
        lease_left: Duration,
    },
    /// The instance has left; nothing follows.
    Left {
        /// Whether a server confirmed that it is gone. If not, its lease runs out if there is one.
        cancelled: bool,
    },
    /// The owner is to say how the instance is: [`Agent::set_health`](super::Agent::set_health).
    CheckHealth,
    /// A server was read.
    Fetched(Fetched),
    /// Reading failed; what is held stays as it is, and it is tried again.
    FetchFailed {
        /// Where; `None` if there is no server.
        server: Option<Arc<Server>>,
        /// Why.
        why: Why,
    },
    /// From now on this server tells changes when they happen.
    Following {
        /// Which server.
        server: Arc<Server>,
    },
    /// From now on this server is asked now and then.
    Polling {
        /// Which server.
        server: Arc<Server>,
        /// Why it is not followed.
        why: PollingWhy,
    },
    /// There is no server to ask. Told once until there is one.
    NoServers,
}

/// What a server was found to have.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Fetched {
    /// All that is held now.
    pub snapshot: Snapshot,
    /// Who answered.
    pub server: Arc<Server>,
    /// How it was read.
    pub kind: FetchKind,
}

/// How a server was read.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum FetchKind {
    /// A full list.
    Full,
    /// What changed within the last minutes, applied to what was held; perhaps nothing.
    Delta,
    /// What changed behind a cursor, applied to what was held; perhaps nothing.
    Feed,
    /// What is held is current.
    Unchanged,
}

/// Why a request was no use.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Why {
    /// It was answered with this status.
    Refused(u16),
    /// No answer in time. The server may have done what it was asked for.
    TimedOut,
    /// No connection, or it broke. The server may have done what it was asked for.
    Unreachable(String),
    /// The answer makes no sense.
    Garbage(String),
    /// An empty list, where one that is not empty is held: a server that has just been restarted knows nobody.
    Empty,
    /// There is no server.
    NoServers,
}

/// Why a server is polled and not followed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum PollingWhy {
    /// The owner wants it so.
    Configured,
    /// Named regions are read, of which feeds do not tell.
    NamedRegions,
    /// Its lists also have instances of other regions, of which its feed does not tell.
    OtherRegions,
    /// It has no feed.
    NoFeed,
    /// It has one but it was no use lately; it is asked for again later.
    FeedFailed,
}

/// How far the registration is.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Phase {
    /// Nothing was sent yet: the owner is asked for the health first.
    Starting,
    /// No server has taken it yet, or the last one asked does not know it.
    Registering,
    /// Registered, and renewed from time to time.
    Registered,
    /// On its way out.
    Leaving,
    /// Out.
    Left,
}

/// The registration as it is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Registration {
    /// How far it is.
    pub phase: Phase,
    /// Who took the last registration or renewal.
    pub server: Option<Arc<Server>>,
    /// When the last registration or renewal that was taken had been sent.
    pub confirmed: Option<Now>,
    /// The instance as it is now, with the dirty time of its content.
    pub instance: Arc<Instance>,
}

/// For logs.
impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(404) => f.write_str("the server answered 404: there is no Eureka API at this URL"),
            Self::Refused(status) => write!(f, "the server answered {status}"),
            Self::TimedOut => f.write_str("the server did not answer in time"),
            Self::Unreachable(why) => write!(f, "the server cannot be reached: {why}"),
            Self::Garbage(what) => write!(f, "the server's answer makes no sense: {what}"),
            Self::Empty => f.write_str("the server's list is empty, which is not believed yet"),
            Self::NoServers => f.write_str("there is no server"),
        }
    }
}

/// For logs.
impl fmt::Display for PollingWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Configured => "configured",
            Self::NamedRegions => "feeds do not tell of the regions that are read",
            Self::OtherRegions => "the feed does not tell of the other regions in the server's lists",
            Self::NoFeed => "the server has no feed",
            Self::FeedFailed => "the server's feed was no use lately",
        })
    }
}
