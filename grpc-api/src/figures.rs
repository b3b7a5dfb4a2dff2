//! What is counted. The names are documented in docs/operating.md; a recorder must be installed before
//! [`Grpc::new`](crate::Grpc::new), which takes the handles.

use std::fmt;
use std::sync::OnceLock;

use metrics::{Counter, Gauge, counter, gauge};
use tonic::Code;

use crate::proto::SnapshotReason;

/// Requests answered, by `method` (`Register`, ..., `other`) and `code` (`OK`, `NOT_FOUND`, ...). Streams count when they
/// end, as `CANCELLED` if the client ended them.
pub const REQUESTS: &str = "eureka_grpc_requests_total";
/// Streams of changes and of renewals that are open, by `interface`.
pub const WATCHERS: &str = "eureka_watchers";
/// Snapshots sent to readers of changes, by `interface` and `reason` (`start`, `other-server`, `too-old`).
pub const WATCH_SNAPSHOTS: &str = "eureka_watch_snapshots_total";
/// Changes sent to readers, by `interface`.
pub const WATCH_CHANGES: &str = "eureka_watch_changes_total";
/// Changes encoded for readers, by `interface`: one encoding serves all of them, unless they are far behind.
pub const WATCH_ENCODINGS: &str = "eureka_watch_encodings_total";

/// The label of this frontend.
const INTERFACE: &str = "grpc";

/// Whatever a request can ask for, as a label.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Method {
    Cancel,
    ClearStatus,
    GetApplication,
    GetInstance,
    HealthCheck,
    HealthWatch,
    KeepAlive,
    ListApplications,
    Other,
    Reflection,
    ReflectionAlpha,
    Register,
    Renew,
    SetStatus,
    UpdateMetadata,
    Watch,
}

impl Method {
    const COUNT: usize = Self::Watch as usize + 1;

    /// The method at this path.
    pub(crate) fn of(path: &str) -> Self {
        match path {
            "/eureka.v1.Registry/Cancel" => Self::Cancel,
            "/eureka.v1.Registry/ClearStatus" => Self::ClearStatus,
            "/eureka.v1.Registry/GetApplication" => Self::GetApplication,
            "/eureka.v1.Registry/GetInstance" => Self::GetInstance,
            "/eureka.v1.Registry/KeepAlive" => Self::KeepAlive,
            "/eureka.v1.Registry/ListApplications" => Self::ListApplications,
            "/eureka.v1.Registry/Register" => Self::Register,
            "/eureka.v1.Registry/Renew" => Self::Renew,
            "/eureka.v1.Registry/SetStatus" => Self::SetStatus,
            "/eureka.v1.Registry/UpdateMetadata" => Self::UpdateMetadata,
            "/eureka.v1.Registry/Watch" => Self::Watch,
            "/grpc.health.v1.Health/Check" => Self::HealthCheck,
            "/grpc.health.v1.Health/Watch" => Self::HealthWatch,
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo" => Self::Reflection,
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo" => Self::ReflectionAlpha,
            _ => Self::Other,
        }
    }

    /// Whether its answer is a stream.
    pub(crate) const fn is_streamed(self) -> bool {
        matches!(
            self,
            Self::HealthWatch | Self::KeepAlive | Self::Reflection | Self::ReflectionAlpha | Self::Watch
        )
    }

    /// Whether that stream knows the client's deadline, and when the node stops.
    pub(crate) const fn ends_by_itself(self) -> bool {
        matches!(self, Self::KeepAlive | Self::Watch)
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "Cancel",
            Self::ClearStatus => "ClearStatus",
            Self::GetApplication => "GetApplication",
            Self::GetInstance => "GetInstance",
            Self::HealthCheck => "Health/Check",
            Self::HealthWatch => "Health/Watch",
            Self::KeepAlive => "KeepAlive",
            Self::ListApplications => "ListApplications",
            Self::Other => "other",
            Self::Reflection | Self::ReflectionAlpha => "Reflection",
            Self::Register => "Register",
            Self::Renew => "Renew",
            Self::SetStatus => "SetStatus",
            Self::UpdateMetadata => "UpdateMetadata",
            Self::Watch => "Watch",
        }
    }
}

/// The names of the codes, by number.
const CODES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// Handles of everything that is counted; those of requests are taken at the first of their kind.
pub(crate) struct Figures {
    requests: Box<[[OnceLock<Counter>; CODES.len()]; Method::COUNT]>,
    watchers: Gauge,
    /// A snapshot because no cursor was given.
    snapshots_at_start: Counter,
    /// A snapshot because the cursor was of another server.
    snapshots_other_server: Counter,
    /// A snapshot because the changes are not there any more.
    snapshots_too_old: Counter,
    /// Changes sent.
    pub(crate) changes: Counter,
    /// Changes encoded.
    pub(crate) encodings: Counter,
}

impl Figures {
    pub(crate) fn new() -> Self {
        let snapshots = |reason| counter!(WATCH_SNAPSHOTS, "interface" => INTERFACE, "reason" => reason);
        Self {
            requests: Box::new(std::array::from_fn(|_| std::array::from_fn(|_| OnceLock::new()))),
            watchers: gauge!(WATCHERS, "interface" => INTERFACE),
            snapshots_at_start: snapshots("start"),
            snapshots_other_server: snapshots("other-server"),
            snapshots_too_old: snapshots("too-old"),
            changes: counter!(WATCH_CHANGES, "interface" => INTERFACE),
            encodings: counter!(WATCH_ENCODINGS, "interface" => INTERFACE),
        }
    }

    /// Counts a snapshot.
    pub(crate) fn snapshot(&self, reason: SnapshotReason) {
        match reason {
            SnapshotReason::OtherServer => self.snapshots_other_server.increment(1),
            SnapshotReason::TooOld => self.snapshots_too_old.increment(1),
            SnapshotReason::Start | SnapshotReason::Unspecified => self.snapshots_at_start.increment(1),
        }
    }

    /// Counts a request that is over.
    pub(crate) fn answered(&self, method: Method, code: Code) {
        let code = code as usize;
        self.requests[method as usize][code]
            .get_or_init(|| counter!(REQUESTS, "method" => method.as_str(), "code" => CODES[code]))
            .increment(1);
    }

    /// Counts one open stream until it is dropped.
    pub(crate) fn watcher(&self) -> Watcher {
        self.watchers.increment(1.0);
        Watcher(self.watchers.clone())
    }
}

impl fmt::Debug for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Figures").finish_non_exhaustive()
    }
}

/// One open stream.
pub(crate) struct Watcher(Gauge);

impl Drop for Watcher {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher").finish_non_exhaustive()
    }
}
