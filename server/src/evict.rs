//! Calls the registry when something is due.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::RegistryHandle;

use crate::telemetry::Meters;

/// The registry wants to be called at least once a second, because a change may bring the next moment forward.
const LONGEST: Duration = Duration::from_millis(500);
/// What the registry may rely on: see its `called_every`.
pub(crate) const CALLED_EVERY: Duration = Duration::from_secs(1);
const SHORTEST: Duration = Duration::from_millis(1);

/// Runs for ever, also after a panic: a node that served on but never evicted again would be found out late. How late a
/// call is, is the registry's to judge: a node that was paused has not watched.
pub(crate) async fn run(registry: RegistryHandle, meters: Arc<Meters>) {
    loop {
        let next = match catch_unwind(AssertUnwindSafe(|| registry.handle_timeout())) {
            Ok(next) => next,
            Err(_) => {
                meters.panics.increment(1);
                None
            }
        };
        // Zero: there was too much for one hold of the lock. Let requests in between.
        let wait = next.map_or(LONGEST, |(wait, _)| wait.clamp(SHORTEST, LONGEST));
        tokio::time::sleep(wait).await;
    }
}
