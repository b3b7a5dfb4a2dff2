//! Load on a node whose peers are away: its queues stay within their limits, and what waits does not come as a storm.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::Value;

use super::pipeline::Pipeline;
use super::relay::Relay;
use super::servers::{Place, Server, Workshop};
use crate::conformance::http::{Request, poll};
use crate::conformance::report::{Outcome, Report};
use crate::conformance::target::{Instance, instances};

const INSTANCES: usize = 10_000;
/// Connections that renew, each its share of the instances once a second.
const CONNECTIONS: usize = 4;
const TOGETHER: usize = 50;
const AWAY: Duration = Duration::from_secs(60);
const RECOVERY: Duration = Duration::from_secs(60);
const QUEUE_LIMIT: u64 = 20_000;
const MAX_RATE: u64 = 12_000;
const CHURN: usize = 1_000_000;
const APP: &str = "KIT-STORM";

/// 10,000 instances renew every second at a node whose two peers cannot be reached for a minute.
pub(super) fn run(workshop: &Workshop, report: &Report) -> Result<()> {
    let places = [
        Place::new("storm-a", 1)?,
        Place::new("storm-b", 1)?,
        Place::new("storm-c", 1)?,
    ];
    let relays = [Relay::new(places[1].address)?, Relay::new(places[2].address)?];
    let (limit, rate) = (
        format!("replication.queue-limit={QUEUE_LIMIT}"),
        format!("replication.max-rate={MAX_RATE}"),
    );
    let settings = [&*limit, &rate];
    let a = places[0].url(None);
    let mut servers = [
        workshop.ours(&places[0], &[relays[0].url(), relays[1].url()], &settings),
        workshop.ours(&places[1], &[a.clone(), places[2].url(None)], &settings),
        workshop.ours(&places[2], &[a, places[1].url(None)], &settings),
    ];
    for server in &mut servers {
        server.spawn()?;
    }
    for server in &mut servers {
        server.listening()?;
    }
    let stopping = AtomicBool::new(false);
    thread::scope(|scope| {
        let renewing: Vec<_> = (0..CONNECTIONS)
            .map(|share| {
                let (address, stopping) = (servers[0].address, &stopping);
                scope.spawn(move || renew(address, share, stopping))
            })
            .collect();
        let outcome = storm(&mut servers, &relays, report);
        stopping.store(true, Ordering::Relaxed);
        for thread in renewing {
            let result = match thread.join() {
                Ok(Ok(late)) => Ok(format!("{late} rounds took longer than a second")),
                Ok(Err(error)) => Err(format!("{error:#}")),
                Err(_) => Err("the kit itself failed".to_owned()),
            };
            report.step("storm", "every renewal is answered", &Outcome::from(result));
        }
        outcome
    })
}

/// Registers a share of the instances and renews each once a second; says how many rounds took longer.
fn renew(address: std::net::SocketAddr, share: usize, stopping: &AtomicBool) -> Result<usize> {
    let mut pipeline = Pipeline::open(address)?;
    let ids: Vec<String> = (share..INSTANCES)
        .step_by(CONNECTIONS)
        .map(|number| format!("i-{number}"))
        .collect();
    for ids in ids.chunks(TOGETHER) {
        ids.iter()
            .for_each(|id| pipeline.register(&Instance::new(APP, id)));
        pipeline.exchange()?;
    }
    let mut late = 0;
    while !stopping.load(Ordering::Relaxed) {
        let round = Instant::now();
        for ids in ids.chunks(TOGETHER) {
            ids.iter().for_each(|id| pipeline.renew(APP, id));
            pipeline.exchange()?;
        }
        match Duration::from_secs(1).checked_sub(round.elapsed()) {
            Some(rest) => thread::sleep(rest),
            None => late += 1,
        }
    }
    Ok(late)
}

fn storm(servers: &mut [Server], relays: &[Relay], report: &Report) -> Result<()> {
    let step =
        |name: &str, result: Result<String, String>| report.step("storm", name, &Outcome::from(result));
    for server in &mut *servers {
        server.ready()?;
        let all = poll(RECOVERY, || holds_all(server));
        step(&format!("{} holds all {INSTANCES}", server.name), all);
    }
    relays.iter().for_each(Relay::cut);
    let (started, before) = (Instant::now(), servers[0].memory().unwrap_or(0));
    let mut watched = Watched::default();
    while started.elapsed() < AWAY {
        watched.look(&servers[0]);
    }
    relays.iter().for_each(Relay::mend);
    let returned = Instant::now();
    let recovered = poll(RECOVERY, || {
        watched.look(&servers[0]);
        watched.caught_up()
    });
    let took = returned.elapsed();
    let memory = servers[0].memory().unwrap_or(u64::MAX);
    let within = |value: u64, limit: u64| {
        if value <= limit {
            Ok(value.to_string())
        } else {
            Err(format!("{value}, limit {limit}"))
        }
    };
    step(
        "the queues stay within their limit",
        within(watched.queue, QUEUE_LIMIT),
    );
    // A tenth of a second's worth may be saved up, and the looks are a second apart by this clock, not by the node's.
    let allowed = MAX_RATE * 12 / 10;
    let within_rate = within(watched.rate, allowed);
    step("no burst above the rate, items in a second", within_rate);
    step(
        "the peers catch up",
        recovered.map(|()| format!("{:.1} s after they return", took.as_secs_f64())),
    );
    step(
        "memory",
        Ok(format!("{:.1} MiB before, {:.1} after", mib(before), mib(memory))),
    );
    for server in &*servers {
        step(
            &format!("{} still holds all", server.name),
            poll(RECOVERY, || holds_all(server)),
        );
    }
    Ok(())
}

/// What the first node says of its links, over time.
#[derive(Default)]
struct Watched {
    queue: u64,
    /// Most items acknowledged in a second by one peer.
    rate: u64,
    lag: u64,
    last: Option<(Instant, Vec<u64>)>,
}

impl Watched {
    fn look(&mut self, server: &Server) {
        thread::sleep(Duration::from_millis(1_000));
        let Ok(peers) = peers(server) else { return };
        let now = Instant::now();
        let figures = |name: &str| -> Vec<u64> {
            peers
                .iter()
                .map(|peer| peer[name].as_u64().unwrap_or(0))
                .collect()
        };
        self.queue = self.queue.max(figures("queue").into_iter().max().unwrap_or(0));
        self.lag = figures("lagMs").into_iter().max().unwrap_or(0);
        let sent = figures("sent");
        if let Some((then, last)) = &self.last {
            let millis = u64::try_from((now - *then).as_millis()).unwrap_or(1).max(1);
            let rates = sent
                .iter()
                .zip(last)
                .map(|(now, last)| now.saturating_sub(*last) * 1_000 / millis);
            self.rate = self.rate.max(rates.max().unwrap_or(0));
        }
        self.last = Some((now, sent));
    }

    fn caught_up(&self) -> Result<(), String> {
        if self.lag < 1_500 {
            Ok(())
        } else {
            Err(format!("the oldest change waits for {} ms", self.lag))
        }
    }
}

fn peers(server: &Server) -> Result<Vec<Value>, String> {
    let answer = server
        .target()
        .send(&Request::new("GET", "/api/v1/peers"))
        .map_err(|error| error.to_string())?;
    let facts = answer.json().map_err(|error| error.to_string())?;
    facts["peers"]
        .as_array()
        .cloned()
        .ok_or_else(|| "no peers".to_owned())
}

fn holds_all(server: &Server) -> Result<String, String> {
    let list = server.target().get_json("/apps")?;
    let held = instances(&list)
        .into_iter()
        .filter(|instance| instance["app"] == APP)
        .count();
    if held == INSTANCES {
        Ok(String::new())
    } else {
        Err(format!("{held} of {INSTANCES}"))
    }
}

/// A million ids come and go at a node whose peer is dead: its memory stays what it was.
pub(super) fn churn(workshop: &Workshop, report: &Report) -> Result<()> {
    let (place, dead) = (Place::new("churn", 1)?, Place::new("nobody", 1)?);
    let mut server = workshop.ours(
        &place,
        &[dead.url(None)],
        &["bootstrap.wait-when-empty=1s", "log.level=warn"],
    );
    server.spawn()?;
    server.listening()?;
    let mut pipeline = Pipeline::open(server.address)?;
    let mut memory = Vec::new();
    let started = Instant::now();
    for first in (0..CHURN).step_by(TOGETHER) {
        let ids: Vec<String> = (first..first + TOGETHER)
            .map(|number| format!("passing-{number}"))
            .collect();
        ids.iter()
            .for_each(|id| pipeline.register(&Instance::new("KIT-CHURN", id)));
        pipeline.exchange()?;
        ids.iter().for_each(|id| pipeline.cancel("KIT-CHURN", id));
        pipeline.exchange()?;
        if (first + TOGETHER).is_multiple_of(CHURN / 10) {
            memory.push(server.memory().unwrap_or(0));
        }
    }
    // What is remembered for a while (cancels, changes) is complete after the first three tenths.
    let (settled, last) = (memory[2], memory[memory.len() - 1]);
    let told: Vec<String> = memory.iter().map(|bytes| format!("{:.0}", mib(*bytes))).collect();
    let told = format!(
        "MiB by tenths: {}; {:.0} s",
        told.join(" "),
        started.elapsed().as_secs_f64()
    );
    let flat = if last as f64 <= settled as f64 * 1.15 {
        Ok(told)
    } else {
        Err(told)
    };
    report.step(
        "churn",
        "a million ids against a dead peer: memory is flat",
        &Outcome::from(flat),
    );
    Ok(())
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
