//! From the answer to a registration at one server until another one knows of it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::task::JoinSet;
use tokio::time::{self, Instant};

use super::figures::{Figures, Measure};
use super::{PROPAGATION_LIST, PROPAGATION_SINGLE};
use crate::bench::delays::quantile;
use crate::bench::load;
use crate::bench::subject::Kind;
use crate::bench::workload::{Fleet, Operation, registration};
use crate::cluster::servers::{Java, Place, Workshop};
use crate::connection::Connection;

const SAMPLES: usize = 20;
/// Between two questions of the same kind.
const PAUSE: Duration = Duration::from_millis(1);
/// Java's servers need half a minute until they replicate, and as long until a list shows it.
const PATIENCE: Duration = Duration::from_secs(120);
/// What the registrations are spread over: for Java the time for which lists may be old.
const SPREAD: Duration = Duration::from_secs(3);
const SPREAD_JAVA: Duration = Duration::from_secs(30);
const BUFFER: usize = 64 * 1024;
const FLEET: Fleet = Fleet {
    instances: 1_000_000,
    applications: 1,
};

/// Starts two servers that are each other's peers.
pub(super) fn measure(program: &Path, kind: Kind, figures: &mut Figures) -> Result<()> {
    let workshop = Workshop::open(program, &crate::root().join("target/cluster"))?;
    let java = kind.warms_up().then_some(Java::Spring);
    let places = [Place::new("bench-near", 1)?, Place::new("bench-far", 2)?];
    let mut servers = [(0, 1), (1, 0)].map(|(own, other)| {
        let peers = [places[other].url(java)];
        match java {
            Some(java) => workshop.java_with(&["-Xmx1g"], java, &places[own], &peers, &[]),
            None => {
                let settings = ["bootstrap.settle=1s", "bootstrap.wait-when-empty=2s"];
                workshop.ours(&places[own], &peers, &settings)
            }
        }
    });
    for server in &mut servers {
        server.spawn()?;
    }
    for server in &mut servers {
        server.ready()?;
    }
    let spread = if java.is_some() { SPREAD_JAVA } else { SPREAD };
    let [near, far] = places.map(|place| place.address);
    let [single, list] = load::runtime()?.block_on(delays(near, far, spread))?;
    for (what, mut delays) in [(PROPAGATION_SINGLE, single), (PROPAGATION_LIST, list)] {
        delays.sort_unstable();
        let values = [(Measure::P50, 0.5), (Measure::P99, 0.99), (Measure::Longest, 1.0)]
            .map(|(measure, share)| (measure, f64::from(quantile(&delays, share))));
        figures.add(what, kind, &values);
    }
    Ok(())
}

/// Until the far server answers the instance alone, and until its list holds it; in microseconds and no order.
async fn delays(near: SocketAddr, far: SocketAddr, spread: Duration) -> Result<[Vec<u32>; 2]> {
    time::timeout(PATIENCE, sample(near, far, 0, Duration::ZERO))
        .await
        .context("nothing is replicated")??;
    let mut samples = JoinSet::new();
    for number in 1..=SAMPLES {
        // Not in step with anything that a server does every second or half.
        let moment = spread.mul_f64((number as f64 * 0.618_034).fract());
        samples.spawn(async move { anyhow::Ok((number, sample(near, far, number, moment).await?)) });
    }
    let listed = time::timeout(PATIENCE, list(far)).await.context("not listed")??;
    let (mut singles, mut lists) = (Vec::new(), Vec::new());
    while let Some(done) = samples.join_next().await {
        let (number, (registered, seen)) = done??;
        singles.push((seen - registered).as_micros() as u32);
        let listed = listed.get(&number).context("it was listed")?;
        lists.push(listed.saturating_duration_since(registered).as_micros() as u32);
    }
    Ok([singles, lists])
}

/// When it was registered, and when the far server answered it.
async fn sample(
    near: SocketAddr,
    far: SocketAddr,
    number: usize,
    moment: Duration,
) -> Result<(Instant, Instant)> {
    let mut connections = [
        Connection::open(near, BUFFER).await?,
        Connection::open(far, BUFFER).await?,
    ];
    time::sleep(moment).await;
    let body = registration(0, number, 1, "");
    let request = format!(
        "POST /eureka/apps/APP-0 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = connections[0].exchange(request.as_bytes(), None).await?;
    ensure!(answer.status == 204, "a registration: {}", answer.status);
    let registered = Instant::now();
    let request = format!(
        "GET /eureka/apps/APP-0/host-{number}:app-0:8080 HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n"
    );
    while connections[1].exchange(request.as_bytes(), None).await?.status != 200 {
        ensure!(
            registered.elapsed() < PATIENCE,
            "an instance does not arrive at the peer"
        );
        time::sleep(PAUSE).await;
    }
    Ok((registered, Instant::now()))
}

/// When the list held each of the instances first.
async fn list(far: SocketAddr) -> Result<BTreeMap<usize, Instant>> {
    let mut connection = Connection::open(far, BUFFER).await?;
    let mut request = Vec::new();
    Operation::FullIdentity.write(&FLEET, 0, 0, &mut request);
    let mut seen = BTreeMap::new();
    while seen.len() < SAMPLES {
        let mut body = Vec::new();
        connection.exchange(&request, Some(&mut body)).await?;
        for number in 1..=SAMPLES {
            let id = format!("\"host-{number}:app-0:8080\"");
            if memchr::memmem::find(&body, id.as_bytes()).is_some() {
                seen.entry(number).or_insert_with(Instant::now);
            }
        }
        time::sleep(PAUSE).await;
    }
    Ok(seen)
}
