//! The simulator: nodes, servers that behave like Java, clients and operators under faults, all drawn from a seed.
//!
//! `cargo xtask sim --seeds N` runs many; `--seed S` one, with `--trace` for what happened in it.

mod client;
mod equality;
mod java;
mod links;
mod oracle;
mod rng;
mod scenario;
mod trace;
mod watch;
mod world;

use std::sync::atomic::{AtomicU64, Ordering};

use scenario::Scenario;
use world::World;

/// Seeds of the ordinary test.
const FEW: u64 = 16;

#[test]
fn a_few_seeds() {
    many(1, FEW);
}

/// What `cargo xtask sim` runs: the environment says which seeds.
#[test]
fn seeds_from_the_environment() {
    let number = |name: &str| Some(std::env::var(name).ok()?.parse().expect("a number"));
    if let Some(seed) = number("SIM_SEED") {
        let trace = std::env::var_os("SIM_TRACE").is_some();
        match run(seed, trace) {
            Ok(converged) => println!("seed {seed}: equal {converged} ms after the heal"),
            Err(violation) => panic!("{violation}"),
        }
    } else if let Some(seeds) = number("SIM_SEEDS") {
        many(number("SIM_FIRST").unwrap_or(1), seeds);
    }
}

/// Runs so many seeds on two threads and prints how long they took to become equal.
#[expect(clippy::print_stdout, reason = "the distribution is to be read")]
fn many(first: u64, seeds: u64) {
    let next = AtomicU64::new(first);
    let failed = AtomicU64::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + seeds || failed.load(Ordering::Relaxed) >= 20 {
                return done;
            }
            let outcome = run(seed, false);
            failed.fetch_add(u64::from(outcome.is_err()), Ordering::Relaxed);
            done.push((seed, outcome));
        }
    };
    let mut done = std::thread::scope(|scope| {
        let other = scope.spawn(work);
        let mut done = work();
        done.extend(other.join().expect("panics are caught"));
        done
    });
    done.sort();
    let equal = done.iter();
    let equal = equal.filter_map(|(seed, outcome)| Some((*outcome.as_ref().ok()?, *seed)));
    let mut times: Vec<_> = equal.collect();
    times.sort_unstable();
    let at = |share: usize| times.get((times.len() * share / 1_000).min(times.len().saturating_sub(1)));
    let [half, most, rare, last] =
        [500, 900, 990, 1_000].map(|share| at(share).map_or(0, |(time, _)| *time / 1_000));
    let slowest = times.last().map_or(0, |(_, seed)| *seed);
    println!(
        "sim: {} of {seeds} seeds passed; equal after the heal within: half {half} s, 90 % {most} s, 99 % {rare} s, \
         all {last} s (seed {slowest})",
        times.len()
    );
    let violations: Vec<_> = done
        .iter()
        .filter_map(|(_, outcome)| outcome.as_ref().err())
        .collect();
    let texts: Vec<_> = violations.into_iter().map(String::as_str).collect();
    assert!(texts.is_empty(), "\n{}", texts.join("\n"));
}

/// One run: how long it took to become equal, in milliseconds, or what went wrong and how to see it again.
fn run(seed: u64, trace: bool) -> Result<u64, String> {
    let scenario = Scenario::draw(seed);
    let mut world = World::new(scenario, trace);
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.run())) {
        Ok(Ok(())) => Ok(world.watch.converged.unwrap_or(0)),
        Ok(Err(violation)) => Err(explain(seed, &violation)),
        Err(_) => Err(explain(seed, "a panic, see above")),
    }
}

fn explain(seed: u64, violation: &str) -> String {
    format!("seed {seed}: {violation}\n    cargo xtask sim --seed {seed} --trace")
}
