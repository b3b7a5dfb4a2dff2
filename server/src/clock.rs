//! The only place that asks the machine what time it is.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use eureka_registry_core::{Clock, Mono, Now, Wall};

/// Milliseconds by which the two clocks may drift apart before the difference is taken again.
const DRIFT: u64 = 5;
/// A reading of both clocks that took longer says nothing of their difference: the thread was paused in between.
const PAUSED: Duration = Duration::from_millis(1);

/// The machine's clocks, counted from the start of the node.
///
/// A moment is shown as the time of day now minus its age. Were both clocks cut to milliseconds each for itself, the same
/// moment would be shown a millisecond earlier or later from one reading to the next; so the difference between the two
/// stands until they have really drifted or the time of day was set.
#[derive(Debug)]
pub(crate) struct SystemClock {
    start: Instant,
    /// Milliseconds from 1970 to the start, as it is taken to be.
    start_wall: AtomicU64,
    /// The millisecond after the start in which the difference was last looked at: once in each is enough.
    compared: AtomicU64,
}

impl SystemClock {
    /// A clock that starts now.
    pub(crate) fn start() -> Self {
        Self {
            start: instant(),
            start_wall: AtomicU64::new(millis(since_epoch())),
            compared: AtomicU64::new(0),
        }
    }

    /// Takes the difference again, if it can be told now.
    #[cold]
    fn adjust(&self) {
        let before = self.start.elapsed();
        let wall = since_epoch();
        let paused = self.start.elapsed().saturating_sub(before) >= PAUSED;
        let start_wall = millis(wall.saturating_sub(before));
        // The reading before may have been the one that was paused.
        if !paused && start_wall.abs_diff(self.start_wall.load(Ordering::Relaxed)) > DRIFT {
            self.start_wall.store(start_wall, Ordering::Relaxed);
        }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Now {
        let mono = millis(self.start.elapsed());
        if self.compared.load(Ordering::Relaxed) != mono {
            self.compared.store(mono, Ordering::Relaxed);
            let wall = millis(since_epoch());
            let shown = self.start_wall.load(Ordering::Relaxed).saturating_add(mono);
            if shown.abs_diff(wall) > DRIFT {
                self.adjust();
            }
        }
        Now {
            mono: Mono(mono),
            wall: Wall(self.start_wall.load(Ordering::Relaxed).saturating_add(mono)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_always_shown_as_the_same() {
        let clock = SystemClock::start();
        let moment = clock.now();
        for _ in 0..200_000 {
            let now = clock.now();
            // Unless somebody sets the time of day meanwhile.
            assert_eq!(now.wall_at(moment.mono), moment.wall);
        }
    }

    #[test]
    fn the_time_of_day_is_taken_again_when_it_was_set() {
        let clock = SystemClock::start();
        clock.start_wall.store(1, Ordering::Relaxed);
        // A reading in which the thread is paused is passed over; not all of them are.
        let is_right = |now: Now| now.wall.0.abs_diff(millis(since_epoch())) < 60_000;
        let begun = instant();
        while !is_right(clock.now()) {
            assert!(begun.elapsed() < Duration::from_secs(10));
        }
    }
}
