//! What can be wrong with bytes.

use std::fmt;

use crate::model::InstanceKey;

/// Why a body could not be read. Nothing was changed.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum DecodeError {
    /// `null`, or nothing, where the named thing must stand. Java answers 500 to this, 400 to everything else.
    Absent(&'static str),
    /// The bytes are not JSON or XML at all; the text says where.
    Malformed(String),
    /// Well-formed, but not what was expected; the text says what.
    Unexpected(String),
    /// More nesting or more elements than any honest body has.
    TooComplex,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent(what) => write!(f, "missing {what}"),
            Self::Malformed(text) | Self::Unexpected(text) => f.write_str(text),
            Self::TooComplex => f.write_str("body too deeply nested or with too many elements"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// Why a registration that could be read is refused. The texts are Java's.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Invalid {
    /// Neither an id nor anything to derive it from.
    InstanceId,
    /// No host name.
    HostName,
    /// No IP address.
    IpAddress,
    /// No application name.
    AppName,
    /// The application of the path is another than that of the body.
    Mismatch {
        /// That of the path, upper case.
        path: String,
        /// That of the body.
        body: String,
    },
    /// No `dataCenterInfo`.
    DataCenter,
    /// A `dataCenterInfo` without `name`.
    DataCenterName,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InstanceId => f.write_str("Missing instanceId"),
            Self::HostName => f.write_str("Missing hostname"),
            Self::IpAddress => f.write_str("Missing ip address"),
            Self::AppName => f.write_str("Missing appName"),
            Self::Mismatch { path, body } => {
                write!(f, "Mismatched appName, expecting {path} but was {body}")
            }
            Self::DataCenter => f.write_str("Missing dataCenterInfo"),
            Self::DataCenterName => f.write_str("Missing dataCenterInfo Name"),
        }
    }
}

impl std::error::Error for Invalid {}

/// Why one item of a batch is refused; the others are not touched by it.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ItemError {
    /// No action, or none we know.
    Action,
    /// No application name or no id.
    Key,
    /// A `Register` without `instanceInfo`.
    Instance,
    /// A status update without a status that exists.
    Status,
    /// A `DeleteStatusOverride` without `lastDirtyTimestamp` (refused by Java only).
    LastDirty,
    /// A `Register` whose `instanceInfo` could not be read. Its sender will go on to send heartbeats.
    Registration {
        /// Whom the item names.
        key: InstanceKey,
        /// The dirty timestamp of the item.
        last_dirty: Option<i64>,
        /// What is wrong with the instance.
        error: DecodeError,
    },
    /// It could not be read.
    Unreadable(DecodeError),
}

impl fmt::Display for ItemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Action => f.write_str("missing or unknown action"),
            Self::Key => f.write_str("missing appName or id"),
            Self::Instance => f.write_str("missing instanceInfo"),
            Self::Status => f.write_str("missing or unknown status"),
            Self::LastDirty => f.write_str("missing lastDirtyTimestamp"),
            Self::Registration { error, .. } | Self::Unreadable(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ItemError {}

impl From<DecodeError> for ItemError {
    fn from(error: DecodeError) -> Self {
        Self::Unreadable(error)
    }
}
