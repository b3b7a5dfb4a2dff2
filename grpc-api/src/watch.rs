//! Watching the registry.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::time::Instant;
use tokio_stream::Stream;
use tonic::Status;

use crate::encoded::Encoded;
use crate::node::Node;
use crate::proto::WatchRequest;
use crate::refusal::Refusal;

/// What is made of a change once for all watchers.
#[derive(Debug, Default)]
pub(crate) struct Forms;

/// Starts a watch.
pub(crate) fn start(
    _node: &Arc<Node>,
    _request: WatchRequest,
    _deadline: Option<Instant>,
) -> Result<Watching, Status> {
    Err(Refusal::UnknownMethod.into())
}

/// A watch under way.
#[derive(Debug)]
pub(crate) struct Watching;

impl Stream for Watching {
    type Item = Result<Encoded, Status>;

    fn poll_next(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(None)
    }
}
