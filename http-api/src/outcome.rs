//! From outcomes of the registry, and from requests that are refused, to HTTP: the one place where a status is chosen.

use std::fmt;
use std::sync::Arc;

use eureka_registry_core::wire::{DecodeError, Format, Invalid, ItemError};
use eureka_registry_core::{Changed, Excess, Hold, LeaseView, PastError, Registered, Renewed};
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};

use crate::Answer;
use crate::body::Body;
use crate::config::{Allow, Config};

/// Bytes of a reason that are told.
const REASON_BYTES: usize = 200;
/// The media type of a reason.
const PLAIN: &str = "text/plain; charset=utf-8";
/// Seconds after which it is worth asking again whether reads are held.
const HELD_RETRY: HeaderValue = HeaderValue::from_static("5");

/// 200 with nothing behind it: the exact answer that every client wants for a renewal.
pub(crate) fn done() -> Answer {
    Response::new(Body::empty())
}

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Answer {
    let mut answer = done();
    *answer.status_mut() = status;
    answer
}

/// An answer with a body of this type.
pub(crate) fn with_body(status: StatusCode, content_type: &'static str, body: Body) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

/// Marks an answer as one of this moment: nobody on the way keeps it, holds it back or changes it.
pub(crate) fn mark_momentary(answer: &mut Answer) {
    answer
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store, no-transform"));
}

/// Marks a body as compressed.
pub(crate) fn mark_gzip(answer: &mut Answer) {
    answer
        .headers_mut()
        .insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
}

/// A registration: 204 whatever became of it, as in Java; a peer learns from its next heartbeat that its copy lost.
pub(crate) fn registered(outcome: Registered) -> StatusCode {
    match outcome {
        Registered::Accepted | Registered::KeptNewer | Registered::Refused => StatusCode::NO_CONTENT,
    }
}

/// A cancel, override or metadata change.
pub(crate) fn changed(outcome: Changed) -> StatusCode {
    match outcome {
        Changed::Ok => StatusCode::OK,
        Changed::Missing => StatusCode::NOT_FOUND,
    }
}

/// A renewal; the copy goes with a 409.
pub(crate) fn renewed(outcome: Renewed) -> (StatusCode, Option<Arc<LeaseView>>) {
    match outcome {
        Renewed::Ok => (StatusCode::OK, None),
        Renewed::Missing | Renewed::Ahead => (StatusCode::NOT_FOUND, None),
        Renewed::Behind(newer) => (StatusCode::CONFLICT, Some(newer)),
    }
}

/// An item of a batch that could not be read: 500 in Java where the item lacks something, else 400.
pub(crate) fn unreadable_item(error: &ItemError, java_errors: bool) -> StatusCode {
    let read = !matches!(error, ItemError::Registration { .. } | ItemError::Unreadable(_));
    if java_errors && read {
        StatusCode::INTERNAL_SERVER_ERROR
    } else {
        StatusCode::BAD_REQUEST
    }
}

/// Why a request is refused. Nothing was changed, except where Java's half-done changes are asked for.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// No such thing. Without a body: Java clients would try to decode it and not register again.
    NotFound,
    /// The path is there, not with this method.
    Method(&'static [&'static str]),
    /// Neither JSON nor XML is accepted.
    NotAcceptable,
    /// A body of a type, charset or encoding we do not read.
    MediaType(&'static str),
    /// Path and query are too long.
    UriTooLong,
    /// A body, or what it says, or what would be answered, is too big.
    TooLarge(TooLarge),
    /// A parameter has no value that makes sense.
    Parameter {
        name: &'static str,
        expected: &'static str,
    },
    /// The query is not UTF-8.
    QueryNotUtf8,
    /// The body stopped before its end; the text says why. Perhaps nobody reads the answer.
    BodyBroken(String),
    /// A filter that does not parse; the text says where.
    Filter(String),
    /// A body that cannot be read, sent in this format.
    Unreadable(Format, DecodeError),
    /// A registration that lacks something.
    Invalid(Format, Invalid),
    /// A moment of the past that is not past.
    Future,
    /// A moment of the past that nobody knows any more.
    Gone(PastError),
    /// A parameter that belongs to another path.
    Misplaced { name: &'static str, path: &'static str },
    /// Lists are held back.
    Held,
    /// The change feed is held back, as lists are: for this reason.
    FeedHeld(Hold),
    /// More reads than the rate limiter admits.
    RateLimited,
    /// Too many bytes of bodies are on their way in: later.
    Busy,
    /// Sent by this very node to itself.
    Own,
    /// Switched off.
    Forbidden(&'static str),
    /// There is nothing to be done with it here: auto-scaling groups are Amazon's.
    Unsupported,
    /// Java fails here.
    JavaFailure,
}

/// What is too big, and the limit in bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TooLarge {
    Answer(usize),
    Body(usize),
    Instance(Excess),
}

impl Refusal {
    const fn status(&self) -> StatusCode {
        match self {
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::NotAcceptable => StatusCode::NOT_ACCEPTABLE,
            Self::MediaType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::UriTooLong => StatusCode::URI_TOO_LONG,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Parameter { .. }
            | Self::Future
            | Self::Misplaced { .. }
            | Self::QueryNotUtf8
            | Self::BodyBroken(_)
            | Self::Filter(_)
            | Self::Unreadable(..)
            | Self::Invalid(..)
            | Self::Unsupported => StatusCode::BAD_REQUEST,
            Self::Gone(_) => StatusCode::GONE,
            Self::Own => StatusCode::MISDIRECTED_REQUEST,
            Self::Held | Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::FeedHeld(_) | Self::RateLimited | Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::JavaFailure => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The answer. Where Java has such a path (`ours` is not set), `java_errors` leaves out every text Java does not give.
    pub(crate) fn into_answer(self, config: &Config, ours: bool) -> Answer {
        let java_errors = config.java_errors && !ours;
        let status = self.status();
        match &self {
            Self::NotFound
            | Self::NotAcceptable
            | Self::Held
            | Self::RateLimited
            | Self::Busy
            | Self::Own
            | Self::Unsupported
            | Self::JavaFailure => empty(status),
            Self::Method(methods) => {
                let mut answer = empty(status);
                let with_head = config.allow != Allow::Spring;
                answer.headers_mut().insert(ALLOW, allow(methods, with_head));
                answer
            }
            Self::Unreadable(format, error) => {
                let body = unreadable(*format, (!java_errors).then_some(error));
                with_body(status, format.content_type(), body.into())
            }
            Self::FeedHeld(_) => {
                let mut answer = with_body(status, PLAIN, self.to_string().into());
                answer.headers_mut().insert(RETRY_AFTER, HELD_RETRY);
                answer
            }
            // Java labels its plain text with the accepted type.
            Self::Invalid(format, invalid) if java_errors => {
                with_body(status, format.content_type(), invalid.to_string().into())
            }
            Self::MediaType(_)
            | Self::UriTooLong
            | Self::TooLarge(_)
            | Self::Parameter { .. }
            | Self::Future
            | Self::Gone(_)
            | Self::Misplaced { .. }
            | Self::QueryNotUtf8
            | Self::BodyBroken(_)
            | Self::Filter(_)
            | Self::Invalid(..)
            | Self::Forbidden(_) => {
                if java_errors {
                    return empty(status);
                }
                let reason = one_line(&self.to_string());
                with_body(status, PLAIN, reason.into())
            }
        }
    }
}

impl From<Excess> for Refusal {
    fn from(excess: Excess) -> Self {
        Self::TooLarge(TooLarge::Instance(excess))
    }
}

impl From<PastError> for Refusal {
    fn from(error: PastError) -> Self {
        if error == PastError::Future {
            Self::Future
        } else {
            Self::Gone(error)
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("not found"),
            Self::Method(_) => f.write_str("method not allowed"),
            Self::NotAcceptable => f.write_str("only application/json and application/xml are served"),
            Self::MediaType(expected) => write!(f, "{expected} expected"),
            Self::UriTooLong => f.write_str("path and query too long"),
            Self::TooLarge(TooLarge::Answer(limit)) => write!(f, "answer over {limit} bytes"),
            Self::TooLarge(TooLarge::Body(limit)) => write!(f, "body over {limit} bytes"),
            Self::TooLarge(TooLarge::Instance(excess)) => excess.fmt(f),
            Self::Parameter { name, expected } => write!(f, "parameter {name}: {expected} expected"),
            Self::Future => write!(f, "parameter at: {}", PastError::Future),
            Self::Gone(error) => error.fmt(f),
            Self::Misplaced { name, path } => write!(f, "parameter {name}: it belongs to {path}"),
            Self::QueryNotUtf8 => f.write_str("query is not UTF-8"),
            Self::BodyBroken(error) => write!(f, "body: {error}"),
            Self::Filter(error) => write!(f, "filter: {error}"),
            Self::Unreadable(_, error) => write!(f, "cannot parse request body: {error}"),
            Self::Invalid(_, invalid) => invalid.fmt(f),
            Self::Held => f.write_str("lists are held back"),
            Self::FeedHeld(Hold::Starting) => f.write_str("reads are held: the node is starting"),
            Self::FeedHeld(Hold::EmptySync) => {
                f.write_str("reads are held: the node began empty and waits for heartbeats")
            }
            Self::Busy => f.write_str("too many bodies"),
            Self::Own => f.write_str("sent by this very node"),
            Self::RateLimited => f.write_str("too many reads"),
            Self::Forbidden(why) => f.write_str(why),
            Self::Unsupported => f.write_str("auto-scaling groups are not supported"),
            Self::JavaFailure => f.write_str("failed"),
        }
    }
}

/// `Allow`, with HEAD wherever GET is.
pub(crate) fn allow(methods: &[&str], with_head: bool) -> HeaderValue {
    let mut text = String::new();
    for method in methods {
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(method);
        if with_head && *method == "GET" {
            text.push_str(",HEAD");
        }
    }
    HeaderValue::from_str(&text).expect("methods are ASCII")
}

/// Java's answer to a body it cannot read, with the reason if there is one to be given.
fn unreadable(format: Format, reason: Option<&DecodeError>) -> String {
    const TEXT: &str = "cannot parse request body";
    let reason = reason.map(|error| format!(": {}", one_line(&error.to_string())));
    let reason = reason.unwrap_or_default();
    match format {
        // The space is Java's.
        Format::Json => format!(
            "{{\"error\": {}}}",
            serde_json::Value::from(format!("{TEXT}{reason}"))
        ),
        Format::Xml => format!("<error><message>{TEXT}{}</message></error>", escape(&reason)),
    }
}

/// A reason, short and on one line: it may repeat what the client sent, which may be of any length.
fn one_line(reason: &str) -> String {
    let end = reason.floor_char_boundary(REASON_BYTES);
    let mut line: String = reason[..end]
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if end < reason.len() {
        line.push_str(" ...");
    }
    line
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            c => escaped.push(c),
        }
    }
    escaped
}
