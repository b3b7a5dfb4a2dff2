//! What the registry tells its owner after a change.

use alloc::sync::Arc;

use crate::command::Origin;
use crate::model::{Instance, InstanceKey};

/// What happened, in the order it happened. Drain them after every call that changes state.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A command took effect, also a renewal (behind a lock only if the sink `hears_renewals`).
    Applied {
        /// Position among all events of this boot, from 1 without gaps.
        seq: u64,
        /// Version of the registry after the change; renewals leave it as it was.
        version: u64,
        /// Whom it concerns.
        key: InstanceKey,
        /// What was done.
        kind: AppliedKind,
        /// The instance before.
        before: Option<Arc<Instance>>,
        /// The instance after.
        after: Option<Arc<Instance>>,
        /// Who asked for it: what a peer sent is not forwarded.
        origin: Origin,
    },
    /// A lease ran out and was evicted. Never forwarded.
    Expired {
        /// Position among all events.
        seq: u64,
        /// Version of the registry after the change.
        version: u64,
        /// Whose lease.
        key: InstanceKey,
        /// The instance as it was.
        before: Arc<Instance>,
    },
    /// A lease was not heard of for two thirds of its duration.
    Late {
        /// Whose lease.
        key: InstanceKey,
    },
    /// Preservation began (`true`) or ended.
    Preserving(bool),
}

/// What an [`Event::Applied`] was.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AppliedKind {
    /// A registration was accepted, or an older one refreshed the lease of the copy that was kept.
    Registered,
    /// A lease was renewed.
    Renewed,
    /// An instance was cancelled.
    Cancelled,
    /// A status override was set.
    Overridden,
    /// A status override was removed.
    OverrideCleared,
    /// Metadata was changed.
    MetadataChanged,
    /// A copy held by another node was taken over.
    Adopted,
}
