//! Changes to the registry as values, and what becomes of them.

use alloc::borrow::Cow;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use crate::model::{Instance, InstanceKey, KeyRef, Status};
#[cfg(doc)]
use crate::registry::Registry;
use crate::snapshot::LeaseView;

/// Who asks for a change. Only what a peer sent is not forwarded to peers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Origin {
    /// A client.
    Client,
    /// An operator, by our own interfaces.
    Operator,
    /// The node itself, for its own instance.
    Own,
    /// Another server.
    Peer(PeerId),
}

/// Names a peer: the URL or address it is known by.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PeerId(pub Arc<str>);

impl PeerId {
    /// The name as readers may see it: what a peer calls itself may be a URL with a user name and a password.
    pub fn without_credentials(&self) -> Cow<'_, str> {
        let Some((scheme, rest)) = self.0.split_once("://") else {
            return Cow::Borrowed(&self.0);
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        match rest[..end].rfind('@') {
            Some(at) => Cow::Owned(format!("{scheme}://{}", &rest[at + 1..])),
            None => Cow::Borrowed(&self.0),
        }
    }
}

/// A change to the registry as a value: what frontends decode and peers send.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Command {
    /// Takes over another node's copy if it wins by (dirty, content hash).
    Adopt {
        /// The copy.
        instance: Arc<Instance>,
        /// How long ago anybody heard of it.
        age: Duration,
    },
    /// See [`Registry::cancel`].
    Cancel {
        /// Whom.
        key: InstanceKey,
    },
    /// See [`Registry::clear_override`].
    ClearOverride {
        /// Whose.
        key: InstanceKey,
        /// The status to fall back to; `None` is `Unknown`.
        status: Option<Status>,
        /// New dirty timestamp, adopted if it is greater.
        last_dirty: Option<i64>,
    },
    /// See [`Registry::update_metadata`].
    Metadata {
        /// Whose.
        key: InstanceKey,
        /// What to set.
        entries: Vec<(Arc<str>, Arc<str>)>,
    },
    /// See [`Registry::set_override`].
    Override {
        /// Whose.
        key: InstanceKey,
        /// The status to show.
        status: Status,
        /// New dirty timestamp, adopted if it is greater.
        last_dirty: Option<i64>,
    },
    /// See [`Registry::register`].
    Register {
        /// The instance.
        instance: Arc<Instance>,
        /// How long ago the sender heard of it; zero from a client.
        age: Duration,
    },
    /// See [`Registry::renew`].
    Renew {
        /// Whose lease.
        key: InstanceKey,
        /// The sender's version of the content.
        last_dirty: Option<i64>,
        /// The override the sending peer holds.
        overridden: Option<Status>,
    },
}

/// A renewal among many: what a batch of a peer consists of.
#[derive(Clone, Debug)]
pub struct Renewal<'a> {
    /// Whose lease.
    pub key: KeyRef<'a>,
    /// The sender's version of the content.
    pub last_dirty: Option<i64>,
    /// The override the sending peer holds.
    pub overridden: Option<Status>,
}

/// What became of a [`Command`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reply {
    /// Of `Register` and `Adopt`.
    Registered(Registered),
    /// Of `Renew`.
    Renewed(Renewed),
    /// Of everything else.
    Changed(Changed),
}

/// What became of a registration.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Registered {
    /// It is in the registry.
    Accepted,
    /// A copy with a newer dirty timestamp was kept; its lease starts afresh.
    KeptNewer,
    /// Refused: a tombstone with a newer dirty timestamp is there, or the offer is as old as its lease. Peers only.
    Refused,
}

/// What became of a renewal: outcomes, not errors (200, 404, 404, 409 with the copy).
#[derive(Clone, Debug, PartialEq)]
pub enum Renewed {
    /// Renewed.
    Ok,
    /// No such lease (or its status is unknown): register.
    Missing,
    /// Renewed, but the sender has newer content: register.
    Ahead,
    /// Renewed, but ours is newer than the sending peer's: take this copy.
    Behind(Arc<LeaseView>),
}

/// What became of a cancel, override or metadata change.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Changed {
    /// Done.
    Ok,
    /// No such instance; nothing changed.
    Missing,
}

impl Origin {
    /// Whether it is another server: its word on a status counts, and what it sent is not forwarded.
    pub const fn is_peer(&self) -> bool {
        match self {
            Self::Peer(_) => true,
            Self::Client | Self::Operator | Self::Own => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PeerId;

    #[test]
    fn peers_are_named_without_their_credentials() {
        for (name, shown) in [
            ("http://a:8761/eureka/", "http://a:8761/eureka/"),
            ("http://u:p@a:8761/eureka/", "http://a:8761/eureka/"),
            ("http://u@v:p@a", "http://a"),
            ("http://a/x@y", "http://a/x@y"),
            ("10.0.0.1", "10.0.0.1"),
        ] {
            assert_eq!(PeerId(name.into()).without_credentials(), shown);
        }
    }
}
