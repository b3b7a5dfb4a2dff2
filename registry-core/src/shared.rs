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

use crate::changes::{Changes, Recent};
use crate::command::{Changed, Command, Origin, PeerId, Registered, Renewal, Renewed, Reply};
use crate::config::{Config, Settle};
use crate::event::Event;
use crate::model::{Instance, InstanceKey, KeyRef, Status};
use crate::preservation::Preservation;
use crate::registry::Registry;
use crate::repair::{EXCHANGE_MAX, Learned, Offer, RepairAnswer, RepairRequest, Step};
use crate::snapshot::{LeaseView, Snapshot};
use crate::stats::{Reason, Stats};
use crate::time::{Mono, Now};

/// At most this many copies are taken over, or leases renewed, in one hold of the lock.
const PORTION: usize = 64;

mod cursor;
mod feed;
mod page_cache;
mod past;
mod subscription;

use subscription::Waiting;

pub use cursor::Cursor;
pub use feed::{Feed, Follower, News, Told};
pub use page_cache::{CachedPage, CachedPages, PageCache};
pub use past::{Past, PastError, Point};
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

    /// Whether it wants to hear of renewals that come so. Asked for each of them, while the registry is locked: to answer no
    /// spares the registry an event that nobody needs.
    fn hears_renewals(&self, origin: &Origin) -> bool {
        let _ = origin;
        true
    }
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
    registry: Mutex<Registry>,
    boot: u64,
    clock: Arc<dyn Clock>,
    sink: Arc<dyn EventSink>,
    /// The edition a snapshot taken now would have. Written under the lock of the registry.
    edition: AtomicU64,
    published: RwLock<Option<Snapshot>>,
    /// The version subscribers compare with. Written under the lock of the registry.
    version: AtomicU64,
    /// Tasks to wake at the next version.
    waiting: Mutex<Waiting>,
}

impl RegistryHandle {
    /// An empty registry whose reads are held until [`open`](Self::open).
    pub fn new(config: Config, clock: Arc<dyn Clock>, sink: Arc<dyn EventSink>) -> Self {
        let boot = cursor::boot(config.seed);
        let registry = Registry::new(clock.now(), config);
        Self {
            shared: Arc::new(Shared {
                boot,
                edition: AtomicU64::new(registry.edition()),
                version: AtomicU64::new(registry.version()),
                registry: Mutex::new(registry),
                clock,
                sink,
                published: RwLock::new(None),
                waiting: Mutex::new(Waiting::default()),
            }),
        }
    }

    /// See [`Registry::renew`]: the most frequent call by far.
    pub fn renew<'a>(
        &self,
        origin: Origin,
        key: impl Into<KeyRef<'a>>,
        last_dirty: Option<i64>,
        overridden: Option<Status>,
    ) -> Renewed {
        let renewal = Renewal {
            key: key.into(),
            last_dirty,
            overridden,
        };
        self.change(|registry, now| {
            registry.renew_telling(now, &origin, &renewal, self.shared.sink.hears_renewals(&origin))
        })
    }

    /// The same for many renewals of one sender, in their order; `each` is told what became of them. They are taken a portion
    /// at a time, so that nobody waits long for the lock, and `each` is called without it.
    pub fn renew_all<'a>(
        &self,
        origin: &Origin,
        renewals: impl IntoIterator<Item = Renewal<'a>>,
        mut each: impl FnMut(Renewed),
    ) {
        let mut renewals = renewals.into_iter().peekable();
        let mut outcomes = Vec::with_capacity(PORTION);
        while renewals.peek().is_some() {
            self.change(|registry, now| {
                let told = self.shared.sink.hears_renewals(origin);
                for renewal in renewals.by_ref().take(PORTION) {
                    outcomes.push(registry.renew_telling(now, origin, &renewal, told));
                }
            });
            outcomes.drain(..).for_each(&mut each);
        }
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
    pub fn open(&self, synced: usize, settle: Option<Settle>) {
        self.change(|registry, now| registry.open(now, synced, settle));
    }

    /// See [`Registry::accept_losses`].
    pub fn accept_losses(&self) {
        self.change(|registry, now| registry.accept_losses(now));
    }

    /// See [`Registry::peer_reachable`].
    pub fn peer_reachable(&self, peer: &PeerId, reachable: bool) {
        self.change(|registry, now| registry.peer_reachable(now, peer, reachable));
    }

    /// Does what is due, in one short hold of the lock, and tells how long it is until more is due, and what: zero if
    /// there was too much for one hold. Call it then, and at least once a second: a change may bring the next moment
    /// forward, and a process that did not call for longer counts as paused.
    pub fn handle_timeout(&self) -> Option<(Duration, Reason)> {
        self.change(|registry, now| {
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
            let mut registry = self.shared.registry.lock();
            // Whoever held the lock before may have been a reader with the same question.
            if let Some(snapshot) = self.published() {
                return snapshot;
            }
            let snapshot = registry.snapshot(self.now());
            self.shared.edition.store(snapshot.edition(), Ordering::Release);
            (snapshot.clone(), self.shared.published.write().replace(snapshot))
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

    /// See [`Registry::age`].
    pub fn age(&self, key: &InstanceKey) -> Option<Duration> {
        self.ask(|registry, now| registry.age(now, key))
    }

    /// At most `limit` changes after `since`. A cursor of another registry, or of this one before it was started again, is
    /// lost. See [`Registry::changes`].
    pub fn changes(&self, since: Cursor, limit: usize) -> Changes {
        self.ask(|registry, now| {
            if since.boot() == self.shared.boot {
                registry.changes(now, since.version(), limit)
            } else {
                let current = registry.version();
                Changes::Lost { current }
            }
        })
    }

    /// Which start of which registry this is; see [`Cursor::boot`].
    pub fn boot(&self) -> u64 {
        self.shared.boot
    }

    /// The version of the registry now: a count of the changes that readers can see.
    pub fn version(&self) -> u64 {
        self.shared.version.load(Ordering::Acquire)
    }

    /// The cursor of a reader who has seen everything up to `version`.
    pub fn cursor(&self, version: u64) -> Cursor {
        Cursor::new(self.shared.boot, version)
    }

    /// See [`Registry::overrides`].
    pub fn overrides(&self, after: Option<&InstanceKey>, limit: usize) -> Vec<(InstanceKey, Status)> {
        self.ask(|registry, _| registry.overrides(after, limit))
    }

    /// See [`Registry::repair_request`].
    pub fn repair_request(&self, step: &Step) -> RepairRequest {
        self.change(|registry, now| registry.repair_request(now, step))
    }

    /// See [`Registry::repair_answer`]. What is offered is taken over a little at a time, so that nobody waits long for the
    /// lock.
    pub fn repair_answer(&self, origin: Origin, mut request: RepairRequest) -> RepairAnswer {
        if let RepairRequest::Exchange { push, .. } = &mut request {
            let asked = self.now().mono;
            self.take_offers(&origin, asked, core::mem::take(push));
        }
        self.change(|registry, now| registry.repair_answer(now, origin, request))
    }

    /// See [`Registry::learn`]. What is offered is taken over a little at a time, so that nobody waits long for the lock.
    pub fn learn(&self, origin: Origin, asked: Mono, step: &Step, answer: RepairAnswer) -> Learned {
        match (step, answer) {
            (Step::Exchange { .. } | Step::Copy { .. }, answer) => {
                let (learned, offers) = Registry::offered(step, answer);
                let changed = self.take_offers(&origin, asked, offers);
                learned.with_adopted(changed)
            }
            (_, answer) => self.change(|registry, now| registry.learn(now, origin, asked, step, answer)),
        }
    }

    /// See [`Registry::refuse`].
    pub fn refuse(&self, key: &InstanceKey, dirty: i64) {
        self.change(|registry, now| registry.refuse(now, key, dirty));
    }

    /// Leases with their ages, in one hold of the lock: what a batch is filled in from.
    pub fn live<'a>(
        &self,
        keys: impl IntoIterator<Item = &'a InstanceKey>,
    ) -> Vec<Option<(LeaseView, Duration)>> {
        self.ask(|registry, now| {
            let live = |key| Some((registry.lease(now, key)?, registry.age(now, key)?));
            keys.into_iter().map(live).collect()
        })
    }

    /// See [`Registry::explain`].
    pub fn explain(&self) -> Preservation {
        self.ask(|registry, now| registry.survey(now)).sorted()
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

    /// Takes over offers that were asked for at `asked`; tells how many changed something.
    fn take_offers(&self, origin: &Origin, asked: Mono, mut offers: Vec<Offer>) -> usize {
        offers.truncate(EXCHANGE_MAX);
        let mut offers = offers.into_iter().peekable();
        let mut changed = 0;
        while offers.peek().is_some() {
            let portion = offers.by_ref().take(PORTION);
            changed += self
                .change(|registry, now| registry.take_offers(now, origin, now.mono.since(asked), portion));
        }
        changed
    }

    /// The published snapshot if it is current.
    fn published(&self) -> Option<Snapshot> {
        let edition = self.shared.edition.load(Ordering::Acquire);
        let published = self.shared.published.read();
        published
            .as_ref()
            .filter(|snapshot| snapshot.edition() == edition)
            .cloned()
    }

    fn ask<T>(&self, question: impl FnOnce(&Registry, Now) -> T) -> T {
        let registry = self.shared.registry.lock();
        question(&registry, self.now())
    }

    fn change<T>(&self, change: impl FnOnce(&mut Registry, Now) -> T) -> T {
        let mut waiting = WokenAtEnd {
            registry: self,
            news: false,
        };
        let mut registry = self.shared.registry.lock();
        let outcome = change(&mut registry, self.now());
        // Before the sink hears of it, which may panic: readers must not take the published snapshot for current.
        let (version, edition) = (registry.version(), registry.edition());
        waiting.news = version != self.shared.version.load(Ordering::Relaxed);
        // Most changes are renewals, and what readers look at stays in the caches of their processors.
        if waiting.news {
            self.shared.version.store(version, Ordering::Release);
        }
        if edition != self.shared.edition.load(Ordering::Relaxed) {
            self.shared.edition.store(edition, Ordering::Release);
        }
        while let Some(event) = registry.poll_event() {
            self.shared.sink.event(&event);
        }
        outcome
    }

    /// Wakes subscribers, outside all locks: a waker may run anything.
    fn wake(&self) {
        let wakers = self.shared.waiting.lock().take();
        for waker in wakers {
            waker.wake();
        }
    }
}

/// Subscribers to be woken if there is news, after the registry is unlocked, also when a sink panics: what was done is seen.
struct WokenAtEnd<'a> {
    registry: &'a RegistryHandle,
    news: bool,
}

impl Drop for WokenAtEnd<'_> {
    fn drop(&mut self) {
        if self.news {
            self.registry.wake();
        }
    }
}

impl fmt::Debug for RegistryHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryHandle").finish_non_exhaustive()
    }
}
