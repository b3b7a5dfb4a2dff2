//! What the API counts. The names are documented in docs/operating.md; a recorder must be installed before
//! [`Api::new`](crate::Api::new), which takes the handles.

use std::sync::OnceLock;

use http::StatusCode;
use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

use crate::watch::Reset;

/// Requests answered, by `operation` and `status`.
pub const REQUESTS: &str = "eureka_http_requests_total";
/// Items of peers' batches, by `status` as answered.
pub const BATCH_ITEMS: &str = "eureka_http_batch_items_total";
/// Registrations in peers' batches that were answered 200, as Java does, but not taken because they were not valid.
pub const BATCH_INVALID: &str = "eureka_http_batch_invalid_registrations_total";
/// Newer copies that did not go with a 409 because the answer to the batch had reached `limits.batch`.
pub const BATCH_LEFT_OUT: &str = "eureka_http_batch_copies_left_out_total";
/// Items in a batch.
pub const BATCH_SIZE: &str = "eureka_http_batch_size";
/// Pages of lists encoded; readers that find a page encoded do not count.
pub const PAGES_ENCODED: &str = "eureka_http_pages_encoded_total";
/// Applications and virtual addresses encoded.
pub const ANSWERS_ENCODED: &str = "eureka_http_answers_encoded_total";
/// Answers that were encoded for one reader only because `limits.encoded` was reached.
pub const ANSWERS_NOT_KEPT: &str = "eureka_http_answers_not_kept_total";
/// Bytes of encoded answers that are kept.
pub const ENCODED_BYTES: &str = "eureka_http_encoded_bytes";
/// Reads over the limits of Java's rate limiter, by `verdict`: `candidate` (it is off) or `refused`.
pub const RATE_LIMITED: &str = "eureka_http_rate_limited_total";
/// Lists of the node and a set of other regions that were merged anew: once for each set that is asked for, and again when
/// a set comes back after it had to go.
pub const MERGED_LISTS: &str = "eureka_http_merged_lists_total";
/// Who follows the changes now, by `interface`: long polls that wait, and streams.
pub const WATCHERS: &str = "eureka_watchers";
/// Snapshots that streams began with, or began again with, by `interface` and `reason`.
pub const WATCH_SNAPSHOTS: &str = "eureka_watch_snapshots_total";
/// Changes sent to those who follow, by `interface`.
pub const WATCH_CHANGES: &str = "eureka_watch_changes_total";

/// Whatever a request can be, as a label.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Operation {
    Accept,
    Application,
    Applications,
    Asg,
    Batch,
    Cancel,
    Changes,
    ClearStatus,
    Delta,
    Healthcheck,
    Instance,
    Lastn,
    List,
    Metadata,
    Node,
    Other,
    Preservation,
    Register,
    Renew,
    Repair,
    SetStatus,
    Status,
    Vip,
}

impl Operation {
    const COUNT: usize = Self::Vip as usize + 1;

    const fn as_str(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Application => "application",
            Self::Applications => "applications",
            Self::Asg => "asg",
            Self::Batch => "batch",
            Self::Cancel => "cancel",
            Self::Changes => "changes",
            Self::ClearStatus => "clear_status",
            Self::Delta => "delta",
            Self::Healthcheck => "healthcheck",
            Self::Instance => "instance",
            Self::Lastn => "lastn",
            Self::List => "list",
            Self::Metadata => "metadata",
            Self::Node => "node",
            Self::Other => "other",
            Self::Preservation => "preservation",
            Self::Register => "register",
            Self::Renew => "renew",
            Self::Repair => "repair",
            Self::SetStatus => "set_status",
            Self::Status => "status",
            Self::Vip => "vip",
        }
    }
}

/// Every status the API answers; the last stands for any other.
const STATUSES: [StatusCode; 16] = [
    StatusCode::OK,
    StatusCode::NO_CONTENT,
    StatusCode::NOT_MODIFIED,
    StatusCode::BAD_REQUEST,
    StatusCode::FORBIDDEN,
    StatusCode::NOT_FOUND,
    StatusCode::METHOD_NOT_ALLOWED,
    StatusCode::NOT_ACCEPTABLE,
    StatusCode::CONFLICT,
    StatusCode::GONE,
    StatusCode::PAYLOAD_TOO_LARGE,
    StatusCode::URI_TOO_LONG,
    StatusCode::UNSUPPORTED_MEDIA_TYPE,
    StatusCode::MISDIRECTED_REQUEST,
    StatusCode::SERVICE_UNAVAILABLE,
    StatusCode::INTERNAL_SERVER_ERROR,
];

/// Handles of everything that is counted; those of requests are taken at the first of their kind.
pub(crate) struct Figures {
    requests: Box<[[OnceLock<Counter>; STATUSES.len()]; Operation::COUNT]>,
    items: [OnceLock<Counter>; STATUSES.len()],
    pub(crate) batch_invalid: Counter,
    pub(crate) batch_left_out: Counter,
    pub(crate) batch_size: Histogram,
    pub(crate) pages_encoded: Counter,
    pub(crate) answers_encoded: Counter,
    pub(crate) answers_not_kept: Counter,
    pub(crate) encoded_bytes: Gauge,
    pub(crate) rate_candidates: Counter,
    pub(crate) rate_refused: Counter,
    pub(crate) merged_lists: Counter,
    pub(crate) watchers: Gauge,
    pub(crate) watch_changes: Counter,
    watch_snapshots: [Counter; Reset::ALL.len()],
}

impl Figures {
    pub(crate) fn new() -> Self {
        Self {
            requests: Box::new(std::array::from_fn(|_| std::array::from_fn(|_| OnceLock::new()))),
            items: std::array::from_fn(|_| OnceLock::new()),
            batch_invalid: counter!(BATCH_INVALID),
            batch_left_out: counter!(BATCH_LEFT_OUT),
            batch_size: histogram!(BATCH_SIZE),
            pages_encoded: counter!(PAGES_ENCODED),
            answers_encoded: counter!(ANSWERS_ENCODED),
            answers_not_kept: counter!(ANSWERS_NOT_KEPT),
            encoded_bytes: gauge!(ENCODED_BYTES),
            rate_candidates: counter!(RATE_LIMITED, "verdict" => "candidate"),
            rate_refused: counter!(RATE_LIMITED, "verdict" => "refused"),
            merged_lists: counter!(MERGED_LISTS),
            watchers: gauge!(WATCHERS, "interface" => "http"),
            watch_changes: counter!(WATCH_CHANGES, "interface" => "http"),
            watch_snapshots: Reset::ALL
                .map(|reason| counter!(WATCH_SNAPSHOTS, "interface" => "http", "reason" => reason.as_str())),
        }
    }

    pub(crate) fn answered(&self, operation: Operation, status: StatusCode) {
        let position = position(status);
        self.requests[operation as usize][position]
            .get_or_init(|| {
                let status = STATUSES[position].as_str();
                counter!(REQUESTS, "operation" => operation.as_str(), "status" => status)
            })
            .increment(1);
    }

    pub(crate) fn snapshot(&self, reason: Reset) {
        self.watch_snapshots[reason as usize].increment(1);
    }

    pub(crate) fn items(&self, status: StatusCode, count: usize) {
        let position = position(status);
        self.items[position]
            .get_or_init(|| counter!(BATCH_ITEMS, "status" => STATUSES[position].as_str()))
            .increment(u64::try_from(count).unwrap_or(u64::MAX));
    }
}

impl std::fmt::Debug for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Figures").finish_non_exhaustive()
    }
}

fn position(status: StatusCode) -> usize {
    STATUSES
        .iter()
        .position(|known| *known == status)
        .unwrap_or(STATUSES.len() - 1)
}
