//! How fast a peer may be sent to, and when to try again after a failure: rate, back-off, and the state shown to operators.

use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{Mono, Now};

use crate::facts::LinkState;
use crate::message::Failure;

/// First and longest back-off from a peer that is busy.
const BUSY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// First and longest back-off from a peer that cannot be reached.
const UNREACHABLE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// Back-off from a peer that refuses what is sent, or that is this very node. Only people can mend that.
const REFUSED: Duration = Duration::from_secs(30);
/// A peer that asks for more time than this in `Retry-After` does not get it.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);
/// The share of a second's items that may go at once: one in so many.
const SAVED: i64 = 10;
/// After so long without a failure the next one counts as the first.
const FORGIVEN: Duration = Duration::from_secs(60);

/// The shape of what goes to one peer.
#[derive(Debug)]
pub(crate) struct Shaper {
    bucket: Bucket,
    jitter: Jitter,
    state: LinkState,
    until: Option<Mono>,
    failures: u32,
    last_failure: Mono,
    last_success: Option<Mono>,
    error: Option<Arc<str>>,
}

impl Shaper {
    /// `rate` items a second, of which a tenth may go at once after a rest.
    pub(crate) fn new(now: Now, rate: u32, seed: u64) -> Self {
        Self {
            bucket: Bucket::new(now.mono, rate),
            jitter: Jitter(seed),
            state: LinkState::Starting,
            until: None,
            failures: 0,
            last_failure: now.mono,
            last_success: None,
            error: None,
        }
    }

    /// A batch was answered.
    pub(crate) fn answered(&mut self, now: Now) {
        self.last_success = Some(now.mono);
        self.failures = 0;
        self.until = None;
        self.state = LinkState::Up;
    }

    /// Something else was answered. It does not end a back-off that a batch has earned, unless that was for want of any answer;
    /// and the next one is not shorter for it.
    pub(crate) fn reached(&mut self, now: Now) {
        self.last_success = Some(now.mono);
        let refused = matches!(self.state, LinkState::Busy | LinkState::Misconfigured);
        if refused && !self.is_open(now) {
            return;
        }
        if now.mono.since(self.last_failure) > FORGIVEN {
            self.failures = 0;
        }
        self.until = None;
        self.state = LinkState::Up;
    }

    /// Something failed that says how the way to the peer is. Several failures in one back-off count once.
    pub(crate) fn failed(
        &mut self,
        now: Now,
        failure: Failure,
        text: &Arc<str>,
        retry_after: Option<Duration>,
    ) {
        self.complain(text);
        let (state, scale) = match failure {
            Failure::Busy => (LinkState::Busy, Some(BUSY)),
            Failure::Unreachable => (LinkState::Unreachable, Some(UNREACHABLE)),
            Failure::Misconfigured | Failure::Rejected | Failure::TooLarge => {
                (LinkState::Misconfigured, None)
            }
            Failure::Own => (LinkState::Own, None),
        };
        if self.state == state && !self.is_open(now) && retry_after.is_none() {
            return;
        }
        self.state = state;
        let pause = match (scale, retry_after) {
            (None, _) => REFUSED,
            (Some(_), Some(asked)) if !asked.is_zero() => asked.min(RETRY_AFTER_MAX),
            (Some((first, longest)), _) => self.jitter.below(doubled(first, self.failures, longest)),
        };
        self.failures += 1;
        self.last_failure = now.mono;
        self.until = Some(now.mono.after(pause));
    }

    /// Remembers what went wrong, for people, and nothing more.
    pub(crate) fn complain(&mut self, text: &Arc<str>) {
        self.error = Some(Arc::clone(text));
    }

    /// There is no time for the rest of a back-off.
    pub(crate) fn hurry(&mut self) {
        self.until = None;
    }

    /// Whether there is no back-off, or it is over.
    pub(crate) fn is_open(&self, now: Now) -> bool {
        self.until.is_none_or(|until| now.mono >= until)
    }

    /// When the back-off is over.
    pub(crate) fn until(&self) -> Option<Mono> {
        self.until
    }

    /// Items that may be sent at once.
    pub(crate) fn allowance(&self, now: Now) -> usize {
        self.bucket.level(now.mono).max(0).unsigned_abs() as usize / 1_000
    }

    /// When so many items may be sent at once.
    pub(crate) fn allows_at(&self, items: usize) -> Mono {
        self.bucket.reaches(items)
    }

    /// Takes items from the allowance; what is not there is owed.
    pub(crate) fn spend(&mut self, now: Now, items: usize) {
        self.bucket.take(now.mono, items);
    }

    /// How the way to the peer is.
    pub(crate) fn state(&self) -> LinkState {
        self.state
    }

    /// Last request that was answered.
    pub(crate) fn last_success(&self) -> Option<Mono> {
        self.last_success
    }

    /// Last thing that went wrong.
    pub(crate) fn error(&self) -> Option<&Arc<str>> {
        self.error.as_ref()
    }
}

/// `first`, doubled `times` times, at most `longest`.
fn doubled(first: Duration, times: u32, longest: Duration) -> Duration {
    first.saturating_mul(1 << times.min(16)).min(longest)
}

/// A token bucket in thousandths of an item, so that a millisecond is worth `rate` of them.
#[derive(Debug)]
struct Bucket {
    rate: i64,
    /// What is saved up at most: little, or a rest would be followed by a burst.
    full: i64,
    level: i64,
    at: Mono,
}

impl Bucket {
    fn new(now: Mono, rate: u32) -> Self {
        let rate = i64::from(rate.max(1));
        let full = (rate * 1_000 / SAVED).max(1_000);
        Self {
            rate,
            full,
            level: full,
            at: now,
        }
    }

    fn level(&self, now: Mono) -> i64 {
        let elapsed = i64::try_from(now.0.saturating_sub(self.at.0)).unwrap_or(i64::MAX);
        self.level
            .saturating_add(elapsed.saturating_mul(self.rate))
            .min(self.full)
    }

    fn take(&mut self, now: Mono, items: usize) {
        let taken = i64::try_from(items).unwrap_or(i64::MAX).saturating_mul(1_000);
        self.level = self.level(now).saturating_sub(taken);
        self.at = self.at.max(now);
    }

    fn reaches(&self, items: usize) -> Mono {
        let wanted = i64::try_from(items).unwrap_or(i64::MAX).saturating_mul(1_000);
        let wanted = wanted.min(self.full);
        let short = wanted.saturating_sub(self.level).max(0).unsigned_abs();
        Mono(self.at.0 + short.div_ceil(self.rate.unsigned_abs()))
    }
}

/// Seeded random numbers, so that many nodes do not return to a peer at the same moment.
#[derive(Debug)]
struct Jitter(u64);

impl Jitter {
    /// Between half of `longest` and all of it.
    fn below(&mut self, longest: Duration) -> Duration {
        let half = u64::try_from(longest.as_millis() / 2).unwrap_or(u64::MAX);
        Duration::from_millis(half + random(&mut self.0) % half.saturating_add(1))
    }
}

/// SplitMix64 (Steele, Lea and Flood, 2014).
pub(crate) fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
