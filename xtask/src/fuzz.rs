//! `cargo xtask fuzz`: the fuzz targets of the decoders.

use anyhow::{Result, bail};

/// Run the fuzz targets
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {}

/// Runs the task.
pub(crate) fn run(_arguments: &Arguments) -> Result<()> {
    bail!("`cargo xtask fuzz` does not exist yet")
}
