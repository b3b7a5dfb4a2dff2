//! The project's own tasks: `cargo xtask help` lists them.

// A command-line tool talks on stdout.
#![allow(clippy::print_stdout)]
// Tasks start processes and measure them: they ask for the time and wait. Nothing of this is linked into the server.
#![allow(clippy::disallowed_methods)]

mod bench;
mod ci;
mod cluster;
mod codegen;
mod conformance;
mod connection;
mod fuzz;
mod instructions;
mod mutants;
mod readme;
mod sim;
mod stopwatch;
mod tidy;
mod watchers;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// As in the server, so that `bench` measures what it would.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Tasks of the eureka workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    Bench(bench::Arguments),
    Ci(ci::Arguments),
    Cluster(cluster::Arguments),
    Codegen(codegen::Arguments),
    Conformance(conformance::Arguments),
    Fuzz(fuzz::Arguments),
    Instructions(instructions::Arguments),
    Mutants(mutants::Arguments),
    Readme(readme::Arguments),
    Sim(sim::Arguments),
    Tidy(tidy::Arguments),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().task {
        Task::Bench(arguments) => bench::run(&arguments),
        Task::Ci(arguments) => ci::run(&arguments),
        Task::Cluster(arguments) => cluster::run(&arguments),
        Task::Codegen(arguments) => codegen::run(&arguments),
        Task::Conformance(arguments) => conformance::run(&arguments),
        Task::Fuzz(arguments) => fuzz::run(&arguments),
        Task::Instructions(arguments) => instructions::run(&arguments),
        Task::Mutants(arguments) => mutants::run(&arguments),
        Task::Readme(arguments) => readme::run(&arguments),
        Task::Sim(arguments) => sim::run(&arguments),
        Task::Tidy(arguments) => tidy::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Where this program was built, and other builds stand beside it.
fn target() -> PathBuf {
    let own = std::env::current_exe().ok();
    let target = own.as_deref().and_then(Path::parent).and_then(Path::parent);
    target.unwrap_or_else(|| Path::new("target")).to_owned()
}

/// The root of the work tree.
fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().expect("xtask lies in the workspace").to_owned()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_arguments_of_all_tasks_fit_together() {
        Arguments::command().debug_assert();
    }
}
