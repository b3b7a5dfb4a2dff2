//! Readers of what changes, over gRPC and over server-sent events: for `bench`, which only looks for a mark in the bytes,
//! and for `cluster`, which reads everything.

mod grpc;
mod sse;

use std::collections::BTreeMap;
use std::fmt;

use anyhow::Result;
use bytes::Bytes;

pub(crate) use grpc::Channel;

/// An instance by application and id.
pub(crate) type Key = (String, String);

/// A watch under way.
pub(crate) enum Watch {
    Grpc(grpc::Stream),
    Sse(sse::Stream),
}

/// One message of a watch.
#[derive(Debug)]
pub(crate) enum Told {
    /// What was known is to be replaced by what follows, and why.
    Reset(String),
    /// Some instances of the snapshot.
    Instances(Vec<(Key, Seen)>),
    /// The snapshot is complete; how many instances it had.
    Synced { cursor: String, instances: u64 },
    /// One change.
    Changed(Changed),
    /// Nothing new; the cursor may have moved.
    Alive { cursor: Option<String> },
}

/// One change of one instance.
#[derive(Debug)]
pub(crate) struct Changed {
    pub(crate) cursor: String,
    pub(crate) key: Key,
    /// `None` if it was deleted.
    pub(crate) after: Option<Seen>,
    pub(crate) by_peer: bool,
}

/// What is compared of an instance.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Seen {
    pub(crate) status: String,
    pub(crate) overridden: String,
    pub(crate) dirty: i64,
    pub(crate) metadata: BTreeMap<String, String>,
}

/// Why there is no watch, or no more of it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Ending {
    /// A gRPC or HTTP status; 0 if the connection ended without one.
    pub(crate) status: u16,
    /// What the server said.
    pub(crate) reason: String,
    /// It said when to try again.
    pub(crate) retries: bool,
}

impl Watch {
    /// Opens a stream of server-sent events behind a cursor, or from the start without one.
    pub(crate) async fn over_sse(
        address: std::net::SocketAddr,
        cursor: Option<&str>,
    ) -> Result<Self, Ending> {
        sse::Stream::open(address, cursor).await.map(Self::Sse)
    }

    /// The next message as bytes.
    pub(crate) async fn next(&mut self) -> Result<Bytes, Ending> {
        match self {
            Self::Grpc(stream) => stream.next().await,
            Self::Sse(stream) => stream.next().await,
        }
    }

    /// Reads a message of this watch.
    pub(crate) fn read(&self, message: &[u8]) -> Result<Told> {
        match self {
            Self::Grpc(_) => grpc::read(message),
            Self::Sse(_) => sse::read(message),
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            0 => write!(f, "{}", self.reason),
            status => write!(f, "{status} {}", self.reason),
        }
    }
}

impl Ending {
    /// An end without a status.
    pub(crate) fn broken(error: &impl fmt::Display) -> Self {
        Self {
            reason: format!("{error:#}"),
            ..Self::default()
        }
    }
}
