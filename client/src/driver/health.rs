//! The owner's opinion of its own health, asked for now and then.

use std::fmt;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::Status;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::warn;

/// The owner's hook: a question that can be asked again and again.
pub(super) type Ask = Arc<dyn Fn() -> Asked + Send + Sync>;

type Asked = Pin<Box<dyn Future<Output = Option<Status>> + Send>>;

pub(super) fn ask<F, A>(hook: F) -> Ask
where
    F: Fn() -> A + Send + Sync + 'static,
    A: Future<Output = Option<Status>> + Send + 'static,
{
    Arc::new(move || Box::pin(hook()))
}

/// The hook at work. It runs as a task of its own, which ends with this: neither its panic nor its sleep keeps a
/// renewal from being sent.
pub(super) struct Health {
    ask: Ask,
    within: Duration,
    asked: JoinSet<Option<Status>>,
}

impl Health {
    pub(super) fn new(ask: Ask, within: Duration) -> Self {
        Self {
            ask,
            within,
            asked: JoinSet::new(),
        }
    }

    /// Asks, unless the last question has not been answered yet.
    pub(super) fn ask(&mut self) {
        if !self.asked.is_empty() {
            return;
        }
        let (ask, within) = (Arc::clone(&self.ask), self.within);
        self.asked.spawn(async move {
            let answered = timeout(within, async move { ask().await }).await;
            answered.unwrap_or_else(|_| {
                warn!(
                    ?within,
                    "no answer of the health hook in time: the instance is DOWN"
                );
                Some(Status::Down)
            })
        });
    }

    /// The next answer; never if nothing was asked. Who cannot tell is not well: a hook that panics or takes too long means
    /// DOWN (as Java does for exceptions).
    pub(super) async fn next(health: &mut Option<Self>) -> Option<Status> {
        let Some(health) = health else {
            return pending().await;
        };
        match health.asked.join_next().await {
            Some(Ok(status)) => status,
            Some(Err(error)) if error.is_panic() => {
                warn!("the health hook panicked: the instance is DOWN");
                Some(Status::Down)
            }
            // Aborted: the runtime is being shut down.
            Some(Err(_)) => None,
            None => pending().await,
        }
    }
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Health")
            .field("within", &self.within)
            .finish_non_exhaustive()
    }
}
