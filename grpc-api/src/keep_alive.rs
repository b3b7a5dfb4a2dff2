//! Renewals on a stream.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::time::Instant;
use tokio_stream::Stream;
use tonic::{Status, Streaming};

use crate::node::Node;
use crate::proto::{KeepAliveRequest, KeepAliveResponse};
use crate::refusal::Refusal;

/// Starts to answer renewals.
pub(crate) fn start(
    _node: &Arc<Node>,
    _renewals: Streaming<KeepAliveRequest>,
    _deadline: Option<Instant>,
) -> KeepingAlive {
    KeepingAlive
}

/// A stream of renewals under way.
#[derive(Debug)]
pub(crate) struct KeepingAlive;

impl Stream for KeepingAlive {
    type Item = Result<KeepAliveResponse, Status>;

    fn poll_next(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(Some(Err(Refusal::UnknownMethod.into())))
    }
}
