//! A server filled with instances of one size.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::runtime::Runtime;

use super::super::subject::{Subject, release_directory};
use super::figures::Spent;
use super::fleet::{Crowd, Form, Size};
use crate::connection::{Answer, Connection};
use crate::stopwatch::Stopwatch;

/// What differs from the default settings: room for the lists of a million instances, and short intervals, so that a run
/// need not wait for minutes.
pub(super) const SETTINGS: [&str; 3] = [
    "limits.encoded=3GiB",
    "registry.delta-retention=2s",
    "registry.eviction-interval=10s",
];
/// Registrations in one batch while a server is filled.
const FILL: usize = 1_000;
const BUFFER: usize = 256 * 1024;

pub(super) struct Node<'a> {
    pub(super) runtime: &'a Runtime,
    pub(super) server: Subject,
    pub(super) crowd: Arc<Crowd>,
    pub(super) idle_bytes: u64,
    pub(super) fill: Spent,
}

impl<'a> Node<'a> {
    /// Starts a server and fills it.
    pub(super) fn filled(runtime: &'a Runtime, size: Size) -> Result<Self> {
        let server = start(&[])?;
        let mut node = Self {
            idle_bytes: server.resident_bytes()?,
            runtime,
            server,
            crowd: Arc::new(Crowd::new(size)),
            fill: Spent::default(),
        };
        node.fill = node.spent(|| node.fill_with_all())?.1;
        let held = node.instances()?;
        ensure!(held == size.instances, "{held} of {} instances", size.instances);
        Ok(node)
    }

    fn fill_with_all(&self) -> Result<()> {
        let half = self.crowd.size.instances / 2;
        self.runtime.block_on(async {
            let halves = [0..half, half..self.crowd.size.instances];
            let [first, second] = halves.map(|numbers| self.fill_with(numbers));
            tokio::try_join!(first, second)?;
            Ok(())
        })
    }

    async fn fill_with(&self, numbers: std::ops::Range<usize>) -> Result<()> {
        let mut connection = Connection::open(self.server.address, BUFFER).await?;
        let mut request = Vec::new();
        for first in numbers.clone().step_by(FILL) {
            request.clear();
            let last = numbers.end.min(first + FILL);
            self.crowd.write_fill(first..last, &mut request);
            let answer = connection.exchange(&request, None).await?;
            ensure!(answer.status == 200, "a batch: {}", answer.status);
        }
        Ok(())
    }

    /// Runs something, and says how long it took and what CPU time of the server.
    pub(super) fn spent<T>(&self, run: impl FnOnce() -> Result<T>) -> Result<(T, Spent)> {
        let (cpu, stopwatch) = (self.server.cpu_seconds()?, Stopwatch::start());
        let result = run()?;
        let spent = Spent {
            seconds: stopwatch.elapsed().as_secs_f64(),
            cpu_seconds: self.server.cpu_seconds()? - cpu,
        };
        Ok((result, spent))
    }

    pub(super) async fn connect(&self) -> Result<Connection> {
        Connection::open(self.server.address, BUFFER).await
    }

    /// One request on a connection of its own; its answer must be 200.
    pub(super) fn ask(&self, request: &[u8], body: Option<&mut Vec<u8>>) -> Result<Answer> {
        self.runtime.block_on(async {
            let answer = self.connect().await?.exchange(request, body).await?;
            ensure!(answer.status == 200, "{}", answer.status);
            Ok(answer)
        })
    }

    /// How many instances the server says it has.
    pub(super) fn instances(&self) -> Result<usize> {
        self.runtime.block_on(instances(&mut self.connect_now()?))
    }

    fn connect_now(&self) -> Result<Connection> {
        self.runtime.block_on(self.connect())
    }
}

/// Starts a server with more settings.
pub(super) fn start(more: &[String]) -> Result<Subject> {
    let mut settings: Vec<String> = SETTINGS.map(String::from).to_vec();
    settings.extend_from_slice(more);
    let (server, _) = Subject::server(&release_directory().join("eureka"), &settings)?;
    Ok(server)
}

/// How many instances a server says it has.
pub(super) async fn instances(connection: &mut Connection) -> Result<usize> {
    let mut body = Vec::new();
    let request = Form::PLAIN.request("/api/v1/node");
    let answer = connection.exchange(&request, Some(&mut body)).await?;
    ensure!(answer.status == 200, "/api/v1/node: {}", answer.status);
    let node: serde_json::Value = serde_json::from_slice(&body)?;
    let instances = node["instances"].as_u64().context("no instances")?;
    Ok(instances as usize)
}

/// Waits a moment between two looks at something that takes seconds.
pub(super) async fn rest() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}
