//! `cargo xtask bench`: the speed figures of docs/benchmarks.md.
//!
//! The server and a bare hyper server that answers 200 (the limit: what the HTTP library alone costs) run side by side
//! in one run on one machine, and take turns slice by slice, so that what else happens on the machine meets both.
//! The load generator shares the cores with them. So the primary figure is the CPU time of the server's process per
//! request, from `/proc`; requests per second are a lower bound.

mod client;
mod core;
mod limit;
mod load;
mod open_loop;
mod report;
mod scale;
mod subject;
mod watch;
mod workload;

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use self::load::Load;
use self::report::{Report, Row};
use self::subject::Subject;
use self::workload::{Fleet, Operation};
use crate::ci::{cargo, execute};

const OPERATIONS: [Operation; 6] = [
    Operation::FullGzip,
    Operation::FullGzipBusy,
    Operation::FullIdentity,
    Operation::DeltaGzip,
    Operation::Renew,
    Operation::Register,
];
/// So many instances have changed lately when a delta is fetched.
const CHANGED: usize = 100;

/// Measure the server beside others, or one part of it by itself: watchers, the client, the registry alone.
#[derive(clap::Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    part: Option<Part>,
    #[command(flatten)]
    table: Table,
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

/// The comparison.
#[derive(clap::Args, Debug)]
struct Table {
    /// How often each operation is measured on each server.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Length of one measurement.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Connections, each with one request at a time.
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// Instances registered.
    #[arg(long, default_value_t = 10_000)]
    instances: usize,
    /// Applications they belong to.
    #[arg(long, default_value_t = 100)]
    applications: usize,
    /// Put the figures into docs/benchmarks.md.
    #[arg(long)]
    write: bool,
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
        None => (
            "server",
            measure(&arguments.table)?.to_string(),
            arguments.table.write,
        ),
    };
    println!("{report}");
    if write {
        report::write(section, &report)?;
    }
    Ok(())
}

impl Table {
    fn slice(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

fn measure(arguments: &Table) -> Result<Report> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let fleet = Fleet {
        instances: arguments.instances,
        applications: arguments.applications,
    };
    let mut report = Report::new(&fleet, arguments.connections, arguments.slice());

    let program = subject::release_directory().join("eureka");
    let retention = [format!(
        "registry.delta-retention={}s",
        arguments.slice().as_secs() + 4
    )];
    for _ in 0..5 {
        let (server, start) = Subject::server(&program, &retention)?;
        report.starts.push(start);
        report.idle_bytes.push(server.resident_bytes()?);
    }
    let (server, _) = Subject::server(&program, &retention)?;
    println!("registering {} instances", fleet.instances);
    runtime.block_on(load::register_all(server.address, &fleet))?;
    let limit = Subject::limit(&record(&runtime, server.address, &fleet)?)?;
    report.loaded_bytes = server.resident_bytes()?;

    let subjects = [&server, &limit];
    for round in 0..arguments.rounds {
        for operation in OPERATIONS {
            for turn in 0..subjects.len() {
                let subject = subjects[(round + turn) % subjects.len()];
                let row = runtime.block_on(slice(subject, operation, &fleet, arguments, round))?;
                println!("{row}");
                report.rows.push(row);
            }
        }
    }
    report.peak_bytes = server.resident_peak_bytes()?;
    Ok(report)
}

/// The bodies that the limit serves are what the server itself answers.
fn record(runtime: &tokio::runtime::Runtime, address: SocketAddr, fleet: &Fleet) -> Result<Vec<PathBuf>> {
    let directory = crate::root().join("target/bench");
    fs::create_dir_all(&directory)?;
    let mut files = Vec::new();
    for operation in limit::FILES {
        if operation == Operation::DeltaGzip {
            runtime.block_on(load::wait_for_empty_delta(address, fleet))?;
            runtime.block_on(load::register_some(address, fleet, CHANGED, 1))?;
        }
        let body = runtime.block_on(load::fetch(address, operation, fleet))?;
        ensure!(!body.is_empty(), "{operation:?}: an empty answer");
        let file = directory.join(format!("{operation:?}"));
        fs::write(&file, body).with_context(|| file.display().to_string())?;
        files.push(file);
    }
    Ok(files)
}

async fn slice(
    subject: &Subject,
    operation: Operation,
    fleet: &Fleet,
    arguments: &Table,
    round: usize,
) -> Result<Row> {
    // Whatever is registered in this slice is newer than anything registered before.
    let generation = 10 + (round * OPERATIONS.len() + operation as usize) as u64;
    if operation == Operation::DeltaGzip && !subject.is_limit() {
        load::wait_for_empty_delta(subject.address, fleet).await?;
        load::register_some(subject.address, fleet, CHANGED, generation).await?;
    }
    let load = Load {
        address: subject.address,
        operation,
        fleet: fleet.clone(),
        connections: arguments.connections,
        generation,
    };
    let busy = operation == Operation::FullGzipBusy;
    let writer = busy.then(|| {
        tokio::spawn(load::keep_registering(
            subject.address,
            fleet.clone(),
            load.generation,
        ))
    });
    load.run(Duration::from_millis(500)).await?;
    let before = subject::Usage::of(subject)?;
    let answers = load.run(arguments.slice()).await?;
    let usage = subject::Usage::of(subject)?.since(&before);
    if let Some(writer) = writer {
        ensure!(
            !writer.is_finished(),
            "{}: the registrations meanwhile ended",
            subject.name
        );
        writer.abort();
    }
    ensure!(
        answers.refused == 0,
        "{}: {} of {:?} refused",
        subject.name,
        answers.refused,
        operation
    );
    Ok(Row {
        server: subject.name,
        operation,
        answers,
        usage,
    })
}
