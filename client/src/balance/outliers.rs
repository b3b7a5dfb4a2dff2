//! Who is left out for a while because calls to it keep failing.

use std::time::Duration;

use eureka_registry_core::{Mono, Now};

/// When an instance is left out: by failures in a row that callers report, for a time that grows.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Outliers {
    /// So many failures without a success between them; 0: nobody is ever left out.
    pub failures: u32,
    /// How long, times how often it has been left out without a success since.
    pub time: Duration,
    /// At most so long.
    pub longest: Duration,
    /// At most this part of the instances at once, rounded down: of a single one, none.
    pub most: f64,
}

/// 5 failures; 30 s, 60 s and so on up to 5 min; at most half of the instances.
impl Default for Outliers {
    fn default() -> Self {
        Self {
            failures: 5,
            time: Duration::from_secs(30),
            longest: Duration::from_secs(300),
            most: 0.5,
        }
    }
}

impl Outliers {
    /// How many of so many instances may be left out.
    pub(crate) fn limit(&self, instances: usize) -> usize {
        // Rounds down; whatever is not a number, or below zero, is zero.
        ((instances as f64 * self.most) as usize).min(instances)
    }
}

/// What is known of how calls to one instance went.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health {
    /// Failures since the last success.
    failures: u32,
    /// How often it was left out since the last success.
    ejections: u32,
    /// Counts whatever makes reports on earlier picks worthless.
    pub(crate) epoch: u64,
    until: Option<Mono>,
}

impl Health {
    /// When it comes back, if it is left out.
    pub(crate) fn until(&self) -> Option<Mono> {
        self.until
    }

    /// It failed; true if it should be left out now.
    pub(crate) fn failed(&mut self, rule: &Outliers) -> bool {
        self.failures = self.failures.saturating_add(1);
        rule.failures > 0 && self.failures >= rule.failures
    }

    /// Is left out from now on.
    pub(crate) fn eject(&mut self, now: Now, rule: &Outliers) {
        self.ejections = self.ejections.saturating_add(1);
        self.epoch += 1;
        let time = rule.time.saturating_mul(self.ejections).min(rule.longest);
        self.until = Some(now.mono.after(time));
    }

    /// Is tried again. Its failures stay: the next one is one more in a row.
    pub(crate) fn release(&mut self) {
        self.until = None;
    }

    /// It succeeded: nothing is held against it any more. True if it was left out.
    pub(crate) fn succeeded(&mut self) -> bool {
        self.failures = 0;
        self.ejections = 0;
        self.until.take().is_some()
    }

    /// Somebody else lives there now.
    pub(crate) fn renew(&mut self) {
        *self = Self {
            epoch: self.epoch + 1,
            ..Self::default()
        };
    }
}
