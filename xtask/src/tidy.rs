//! `cargo xtask tidy`: the rules of style that a program can check.

use anyhow::{Result, bail};

/// Check the rules of style that a program can check
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {}

/// Runs the task.
pub(crate) fn run(_arguments: &Arguments) -> Result<()> {
    bail!("`cargo xtask tidy` does not exist yet")
}
