//! One connection: which protocol it speaks, and serving it to its end.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use pin_project_lite::pin_project;
use tokio::net::TcpStream;
use tower::Service;

use super::draining::Draining;
use super::listener::{Shared, Timeouts};
use super::socket::{Protocol, Socket};
use super::{Body, sender};
use crate::clock;
use crate::telemetry::Closed;

/// HTTP/2 has no idle connections: a peer that is there answers a ping.
pub(super) const PING_INTERVAL: Duration = Duration::from_secs(20);
/// Time for the answer to a ping.
pub(super) const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// Hyper's buffers, of heads and bodies, grow up to this.
const BUFFER_BYTES_MAX: usize = 64 << 10;

/// Builds connections; one for all.
#[derive(Clone, Debug)]
pub(super) struct Protocols {
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
}

impl Protocols {
    pub(super) fn new(headers: usize, streams: u32) -> Self {
        let mut http1 = http1::Builder::new();
        http1
            // The socket has the time-outs: a timer of its own for every request's head would be paid by every request.
            .header_read_timeout(None)
            .max_header_size(headers)
            .max_buf_size(BUFFER_BYTES_MAX.max(headers));
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        http2
            .timer(TokioTimer::new())
            .max_concurrent_streams(streams)
            .max_header_list_size(u32::try_from(headers).unwrap_or(u32::MAX))
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT);
        Self { http1, http2 }
    }
}

/// Serves a connection until it ends, by whichever side.
pub(super) async fn serve<S, F>(stream: TcpStream, shared: Arc<Shared<S>>)
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible, Future = F>
        + Clone
        + Send
        + Sync
        + 'static,
    F: Future<Output = Result<Response<Body>, Infallible>> + Send + 'static,
{
    // Answers are small and somebody waits for each.
    let _ = stream.set_nodelay(true);
    let remote = stream.peer_addr().ok().map(|address| address.ip());
    let activity = Arc::new(Activity::default());
    let Timeouts { head, .. } = shared.timeouts;
    let mut socket = Socket::new(
        stream,
        shared.timeouts,
        Arc::clone(&activity),
        Arc::clone(&shared.front.meters),
    );
    // Nobody marks the change as seen in `shared`.
    let mut stopping = shared.stopping.clone();
    let first = tokio::time::timeout(head, socket.protocol());
    let first = tokio::select! {
        first = first => first,
        _ = stopping.changed() => return,
    };
    let protocol = match first {
        Ok(Ok(protocol)) => protocol,
        Ok(Err(_)) => return,
        Err(_) => return shared.front.meters.closed(Closed::Head),
    };
    let service = ConnectionService {
        stack: RefCell::new(shared.stack.clone()),
        activity,
        remote,
    };
    let io = TokioIo::new(socket);
    // How a connection ends is its client's matter; what the node did is counted where it was done.
    match protocol {
        Protocol::Http1 => {
            let connection = shared.protocols.http1.serve_connection(io, service);
            let _ = Draining::new(connection, stopping).await;
        }
        Protocol::Http2 => {
            let connection = shared.protocols.http2.serve_connection(io, service);
            let _ = Draining::new(connection, stopping).await;
        }
    }
}

/// What the two ends of a connection tell each other: the requests of hyper's side, for the socket's time-outs.
#[derive(Debug, Default)]
pub(super) struct Activity {
    begun: AtomicU64,
    ended: AtomicU64,
    /// Answers of which something waits to be sent, by the number of their request, and since when. At most as many as there
    /// may be streams.
    sending: Mutex<BTreeMap<u64, Instant>>,
}

impl Activity {
    /// Requests begun and ended on this connection.
    pub(super) fn state(&self) -> (u64, u64) {
        (
            self.begun.load(Ordering::Relaxed),
            self.ended.load(Ordering::Relaxed),
        )
    }

    /// Whether a request is under way.
    pub(super) fn is_busy(&self) -> bool {
        let (begun, ended) = self.state();
        begun != ended
    }

    /// Since when the answer waits whose client has taken nothing for longest. Only streams of HTTP/2 can wait while the
    /// connection is in use.
    pub(super) fn unread_since(&self) -> Option<Instant> {
        self.sending.lock().values().min().copied()
    }
}

/// A request under way on a connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Serving {
    activity: Arc<Activity>,
    number: u64,
    sends: bool,
}

impl Serving {
    fn begin(activity: &Arc<Activity>) -> Self {
        Self {
            activity: Arc::clone(activity),
            number: activity.begun.fetch_add(1, Ordering::Relaxed),
            sends: false,
        }
    }

    /// The next piece of the answer's body is there, and the one before has been sent.
    pub(super) fn sends(&mut self) {
        self.sends = true;
        let mut sending = self.activity.sending.lock();
        sending.insert(self.number, clock::instant());
    }

    /// All of the answer's body that is there has been sent: it is the node that is waited for, not the reader.
    pub(super) fn waits(&mut self) {
        if self.sends {
            self.sends = false;
            self.activity.sending.lock().remove(&self.number);
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.waits();
        self.activity.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// Passes the requests of one connection to its copy of the stack.
#[derive(Debug)]
struct ConnectionService<S> {
    /// The connection's own: a copy for each request would be a dozen counts that all processors share.
    stack: RefCell<S>,
    activity: Arc<Activity>,
    /// Whose connection it is.
    remote: Option<IpAddr>,
}

impl<S> hyper::service::Service<Request<Incoming>> for ConnectionService<S>
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answering<S::Future>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        let serving = Serving::begin(&self.activity);
        sender::note(&mut request, self.remote);
        Answering {
            // Always ready, as `Stack` promises.
            inner: self.stack.borrow_mut().call(request),
            serving: Some(serving),
        }
    }
}

pin_project! {
    struct Answering<F> {
        #[pin]
        inner: F,
        serving: Option<Serving>,
    }
}

impl<F: Future<Output = Result<Response<Body>, Infallible>>> Future for Answering<F> {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut answer = ready!(this.inner.poll(cx));
        if let (Ok(response), Some(serving)) = (&mut answer, this.serving.take()) {
            response.body_mut().serve(serving);
        }
        Poll::Ready(answer)
    }
}
