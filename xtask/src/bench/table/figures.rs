//! All figures of a run: for each thing measured, on each server, one value of each measure per round.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::bench::subject::Kind;

/// What is told of something that was measured.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Measure {
    /// CPU time of the server's process for each request, or for each item of a batch, in microseconds.
    Cpu,
    /// Answers a second, or items.
    Rate,
    /// Latencies in microseconds.
    P50,
    P99,
    P999,
    Longest,
    /// Megabytes a second.
    Throughput,
    /// CPU time that neither the server nor the generator took, in cores.
    Others,
    /// Milliseconds.
    Delay,
    /// Bytes of memory or of a body.
    Bytes,
    /// Of tries.
    Missing,
}

impl Measure {
    const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "server_cpu_us",
            Self::Rate => "per_second",
            Self::P50 => "p50_us",
            Self::P99 => "p99_us",
            Self::P999 => "p999_us",
            Self::Longest => "longest_us",
            Self::Throughput => "megabytes_per_second",
            Self::Others => "cpu_of_others_cores",
            Self::Delay => "milliseconds",
            Self::Bytes => "bytes",
            Self::Missing => "missing",
        }
    }
}

/// The median of several values, and how far they lie apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::bench) struct Spread {
    pub(in crate::bench) median: f64,
    pub(super) least: f64,
    pub(super) most: f64,
    pub(super) count: usize,
}

impl Spread {
    /// Nothing of nothing.
    pub(in crate::bench) fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (least, most) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Some(Self {
            median,
            least,
            most,
            count: sorted.len(),
        })
    }
}

/// The values, by what was measured (its title) on which server.
#[derive(Debug, Default)]
pub(super) struct Figures(BTreeMap<(&'static str, Kind), BTreeMap<Measure, Vec<f64>>>);

impl Figures {
    pub(super) fn add(&mut self, what: &'static str, kind: Kind, values: &[(Measure, f64)]) {
        let measures = self.0.entry((what, kind)).or_default();
        for (measure, value) in values {
            measures.entry(*measure).or_default().push(*value);
        }
    }

    pub(super) fn values(&self, what: &'static str, kind: Kind, measure: Measure) -> &[f64] {
        let measures = self.0.get(&(what, kind));
        measures
            .and_then(|measures| measures.get(&measure))
            .map_or(&[], Vec::as_slice)
    }

    pub(super) fn spread(&self, what: &'static str, kind: Kind, measure: Measure) -> Option<Spread> {
        Spread::of(self.values(what, kind, measure))
    }

    /// The ratio of the medians, and the least and the greatest ratio of values that were measured in the same round.
    pub(super) fn ratio(
        &self,
        what: &'static str,
        measure: Measure,
        [ours, theirs]: [Kind; 2],
    ) -> Option<Spread> {
        let [ours, theirs] = [ours, theirs].map(|kind| self.values(what, kind, measure));
        let rounds: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| a / b).collect();
        let spread = Spread::of(&rounds)?;
        Some(Spread {
            median: Spread::of(ours)?.median / Spread::of(theirs)?.median,
            ..spread
        })
    }

    /// The servers of which there is anything, in their order.
    pub(super) fn kinds(&self, what: &'static str) -> impl Iterator<Item = Kind> + '_ {
        let all = self.0.keys();
        all.filter(move |(title, _)| *title == what)
            .map(|(_, kind)| *kind)
    }

    pub(super) fn json(&self) -> Value {
        let rows = self.0.iter().map(|((what, kind), measures)| {
            let measures: serde_json::Map<_, _> = measures
                .iter()
                .map(|(measure, values)| {
                    let spread = Spread::of(values).map(|spread| {
                        json!({
                            "median": spread.median,
                            "least": spread.least,
                            "most": spread.most,
                            "rounds": values,
                        })
                    });
                    (measure.name().to_owned(), json!(spread))
                })
                .collect();
            json!({ "what": what, "server": kind.name(), "measures": measures })
        });
        rows.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Kind; 2] = [Kind::Eureka, Kind::Limit];

    #[test]
    fn the_median_lies_in_the_middle_whatever_the_order() {
        let spread = |values: &[f64]| Spread::of(values).map(|s| (s.median, s.least, s.most, s.count));
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[3.0]), Some((3.0, 3.0, 3.0, 1)));
        assert_eq!(spread(&[9.0, 1.0, 4.0]), Some((4.0, 1.0, 9.0, 3)));
        assert_eq!(spread(&[9.0, 1.0, 4.0, 2.0]), Some((3.0, 1.0, 9.0, 4)));
    }

    #[test]
    fn a_ratio_is_of_medians_and_its_spread_of_rounds() {
        let mut figures = Figures::default();
        for (ours, limit) in [(10.0, 10.0), (30.0, 10.0), (20.0, 40.0)] {
            figures.add("renew", Kind::Eureka, &[(Measure::Cpu, ours)]);
            figures.add("renew", Kind::Limit, &[(Measure::Cpu, limit)]);
        }
        let ratio = figures.ratio("renew", Measure::Cpu, BOTH).unwrap();
        assert_eq!((ratio.median, ratio.least, ratio.most), (2.0, 0.5, 3.0));
        assert_eq!(figures.ratio("renew", Measure::Rate, BOTH), None);
        assert_eq!(
            figures.ratio("renew", Measure::Cpu, [Kind::Eureka, Kind::Java]),
            None
        );
        assert_eq!(figures.kinds("renew").collect::<Vec<_>>(), BOTH);
    }

    #[test]
    fn json_holds_every_round() {
        let mut figures = Figures::default();
        figures.add("renew", Kind::Eureka, &[(Measure::Rate, 2.0)]);
        figures.add("renew", Kind::Eureka, &[(Measure::Rate, 4.0)]);
        let rate = &figures.json()[0]["measures"]["per_second"];
        assert_eq!(rate["median"], 3.0);
        assert_eq!(rate["rounds"], json!([2.0, 4.0]));
    }
}
