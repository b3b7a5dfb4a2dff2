//! `cargo xtask conformance`: real clients against any Eureka-compatible server.

use anyhow::{Result, bail};

/// Run real Eureka clients against a server
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {}

/// Runs the task.
pub(crate) fn run(_arguments: &Arguments) -> Result<()> {
    bail!("`cargo xtask conformance` does not exist yet")
}
