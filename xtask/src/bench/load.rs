//! What wrk cannot do: a given number of requests, and registrations at a steady pace beside it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use super::workload::{Fleet, Operation};
use crate::connection::Connection;
use crate::stopwatch::Stopwatch;

/// Room for a good part of a full fetch, so that reading it takes few calls.
const BUFFER: usize = 256 * 1024;
/// Requests on one connection: Spring's server closes it behind so many.
const PER_CONNECTION: usize = 100;
/// Between two registrations of `Changes`.
const CHANGE_EVERY: Duration = Duration::from_millis(10);

/// What came back.
#[derive(Debug, Default)]
pub(super) struct Answers {
    pub(super) count: u64,
    pub(super) seconds: f64,
}

/// A runtime on this thread.
pub(super) fn runtime() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// Sends so many requests in their turn, on several connections at once, and expects every answer to be a 2xx.
pub(super) async fn exchange_all(
    address: SocketAddr,
    requests: Vec<Vec<u8>>,
    count: usize,
    connections: usize,
) -> Result<Answers> {
    let (requests, next) = (Arc::new(requests), Arc::new(AtomicUsize::new(0)));
    let mut tasks = JoinSet::new();
    let stopwatch = Stopwatch::start();
    for _ in 0..connections {
        let (requests, next) = (Arc::clone(&requests), Arc::clone(&next));
        tasks.spawn(async move {
            loop {
                let mut connection = Connection::open(address, BUFFER).await?;
                for _ in 0..PER_CONNECTION {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return Ok(());
                    }
                    let answer = connection
                        .exchange(&requests[number % requests.len()], None)
                        .await?;
                    ensure!((200..300).contains(&answer.status), "answered {}", answer.status);
                }
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(Answers {
        count: count as u64,
        seconds: stopwatch.elapsed().as_secs_f64(),
    })
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
    let mut requests = Vec::new();
    for instance in 0..count {
        let mut request = Vec::new();
        Operation::Register.write(fleet, instance, generation, &mut request);
        requests.push(request);
    }
    exchange_all(address, requests, count, 4).await?;
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

/// A hundred registrations of changed instances a second, until they are asked to end.
pub(super) struct Changes {
    end: Arc<AtomicBool>,
    thread: JoinHandle<Result<()>>,
}

impl Changes {
    /// Only the first `changing` instances of the fleet change, in turn.
    pub(super) fn begin(address: SocketAddr, fleet: Fleet, changing: usize, generation: u64) -> Self {
        let end = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let end = Arc::clone(&end);
            move || runtime()?.block_on(keep_registering(address, fleet, changing, generation, &end))
        });
        Self { end, thread }
    }

    /// An error if one of them was refused.
    pub(super) fn end(self) -> Result<()> {
        self.end.store(true, Ordering::Relaxed);
        self.thread
            .join()
            .map_err(|_| anyhow!("the registrations meanwhile failed"))?
    }
}

async fn keep_registering(
    address: SocketAddr,
    fleet: Fleet,
    changing: usize,
    generation: u64,
    end: &AtomicBool,
) -> Result<()> {
    let mut connection = Connection::open(address, BUFFER).await?;
    let mut ticks = tokio::time::interval(CHANGE_EVERY);
    let mut request = Vec::new();
    let few = Fleet {
        instances: changing,
        ..fleet
    };
    let changed = (0..).zip(few.shuffled().cycle());
    for (number, instance) in changed.take_while(|_| !end.load(Ordering::Relaxed)) {
        ticks.tick().await;
        if number > 0 && number % PER_CONNECTION as u64 == 0 {
            connection = Connection::open(address, BUFFER).await?;
        }
        request.clear();
        Operation::Register.write(&fleet, instance, generation + number, &mut request);
        let answer = connection.exchange(&request, None).await?;
        ensure!(
            (200..300).contains(&answer.status),
            "a registration meanwhile: {}",
            answer.status
        );
    }
    Ok(())
}
