//! The newest view, shared: one publisher, any number of readers who never wait.

use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, Waker};
use std::time::Duration;

use arc_swap::ArcSwap;
use eureka_registry_core::{Now, Snapshot, Wall};
use parking_lot::Mutex;

use super::listeners::{ListenerGuard, Listeners};
use super::watch::{Subject, Update, Watch, changes};
use super::{Origin, View};
use crate::server::Server;

/// What is known of a registry, kept up to date by a client for as long as that lives. Cheap to clone; every clone sees
/// the same.
///
/// Reading takes no lock. When the client has ended, or no server answers, the last view stays, and its age grows.
#[derive(Clone)]
pub struct Cache {
    shared: Arc<Shared>,
}

/// The writing side of a [`Cache`]: the client's, or a test's. When it is dropped, watches end.
pub struct Publisher {
    shared: Arc<Shared>,
    /// Whether listeners are called by a [`Teller`].
    has_teller: bool,
}

/// Calls the listeners of a cache beside its publisher, so that one that blocks keeps no view from being shown.
pub(crate) struct Teller {
    cache: Cache,
    told: Arc<View>,
}

pub(super) struct Shared {
    view: ArcSwap<View>,
    clock: Box<dyn Fn() -> Now + Send + Sync>,
    waiting: Mutex<Waiting>,
    next_waiter: AtomicU64,
    listeners: Arc<Listeners>,
}

/// Who is to be woken by the next view. At most one waker for each watch and each call of `ready` under way.
#[derive(Default)]
struct Waiting {
    wakers: BTreeMap<u64, Waker>,
    closed: bool,
}

/// A place among those who wait, given back when dropped.
pub(super) struct Waiter {
    shared: Arc<Shared>,
    id: u64,
}

impl Publisher {
    /// An empty cache; `clock` is what its age is told by.
    pub fn new(clock: impl Fn() -> Now + Send + Sync + 'static) -> Self {
        Self {
            shared: Arc::new(Shared {
                view: ArcSwap::from_pointee(View::nothing()),
                clock: Box::new(clock),
                waiting: Mutex::default(),
                next_waiter: AtomicU64::new(0),
                listeners: Arc::default(),
            }),
            has_teller: false,
        }
    }

    /// From now on listeners are called by whoever runs the teller, and not by who publishes.
    pub(crate) fn teller(&mut self) -> Teller {
        self.has_teller = true;
        let cache = self.cache();
        let told = cache.view();
        Teller { cache, told }
    }

    /// The reading side.
    pub fn cache(&self) -> Cache {
        Cache {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Shows what a server told at `now`.
    pub fn publish(&self, now: Now, snapshot: Snapshot, server: Arc<Server>) {
        self.replace(View::of_server(now, snapshot, server));
    }

    /// Shows what the copy on disk holds, unless something is shown already; false if so.
    pub fn begin_with(&self, saved: Wall, snapshot: Snapshot) -> bool {
        let first = *self.shared.view.load().origin() == Origin::Nothing;
        if first {
            self.replace(View::of_disk(saved, snapshot));
        }
        first
    }

    /// Listeners are called before those who wait are woken, unless a teller does it: both see a view that is shown already.
    fn replace(&self, view: View) {
        let view = Arc::new(view);
        let before = self.shared.view.swap(Arc::clone(&view));
        if !self.has_teller {
            self.shared.tell(&before, view);
        }
        self.shared.wake(false);
    }
}

impl Teller {
    /// Runs until the publisher is gone and the last view has been told. Who is slow is told several changes as one.
    pub(crate) async fn run(mut self) {
        while let Some(newest) = self.cache.newer_than(&self.told).await {
            self.cache.shared.tell(&self.told, Arc::clone(&newest));
            self.told = newest;
        }
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.shared.wake(true);
    }
}

impl Cache {
    /// The newest view.
    pub fn view(&self) -> Arc<View> {
        self.shared.view.load_full()
    }

    /// How old the newest view is now; `None` if there is nothing. See [`View::age`]. While all is well it stays below the
    /// interval of polling, or 25 s where changes are told as they happen: so long a server waits before it says that
    /// nothing did.
    pub fn age(&self) -> Option<Duration> {
        let view = self.shared.view.load();
        view.age(self.now())
    }

    /// What the clock of this cache shows.
    pub fn now(&self) -> Now {
        (self.shared.clock)()
    }

    /// Waits for the first view of any origin; `None` if the client ended without one. Waits for ever if no server answers
    /// and there is no copy on disk: bound it with a time-out.
    pub fn ready(&self) -> impl Future<Output = Option<Arc<View>>> + Send + use<> {
        let cache = self.clone();
        async move {
            let waiter = cache.shared.waiter();
            poll_fn(|context| {
                let closed = waiter.wait(context.waker());
                let view = cache.view();
                if *view.origin() != Origin::Nothing {
                    Poll::Ready(Some(view))
                } else if closed {
                    Poll::Ready(None)
                } else {
                    Poll::Pending
                }
            })
            .await
        }
    }

    /// Waits for another view than `seen`; `None` if that is the last one, for the client has ended. A view that says the
    /// same of every instance is another one, too: it is confirmed later.
    pub async fn newer_than(&self, seen: &Arc<View>) -> Option<Arc<View>> {
        let waiter = self.shared.waiter();
        poll_fn(|context| {
            let closed = waiter.wait(context.waker());
            let view = self.view();
            if !Arc::ptr_eq(&view, seen) {
                Poll::Ready(Some(view))
            } else if closed {
                Poll::Ready(None)
            } else {
                Poll::Pending
            }
        })
        .await
    }

    /// Whether the client still keeps it up to date.
    pub fn is_live(&self) -> bool {
        !self.shared.waiting.lock().closed
    }

    /// What happens to the instances of an application, its name in any case. Begins with those that are there.
    pub fn watch(&self, app: &str) -> Watch {
        self.watch_subject(Subject::Application(app.into()))
    }

    /// The same for a virtual address.
    pub fn watch_vip(&self, vip: &str) -> Watch {
        self.watch_subject(Subject::Vip(vip.into()))
    }

    /// The same for a secure virtual address.
    pub fn watch_secure_vip(&self, vip: &str) -> Watch {
        self.watch_subject(Subject::SecureVip(vip.into()))
    }

    /// Calls `listener` with every change of anything, until the guard is dropped. All listeners are called by one task of the
    /// client's, one call after the other: one that takes long, or waits, holds up the others (and a thread of the runtime), but
    /// not the cache and not its watches, and what happens meanwhile comes as one change. A listener that panics is logged
    /// and called again with the next change.
    ///
    /// What is there already is no change. Look at [`Cache::view`] *after* this call, and nothing is missed.
    #[must_use = "the listener is gone when the guard is dropped"]
    pub fn on_change(&self, listener: impl Fn(&Update) + Send + Sync + 'static) -> ListenerGuard {
        Listeners::add(&self.shared.listeners, Box::new(listener))
    }

    fn watch_subject(&self, subject: Subject) -> Watch {
        Watch::new(self.shared.waiter(), self.clone(), subject)
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let view = self.view();
        f.debug_struct("Cache")
            .field("instances", &view.snapshot().len())
            .field("origin", view.origin())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Publisher").field(&self.cache()).finish()
    }
}

impl Shared {
    /// Calls the listeners, if there is anything to tell.
    fn tell(&self, before: &View, view: Arc<View>) {
        if self.listeners.is_empty() {
            return;
        }
        let differences = changes(view.snapshot().differences(before.snapshot()));
        if !differences.is_empty() {
            self.listeners.call(&Update { view, differences });
        }
    }

    fn waiter(self: &Arc<Self>) -> Waiter {
        Waiter {
            shared: Arc::clone(self),
            id: self.next_waiter.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Wakers run, are cloned and are dropped outside the lock: they are somebody else's code.
    fn wake(&self, last: bool) {
        let wakers = {
            let mut waiting = self.waiting.lock();
            waiting.closed |= last;
            std::mem::take(&mut waiting.wakers)
        };
        for waker in wakers.into_values() {
            waker.wake();
        }
    }
}

impl Waiter {
    /// Asks to be woken by the next view; true if there will be none. Whoever waits looks at the view *after* this, and
    /// misses nothing.
    pub(super) fn wait(&self, waker: &Waker) -> bool {
        let waker = waker.clone();
        let (closed, before) = {
            let mut waiting = self.shared.waiting.lock();
            let before = match waiting.closed {
                true => Some(waker),
                false => waiting.wakers.insert(self.id, waker),
            };
            (waiting.closed, before)
        };
        drop(before);
        closed
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let waker = {
            let mut waiting = self.shared.waiting.lock();
            waiting.wakers.remove(&self.id)
        };
        drop(waker);
    }
}
