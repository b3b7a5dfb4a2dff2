//! Those who watch: each checks that it is sent every change in order, and notes how late.

use std::io::Read;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use flate2::read::GzDecoder;
use tokio::task::JoinSet;
use tokio::time::{self, Instant};

use super::marks::{self, Marks};
use super::{FLEET, Form, STREAMS};
use crate::bench::delays::quantile;
use crate::bench::subject::Subject;
use crate::bench::workload::Operation;
use crate::connection::Connection;
use crate::watchers::{Channel, Ending, Told, Watch};

/// Opened at a time, so that no server has to take a thousand connections in one moment.
const TOGETHER: usize = 50;
const POLL_EVERY: Duration = Duration::from_secs(1);
/// One answer in so many is decompressed, to see that it holds what its tag says.
const LOOKED_INTO: usize = 50;
const BUFFER: usize = 32 * 1024;

/// What watchers were sent.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// One for each change and watcher, in microseconds; sorted.
    pub(super) delays: Vec<u32>,
    /// Messages without the framing of HTTP.
    pub(super) bytes: u64,
}

impl Seen {
    /// The delay in microseconds that this share of the deliveries did not exceed.
    pub(super) fn quantile(&self, share: f64) -> u32 {
        quantile(&self.delays, share)
    }
}

/// Watchers that know what there was when they began.
pub(super) struct Followers {
    tasks: JoinSet<Result<Seen>>,
    shared: Arc<Shared>,
}

/// What the watchers of one form have in common.
struct Shared {
    marks: Arc<Marks>,
    /// How many have the snapshot.
    ready: AtomicUsize,
    /// How many changes were delivered.
    delivered: AtomicUsize,
}

impl Followers {
    /// Opens them, and returns when all have the snapshot.
    pub(super) async fn open(form: Form, server: &Subject, count: usize, marks: &Arc<Marks>) -> Result<Self> {
        let mut followers = Self {
            tasks: JoinSet::new(),
            shared: Arc::new(Shared {
                marks: Arc::clone(marks),
                ready: AtomicUsize::new(0),
                delivered: AtomicUsize::new(0),
            }),
        };
        let count = if form == Form::Nobody { 0 } else { count };
        let mut channel = None;
        for number in 0..count {
            let shared = Arc::clone(&followers.shared);
            if form == Form::Poll {
                let start = POLL_EVERY.mul_f64(number as f64 / count as f64);
                let polling = poll(server.address, start, number, shared);
                followers.tasks.spawn(polling);
            } else {
                let watch = connect(form, server, number, &mut channel).await;
                let watch = watch.map_err(|ending| anyhow!("watcher {number}: {ending}"))?;
                followers.tasks.spawn(follow(watch, shared));
            }
            if (number + 1) % TOGETHER == 0 || number + 1 == count {
                followers.wait_for(number + 1).await?;
            }
        }
        Ok(followers)
    }

    async fn wait_for(&mut self, count: usize) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.shared.ready.load(Ordering::Relaxed) < count {
            if let Some(ended) = self.tasks.try_join_next() {
                ended??;
                bail!("a watcher ended before anything changed");
            }
            ensure!(Instant::now() < deadline, "no snapshot within 30 s");
            time::sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    }

    /// Waits until all have every change.
    pub(super) async fn finish(mut self, within: Duration) -> Result<Seen> {
        let deadline = Instant::now() + within;
        let mut all = Seen::default();
        while !self.tasks.is_empty() {
            let next = time::timeout_at(deadline, self.tasks.join_next()).await;
            let next = next.with_context(|| {
                let (missing, delivered) = (self.tasks.len(), &self.shared.delivered);
                format!(
                    "{missing} watchers lack changes, {} were delivered: this machine is too busy for so many",
                    delivered.load(Ordering::Relaxed)
                )
            })?;
            let seen = next.context("no watcher")???;
            all.delays.extend(seen.delays);
            all.bytes += seen.bytes;
        }
        all.delays.sort_unstable();
        Ok(all)
    }
}

/// `channel` is the connection that the watcher before has used.
async fn connect(
    form: Form,
    server: &Subject,
    number: usize,
    channel: &mut Option<Channel>,
) -> Result<Watch, Ending> {
    if form == Form::Sse {
        return Watch::over_sse(server.address, None).await;
    }
    if form != Form::GrpcShared || number.is_multiple_of(STREAMS) {
        *channel = None;
    }
    let mut open = match channel.take() {
        Some(open) => open,
        None => Channel::open(server.grpc, None).await?,
    };
    let watch = open.watch(None).await;
    *channel = Some(open);
    watch
}

async fn follow(mut watch: Watch, shared: Arc<Shared>) -> Result<Seen> {
    let marks = &shared.marks;
    let mut seen = Seen::default();
    snapshot(&mut watch).await?;
    shared.ready.fetch_add(1, Ordering::Relaxed);
    while seen.delays.len() < marks.count() as usize {
        let expected = seen.delays.len() as u32;
        let message = watch.next().await;
        let message = message.map_err(|ending| anyhow!("ended before change {expected}: {ending}"))?;
        seen.bytes += message.len() as u64;
        match marks::find(&message) {
            Some(number) => {
                ensure!(number == expected, "change {number} came instead of {expected}");
                seen.delays.push(marks.delay(number));
                shared.delivered.fetch_add(1, Ordering::Relaxed);
            }
            None => match watch.read(&message)? {
                Told::Alive { .. } => {}
                other @ (Told::Reset(_) | Told::Instances(_) | Told::Synced { .. } | Told::Changed(_)) => {
                    bail!("{other:?} came instead of change {expected}")
                }
            },
        }
    }
    Ok(seen)
}

async fn snapshot(watch: &mut Watch) -> Result<()> {
    let mut listed = 0;
    loop {
        let message = watch.next().await.map_err(|ending| anyhow!("{ending}"))?;
        match watch.read(&message)? {
            Told::Instances(instances) => listed += instances.len(),
            Told::Synced { instances, .. } => {
                ensure!(
                    listed == FLEET.instances && instances == listed as u64,
                    "a snapshot of {listed} instances that says {instances}"
                );
                return Ok(());
            }
            Told::Reset(_) | Told::Alive { .. } => {}
            Told::Changed(change) => bail!("{change:?} before the snapshot was complete"),
        }
    }
}

/// Fetches the delta once a second. Its tag names the version of the registry, of which each change made one.
async fn poll(address: SocketAddr, start: Duration, number: usize, shared: Arc<Shared>) -> Result<Seen> {
    let marks = &shared.marks;
    let mut connection = Connection::open(address, BUFFER).await?;
    let mut request = Vec::new();
    Operation::DeltaGzip.write(&FLEET, 0, 0, &mut request);
    let first = connection.exchange(&request, None).await?;
    let base = version(first.etag.as_deref())?;
    shared.ready.fetch_add(1, Ordering::Relaxed);

    let mut ticks = time::interval_at(Instant::now() + start, POLL_EVERY);
    let mut seen = Seen::default();
    let mut body = Vec::new();
    for round in number.. {
        if seen.delays.len() == marks.count() as usize {
            break;
        }
        ticks.tick().await;
        body.clear();
        let looks = round % LOOKED_INTO == 0;
        let answer = connection.exchange(&request, looks.then_some(&mut body)).await?;
        ensure!(answer.status == 200, "delta: {}", answer.status);
        seen.bytes += answer.body_bytes;
        let known = seen.delays.len() as u64;
        let told = version(answer.etag.as_deref())?
            .checked_sub(base)
            .context("an older delta than before")?;
        seen.delays
            .extend((known..told).map(|number| marks.delay(number as u32)));
        let delivered = seen.delays.len() - known as usize;
        shared.delivered.fetch_add(delivered, Ordering::Relaxed);
        if looks && told > 0 {
            let mut text = String::new();
            GzDecoder::new(&*body).read_to_string(&mut text)?;
            ensure!(
                text.contains(&format!("mark-{:08}", told - 1)),
                "change {} is not in the delta",
                told - 1
            );
        }
    }
    Ok(seen)
}

/// `7` of `W/"<boot>-7-json"`.
fn version(etag: Option<&str>) -> Result<u64> {
    let part = etag.and_then(|etag| etag.rsplit('-').nth(1));
    part.and_then(|version| version.parse().ok())
        .with_context(|| format!("no version in the tag {etag:?}"))
}
