//! The command line.

mod config;
mod doctor;
mod serve;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, Parser, Subcommand};

use crate::config::{Config, Mistake, Sources};

/// The command line or the configuration is wrong (EX_USAGE of sysexits).
const USAGE: u8 = 64;
/// What was asked for could not be done.
const FAILURE: u8 = 1;

/// A Eureka-compatible service registry.
#[derive(Debug, Parser)]
#[command(name = "eureka", version, about, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs the server.
    Serve(Configuration),
    /// Prints the effective configuration and where each value came from.
    Config(config::Arguments),
    Doctor(doctor::Arguments),
}

/// Flags that configure the server; they win over the environment, and that over the file.
#[derive(Args, Debug)]
struct Configuration {
    /// The configuration file (TOML); without it `eureka.toml` in the working directory, if there.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where to listen: the key `server.listen`.
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Where gRPC listens: the key `grpc.listen`.
    #[arg(long, value_name = "ADDR")]
    grpc_listen: Option<String>,
    /// Base URL of another node, such as `http://eureka-2:8761/eureka`; adds to the key `peers.urls`.
    #[arg(long, value_name = "URL")]
    peer: Vec<String>,
    /// Any key, such as `registry.eviction-interval=5s`.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
}

impl Configuration {
    fn load(&self) -> Result<Config, Vec<Mistake>> {
        Config::load(&self.sources())
    }

    fn sources(&self) -> Sources {
        let one = |flag, key: &str, value: &String| (flag, key.to_owned(), value.clone());
        let mut flags = Vec::new();
        flags.extend(self.listen.iter().map(|v| one("--listen", "server.listen", v)));
        flags.extend(
            self.grpc_listen
                .iter()
                .map(|v| one("--grpc-listen", "grpc.listen", v)),
        );
        flags.extend(self.set.iter().map(|(key, value)| one("--set", key, value)));
        // The last, so that they add to whatever else gives the key.
        flags.extend(self.peer.iter().map(|v| one(Sources::ADDING, "peers.urls", v)));
        Sources::of_process(self.config.clone(), flags)
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| "expected KEY=VALUE".to_owned())?;
    Ok((key.trim().to_owned(), value.to_owned()))
}

/// Runs the program and says how it ended: 0 well, 1 it could not, 64 it was asked wrongly.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Nobody is left to tell when the terminal is gone.
            let _ = error.print();
            return if error.use_stderr() {
                ExitCode::from(USAGE)
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    match arguments.command {
        None => help(),
        Some(Command::Config(arguments)) => config::run(&arguments),
        Some(Command::Doctor(arguments)) => doctor::run(arguments),
        Some(Command::Serve(configuration)) => {
            let sources = configuration.sources();
            match Config::load(&sources) {
                Ok(config) => serve::run(&config, sources),
                Err(mistakes) => refuse(&mistakes),
            }
        }
    }
}

fn help() -> ExitCode {
    match Arguments::command().print_help() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(FAILURE),
    }
}

fn refuse(mistakes: &[Mistake]) -> ExitCode {
    eprintln!(
        "eureka: the configuration has {} mistake{}:",
        mistakes.len(),
        if mistakes.len() == 1 { "" } else { "s" }
    );
    for mistake in mistakes {
        eprintln!("  {mistake}");
    }
    ExitCode::from(USAGE)
}
