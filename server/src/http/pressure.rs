//! How much there is to do, and what is refused because of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use eureka_http_api::Class;

use crate::clock;

/// Time between two measurements of the scheduling delay.
const PROBE_INTERVAL: Duration = Duration::from_millis(50);

/// How much there is to do. Two signs, and the worse one counts: requests under way (answers that are still being sent
/// included, so that slow readers count), and scheduling delay, which grows when the processor is short.
#[derive(Debug)]
pub struct Pressure {
    /// Requests not answered to the end.
    pub(crate) requests: AtomicUsize,
    /// Connections open.
    pub(crate) connections: AtomicUsize,
    /// Scheduling delay in microseconds.
    lag: AtomicU64,
    requests_max: usize,
    lag_max: u64,
}

/// A request under way, until it is dropped.
#[derive(Debug)]
pub(crate) struct Ticket(Arc<Pressure>);

impl Pressure {
    /// Nothing to do yet; `requests` and `lag` are `limits.requests` and `limits.lag`.
    pub fn new(requests: usize, lag: Duration) -> Self {
        Self {
            requests: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            lag: AtomicU64::new(0),
            requests_max: requests,
            lag_max: micros(lag).max(1),
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

    /// Counts a request until the ticket is dropped.
    pub(crate) fn enter(self: &Arc<Self>) -> Ticket {
        self.requests.fetch_add(1, Ordering::Relaxed);
        Ticket(Arc::clone(self))
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

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
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

    fn refused(pressure: &Pressure) -> Vec<Class> {
        CLASSES
            .into_iter()
            .filter(|class| pressure.sheds(*class))
            .collect()
    }

    #[test]
    fn scheduling_delay_sheds_in_the_same_order() {
        let pressure = Pressure::new(1000, Duration::from_millis(100));
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
    fn a_request_is_under_way_until_its_ticket_is_dropped() {
        let pressure = Arc::new(Pressure::new(2, Duration::from_secs(1)));
        assert_eq!(refused(&pressure), []);
        let one = pressure.enter();
        assert_eq!(refused(&pressure), [Class::FullFetch]);
        let two = pressure.enter();
        assert_eq!(refused(&pressure), CLASSES[..4]);
        drop((one, two));
        assert_eq!(refused(&pressure), []);
    }
}
