//! Both servers' lists, looked at all the time: an instance is in them, and once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;

use crate::conformance::target::{Target, instances};

const EVERY: Duration = Duration::from_millis(50);
/// What is told of what was seen; all is counted.
const TOLD: usize = 5;

/// Looks until it is dropped.
pub(super) struct Watch {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    app: String,
    nodes: Vec<Node>,
    done: AtomicBool,
    looks: AtomicU64,
    wrong: Mutex<Vec<String>>,
}

struct Node {
    name: &'static str,
    target: Target,
    /// Its lists count: it has been in one since it was started.
    complete: AtomicBool,
}

impl Watch {
    /// Lists count from the first that has the instance.
    pub(super) fn start(app: &str, nodes: impl IntoIterator<Item = (&'static str, Target)>) -> Self {
        let nodes = nodes.into_iter().map(|(name, target)| Node {
            name,
            target,
            complete: AtomicBool::new(false),
        });
        let shared = Arc::new(Shared {
            app: app.to_owned(),
            nodes: nodes.collect(),
            done: AtomicBool::new(false),
            looks: AtomicU64::new(0),
            wrong: Mutex::default(),
        });
        let threads = (0..shared.nodes.len()).map(|index| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.look(index))
        });
        Self {
            threads: threads.collect(),
            shared,
        }
    }

    /// A server was killed: when it is there again, it has to learn first.
    pub(super) fn forget(&self, index: usize) {
        self.shared.nodes[index].complete.store(false, Ordering::SeqCst);
    }

    /// Whether every server has been seen to list the instance.
    pub(super) fn complete(&self) -> Result<(), String> {
        let lacking = self.shared.nodes.iter();
        let mut lacking = lacking.filter(|node| !node.complete.load(Ordering::SeqCst));
        match lacking.next() {
            None => Ok(()),
            Some(node) => Err(format!("{} does not list it", node.name)),
        }
    }

    /// What was seen since the start.
    pub(super) fn verdict(&self) -> Result<String, String> {
        let wrong = self.shared.wrong.lock();
        if wrong.is_empty() {
            let looks = self.shared.looks.load(Ordering::Relaxed);
            return Ok(format!("listed once in each of {looks} lists"));
        }
        Err(wrong.iter().take(TOLD).cloned().collect::<Vec<_>>().join("; "))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.done.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // What it saw is told.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn look(&self, index: usize) {
        let node = &self.nodes[index];
        while !self.done.load(Ordering::Relaxed) {
            // Asked before: a list that is on its way while the server is killed does not count.
            let counts = node.complete.load(Ordering::SeqCst);
            if let Ok(list) = node.target.get_json("/apps") {
                let listed = instances(&list);
                let own = listed
                    .iter()
                    .filter(|instance| instance["app"] == *self.app)
                    .count();
                self.looks.fetch_add(1, Ordering::Relaxed);
                match own {
                    1 => node.complete.store(true, Ordering::SeqCst),
                    0 if !counts => {}
                    count => self.wrong.lock().push(format!("{} listed {count}", node.name)),
                }
            }
            thread::sleep(EVERY);
        }
    }
}
