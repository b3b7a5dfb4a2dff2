//! The registry behind one lock, for many threads.
//!
//! [`RegistryHandle`] is the only code that has to know the contract of the machine: read the clock inside the lock,
//! drain the events after every change, publish what readers see. Readers of the whole registry do not touch the lock
//! while nothing changed.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use parking_lot::{Mutex, RwLock};

use crate::changes::Recent;
use crate::command::{Changed, Command, Origin, Registered, Renewed, Reply};
use crate::config::Config;
use crate::event::Event;
use crate::model::{Instance, InstanceKey, Status};
use crate::preservation::Preservation;
use crate::registry::Registry;
use crate::snapshot::{LeaseView, Snapshot};
use crate::stats::{Reason, Stats};
use crate::time::Now;

mod subscription;

use subscription::Waiting;

pub use subscription::Subscription;

/// Where the time comes from. `mono` must never go back.
pub trait Clock: Send + Sync + 'static {
    /// Both clocks, now.
    fn now(&self) -> Now;
}

/// Who is told what happened. Closures are sinks.
pub trait EventSink: Send + Sync + 'static {
    /// Called in the order of the events *while the registry is locked*: be quick, and never call the registry.
    fn event(&self, event: &Event);
}

impl<F: Fn(&Event) + Send + Sync + 'static> EventSink for F {
    fn event(&self, event: &Event) {
        self(event);
    }
}

/// A registry shared by threads. Cheap to clone; all clones are the same registry.
///
/// A panic inside a call (of a sink, say) unlocks the registry and leaves it usable.
#[derive(Clone)]
pub struct RegistryHandle {
    shared: Arc<Shared>,
}

struct Shared {
    locked: Mutex<Locked>,
    clock: Arc<dyn Clock>,
    sink: Arc<dyn EventSink>,
    /// Changes whenever a new snapshot may differ from the published one. Written under the lock of the registry.
    edition: AtomicU64,
    published: RwLock<Option<Published>>,
    /// The version subscribers compare with. Written under the lock of the registry.
    version: AtomicU64,
    /// Tasks to wake at the next version.
    waiting: Mutex<Waiting>,
}

struct Locked {
    registry: Registry,
    /// The version at the last publication of `edition`.
    version: u64,
}

struct Published {
    edition: u64,
    snapshot: Snapshot,
}

impl RegistryHandle {
    /// An empty registry whose reads are held until [`open`](Self::open).
    pub fn new(config: Config, clock: Arc<dyn Clock>, sink: Arc<dyn EventSink>) -> Self {
        let registry = Registry::new(clock.now(), config);
        let version = registry.stats().version;
        Self {
            shared: Arc::new(Shared {
                locked: Mutex::new(Locked { registry, version }),
                clock,
                sink,
                edition: AtomicU64::new(0),
                published: RwLock::new(None),
                version: AtomicU64::new(version),
                waiting: Mutex::new(Waiting::default()),
            }),
        }
    }

    /// See [`Registry::renew`]: the most frequent call by far.
    pub fn renew(
        &self,
        origin: Origin,
        key: &InstanceKey,
        last_dirty: Option<i64>,
        overridden: Option<Status>,
    ) -> Renewed {
        self.change(|registry, now| registry.renew(now, origin, key, last_dirty, overridden))
    }

    /// See [`Registry::register`].
    pub fn register(&self, origin: Origin, instance: Arc<Instance>, age: Duration) -> Registered {
        self.change(|registry, now| registry.register(now, origin, instance, age))
    }

    /// See [`Registry::cancel`].
    pub fn cancel(&self, origin: Origin, key: &InstanceKey) -> Changed {
        self.change(|registry, now| registry.cancel(now, origin, key))
    }

    /// See [`Registry::set_override`].
    pub fn set_override(
        &self,
        origin: Origin,
        key: &InstanceKey,
        status: Status,
        last_dirty: Option<i64>,
    ) -> Changed {
        self.change(|registry, now| registry.set_override(now, origin, key, status, last_dirty))
    }

    /// See [`Registry::clear_override`].
    pub fn clear_override(
        &self,
        origin: Origin,
        key: &InstanceKey,
        status: Option<Status>,
        last_dirty: Option<i64>,
    ) -> Changed {
        self.change(|registry, now| registry.clear_override(now, origin, key, status, last_dirty))
    }

    /// See [`Registry::update_metadata`].
    pub fn update_metadata(
        &self,
        origin: Origin,
        key: &InstanceKey,
        entries: &[(Arc<str>, Arc<str>)],
    ) -> Changed {
        self.change(|registry, now| registry.update_metadata(now, origin, key, entries))
    }

    /// See [`Registry::apply`].
    pub fn apply(&self, origin: Origin, command: Command) -> Reply {
        self.change(|registry, now| registry.apply(now, origin, command))
    }

    /// See [`Registry::open`].
    pub fn open(&self, synced: usize, settle: Option<Duration>) {
        self.change_time(|registry, now| registry.open(now, synced, settle));
    }

    /// Does what is due, in one short hold of the lock, and tells how long it is until more is due, and what: zero if
    /// there was too much for one hold. Call it then, and at least once a second: a change may bring the next moment
    /// forward, and a process that did not call for longer counts as paused.
    pub fn handle_timeout(&self) -> Option<(Duration, Reason)> {
        self.change_time(|registry, now| {
            registry.handle_timeout(now);
            let (due, reason) = registry.poll_timeout()?;
            Some((due.since(now.mono), reason))
        })
    }

    /// Everything a reader needs, current. Does not touch the lock of the registry while nothing changed.
    pub fn snapshot(&self) -> Snapshot {
        if let Some(snapshot) = self.published() {
            return snapshot;
        }
        let (snapshot, old) = {
            let mut locked = self.shared.locked.lock();
            // Whoever held the lock before may have been a reader with the same question.
            if let Some(snapshot) = self.published() {
                return snapshot;
            }
            let snapshot = locked.registry.snapshot(self.now());
            let published = Published {
                edition: self.shared.edition.load(Ordering::Relaxed),
                snapshot: snapshot.clone(),
            };
            (snapshot, self.shared.published.write().replace(published))
        };
        // Frees many pages, perhaps: not under the lock.
        drop(old);
        snapshot
    }

    /// See [`Registry::find`].
    pub fn find(&self, key: &InstanceKey) -> Option<LeaseView> {
        self.ask(|registry, now| registry.find(now, key))
    }

    /// See [`Registry::find_by_id`].
    pub fn find_by_id(&self, id: &str) -> Option<LeaseView> {
        self.ask(|registry, now| registry.find_by_id(now, id))
    }

    /// See [`Registry::lease`].
    pub fn lease(&self, key: &InstanceKey) -> Option<LeaseView> {
        self.ask(|registry, now| registry.lease(now, key))
    }

    /// See [`Registry::explain`].
    pub fn explain(&self) -> Preservation {
        self.ask(|registry, now| registry.explain(now))
    }

    /// See [`Registry::stats`].
    pub fn stats(&self) -> Stats {
        self.ask(|registry, _| registry.stats())
    }

    /// See [`Registry::recent_registrations`].
    pub fn recent_registrations(&self) -> Vec<Recent> {
        self.ask(|registry, now| registry.recent_registrations(now))
    }

    /// See [`Registry::recent_cancels`].
    pub fn recent_cancels(&self) -> Vec<Recent> {
        self.ask(|registry, now| registry.recent_cancels(now))
    }

    /// What the clock of this registry shows.
    pub fn now(&self) -> Now {
        self.shared.clock.now()
    }

    /// A way to wait until something a reader can see has changed since now.
    pub fn subscribe(&self) -> Subscription {
        Subscription::new(Arc::clone(&self.shared))
    }

    /// The published snapshot if it is current.
    fn published(&self) -> Option<Snapshot> {
        let edition = self.shared.edition.load(Ordering::Acquire);
        let published = self.shared.published.read();
        let published = published
            .as_ref()
            .filter(|published| published.edition == edition);
        published.map(|published| published.snapshot.clone())
    }

    fn ask<T>(&self, question: impl FnOnce(&Registry, Now) -> T) -> T {
        let locked = self.shared.locked.lock();
        question(&locked.registry, self.now())
    }

    /// A change that readers can see only if it raised the version.
    fn change<T>(&self, change: impl FnOnce(&mut Registry, Now) -> T) -> T {
        let mut locked = self.shared.locked.lock();
        let outcome = change(&mut locked.registry, self.now());
        self.drain(&mut locked);
        let version = locked.registry.stats().version;
        if version == locked.version {
            return outcome;
        }
        self.publish(&mut locked, version);
        drop(locked);
        self.wake();
        outcome
    }

    /// The same for passing time, which changes what readers see without a new version, too.
    fn change_time<T>(&self, change: impl FnOnce(&mut Registry, Now) -> T) -> T {
        let mut locked = self.shared.locked.lock();
        let outcome = change(&mut locked.registry, self.now());
        self.drain(&mut locked);
        let version = locked.registry.stats().version;
        let changed = version != locked.version;
        self.publish(&mut locked, version);
        drop(locked);
        if changed {
            self.wake();
        }
        outcome
    }

    fn drain(&self, locked: &mut Locked) {
        while let Some(event) = locked.registry.poll_event() {
            self.shared.sink.event(&event);
        }
    }

    fn publish(&self, locked: &mut Locked, version: u64) {
        locked.version = version;
        self.shared.version.store(version, Ordering::Release);
        self.shared.edition.fetch_add(1, Ordering::Release);
    }

    /// Wakes subscribers, outside all locks: a waker may run anything.
    fn wake(&self) {
        let wakers = self.shared.waiting.lock().take();
        for waker in wakers {
            waker.wake();
        }
    }
}

impl fmt::Debug for RegistryHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryHandle").finish_non_exhaustive()
    }
}
