//! `cargo xtask bench`: the speed figures of docs/benchmarks.md.

mod client;
mod core;
mod delays;
mod limit;
mod load;
mod open_loop;
pub(crate) mod report;
mod scale;
mod subject;
mod table;
mod watch;
mod workload;
mod wrk;

use std::net::SocketAddr;
use std::process::Command;

use anyhow::Result;

use crate::ci::{cargo, execute};

/// Measure the server beside others, or one part of it by itself: watchers, the client, the registry alone.
#[derive(clap::Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    part: Option<Part>,
    #[command(flatten)]
    table: table::Arguments,
}

/// What is measured by itself.
#[derive(clap::Subcommand, Debug)]
enum Part {
    /// The longest call of the registry with many leases.
    Core {
        /// Leases held by the registry.
        #[arg(long, default_value_t = 1_000_000)]
        leases: usize,
        /// Put the figures into docs/benchmarks.md.
        #[arg(long)]
        write: bool,
    },
    /// Watchers that are told of changes, beside clients that poll.
    Watch {
        #[arg(long, default_value_t = 1_000)]
        watchers: usize,
        /// Changes a second.
        #[arg(long, default_value_t = 100)]
        rate: u32,
        /// For so long.
        #[arg(long, default_value_t = 30)]
        seconds: u64,
        /// Put the figures into docs/benchmarks.md.
        #[arg(long)]
        write: bool,
    },
    /// How soon consumers are told, and what many clients in one process cost.
    Client {
        /// Clients that only register.
        #[arg(long, default_value_t = 10_000)]
        clients: usize,
        /// Put the figures into docs/benchmarks.md.
        #[arg(long)]
        write: bool,
    },
    Scale(scale::Arguments),
    /// Be the limit: serve the files on this address.
    #[command(hide = true)]
    Limit {
        address: SocketAddr,
        files: Vec<String>,
    },
    /// Be the clients of `client`: register at this server.
    #[command(hide = true)]
    Fleet {
        url: String,
        clients: usize,
    },
}

/// Runs the task; figures are of release builds only, so a debug build runs the release build of itself.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if cfg!(debug_assertions) {
        // In one go, so that both are built with the same features of what they share.
        execute(cargo().args([
            "build",
            "--quiet",
            "--release",
            "--package",
            "eureka-server",
            "--package",
            "xtask",
        ]))?;
        let own = subject::release_directory().join("xtask");
        return execute(Command::new(own).args(std::env::args_os().skip(1)));
    }
    let (section, report, write) = match &arguments.part {
        Some(Part::Limit { address, files }) => return limit::serve(*address, files),
        Some(Part::Fleet { url, clients }) => return client::be(url, *clients),
        Some(Part::Scale(scale)) => return scale::run(scale),
        Some(Part::Core { leases, write }) => ("core", core::measure(*leases)?, *write),
        Some(Part::Client { clients, write }) => ("client", client::measure(*clients)?, *write),
        &Some(Part::Watch {
            watchers,
            rate,
            seconds,
            write,
        }) => {
            let size = watch::Size {
                watchers,
                rate,
                seconds,
            };
            ("watch", watch::measure(size)?, write)
        }
        None => ("server", table::measure(&arguments.table)?, arguments.table.write),
    };
    println!("{report}");
    if write {
        report::write(section, &report)?;
    }
    Ok(())
}
