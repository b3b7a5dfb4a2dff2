//! The two clocks of the machine, passed in by whoever owns it.
//!
//! Deadlines are measured with [`Mono`]; everything a person or a client sees is [`Wall`]. The machine reads no clock.

use core::time::Duration;

/// Milliseconds since the node started. Never goes back.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Mono(pub u64);

/// Milliseconds since the Unix epoch. May step.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Wall(pub u64);

/// One reading of both clocks; the first argument of whatever changes state.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Now {
    /// For deadlines.
    pub mono: Mono,
    /// For what is shown.
    pub wall: Wall,
}

impl Mono {
    /// How long ago `earlier` was; zero if it lies ahead.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// The moment `duration` later, in whole milliseconds.
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis(duration)))
    }

    /// The moment `duration` earlier, not before the start of the node.
    pub fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(millis(duration)))
    }
}

impl Now {
    /// What the wall clock would have shown at `moment`, judged by today's wall clock: a clock step scatters nothing.
    pub fn wall_at(self, moment: Mono) -> Wall {
        if moment >= self.mono {
            Wall(self.wall.0.saturating_add(moment.0 - self.mono.0))
        } else {
            Wall(self.wall.0.saturating_sub(self.mono.0 - moment.0))
        }
    }
}

/// Whole milliseconds of a duration, saturating.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
