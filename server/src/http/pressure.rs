//! How much there is to do, and what is refused because of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use eureka_http_api::Class;

use crate::clock;
use crate::config::Limits;

/// Time between two measurements of the scheduling delay.
const PROBE_INTERVAL: Duration = Duration::from_millis(50);

/// How much there is to do. Two signs, and the worse one counts: requests under way (answers that are still being sent
/// included, so that slow readers count), and scheduling delay, which grows when the processor is short.
#[derive(Debug)]
pub struct Pressure {
    /// Requests not answered to the end.
    pub(crate) requests: AtomicUsize,
    /// Requests that stay: who is there to wait costs nothing while nothing happens, and is no sign of load.
    pub(crate) watchers: AtomicUsize,
    /// Connections open.
    pub(crate) connections: AtomicUsize,
    /// Scheduling delay in microseconds.
    lag: AtomicU64,
    requests_max: usize,
    watchers_max: usize,
    lag_max: u64,
}

impl Pressure {
    /// Nothing to do yet.
    pub fn new(limits: &Limits) -> Self {
        Self {
            requests: AtomicUsize::new(0),
            watchers: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            lag: AtomicU64::new(0),
            requests_max: limits.requests,
            watchers_max: limits.watchers,
            lag_max: micros(limits.lag).max(1),
        }
    }

    /// Whether a request of this class is refused now: full fetches first, then other reads, then registrations. What
    /// keeps the registry true and costs little is never refused.
    pub(crate) fn sheds(&self, class: Class) -> bool {
        let (requests_share, lag_factor) = match class {
            Class::FullFetch => (0.5, 1),
            Class::Read | Class::Watch => (0.75, 2),
            Class::Registration => (1.0, 4),
            Class::Renewal | Class::Peer | Class::Other => return false,
        };
        self.requests.load(Ordering::Relaxed) as f64 >= requests_share * self.requests_max as f64
            || self.lag.load(Ordering::Relaxed) >= lag_factor * self.lag_max
    }

    /// Whether requests of any class are refused.
    pub(crate) fn is_high(&self) -> bool {
        self.sheds(Class::FullFetch)
    }

    /// Counts a request, or one that stays, until it leaves.
    pub(super) fn enter(&self, stays: bool) {
        self.count(stays).fetch_add(1, Ordering::Relaxed);
    }

    /// A request has been answered to its end.
    pub(super) fn leave(&self, stays: bool) {
        self.count(stays).fetch_sub(1, Ordering::Relaxed);
    }

    fn count(&self, stays: bool) -> &AtomicUsize {
        if stays { &self.watchers } else { &self.requests }
    }

    /// Whether there are more requests that stay than are allowed, the one that asks included.
    pub(crate) fn is_crowded(&self) -> bool {
        self.watchers.load(Ordering::Relaxed) > self.watchers_max
    }

    /// Scheduling delay as last measured.
    pub(crate) fn lag(&self) -> Duration {
        Duration::from_micros(self.lag.load(Ordering::Relaxed))
    }

    /// Measures the scheduling delay for ever. One late wake-up is a pause of the machine, two in a row a shortage.
    pub(crate) async fn probe(self: Arc<Self>) {
        let mut before = Duration::ZERO;
        loop {
            let due = clock::instant() + PROBE_INTERVAL;
            tokio::time::sleep_until(due.into()).await;
            let late = due.elapsed();
            self.lag.store(micros(late.min(before)), Ordering::Relaxed);
            before = late;
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASSES: [Class; 7] = [
        Class::FullFetch,
        Class::Read,
        Class::Watch,
        Class::Registration,
        Class::Renewal,
        Class::Peer,
        Class::Other,
    ];

    fn pressure(requests: usize, watchers: usize, lag: Duration) -> Arc<Pressure> {
        Arc::new(Pressure::new(&Limits {
            requests,
            watchers,
            lag,
            ..Limits::default()
        }))
    }

    fn refused(pressure: &Pressure) -> Vec<Class> {
        CLASSES
            .into_iter()
            .filter(|class| pressure.sheds(*class))
            .collect()
    }

    #[test]
    fn scheduling_delay_sheds_in_the_same_order() {
        let pressure = pressure(1000, 1, Duration::from_millis(100));
        for (lag, count) in [
            (99, 0),
            (100, 1),
            (199, 1),
            (200, 3),
            (399, 3),
            (400, 4),
            (60_000, 4),
        ] {
            pressure.lag.store(lag * 1000, Ordering::Relaxed);
            assert_eq!(refused(&pressure), CLASSES[..count], "{lag} ms");
        }
    }

    #[test]
    fn a_request_is_under_way_until_it_leaves() {
        let pressure = pressure(2, 1, Duration::from_secs(1));
        assert_eq!(refused(&pressure), []);
        pressure.enter(false);
        assert_eq!(refused(&pressure), [Class::FullFetch]);
        pressure.enter(false);
        assert_eq!(refused(&pressure), CLASSES[..4]);
        pressure.leave(false);
        pressure.leave(false);
        assert_eq!(refused(&pressure), []);
    }

    #[test]
    fn who_stays_is_counted_apart() {
        let pressure = pressure(2, 2, Duration::from_secs(1));
        pressure.enter(true);
        pressure.enter(true);
        assert_eq!(refused(&pressure), []);
        assert!(!pressure.is_crowded());
        pressure.enter(true);
        assert!(pressure.is_crowded());
        pressure.leave(true);
        assert!(!pressure.is_crowded());
        pressure.leave(true);
        pressure.leave(true);
        assert_eq!(pressure.watchers.load(Ordering::Relaxed), 0);
    }
}
