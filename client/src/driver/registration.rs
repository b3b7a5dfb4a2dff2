//! The registration, for whoever has something to say about it or waits for it.

use std::sync::Arc;

use eureka_registry_core::{Instance, Status};

use super::shared::Shared;
use crate::agent::{Phase, Registration};

/// A client's own instance. Cheap to clone; does not keep the client alive. What is changed here is told to the servers at
/// once, within the agent's rate limit, and the newest state is never lost. Without
/// [`Builder::register`](super::Builder::register), and after the client has ended, changes are without effect.
#[derive(Clone, Debug)]
pub struct RegistrationHandle {
    shared: Arc<Shared>,
}

impl RegistrationHandle {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// How it stands now: whether a server has it, which, since when, and the instance as it is. `None` for a client
    /// that registers nothing.
    pub fn now(&self) -> Option<Registration> {
        self.shared.look(|agent| agent.registration())
    }

    /// The instance's status from now on. STARTING and OUT_OF_SERVICE are left alone by the health hook.
    pub fn set_status(&self, status: Status) {
        self.shared.change(|agent, now| agent.set_status(now, status));
    }

    /// One pair of metadata, new or with a new value.
    pub fn set_metadata(&self, key: &str, value: &str) {
        self.shared
            .change(|agent, now| agent.set_metadata(now, key, value));
    }

    /// Any change of the instance but of its application and id. `change` is called while the client is locked: it must
    /// not call the client or its handles.
    pub fn update(&self, change: impl FnOnce(&mut Instance)) {
        self.shared.change(|agent, now| agent.update(now, change));
    }

    /// Waits until a server has accepted the registration. False if the client ended before, or registers nothing. Waits for
    /// ever while no server accepts it (the log says why): bound it with a time-out, or do not wait; the client goes on
    /// trying in any case.
    pub fn wait_registered(&self) -> impl Future<Output = bool> + Send + use<> {
        let shared = Arc::clone(&self.shared);
        async move {
            let decided = shared.until(|agent| match agent.registration() {
                Some(registration) => (registration.phase == Phase::Registered).then_some(true),
                None => Some(false),
            });
            decided.await.unwrap_or(false)
        }
    }
}
