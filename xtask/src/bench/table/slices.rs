//! One slice: one kind of request to one server, for some seconds.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::Row;
use super::contenders::{Contender, items};
use super::figures::Measure;
use crate::bench::load::{self, Changes};
use crate::bench::open_loop::{self, Schedule};
use crate::bench::subject::{Kind, Usage};
use crate::bench::workload::{DIRTY, Fleet, Operation};
use crate::bench::wrk;
use crate::stopwatch::Stopwatch;

/// So many instances have changed lately when a delta is fetched, and the delta holds at most so many.
pub(super) const CHANGED: usize = 100;
const DELTA_MAX: usize = 200;
/// An instance in an answer has one.
const INSTANCE: &[u8] = b"\"instanceId\"";
/// Before a slice: enough for a server to encode what has changed since its last turn.
const AHEAD: usize = 64;
/// Before a slice, on virtual machines: what was compiled is there, but the collector has to fall into step.
const AHEAD_SECONDS: u64 = 1;
/// A server is warm when two slices in a row are not better than the best by so much; after so many slices in any case.
const BETTER: f64 = 1.03;
const WARMING_SECONDS: u64 = 3;
const WARMING_MAX: usize = 20;

/// How the load is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slicing {
    pub(super) seconds: u64,
    pub(super) connections: usize,
}

/// Sends requests until the server gets no faster; of the rate, slice by slice, the last and the best.
pub(super) fn warm(
    contender: &Contender<'_>,
    row: Row,
    connections: usize,
    generations: &mut Generations,
) -> Result<[f64; 2]> {
    let slicing = Slicing {
        seconds: WARMING_SECONDS,
        connections,
    };
    let (mut rates, mut mark, mut worse) = ([0.0_f64; 2], 0.0, 0);
    for _ in 0..WARMING_MAX {
        let rate = closed_loop(contender, row, slicing, generations)?.rate;
        rates = [rate, rates[1].max(rate)];
        // The mark stays where it is until it is beaten clearly, so a slow rise goes on being one.
        if rate >= mark * BETTER {
            (mark, worse) = (rate, 0);
        } else {
            worse += 1;
        }
        if worse == 2 {
            break;
        }
    }
    Ok(rates)
}

/// Dirty timestamps that nobody has used.
#[derive(Debug, Default)]
pub(super) struct Generations(u64);

impl Generations {
    pub(super) fn next(&mut self) -> u64 {
        self.0 += 1;
        self.0 * crate::bench::workload::PASSES
    }
}

/// What a slice measured.
pub(super) struct Slice {
    pub(super) rate: f64,
    pub(super) values: Vec<(Measure, f64)>,
}

/// One slice of one row on one server, whose turn it is.
pub(super) fn measure(
    contender: &Contender<'_>,
    row: Row,
    slicing: Slicing,
    generations: &mut Generations,
) -> Result<Slice> {
    let operation = row.operation();
    if operation == Operation::DeltaGzip && contender.kind != Kind::Limit {
        let changed = changed_lately(contender.subject.address, &contender.fleet, generations.next());
        load::runtime()?.block_on(changed)?;
    }
    if let Some(rate) = row.paced() {
        return paced(contender, operation, rate, slicing);
    }
    if contender.kind.warms_up() {
        let ahead = Slicing {
            seconds: AHEAD_SECONDS,
            ..slicing
        };
        closed_loop(contender, row, ahead, generations)?;
    } else if operation != Operation::Register {
        let requests = contender.requests(operation, contender.generation);
        let all = load::exchange_all(contender.subject.address, requests, AHEAD, 4);
        load::runtime()?.block_on(all)?;
    }
    closed_loop(contender, row, slicing, generations)
}

fn closed_loop(
    contender: &Contender<'_>,
    row: Row,
    slicing: Slicing,
    generations: &mut Generations,
) -> Result<Slice> {
    let (subject, operation) = (&contender.subject, row.operation());
    let requests = contender.requests_file(operation)?;
    let has_stamp = operation == Operation::Register && contender.kind != Kind::RNacos;
    let stamp = has_stamp.then(|| DIRTY + generations.next());
    let changes = row
        .changing(&contender.fleet)
        .map(|changing| Changes::begin(subject.address, contender.fleet, changing, generations.next()));
    let (before, stopwatch) = (Usage::of(subject)?, Stopwatch::start());
    let run = wrk::Run {
        address: subject.address,
        requests: &requests,
        connections: slicing.connections,
        seconds: slicing.seconds,
        stamp,
    };
    let summary = run.run()?;
    let (usage, seconds) = (
        Usage::of(subject)?.since(&before),
        stopwatch.elapsed().as_secs_f64(),
    );
    if let Some(changes) = changes {
        changes.end()?;
    }
    let each = items(operation) as f64;
    let rate = summary.per_second() * each;
    let values = vec![
        (Measure::Cpu, usage.server * 1e6 / (summary.answers as f64 * each)),
        (Measure::Rate, rate),
        (Measure::P50, summary.p50),
        (Measure::P99, summary.p99),
        (Measure::Throughput, summary.megabytes_per_second()),
        (Measure::Others, usage.foreign() / seconds),
    ];
    Ok(Slice { rate, values })
}

/// Requests at a fixed rate, whose latency counts from the moment they were due.
fn paced(contender: &Contender<'_>, operation: Operation, rate: u32, slicing: Slicing) -> Result<Slice> {
    let subject = &contender.subject;
    let requests = contender.requests(operation, contender.generation);
    let schedule = Schedule {
        address: subject.address,
        rate: f64::from(rate),
        duration: Duration::from_secs(slicing.seconds),
        connections: slicing.connections * 4,
    };
    let (before, stopwatch) = (Usage::of(subject)?, Stopwatch::start());
    let threads = subject.threads_seconds()?;
    // A thread of its own, for it changes how exactly it is woken.
    let timed = thread::scope(|scope| {
        let generator = scope.spawn(|| {
            open_loop::run(&schedule, &AtomicBool::new(false), |number, request| {
                request.extend_from_slice(&requests[number % requests.len()]);
            })
        });
        generator.join().expect("the generator does not panic")
    })?;
    let (usage, seconds) = (
        Usage::of(subject)?.since(&before),
        stopwatch.elapsed().as_secs_f64(),
    );
    // The clock of processes ticks a hundred times a second, and a second of this may be a few ticks.
    let cpu: f64 = subject
        .threads_seconds()?
        .iter()
        .map(|(thread, seconds)| seconds - threads.get(thread).unwrap_or(&0.0))
        .sum();
    ensure!(
        timed.refused == 0,
        "{} of {} refused",
        timed.refused,
        timed.count()
    );
    let quantile = |share| f64::from(timed.quantile(share));
    let rate = timed.count() as f64 / seconds;
    let values = vec![
        (Measure::Cpu, cpu * 1e6 / timed.count() as f64),
        (Measure::Rate, rate),
        (Measure::P50, quantile(0.5)),
        (Measure::P99, quantile(0.99)),
        (Measure::P999, quantile(0.999)),
        (Measure::Longest, f64::from(timed.longest())),
        (Measure::Others, usage.foreign() / seconds),
    ];
    Ok(Slice { rate, values })
}

/// Changes some instances, and waits until the delta holds hardly any others.
pub(super) async fn changed_lately(address: SocketAddr, fleet: &Fleet, generation: u64) -> Result<()> {
    let stopwatch = Stopwatch::start();
    let mut listed = usize::MAX;
    for attempt in 0.. {
        load::register_some(address, fleet, CHANGED.min(fleet.instances), generation + attempt).await?;
        listed = listed_in_delta(address, fleet).await?;
        if (1..=DELTA_MAX).contains(&listed) || stopwatch.elapsed() > Duration::from_secs(60) {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    ensure!(
        (1..=DELTA_MAX).contains(&listed),
        "the delta stays at {listed} instances"
    );
    Ok(())
}

async fn listed_in_delta(address: SocketAddr, fleet: &Fleet) -> Result<usize> {
    let compressed = load::fetch(address, Operation::DeltaGzip, fleet).await?;
    let body = super::once::decompressed(&compressed)?;
    Ok(memchr::memmem::find_iter(&body, INSTANCE).count())
}
