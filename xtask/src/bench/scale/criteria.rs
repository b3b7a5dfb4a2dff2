//! What the project promises about scale, held against what was measured.

use super::costs::{CHANGE_READ, RENEW};
use super::figures::{Criterion, During, Figures, Measured, Pause, Sent};
use crate::bench::table::figures::Spread;

/// The size for which most is promised, and the one it is compared with.
const LARGE: usize = 1_000_000;
const SMALL: usize = 10_000;
/// What a million instances that renew every 30 s ask for.
const FULL_RATE: f64 = LARGE as f64 / 30.0;
const GIB: f64 = 1_073_741_824.0;

/// Every criterion, also those that this run cannot judge because it had no such size.
pub(super) fn examine(measured: &Measured) -> Vec<Criterion> {
    let large = measured
        .sizes
        .iter()
        .find(|figures| figures.size.instances == LARGE);
    let small = measured
        .sizes
        .iter()
        .find(|figures| figures.size.instances == SMALL);
    let single = measured
        .sizes
        .iter()
        .find(|figures| figures.size.instances == SMALL && figures.size.applications == 1);
    let growth = |what| Some(cost(large?, what)? / cost(small?, what)?);
    let mut criteria = vec![
        at_most(
            "1M, open loop and a full gzip fetch every 5 s: CPU per renewal beside the limit's",
            large.and_then(|large| ratio(large, |pause| pause.cpu_us)),
            1.3,
            "times",
        ),
        at_most(
            "1M, the same: p99.9 beside the limit's",
            large.and_then(|large| ratio(large, |pause| f64::from(pause.latency.p999))),
            3.0,
            "times",
        ),
        at_most(
            "1M: p99.9 of a peer's batch of 250 beside first gzip fetches",
            large.and_then(batch_p999),
            50.0,
            "ms",
        ),
        at_most("CPU per renewal, 1M to 10k", growth(RENEW), 2.0, "times"),
        at_most(
            "CPU per change and reader, 1M to 10k",
            growth(CHANGE_READ),
            3.0,
            "times",
        ),
        at_most(
            "CPU per renewal, 10k in one application to 10k in many",
            single.and_then(|single| Some(cost(single, RENEW)? / cost(small?, RENEW)?)),
            1.2,
            "times",
        ),
    ];
    criteria.extend(large.into_iter().flat_map(|large| &large.lookups).map(|lookup| {
        let millis = f64::from(lookup.latency.p99) / 1e3;
        at_most(&format!("1M: p99 of {}", lookup.what), Some(millis), 5.0, "ms")
    }));
    criteria.push(at_most(
        "1M: most memory with encoded JSON and gzip",
        large.map(|large| large.memory.peak_with_json as f64 / GIB),
        4.0,
        "GiB",
    ));
    criteria
}

/// Cores that renewals of a million every 30 s would take: by the cost in the open loop, and in the closed loop.
pub(super) fn cores_at_full_rate(large: &Figures) -> Option<[f64; 2]> {
    let open = median(of(large, "eureka", During::Fetches).map(|pause| pause.cpu_us))?;
    let closed = cost(large, RENEW)?;
    Some([open, closed].map(|cpu_us| cpu_us * FULL_RATE / 1e6))
}

fn at_most(what: &str, figure: Option<f64>, bound: f64, unit: &str) -> Criterion {
    Criterion {
        what: what.to_owned(),
        figure: figure.map_or_else(
            || "not measured".to_owned(),
            |figure| format!("{figure:.2} {unit}"),
        ),
        bound: format!("{bound} {unit}"),
        met: figure.map(|figure| figure <= bound),
    }
}

/// The server's CPU time for one request in a closed loop.
fn cost(figures: &Figures, what: &str) -> Option<f64> {
    let row = figures
        .costs
        .iter()
        .find(|cost| cost.what == what && cost.server == "eureka");
    Some(row?.cpu_us)
}

/// Ours to the limit's, of the medians over the rounds.
fn ratio(figures: &Figures, figure: impl Fn(&Pause) -> f64) -> Option<f64> {
    let of_server = |server| median(of(figures, server, During::Fetches).map(&figure));
    Some(of_server("eureka")? / of_server("limit")?)
}

fn of<'a>(figures: &'a Figures, server: &'a str, during: During) -> impl Iterator<Item = &'a Pause> {
    let is_it = move |pause: &&Pause| {
        pause.server == server && pause.during == during && pause.what == Sent::Renewals
    };
    figures.pauses.iter().filter(is_it)
}

fn batch_p999(figures: &Figures) -> Option<f64> {
    let batches = figures.pauses.iter().find(|pause| pause.what == Sent::Batches);
    Some(f64::from(batches?.latency.p999) / 1e3)
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    Spread::of(&values.collect::<Vec<_>>()).map(|spread| spread.median)
}
