//! Java's arithmetic: renewals of the last whole minute against a threshold that follows from a number of expected clients.

use core::time::Duration;

use crate::config::PreservationConfig;
use crate::time::Mono;

use super::Heartbeats;

const WINDOW: Duration = Duration::from_secs(60);

/// Java's count of expected clients and its meter of heartbeats. Computed whatever decides, and shown beside it.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    expected_clients: usize,
    /// `None` until [`Meter::opened`].
    window_start: Option<Mono>,
    current: usize,
    last: usize,
}

impl Meter {
    pub(super) fn new(config: &PreservationConfig) -> Self {
        Self {
            expected_clients: config.initial_clients,
            window_start: None,
            current: 0,
            last: 0,
        }
    }

    /// The minutes are counted from here; what came before counts in the first.
    pub(super) fn opened(&mut self, now: Mono, config: &PreservationConfig, synced: usize) {
        self.expected_clients = if synced == 0 {
            config.initial_clients
        } else {
            synced
        };
        self.window_start = Some(now);
    }

    /// A client that was not there before. While none is expected, none is added: as in Java.
    pub(super) fn joined(&mut self) {
        if self.expected_clients > 0 {
            self.expected_clients += 1;
        }
    }

    /// A client was cancelled or evicted.
    pub(super) fn left(&mut self) {
        self.expected_clients = self.expected_clients.saturating_sub(1);
    }

    /// Counts a renewal that was not answered Missing.
    pub(super) fn heartbeat(&mut self, now: Mono) {
        self.roll(now);
        self.current = self.current.saturating_add(1);
    }

    /// Java's periodic update: `counted` instances replace the expectation unless they are too few.
    pub(super) fn update(&mut self, config: &PreservationConfig, counted: usize) {
        if counted as f64 > config.threshold * self.expected_clients as f64 || !config.enabled {
            self.expected_clients = counted;
        }
    }

    /// Closes the windows that are complete.
    pub(super) fn roll(&mut self, now: Mono) {
        let Some(start) = self.window_start else { return };
        let complete = complete_windows(now, start);
        if complete > 0 {
            self.last = if complete == 1 { self.current } else { 0 };
            self.current = 0;
            self.window_start = Some(start.after(WINDOW * complete));
        }
    }

    /// Nothing was counted for `pause`: the window is that much longer.
    pub(super) fn paused(&mut self, pause: Duration) {
        self.window_start = self.window_start.map(|start| start.after(pause));
    }

    /// When the current window is complete.
    pub(super) fn window_end(&self) -> Option<Mono> {
        self.window_start.map(|start| start.after(WINDOW))
    }

    /// The figures at `now`, also when a window is complete that was not closed yet.
    pub(super) fn figures(&self, now: Mono, config: &PreservationConfig) -> Heartbeats {
        let complete = self.window_start.map_or(0, |start| complete_windows(now, start));
        let last_minute = match complete {
            0 => self.last,
            1 => self.current,
            _ => 0,
        };
        let threshold = threshold(self.expected_clients, config);
        Heartbeats {
            expected_clients: self.expected_clients,
            threshold,
            last_minute,
            evicts: !config.enabled || (threshold > 0 && last_minute > threshold),
        }
    }
}

fn complete_windows(now: Mono, start: Mono) -> u32 {
    let complete = now.since(start).as_millis() / WINDOW.as_millis();
    u32::try_from(complete).unwrap_or(u32::MAX)
}

/// `(int) (clients * (60.0 / interval) * share)`, in Java's order of operations: the last bit can matter.
fn threshold(clients: usize, config: &PreservationConfig) -> usize {
    let per_minute = 60.0 / config.renewal_interval.as_secs_f64();
    (clients as f64 * per_minute * config.threshold) as usize
}

#[cfg(test)]
mod tests {
    use super::{Meter, threshold};
    use crate::config::PreservationConfig;
    use crate::time::Mono;
    use core::time::Duration;

    /// A registry as Spring starts it: one client is expected although there is none.
    fn spring() -> (PreservationConfig, Meter) {
        let config = PreservationConfig::default();
        let mut meter = Meter::new(&config);
        meter.opened(Mono(0), &config, 0);
        (config, meter)
    }

    #[test]
    fn threshold_is_cut_off_as_in_java() {
        let config = PreservationConfig::default();
        let computed = [0, 1, 2, 3, 4, 10, 100].map(|clients| threshold(clients, &config));
        assert_eq!(computed, [0, 1, 3, 5, 6, 17, 170]);
    }

    #[test]
    fn threshold_of_a_shorter_interval_is_higher() {
        let config = PreservationConfig {
            renewal_interval: Duration::from_secs(10),
            ..PreservationConfig::default()
        };
        assert_eq!(threshold(10, &config), 51);
    }

    #[test]
    fn spring_expects_a_client_that_does_not_exist() {
        // Measured with Spring: the thresholds shown for 0 to 10 clients.
        let (config, mut meter) = spring();
        for observed in [1, 3, 5, 6, 8, 10, 11, 13, 15, 17, 18] {
            assert_eq!(meter.figures(Mono(1), &config).threshold, observed);
            meter.joined();
        }
    }

    #[test]
    fn netflix_expects_nobody_and_keeps_it_so() {
        let config = PreservationConfig {
            initial_clients: 0,
            ..PreservationConfig::default()
        };
        let mut meter = Meter::new(&config);
        meter.opened(Mono(0), &config, 0);
        meter.joined();
        meter.left();
        assert_eq!(meter.figures(Mono(1), &config).expected_clients, 0);
        meter.update(&config, 3);
        meter.joined();
        assert_eq!(meter.figures(Mono(1), &config).expected_clients, 4);
    }

    #[test]
    fn opening_with_a_copy_expects_what_was_copied() {
        let (config, mut meter) = spring();
        meter.joined();
        meter.opened(Mono(0), &config, 21);
        assert_eq!(meter.figures(Mono(0), &config).expected_clients, 21);
    }

    #[test]
    fn exactly_the_threshold_is_not_enough() {
        // Measured with Spring: nine clients and the phantom, threshold 17.
        let (config, mut meter) = spring();
        (0..9).for_each(|_| meter.joined());
        let at = |renewals: usize| {
            let mut meter = meter.clone();
            (0..renewals).for_each(|_| meter.heartbeat(Mono(59_999)));
            meter.figures(Mono(60_000), &config)
        };
        assert_eq!((at(17).threshold, at(17).evicts), (17, false));
        assert!(at(18).evicts);
    }

    #[test]
    fn a_threshold_of_zero_never_evicts_unless_switched_off() {
        let config = PreservationConfig {
            initial_clients: 0,
            ..PreservationConfig::default()
        };
        let mut meter = Meter::new(&config);
        meter.opened(Mono(0), &config, 0);
        meter.heartbeat(Mono(0));
        assert!(!meter.figures(Mono(60_000), &config).evicts);
        let off = PreservationConfig {
            enabled: false,
            ..config
        };
        assert!(meter.figures(Mono(60_000), &off).evicts);
    }

    #[test]
    fn the_minute_tumbles() {
        let (config, mut meter) = spring();
        let shown = |meter: &Meter, now| meter.figures(Mono(now), &config).last_minute;
        (0..5).for_each(|_| meter.heartbeat(Mono(1_000)));
        assert_eq!(shown(&meter, 59_999), 0);
        assert_eq!(shown(&meter, 60_000), 5);
        meter.heartbeat(Mono(60_000));
        assert_eq!(shown(&meter, 119_999), 5);
        assert_eq!(shown(&meter, 120_000), 1);
        assert_eq!(shown(&meter, 180_000), 0);
    }

    #[test]
    fn closing_late_shows_the_same_figures() {
        for later in [60_000, 119_999, 120_000, 500_000] {
            let (config, mut meter) = spring();
            meter.heartbeat(Mono(30_000));
            let open = meter.figures(Mono(later), &config);
            meter.roll(Mono(later));
            assert_eq!(meter.figures(Mono(later), &config), open, "at {later}");
            assert_eq!(meter.window_end(), Some(Mono(later / 60_000 * 60_000 + 60_000)));
        }
    }

    #[test]
    fn update_takes_the_count_unless_it_fell_too_far() {
        // Strictly more than 85 % of what was expected.
        for (expected, counted, then) in [
            (20, 18, 18),
            (20, 17, 20),
            (13, 11, 13),
            (12, 11, 11),
            (10, 0, 10),
        ] {
            let (config, mut meter) = spring();
            meter.opened(Mono(0), &config, expected);
            meter.update(&config, counted);
            assert_eq!(
                meter.figures(Mono(0), &config).expected_clients,
                then,
                "{expected} {counted}"
            );
        }
    }

    #[test]
    fn update_takes_any_count_when_switched_off() {
        let config = PreservationConfig {
            enabled: false,
            ..PreservationConfig::default()
        };
        let mut meter = Meter::new(&config);
        meter.opened(Mono(0), &config, 10);
        meter.update(&config, 0);
        let figures = meter.figures(Mono(0), &config);
        assert_eq!((figures.expected_clients, figures.threshold), (0, 0));
    }
}
