//! What is counted. A recorder must be installed before [`Grpc::new`](crate::Grpc::new), which takes the handles.

use metrics::{Counter, Gauge, counter, gauge};

/// Requests answered, by `method` (`Register`, ..., `other`) and `code` (`OK`, `NOT_FOUND`, ...); streams count when they end.
pub const REQUESTS: &str = "eureka_grpc_requests_total";
/// Streams of changes and of renewals that are open, by `interface`.
pub const WATCHERS: &str = "eureka_watchers";
/// Snapshots sent to readers of changes, by `interface` and `reason` (`start`, `other-server`, `too-old`).
pub const WATCH_SNAPSHOTS: &str = "eureka_watch_snapshots_total";
/// Changes sent to readers, by `interface`.
pub const WATCH_CHANGES: &str = "eureka_watch_changes_total";

/// The label of this frontend.
const INTERFACE: &str = "grpc";

/// Handles of what streams count.
pub(crate) struct Figures {
    watchers: Gauge,
    /// A snapshot because no cursor was given.
    pub(crate) snapshots_at_start: Counter,
    /// A snapshot because the cursor was of another server.
    pub(crate) snapshots_other_server: Counter,
    /// A snapshot because the changes are not there any more.
    pub(crate) snapshots_too_old: Counter,
    /// Changes sent.
    pub(crate) changes: Counter,
}

impl Figures {
    pub(crate) fn new() -> Self {
        let snapshots = |reason| counter!(WATCH_SNAPSHOTS, "interface" => INTERFACE, "reason" => reason);
        Self {
            watchers: gauge!(WATCHERS, "interface" => INTERFACE),
            snapshots_at_start: snapshots("start"),
            snapshots_other_server: snapshots("other-server"),
            snapshots_too_old: snapshots("too-old"),
            changes: counter!(WATCH_CHANGES, "interface" => INTERFACE),
        }
    }

    /// Counts one open stream until it is dropped.
    pub(crate) fn watcher(&self) -> Watcher {
        self.watchers.increment(1.0);
        Watcher(self.watchers.clone())
    }
}

impl std::fmt::Debug for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
