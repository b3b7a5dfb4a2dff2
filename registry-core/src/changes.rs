//! What changed, in order: for readers that follow with a cursor, and for the delta.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::command::{Origin, PeerId};
use crate::event::AppliedKind;
use crate::model::{Action, Instance, InstanceKey};
use crate::time::{Now, Wall};
use crate::watch::{Moment, Ticks};

/// One change of one instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The version of the registry that it made.
    pub version: u64,
    /// When it was applied here.
    pub at: Wall,
    /// Whom it concerns.
    pub key: InstanceKey,
    /// What it was.
    pub action: Action,
    /// The instance before it, if it was there.
    pub before: Option<Arc<Instance>>,
    /// The instance after it, or before it was deleted.
    pub instance: Arc<Instance>,
    /// By whom.
    pub author: Author,
    /// Why.
    pub cause: Cause,
}

impl Change {
    /// What it counts against limits, in bytes: about what it takes in memory.
    #[cfg(feature = "shared")]
    pub(crate) fn bytes(&self) -> usize {
        bytes(&self.instance, self.before.as_ref())
    }
}

/// Who made a change.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Author {
    /// A client.
    Client,
    /// An operator, by our own interfaces.
    Operator,
    /// The node itself, for its own instance.
    Own,
    /// Another server.
    Peer(PeerId),
    /// The node, because a lease ran out.
    Eviction,
}

impl From<Origin> for Author {
    fn from(origin: Origin) -> Self {
        match origin {
            Origin::Client => Self::Client,
            Origin::Operator => Self::Operator,
            Origin::Own => Self::Own,
            Origin::Peer(peer) => Self::Peer(peer),
        }
    }
}

/// Why something changed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Cause {
    /// It was registered, perhaps again.
    Registered,
    /// A renewal changed the status, by the rules for overrides.
    Renewed,
    /// It was cancelled.
    Cancelled,
    /// Its lease ran out.
    Expired,
    /// A status override was set.
    Overridden,
    /// A status override was removed.
    OverrideCleared,
    /// Metadata was changed.
    MetadataChanged,
    /// The copy of another node was taken over, or no more than its dirty timestamp: that of a cancel before a registration
    /// here.
    Adopted,
}

impl From<AppliedKind> for Cause {
    fn from(kind: AppliedKind) -> Self {
        match kind {
            AppliedKind::Registered => Self::Registered,
            AppliedKind::Renewed => Self::Renewed,
            AppliedKind::Cancelled => Self::Cancelled,
            AppliedKind::Overridden => Self::Overridden,
            AppliedKind::OverrideCleared => Self::OverrideCleared,
            AppliedKind::MetadataChanged => Self::MetadataChanged,
            AppliedKind::Adopted => Self::Adopted,
        }
    }
}

/// What a reader gets who has seen everything up to some version.
#[derive(Clone, Debug, PartialEq)]
pub enum Changes {
    /// The changes after that version, in order; more are there if the last one is older than `current`.
    Since {
        /// They.
        changes: Vec<Change>,
        /// The version of the registry now.
        current: u64,
    },
    /// Too many changes lie between, or the version is not of this registry: read a snapshot, and follow from its version.
    Lost {
        /// The version of the registry now.
        current: u64,
    },
}

/// At most this many changes make room for a new one. What a client may register displaces no more than these; after
/// something larger, which only a peer sends, the log is too long for the next few changes instead of the lock for long.
pub(crate) const DISPLACED: usize = 512;

/// The log. Each version is one change.
#[derive(Debug)]
pub(crate) struct ChangeLog {
    entries: VecDeque<Entry>,
    version: u64,
    limits: Limits,
    /// What the entries count.
    bytes: usize,
    /// Since when each version of the registry can be told by the time.
    known_since: Moment,
    /// Version of the first change that may still be in the delta.
    delta_from: u64,
    /// Instances that are gone and still in the delta, with the version of their last change.
    gone: BTreeMap<Arc<InstanceKey>, u64>,
}

/// How long the log may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Changes.
    pub(crate) count: usize,
    /// Bytes of the instances in them.
    pub(crate) bytes: usize,
}

/// What the log is told of a change besides what is left.
#[derive(Debug)]
pub(crate) struct Why {
    /// The instance before, if it was there.
    pub(crate) before: Option<Arc<Instance>>,
    /// By whom.
    pub(crate) author: Author,
    /// Why.
    pub(crate) cause: Cause,
}

#[derive(Debug)]
struct Entry {
    at: Ticks,
    moment: Moment,
    key: Arc<InstanceKey>,
    action: Action,
    instance: Arc<Instance>,
    why: Why,
    /// What it counts.
    bytes: usize,
}

impl ChangeLog {
    /// An empty log of a registry that starts at `now`.
    pub(crate) fn new(now: Moment, limits: Limits) -> Self {
        let smallest = size_of::<Entry>() + size_of::<Instance>();
        let most = limits.count.min(limits.bytes / smallest);
        Self {
            // It never grows: that would move everything at once, under the lock.
            entries: VecDeque::with_capacity(most + 1),
            version: 0,
            limits,
            bytes: 0,
            known_since: now,
            delta_from: 1,
            gone: BTreeMap::new(),
        }
    }

    /// The version of the registry.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// How many changes are kept.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// What they count in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Notes a change and gives its version. Others may have to make room for it: see [`displace`](Self::displace).
    pub(crate) fn push(
        &mut self,
        (now, moment): (Ticks, Moment),
        key: Arc<InstanceKey>,
        action: Action,
        instance: Arc<Instance>,
        why: Why,
    ) -> u64 {
        let bytes = bytes(&instance, why.before.as_ref());
        self.bytes += bytes;
        self.version += 1;
        self.entries.push_back(Entry {
            at: now,
            moment,
            key,
            action,
            instance,
            why,
            bytes,
        });
        self.version
    }

    /// Drops the oldest changes while there are too many, but never the newest one: whoever has seen all but that one is
    /// not lost. Stops at one that has to leave the delta, too, and gives that; `left` counts how many may still be dropped.
    pub(crate) fn displace(&mut self, left: &mut usize) -> Option<(u64, Arc<InstanceKey>)> {
        while *left > 0 && self.is_too_long() {
            *left -= 1;
            let first = self.first();
            let entry = self.entries.pop_front()?;
            self.bytes -= entry.bytes;
            self.known_since = entry.moment;
            if first >= self.delta_from {
                self.delta_from = first + 1;
                return Some((first, entry.key));
            }
        }
        None
    }

    fn is_too_long(&self) -> bool {
        let over = self.entries.len() > self.limits.count || self.bytes > self.limits.bytes;
        over && self.entries.len() > 1
    }

    /// When the oldest change in the delta was made.
    pub(crate) fn oldest_in_delta(&self) -> Option<Ticks> {
        let index = usize::try_from(self.delta_from.checked_sub(self.first())?).ok()?;
        self.entries.get(index).map(|entry| entry.at)
    }

    /// Takes from the delta the oldest change if it was made by `then`.
    pub(crate) fn leave_delta(&mut self, then: Ticks) -> Option<(u64, Arc<InstanceKey>)> {
        if self.oldest_in_delta()? > then {
            return None;
        }
        let version = self.delta_from;
        self.delta_from += 1;
        let index = usize::try_from(version - self.first()).ok()?;
        self.entries
            .get(index)
            .map(|entry| (version, Arc::clone(&entry.key)))
    }

    /// An instance is gone, but in the delta.
    pub(crate) fn set_gone(&mut self, key: Arc<InstanceKey>, version: u64) {
        self.gone.insert(key, version);
    }

    /// It is there again.
    pub(crate) fn clear_gone(&mut self, key: &InstanceKey) {
        if !self.gone.is_empty() {
            self.gone.remove(key);
        }
    }

    /// Forgets that it is gone if `version` was its last change; tells whether it was.
    pub(crate) fn forget_gone(&mut self, key: &InstanceKey, version: u64) -> bool {
        let last = self.gone.get(key) == Some(&version);
        if last {
            self.gone.remove(key);
        }
        last
    }

    /// At most `limit` changes after `version`.
    pub(crate) fn since(&self, now: Now, version: u64, limit: usize) -> Changes {
        let current = self.version;
        let next = version.saturating_add(1);
        let skipped = next
            .checked_sub(self.first())
            .and_then(|skipped| usize::try_from(skipped).ok())
            .filter(|skipped| *skipped <= self.entries.len());
        let Some(skipped) = skipped else {
            return Changes::Lost { current };
        };
        let changes = self
            .entries
            .range(skipped..)
            .zip(next..)
            .take(limit)
            .map(|(entry, version)| Change {
                version,
                at: entry.moment.wall(now),
                key: (*entry.key).clone(),
                action: entry.action,
                before: entry.why.before.clone(),
                instance: Arc::clone(&entry.instance),
                author: entry.why.author.clone(),
                cause: entry.why.cause,
            })
            .collect();
        Changes::Since { changes, current }
    }

    /// The version that the registry had at a moment, `None` if that is too long ago.
    pub(crate) fn version_at(&self, moment: Moment) -> Option<u64> {
        if moment < self.known_since {
            return None;
        }
        let later = self.entries.partition_point(|entry| entry.moment <= moment);
        Some(self.first() - 1 + later as u64)
    }

    /// The version of the oldest entry, or of the next one.
    fn first(&self) -> u64 {
        self.version + 1 - self.entries.len() as u64
    }
}

/// What a change counts: its instance, and the one before it if that is another (a cancel leaves it as it was).
fn bytes(instance: &Arc<Instance>, before: Option<&Arc<Instance>>) -> usize {
    let before = before.filter(|before| !Arc::ptr_eq(before, instance));
    size_of::<Entry>() + instance.held_bytes() + before.map_or(0, |before| before.held_bytes())
}

/// A registration or cancel, as the list of recent ones shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Recent {
    /// When.
    pub at: Wall,
    /// Who.
    pub key: InstanceKey,
}

/// At most this many are listed.
const RECENT: usize = 1_000;

/// The last registrations, or cancels.
#[derive(Debug, Default)]
pub(crate) struct Recents {
    entries: VecDeque<(Moment, InstanceKey)>,
}

impl Recents {
    /// Adds one.
    pub(crate) fn push(&mut self, now: Moment, key: &InstanceKey) {
        if self.entries.len() == RECENT {
            self.entries.pop_front();
        }
        self.entries.push_back((now, key.clone()));
    }

    /// All, newest first.
    pub(crate) fn list(&self, now: Now) -> Vec<Recent> {
        let newest_first = self.entries.iter().rev();
        newest_first
            .map(|(at, key)| Recent {
                at: at.wall(now),
                key: key.clone(),
            })
            .collect()
    }
}
