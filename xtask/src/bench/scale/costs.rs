//! What single requests cost: closed loops, full fetches by one reader, and small reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::task::JoinSet;

use super::super::subject::Subject;
use super::figures::{Cost, Fetch, Latency, Lookup, Spent};
use super::fleet::{Crowd, Form};
use super::node::{self, Node};
use crate::connection::Connection;
use crate::stopwatch::Stopwatch;

/// Connections of closed loops.
const CONNECTIONS: usize = 16;
const BUFFER: usize = 64 * 1024;
/// Time between two changes that somebody reads.
const CHANGE_INTERVAL: Duration = Duration::from_millis(10);
/// Full fetches of one kind go on for so long, and there are at least `FETCHES` of them.
const FETCH_TIME: Duration = Duration::from_secs(2);
const FETCHES: usize = 3;
/// Small reads of one kind.
const LOOKUPS: usize = 300;
/// A compressed delta without an instance is shorter, one with an instance longer.
const EMPTY_DELTA_BYTES_MAX: u64 = 300;
const SETTLE_MAX: Duration = Duration::from_secs(60);
/// Before a closed loop is measured.
const WARM_UP: Duration = Duration::from_millis(500);

type Write = Arc<dyn Fn(&Crowd, usize, &mut Vec<u8>) + Send + Sync>;

/// Renewals, of the limit too; changed registrations; peers' batches; and changes that somebody reads at once.
pub(super) fn loops(node: &Node<'_>, limit: &Subject, duration: Duration) -> Result<Vec<Cost>> {
    let renewal: Write = Arc::new(|crowd, turn, request| crowd.write_renewal(turn, request));
    let change: Write = Arc::new(|crowd, _, request| crowd.write_change(request));
    let batch: Write = Arc::new(|crowd, turn, request| crowd.write_batch(turn, request));
    // Before many others change: the delta has what changed lately.
    let changes_read = changes_read(node, duration)?;
    Ok(vec![
        closed(node, limit, RENEW, CONNECTIONS, duration, &renewal)?,
        closed(node, &node.server, RENEW, CONNECTIONS, duration, &renewal)?,
        closed(
            node,
            &node.server,
            "peer's batch of 250 renewals",
            1,
            duration,
            &batch,
        )?,
        closed(
            node,
            &node.server,
            "register, changed",
            CONNECTIONS,
            duration,
            &change,
        )?,
        changes_read,
    ])
}

fn closed(
    node: &Node<'_>,
    subject: &Subject,
    what: &'static str,
    connections: usize,
    duration: Duration,
    write: &Write,
) -> Result<Cost> {
    let turns = Arc::new(AtomicUsize::new(0));
    let once = |duration| {
        let (cpu, stopwatch) = (subject.cpu_seconds()?, Stopwatch::start());
        let latencies = node.runtime.block_on(async {
            let mut all = JoinSet::new();
            for _ in 0..connections {
                let (crowd, write, turns) = (Arc::clone(&node.crowd), Arc::clone(write), Arc::clone(&turns));
                let connection = Connection::open(subject.address, BUFFER).await?;
                all.spawn(keep_asking(connection, crowd, write, turns, duration));
            }
            let mut latencies = Vec::new();
            while let Some(done) = all.join_next().await {
                latencies.extend(done??);
            }
            anyhow::Ok(latencies)
        })?;
        let seconds = stopwatch.elapsed().as_secs_f64();
        Cost::of(what, subject, cpu, seconds, latencies)
    };
    once(WARM_UP)?;
    once(duration)
}

async fn keep_asking(
    mut connection: Connection,
    crowd: Arc<Crowd>,
    write: Write,
    turns: Arc<AtomicUsize>,
    duration: Duration,
) -> Result<Vec<u32>> {
    let (stopwatch, mut request, mut latencies) = (Stopwatch::start(), Vec::new(), Vec::new());
    let mut sent = Duration::ZERO;
    while sent < duration {
        request.clear();
        write(&crowd, turns.fetch_add(1, Ordering::Relaxed), &mut request);
        let asked = stopwatch.elapsed();
        let answer = connection.exchange(&request, None).await?;
        ensure!((200..300).contains(&answer.status), "{}", answer.status);
        sent = stopwatch.elapsed();
        latencies.push((sent - asked).as_micros() as u32);
    }
    Ok(latencies)
}

/// Changes at a steady pace, with a reader of the delta behind each; the CPU time is that of both.
fn changes_read(node: &Node<'_>, duration: Duration) -> Result<Cost> {
    let delta = Form::GZIP.request("/eureka/apps/delta");
    node.runtime.block_on(wait_for_empty_delta(node, &delta))?;
    let (cpu, stopwatch) = (node.server.cpu_seconds()?, Stopwatch::start());
    let latencies = node.runtime.block_on(async {
        let (mut connection, mut latencies) = (node.connect().await?, Vec::new());
        let mut ticks = tokio::time::interval(CHANGE_INTERVAL);
        while stopwatch.elapsed() < duration {
            ticks.tick().await;
            let asked = stopwatch.elapsed();
            change(node, &mut connection).await?;
            let answer = connection.exchange(&delta, None).await?;
            ensure!(answer.status == 200, "delta: {}", answer.status);
            latencies.push((stopwatch.elapsed() - asked).as_micros() as u32);
        }
        anyhow::Ok(latencies)
    })?;
    let seconds = stopwatch.elapsed().as_secs_f64();
    Cost::of(CHANGE_READ, &node.server, cpu, seconds, latencies)
}

/// Waits until what changed before has left the delta.
async fn wait_for_empty_delta(node: &Node<'_>, delta: &[u8]) -> Result<()> {
    let (mut connection, stopwatch) = (node.connect().await?, Stopwatch::start());
    while connection.exchange(delta, None).await?.body_bytes > EMPTY_DELTA_BYTES_MAX {
        ensure!(stopwatch.elapsed() < SETTLE_MAX, "the delta does not get empty");
        node::rest().await;
    }
    Ok(())
}

/// What two rows are called.
pub(super) const CHANGE_READ: &str = "change, then delta fetch";
pub(super) const RENEW: &str = "renew";

impl Cost {
    fn of(
        what: &'static str,
        subject: &Subject,
        cpu_before: f64,
        seconds: f64,
        latencies: Vec<u32>,
    ) -> Result<Self> {
        let count = latencies.len() as f64;
        Ok(Self {
            what,
            server: subject.name,
            count: latencies.len() as u64,
            per_second: count / seconds,
            cpu_us: (subject.cpu_seconds()? - cpu_before) * 1e6 / count.max(1.0),
            latency: Latency::of(latencies),
        })
    }
}

/// Registers the next instance with new content.
pub(super) async fn change(node: &Node<'_>, connection: &mut Connection) -> Result<()> {
    let mut request = Vec::new();
    node.crowd.write_change(&mut request);
    let answer = connection.exchange(&request, None).await?;
    ensure!((200..300).contains(&answer.status), "a change: {}", answer.status);
    Ok(())
}

/// The whole list when nothing has changed since it was fetched, and when one instance has.
pub(super) fn fetches(node: &Node<'_>, form: Form) -> Result<[Fetch; 2]> {
    Ok([
        several(node, form, "again", false)?,
        several(node, form, "after one change", true)?,
    ])
}

fn several(node: &Node<'_>, form: Form, when: &'static str, changing: bool) -> Result<Fetch> {
    let request = form.request("/eureka/apps");
    let (mut count, mut bytes) = (0, 0);
    let ((), spent) = node.spent(|| {
        let stopwatch = Stopwatch::start();
        node.runtime.block_on(async {
            let mut connection = node.connect().await?;
            while count < FETCHES || stopwatch.elapsed() < FETCH_TIME {
                if changing {
                    change(node, &mut connection).await?;
                }
                let answer = connection.exchange(&request, None).await?;
                ensure!(answer.status == 200, "{}: {}", form.title, answer.status);
                bytes = answer.body_bytes;
                count += 1;
            }
            Ok(())
        })
    })?;
    Ok(Fetch {
        form: form.title,
        when,
        count,
        bytes,
        spent: Spent {
            seconds: spent.seconds / count as f64,
            cpu_seconds: spent.cpu_seconds / count as f64,
        },
    })
}

/// Reads that must be quick however many instances there are; before each of them the registry has changed.
pub(super) fn lookups(node: &Node<'_>) -> Result<Vec<Lookup>> {
    let number = node.crowd.steady[node.crowd.steady.len() / 2];
    let application = number % node.crowd.size.applications;
    let paths = [
        ("/eureka/vips/X, known", format!("/eureka/vips/app-{application}")),
        ("/eureka/vips/X, unknown", "/eureka/vips/nobody".to_owned()),
        (
            "/eureka/instances/{id}",
            format!("/eureka/instances/host-{number}:app-{application}:8080"),
        ),
        ("/eureka/apps/X", format!("/eureka/apps/APP-{application}")),
        ("/api/v1/preservation", "/api/v1/preservation".to_owned()),
        ("/metrics", "/metrics".to_owned()),
    ];
    paths
        .into_iter()
        .map(|(what, path)| lookup(node, what, &path))
        .collect()
}

fn lookup(node: &Node<'_>, what: &'static str, path: &str) -> Result<Lookup> {
    let request = Form::PLAIN.request(path);
    node.runtime.block_on(async {
        let (mut connection, mut latencies, mut bytes) = (node.connect().await?, Vec::new(), 0);
        for _ in 0..LOOKUPS {
            change(node, &mut connection).await?;
            let stopwatch = Stopwatch::start();
            let answer = connection.exchange(&request, None).await?;
            ensure!([200, 404].contains(&answer.status), "{path}: {}", answer.status);
            latencies.push(stopwatch.elapsed().as_micros() as u32);
            bytes = answer.body_bytes;
        }
        Ok(Lookup {
            what,
            bytes,
            latency: Latency::of(latencies),
        })
    })
}
