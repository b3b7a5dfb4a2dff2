//! `cargo xtask cluster`: clusters of real processes, ours and Java's, and what must hold in them whatever breaks.

mod balancer;
mod clients;
mod detour;
mod faults;
mod faulty;
mod hang;
mod mixed;
mod pipeline;
mod propagation;
mod relay;
mod restart;
mod servers;
mod storm;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::ValueEnum;

use crate::conformance::report::Report;
use servers::Workshop;

/// Start clusters of real servers on this machine and check what must hold in them
///
/// Prints a line for each check; the last line counts them; the exit code is 0 if nothing failed. Java servers are built at
/// first use and need `java` and `mvn`. Every server listens on a loopback address of its own, for Java tells by the
/// host alone which of its peers it is itself.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// What to run; all that CI runs if none is named
    #[arg(value_name = "SCENARIO")]
    scenarios: Vec<Scenario>,
    /// The server of this project
    #[arg(long, value_name = "FILE", default_value = "target/debug/eureka")]
    program: PathBuf,
    /// Where Java servers are built and logs are written
    #[arg(long, value_name = "DIR", default_value = "target/cluster")]
    work: PathBuf,
    /// How long a node is stopped in `faults`, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    pause: u64,
}

/// What can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Scenario {
    /// One Spring server and two of ours
    Spring,
    /// One classic Netflix server and two of ours
    Netflix,
    /// Three of ours, and everything that can happen to one of them or to a link
    Faults,
    /// Seven of ours, one of which hangs
    Hang,
    /// Three of ours, two of which never reach each other
    Detour,
    /// Two of ours whose peer is a load balancer that leads back to them
    Balancer,
    /// Three of ours, restarted at once while Java clients live
    Restart,
    /// 10,000 renewals a second at a node whose two peers are away for a minute
    Storm,
    /// A million ids come and go at a node whose peer is dead
    Churn,
    /// How long a registration takes to be visible at another node: a figure
    Propagation,
}

/// What CI runs.
const ORDINARY: [Scenario; 1] = [Scenario::Spring];

/// Runs the task.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let workshop = Workshop::open(&arguments.program, &arguments.work)?;
    let report = Report::default();
    let scenarios = if arguments.scenarios.is_empty() {
        &ORDINARY[..]
    } else {
        &arguments.scenarios
    };
    for scenario in scenarios {
        match scenario {
            Scenario::Spring => mixed::run(&workshop, servers::Java::Spring, &report)?,
            Scenario::Faults => faults::run(&workshop, Duration::from_secs(arguments.pause), &report)?,
            Scenario::Hang => hang::run(&workshop, &report)?,
            Scenario::Detour => detour::run(&workshop, &report)?,
            Scenario::Balancer => balancer::run(&workshop, &report)?,
            Scenario::Restart => restart::run(&workshop, &report)?,
            Scenario::Storm => storm::run(&workshop, &report)?,
            Scenario::Churn => storm::churn(&workshop, &report)?,
            Scenario::Propagation => propagation::run(&workshop, &report)?,
            Scenario::Netflix => mixed::run(&workshop, servers::Java::Netflix, &report)?,
        }
    }
    let counts = report.counts();
    report.line(&counts.to_string());
    if counts.failed > 0 {
        bail!("{} of the checks failed", counts.failed);
    }
    Ok(())
}
