//! The client as its owner holds it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::builder::Builder;
#[cfg(feature = "dns")]
use super::lookups::LookupStats;
use super::registration::RegistrationHandle;
use super::shared::Shared;
use crate::agent::{Registration, Stats};
use crate::cache::{Cache, Publisher};

/// A client at work: registers an instance, discovers others, or both, until it is dropped.
///
/// Dropping it leaves in the background: the instance is told to be DOWN and then cancelled, which takes at most
/// [`Builder::leave_within`]; the task ends with that. [`shutdown`](Self::shutdown) waits for it. If the runtime is shut
/// down before, nothing is sent any more, and the lease runs out.
#[must_use = "the client leaves when it is dropped"]
pub struct Client {
    shared: Arc<Shared>,
    /// Of clients that discover.
    cache: Option<Cache>,
    /// Taken by whoever waits for its end.
    task: Option<JoinHandle<()>>,
}

/// A client's state at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Facts {
    /// How the registration stands; `None` for a client that registers nothing.
    pub registration: Option<Registration>,
    /// What was counted since the start.
    pub stats: Stats,
    /// How old what is known of others is; `None` if nothing is known.
    pub age: Option<Duration>,
    /// Panics that the client survived: bugs, all of them.
    pub panics: u64,
    /// What came of looking for servers; all zero for a client without sources.
    #[cfg(feature = "dns")]
    pub lookups: LookupStats,
}

impl Client {
    /// Says what a client is to do.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(super) fn new(shared: Arc<Shared>, cache: Option<Cache>, task: JoinHandle<()>) -> Self {
        Self {
            shared,
            cache,
            task: Some(task),
        }
    }

    /// What is known of the registry; it stays readable when the client has ended. Of a client that was not told to
    /// [`discover`](Builder::discover) it is a cache that has ended, with nothing in it.
    pub fn cache(&self) -> Cache {
        let nothing = || {
            let clock = self.shared.clock;
            Publisher::new(move || clock.now()).cache()
        };
        self.cache.clone().unwrap_or_else(nothing)
    }

    /// The client's own instance.
    pub fn registration(&self) -> RegistrationHandle {
        RegistrationHandle::new(Arc::clone(&self.shared))
    }

    /// Asks a server now what there is, instead of when it is due.
    pub fn refresh(&self) {
        self.shared.change(|agent, now| agent.refresh(now));
    }

    /// How it does.
    pub fn facts(&self) -> Facts {
        let (registration, stats) = self.shared.look(|agent| (agent.registration(), agent.stats()));
        Facts {
            registration,
            stats,
            age: self.cache.as_ref().and_then(Cache::age),
            panics: self.shared.panics(),
            #[cfg(feature = "dns")]
            lookups: self.shared.lookups(),
        }
    }

    /// Leaves, and waits until that is done, at most [`Builder::leave_within`]; then for listeners that are being called and
    /// for the last copy on disk, at most 5 s more. True if nothing of it is registered any
    /// more: a server confirmed that the instance is gone, or there was none. False if no server did: the lease runs out.
    pub async fn shutdown(mut self) -> bool {
        self.leave();
        if let Some(task) = self.task.take() {
            // An error is a runtime that is being shut down.
            let _ = task.await;
        }
        self.shared.is_cancelled() || self.registration().now().is_none()
    }

    fn leave(&self) {
        self.shared.change(|agent, now| agent.leave(now));
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if self.task.take().is_some() {
            self.leave();
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("facts", &self.facts()).finish()
    }
}
