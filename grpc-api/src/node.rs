//! The frontend of one node: what all its connections and streams share.

use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{Feed, PageCache, RegistryHandle};
use tokio_util::sync::CancellationToken;
use tonic::Code;
use tonic::body::Body;

use crate::figures::Figures;
use crate::refusal::{self, Reason};
use crate::watch::{Forms, Kept, Messages};
use crate::{Config, GrpcService};

/// The gRPC frontend of a registry. Cheap to clone; all clones are the same frontend.
#[derive(Clone, Debug)]
pub struct Grpc {
    node: Arc<Node>,
    service: GrpcService,
}

/// What calls and streams work with.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) registry: RegistryHandle,
    pub(crate) feed: Arc<Feed<Forms>>,
    /// What readers who begin are told, as far as others read it already.
    pub(crate) pages: PageCache<Messages>,
    pub(crate) kept: Arc<Kept>,
    pub(crate) config: Config,
    pub(crate) figures: Figures,
    /// Cancelled when the node stops.
    pub(crate) closed: CancellationToken,
}

impl Node {
    /// Whether the node stops.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }
}

impl Grpc {
    /// The frontend of this registry.
    pub fn new(registry: RegistryHandle, config: Config) -> Self {
        let node = Arc::new(Node {
            feed: Feed::new(registry.clone(), config.feed_kept),
            pages: PageCache::default(),
            kept: Arc::default(),
            registry,
            config,
            figures: Figures::new(),
            closed: CancellationToken::new(),
        });
        Self {
            service: GrpcService::new(&node),
            node,
        }
    }

    /// A service for one connection, or for all: they share everything.
    pub fn service(&self) -> GrpcService {
        self.service.clone()
    }

    /// The node stops: streams end with UNAVAILABLE, reason STOPPING, and health answers NOT_SERVING. Calls are still
    /// answered.
    pub fn close(&self) {
        self.node.closed.cancel();
        self.node.feed.close();
    }

    /// What a layer in front of the service answers when it refuses a gRPC request: status 200 with `code` in
    /// `grpc-status`, `reason` as ErrorInfo, and `retry_after` as RetryInfo.
    pub fn refuse(code: Code, reason: Reason, retry_after: Option<Duration>) -> http::Response<Body> {
        refusal::status(code, reason, retry_after).into_http()
    }
}
