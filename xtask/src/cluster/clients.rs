//! Clients of a cluster while things break: they renew, register again when they are told to, and write all sorts of changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;

use super::servers::Server;
use crate::conformance::target::{Instance, Target, find_instance, instance_path, instances};

/// Failures that are told; all are counted.
const TOLD: usize = 5;

/// How a fleet of clients behaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habits {
    pub(super) per_server: usize,
    pub(super) heartbeat: Duration,
    pub(super) lease_seconds: u32,
    /// Whether each round also changes, registers and cancels something.
    pub(super) writes: bool,
}

/// Clients that renew, each at its own server. Dropping them ends them; their instances stay.
pub(super) struct Clients {
    app: String,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    habits: Habits,
    stopping: AtomicBool,
    fleets: Vec<Fleet>,
}

struct Fleet {
    target: Target,
    clients: Vec<Instance>,
    /// The server is meant to be down: nobody expects an answer.
    excused: AtomicBool,
    asked: AtomicU64,
    failed: AtomicU64,
    told: Mutex<Vec<String>>,
}

impl Clients {
    /// Registers clients at each server and lets them live.
    pub(super) fn start(servers: &[&Server], app: &str, habits: Habits) -> Self {
        let fleet = |(index, server): (usize, &&Server)| Fleet {
            target: server.target(),
            clients: (0..habits.per_server)
                .map(|number| Instance {
                    lease_seconds: habits.lease_seconds,
                    ..Instance::new(app, &format!("client-{index}-{number}"))
                })
                .collect(),
            excused: AtomicBool::new(false),
            asked: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            told: Mutex::default(),
        };
        let shared = Arc::new(Shared {
            habits,
            stopping: AtomicBool::new(false),
            fleets: servers.iter().enumerate().map(fleet).collect(),
        });
        for fleet in &shared.fleets {
            for client in &fleet.clients {
                fleet.register(client);
            }
        }
        let threads = (0..servers.len()).map(|index| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.live(index))
        });
        Self {
            app: app.to_owned(),
            threads: threads.collect(),
            shared,
        }
    }

    /// The server with this number is meant to be down, or no longer.
    pub(super) fn excuse(&self, index: usize, excused: bool) {
        self.shared.fleets[index]
            .excused
            .store(excused, Ordering::Relaxed);
    }

    /// What was asked of servers that were not excused, or what went wrong.
    pub(super) fn account(&self) -> Result<String, String> {
        let sum = |figure: fn(&Fleet) -> &AtomicU64| -> u64 {
            let fleets = self.shared.fleets.iter();
            fleets.map(|fleet| figure(fleet).load(Ordering::Relaxed)).sum()
        };
        let (asked, failed) = (sum(|fleet| &fleet.asked), sum(|fleet| &fleet.failed));
        if failed == 0 {
            return Ok(format!("{asked} requests"));
        }
        let told: Vec<String> = self
            .shared
            .fleets
            .iter()
            .flat_map(|fleet| fleet.told.lock().clone())
            .collect();
        Err(format!("{failed} of {asked}: {}", told.join("; ")))
    }

    /// Those of all clients that a list lacks.
    pub(super) fn missing(&self, list: &Value) -> Vec<String> {
        let clients = self.shared.fleets.iter().flat_map(|fleet| &fleet.clients);
        let missing = clients.filter(|client| find_instance(list, &self.app, &client.id).is_none());
        missing.map(|client| client.id.clone()).collect()
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            // What it did is accounted for.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn live(&self, index: usize) {
        let fleet = &self.fleets[index];
        let pause = self.habits.heartbeat / u32::try_from(fleet.clients.len().max(1)).unwrap_or(1);
        for round in 0_u64.. {
            for client in &fleet.clients {
                if self.stopping.load(Ordering::Relaxed) {
                    return;
                }
                thread::park_timeout(pause);
                fleet.renew(client);
            }
            if self.habits.writes {
                fleet.write(index, round);
            }
        }
    }
}

impl Fleet {
    fn renew(&self, client: &Instance) {
        let renewed = self
            .target
            .renew(&client.app, &client.id)
            .map(|answer| answer.status);
        // Unknown, or its override was removed: every client registers then.
        if self.note("renew", renewed.map_err(|error| error.to_string()), &[200, 404]) == Some(404) {
            self.register(client);
        }
    }

    fn register(&self, client: &Instance) {
        let registered = self.target.register(client).map(|answer| answer.status);
        self.note("register", registered.map_err(|error| error.to_string()), &[204]);
    }

    /// One of each kind of change.
    fn write(&self, index: usize, round: u64) {
        let Some(client) = self.clients.first() else {
            return;
        };
        let path = instance_path(&client.app, &client.id);
        let changes = [
            ("PUT", format!("{path}/metadata?round={round}")),
            ("PUT", format!("{path}/status?value=OUT_OF_SERVICE")),
            ("DELETE", format!("{path}/status?value=UP")),
        ];
        for (method, path) in changes {
            let answer = self
                .target
                .send(&self.target.request(method, &path))
                .map(|answer| answer.status);
            self.note("change", answer.map_err(|error| error.to_string()), &[200, 404]);
        }
        let id = |round: u64| format!("passing-{index}-{round}");
        self.register(&Instance {
            lease_seconds: client.lease_seconds,
            ..Instance::new(&client.app, &id(round))
        });
        if let Some(last) = round.checked_sub(1) {
            let cancelled = self
                .target
                .cancel(&client.app, &id(last))
                .map(|answer| answer.status);
            self.note(
                "cancel",
                cancelled.map_err(|error| error.to_string()),
                &[200, 404],
            );
        }
    }

    fn note(&self, what: &str, answer: Result<u16, String>, good: &[u16]) -> Option<u16> {
        if self.excused.load(Ordering::Relaxed) {
            return answer.ok();
        }
        self.asked.fetch_add(1, Ordering::Relaxed);
        match &answer {
            Ok(status) if good.contains(status) => {}
            // It came into the way of what was planted just now.
            _ if self.excused.load(Ordering::Relaxed) => {}
            _ => {
                self.failed.fetch_add(1, Ordering::Relaxed);
                let mut told = self.told.lock();
                if told.len() < TOLD {
                    told.push(format!("{what} at {}: {answer:?}", self.target));
                }
            }
        }
        answer.ok()
    }
}

/// What a list says of each instance that does not change with time.
pub(super) fn contents(list: &Value) -> Vec<String> {
    let mut contents: Vec<String> = instances(list)
        .into_iter()
        .map(|instance| {
            let names = [
                "app",
                "instanceId",
                "status",
                "overriddenStatus",
                "lastDirtyTimestamp",
                "metadata",
            ];
            names.map(|name| instance[name].to_string()).join(" ")
        })
        .collect();
    contents.sort();
    contents
}

/// Whether all servers list the same, and all clients.
pub(super) fn alike(servers: &[&Server], clients: &Clients) -> Result<String, String> {
    let mut first: Option<Vec<String>> = None;
    for server in servers {
        let list = server
            .target()
            .get_json("/apps")
            .map_err(|why| format!("{}: {why}", server.name))?;
        let missing = clients.missing(&list);
        if !missing.is_empty() {
            return Err(format!(
                "{} lacks {} clients: {}",
                server.name,
                missing.len(),
                missing[0]
            ));
        }
        let contents = contents(&list);
        match &first {
            None => first = Some(contents),
            Some(first) if *first == contents => {}
            Some(first) => {
                let differing = first.iter().find(|line| !contents.contains(line));
                let differing = differing.or_else(|| contents.iter().find(|line| !first.contains(line)));
                return Err(format!(
                    "{} and {} differ: {differing:?}",
                    servers[0].name, server.name
                ));
            }
        }
    }
    Ok(format!("{} instances", first.map_or(0, |list| list.len())))
}
