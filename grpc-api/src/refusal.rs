//! Why calls are refused, and how that is told: the one place where gRPC codes and details are made.

use std::collections::HashMap;
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

/// The domain of every ErrorInfo.
pub const DOMAIN: &str = "eureka.v1";

/// The reasons of ErrorInfo: for programs, and never renamed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// No such lease or instance.
    NotRegistered,
    /// An application without instances.
    NoSuchApplication,
    /// The server has just started and does not know the whole registry yet.
    ReadsHeld,
    /// The server stops.
    Stopping,
    /// The server has too much to do.
    Overloaded,
}

impl Reason {
    /// The name in ErrorInfo.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotRegistered => "NOT_REGISTERED",
            Self::NoSuchApplication => "NO_SUCH_APPLICATION",
            Self::ReadsHeld => "READS_HELD",
            Self::Stopping => "STOPPING",
            Self::Overloaded => "OVERLOADED",
        }
    }

    const fn message(self) -> &'static str {
        match self {
            Self::NotRegistered => "not registered",
            Self::NoSuchApplication => "no such application",
            Self::ReadsHeld => {
                "reads are held: the server has just started and does not know the whole registry yet"
            }
            Self::Stopping => "the server stops",
            Self::Overloaded => "the server has too much to do",
        }
    }
}

/// A status with a reason.
pub(crate) fn status(code: Code, reason: Reason, retry_after: Option<Duration>) -> Status {
    let mut details = ErrorDetails::with_error_info(reason.as_str(), DOMAIN, HashMap::new());
    if let Some(retry_after) = retry_after {
        details.set_retry_info(Some(retry_after));
    }
    Status::with_error_details(code, reason.message(), details)
}

/// Why a call is refused. It has changed nothing.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The server stops: other servers go on.
    Stopping,
    /// Lists and watches are held back.
    ReadsHeld,
    /// The client's deadline has passed.
    DeadlineExceeded,
    /// `grpc-timeout` is none.
    Timeout,
    /// Not there yet.
    Unimplemented,
}

/// How long who is refused because of the state of this server is asked to wait.
const RETRY: Duration = Duration::from_secs(1);

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Stopping => status(Code::Unavailable, Reason::Stopping, Some(RETRY)),
            Refusal::ReadsHeld => status(Code::Unavailable, Reason::ReadsHeld, Some(RETRY)),
            Refusal::DeadlineExceeded => Self::deadline_exceeded("the deadline has passed"),
            Refusal::Timeout => {
                Self::invalid_argument("grpc-timeout: expected up to 8 digits and one of H M S m u n")
            }
            Refusal::Unimplemented => Self::unimplemented("not implemented"),
        }
    }
}
