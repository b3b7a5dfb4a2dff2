//! `cargo xtask cluster`: clusters of real processes, ours and Java's, and what must hold in them whatever breaks.

mod balancer;
mod client;
mod clients;
mod detour;
mod doctor;
mod faults;
mod faulty;
mod hang;
mod mixed;
mod pipeline;
mod propagation;
mod regions;
mod relay;
mod restart;
pub(crate) mod servers;
mod storm;
mod watch;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use clap::ValueEnum;

use crate::conformance::report::{Outcome, Report};
use crate::stopwatch::{Stopwatch, minutes};
use servers::{Java, Workshop};

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
    /// How many scenarios run at a time
    #[arg(long, value_name = "N", default_value_t = 3)]
    jobs: usize,
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
    /// Two of ours that die, stop and start while clients watch what changes, over gRPC and server-sent events
    Watch,
    /// Two regions of two nodes each that read each other
    Regions,
    /// The same with Spring servers in one of them
    RegionsSpring,
    /// The same with classic Netflix servers in one of them
    RegionsNetflix,
    /// Services that use our client, whose two servers (ours) die, hang, and are gone at last
    Client,
    /// The same with two Spring servers
    ClientJava,
    /// 10,000 renewals a second at a node whose two peers are away for a minute
    Storm,
    /// A million ids come and go at a node whose peer is dead
    Churn,
    /// Two of ours with planted faults, one after the other, which `eureka doctor` must name
    Doctor,
    /// Two Spring servers with planted faults, likewise
    DoctorJava,
    /// Java servers whose peers' addresses lead elsewhere than they believe, likewise
    DoctorAddresses,
    /// Java servers that hold or cache their lists, and Netflix' own server, likewise
    DoctorReads,
    /// A Spring server and nodes of ours with planted faults, likewise
    DoctorMixed,
    /// How long a registration takes to be visible at another node: a figure
    Propagation,
}

/// What CI runs; the longest first.
const ORDINARY: [Scenario; 10] = [
    Scenario::Faults,
    Scenario::Doctor,
    Scenario::Spring,
    Scenario::Detour,
    Scenario::Regions,
    Scenario::Restart,
    Scenario::Client,
    Scenario::Watch,
    Scenario::Hang,
    Scenario::Balancer,
];

/// What takes too long for CI, and what it runs but more patiently.
const DEEP: [Scenario; 12] = [
    Scenario::Faults,
    Scenario::Netflix,
    Scenario::RegionsSpring,
    Scenario::RegionsNetflix,
    Scenario::ClientJava,
    Scenario::DoctorJava,
    Scenario::DoctorAddresses,
    Scenario::DoctorReads,
    Scenario::DoctorMixed,
    Scenario::Storm,
    Scenario::Churn,
    Scenario::Propagation,
];
/// How long a node is stopped in the deep tier, in seconds.
const DEEP_PAUSE: u64 = 120;

/// Runs what is left out of CI, one after the other, against a release build.
pub(crate) fn deep() -> Result<()> {
    let release = [
        "build",
        "--quiet",
        "--release",
        "--package",
        "eureka-server",
        "--bin",
        "eureka",
    ];
    crate::ci::execute(crate::ci::cargo().args(release))?;
    run(&Arguments {
        scenarios: DEEP.to_vec(),
        program: crate::root().join("target/release/eureka"),
        work: crate::root().join("target/cluster"),
        jobs: 1,
        pause: DEEP_PAUSE,
    })
}

impl Scenario {
    fn run(self, workshop: &Workshop, arguments: &Arguments, report: &Report) -> Result<()> {
        match self {
            Self::Spring => mixed::run(workshop, Java::Spring, report),
            Self::Netflix => mixed::run(workshop, Java::Netflix, report),
            Self::Faults => faults::run(workshop, Duration::from_secs(arguments.pause), report),
            Self::Hang => hang::run(workshop, report),
            Self::Detour => detour::run(workshop, report),
            Self::Balancer => balancer::run(workshop, report),
            Self::Restart => restart::run(workshop, report),
            Self::Doctor => doctor::ours(workshop, report),
            Self::DoctorJava => doctor::java(workshop, report),
            Self::DoctorAddresses => doctor::addresses(workshop, report),
            Self::DoctorReads => doctor::reads(workshop, report),
            Self::DoctorMixed => doctor::mixed(workshop, report),
            Self::Watch => watch::run(workshop, report),
            Self::Regions => regions::ours(workshop, report),
            Self::RegionsSpring => regions::mixed(workshop, Java::Spring, report),
            Self::RegionsNetflix => regions::mixed(workshop, Java::Netflix, report),
            Self::Client => client::ours(workshop, report),
            Self::ClientJava => client::java(workshop, report),
            Self::Storm => storm::run(workshop, report),
            Self::Churn => storm::churn(workshop, report),
            Self::Propagation => propagation::run(workshop, report),
        }
    }
}

/// Runs the task.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let workshop = Workshop::open(&arguments.program, &arguments.work)?;
    let report = Report::default();
    let scenarios = if arguments.scenarios.is_empty() {
        &ORDINARY[..]
    } else {
        &arguments.scenarios
    };
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(scenario) = scenarios.get(next.fetch_add(1, Ordering::Relaxed)) {
            let stopwatch = Stopwatch::start();
            let done = scenario.run(&workshop, arguments, &report);
            let name = format!("{scenario:?}").to_lowercase();
            if let Err(error) = done {
                report.step(&name, "runs to its end", &Outcome::Failed(format!("{error:#}")));
            }
            report.line(&format!("      {name}: {}", minutes(stopwatch.elapsed())));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs.max(1) {
            scope.spawn(work);
        }
    });
    let counts = report.counts();
    report.line(&counts.to_string());
    if counts.failed > 0 {
        bail!("{} of the checks failed", counts.failed);
    }
    Ok(())
}
