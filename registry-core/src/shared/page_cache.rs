//! Snapshots page by page for readers who begin: what a frontend makes of a page is made once for all of them. Many come at
//! once when a node was started again.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use core::fmt;

use parking_lot::Mutex;

use crate::pages::Page;
use crate::snapshot::Snapshot;

/// Finds the pages that others read already, with whatever a frontend makes of them (`T`: an encoded form, filled in by the
/// first reader who needs it). It keeps nothing itself: pages live as long as somebody reads a snapshot they are in.
pub struct PageCache<T> {
    /// Of the newest snapshot that a reader began with.
    newest: Mutex<Weak<CachedPages<T>>>,
}

/// A snapshot with its pages.
#[derive(Debug)]
pub struct CachedPages<T> {
    snapshot: Snapshot,
    pages: Box<[Arc<CachedPage<T>>]>,
}

/// A page with what a frontend has made of it.
#[derive(Debug)]
pub struct CachedPage<T> {
    /// It.
    pub page: Arc<Page>,
    /// Made of it, once for all readers.
    pub encoded: T,
}

impl<T> PageCache<T> {
    /// The pages of `snapshot`: those that are in use already, also by readers of the snapshot before, and new ones with
    /// what `make` gives.
    pub fn pages(&self, snapshot: Snapshot, make: impl Fn() -> T) -> Arc<CachedPages<T>> {
        let mut newest = self.newest.lock();
        let before = newest.upgrade();
        if let Some(before) = &before
            && before.snapshot.edition() == snapshot.edition()
        {
            return Arc::clone(before);
        }
        let known = before.iter().flat_map(|before| &before.pages);
        let known: BTreeMap<u64, _> = known.map(|cached| (cached.page.number(), cached)).collect();
        let pages = snapshot.pages().map(|page| match known.get(&page.number()) {
            Some(cached) => Arc::clone(cached),
            None => Arc::new(CachedPage {
                page: Arc::clone(page),
                encoded: make(),
            }),
        });
        let pages = Arc::new(CachedPages {
            pages: pages.collect(),
            snapshot,
        });
        *newest = Arc::downgrade(&pages);
        drop(newest);
        // May be the last to hold the pages before: not under the lock.
        drop(before);
        pages
    }
}

impl<T> CachedPages<T> {
    /// The snapshot.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Its pages, in order.
    pub fn pages(&self) -> &[Arc<CachedPage<T>>] {
        &self.pages
    }
}

impl<T> Default for PageCache<T> {
    fn default() -> Self {
        Self {
            newest: Mutex::new(Weak::new()),
        }
    }
}

impl<T> fmt::Debug for PageCache<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageCache").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use core::time::Duration;

    use super::*;
    use crate::command::Origin;
    use crate::config::Config;
    use crate::model::Instance;
    use crate::registry::Registry;
    use crate::time::Now;

    #[test]
    fn readers_share_pages_that_did_not_change_and_nobody_keeps_them() {
        let now = Now::default();
        let mut registry = Registry::new(now, Config::default());
        let register = |registry: &mut Registry, id: usize| {
            let instance = Instance::new("a", &format!("{id:03}"), "host", "10.0.0.1");
            registry.register(now, Origin::Client, Arc::new(instance), Duration::ZERO);
            registry.snapshot(now)
        };
        let snapshot = (0..900)
            .map(|id| register(&mut registry, id))
            .last()
            .expect("900");
        let cache = PageCache::<()>::default();
        let first = cache.pages(snapshot.clone(), || ());
        assert!(Arc::ptr_eq(&first, &cache.pages(snapshot, || ())));
        let second = cache.pages(register(&mut registry, 900), || ());
        let pages = second.pages().len();
        let shared = first.pages().iter().zip(second.pages());
        let shared = shared.filter(|(one, other)| Arc::ptr_eq(one, other)).count();
        assert_eq!(
            (shared, pages > 2),
            (pages - 1, true),
            "all but the one that changed"
        );
        assert_eq!(second.snapshot().len(), 901);
        let page = Arc::downgrade(&second.pages()[0]);
        drop((first, second));
        assert!(page.upgrade().is_none());
    }
}
