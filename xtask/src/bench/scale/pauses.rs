//! Open loops while something large goes on: what nobody notices in the mean, somebody waits for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow, bail, ensure};

use super::super::open_loop::{self, Schedule, Timed};
use super::super::subject::Subject;
use super::costs::change;
use super::figures::{During, Latency, Pause, Sent, Spent};
use super::fleet::{BATCH, Form};
use super::node::{self, Node};
use crate::connection::Connection;
use crate::stopwatch::Stopwatch;

/// Clients keep their connections, so many of them renew at the same time.
const CLIENTS: usize = 128;
/// A peer sends one batch at a time; so many peers do.
const PEERS: usize = 4;
/// Time between two full fetches.
const FETCH_INTERVAL: Duration = Duration::from_secs(5);
/// Time between two changes.
const CHANGE_INTERVAL: Duration = Duration::from_millis(10);
/// Leases that are meant to end last so long.
const SHORT_SECONDS: u64 = 15;
/// What takes longer than this has failed.
const LONGEST: Duration = Duration::from_secs(120);
const BUFFER: usize = 256 * 1024;

/// Renewals at `rate` to the server of `node`, or to the limit beside it.
pub(super) fn renewals(
    node: &Node<'_>,
    subject: &Subject,
    rate: u32,
    during: During,
    duration: Duration,
) -> Result<Pause> {
    let schedule = Schedule {
        address: subject.address,
        rate: f64::from(rate),
        duration,
        connections: CLIENTS,
    };
    let (timed, spent) = beside(
        node,
        subject,
        Sent::Renewals,
        &schedule,
        async |done| match during {
            During::Nothing => Ok(()),
            During::Fetches => keep_fetching(subject, done).await,
            During::Changes => {
                tokio::try_join!(keep_fetching(subject, done), keep_changing(node, done))?;
                Ok(())
            }
            During::FirstFetch | During::Eviction => bail!("another call's"),
        },
    )?;
    Ok(pause(Sent::Renewals, during, subject, &timed, spent))
}

/// What is sent to a server while it encodes everything in a form that nobody had asked for, how often, and that fetch.
pub(super) fn first_fetch(node: &Node<'_>, sent: Sent, rate: u32, form: Form) -> Result<(Timed, Spent, u64)> {
    let (rate, connections) = match sent {
        Sent::Renewals => (f64::from(rate), CLIENTS),
        Sent::Batches => (f64::from(rate) / BATCH as f64, PEERS),
    };
    let schedule = Schedule {
        address: node.server.address,
        rate,
        duration: LONGEST,
        connections,
    };
    let mut bytes = 0;
    let (timed, spent) = beside(node, &node.server, sent, &schedule, async |done| {
        let mut connection = Connection::open(node.server.address, BUFFER).await?;
        let answer = connection.exchange(&form.request("/eureka/apps"), None).await?;
        ensure!(answer.status == 200, "{}: {}", form.title, answer.status);
        bytes = answer.body_bytes;
        done.store(true, Ordering::Relaxed);
        Ok(())
    })?;
    Ok((timed, spent, bytes))
}

/// Renewals while a tenth of the leases ends and is evicted.
pub(super) fn eviction(node: &Node<'_>, rate: u32) -> Result<Pause> {
    node.runtime.block_on(shorten(node))?;
    let left = node.crowd.size.instances - node.crowd.mortal.len();
    let schedule = Schedule {
        address: node.server.address,
        rate: f64::from(rate),
        duration: LONGEST,
        connections: CLIENTS,
    };
    let (timed, spent) = beside(node, &node.server, Sent::Renewals, &schedule, async |done| {
        let mut connection = node.connect().await?;
        while !done.load(Ordering::Relaxed) {
            if node::instances(&mut connection).await? == left {
                done.store(true, Ordering::Relaxed);
            }
            node::rest().await;
        }
        Ok(())
    })?;
    let held = node.instances()?;
    ensure!(
        held == left,
        "{held} instances after {LONGEST:?}, {left} are alive"
    );
    Ok(pause(
        Sent::Renewals,
        During::Eviction,
        &node.server,
        &timed,
        spent,
    ))
}

/// Those who are to die register with a short lease.
async fn shorten(node: &Node<'_>) -> Result<()> {
    let half = node.crowd.mortal.len() / 2;
    let (first, second) = node.crowd.mortal.split_at(half);
    let shorten = async |numbers: &[usize]| {
        let (mut connection, mut request) = (node.connect().await?, Vec::new());
        for number in numbers {
            request.clear();
            node.crowd
                .write_registration(*number, SHORT_SECONDS, 1, &mut request);
            let answer = connection.exchange(&request, None).await?;
            ensure!((200..300).contains(&answer.status), "{}", answer.status);
        }
        anyhow::Ok(())
    };
    tokio::try_join!(shorten(first), shorten(second))?;
    Ok(())
}

/// An open loop on a thread of its own beside `meanwhile`, which is told when the loop is done, and may end it.
fn beside(
    node: &Node<'_>,
    subject: &Subject,
    sent: Sent,
    schedule: &Schedule,
    meanwhile: impl AsyncFnOnce(&AtomicBool) -> Result<()>,
) -> Result<(Timed, Spent)> {
    let done = AtomicBool::new(false);
    let (cpu, stopwatch) = (subject.cpu_seconds()?, Stopwatch::start());
    let timed = thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let timed = open_loop::run(schedule, &done, |turn, request| match sent {
                Sent::Renewals => node.crowd.write_renewal(turn, request),
                Sent::Batches => node.crowd.write_batch(turn, request),
            });
            done.store(true, Ordering::Relaxed);
            timed
        });
        let went_on = node.runtime.block_on(meanwhile(&done));
        if went_on.is_err() {
            done.store(true, Ordering::Relaxed);
        }
        let timed = sender.join().map_err(|_| anyhow!("the open loop panicked"))?;
        went_on?;
        timed
    })?;
    ensure!(
        timed.refused == 0,
        "{} of {} refused",
        timed.refused,
        timed.count()
    );
    let spent = Spent {
        seconds: stopwatch.elapsed().as_secs_f64(),
        cpu_seconds: subject.cpu_seconds()? - cpu,
    };
    Ok((timed, spent))
}

pub(super) fn pause(sent: Sent, during: During, subject: &Subject, timed: &Timed, spent: Spent) -> Pause {
    Pause {
        what: sent,
        during,
        server: subject.name,
        count: timed.count(),
        seconds: spent.seconds,
        cpu_us: spent.cpu_seconds * 1e6 / timed.count().max(1) as f64,
        latency: Latency::from(timed),
        late: timed.late,
    }
}

async fn keep_fetching(subject: &Subject, done: &AtomicBool) -> Result<()> {
    let request = Form::GZIP.request("/eureka/apps");
    let mut connection = Connection::open(subject.address, BUFFER).await?;
    let mut last: Option<Stopwatch> = None;
    while !done.load(Ordering::Relaxed) {
        if last.is_none_or(|last| last.elapsed() >= FETCH_INTERVAL) {
            last = Some(Stopwatch::start());
            let answer = connection.exchange(&request, None).await?;
            ensure!(answer.status == 200, "a full fetch: {}", answer.status);
        }
        node::rest().await;
    }
    Ok(())
}

async fn keep_changing(node: &Node<'_>, done: &AtomicBool) -> Result<()> {
    let mut connection = node.connect().await?;
    let mut ticks = tokio::time::interval(CHANGE_INTERVAL);
    while !done.load(Ordering::Relaxed) {
        ticks.tick().await;
        change(node, &mut connection).await?;
    }
    Ok(())
}
