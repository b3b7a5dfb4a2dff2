//! Requests are named and logged.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use http::{HeaderName, HeaderValue, Method, Request, Response, Uri};
use tracing::{Level, debug, error};

use super::Body;
use super::work::header;
use crate::clock;

/// Names a request in answers and log lines.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Where a call that was refused at once says why.
const CALL_STATUS: HeaderName = HeaderName::from_static("grpc-status");
/// What a call is told when something panicked.
const INTERNAL: &[u8] = b"13";
/// A longer id is not repeated.
const ID_BYTES_MAX: usize = 128;

/// The name of a request. An id that a client sent is sent back. At level `debug` every request is logged, with an id of ours if
/// it has none; otherwise only those that end in 500 or INTERNAL, and the frequent ones pay for a look at one header.
#[derive(Debug)]
pub(super) struct Trace {
    id: Option<HeaderValue>,
    request_line: Option<Box<RequestLine>>,
}

impl Trace {
    pub(super) fn of<B>(request: &Request<B>) -> Self {
        let id = header(request.headers(), &REQUEST_ID).filter(|id| id.len() <= ID_BYTES_MAX);
        let request_line = tracing::enabled!(Level::DEBUG).then(|| {
            Box::new(RequestLine {
                method: request.method().clone(),
                uri: request.uri().clone(),
                started: clock::instant(),
            })
        });
        Self {
            id: id.cloned(),
            request_line,
        }
    }

    /// Logs the answer, if it is to be logged, and names it.
    pub(super) fn end(&mut self, response: &mut Response<Body>) {
        let broken = response.status().as_u16() == 500 || call_status(response) == Some(INTERNAL);
        if broken || self.request_line.is_some() {
            self.id.get_or_insert_with(own_id);
            log(self.id.as_ref(), self.request_line.as_deref(), response, broken);
        }
        if let Some(id) = self.id.take() {
            response.headers_mut().insert(REQUEST_ID, id);
        }
    }
}

#[derive(Debug)]
struct RequestLine {
    method: Method,
    uri: Uri,
    started: Instant,
}

fn own_id() -> HeaderValue {
    static LAST: AtomicU64 = AtomicU64::new(0);
    HeaderValue::from(LAST.fetch_add(1, Ordering::Relaxed) + 1)
}

fn call_status(response: &Response<Body>) -> Option<&[u8]> {
    response.headers().get(CALL_STATUS).map(HeaderValue::as_bytes)
}

fn log(id: Option<&HeaderValue>, line: Option<&RequestLine>, response: &Response<Body>, broken: bool) {
    let status = response.status().as_u16();
    if broken {
        error!(?id, status, "a request ended in an internal error");
    }
    if let Some(RequestLine { method, uri, started }) = line {
        let micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        let call = response.headers().get(CALL_STATUS);
        debug!(?id, %method, %uri, status, ?call, micros, "request");
    }
}
