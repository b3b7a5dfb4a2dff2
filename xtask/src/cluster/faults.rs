//! Three nodes of ours, and everything that can happen to one of them or to a link.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::clients::{Clients, Habits, alike};
use super::faulty::{Faulty, Mood};
use super::relay::Relay;
use super::servers::{Place, Server, Workshop};
use crate::conformance::http::poll;
use crate::conformance::report::{Outcome, Report};
use crate::conformance::target::Instance;

/// Short, so that a run takes minutes; all that follows from it is in proportion.
const LEASE_SECONDS: u32 = 9;
const HEARTBEAT: Duration = Duration::from_secs(3);
const DIGEST: Duration = Duration::from_secs(2);
const SETTINGS: [&str; 6] = [
    "bootstrap.settle=3s",
    "bootstrap.wait-when-empty=5s",
    "replication.digest-interval=2s",
    "registry.eviction-interval=1s",
    "replication.request-timeout=2s",
    "log.level=info",
];
/// After a fault is mended all servers must list the same within this time.
const CONVERGENCE: Duration = Duration::from_secs(40);
/// How long a fault lasts: longer than leases do.
const FAULT: Duration = Duration::from_secs(12);
/// More memory than this for a faulty peer is too much.
const GROWTH_MAX: u64 = 64 << 20;
const NAMES: [&str; 3] = ["fault-a", "fault-b", "fault-c"];

/// Runs the scenario; `pause` is how long a node is stopped.
pub(super) fn run(workshop: &Workshop, pause: Duration, report: &Report) -> Result<()> {
    let mut trio = Trio::start(workshop, report)?;
    trio.killed()?;
    trio.cut_one_way()?;
    trio.missed_cancel();
    trio.paused(pause)?;
    trio.faulty_peer()?;
    Ok(())
}

/// Three servers that know each other through relays.
struct Trio<'a> {
    report: &'a Report,
    servers: Vec<Server>,
    /// From the first to the second.
    relays: Vec<(usize, usize, Relay)>,
    /// A fourth peer of the first server.
    faulty: Faulty,
    clients: Clients,
}

impl<'a> Trio<'a> {
    fn start(workshop: &Workshop, report: &'a Report) -> Result<Self> {
        let places = [
            Place::new(NAMES[0], 1)?,
            Place::new(NAMES[1], 1)?,
            Place::new(NAMES[2], 1)?,
        ];
        let mut relays = Vec::new();
        for from in 0..3 {
            for to in (0..3).filter(|to| *to != from) {
                relays.push((from, to, Relay::new(places[to].address)?));
            }
        }
        let faulty = Faulty::new()?;
        let mut servers = Vec::new();
        for (index, place) in places.iter().enumerate() {
            let links = relays.iter().filter(|(from, _, _)| *from == index);
            let mut peers: Vec<String> = links.map(|(_, _, relay)| relay.url()).collect();
            if index == 0 {
                peers.push(faulty.url());
            }
            servers.push(workshop.ours(place, &peers, &SETTINGS));
        }
        for server in &mut servers {
            server.spawn()?;
        }
        for server in &mut servers {
            server.listening()?;
        }
        let clients = Clients::start(
            &servers.iter().collect::<Vec<_>>(),
            "KIT-FAULTS",
            Habits {
                per_server: 10,
                heartbeat: HEARTBEAT,
                lease_seconds: LEASE_SECONDS,
                writes: true,
            },
        );
        let mut trio = Self {
            report,
            servers,
            relays,
            faulty,
            clients,
        };
        for server in &mut trio.servers {
            server.ready()?;
        }
        trio.converge("three nodes");
        Ok(trio)
    }

    fn step(&self, step: &str, result: Result<String, String>) {
        self.report.step("faults", step, &Outcome::from(result));
    }

    /// All servers list the same, and no write has failed so far.
    fn converge(&self, after: &str) {
        let started = Instant::now();
        let servers: Vec<&Server> = self.servers.iter().collect();
        let alike = poll(CONVERGENCE, || alike(&servers, &self.clients));
        let told = alike.map(|what| format!("{what}, {:.1} s", started.elapsed().as_secs_f64()));
        self.step(&format!("{after}: all converge"), told);
        self.step(&format!("{after}: no write has failed"), self.clients.account());
    }

    fn relay(&self, from: usize, to: usize) -> &Relay {
        let link = self
            .relays
            .iter()
            .find(|(one, other, _)| (*one, *other) == (from, to));
        &link.expect("every two servers have a link").2
    }

    fn killed(&mut self) -> Result<()> {
        self.clients.excuse(2, true);
        self.servers[2].kill();
        thread::sleep(FAULT);
        self.servers[2].spawn()?;
        self.servers[2].ready()?;
        self.clients.excuse(2, false);
        self.converge("one killed and started again");
        Ok(())
    }

    /// A sends nothing to B; B sends to A as ever.
    fn cut_one_way(&mut self) -> Result<()> {
        self.relay(0, 1).cut();
        let lost: Vec<String> = self.watch_lists(FAULT * 2, &[0, 1, 2]);
        let never = if lost.is_empty() {
            Ok(String::new())
        } else {
            Err(lost.join("; "))
        };
        self.step("one link cut in one direction: nobody is lost anywhere", never);
        self.relay(0, 1).mend();
        self.converge("one link cut in one direction");
        Ok(())
    }

    /// What lists lack while time passes, at most a few of them.
    fn watch_lists(&self, time: Duration, at: &[usize]) -> Vec<String> {
        let started = Instant::now();
        let mut lost = Vec::new();
        while started.elapsed() < time && lost.len() < 5 {
            for index in at {
                let server = &self.servers[*index];
                match server.target().get_json("/apps") {
                    Ok(list) => lost.extend(
                        self.clients
                            .missing(&list)
                            .iter()
                            .map(|id| format!("{id} at {}", server.name)),
                    ),
                    Err(why) => lost.push(format!("{}: {why}", server.name)),
                }
            }
            thread::sleep(Duration::from_millis(300));
        }
        lost
    }

    /// A cancel that B does not hear of from A is repaired within two digest intervals, not after a lease.
    fn missed_cancel(&self) {
        let instance = Instance {
            lease_seconds: 90,
            ..Instance::new("KIT-FAULTS", "missed")
        };
        let (a, b) = (self.servers[0].target(), self.servers[1].target());
        let known = a
            .register(&instance)
            .map_err(|error| error.to_string())
            .and_then(|_| {
                poll(CONVERGENCE, || match b.instance(&instance.app, &instance.id)? {
                    Some(_) => Ok(()),
                    None => Err("B never had it".to_owned()),
                })
            });
        // Long enough for its entry to settle in the digests of both.
        thread::sleep(2 * DIGEST);
        self.relay(0, 1).cut();
        let cancelled = known.and_then(|()| {
            a.cancel(&instance.app, &instance.id)
                .map_err(|error| error.to_string())
        });
        let started = Instant::now();
        let gone = cancelled.and_then(|_| {
            poll(CONVERGENCE, || match b.instance(&instance.app, &instance.id)? {
                None => Ok(()),
                Some(_) => Err("B still has it".to_owned()),
            })
        });
        let took = started.elapsed();
        self.relay(0, 1).mend();
        let told = format!(
            "{:.1} s, digests every {} s",
            took.as_secs_f64(),
            DIGEST.as_secs()
        );
        let in_time = gone.and_then(|()| {
            if took <= 2 * DIGEST + Duration::from_millis(500) {
                Ok(told)
            } else {
                Err(told)
            }
        });
        self.step("a missed cancel is repaired within two digest intervals", in_time);
    }

    /// A node that is stopped and goes on loses nobody, and nobody loses its clients.
    fn paused(&mut self, pause: Duration) -> Result<()> {
        self.clients.excuse(2, true);
        self.servers[2].signal("STOP")?;
        thread::sleep(pause);
        self.servers[2].signal("CONT")?;
        let list = poll(CONVERGENCE, || self.servers[2].target().get_json("/apps"));
        let own = list.map(|list| {
            let missing = self.clients.missing(&list);
            missing
                .into_iter()
                .filter(|id| id.starts_with("client-2-"))
                .collect::<Vec<_>>()
        });
        let kept = own.and_then(|own| {
            if own.is_empty() {
                Ok(String::new())
            } else {
                Err(format!("lost {own:?}"))
            }
        });
        self.step(
            &format!("stopped for {} s: it keeps its own clients", pause.as_secs()),
            kept,
        );
        thread::sleep(HEARTBEAT);
        self.clients.excuse(2, false);
        self.converge("stopped and gone on");
        Ok(())
    }

    /// A peer of the first node answers nonsense: its clients do not notice, its memory stays, the others are served.
    fn faulty_peer(&mut self) -> Result<()> {
        let moods = [
            ("500", Mood::Status(500)),
            ("503", Mood::Status(503)),
            ("400", Mood::Status(400)),
            ("413", Mood::Status(413)),
            ("garbage", Mood::Garbage),
            ("an empty 200", Mood::Empty),
            ("nothing", Mood::Silent),
            ("not even a connection", Mood::Full),
        ];
        for (name, mood) in moods {
            let before = self.servers[0].memory().unwrap_or(0);
            let batches = self.faulty.batches();
            self.faulty.be(mood);
            thread::sleep(FAULT);
            let after = self.servers[0].memory().unwrap_or(u64::MAX);
            let told = format!(
                "{} batches, memory {:.1} MiB, {:+.1}",
                self.faulty.batches() - batches,
                after as f64 / f64::from(1 << 20),
                (after as f64 - before as f64) / f64::from(1 << 20)
            );
            let bounded = if after < before + GROWTH_MAX {
                Ok(told)
            } else {
                Err(told)
            };
            self.step(&format!("a peer answers {name}: memory stays bounded"), bounded);
            self.converge(&format!("a peer answers {name}"));
        }
        Ok(())
    }
}
