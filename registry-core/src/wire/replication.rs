//! The batches that servers send each other.

use std::sync::Arc;

use super::{DecodeError, Dialect, ItemError, Registration};
use crate::model::{InstanceKey, Status};
use crate::snapshot::LeaseView;

/// One item of a batch as received.
#[derive(Clone, Debug, PartialEq)]
pub enum BatchItem {
    /// As a DELETE of the instance.
    Cancel {
        /// Whom.
        key: InstanceKey,
    },
    /// As a DELETE of its status.
    DeleteStatusOverride {
        /// Whose.
        key: InstanceKey,
        /// The status to fall back to.
        status: Option<Status>,
        /// New dirty timestamp.
        last_dirty: Option<i64>,
    },
    /// As a renewal.
    Heartbeat {
        /// Whose.
        key: InstanceKey,
        /// The sender's version.
        last_dirty: Option<i64>,
        /// The override the sender holds.
        overridden: Option<Status>,
    },
    /// As a registration under `app`; still to be validated.
    Register {
        /// The application the item names.
        app: Arc<str>,
        /// What is to be registered.
        registration: Box<Registration>,
    },
    /// As a PUT of its status.
    StatusUpdate {
        /// Whose.
        key: InstanceKey,
        /// The status to show.
        status: Status,
        /// New dirty timestamp.
        last_dirty: Option<i64>,
    },
}

/// One item of a batch as sent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum OutgoingItem {
    /// The instance is gone.
    Cancel {
        /// Which.
        key: InstanceKey,
    },
    /// Its override is gone.
    DeleteStatusOverride {
        /// Whose.
        key: InstanceKey,
        /// The status to fall back to; `None` is `UNKNOWN`.
        status: Option<Status>,
        /// Its dirty timestamp.
        last_dirty: i64,
    },
    /// It renewed.
    Heartbeat {
        /// Who.
        key: InstanceKey,
        /// Its dirty timestamp.
        last_dirty: Option<i64>,
        /// Its status.
        status: Status,
        /// The override held here.
        overridden: Option<Status>,
    },
    /// It registered.
    Register(Arc<LeaseView>),
    /// It has an override.
    StatusUpdate {
        /// Whose.
        key: InstanceKey,
        /// The status to show.
        status: Status,
        /// Its dirty timestamp.
        last_dirty: Option<i64>,
    },
}

/// The answer to one item, as sent.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemAnswer {
    /// As an HTTP status.
    pub status: u16,
    /// The newer copy that comes with a 409.
    pub newer: Option<Arc<LeaseView>>,
}

/// The answer to one item, as received.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ReceivedAnswer {
    /// As an HTTP status.
    pub status: u16,
    /// The newer copy that comes with a 409; still to be validated.
    pub newer: Option<Registration>,
}

/// Reads a batch item by item. Under [`Dialect::Java`] one item that cannot be read fails the whole batch.
pub fn read_batch(_body: &[u8], _dialect: Dialect) -> Result<Vec<Result<BatchItem, ItemError>>, DecodeError> {
    unimplemented!()
}

/// The body of a batch.
pub fn write_batch(_items: &[OutgoingItem]) -> Vec<u8> {
    unimplemented!()
}

/// The answer to a batch: as many answers as it had items, in their order.
pub fn write_batch_answer(_answers: &[ItemAnswer]) -> Vec<u8> {
    unimplemented!()
}

/// Reads the answer to a batch.
pub fn read_batch_answer(_body: &[u8]) -> Result<Vec<ReceivedAnswer>, DecodeError> {
    unimplemented!()
}
