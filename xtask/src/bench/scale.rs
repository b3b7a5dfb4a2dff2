//! `cargo xtask bench scale`: what the server costs as the registry grows to a million instances.

use anyhow::{Result, bail};

/// What the server costs as the registry grows.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {}

/// Nothing is measured yet.
pub(super) fn run(_arguments: &Arguments) -> Result<()> {
    bail!("the scale probe measures nothing yet")
}
