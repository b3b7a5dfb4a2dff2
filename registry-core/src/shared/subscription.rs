//! Waiting for a change, under any runtime or none.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::future::poll_fn;
use core::sync::atomic::Ordering;
use core::task::{Context, Poll, Waker};

use super::Shared;

/// Waits for changes that a reader can see. Holds no queue: it remembers the last version it told, so a slow subscriber
/// misses versions but never the newest one. One place for a waker each, freed on drop.
pub struct Subscription {
    shared: Arc<Shared>,
    seen: u64,
    /// Where its waker goes, once it has waited.
    slot: Option<usize>,
}

impl Subscription {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let seen = shared.version.load(Ordering::Acquire);
        Self {
            shared,
            seen,
            slot: None,
        }
    }

    /// The version last told, at first the one at the time of subscribing.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// The version of the registry once it differs from [`seen`](Self::seen). The task of the last poll is woken.
    pub fn poll_changed(&mut self, context: &mut Context<'_>) -> Poll<u64> {
        if let Some(version) = self.news() {
            return Poll::Ready(version);
        }
        self.wait(context.waker());
        // A change between the first look and now found no waker.
        self.news().map_or(Poll::Pending, Poll::Ready)
    }

    /// The same as a future.
    pub async fn changed(&mut self) -> u64 {
        poll_fn(|context| self.poll_changed(context)).await
    }

    fn news(&mut self) -> Option<u64> {
        let version = self.shared.version.load(Ordering::Acquire);
        if version == self.seen {
            return None;
        }
        self.seen = version;
        Some(version)
    }

    fn wait(&mut self, waker: &Waker) {
        let mut waiting = self.shared.waiting.lock();
        let slot = *self.slot.get_or_insert_with(|| waiting.claim());
        waiting.wakers[slot] = Some(waker.clone());
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            self.shared.waiting.lock().release(slot);
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}

/// The wakers of all subscriptions that ever waited and still live.
#[derive(Default)]
pub(super) struct Waiting {
    wakers: Vec<Option<Waker>>,
    free: Vec<usize>,
}

impl Waiting {
    /// Takes the wakers; the places stay claimed.
    pub(super) fn take(&mut self) -> Vec<Waker> {
        self.wakers.iter_mut().filter_map(Option::take).collect()
    }

    fn claim(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.wakers.push(None);
            self.wakers.len() - 1
        })
    }

    fn release(&mut self, slot: usize) {
        self.wakers[slot] = None;
        self.free.push(slot);
    }
}
