//! A client that changes fifty instances in turn, each marked with the number of the change, fifty times a second.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::json;

use crate::conformance::http::{self, Request};
use crate::conformance::target::{Instance, Target, instance_path};

pub(super) const APP: &str = "KIT-WATCHED";
const INSTANCES: u64 = 50;
const EVERY: Duration = Duration::from_millis(20);
/// After so many of them another instance comes, is overridden and goes.
const PASSING_EVERY: u64 = 5;
const ANSWER: Duration = Duration::from_secs(5);

/// Numbers in the order in which they were written, for each server.
#[derive(Clone, Debug, Default)]
pub(super) struct Log(Arc<Mutex<[Vec<u64>; 2]>>);

impl Log {
    /// Which instance this number marks.
    pub(super) fn id(number: u64) -> String {
        format!("i-{}", number % INSTANCES)
    }

    pub(super) fn push(&self, server: usize, number: u64) {
        let numbers = &mut self.0.lock()[server];
        if numbers.last() != Some(&number) {
            numbers.push(number);
        }
    }

    /// The instance and the number that were written before this one at this server.
    pub(super) fn before(&self, server: usize, number: u64) -> Option<(String, u64)> {
        let numbers = &self.0.lock()[server];
        let index = numbers.binary_search(&number).ok()?;
        let before = *numbers.get(index.checked_sub(1)?)?;
        Some((Self::id(before), before))
    }
}

/// The client; dropping it ends it.
pub(super) struct Writer {
    shared: Arc<Shared>,
    log: Log,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    pausing: AtomicBool,
    stopping: AtomicBool,
    /// Held while something is under way.
    working: Mutex<()>,
}

impl Writer {
    /// Begins at the first server; whenever one does not take a change, the other one is asked.
    pub(super) fn start(targets: &[Target; 2]) -> Self {
        let (shared, log) = (Arc::<Shared>::default(), Log::default());
        let (writing, written, targets) = (Arc::clone(&shared), log.clone(), targets.clone());
        Self {
            thread: Some(thread::spawn(move || writing.write(&targets, &written))),
            shared,
            log,
        }
    }

    pub(super) fn log(&self) -> Log {
        self.log.clone()
    }

    /// Stops writing for a while; nothing is under way when this returns.
    pub(super) fn pause(&self, pausing: bool) {
        self.shared.pausing.store(pausing, Ordering::SeqCst);
        drop(self.shared.working.lock());
    }

    /// A server starts with nothing.
    pub(super) fn starts(&self, server: usize) {
        self.log.0.lock()[server].clear();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            // What it did shows in what was seen.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn write(&self, targets: &[Target; 2], log: &Log) {
        let (mut server, mut number) = (0, 1);
        while !self.stopping.load(Ordering::SeqCst) {
            let started = Instant::now();
            let working = self.working.lock();
            if !self.pausing.load(Ordering::SeqCst) {
                log.push(server, number);
                if register(&targets[server], number) {
                    pass(&targets[server], number);
                    number += 1;
                } else {
                    server = 1 - server;
                }
            }
            drop(working);
            thread::sleep(EVERY.saturating_sub(started.elapsed()));
        }
    }
}

/// Whether the server has taken it.
fn register(target: &Target, number: u64) -> bool {
    let instance = Instance::new(APP, &Log::id(number));
    let mut body = instance.to_json();
    body["instance"]["metadata"] = json!({ "number": number.to_string() });
    let request = target.request("POST", &format!("/apps/{APP}")).json(&body);
    send(target, &request) == Some(204)
}

/// Changes of other kinds, in between.
fn pass(target: &Target, number: u64) {
    let id = |number: u64| format!("passing-{number}");
    let path = |number: u64| instance_path(APP, &id(number));
    let requests = match number % PASSING_EVERY {
        0 => vec![
            target
                .request("POST", &format!("/apps/{APP}"))
                .json(&Instance::new(APP, &id(number)).to_json()),
        ],
        2 => vec![target.request(
            "PUT",
            &format!("{}/status?value=OUT_OF_SERVICE", path(number - 2)),
        )],
        4 if number > 4 => vec![target.request("DELETE", &path(number - 4))],
        _ => Vec::new(),
    };
    for request in requests {
        // It may have gone with its server.
        send(target, &request);
    }
}

fn send(target: &Target, request: &Request) -> Option<u16> {
    let answer = http::exchange(&target.address, request, ANSWER);
    answer.ok().map(|answer| answer.status)
}
