//! `cargo xtask readme`: the README of each crate is the text of its crate documentation.

use anyhow::{Result, bail};

/// Write each crate's README from its crate documentation
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {}

/// Runs the task.
pub(crate) fn run(_arguments: &Arguments) -> Result<()> {
    bail!("`cargo xtask readme` does not exist yet")
}
