//! Why calls are refused, and how that is told: the one place where gRPC codes and details are made.

use std::collections::HashMap;
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, StatusExt as _};

/// The domain of every ErrorInfo.
pub const DOMAIN: &str = "eureka.v1";
/// How long a client is asked to wait whom only the state of this server keeps from being answered.
const RETRY: Duration = Duration::from_secs(1);
/// Fields of one request that are named at most: a status has to fit the headers that clients accept, often 8 KiB.
const MAX_NAMED: usize = 8;
/// Bytes of a description that are told.
const MAX_DESCRIPTION: usize = 160;

/// The reasons of ErrorInfo: for programs, and never renamed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// A field has no value that makes sense; BadRequest names it.
    InvalidFields,
    /// The header `grpc-timeout` is none.
    InvalidTimeout,
    /// An application without instances.
    NoSuchApplication,
    /// No such lease or instance.
    NotRegistered,
    /// The server has too much to do.
    Overloaded,
    /// The server has just started and does not know the whole registry yet.
    ReadsHeld,
    /// The server stops.
    Stopping,
    /// The message has more bytes than the server takes.
    TooLarge,
    /// The message is not what the .proto says.
    Unreadable,
}

impl Reason {
    /// The name in ErrorInfo.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidFields => "INVALID_FIELDS",
            Self::InvalidTimeout => "INVALID_TIMEOUT",
            Self::NoSuchApplication => "NO_SUCH_APPLICATION",
            Self::NotRegistered => "NOT_REGISTERED",
            Self::Overloaded => "OVERLOADED",
            Self::ReadsHeld => "READS_HELD",
            Self::Stopping => "STOPPING",
            Self::TooLarge => "TOO_LARGE",
            Self::Unreadable => "UNREADABLE",
        }
    }

    /// What a person reads.
    const fn message(self) -> &'static str {
        match self {
            Self::InvalidFields => "a field has no value that makes sense",
            Self::InvalidTimeout => "grpc-timeout: expected one to eight digits and one of H, M, S, m, u, n",
            Self::NoSuchApplication => "no such application",
            Self::NotRegistered => "not registered",
            Self::Overloaded => "the server has too much to do",
            Self::ReadsHeld => {
                "reads are held: the server has just started and does not know the whole registry yet"
            }
            Self::Stopping => "the server stops",
            Self::TooLarge => "the message has more bytes than the server takes",
            Self::Unreadable => "the message is not what the .proto says",
        }
    }
}

/// Why a call is refused. It has changed nothing.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The client's deadline has passed.
    DeadlineExceeded,
    /// Fields are wrong.
    Fields(Violations),
    /// The application has no instance.
    NoSuchApplication,
    /// No such lease or instance.
    NotRegistered,
    /// Lists and watches are held back.
    ReadsHeld,
    /// The server stops: another one goes on.
    Stopping,
    /// `grpc-timeout` is none.
    Timeout,
    /// No such service or method.
    UnknownMethod,
}

/// What is wrong with the fields of a request. Paths are those of the .proto: `instance.host_name`.
#[derive(Debug, Default)]
pub(crate) struct Violations(Vec<FieldViolation>);

impl Violations {
    /// One more. The description may repeat what the client sent.
    pub(crate) fn push(&mut self, field: impl Into<String>, description: impl Into<String>) {
        if self.0.len() < MAX_NAMED {
            let description = shortened(description.into());
            self.0.push(FieldViolation::new(field, description));
        }
    }

    /// Refuses if there is one.
    pub(crate) fn check(self) -> Result<(), Refusal> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Refusal::Fields(self))
        }
    }
}

impl Refusal {
    /// One wrong field.
    pub(crate) fn field(field: impl Into<String>, description: impl Into<String>) -> Self {
        let mut violations = Violations::default();
        violations.push(field, description);
        Self::Fields(violations)
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::DeadlineExceeded => Self::deadline_exceeded("the deadline has passed"),
            Refusal::Fields(violations) => invalid(violations),
            Refusal::NoSuchApplication => status(Code::NotFound, Reason::NoSuchApplication, None),
            Refusal::NotRegistered => status(Code::NotFound, Reason::NotRegistered, None),
            Refusal::ReadsHeld => status(Code::Unavailable, Reason::ReadsHeld, Some(RETRY)),
            Refusal::Stopping => status(Code::Unavailable, Reason::Stopping, Some(RETRY)),
            Refusal::Timeout => status(Code::InvalidArgument, Reason::InvalidTimeout, None),
            Refusal::UnknownMethod => Self::unimplemented("no such service or method"),
        }
    }
}

/// A status with a reason.
pub(crate) fn status(code: Code, reason: Reason, retry_after: Option<Duration>) -> Status {
    told(code, reason, reason.message(), retry_after)
}

/// What a request that could not be read is answered. The codes of the library that reads them say that the server is at
/// fault, or speak of a range: who watches over a server must not be woken by a client that sends rubbish.
pub(crate) fn unread(error: Status) -> Status {
    let (code, message) = (error.code(), error.message());
    if matches!(code, Code::OutOfRange | Code::ResourceExhausted) {
        return told(Code::ResourceExhausted, Reason::TooLarge, message, None);
    }
    // The gRPC specification demands INTERNAL for a message whose compression flag makes no sense.
    if code == Code::Internal && !message.starts_with("protocol error") {
        return told(Code::InvalidArgument, Reason::Unreadable, message, None);
    }
    error
}

fn told(code: Code, reason: Reason, message: &str, retry_after: Option<Duration>) -> Status {
    let mut details = ErrorDetails::with_error_info(reason.as_str(), DOMAIN, HashMap::new());
    if let Some(retry_after) = retry_after {
        details.set_retry_info(Some(retry_after));
    }
    Status::with_error_details(code, shortened(message.to_owned()), details)
}

/// The message is the first violation: many clients show nothing else.
fn invalid(violations: Violations) -> Status {
    let reason = Reason::InvalidFields;
    let message = violations.0.first().map_or_else(
        || reason.message().to_owned(),
        |first| format!("{}: {}", first.field, first.description),
    );
    let mut details = ErrorDetails::with_bad_request(violations.0);
    details.set_error_info(reason.as_str(), DOMAIN, HashMap::new());
    Status::with_error_details(Code::InvalidArgument, message, details)
}

fn shortened(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_DESCRIPTION));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_fits_the_headers_of_any_client() {
        let mut violations = Violations::default();
        for _ in 0..100 {
            violations.push("instance.secure_health_check_url", "€".repeat(4_000));
        }
        let headers = Status::from(Refusal::Fields(violations)).into_http::<()>();
        let bytes: usize = headers
            .headers()
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len() + 32)
            .sum();
        assert!(bytes < 6_000, "{bytes}");
    }
}
