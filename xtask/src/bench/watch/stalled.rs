//! What watchers cost that read nothing while very much changes, and how they go on.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, anyhow, bail, ensure};
use serde_json::{Value, json};
use tokio::time::{self, Instant};

use super::marks::{self, Sender};
use super::table::mebibytes;
use super::{FLEET, server};
use crate::bench::load;
use crate::bench::subject::Subject;
use crate::stopwatch::Stopwatch;
use crate::watchers::{Channel, Ending, Told, Watch};

/// Of each kind.
const WATCHERS: usize = 50;
const CHANGES: u32 = 1_000_000;
const AT_MOST: Duration = Duration::from_secs(60);
/// By default they would be cut after 30 s: this is what they cost at most.
const NEVER_CUT: &str = "limits.write-timeout=1h";
/// Registrations under way at a time.
const TOGETHER: u32 = 100;
/// Bytes of a gRPC stream that may be under way: none of the watchers reads them.
const WINDOW: u32 = 16 * 1024;
const RECOVERY: Duration = Duration::from_secs(60);

/// The figures.
pub(super) struct Stalled {
    /// Changes in each of the two passes.
    changes: [u32; 2],
    seconds: [f64; 2],
    /// The server's memory at most without watchers and with them, and after they have ended.
    bytes: [u64; 3],
    /// gRPC, then server-sent events.
    ways: [Ways; 2],
}

/// How watchers went on when they read again.
#[derive(Clone, Copy, Debug, Default)]
struct Ways {
    /// On the same stream, with a snapshot.
    same: usize,
    /// The server had ended the stream; a new one began with a snapshot.
    anew: usize,
}

/// Lets everything pass twice: by itself, for the memory of what the server keeps anyway, and with watchers that stall.
pub(super) async fn measure() -> Result<Stalled> {
    let server = server(&[NEVER_CUT.to_owned()])?;
    load::register_all(server.address, &FLEET).await?;
    println!("{CHANGES} changes at {TOGETHER} a time, without watchers");
    let alone = pass(&server, 0).await?;
    let (grpc, sse) = connect(&server).await?;
    println!("again, with {WATCHERS} of each kind that read nothing");
    let stalled = pass(&server, alone.changes).await?;
    let last = alone.changes + stalled.changes - 1;
    let mut ways = [Ways::default(); 2];
    for (watches, ways) in [grpc, sse].into_iter().zip(&mut ways) {
        for watch in watches {
            let recovered = time::timeout(RECOVERY, recover(&server, watch, last)).await??;
            match recovered {
                Recovered::Same => ways.same += 1,
                Recovered::Anew => ways.anew += 1,
            }
        }
    }
    Ok(Stalled {
        changes: [alone.changes, stalled.changes],
        seconds: [alone.seconds, stalled.seconds],
        bytes: [alone.peak_bytes, stalled.peak_bytes, server.resident_bytes()?],
        ways,
    })
}

struct Pass {
    changes: u32,
    seconds: f64,
    peak_bytes: u64,
}

/// As many changes as fit, and the most memory that was seen meanwhile.
async fn pass(server: &Subject, first: u32) -> Result<Pass> {
    let mut sender = Sender::open(server.address)?;
    let stopwatch = Stopwatch::start();
    let sending = tokio::task::spawn_blocking(move || {
        let mut sent = 0;
        while sent < CHANGES && stopwatch.elapsed() < AT_MOST {
            let next = first + sent;
            sender.send(next..next + TOGETHER)?;
            sent += TOGETHER;
        }
        Ok::<_, anyhow::Error>(sent)
    });
    let mut peak_bytes = 0;
    while !sending.is_finished() {
        peak_bytes = peak_bytes.max(server.resident_bytes()?);
        time::sleep(Duration::from_millis(100)).await;
    }
    let seconds = stopwatch.elapsed().as_secs_f64();
    Ok(Pass {
        changes: sending.await??,
        seconds,
        peak_bytes,
    })
}

/// Streams that have begun, and of which nobody reads more than that: gRPC with closed windows, then sockets.
async fn connect(server: &Subject) -> Result<(Vec<Watch>, Vec<Watch>)> {
    let failed = |ending: Ending| anyhow!("{ending}");
    let mut channel = Channel::open(server.grpc, Some(WINDOW)).await.map_err(failed)?;
    let (mut grpc, mut sse) = (Vec::new(), Vec::new());
    for _ in 0..WATCHERS {
        grpc.push(channel.watch(None).await.map_err(failed)?);
        sse.push(Watch::over_sse(server.address, None).await.map_err(failed)?);
    }
    Ok((grpc, sse))
}

enum Recovered {
    Same,
    Anew,
}

/// Reads until the last change is known, on a new stream if this one was ended.
async fn recover(server: &Subject, mut watch: Watch, last: u32) -> Result<Recovered> {
    if catch_up(&mut watch, last).await?.is_ok() {
        return Ok(Recovered::Same);
    }
    let mut again = match &watch {
        Watch::Sse(_) => Watch::over_sse(server.address, None).await,
        Watch::Grpc(_) => match Channel::open(server.grpc, None).await {
            Ok(mut channel) => channel.watch(None).await,
            Err(ending) => Err(ending),
        },
    }
    .map_err(|ending| anyhow!("{ending}"))?;
    match catch_up(&mut again, last).await? {
        Ok(()) => Ok(Recovered::Anew),
        Err(ending) => bail!("the new stream ended, too: {ending}"),
    }
}

/// Nothing is skipped but by a snapshot: after one the next change is the one behind it.
async fn catch_up(watch: &mut Watch, last: u32) -> Result<Result<(), Ending>> {
    let (mut known, mut complete) = (None, false);
    let deadline = Instant::now() + RECOVERY;
    while Instant::now() < deadline {
        let message = match watch.next().await {
            Ok(message) => message,
            Err(ending) => return Ok(Err(ending)),
        };
        let mark = marks::find(&message);
        match watch.read(&message)? {
            Told::Reset(_) => (known, complete) = (None, false),
            Told::Instances(instances) => {
                let marks = instances.iter().filter_map(|(_, seen)| seen.metadata.get("mark"));
                known = known.max(marks.filter_map(|mark| marks::find(mark.as_bytes())).max());
            }
            Told::Synced { .. } => complete = true,
            Told::Alive { .. } => {}
            Told::Changed(_) => {
                ensure!(
                    mark == known.map(|known| known + 1),
                    "{mark:?} came behind {known:?}"
                );
                known = mark;
            }
        }
        if complete && known == Some(last) {
            return Ok(Ok(()));
        }
    }
    bail!("only {known:?} of {last} is known after {} s", RECOVERY.as_secs())
}

impl Stalled {
    pub(super) fn json(&self) -> Value {
        let ways = |ways: Ways| json!({ "same_stream": ways.same, "new_stream": ways.anew });
        json!({
            "stalled": 2 * WATCHERS,
            "changes": self.changes,
            "seconds": self.seconds,
            "memory_bytes": { "without": self.bytes[0], "with": self.bytes[1], "after": self.bytes[2] },
            "grpc": ways(self.ways[0]),
            "sse": ways(self.ways[1]),
        })
    }
}

impl fmt::Display for Stalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| {} watchers that read nothing | changes | seconds | memory at most, MiB |\n|---|--:|--:|--:|",
            2 * WATCHERS
        )?;
        for (name, index) in [("before there are any", 0), ("while they are there", 1)] {
            writeln!(
                f,
                "| {name} | {} | {:.0} | {:.1} |",
                self.changes[index],
                self.seconds[index],
                mebibytes(self.bytes[index])
            )?;
        }
        writeln!(
            f,
            "| after they have read | | | {:.1} |",
            mebibytes(self.bytes[2])
        )?;
        writeln!(
            f,
            "\n| when they read again | on the same stream, by a snapshot | cut; on a new one |\n|---|--:|--:|"
        )?;
        for (name, ways) in [("gRPC Watch", self.ways[0]), ("server-sent events", self.ways[1])] {
            writeln!(f, "| {name} | {} | {} |", ways.same, ways.anew)?;
        }
        Ok(())
    }
}
