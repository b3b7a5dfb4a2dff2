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
mod report;
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

/// Measure the server beside a bare hyper server, watchers beside clients that poll, the client, or the registry alone.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// The longest call of the registry with many leases, instead of the server.
    #[arg(long)]
    core: bool,
    /// Watchers that are told of changes, beside clients that poll, instead of single requests.
    #[arg(long, conflicts_with = "core")]
    watch: bool,
    /// The client: how soon consumers are told, and what many clients in one process cost.
    #[arg(long, conflicts_with_all = ["core", "watch"])]
    client: bool,
    /// Clients that only register, with `--client`.
    #[arg(long, default_value_t = 10_000)]
    clients: usize,
    /// Watchers with `--watch`.
    #[arg(long, default_value_t = 1_000)]
    watchers: usize,
    /// Changes a second with `--watch`.
    #[arg(long, default_value_t = 100)]
    rate: u32,
    /// Leases held by the registry with `--core`.
    #[arg(long, default_value_t = 1_000_000)]
    leases: usize,
    /// How often each operation is measured on each server.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Length of one measurement; 3 unless it is given, 30 with `--watch`.
    #[arg(long)]
    seconds: Option<u64>,
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
    /// Be the limit: serve the files on this address.
    #[arg(long, hide = true, num_args = 2.., value_names = ["ADDRESS", "FILE"])]
    limit: Vec<String>,
    /// Be the clients of `--client`: register at this server.
    #[arg(long, hide = true, value_name = "URL")]
    fleet: Option<String>,
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
    if let [address, files @ ..] = &*arguments.limit {
        return limit::serve(address.parse()?, files);
    }
    if let Some(url) = &arguments.fleet {
        return client::be(url, arguments.clients);
    }
    let (section, report) = if arguments.core {
        ("core", core::measure(arguments.leases)?)
    } else if arguments.watch {
        let size = watch::Size {
            watchers: arguments.watchers,
            rate: arguments.rate,
            seconds: arguments.seconds.unwrap_or(30),
        };
        ("watch", watch::measure(size)?)
    } else if arguments.client {
        ("client", client::measure(arguments.clients)?)
    } else {
        ("server", measure(arguments)?.to_string())
    };
    println!("{report}");
    if arguments.write {
        report::write(section, &report)?;
    }
    Ok(())
}

impl Arguments {
    fn slice(&self) -> Duration {
        Duration::from_secs(self.seconds.unwrap_or(3))
    }
}

fn measure(arguments: &Arguments) -> Result<Report> {
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
    arguments: &Arguments,
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
