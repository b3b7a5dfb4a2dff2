//! What the project promises of its speed, beside what was measured.

use Bound::{AtLeast, AtMost};
use Measure::{Bytes, Cpu, Delay, Missing, Rate};

use super::figures::{Figures, Measure, Spread};
use super::{FIRST_ANSWER, GZIP_LIST, GZIP_ONE_SHOT, MEMORY_AFTER, MISSED, Row};
use crate::bench::subject::Kind;

const LIMIT: [Kind; 2] = [Kind::Eureka, Kind::Limit];
const JAVA: [Kind; 2] = [Kind::Eureka, Kind::Java];
const JAVA_FRESH: [Kind; 2] = [Kind::Eureka, Kind::JavaFresh];
/// "Costs the same", for two figures of one server.
const SAME: f64 = 1.1;

/// One promise.
#[derive(Debug)]
pub(super) struct Criterion {
    pub(super) text: &'static str,
    pub(super) figure: Spread,
    pub(super) bound: Bound,
    unit: Unit,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

#[derive(Clone, Copy, Debug)]
enum Unit {
    Times,
    Percent,
    Millis,
    Kilobytes,
    Count,
}

impl Criterion {
    pub(super) fn is_met(&self) -> bool {
        match self.bound {
            AtLeast(bound) => self.figure.median >= bound,
            AtMost(bound) => self.figure.median <= bound,
        }
    }

    /// The figure, the bound and the verdict as cells.
    pub(super) fn cells(&self) -> [String; 3] {
        let Spread {
            median,
            least,
            most,
            count,
        } = self.figure;
        let mut figure = self.unit.text(median);
        if count > 1 {
            figure += &format!(" ({} to {})", self.unit.text(least), self.unit.text(most));
        }
        let bound = match self.bound {
            AtLeast(bound) => format!("at least {}", self.unit.text(bound)),
            AtMost(bound) => format!("at most {}", self.unit.text(bound)),
        };
        let verdict = if self.is_met() { "met" } else { "**NOT MET**" };
        [figure, bound, verdict.to_owned()]
    }
}

impl Unit {
    fn text(self, value: f64) -> String {
        match self {
            Self::Times if value < 0.095 => format!("1/{:.1}", 1.0 / value),
            Self::Times if value < 20.0 => format!("{value:.2}"),
            Self::Times => format!("{value:.0}"),
            Self::Percent => format!("{:.1} %", value * 100.0),
            Self::Millis => format!("{value:.1} ms"),
            Self::Kilobytes => format!("{value:.2} kB"),
            Self::Count => format!("{value:.0}"),
        }
    }
}

/// All that can be judged by what was measured.
pub(super) fn judge(figures: &Figures, instances: usize) -> Vec<Criterion> {
    let all = [
        beside_limit(figures),
        beside_java(figures),
        alone(figures, instances),
    ];
    let measured = all.into_iter().flatten().filter_map(|promise| {
        Some(Criterion {
            text: promise.0,
            figure: promise.1?,
            bound: promise.2,
            unit: promise.3,
        })
    });
    measured.collect()
}

/// The figure is missing if it was not measured.
type Promise = (&'static str, Option<Spread>, Bound, Unit);

fn beside_limit(figures: &Figures) -> Vec<Promise> {
    let rate = |row: Row| figures.ratio(row.title(), Rate, LIMIT);
    let cpu = |row: Row| figures.ratio(row.title(), Cpu, LIMIT);
    vec![
        (
            "renew: rate to the limit's",
            rate(Row::Renew),
            AtLeast(0.9),
            Unit::Percent,
        ),
        (
            "renew: CPU to the limit's",
            cpu(Row::Renew),
            AtMost(1.2),
            Unit::Times,
        ),
        (
            "register: CPU to the limit's",
            cpu(Row::Register),
            AtMost(25.0 / 8.0),
            Unit::Times,
        ),
        (
            "full fetch, identity: rate to the limit's",
            rate(Row::Full),
            AtLeast(0.9),
            Unit::Percent,
        ),
        (
            "full fetch, gzip: rate to the limit's",
            rate(Row::FullGzip),
            AtLeast(0.9),
            Unit::Percent,
        ),
        (
            "full fetch, gzip, 100 changes/s: rate to the limit's",
            rate(Row::FullGzipBusy),
            AtLeast(0.7),
            Unit::Percent,
        ),
        (
            "full fetch, identity, 100 changes/s: rate to the limit's",
            rate(Row::FullBusy),
            AtLeast(0.7),
            Unit::Percent,
        ),
        (
            "delta, 100 changes/s: rate to the limit's",
            rate(Row::DeltaBusy),
            AtLeast(0.7),
            Unit::Percent,
        ),
        (
            "delta: rate to the limit's",
            rate(Row::Delta),
            AtLeast(0.9),
            Unit::Percent,
        ),
    ]
}

fn beside_java(figures: &Figures) -> Vec<Promise> {
    let rate = |row: Row| figures.ratio(row.title(), Rate, JAVA);
    vec![
        (
            "renew: rate to Java's",
            rate(Row::Renew),
            AtLeast(7.0),
            Unit::Times,
        ),
        (
            "renew: CPU to Java's",
            figures.ratio(Row::Renew.title(), Cpu, JAVA),
            AtMost(1.0 / 12.0),
            Unit::Times,
        ),
        (
            "register: rate to Java's",
            rate(Row::Register),
            AtLeast(8.0),
            Unit::Times,
        ),
        (
            "full fetch, gzip: rate to Java's with its copy",
            rate(Row::FullGzip),
            AtLeast(3.0),
            Unit::Times,
        ),
        (
            "full fetch, gzip, 100 changes/s: rate to Java's without its copy",
            figures.ratio(Row::FullGzipBusy.title(), Rate, JAVA_FRESH),
            AtLeast(50.0),
            Unit::Times,
        ),
        (
            "memory after reads in both forms to Java's",
            figures.ratio(MEMORY_AFTER, Bytes, JAVA),
            AtMost(0.05),
            Unit::Times,
        ),
    ]
}

fn alone(figures: &Figures, instances: usize) -> Vec<Promise> {
    let spreading = [Row::RenewOneApplication, Row::RenewManyApplications].map(Row::title);
    let batching = [Row::Batch, Row::Renew].map(Row::title);
    vec![
        (
            "renew: CPU, all in one application to ten in each",
            between(figures, spreading, Cpu),
            AtMost(SAME),
            Unit::Times,
        ),
        (
            "heartbeat in a batch of 250: CPU to a direct one's",
            between(figures, batching, Cpu),
            AtMost(0.1),
            Unit::Times,
        ),
        (
            "full list in gzip: bytes to those of one go",
            between(figures, [GZIP_LIST, GZIP_ONE_SHOT], Bytes),
            AtMost(1.1),
            Unit::Times,
        ),
        (
            "registrations while a list is built, missing from the next, of 20",
            figures.spread(MISSED, Kind::Eureka, Missing),
            AtMost(0.0),
            Unit::Count,
        ),
        (
            "memory after reads in both forms, for each instance",
            memory(figures, instances),
            AtMost(5.0),
            Unit::Kilobytes,
        ),
        (
            "start to first answer",
            figures.spread(FIRST_ANSWER, Kind::Eureka, Delay),
            AtMost(20.0),
            Unit::Millis,
        ),
    ]
}

/// Of two rows on our server, round by round.
fn between(figures: &Figures, [a, b]: [&'static str; 2], measure: Measure) -> Option<Spread> {
    let [a, b] = [a, b].map(|what| figures.values(what, Kind::Eureka, measure));
    let rounds: Vec<f64> = a.iter().zip(b).map(|(a, b)| a / b).collect();
    Some(Spread {
        median: Spread::of(a)?.median / Spread::of(b)?.median,
        ..Spread::of(&rounds)?
    })
}

/// All the memory of the process, in kilobytes for each of its instances.
fn memory(figures: &Figures, instances: usize) -> Option<Spread> {
    let values = figures.values(MEMORY_AFTER, Kind::Eureka, Bytes);
    let each: Vec<f64> = values
        .iter()
        .map(|bytes| bytes / 1e3 / instances as f64)
        .collect();
    Spread::of(&each)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(ours: f64, limit: f64) -> Figures {
        let mut figures = Figures::default();
        for factor in [1.0, 1.1, 0.9] {
            let renew = Row::Renew.title();
            figures.add(renew, Kind::Eureka, &[(Rate, ours * factor)]);
            figures.add(renew, Kind::Limit, &[(Rate, limit)]);
        }
        figures
    }

    #[test]
    fn a_criterion_is_judged_by_the_median_and_shows_the_spread() {
        let met = judge(&figures(95.0, 100.0), 10);
        assert_eq!(met.len(), 1, "only what was measured is judged: {met:?}");
        let cells = ["95.0 % (85.5 % to 104.5 %)", "at least 90.0 %", "met"];
        assert_eq!(met[0].cells(), cells);
        let missed = judge(&figures(80.0, 100.0), 10);
        assert!(!missed[0].is_met());
        assert_eq!(missed[0].cells()[2], "**NOT MET**");
    }

    #[test]
    fn memory_is_that_of_the_whole_process_for_each_instance() {
        let mut figures = Figures::default();
        figures.add(MEMORY_AFTER, Kind::Eureka, &[(Bytes, 60e6)]);
        let judged = judge(&figures, 10_000);
        assert_eq!(judged[0].cells(), ["6.00 kB", "at most 5.00 kB", "**NOT MET**"]);
        assert!(judge(&figures, 20_000)[0].is_met());
    }

    #[test]
    fn small_ratios_are_written_as_fractions() {
        assert_eq!(Unit::Times.text(1.0 / 12.0), "1/12.0");
        assert_eq!(Unit::Times.text(0.1), "0.10");
        assert_eq!(Unit::Times.text(1.234), "1.23");
        assert_eq!(Unit::Times.text(63.2), "63");
    }
}
