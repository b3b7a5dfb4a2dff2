//! Who is called with every change.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;

use super::watch::Update;

type Listener = Box<dyn Fn(&Update) + Send + Sync>;

#[derive(Default)]
pub(super) struct Listeners {
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    /// In the order in which they came.
    listeners: Vec<(u64, Arc<Listener>)>,
    next: u64,
}

/// Keeps a listener; when it is dropped, the listener is gone. A call that has begun goes on to its end.
#[must_use = "the listener is gone when the guard is dropped"]
pub struct ListenerGuard {
    listeners: Arc<Listeners>,
    id: u64,
}

impl Listeners {
    pub(super) fn add(this: &Arc<Self>, listener: Listener) -> ListenerGuard {
        let mut held = this.held.lock();
        let id = held.next;
        held.next += 1;
        held.listeners.push((id, Arc::new(listener)));
        ListenerGuard {
            listeners: Arc::clone(this),
            id,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.lock().listeners.is_empty()
    }

    /// Calls each, without the lock: a listener may drop guards and add listeners.
    pub(super) fn call(&self, update: &Update) {
        let ids: Vec<u64> = self.held.lock().listeners.iter().map(|(id, _)| *id).collect();
        for id in ids {
            let Some(listener) = self.get(id) else { continue };
            if catch_unwind(AssertUnwindSafe(|| listener(update))).is_err() {
                tracing::error!("a listener of the instance cache panicked; it will be called again");
            }
        }
    }

    fn get(&self, id: u64) -> Option<Arc<Listener>> {
        let held = self.held.lock();
        let place = held.listeners.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(Arc::clone(&held.listeners[place].1))
    }
}

impl Drop for ListenerGuard {
    fn drop(&mut self) {
        // What the listener holds is dropped behind the lock: it may own a guard itself.
        let gone = {
            let mut held = self.listeners.held.lock();
            let place = held.listeners.binary_search_by_key(&self.id, |(id, _)| *id);
            place.ok().map(|place| held.listeners.remove(place))
        };
        drop(gone);
    }
}

impl fmt::Debug for ListenerGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ListenerGuard").field(&self.id).finish()
    }
}
