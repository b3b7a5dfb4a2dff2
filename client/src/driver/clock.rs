//! The only place of this crate that asks what time it is.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use eureka_registry_core::{Mono, Now, Wall};
use tokio::time::Instant;

/// Counts from its start. Copies agree with each other.
///
/// The monotonic side is tokio's, which timers go by: where a test pauses the one, the other stands, too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock that starts now.
    pub(crate) fn start() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    /// Both clocks, now.
    pub(crate) fn now(self) -> Now {
        Now {
            mono: Mono(millis(self.start.elapsed())),
            wall: Wall(millis(since_epoch())),
        }
    }
}

/// Time since 1970; zero on a machine whose clock stands before that.
#[allow(clippy::disallowed_methods)] // This is the one place.
pub(crate) fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
