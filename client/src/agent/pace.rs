//! How fast: a bucket of tokens, and rounds over several servers with pauses between them.

use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{Mono, Now};

use crate::endpoints::{Endpoints, Use};
use crate::server::Server;

/// Servers that are tried one right after the other. Then there is a pause.
pub(super) const ROUND_TRIES: u32 = 3;
/// The first pause; twice as long each time.
pub(super) const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause, before jitter.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A pause is up to so much shorter or longer, or all clients of a server that failed would come back at once.
pub(super) const JITTER: f64 = 0.2;

/// Tokens: so many at once, and one more each time.
#[derive(Debug)]
pub(super) struct Bucket {
    refill: Duration,
    /// How far the next token may lie ahead.
    slack: Duration,
    /// When all tokens will be back, less one.
    full: Mono,
}

impl Bucket {
    /// Full.
    pub(super) fn new(tokens: u32, refill: Duration) -> Self {
        Self {
            refill,
            slack: refill * tokens.saturating_sub(1),
            full: Mono(0),
        }
    }

    /// From when on there is a token.
    pub(super) fn ready_at(&self) -> Mono {
        self.full.before(self.slack)
    }

    /// Takes one.
    pub(super) fn take(&mut self, now: Mono) {
        self.full = self.full.max(now).after(self.refill);
    }
}

/// One request that is tried at one server after the other until one of them takes it.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// Not before this.
    pub(super) at: Mono,
    /// Who failed since the last success. Kept over pauses, so that whoever answers has its turn before the others have a
    /// second one, however short their quarantine is.
    tried: Vec<Arc<Server>>,
    /// Since the last pause.
    tries: u32,
    /// Pauses since the last success.
    pauses: u32,
}

impl Round {
    /// Whom to ask; `None` if there is no server at all.
    pub(super) fn choose(
        &mut self,
        now: Now,
        purpose: Use,
        endpoints: &mut Endpoints,
    ) -> Option<Arc<Server>> {
        let chosen = endpoints.choose(now, purpose, &self.tried);
        chosen.or_else(|| {
            self.tried.clear();
            endpoints.choose(now, purpose, &[])
        })
    }

    /// A server failed. True if there is a pause now, of at most `longest` before jitter.
    pub(super) fn failed(
        &mut self,
        now: Now,
        server: &Arc<Server>,
        servers: usize,
        random: &mut fastrand::Rng,
        longest: Duration,
    ) -> bool {
        self.tries += 1;
        if !self.tried.contains(server) {
            self.tried.push(Arc::clone(server));
        }
        let all = self.tried.len() >= servers;
        if all {
            self.tried.clear();
        }
        let over = all || self.tries >= ROUND_TRIES;
        self.at = now.mono;
        if over {
            self.pause(now, random, longest);
        }
        over
    }

    /// Not again before a pause.
    pub(super) fn pause(&mut self, now: Now, random: &mut fastrand::Rng, longest: Duration) {
        let doubled = FIRST_PAUSE.saturating_mul(1 << self.pauses.min(16)).min(longest);
        self.rest(now, random, doubled);
        self.pauses = self.pauses.saturating_add(1);
    }

    /// Not again for about so long.
    pub(super) fn rest(&mut self, now: Now, random: &mut fastrand::Rng, about: Duration) {
        let pause = about.mul_f64(1.0 - JITTER + 2.0 * JITTER * random.f64());
        self.at = now.mono.after(pause.max(Duration::from_millis(1)));
        self.tries = 0;
    }

    /// A server took it.
    pub(super) fn succeeded(&mut self) {
        *self = Self {
            at: self.at,
            ..Self::default()
        };
    }

    /// Other servers: all have their turn again, at once if there was none before.
    pub(super) fn servers_changed(&mut self, now: Now, had_none: bool) {
        self.tried.clear();
        if had_none {
            self.at = self.at.min(now.mono);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use eureka_registry_core::Mono;

    use super::Bucket;

    #[test]
    fn a_bucket_gives_four_at_once_and_then_one_each_five_seconds() {
        let mut bucket = Bucket::new(4, Duration::from_secs(5));
        let mut taken = Vec::new();
        let mut now = Mono(100);
        for _ in 0..6 {
            now = now.max(bucket.ready_at());
            bucket.take(now);
            taken.push(now.0);
        }
        assert_eq!(taken, [100, 100, 100, 100, 5_100, 10_100]);
        // After a long rest it is full, and not fuller.
        now = Mono(1_000_000);
        for _ in 0..4 {
            assert!(bucket.ready_at() <= now);
            bucket.take(now);
        }
        assert_eq!(bucket.ready_at(), Mono(1_005_000));
    }
}
