//! How long answers took, by class of request.
//!
//! Not a histogram of the recorder: that keeps every measurement, with a reading of the clock of its own, until somebody folds
//! them into buckets. Here one is two additions, and there is nothing to fold.

use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What it is called. Documented in docs/operating.md.
const NAME: &str = "eureka_request_seconds";

/// Bounds of the buckets in microseconds.
const BOUNDS: [u64; 14] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 5_000_000,
];

/// How long the answers of one class took.
#[derive(Debug, Default)]
pub(super) struct Durations {
    nanos: AtomicU64,
    /// By the shortest bound that was kept.
    kept: [AtomicU64; BOUNDS.len()],
    longer: AtomicU64,
}

impl Durations {
    pub(super) fn add(&self, took: Duration) {
        let bucket = BOUNDS
            .iter()
            .position(|bound| took <= Duration::from_micros(*bound));
        let count = bucket.map_or(&self.longer, |bucket| &self.kept[bucket]);
        count.fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    fn write(&self, class: &str, out: &mut String) -> fmt::Result {
        let mut count = 0;
        for (bound, kept) in BOUNDS.iter().zip(&self.kept) {
            count += kept.load(Ordering::Relaxed);
            let seconds = Duration::from_micros(*bound).as_secs_f64();
            writeln!(out, "{NAME}_bucket{{class=\"{class}\",le=\"{seconds}\"}} {count}")?;
        }
        count += self.longer.load(Ordering::Relaxed);
        writeln!(out, "{NAME}_bucket{{class=\"{class}\",le=\"+Inf\"}} {count}")?;
        let sum = Duration::from_nanos(self.nanos.load(Ordering::Relaxed)).as_secs_f64();
        writeln!(out, "{NAME}_sum{{class=\"{class}\"}} {sum}")?;
        writeln!(out, "{NAME}_count{{class=\"{class}\"}} {count}")
    }
}

/// Appends the durations of these classes as Prometheus text.
pub(super) fn write<'a>(classes: impl Iterator<Item = (&'a str, &'a Durations)>, out: &mut String) {
    let _ = writeln!(out, "# HELP {NAME} Time to an answer's head, by class");
    let _ = writeln!(out, "# TYPE {NAME} histogram");
    for (class, durations) in classes {
        // A string takes everything.
        let _ = durations.write(class, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bucket_holds_those_before_it() {
        let durations = Durations::default();
        for micros in [1, 50, 51, 400_000, 5_000_001] {
            durations.add(Duration::from_micros(micros));
        }
        let mut text = String::new();
        write([("renewal", &durations)].into_iter(), &mut text);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2 + BOUNDS.len() + 3);
        for line in [
            "# TYPE eureka_request_seconds histogram",
            r#"eureka_request_seconds_bucket{class="renewal",le="0.00005"} 2"#,
            r#"eureka_request_seconds_bucket{class="renewal",le="0.0001"} 3"#,
            r#"eureka_request_seconds_bucket{class="renewal",le="0.25"} 3"#,
            r#"eureka_request_seconds_bucket{class="renewal",le="1"} 4"#,
            r#"eureka_request_seconds_bucket{class="renewal",le="5"} 4"#,
            r#"eureka_request_seconds_bucket{class="renewal",le="+Inf"} 5"#,
            r#"eureka_request_seconds_sum{class="renewal"} 5.400103"#,
            r#"eureka_request_seconds_count{class="renewal"} 5"#,
        ] {
            assert!(lines.contains(&line), "{line}\nis not in\n{text}");
        }
    }
}
