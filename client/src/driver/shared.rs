//! What the client's task, its owner and its handles have in common: the agent behind a lock, and who waits for it.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use eureka_registry_core::Now;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::clock::Clock;
#[cfg(feature = "dns")]
use super::lookups::LookupStats;
use crate::agent::Agent;

/// The lock is held for one call of the agent, never while something is sent or somebody else's code runs.
pub(super) struct Shared {
    agent: Mutex<Agent>,
    pub(super) clock: Clock,
    /// The task has something to do.
    wake: Notify,
    /// Something happened: whoever waits for a state looks again.
    happened: Notify,
    /// A server confirmed that the instance is gone.
    cancelled: AtomicBool,
    ended: AtomicBool,
    panics: AtomicU64,
    #[cfg(feature = "dns")]
    lookups: Mutex<LookupStats>,
}

impl Shared {
    pub(super) fn new(clock: Clock, agent: Agent) -> Self {
        Self {
            agent: Mutex::new(agent),
            clock,
            wake: Notify::new(),
            happened: Notify::new(),
            cancelled: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            panics: AtomicU64::new(0),
            #[cfg(feature = "dns")]
            lookups: Mutex::default(),
        }
    }

    /// Looks at the agent.
    pub(super) fn look<T>(&self, look: impl FnOnce(&Agent) -> T) -> T {
        look(&self.agent.lock())
    }

    /// Changes the agent; the task looks what is to be done now.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Agent, Now) -> T) -> T {
        let changed = self.turn(change);
        self.wake.notify_one();
        changed
    }

    /// The same for the task itself, which looks anyway.
    pub(super) fn turn<T>(&self, change: impl FnOnce(&mut Agent, Now) -> T) -> T {
        let mut agent = self.agent.lock();
        // Behind the lock, or time would go back for the agent.
        let now = self.clock.now();
        change(&mut agent, now)
    }

    /// Waits for something to do.
    pub(super) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Tells those who wait that something happened.
    pub(super) fn happened(&self) {
        self.happened.notify_waiters();
    }

    /// Waits until `reached` says so; `None` if the client ends before that.
    pub(super) async fn until<T>(&self, reached: impl Fn(&Agent) -> Option<T>) -> Option<T> {
        loop {
            let happened = self.happened.notified();
            if let Some(reached) = self.look(&reached) {
                return Some(reached);
            }
            if self.has_ended() {
                return None;
            }
            happened.await;
        }
    }

    /// The instance has left; whether a server confirmed it.
    pub(super) fn left(&self, cancelled: bool) {
        self.cancelled.store(cancelled, Ordering::Release);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.happened();
    }

    pub(super) fn panicked(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// All sources were asked.
    #[cfg(feature = "dns")]
    pub(super) fn looked_up(&self, failed: bool, changed: bool, servers: usize) {
        let mut lookups = self.lookups.lock();
        lookups.lookups += 1;
        lookups.failed += u64::from(failed);
        lookups.changes += u64::from(changed);
        lookups.servers = servers;
    }

    #[cfg(feature = "dns")]
    pub(super) fn lookups(&self) -> LookupStats {
        *self.lookups.lock()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("ended", &self.has_ended())
            .finish_non_exhaustive()
    }
}
