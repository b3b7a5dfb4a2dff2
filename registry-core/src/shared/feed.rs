//! The changes for many readers: taken from the registry once, encoded once, queued for nobody.

use alloc::collections::BTreeMap;
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
/// At most this many bytes of instances are kept, by the measure of the log. What is encoded of them comes on top.
const KEPT_BYTES: usize = 16 << 20;

/// Follows the changes of a registry for many readers. The last ones are kept with whatever a frontend makes of them
/// (`T`: encoded forms, filled in by the first reader who needs them), so that one change costs one encoding however many
/// read it. Readers hold no queue: each pulls from a place of its own, and one that is too slow is told so.
///
/// ```
/// use std::{sync::{Arc, OnceLock}, task::{Context, Poll, Waker}, time::Duration};
/// use eureka_registry_core::{
///     Clock, Config, Event, Feed, Instance, News, Now, Origin, RegistryHandle, Told,
/// };
///
/// struct Stopped;
/// impl Clock for Stopped {
///     fn now(&self) -> Now {
///         Now::default()
///     }
/// }
/// let registry = RegistryHandle::new(Config::default(), Arc::new(Stopped), Arc::new(|_: &Event| {}));
/// let feed = Feed::<OnceLock<String>>::new(registry.clone(), 1_000);
/// let mut follower = feed.follow(registry.cursor(registry.snapshot().version()));
///
/// // Any runtime will do: this is what a stream does in its `poll_next`.
/// let mut context = Context::from_waker(Waker::noop());
/// assert!(follower.poll_news(&mut context, 64).is_pending());
///
/// let instance = Instance::new("orders", "host-1:orders:8080", "host-1", "10.0.0.1");
/// registry.register(Origin::Client, Arc::new(instance), Duration::ZERO);
/// let Poll::Ready(News::Changes(told)) = follower.poll_news(&mut context, 64) else {
///     panic!("there is one");
/// };
/// let encode = |told: &Told<OnceLock<String>>| {
///     told.encoded.get_or_init(|| format!("{:?} {}", told.change.action, told.change.key)).clone()
/// };
/// assert_eq!(encode(&told[0]), "Added ORDERS/host-1:orders:8080");
/// ```
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

/// The newest of the changes that somebody has read, by version. There may be gaps: of what nobody reads, nothing is kept.
struct Recent<T> {
    told: BTreeMap<u64, Arc<Told<T>>>,
    bytes: usize,
}

impl<T: Default> Feed<T> {
    /// A feed that keeps the last `kept` changes with what is encoded of them (fewer if their instances take more than
    /// 16 MiB). Readers that are farther behind are served from the log of the registry as long as it reaches, each with
    /// encodings of its own.
    pub fn new(registry: RegistryHandle, kept: usize) -> Arc<Self> {
        Arc::new(Self {
            registry,
            kept,
            recent: Mutex::new(Recent {
                told: BTreeMap::new(),
                bytes: 0,
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

    /// Whether it was [closed](Self::close).
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// At most `limit` changes after a cursor; none if there are none yet.
    fn after(&self, since: Cursor, limit: usize) -> News<T> {
        if since.boot() != self.registry.boot() {
            return News::Lost { foreign: true };
        }
        let version = since.version();
        if version == self.registry.version() {
            return News::Changes(Vec::new());
        }
        let mut recent = self.recent.lock();
        let kept = recent.after(version, limit);
        if !kept.is_empty() {
            return News::Changes(kept);
        }
        // Under the lock, so that of many readers at the same place one asks and the others find.
        let changes = match self.registry.changes(since, limit.min(PORTION)) {
            Changes::Since { changes, .. } => changes,
            Changes::Lost { current } => {
                let foreign = version > current;
                return News::Lost { foreign };
            }
        };
        let told = recent.take_in(changes);
        let dropped = recent.make_room(self.kept);
        drop(recent);
        // Frees encoded copies, perhaps many: not under the lock.
        drop(dropped);
        News::Changes(told)
    }
}

impl<T: Default> Recent<T> {
    /// At most `limit` changes after a version, up to the first that is not here.
    fn after(&self, version: u64, limit: usize) -> Vec<Arc<Told<T>>> {
        let next = version.saturating_add(1);
        let kept = self.told.range(next..).zip(next..);
        kept.take_while(|((version, _), next)| *version == next)
            .take(limit)
            .map(|((_, told), _)| Arc::clone(told))
            .collect()
    }

    /// Takes in what somebody reads.
    fn take_in(&mut self, changes: Vec<Change>) -> Vec<Arc<Told<T>>> {
        let take_in = |change: Change| {
            let told = self.told.entry(change.version).or_insert_with(|| {
                self.bytes += change.bytes();
                Arc::new(Told {
                    change,
                    encoded: T::default(),
                })
            });
            Arc::clone(told)
        };
        changes.into_iter().map(take_in).collect()
    }

    /// Gives back what is too much. Newer changes win: a reader far behind the others drives out none of theirs.
    fn make_room(&mut self, most: usize) -> Vec<Arc<Told<T>>> {
        let mut dropped = Vec::new();
        while self.told.len() > most || self.bytes > KEPT_BYTES {
            let Some((_, oldest)) = self.told.pop_first() else {
                break;
            };
            self.bytes -= oldest.change.bytes();
            dropped.push(oldest);
        }
        dropped
    }
}

/// One reader of a [`Feed`]: a place in the changes.
pub struct Follower<T> {
    feed: Arc<Feed<T>>,
    subscription: Subscription,
    since: Cursor,
}

impl<T: Default> Follower<T> {
    /// At most `limit` changes (and at least one) as soon as there are any. The task of the last poll is woken.
    pub fn poll_news(&mut self, context: &mut Context<'_>, limit: usize) -> Poll<News<T>> {
        let limit = limit.max(1);
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
                news @ (News::Lost { .. } | News::Closed) => return Poll::Ready(news),
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
