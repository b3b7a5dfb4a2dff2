//! Accepting connections, as many as are allowed, until the node stops.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tower::Service;
use tracing::warn;

use super::connection::{self, Protocols};
use super::pressure::Pressure;
use super::{Body, Front};
use crate::config::Limits;
use crate::telemetry::Closed;

/// Connections the kernel keeps waiting to be accepted.
const BACKLOG: u32 = 4096;
/// Time before another try when a connection cannot be accepted, for want of a free file mostly.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// Sent to a connection over the limit, before it is closed.
const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// A bound socket.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
}

/// How long a connection is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    /// For first bytes, and for a request's head.
    pub(super) head: Duration,
    /// Between requests.
    pub(super) idle: Duration,
    /// For the reader of an answer.
    pub(super) write: Duration,
}

/// What all connections share.
#[derive(Debug)]
pub(super) struct Shared<S> {
    pub(super) front: Arc<Front>,
    pub(super) stack: S,
    pub(super) timeouts: Timeouts,
    pub(super) protocols: Protocols,
    /// Becomes true when the node stops: who has not said anything yet is not waited for.
    pub(super) stopping: watch::Receiver<bool>,
}

impl Listener {
    /// Binds an address; port 0 takes a free one.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // A node that was stopped can start again at once.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(BACKLOG)?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// The address that was bound.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves `stack` until `stop` is ready; then accepts no more, and waits `drain` for requests under way. Returns
    /// whether all of them ended.
    pub async fn serve<S, F>(
        self,
        limits: &Limits,
        front: Arc<Front>,
        stack: S,
        stop: impl Future<Output = Duration>,
    ) -> bool
    where
        S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible, Future = F>
            + Clone
            + Send
            + Sync
            + 'static,
        F: Future<Output = Result<Response<Body>, Infallible>> + Send + 'static,
    {
        let (stopped, stopping) = watch::channel(false);
        let shared = Arc::new(Shared {
            stopping,
            front,
            stack,
            timeouts: Timeouts {
                head: limits.header_timeout,
                idle: limits.idle_timeout,
                write: limits.write_timeout,
            },
            protocols: Protocols::new(limits.headers, limits.streams),
        });
        let drain = tokio::select! {
            drain = stop => drain,
            never = self.accept(limits.connections, &shared) => match never {},
        };
        drop(self.listener);
        stopped.send_replace(true);
        // Every connection holds what all share, and with it somebody to whom that can be said.
        drop(shared);
        tokio::time::timeout(drain, stopped.closed()).await.is_ok()
    }

    async fn accept<S, F>(&self, connections_max: usize, shared: &Arc<Shared<S>>) -> Infallible
    where
        S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible, Future = F>
            + Clone
            + Send
            + Sync
            + 'static,
        F: Future<Output = Result<Response<Body>, Infallible>> + Send + 'static,
    {
        loop {
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    shared.front.meters.accept_errors.increment(1);
                    warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_RETRY).await;
                    continue;
                }
            };
            shared.front.meters.connections.increment(1);
            let open = Open::enter(&shared.front.pressure);
            if shared.front.pressure.connections.load(Ordering::Relaxed) > connections_max {
                refuse(&stream);
                shared.front.meters.closed(Closed::Limit);
                continue;
            }
            let serving = connection::serve(stream, Arc::clone(shared));
            tokio::spawn(async move {
                serving.await;
                drop(open);
            });
        }
    }
}

/// Says why, if the socket takes it at once: a client that reads it tries another node.
fn refuse(stream: &TcpStream) {
    let _ = stream.try_write(BUSY);
}

/// A connection, until it is dropped.
struct Open(Arc<Pressure>);

impl Open {
    fn enter(pressure: &Arc<Pressure>) -> Self {
        pressure.connections.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(pressure))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
