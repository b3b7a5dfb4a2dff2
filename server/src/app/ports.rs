//! The addresses of the node, and what is served at each.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use http::{Request, Response};
use hyper::body::Incoming;
use tokio::sync::watch;
use tower::Service;
use tracing::{info, warn};

use crate::config::Settings;
use crate::http::{Body, Front, Listener, Speaks};

/// What was bound.
#[derive(Debug)]
pub(super) struct Ports {
    /// REST and the page, and gRPC if they share it.
    pub(super) http: Listener,
    /// gRPC, on a port of its own.
    pub(super) grpc: Option<Listener>,
    shared: bool,
}

impl Ports {
    /// Binds them. That of gRPC may be taken if nobody asked for it: other nodes of this machine have the same default.
    pub(super) fn bind(settings: &Settings) -> anyhow::Result<Self> {
        let bind = |address| Listener::bind(address).with_context(|| format!("cannot listen on {address}"));
        let http = bind(settings.server.listen)?;
        let shared = settings.shares_port();
        let address = settings.grpc_address();
        let grpc = if shared || !settings.grpc.enabled {
            None
        } else if settings.grpc.given.is_some() {
            Some(bind(address).context("grpc.listen")?)
        } else {
            match Listener::bind(address) {
                Ok(listener) => Some(listener),
                Err(error) => {
                    warn!(%address, %error, "no gRPC: its default address cannot be had; set grpc.listen to another one");
                    None
                }
            }
        };
        if !settings.grpc.enabled {
            info!("no gRPC: grpc.enabled is false");
        }
        Ok(Self { http, grpc, shared })
    }

    /// Where REST is served.
    pub(super) fn http_address(&self) -> SocketAddr {
        self.http.address()
    }

    /// Where gRPC is served, if it is.
    pub(super) fn grpc_address(&self) -> Option<SocketAddr> {
        if self.shared {
            return Some(self.http_address());
        }
        self.grpc.as_ref().map(Listener::address)
    }

    /// Serves what `stack_of` makes for each address until `stop` is told true or dropped; then accepts no more, and waits
    /// `server.drain-timeout` for requests under way. Returns whether all of them ended.
    pub(super) async fn serve<S, F>(
        self,
        settings: &Settings,
        front: &Arc<Front>,
        stack_of: impl Fn(Speaks) -> S,
        stop: watch::Receiver<bool>,
    ) -> bool
    where
        S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible, Future = F>
            + Clone
            + Send
            + Sync
            + 'static,
        F: Future<Output = Result<Response<Body>, Infallible>> + Send + 'static,
    {
        let stopped = |mut stop: watch::Receiver<bool>| async move {
            // Sent or dropped, it is the end.
            let _ = stop.wait_for(|stop| *stop).await;
            settings.server.drain_timeout
        };
        let serve = |port: Listener, speaks| {
            let stopped = stopped(stop.clone());
            port.serve(&settings.limits, Arc::clone(front), stack_of(speaks), stopped)
        };
        let speaks = if self.shared { Speaks::Both } else { Speaks::Http };
        let http = serve(self.http, speaks);
        let Some(grpc) = self.grpc else {
            return http.await;
        };
        let (http, grpc) = tokio::join!(http, serve(grpc, Speaks::Grpc));
        http && grpc
    }
}
