//! `cargo xtask sim`: the simulators, which live with the tests: of the peer mesh in eureka-replication, of clients in
//! eureka-client.

use anyhow::Result;

use crate::ci::{cargo, execute};

/// Simulate clusters under faults and check what must hold.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Who is simulated: the peer mesh, or clients for seven days.
    #[arg(value_enum, default_value_t)]
    subject: Subject,
    /// How many seeds to run: 1,000 of the mesh, 100 of clients, or the one of `--seed`.
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// The first of them.
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Print what happens in the one seed.
    #[arg(long, requires = "seed", conflicts_with = "seeds")]
    trace: bool,
    /// Clients for hours, as in the ordinary tests.
    #[arg(long)]
    short: bool,
}

/// Who is simulated.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum Subject {
    #[default]
    Mesh,
    Clients,
}

impl Arguments {
    /// So many of the mesh, from the first.
    pub(crate) const fn seeds(seeds: u64) -> Self {
        Self {
            subject: Subject::Mesh,
            seeds: Some(seeds),
            seed: None,
            trace: false,
            short: false,
        }
    }

    /// So many of clients.
    pub(crate) const fn clients(seeds: u64) -> Self {
        Self {
            subject: Subject::Clients,
            ..Self::seeds(seeds)
        }
    }
}

/// Runs the task: the test that takes its seeds from the environment, built with optimisation and all assertions.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let (package, seeds) = match arguments.subject {
        Subject::Mesh => ("eureka-replication", 1_000),
        Subject::Clients => ("eureka-client", 100),
    };
    let mut test = cargo();
    test.args(["test", "--quiet", "--profile", "sim", "--package", package])
        .args(["--test", "it", "--", "--exact", "sim::seeds_from_the_environment"])
        .arg("--nocapture");
    match (arguments.seed, arguments.seeds) {
        (Some(seed), None) => test.env("SIM_SEED", seed.to_string()),
        (first, number) => test
            .env("SIM_FIRST", first.unwrap_or(1).to_string())
            .env("SIM_SEEDS", number.unwrap_or(seeds).to_string()),
    };
    if arguments.trace {
        test.env("SIM_TRACE", "1");
    }
    if arguments.short {
        test.env("SIM_SHORT", "1");
    }
    execute(&mut test)
}
