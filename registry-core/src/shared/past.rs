//! The registry as it was a while ago: the newest snapshot, with the changes since then undone.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::cmp::Ordering;
use core::error::Error;
use core::fmt;
use core::ops::Bound;

use super::{Cursor, RegistryHandle};
use crate::changes::Changes;
use crate::listing::listed;
use crate::model::{Instance, InstanceKey};
use crate::snapshot::Snapshot;
use crate::time::Wall;

/// Changes that are taken from the registry in one hold of its lock.
const PORTION: usize = 256;

/// A moment of the past.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Point {
    /// After the change that this cursor names.
    Cursor(Cursor),
    /// At this time by the wall clock of the node: after the last change made until then.
    Time(Wall),
}

/// Why the registry cannot be shown as it was.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PastError {
    /// Changes since then are not kept any more, or the node had not started.
    TooOld,
    /// The cursor is of another registry, or of this one before it was started again.
    Foreign,
    /// That is still to come.
    Future,
}

/// The registry as it was at a [`Point`]. Lease times are not part of it: nobody keeps those.
#[derive(Clone, Debug)]
pub struct Past {
    snapshot: Snapshot,
    version: u64,
    /// What was there then of what has changed since; `None` where nothing was.
    undone: BTreeMap<InstanceKey, Option<Arc<Instance>>>,
    len: usize,
}

impl RegistryHandle {
    /// The registry as it was, as far back as changes are kept (`Config::change_log_limit`, `Config::change_log_bytes`).
    /// Takes time with the number of changes since then, a portion of them in each hold of the lock.
    pub fn past(&self, point: Point) -> Result<Past, PastError> {
        let asked = match point {
            Point::Cursor(cursor) if cursor.boot() != self.boot() => return Err(PastError::Foreign),
            Point::Cursor(cursor) => cursor.version(),
            Point::Time(time) => self.ask(|registry, now| {
                if time > now.wall {
                    return Err(PastError::Future);
                }
                registry.version_at(now, time).ok_or(PastError::TooOld)
            })?,
        };
        // Taken after the time was looked up, and before the changes are: so it lies between.
        let snapshot = self.snapshot();
        if asked > snapshot.version() {
            return Err(PastError::Future);
        }
        let undone = self.undo(asked, snapshot.version())?;
        Ok(Past::new(snapshot, asked, undone))
    }

    /// For whatever changed after `version` and up to `until`: what was there before.
    fn undo(
        &self,
        version: u64,
        until: u64,
    ) -> Result<BTreeMap<InstanceKey, Option<Arc<Instance>>>, PastError> {
        let mut undone = BTreeMap::new();
        let mut seen = version;
        while seen < until {
            let Changes::Since { changes, .. } = self.changes(self.cursor(seen), PORTION) else {
                return Err(PastError::TooOld);
            };
            seen = changes.last().map_or(until, |last| last.version);
            for change in changes {
                if change.version <= until {
                    undone.entry(change.key).or_insert(change.before);
                }
            }
        }
        Ok(undone)
    }
}

impl Past {
    fn new(snapshot: Snapshot, version: u64, undone: BTreeMap<InstanceKey, Option<Arc<Instance>>>) -> Self {
        let there_now = undone.keys().filter(|key| snapshot.instance(key).is_some());
        let there_then = undone.values().flatten();
        let len = snapshot.len() - there_now.count() + there_then.count();
        Self {
            snapshot,
            version,
            undone,
            len,
        }
    }

    /// The version that the registry had then.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// How many instances there were.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there was none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All instances from the first one behind `after` on (from the very first for `None`), in the order of their keys.
    pub fn instances_after<'a>(
        &'a self,
        after: Option<&InstanceKey>,
    ) -> impl Iterator<Item = &'a Arc<Instance>> + use<'a> {
        let behind = (after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
        let mut now = self.snapshot.instances_after(after).peekable();
        let mut then = self.undone.range(behind).peekable();
        core::iter::from_fn(move || {
            loop {
                let order = match (now.peek(), then.peek()) {
                    (None, None) => return None,
                    (Some(_), None) => Ordering::Less,
                    (None, Some(_)) => Ordering::Greater,
                    (Some(view), Some((key, _))) => listed(key).order(*view),
                };
                if order.is_lt() {
                    return now.next().map(|view| &view.instance);
                }
                if order.is_eq() {
                    now.next();
                }
                if let Some((_, Some(instance))) = then.next() {
                    return Some(instance);
                }
            }
        })
    }
}

impl fmt::Display for PastError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooOld => "changes since then are not kept any more",
            Self::Foreign => "the cursor is of another server, or of this one before it was started again",
            Self::Future => "that is still to come",
        })
    }
}

impl Error for PastError {}
