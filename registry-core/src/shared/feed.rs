//! The changes for many readers: taken from the registry once, encoded once, queued for nobody.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll};

use parking_lot::Mutex;

use super::{Cursor, RegistryHandle, Subscription};
use crate::changes::{Change, Changes};

/// Changes that are taken from the registry in one hold of its lock.
const PORTION: usize = 256;

/// Follows the changes of a registry for many readers. The last ones are kept with whatever a frontend makes of them
/// (`T`: encoded forms, filled in by the first reader who needs them), so that one change costs one encoding however many
/// read it. Readers hold no queue: each pulls from a place of its own, and one that is too slow is told so.
pub struct Feed<T> {
    registry: RegistryHandle,
    kept: usize,
    recent: Mutex<Recent<T>>,
    closed: AtomicBool,
}

/// A change with what a frontend has made of it.
#[derive(Debug)]
pub struct Told<T> {
    /// It.
    pub change: Change,
    /// Made of it, once for all readers.
    pub encoded: T,
}

/// What a [`Follower`] finds.
#[derive(Debug)]
pub enum News<T> {
    /// Changes, at least one, in order, none left out since the last ones.
    Changes(Vec<Arc<Told<T>>>),
    /// What lies between is not there any more: read a snapshot, and go on by [`Follower::restart`] from its version.
    Lost {
        /// The cursor is of another registry, or of this one before it was started again.
        foreign: bool,
    },
    /// There will be none: the node stops.
    Closed,
}

/// The last changes, up to `seen`.
struct Recent<T> {
    entries: VecDeque<Arc<Told<T>>>,
    seen: u64,
}

impl<T: Default> Feed<T> {
    /// A feed that keeps the last `kept` changes encoded; older ones are encoded for each reader alone as long as the registry
    /// has them.
    pub fn new(registry: RegistryHandle, kept: usize) -> Arc<Self> {
        let seen = registry.stats().version;
        Arc::new(Self {
            registry,
            kept: kept.max(1),
            recent: Mutex::new(Recent {
                entries: VecDeque::new(),
                seen,
            }),
            closed: AtomicBool::new(false),
        })
    }

    /// A reader who has seen everything up to `since`.
    pub fn follow(self: &Arc<Self>, since: Cursor) -> Follower<T> {
        Follower {
            feed: Arc::clone(self),
            subscription: self.registry.subscribe(),
            since,
        }
    }

    /// Ends all readers, now and in future: the node stops.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.registry.wake();
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// At most `limit` changes after a cursor; none if there are none yet.
    fn after(&self, since: Cursor, limit: usize) -> News<T> {
        if since.boot() != self.registry.boot() {
            return News::Lost { foreign: true };
        }
        {
            let mut recent = self.recent.lock();
            recent.catch_up(&self.registry, self.kept);
            if let Some(told) = recent.after(since.version(), limit) {
                return News::Changes(told);
            }
        }
        match self.registry.changes(since, limit) {
            Changes::Since { changes, .. } => News::Changes(
                changes
                    .into_iter()
                    .map(|change| Arc::new(Told::new(change)))
                    .collect(),
            ),
            Changes::Lost { .. } => News::Lost { foreign: false },
        }
    }
}

impl<T: Default> Recent<T> {
    /// Takes over what is new in the registry.
    fn catch_up(&mut self, registry: &RegistryHandle, kept: usize) {
        let current = registry.version();
        if current.saturating_sub(self.seen) > kept as u64 {
            // Nobody has read for long: who comes now has no use for what lies between.
            self.entries.clear();
            self.seen = current;
        }
        while self.seen < current {
            match registry.changes(registry.cursor(self.seen), PORTION) {
                Changes::Since { changes, .. } => {
                    let Some(last) = changes.last() else { return };
                    self.seen = last.version;
                    self.entries
                        .extend(changes.into_iter().map(|change| Arc::new(Told::new(change))));
                }
                Changes::Lost { current } => {
                    self.entries.clear();
                    self.seen = current;
                }
            }
        }
        let over = self.entries.len().saturating_sub(kept);
        self.entries.drain(..over);
    }

    /// At most `limit` changes after a version; `None` if they are not all here.
    fn after(&self, version: u64, limit: usize) -> Option<Vec<Arc<Told<T>>>> {
        let behind = usize::try_from(self.seen.checked_sub(version)?).ok()?;
        let skipped = self.entries.len().checked_sub(behind)?;
        Some(self.entries.range(skipped..).take(limit).cloned().collect())
    }
}

impl<T: Default> Told<T> {
    fn new(change: Change) -> Self {
        Self {
            change,
            encoded: T::default(),
        }
    }
}

/// One reader of a [`Feed`]: a place in the changes.
pub struct Follower<T> {
    feed: Arc<Feed<T>>,
    subscription: Subscription,
    since: Cursor,
}

impl<T: Default> Follower<T> {
    /// At most `limit` changes as soon as there are any. The task of the last poll is woken.
    pub fn poll_news(&mut self, context: &mut Context<'_>, limit: usize) -> Poll<News<T>> {
        loop {
            if self.feed.is_closed() {
                return Poll::Ready(News::Closed);
            }
            match self.feed.after(self.since, limit) {
                News::Changes(told) if told.is_empty() => {}
                News::Changes(told) => {
                    if let Some(last) = told.last() {
                        self.restart(last.change.version);
                    }
                    return Poll::Ready(News::Changes(told));
                }
                news => return Poll::Ready(news),
            }
            if self.subscription.poll_changed(context).is_pending() {
                // Closed between the look above and the waker's place: nobody would wake it.
                return if self.feed.is_closed() {
                    Poll::Ready(News::Closed)
                } else {
                    Poll::Pending
                };
            }
        }
    }

    /// Up to where it has read.
    pub fn cursor(&self) -> Cursor {
        self.since
    }

    /// Goes on from a version of this registry, of a snapshot for example.
    pub fn restart(&mut self, version: u64) {
        self.since = self.feed.registry.cursor(version);
    }
}

impl<T> fmt::Debug for Feed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed")
            .field("kept", &self.kept)
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Follower<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower")
            .field("since", &self.since)
            .finish_non_exhaustive()
    }
}
