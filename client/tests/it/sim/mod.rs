//! Agents against registries, for days of virtual time, under faults that are drawn from a seed.
//!
//! `cargo xtask sim clients` runs many seeds for seven days each; `--seed S` one, with `--trace` for what happened in it.

// From outside, the enums of the crates are open: every match needs a last arm.
#![allow(clippy::wildcard_enum_match_arm)]

mod client;
mod faults;
mod network;
mod oracle;
mod scenario;
mod server;
mod words;
mod world;

use std::sync::atomic::{AtomicU64, Ordering};

use scenario::{Length, Scenario};
use world::{Report, World};

/// Seeds of the ordinary test.
const FEW: u64 = 24;

#[test]
fn a_few_seeds_for_hours() {
    many(1, FEW, Length::SHORT);
}

#[test]
fn two_seeds_for_a_day() {
    many(1_001, 2, Length::DAY);
}

/// What `cargo xtask sim clients` runs: the environment says which seeds.
#[test]
fn seeds_from_the_environment() {
    let number = |name: &str| Some(std::env::var(name).ok()?.parse().expect("a number"));
    let length = match std::env::var_os("SIM_SHORT") {
        Some(_) => Length::SHORT,
        None => Length::WEEK,
    };
    if let Some(seed) = number("SIM_SEED") {
        let trace = std::env::var_os("SIM_TRACE").is_some();
        match run(seed, length, trace) {
            Ok(report) => println!("seed {seed}: {report:?}"),
            Err(violation) => panic!("{violation}"),
        }
    } else if let Some(seeds) = number("SIM_SEEDS") {
        many(number("SIM_FIRST").unwrap_or(1), seeds, length);
    }
}

/// Runs so many seeds on two threads and prints what was seen.
#[expect(clippy::print_stdout, reason = "the figures are to be read")]
fn many(first: u64, seeds: u64, length: Length) {
    let next = AtomicU64::new(first);
    let work = || {
        let mut done = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + seeds {
                return done;
            }
            done.push((seed, run(seed, length, false)));
        }
    };
    let mut done = std::thread::scope(|scope| {
        let other = scope.spawn(work);
        let mut done = work();
        done.extend(other.join().expect("panics are caught"));
        done
    });
    done.sort_by_key(|(seed, _)| *seed);
    let reports: Vec<&Report> = done
        .iter()
        .filter_map(|(_, outcome)| outcome.as_ref().ok())
        .collect();
    let requests: u64 = reports.iter().map(|report| report.requests).sum();
    let faults: u64 = reports.iter().map(|report| report.faults).sum();
    let stalest = reports
        .iter()
        .map(|report| report.stalest)
        .max()
        .unwrap_or_default();
    let mut agreed: Vec<u64> = reports.iter().flat_map(|report| report.agreed.clone()).collect();
    agreed.sort_unstable();
    let at = |share: usize| agreed.get((agreed.len() * share / 100).min(agreed.len().saturating_sub(1)));
    let [half, most, all] = [50, 90, 100].map(|share| at(share).map_or(0, |time| *time / 1_000));
    println!(
        "sim clients: {} of {seeds} seeds passed; {faults} faults, {requests} requests, at most {} of one client in an \
         hour; stalest view {} s (its bound {} s); equal after the faults within: half {half} s, 90 % {most} s, all {all} s",
        reports.len(),
        reports
            .iter()
            .map(|report| report.most_in_an_hour)
            .max()
            .unwrap_or(0),
        stalest.0 / 1_000,
        stalest.1 / 1_000,
    );
    let violations: Vec<_> = done
        .iter()
        .filter_map(|(_, outcome)| outcome.as_ref().err())
        .collect();
    let texts: Vec<_> = violations.into_iter().map(String::as_str).collect();
    assert!(texts.is_empty(), "\n{}", texts.join("\n"));
}

/// One run: what was seen, or what went wrong and how to see it again.
fn run(seed: u64, length: Length, trace: bool) -> Result<Report, String> {
    let mut world = World::new(Scenario::draw(seed, length), trace);
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.run())) {
        Ok(Ok(())) => Ok(world.report),
        Ok(Err(violation)) => Err(explain(seed, length, &violation)),
        Err(_) => Err(explain(seed, length, "a panic, see above")),
    }
}

fn explain(seed: u64, length: Length, violation: &str) -> String {
    let short = if length.epochs == Length::SHORT.epochs {
        " --short"
    } else {
        ""
    };
    format!("seed {seed}: {violation}\n    cargo xtask sim clients --seed {seed}{short} --trace")
}
