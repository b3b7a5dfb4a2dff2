//! A whole cluster is restarted at once while real clients live: none of them may lose what it knows.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::clients::{Clients, Habits};
use super::servers::{Place, Server, Workshop};
use crate::conformance::drivers::{self, Driver};
use crate::conformance::report::{Outcome, Report};

const NAMES: [&str; 3] = ["whole-a", "whole-b", "whole-c"];
const APP: &str = "KIT-WHOLE";
const PER_SERVER: usize = 10;
const ANSWER: Duration = Duration::from_secs(30);
const START: Duration = Duration::from_secs(120);
const DOWN: Duration = Duration::from_secs(6);
/// After all servers are open again.
const WATCHED: Duration = Duration::from_secs(20);

/// Runs the scenario. Clients renew every 3 s here instead of 30, so the settling takes 5 s instead of 40.
pub(super) fn run(workshop: &Workshop, report: &Report) -> Result<()> {
    let (places, mut servers) = cluster(workshop)?;
    start(&mut servers)?;
    let habits = Habits {
        per_server: PER_SERVER,
        heartbeat: Duration::from_secs(3),
        lease_seconds: 9,
        writes: false,
    };
    let clients = Clients::start(&servers.iter().collect::<Vec<_>>(), APP, habits);
    for server in &mut servers {
        server.ready()?;
    }
    let urls: Vec<String> = places
        .iter()
        .map(|place| place.url(None).trim_end_matches('/').to_owned())
        .collect();
    let mut java = java_clients(workshop, &urls.join("/,"), report)?;
    let all = NAMES.len() * PER_SERVER;
    let mut watch = Watch {
        all,
        lost: Vec::new(),
    };
    for (name, driver) in &mut java {
        let warm = warm(driver, all);
        report.step(
            "restart",
            &format!("{name} knows all {all}"),
            &Outcome::from(warm),
        );
    }
    (0..NAMES.len()).for_each(|index| clients.excuse(index, true));
    servers.iter_mut().for_each(Server::kill);
    watch.look(&mut java, DOWN, &[]);
    start(&mut servers)?;
    let started = Instant::now();
    while servers
        .iter()
        .any(|server| server.target().get_json("/apps").is_err())
        && started.elapsed() < START
    {
        watch.look(&mut java, Duration::from_secs(1), &servers);
    }
    let held = started.elapsed();
    watch.look(&mut java, WATCHED, &servers);
    let told = format!("lists were held for {:.1} s", held.as_secs_f64());
    let kept = if watch.lost.is_empty() {
        Ok(told)
    } else {
        Err(watch.lost.join("; "))
    };
    let step = "the whole cluster is restarted: no client loses what it knows, no list is partial";
    report.step("restart", step, &Outcome::from(kept));
    drop(clients);
    Ok(())
}

fn cluster(workshop: &Workshop) -> Result<(Vec<Place>, Vec<Server>)> {
    let places = NAMES
        .into_iter()
        .map(|name| Place::new(name, 1))
        .collect::<Result<Vec<_>>>()?;
    let servers = places.iter().map(|place| {
        let others = places.iter().filter(|other| other.name != place.name);
        let peers: Vec<String> = others.map(|other| other.url(None)).collect();
        let settings = [
            "bootstrap.settle=5s",
            "bootstrap.retry-interval=1s",
            "replication.digest-interval=1s",
        ];
        workshop.ours(place, &peers, &settings)
    });
    let servers = servers.collect();
    Ok((places, servers))
}

fn start(servers: &mut [Server]) -> Result<()> {
    for server in &mut *servers {
        server.spawn()?;
    }
    servers.iter_mut().try_for_each(Server::listening)
}

/// The Java clients of the conformance kit, started against the cluster.
fn java_clients(workshop: &Workshop, urls: &str, report: &Report) -> Result<Vec<(String, Driver)>> {
    let drivers = drivers::Workshop::open(&workshop.folder_of_clients())?;
    let mut started = Vec::new();
    for client in drivers::manifest()?
        .into_iter()
        .filter(|client| client.language.eq_ignore_ascii_case("java"))
    {
        if let Some(command) = drivers::missing(&client.toolchain) {
            let outcome = Outcome::Skipped(format!("this machine has no {command}"));
            report.step("restart", &client.name, &outcome);
            continue;
        }
        drivers
            .install(&client.name, &client.install)
            .map_err(anyhow::Error::msg)?;
        let settings = [
            ("EUREKA_URL", urls.to_owned()),
            ("APP", format!("KIT-WATCHER-{}", client.name.to_uppercase())),
            ("INSTANCE_ID", format!("watcher:{}", client.name)),
            ("HOST_NAME", "watcher.kit.test".to_owned()),
            ("INSTANCE_PORT", "8080".to_owned()),
            ("RENEW_SECS", "3".to_owned()),
            ("LEASE_SECS", "9".to_owned()),
            ("FETCH_SECS", "1".to_owned()),
        ];
        let driver = drivers.start(&client, &settings)?;
        driver
            .registering(START)
            .map_err(anyhow::Error::msg)
            .with_context(|| client.name.clone())?;
        started.push((client.name.clone(), driver));
    }
    if started.is_empty() {
        report.step(
            "restart",
            "Java clients",
            &Outcome::Skipped("none could be started".to_owned()),
        );
    }
    Ok(started)
}

fn known(driver: &mut Driver) -> Result<usize, String> {
    let answer = driver.ask(&format!("find {APP}"), ANSWER)?;
    let count = answer.strip_prefix("found ").and_then(|count| count.parse().ok());
    count.ok_or(answer)
}

fn warm(driver: &mut Driver, all: usize) -> Result<String, String> {
    crate::conformance::http::poll(ANSWER, || match known(driver)? {
        count if count == all => Ok(String::new()),
        count => Err(format!("{count} of {all}")),
    })
}

/// What clients know and lists hold may not be less than everything.
struct Watch {
    all: usize,
    lost: Vec<String>,
}

impl Watch {
    fn look(&mut self, java: &mut [(String, Driver)], time: Duration, servers: &[Server]) {
        let started = Instant::now();
        while started.elapsed() < time && self.lost.len() < 5 {
            for (name, driver) in &mut *java {
                match known(driver) {
                    Ok(count) if count >= self.all => {}
                    other => self.lost.push(format!("{name} knows {other:?} of {}", self.all)),
                }
            }
            for server in servers {
                let Ok(list) = server.target().get_json("/apps") else {
                    continue;
                };
                let listed = crate::conformance::target::instances(&list);
                let count = listed
                    .into_iter()
                    .filter(|instance| instance["app"] == APP)
                    .count();
                if count < self.all {
                    self.lost
                        .push(format!("{} lists {count} of {}", server.name, self.all));
                }
            }
            thread::sleep(Duration::from_millis(300));
        }
    }
}
