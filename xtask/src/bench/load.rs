//! The load generator: a closed loop on keep-alive connections, all on one thread so that it takes one core at most.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use tokio::task::JoinSet;

use super::workload::{Fleet, Operation};
use crate::connection::Connection;
use crate::stopwatch::Stopwatch;

/// A delta without an instance is shorter, one with an instance longer.
const EMPTY_DELTA_BYTES_MAX: usize = 300;

/// Room for a good part of a full fetch, so that reading it takes few calls.
const BUFFER: usize = 256 * 1024;

/// A generation has room for so many registrations of one instance, each newer than the last.
const PASSES: u64 = 1_000_000;

/// One operation, asked over and over.
#[derive(Clone)]
pub(super) struct Load {
    pub(super) address: SocketAddr,
    pub(super) operation: Operation,
    pub(super) fleet: Fleet,
    pub(super) connections: usize,
    /// Registrations of a greater generation are newer.
    pub(super) generation: u64,
}

/// What came back.
#[derive(Debug, Default)]
pub(super) struct Answers {
    pub(super) count: u64,
    /// Answers that were no 2xx.
    pub(super) refused: u64,
    pub(super) body_bytes: u64,
    pub(super) seconds: f64,
    /// In microseconds, sorted.
    latencies: Vec<u32>,
}

impl Answers {
    /// The latency in microseconds that this share of the answers did not exceed.
    pub(super) fn quantile(&self, share: f64) -> u32 {
        let last = self.latencies.len().saturating_sub(1);
        self.latencies
            .get((last as f64 * share) as usize)
            .copied()
            .unwrap_or_default()
    }
}

impl Load {
    pub(super) async fn run(&self, duration: Duration) -> Result<Answers> {
        let mut connections = JoinSet::new();
        let stopwatch = Stopwatch::start();
        for first in 0..self.connections {
            let load = self.clone();
            connections.spawn(async move { load.connection(first, duration).await });
        }
        let mut all = Answers::default();
        while let Some(done) = connections.join_next().await {
            let answers = done??;
            all.count += answers.count;
            all.refused += answers.refused;
            all.body_bytes += answers.body_bytes;
            all.latencies.extend(answers.latencies);
        }
        all.seconds = stopwatch.elapsed().as_secs_f64();
        all.latencies.sort_unstable();
        Ok(all)
    }

    async fn connection(&self, first: usize, duration: Duration) -> Result<Answers> {
        let mut connection = Connection::open(self.address, BUFFER).await?;
        let mut answers = Answers::default();
        let mut request = Vec::new();
        let stopwatch = Stopwatch::start();
        let mut sent = Duration::ZERO;
        let mut number = first;
        while sent < duration {
            request.clear();
            // Every pass over the fleet is a generation of its own.
            let generation = self.generation * PASSES + (number / self.fleet.instances) as u64;
            self.operation.write(
                &self.fleet,
                number % self.fleet.instances,
                generation,
                &mut request,
            );
            let answer = connection.exchange(&request, None).await?;
            let now = stopwatch.elapsed();
            answers.count += 1;
            answers.refused += u64::from(!(200..300).contains(&answer.status));
            answers.body_bytes += answer.body_bytes;
            answers.latencies.push((now - sent).as_micros() as u32);
            sent = now;
            number += self.connections;
        }
        Ok(answers)
    }
}

pub(super) async fn register_all(address: SocketAddr, fleet: &Fleet) -> Result<()> {
    register_some(address, fleet, fleet.instances, 0).await
}

/// Registers the first `count` instances.
pub(super) async fn register_some(
    address: SocketAddr,
    fleet: &Fleet,
    count: usize,
    generation: u64,
) -> Result<()> {
    let mut connection = Connection::open(address, BUFFER).await?;
    let mut request = Vec::new();
    for instance in 0..count {
        request.clear();
        Operation::Register.write(fleet, instance, generation * PASSES, &mut request);
        let answer = connection.exchange(&request, None).await?;
        ensure!(
            (200..300).contains(&answer.status),
            "registration: {}",
            answer.status
        );
    }
    Ok(())
}

/// Registers a changed instance every 10 ms, until it is aborted.
pub(super) async fn keep_registering(address: SocketAddr, fleet: Fleet, generation: u64) -> Result<()> {
    let mut connection = Connection::open(address, BUFFER).await?;
    let mut ticks = tokio::time::interval(Duration::from_millis(10));
    let mut request = Vec::new();
    for number in 0.. {
        ticks.tick().await;
        request.clear();
        let instance = number * 7_919 % fleet.instances;
        Operation::Register.write(
            &fleet,
            instance,
            generation * PASSES + number as u64,
            &mut request,
        );
        let answer = connection.exchange(&request, None).await?;
        ensure!(
            (200..300).contains(&answer.status),
            "registration: {}",
            answer.status
        );
    }
    Ok(())
}

/// The body that an operation is answered with.
pub(super) async fn fetch(address: SocketAddr, operation: Operation, fleet: &Fleet) -> Result<Vec<u8>> {
    let mut request = Vec::new();
    operation.write(fleet, 0, 0, &mut request);
    let mut body = Vec::new();
    let answer = Connection::open(address, BUFFER)
        .await?
        .exchange(&request, Some(&mut body))
        .await?;
    ensure!(answer.status == 200, "{operation:?}: {}", answer.status);
    Ok(body)
}

/// Waits until what changed before has left the delta.
pub(super) async fn wait_for_empty_delta(address: SocketAddr, fleet: &Fleet) -> Result<()> {
    let stopwatch = Stopwatch::start();
    let mut length = usize::MAX;
    while stopwatch.elapsed() < Duration::from_secs(60) {
        length = fetch(address, Operation::DeltaGzip, fleet).await?.len();
        if length < EMPTY_DELTA_BYTES_MAX {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    bail!("the delta stays at {length} bytes")
}
