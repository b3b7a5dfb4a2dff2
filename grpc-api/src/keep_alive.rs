//! `KeepAlive`: renewals of many instances over one stream.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use eureka_registry_core::{InstanceKey, Origin, Renewed};
use tokio::task::coop::poll_proceed;
use tokio::time::Instant;
use tokio_stream::Stream;
use tokio_util::sync::WaitForCancellationFutureOwned;
use tonic::{Status, Streaming};

use crate::convert;
use crate::figures::Watcher;
use crate::node::Node;
use crate::proto::{KeepAliveRequest, KeepAliveResponse, Renewal, RenewalOutcome, RenewalResult};
use crate::refusal::{self, Refusal};
use crate::watch::Timer;

/// Renewals in a message at most.
const MAX_RENEWALS: usize = 1_000;

/// Starts to answer renewals.
pub(crate) fn start(
    node: &Arc<Node>,
    renewals: Streaming<KeepAliveRequest>,
    deadline: Option<Instant>,
) -> KeepingAlive {
    KeepingAlive {
        renewals: Some(renewals),
        timer: Timer::new(deadline, None),
        closed: Box::pin(node.closed.clone().cancelled_owned()),
        _open: node.figures.watcher(),
        node: Arc::clone(node),
    }
}

/// A stream of renewals under way. It reads a message when there is room for the answer to the one before, so that a client
/// who does not read its answers is not read either.
pub(crate) struct KeepingAlive {
    node: Arc<Node>,
    /// None when the stream has ended.
    renewals: Option<Streaming<KeepAliveRequest>>,
    timer: Timer,
    closed: Pin<Box<WaitForCancellationFutureOwned>>,
    _open: Watcher,
}

impl Stream for KeepingAlive {
    type Item = Result<KeepAliveResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        // A client who sends without pause must not keep the thread from others.
        let turn = ready!(poll_proceed(context));
        let answer = ready!(self.poll_answer(context));
        turn.made_progress();
        if !matches!(answer, Some(Ok(_))) {
            self.renewals = None;
        }
        Poll::Ready(answer)
    }
}

impl KeepingAlive {
    fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<KeepAliveResponse, Status>>> {
        let Some(renewals) = &mut self.renewals else {
            return Poll::Ready(None);
        };
        if self.closed.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(Refusal::Stopping.into())));
        }
        if self.timer.poll_due(context).is_ready() {
            return Poll::Ready(Some(Err(Refusal::DeadlineExceeded.into())));
        }
        Poll::Ready(match ready!(Pin::new(renewals).poll_next(context)) {
            Some(Ok(request)) => Some(self.renew(request).map_err(Status::from)),
            Some(Err(error)) => Some(Err(refusal::unread(error))),
            None => None,
        })
    }

    /// Renews what a message names, or nothing if it is not as it has to be.
    fn renew(&self, request: KeepAliveRequest) -> Result<KeepAliveResponse, Refusal> {
        let keys = keys(&request.renewals)?;
        let results = request
            .renewals
            .into_iter()
            .zip(keys)
            .map(|(renewal, key)| RenewalResult {
                outcome: self.outcome(&key, renewal.last_dirty_unix_ms).into(),
                app: renewal.app,
                instance_id: renewal.instance_id,
            })
            .collect();
        Ok(KeepAliveResponse { results })
    }

    fn outcome(&self, key: &InstanceKey, last_dirty: Option<i64>) -> RenewalOutcome {
        let registry = &self.node.registry;
        match registry.renew(Origin::Client, key, last_dirty, None) {
            // Only a peer is told that its copy is older.
            Renewed::Ok | Renewed::Behind(_) => RenewalOutcome::Renewed,
            Renewed::Missing => RenewalOutcome::NotRegistered,
            Renewed::Ahead => RenewalOutcome::ContentOutdated,
        }
    }
}

/// Whom a message names, in its order.
fn keys(renewals: &[Renewal]) -> Result<Vec<InstanceKey>, Refusal> {
    if renewals.is_empty() || renewals.len() > MAX_RENEWALS {
        let problem = format!("expected 1 to {MAX_RENEWALS} renewals, found {}", renewals.len());
        return Err(Refusal::field("renewals", problem));
    }
    renewals
        .iter()
        .enumerate()
        .map(|(index, renewal)| {
            let prefix = format!("renewals[{index}].");
            convert::key(&prefix, &renewal.app, &renewal.instance_id)
        })
        .collect()
}

impl fmt::Debug for KeepingAlive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeepingAlive").finish_non_exhaustive()
    }
}
