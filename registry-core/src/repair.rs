//! What nodes of ours tell each other to become equal again: digests, entries, copies with their ages, and cancels.
//!
//! These are the messages as values; `wire::repair` is their bytes, `docs/repair.md` the protocol.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use crate::model::{Instance, InstanceKey, Status};
use crate::time::Wall;

/// Entries are summed up in so many buckets by the hash of their key.
pub const BUCKETS: usize = 1_024;
/// At most this many late leases are asked about in one exchange.
pub const LATE_MAX: usize = 1_000;
/// The list of whole buckets ends when it has this many entries: what is asked for behind its last bucket is not in it.
pub const LIST_MAX: usize = 1_000;
/// At most this many keys and copies go in one exchange, and instances in a page of a copy.
pub const EXCHANGE_MAX: usize = 1_000;

/// When and where an override was set or cleared: the greater one wins.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Stamp {
    /// When, by the clock of the node that took it.
    pub at: Wall,
    /// Which node that was: the first half of its id.
    pub node: u64,
}

/// An override with its stamp. A cleared one has no status.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stamped {
    /// What readers are to see; `None`: what the instance says itself.
    pub status: Option<Status>,
    /// Since when.
    pub stamp: Stamp,
}

/// One line of a bucket.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// Whose.
    pub key: InstanceKey,
    /// Dirty timestamp of the copy, or of the cancelled one.
    pub dirty: i64,
    /// What is known of it.
    pub state: EntryState,
}

/// What a node knows of an instance.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EntryState {
    /// It is registered, and its lease has not run out.
    Held {
        /// Hash of its reported content.
        content: u64,
        /// Its override.
        overridden: Option<Status>,
        /// Stamp of the override, or of its removal if that is remembered.
        stamp: Option<Stamp>,
        /// How long ago anybody heard of it.
        age: Duration,
    },
    /// It is registered, and changed in the last two seconds: not to be compared yet.
    Moving,
    /// It was cancelled so long ago.
    Gone {
        /// How long ago.
        ago: Duration,
    },
}

/// What one node hands to another.
#[derive(Clone, Debug, PartialEq)]
pub enum Offer {
    /// A copy.
    Copy {
        /// As it was reported: with its own status and without an override.
        instance: Arc<Instance>,
        /// How long ago anybody heard of it.
        age: Duration,
        /// Its override, or that it was cleared.
        overridden: Option<Stamped>,
    },
    /// A cancel.
    Gone {
        /// Whose.
        key: InstanceKey,
        /// Dirty timestamp of what was cancelled.
        dirty: i64,
        /// How long ago.
        ago: Duration,
    },
}

impl Offer {
    /// Whom it concerns.
    pub fn key(&self) -> InstanceKey {
        match self {
            Self::Copy { instance, .. } => instance.key(),
            Self::Gone { key, .. } => key.clone(),
        }
    }
}

/// A step of a repair, as who begins it sees it. Small: what goes on the wire is filled in when it is sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Step {
    /// Are we equal? And what do you know of leases that are late here?
    Compare,
    /// What is in these buckets?
    List {
        /// Their numbers.
        buckets: Vec<u16>,
    },
    /// Give me these, take those.
    Exchange {
        /// To be asked for.
        pull: Vec<InstanceKey>,
        /// To be handed over, as they are when it is sent.
        push: Vec<InstanceKey>,
    },
    /// Everything, at start-up: the page behind a key.
    Copy {
        /// `None`: the first page.
        after: Option<InstanceKey>,
    },
}

/// A step as it is sent.
#[derive(Clone, Debug, PartialEq)]
pub enum RepairRequest {
    /// See [`Step::Compare`].
    Compare {
        /// Sum of everything the sender holds.
        root: u64,
        /// Leases that are late at the sender.
        late: Vec<InstanceKey>,
    },
    /// See [`Step::List`].
    List {
        /// Which.
        buckets: Vec<u16>,
    },
    /// See [`Step::Exchange`].
    Exchange {
        /// Wanted by the sender.
        pull: Vec<InstanceKey>,
        /// Given by the sender.
        push: Vec<Offer>,
    },
    /// See [`Step::Copy`].
    Copy {
        /// The page behind this key.
        after: Option<InstanceKey>,
    },
}

/// The answer to a [`RepairRequest`], of the same kind.
#[derive(Clone, Debug, PartialEq)]
pub enum RepairAnswer {
    /// To `Compare`.
    Compare {
        /// Sum of everything the answering node holds.
        root: u64,
        /// Its buckets, [`BUCKETS`] of them; empty if the roots are equal.
        sums: Vec<u64>,
        /// Ages of those late leases that it has heard of, if they have not run out there.
        ages: Vec<(InstanceKey, Duration)>,
        /// Cancels of those late leases that it remembers, with the dirty timestamp and how long ago that was. What has run
        /// out at the sender is in no list that is compared.
        gone: Vec<(InstanceKey, i64, Duration)>,
    },
    /// To `List`.
    List {
        /// Whole buckets in the order they were asked for, and in each the entries in one order: at least [`LIST_MAX`] of them,
        /// or else all.
        entries: Vec<Entry>,
    },
    /// To `Exchange`.
    Exchange {
        /// What was asked for and is there.
        offers: Vec<Offer>,
    },
    /// To `Copy`.
    Copy {
        /// Instances in the order of keys, then nothing else: at most [`EXCHANGE_MAX`].
        offers: Vec<Offer>,
        /// The page ends here and there is more.
        more: bool,
        /// Instances held in all.
        total: usize,
        /// Whether its lists are held: then it may hold little because it has only just started.
        held: bool,
    },
}

/// What a node has learned from the answer to its step, and so what to do next.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Learned {
    /// Nothing differs.
    Equal,
    /// These buckets differ.
    Differ {
        /// Their numbers.
        buckets: Vec<u16>,
    },
    /// These keys do; all may be empty (all differences are moving).
    Plan {
        /// The other copy wins, or is the only one. At most [`EXCHANGE_MAX`].
        pull: Vec<InstanceKey>,
        /// Ours wins, or is the only one; also cancels. At most [`EXCHANGE_MAX`].
        push: Vec<InstanceKey>,
        /// Buckets that were asked for and not compared: they hold too much for one list.
        left: Vec<u16>,
    },
    /// Copies changed hands.
    Exchanged {
        /// Of those received, so many changed something here.
        adopted: usize,
        /// So many were received.
        received: usize,
        /// So many were sent.
        sent: usize,
    },
    /// A page of a copy was taken over.
    Copied {
        /// Instances on the page.
        received: usize,
        /// The next page begins behind this key.
        next: Option<InstanceKey>,
        /// Instances the other node holds.
        total: usize,
        /// Whether its lists are held.
        held: bool,
    },
    /// The answer does not fit the step.
    Nonsense,
}

impl Learned {
    /// The same, with so many copies that changed something.
    pub(crate) fn with_adopted(mut self, changed: usize) -> Self {
        if let Self::Exchanged { adopted, .. } = &mut self {
            *adopted = changed;
        }
        self
    }
}
