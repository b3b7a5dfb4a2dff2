//! The addresses of the node, and what is served at each.

use std::net::SocketAddr;

use anyhow::Context as _;
use tracing::{info, warn};

use crate::config::Settings;
use crate::http::{Listener, Speaks};

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

    /// What the port of REST speaks.
    pub(super) fn speaks(&self) -> Speaks {
        if self.shared { Speaks::Both } else { Speaks::Http }
    }
}
