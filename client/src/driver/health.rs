//! The owner's opinion of its own health, asked for now and then.

use std::fmt;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::Status;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};
use tracing::warn;

/// No hook is waited for longer than that: a timer of tokio's has an end.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);

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
    /// Until when the question may be answered; `None` if nothing was asked, or the answer is late and of no use any more.
    until: Option<Instant>,
}

impl Health {
    pub(super) fn new(ask: Ask, within: Duration) -> Self {
        Self {
            ask,
            within,
            asked: JoinSet::new(),
            until: None,
        }
    }

    /// Asks, unless the last question has not been answered yet.
    pub(super) fn ask(&mut self) {
        if !self.asked.is_empty() {
            return;
        }
        let ask = Arc::clone(&self.ask);
        self.asked.spawn(async move { ask().await });
        self.until = Some(Instant::now() + self.within.min(LONGEST));
    }

    /// The next answer; never if nothing was asked. Who cannot tell is not well: a hook that panics or takes too long means
    /// DOWN (as Java does for exceptions). The time is taken here and not in the hook's task, which may block its thread.
    pub(super) async fn next(health: &mut Option<Self>) -> Option<Status> {
        let Some(health) = health else {
            return pending().await;
        };
        loop {
            let until = health.until;
            let late = async {
                match until {
                    Some(until) => sleep_until(until).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                Some(answer) = health.asked.join_next() => {
                    if health.until.take().is_some() {
                        return judge(answer);
                    }
                }
                () = late => {
                    health.until = None;
                    health.asked.abort_all();
                    warn!(
                        within = ?health.within,
                        "no answer of the health hook in time: the instance is DOWN"
                    );
                    return Some(Status::Down);
                }
            }
        }
    }
}

fn judge(answer: Result<Option<Status>, JoinError>) -> Option<Status> {
    match answer {
        Ok(status) => status,
        Err(error) if error.is_panic() => {
            warn!("the health hook panicked: the instance is DOWN");
            Some(Status::Down)
        }
        // Aborted: the runtime is being shut down.
        Err(_) => None,
    }
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Health")
            .field("within", &self.within)
            .finish_non_exhaustive()
    }
}
