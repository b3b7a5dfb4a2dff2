//! The time that leases are measured in: the monotonic clock without the pauses in which nobody watched.
//!
//! A process that was stopped, or starved, cannot tell who fell silent meanwhile. What it missed is taken out of every
//! deadline, so nobody is evicted for a pause of ours.

use alloc::collections::VecDeque;

use crate::time::{Mono, Now, Wall};

/// At most this many pauses are told apart; what lies before older ones looks older by their length.
const PAUSES: usize = 64;

/// A moment by the monotonic clock, in milliseconds; below zero before the node started.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Moment(pub(crate) i64);

/// A moment in watched time, in milliseconds.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Ticks(pub(crate) i64);

/// Translates between the two.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pauses: VecDeque<Pause>,
}

/// From `from` on nobody watched for `length` milliseconds; `before` is the sum of all earlier lengths.
#[derive(Debug)]
struct Pause {
    from: i64,
    length: i64,
    before: i64,
}

impl Watch {
    /// Notes that nobody watched for `length` milliseconds from `from` on.
    pub(crate) fn pause(&mut self, from: Moment, length: i64) {
        if self.pauses.len() == PAUSES {
            self.pauses.pop_front();
        }
        let before = self.missed();
        self.pauses.push_back(Pause {
            from: from.0,
            length,
            before,
        });
    }

    /// The watched time at `moment`. It stands still while nobody watches.
    pub(crate) fn ticks(&self, moment: Moment) -> Ticks {
        for pause in self.pauses.iter().rev() {
            if moment.0 >= pause.from + pause.length {
                return Ticks(moment.0 - pause.before - pause.length);
            }
            if moment.0 >= pause.from {
                return Ticks(pause.from - pause.before);
            }
        }
        Ticks(moment.0 - self.pauses.front().map_or(0, |first| first.before))
    }

    /// When it will be `ticks`, if nothing more is missed.
    pub(crate) fn mono(&self, ticks: Ticks) -> Mono {
        Mono(u64::try_from(ticks.0 + self.missed()).unwrap_or(0))
    }

    /// Milliseconds missed so far.
    fn missed(&self) -> i64 {
        self.pauses.back().map_or(0, |last| last.before + last.length)
    }
}

impl Moment {
    /// The moment of a reading.
    pub(crate) fn of(mono: Mono) -> Self {
        Self(i64::try_from(mono.0).unwrap_or(i64::MAX))
    }

    /// The moment at which the wall clock would have shown this, judged by today's wall clock.
    pub(crate) fn at(now: Now, time: Wall) -> Self {
        let mono = Self::of(now.mono).0;
        Self(match now.wall.0.checked_sub(time.0) {
            Some(ago) => mono.saturating_sub_unsigned(ago),
            None => mono.saturating_add_unsigned(time.0 - now.wall.0),
        })
    }

    /// What the wall clock would have shown, judged by today's wall clock.
    pub(crate) fn wall(self, now: Now) -> Wall {
        let ahead = self.0.saturating_sub(Self::of(now.mono).0);
        Wall(now.wall.0.saturating_add_signed(ahead))
    }
}

impl Ticks {
    /// The moment `millis` later.
    pub(crate) const fn after(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis))
    }
}

#[cfg(test)]
mod tests {
    use super::{Moment, Ticks, Watch};
    use crate::time::{Mono, Now, Wall};

    #[test]
    fn stands_still_in_a_pause_and_goes_on_after_it() {
        let mut watch = Watch::default();
        watch.pause(Moment(1_000), 500);
        watch.pause(Moment(3_000), 100);
        let ticks = |at| watch.ticks(Moment(at)).0;
        assert_eq!([ticks(-5), ticks(999), ticks(1_000)], [-5, 999, 1_000]);
        assert_eq!([ticks(1_499), ticks(1_500), ticks(2_999)], [1_000, 1_000, 2_499]);
        assert_eq!([ticks(3_000), ticks(3_050), ticks(4_000)], [2_500, 2_500, 3_400]);
        assert_eq!(watch.mono(Ticks(3_400)), Mono(4_000));
    }

    #[test]
    fn forgets_the_oldest_pauses_towards_older() {
        let mut watch = Watch::default();
        for pause in 0..65 {
            watch.pause(Moment(pause * 1_000), 10);
        }
        assert_eq!(watch.ticks(Moment(-1)), Ticks(-11));
        assert_eq!(watch.ticks(Moment(100_000)), Ticks(100_000 - 650));
    }

    #[test]
    fn a_step_of_the_wall_clock_moves_what_is_past_with_it() {
        let now = Now {
            mono: Mono(10),
            wall: Wall(1_000),
        };
        assert_eq!(Moment(-90).wall(now), Wall(900));
        assert_eq!(Moment(15).wall(now), Wall(1_005));
        assert_eq!(Moment(-5_000).wall(now), Wall(0));
        assert_eq!(Moment::at(now, Wall(900)), Moment(-90));
        assert_eq!(Moment::at(now, Wall(1_005)), Moment(15));
        assert_eq!(Moment::at(now, Wall(u64::MAX)), Moment(i64::MAX));
    }
}
