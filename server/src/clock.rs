//! The only place that asks the machine what time it is.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use eureka_registry_core::{Clock, Mono, Now, Wall};

/// The machine's clocks, counted from the start of the node.
#[derive(Debug)]
pub(crate) struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock that starts now.
    pub(crate) fn start() -> Self {
        Self { start: instant() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Now {
        Now {
            mono: Mono(millis(self.start.elapsed())),
            wall: Wall(millis(since_epoch())),
        }
    }
}

/// Now, for measuring how long something takes.
#[allow(clippy::disallowed_methods)] // This is the one place.
pub(crate) fn instant() -> Instant {
    Instant::now()
}

/// Time since 1970; zero on a machine whose clock stands before that.
#[allow(clippy::disallowed_methods)] // This is the one place.
pub(crate) fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
