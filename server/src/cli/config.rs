//! `eureka config`: the effective configuration.

use std::io::Write as _;
use std::process::ExitCode;

use super::{Configuration, FAILURE, refuse};
use crate::config;

/// Prints the effective configuration and where each value came from.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    configuration: Configuration,
    /// Print the table of all keys with their defaults and documentation instead.
    #[arg(long)]
    markdown: bool,
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let text = if arguments.markdown {
        config::markdown()
    } else {
        match arguments.configuration.load() {
            Ok(config) => config.to_string(),
            Err(mistakes) => return refuse(&mistakes),
        }
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(FAILURE),
    }
}
