//! Seven nodes, one of which hangs with the clients that renew through it: none of them may be evicted anywhere.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::clients::{Clients, Habits};
use super::servers::{Place, Server, Workshop};
use crate::conformance::report::{Outcome, Report};

const LEASE_SECONDS: u32 = 9;
/// More than two leases, and less than a lease and the hold of two more.
const HANGS: Duration = Duration::from_secs(22);
const AFTER: Duration = Duration::from_secs(12);
const NAMES: [&str; 7] = [
    "hang-1", "hang-2", "hang-3", "hang-4", "hang-5", "hang-6", "hang-7",
];

/// Runs the scenario.
pub(super) fn run(workshop: &Workshop, report: &Report) -> Result<()> {
    let places = NAMES.into_iter().map(|name| Place::new(name, 1));
    let places = places.collect::<Result<Vec<_>>>()?;
    let mut servers: Vec<Server> = places
        .iter()
        .map(|place| {
            let others = places.iter().filter(|other| other.name != place.name);
            let peers: Vec<String> = others.map(|other| other.url(None)).collect();
            // Without preservation, so that it cannot be what saves them.
            let settings = [
                "preservation.enabled=false",
                "registry.eviction-interval=1s",
                "bootstrap.settle=3s",
                "replication.digest-interval=1s",
                "replication.request-timeout=2s",
            ];
            workshop.ours(place, &peers, &settings)
        })
        .collect();
    for server in &mut servers {
        server.spawn()?;
    }
    for server in &mut servers {
        server.listening()?;
    }
    let habits = Habits {
        per_server: 3,
        heartbeat: Duration::from_secs(3),
        lease_seconds: LEASE_SECONDS,
        writes: false,
    };
    let clients = Clients::start(&servers.iter().collect::<Vec<_>>(), "KIT-HANG", habits);
    for server in &mut servers {
        server.ready()?;
    }
    thread::sleep(Duration::from_secs(u64::from(LEASE_SECONDS)));
    let hanging = servers.len() - 1;
    clients.excuse(hanging, true);
    servers[hanging].signal("STOP")?;
    let mut lost = watch(&servers[..hanging], &clients, HANGS);
    servers[hanging].signal("CONT")?;
    lost.extend(watch(&servers, &clients, AFTER));
    let step = format!(
        "one of seven hangs for {} s: nobody is evicted anywhere",
        HANGS.as_secs()
    );
    let result = if lost.is_empty() {
        Ok(String::new())
    } else {
        Err(lost.join("; "))
    };
    report.step("hang", &step, &Outcome::from(result));
    report.step(
        "hang",
        "no renewal elsewhere has failed",
        &Outcome::from(clients.account()),
    );
    Ok(())
}

/// Who is missing where while time passes, at most a few of them.
pub(super) fn watch(servers: &[Server], clients: &Clients, time: Duration) -> Vec<String> {
    let started = Instant::now();
    let mut lost = Vec::new();
    while started.elapsed() < time && lost.len() < 5 {
        for server in servers {
            match server.target().get_json("/apps") {
                Ok(list) => {
                    let missing = clients.missing(&list);
                    let told = |id: &String| {
                        format!(
                            "{id} at {} after {:.1} s",
                            server.name,
                            started.elapsed().as_secs_f64()
                        )
                    };
                    lost.extend(missing.iter().map(told));
                }
                Err(why) => lost.push(format!("{}: {why}", server.name)),
            }
        }
        thread::sleep(Duration::from_millis(250));
    }
    lost
}
