//! Java's rate limiter for reads of the registry, for both flavours of path.

use eureka_registry_core::Mono;
use parking_lot::Mutex;

use crate::config::RateLimits;

/// Which reads are limited.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Target {
    /// `apps`
    FullFetch,
    /// `apps/delta`
    Delta,
    /// `apps/{app}`
    Application,
}

/// What becomes of a read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    /// It passes.
    Pass,
    /// It would be refused if the limiter was on.
    Candidate,
    /// It is refused.
    Refused,
}

/// Two buckets: one for all reads, one for full fetches besides.
#[derive(Debug)]
pub(crate) struct Limiter {
    limits: RateLimits,
    registry_fetches: Mutex<Bucket>,
    full_fetches: Mutex<Bucket>,
}

impl Limiter {
    pub(crate) fn new(limits: RateLimits) -> Self {
        Self {
            registry_fetches: Mutex::new(Bucket::new(limits.burst, limits.registry_fetches)),
            full_fetches: Mutex::new(Bucket::new(limits.burst, limits.full_fetches)),
            limits,
        }
    }

    /// Charges a read by the client that calls itself `name`.
    pub(crate) fn charge(&self, now: Mono, target: Target, name: Option<&str>) -> Verdict {
        let privileged = name.is_some_and(|name| self.limits.privileged.contains(name));
        if privileged && !self.limits.throttle_standard_clients {
            return Verdict::Pass;
        }
        let mut passes = self.registry_fetches.lock().take(now);
        if target == Target::FullFetch {
            // Charged even if the other bucket is empty, as in Java.
            passes &= self.full_fetches.lock().take(now);
        }
        match (passes, self.limits.enabled) {
            (true, _) => Verdict::Pass,
            (false, false) => Verdict::Candidate,
            (false, true) => Verdict::Refused,
        }
    }
}

/// Java's token bucket: what was consumed drains at a rate.
#[derive(Debug)]
struct Bucket {
    burst: u64,
    per_second: u64,
    consumed: u64,
    refilled: Option<Mono>,
}

impl Bucket {
    fn new(burst: u32, per_second: u32) -> Self {
        Self {
            burst: u64::from(burst),
            per_second: u64::from(per_second),
            consumed: 0,
            refilled: None,
        }
    }

    fn take(&mut self, now: Mono) -> bool {
        if self.burst == 0 || self.per_second == 0 {
            return true;
        }
        self.refill(now);
        let admitted = self.consumed < self.burst;
        self.consumed += u64::from(admitted);
        admitted
    }

    fn refill(&mut self, now: Mono) {
        let Some(refilled) = self.refilled else {
            self.refilled = Some(now);
            return;
        };
        let tokens = now.0.saturating_sub(refilled.0).saturating_mul(self.per_second) / 1000;
        if tokens > 0 {
            self.refilled = Some(Mono(refilled.0 + tokens * 1000 / self.per_second));
            self.consumed = self.consumed.saturating_sub(tokens);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(burst: u32, registry: u32, full: u32) -> RateLimits {
        RateLimits {
            enabled: true,
            burst,
            registry_fetches: registry,
            full_fetches: full,
            ..RateLimits::default()
        }
    }

    #[test]
    fn javas_vector_for_the_bucket() {
        // Burst 2, ten a second: at 0 two pass, at 150 ms one, at 200 ms one.
        let mut bucket = Bucket::new(2, 10);
        let at = |bucket: &mut Bucket, millis: u64| bucket.take(Mono(1_000 + millis));
        assert!(at(&mut bucket, 0));
        assert!(at(&mut bucket, 0));
        assert!(!at(&mut bucket, 0));
        assert!(at(&mut bucket, 150));
        assert!(!at(&mut bucket, 150));
        assert!(at(&mut bucket, 200));
        assert!(!at(&mut bucket, 200));
    }

    #[test]
    fn the_third_full_fetch_is_refused() {
        let limiter = Limiter::new(limits(2, 100, 1));
        let now = Mono(5);
        assert_eq!(limiter.charge(now, Target::FullFetch, Some("x")), Verdict::Pass);
        assert_eq!(limiter.charge(now, Target::FullFetch, None), Verdict::Pass);
        assert_eq!(
            limiter.charge(now, Target::FullFetch, Some("x")),
            Verdict::Refused
        );
        assert_eq!(
            limiter.charge(now, Target::FullFetch, Some("DefaultClient")),
            Verdict::Pass
        );
        // The bucket of all reads has a token again, that of full fetches has not.
        assert_eq!(
            limiter.charge(Mono(15), Target::FullFetch, None),
            Verdict::Refused
        );
        assert_eq!(limiter.charge(Mono(25), Target::Delta, None), Verdict::Pass);
    }

    #[test]
    fn switched_off_it_only_counts() {
        let limiter = Limiter::new(RateLimits {
            enabled: false,
            ..limits(1, 1, 1)
        });
        assert_eq!(limiter.charge(Mono(0), Target::Application, None), Verdict::Pass);
        assert_eq!(
            limiter.charge(Mono(0), Target::Application, None),
            Verdict::Candidate
        );
    }

    #[test]
    fn standard_clients_can_be_limited_too() {
        let limiter = Limiter::new(RateLimits {
            throttle_standard_clients: true,
            ..limits(1, 1, 1)
        });
        assert_eq!(
            limiter.charge(Mono(0), Target::Delta, Some("DefaultClient")),
            Verdict::Pass
        );
        assert_eq!(
            limiter.charge(Mono(0), Target::Delta, Some("DefaultClient")),
            Verdict::Refused
        );
    }

    #[test]
    fn no_burst_or_no_rate_admits_all() {
        for (burst, rate) in [(0, 5), (5, 0)] {
            let mut bucket = Bucket::new(burst, rate);
            assert!((0..100).all(|_| bucket.take(Mono(0))));
        }
    }
}
