//! `cargo xtask ci`: every check of the project but the tests.

use anyhow::{Result, bail};

/// Run every check of the project but the tests
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {}

/// Runs the task.
pub(crate) fn run(_arguments: &Arguments) -> Result<()> {
    bail!("`cargo xtask ci` does not exist yet")
}
