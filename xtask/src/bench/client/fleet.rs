//! Many clients that only register, all in one process and over one pool. The process is a child of the measurement, so that
//! its memory and its CPU time are those of the clients and of nothing else.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use eureka_client::{Client, Pool, Server};
use eureka_registry_core::{Instance, Port};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::bench::subject::{self, Memory, Subject, process_seconds};
use crate::stopwatch::Stopwatch;

/// What clients ask for unless something else is said: a renewal each 30 s.
pub(super) const INTERVAL: Duration = Duration::from_secs(30);
/// Whatever is waited for is there long before this.
const LATEST: Duration = Duration::from_secs(120);

/// Both processes, and how long each step took.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) clients: usize,
    pub(super) alone: Alone,
    pub(super) registered: Registered,
    pub(super) renewed: Renewed,
    pub(super) left: Left,
    /// CPU seconds of the server until all were registered, over the interval, and until all had left.
    pub(super) server_seconds: [f64; 3],
    pub(super) server_bytes: u64,
}

/// Of the clients' process before there is a client.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Alone {
    pub(super) bytes: u64,
}

/// Of the same when all are registered.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Registered {
    pub(super) seconds: f64,
    pub(super) cpu: f64,
    pub(super) bytes: u64,
    pub(super) sockets: usize,
}

/// Of the same a renewal interval later.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Renewed {
    pub(super) cpu: f64,
    pub(super) renewals: u64,
    pub(super) failures: u64,
    pub(super) bytes: u64,
    pub(super) sockets: usize,
}

/// Of the same when all have left.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Left {
    pub(super) seconds: f64,
    pub(super) cpu: f64,
    pub(super) confirmed: usize,
    pub(super) peak_bytes: u64,
}

/// Starts a server and the clients' process, and puts together what both tell.
pub(super) fn measure(clients: usize) -> Result<Measured> {
    let (server, _) = Subject::server(&subject::release_directory().join("eureka"), &[])?;
    let mut process = Command::new(std::env::current_exe()?)
        .args(["bench", "fleet", &format!("http://{}/eureka/", server.address)])
        .arg(clients.to_string())
        .stdout(Stdio::piped())
        .spawn()?;
    let lines = BufReader::new(process.stdout.take().context("its output is piped")?);
    let measured = follow(clients, &server, lines);
    if measured.is_err() {
        // It fails only if the process has ended already.
        let _ = process.kill();
    }
    let status = process.wait()?;
    let measured = measured?;
    ensure!(status.success(), "the clients' process: {status}");
    Ok(measured)
}

fn follow(clients: usize, server: &Subject, mut lines: BufReader<ChildStdout>) -> Result<Measured> {
    let alone = next(&mut lines)?;
    let begun = server.cpu_seconds()?;
    let registered = next(&mut lines)?;
    let at_registered = server.cpu_seconds()?;
    let renewed: Renewed = next(&mut lines)?;
    let at_renewed = server.cpu_seconds()?;
    let server_bytes = server.resident_bytes()?;
    let left: Left = next(&mut lines)?;
    let at_left = server.cpu_seconds()?;
    ensure!(
        renewed.failures == 0 && left.confirmed == clients,
        "{renewed:?}, {left:?}"
    );
    Ok(Measured {
        clients,
        alone,
        registered,
        renewed,
        left,
        server_seconds: [
            at_registered - begun,
            at_renewed - at_registered,
            at_left - at_renewed,
        ],
        server_bytes,
    })
}

fn next<T: DeserializeOwned>(lines: &mut BufReader<ChildStdout>) -> Result<T> {
    let mut line = String::new();
    lines.read_line(&mut line)?;
    serde_json::from_str(&line).with_context(|| format!("the clients' process said {line:?}"))
}

/// Is the clients' process.
pub(in crate::bench) fn be(url: &str, clients: usize) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    runtime.block_on(live(url, clients))
}

async fn live(url: &str, count: usize) -> Result<()> {
    tell(&Alone {
        bytes: Memory::of(std::process::id())?.resident,
    })?;
    let pool = Pool::default();
    let server = Arc::new(Server::parse(url)?);
    let stopwatch = Stopwatch::start();
    let mut clients = Vec::with_capacity(count);
    for number in 0..count {
        let client = Client::builder()
            .servers([Arc::clone(&server)])
            .pool(pool.clone())
            .register(instance(number))
            .start()?;
        clients.push(client);
    }
    let all = async {
        for client in &clients {
            client.registration().wait_registered().await;
        }
    };
    tokio::time::timeout(LATEST, all)
        .await
        .context("not all were registered")?;
    let at_registered = own_seconds()?;
    tell(&Registered {
        seconds: stopwatch.elapsed().as_secs_f64(),
        cpu: at_registered,
        bytes: Memory::of(std::process::id())?.resident,
        sockets: sockets()?,
    })?;

    tokio::time::sleep(INTERVAL).await;
    let stats = || clients.iter().map(|client| client.facts().stats);
    let at_renewed = own_seconds()?;
    tell(&Renewed {
        cpu: at_renewed - at_registered,
        renewals: stats().map(|stats| stats.renewals).sum(),
        failures: stats().map(|stats| stats.renewals_failed).sum(),
        bytes: Memory::of(std::process::id())?.resident,
        sockets: sockets()?,
    })?;

    let stopwatch = Stopwatch::start();
    let mut leaving = tokio::task::JoinSet::new();
    for client in clients {
        leaving.spawn(client.shutdown());
    }
    let left = tokio::time::timeout(LATEST, leaving.join_all()).await?;
    tell(&Left {
        seconds: stopwatch.elapsed().as_secs_f64(),
        cpu: own_seconds()? - at_renewed,
        confirmed: left.into_iter().filter(|confirmed| *confirmed).count(),
        peak_bytes: Memory::of(std::process::id())?.peak,
    })
}

/// As a service behind Spring reports itself, about.
fn instance(number: usize) -> Instance {
    let (application, host) = (number % 100, format!("host-{number}.example.internal"));
    let (high, middle, low) = (number >> 16 & 255, number >> 8 & 255, number & 255);
    let mut instance = Instance::new(
        &format!("app-{application}"),
        &format!("host-{number}:app-{application}:8080"),
        &host,
        &format!("10.{high}.{middle}.{low}"),
    );
    instance.port = Port {
        number: 8080,
        enabled: true,
    };
    instance.home_page_url = Some(format!("http://{host}:8080/").into());
    instance.status_page_url = Some(format!("http://{host}:8080/actuator/info").into());
    instance.health_check_url = Some(format!("http://{host}:8080/actuator/health").into());
    instance.vip_address = Some(format!("app-{application}").into());
    instance.metadata.insert("management.port", "8080");
    instance.metadata.insert("version", "1.4.0");
    instance
}

fn tell(line: &impl Serialize) -> Result<()> {
    let mut output = std::io::stdout().lock();
    serde_json::to_writer(&mut output, line)?;
    output.write_all(b"\n")?;
    Ok(output.flush()?)
}

fn own_seconds() -> Result<f64> {
    process_seconds(std::process::id())
}

/// Open sockets of this process.
fn sockets() -> Result<usize> {
    let mut count = 0;
    for entry in fs::read_dir("/proc/self/fd")? {
        // It may be closed meanwhile.
        let target = fs::read_link(entry?.path()).unwrap_or_default();
        count += usize::from(target.to_string_lossy().starts_with("socket:"));
    }
    Ok(count)
}
