//! The layer that names requests and logs them.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use http::{HeaderName, HeaderValue, Method, Request, Response, Uri};
use pin_project_lite::pin_project;
use tower::{Layer, Service};
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

/// A request id that a client sent is sent back. At level `debug` every request is logged, with an id of ours if it has
/// none; otherwise only those that end in 500 or INTERNAL, and the frequent ones pay for a look at one header.
#[derive(Clone, Debug)]
pub(super) struct TraceLayer;

#[derive(Clone, Debug)]
pub(super) struct Trace<S> {
    inner: S,
}

impl<S> Layer<S> for TraceLayer {
    type Service = Trace<S>;

    fn layer(&self, inner: S) -> Trace<S> {
        Trace { inner }
    }
}

impl<S, B> Service<Request<B>> for Trace<S>
where
    S: Service<Request<B>, Response = Response<Body>>,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Tracing<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let id = header(request.headers(), &REQUEST_ID)
            .filter(|id| id.len() <= ID_BYTES_MAX)
            .cloned();
        let request_line = tracing::enabled!(Level::DEBUG).then(|| {
            Box::new(RequestLine {
                method: request.method().clone(),
                uri: request.uri().clone(),
                started: clock::instant(),
            })
        });
        Tracing {
            inner: self.inner.call(request),
            id,
            request_line,
        }
    }
}

#[derive(Debug)]
struct RequestLine {
    method: Method,
    uri: Uri,
    started: Instant,
}

pin_project! {
    pub(super) struct Tracing<F> {
        #[pin]
        inner: F,
        id: Option<HeaderValue>,
        request_line: Option<Box<RequestLine>>,
    }
}

impl<F: Future<Output = Result<Response<Body>, E>>, E> Future for Tracing<F> {
    type Output = Result<Response<Body>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut answer = ready!(this.inner.poll(cx));
        if let Ok(response) = &mut answer {
            let broken = response.status().as_u16() == 500 || call_status(response) == Some(INTERNAL);
            if broken || this.request_line.is_some() {
                this.id.get_or_insert_with(own_id);
                log(this.id.as_ref(), this.request_line.as_deref(), response, broken);
            }
            if let Some(id) = this.id.take() {
                response.headers_mut().insert(REQUEST_ID, id);
            }
        }
        Poll::Ready(answer)
    }
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
