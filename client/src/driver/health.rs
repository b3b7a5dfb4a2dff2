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

type Answering = Pin<Box<dyn Future<Output = Option<Status>> + Send>>;

/// What the owner gave: a question that can be asked again and again.
#[derive(Clone)]
pub(super) struct Hook {
    ask: Arc<dyn Fn() -> Answering + Send + Sync>,
    within: Duration,
}

impl Hook {
    pub(super) fn new<F, A>(within: Duration, ask: F) -> Self
    where
        F: Fn() -> A + Send + Sync + 'static,
        A: Future<Output = Option<Status>> + Send + 'static,
    {
        Self {
            ask: Arc::new(move || Box::pin(ask())),
            within,
        }
    }
}

/// The hook at work. It runs as a task of its own, which ends with this: neither its panic nor its sleep keeps a
/// renewal from being sent.
#[derive(Debug)]
pub(super) struct Health {
    hook: Hook,
    asking: JoinSet<Option<Status>>,
}

impl Health {
    pub(super) fn new(hook: Hook) -> Self {
        Self {
            hook,
            asking: JoinSet::new(),
        }
    }

    /// Asks, unless the last question has not been answered yet.
    pub(super) fn ask(&mut self) {
        if !self.asking.is_empty() {
            return;
        }
        let Hook { ask, within } = self.hook.clone();
        self.asking.spawn(async move {
            let Ok(status) = timeout(within, async move { ask().await }).await else {
                warn!(
                    ?within,
                    "no answer of the health hook in time: the instance is DOWN"
                );
                return Some(Status::Down);
            };
            status
        });
    }

    /// The next answer; never if nothing was asked. Who cannot tell is not well: a hook that panics or takes too long means
    /// DOWN (as Java does for exceptions).
    pub(super) async fn next(health: &mut Option<Self>) -> Option<Status> {
        let Some(health) = health else {
            return pending().await;
        };
        match health.asking.join_next().await {
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

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook")
            .field("within", &self.within)
            .finish_non_exhaustive()
    }
}
