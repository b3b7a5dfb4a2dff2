//! What an agent asks of a server, and what comes of it: the seam between the machine and whatever sends its requests.

use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::wire::Applications;
use eureka_registry_core::{Action, Instance, InstanceKey, LeaseView, Status};

use crate::server::Server;

/// Names one request of one agent; never used twice.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RequestId(pub u64);

/// A request to send now.
#[derive(Clone, Debug)]
pub struct Request {
    /// To be given back with the answer.
    pub id: RequestId,
    /// To whom.
    pub server: Arc<Server>,
    /// What.
    pub call: Call,
    /// From the beginning to the last byte of the answer; what takes longer is [`Answer::TimedOut`].
    pub within: Duration,
}

/// What is asked of a server.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Call {
    /// `POST apps/{app}`: 204 is [`Answer::Done`].
    Register(Arc<Instance>),
    /// `PUT apps/{app}/{id}?status=&lastDirtyTimestamp=`: 200 is [`Answer::Done`], 404 is [`Answer::NotFound`].
    Renew {
        /// Which instance.
        key: InstanceKey,
        /// Its status as it sees it.
        status: Status,
        /// The version of its content that was registered.
        last_dirty: i64,
    },
    /// `DELETE apps/{app}/{id}`: 200 is [`Answer::Done`], 404 is [`Answer::NotFound`].
    Cancel(InstanceKey),
    /// `GET apps`, or a virtual address: 200 is [`Answer::List`], 304 is [`Answer::Unchanged`].
    Fetch {
        /// All instances, or those of one virtual address.
        what: Scope,
        /// `regions=`; nothing is sent for none.
        regions: Arc<[Arc<str>]>,
        /// The tag of the list that is held, for `If-None-Match`.
        held: Option<Arc<str>>,
    },
    /// `GET apps/delta`: 200 is [`Answer::List`].
    Delta {
        /// `regions=`; nothing is sent for none.
        regions: Arc<[Arc<str>]>,
    },
    /// `GET /api/v1/changes?since=&filter=&wait=&limit=`, of our servers only: 200 is [`Answer::Changes`], 410 is
    /// [`Answer::Gone`], 404 is [`Answer::NotFound`] and means that this server has no feed.
    Changes {
        /// The cursor of the last answer; without one the answer is the cursor of now, at once.
        since: Option<Arc<str>>,
        /// Which instances, in the filter language; all for `None`.
        filter: Option<Arc<str>>,
        /// How long the server is to wait if there is nothing.
        wait: Duration,
    },
}

impl Call {
    /// Whether it asks for something, and changes nothing.
    pub fn is_read(&self) -> bool {
        match self {
            Self::Fetch { .. } | Self::Delta { .. } | Self::Changes { .. } => true,
            Self::Register(_) | Self::Renew { .. } | Self::Cancel(_) => false,
        }
    }
}

/// Which part of a registry somebody wants to know.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Scope {
    /// All of it.
    #[default]
    All,
    /// One element of `vipAddress`.
    Vip(Arc<str>),
    /// One element of `secureVipAddress`.
    SecureVip(Arc<str>),
}

/// What came of a request. Whoever sends requests decides by the status first, and never needs a body where none belongs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Answer {
    /// It was done (2xx for what answers without a body).
    Done,
    /// 404.
    NotFound,
    /// A list or a delta.
    List {
        /// What is in it.
        applications: Applications,
        /// Its tag, if the server gives one.
        tag: Option<Arc<str>>,
    },
    /// 304: what is held is current.
    Unchanged,
    /// Changes behind a cursor.
    Changes {
        /// Where to go on.
        cursor: Arc<str>,
        /// What happened, in order.
        changes: Vec<Change>,
        /// The lists of this server also have instances of other regions, of which the feed does not tell.
        remote: bool,
    },
    /// 410: too much lies between, or the server does not know the cursor.
    Gone,
    /// Any other status: the request was understood and refused, or the server cannot serve now.
    Refused {
        /// Of HTTP.
        status: u16,
        /// `Retry-After`, as a time from now.
        retry_after: Option<Duration>,
    },
    /// No answer in time. The server may have done what it was asked for.
    TimedOut,
    /// No answer: no connection, or it broke. The server may have done what it was asked for.
    Unreachable(String),
    /// A 2xx answer whose body makes no sense, in at most 300 characters.
    Garbage(String),
}

/// One change of the feed.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// What happened; [`Action::Deleted`] takes the instance away, the others make it what it is now.
    pub action: Action,
    /// The instance now, or as it was before it was deleted.
    pub view: LeaseView,
}
