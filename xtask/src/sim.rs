//! `cargo xtask sim`: the simulator of the peer mesh, which lives with the tests of eureka-replication.

use anyhow::Result;

use crate::ci::{cargo, execute};

/// Simulate clusters under faults and check what must hold.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// How many seeds to run: 1,000, or the one of `--seed`.
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// The first of them.
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Print what happens in the one seed.
    #[arg(long, requires = "seed", conflicts_with = "seeds")]
    trace: bool,
}

impl Arguments {
    /// So many, from the first.
    pub(crate) const fn seeds(seeds: u64) -> Self {
        Self {
            seeds: Some(seeds),
            seed: None,
            trace: false,
        }
    }
}

/// Runs the task: the test that takes its seeds from the environment, built with optimisation and all assertions.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut test = cargo();
    test.args([
        "test",
        "--quiet",
        "--profile",
        "sim",
        "--package",
        "eureka-replication",
    ])
    .args(["--test", "it", "--", "--exact", "sim::seeds_from_the_environment"])
    .arg("--nocapture");
    match (arguments.seed, arguments.seeds) {
        (Some(seed), None) => test.env("SIM_SEED", seed.to_string()),
        (first, seeds) => test
            .env("SIM_FIRST", first.unwrap_or(1).to_string())
            .env("SIM_SEEDS", seeds.unwrap_or(1_000).to_string()),
    };
    if arguments.trace {
        test.env("SIM_TRACE", "1");
    }
    execute(&mut test)
}
