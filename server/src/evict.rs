//! Calls the registry when something is due.

use std::time::Duration;

use eureka_registry_core::RegistryHandle;

/// The registry wants to be called at least once a second, because a change may bring the next moment forward.
const LONGEST: Duration = Duration::from_millis(500);

const SHORTEST: Duration = Duration::from_millis(1);

/// Runs for ever. Lateness is the registry's to judge: a node that was paused has not watched.
pub(crate) async fn run(registry: RegistryHandle) {
    loop {
        match registry.handle_timeout() {
            // Zero: there was too much for one hold of the lock. Let requests in between.
            Some((wait, _)) => tokio::time::sleep(wait.clamp(SHORTEST, LONGEST)).await,
            None => tokio::time::sleep(LONGEST).await,
        }
    }
}
