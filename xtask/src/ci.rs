//! `cargo xtask ci`: every check of the project but the tests and the conformance run, which `.ci/run` starts itself.

mod deny;
mod features;
mod no_std;
mod package;

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::stopwatch::{Stopwatch, minutes};

/// Run every check of the project but the tests and the conformance run.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Also plant every seeded bug, break clusters more patiently, and fuzz each target for ten minutes: two hours.
    #[arg(long)]
    deep: bool,
    /// Only the step of this name.
    #[arg(long)]
    only: Option<String>,
}

/// A named check.
type Step = (&'static str, fn() -> Result<()>);

const STEPS: [Step; 10] = [
    ("fmt", fmt),
    ("tidy", || crate::tidy::run(&crate::tidy::Arguments {})),
    ("readme", || {
        crate::readme::run(&crate::readme::Arguments { check: true })
    }),
    ("codegen", || {
        crate::codegen::run(&crate::codegen::Arguments { check: true })
    }),
    ("clippy", clippy),
    ("features", features::check),
    ("no_std", no_std::check),
    ("rustdoc", rustdoc),
    ("package", package::check),
    ("deny", deny::check),
];

/// Runs all steps, also after one has failed, and names those that did.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut steps = STEPS.to_vec();
    if arguments.deep {
        steps.push(("mutants", || {
            crate::mutants::run(&crate::mutants::Arguments { only: None })
        }));
        steps.push(("clusters", crate::cluster::deep));
        steps.push(("simulator, 10,000 seeds", || {
            crate::sim::run(&crate::sim::Arguments::seeds(10_000))
        }));
        steps.push(("clients, 100 seeds of 7 days", || {
            crate::sim::run(&crate::sim::Arguments::clients(100))
        }));
        steps.push(("fuzz, 10 minutes each", || {
            crate::fuzz::search(Duration::from_secs(600))
        }));
    } else {
        steps.push(("fuzz targets", crate::fuzz::check));
    }
    if let Some(only) = &arguments.only {
        steps.retain(|(name, _)| name == only);
        ensure!(!steps.is_empty(), "no step is named {only:?}");
    }
    let mut failed = Vec::new();
    let mut table = String::new();
    for (name, step) in steps {
        println!("== ci: {name}");
        let stopwatch = Stopwatch::start();
        let done = step();
        if let Err(error) = &done {
            println!("error: {name}: {error:#}");
            failed.push(name);
        }
        let outcome = if done.is_ok() { "ok" } else { "FAILED" };
        table += &format!("{:>6}  {name}: {outcome}\n", minutes(stopwatch.elapsed()));
    }
    println!("== ci: minutes\n{table}");
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

fn fmt() -> Result<()> {
    execute(cargo().args(["fmt", "--all", "--check"]))
}

fn clippy() -> Result<()> {
    let everything = [
        "clippy",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--all-features",
    ];
    execute(cargo().args(everything).args(["--", "-D", "warnings"]))
}

fn rustdoc() -> Result<()> {
    let everything = [
        "doc",
        "--quiet",
        "--workspace",
        "--all-features",
        "--no-deps",
        "--document-private-items",
    ];
    execute(cargo().args(everything).env("RUSTDOCFLAGS", "-D warnings"))
}

/// The cargo that runs this program, in the root of the workspace.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(crate::root());
    command
}

/// Runs a command to its end; its exit code decides.
pub(crate) fn execute(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    if !status.success() {
        bail!("{status}: {command:?}");
    }
    Ok(())
}
