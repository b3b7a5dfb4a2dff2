//! `cargo xtask bench`: the speed figures of docs/benchmarks.md.

use anyhow::{Result, bail};

/// Measure the server beside a bare hyper server
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {}

/// Runs the task.
pub(crate) fn run(_arguments: &Arguments) -> Result<()> {
    bail!("`cargo xtask bench` does not exist yet")
}
