//! What to pull and what to push, after the lists of the buckets that differ.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::time::Duration;

use super::super::{Registry, before};
use super::in_order;
use crate::digest::{bucket, key_hash};
use crate::model::{InstanceKey, Status};
use crate::overrides::rank;
use crate::repair::{EXCHANGE_MAX, Entry, EntryState, LIST_MAX, Learned, Stamp, Stamped};
use crate::time::{Now, Wall};

/// At most this many leases are compared in one go.
const COMPARED: usize = 2 * LIST_MAX;

/// Both sides of a comparison, as far as they are a copy.
struct Copy {
    dirty: i64,
    content: u64,
    overridden: Stamped,
}

impl Registry {
    /// Compares what is in these buckets with what another node lists of them. `since` is how long ago it was asked.
    pub(super) fn plan(&self, now: Now, since: Duration, buckets: &[u16], entries: Vec<Entry>) -> Learned {
        let cut = entries.len() >= LIST_MAX;
        let mut last = None;
        let mut theirs: BTreeMap<u16, Vec<(u64, Entry)>> = BTreeMap::new();
        for entry in entries {
            let hash = key_hash(&entry.key);
            last = Some(bucket(hash));
            theirs.entry(bucket(hash)).or_default().push((hash, entry));
        }
        let (mut pull, mut push) = (Vec::new(), Vec::new());
        let mut compared = 0;
        let mut left = buckets.iter();
        for bucket in left.by_ref() {
            let ours = self.bucket(now, *bucket);
            let theirs = theirs.remove(bucket).unwrap_or_default();
            compared += ours.len() + theirs.len();
            for (key, ours, theirs) in pairs(ours, theirs) {
                let (take, give) = decide(now, since, ours.as_ref(), theirs.as_ref());
                if take {
                    pull.push(key.clone());
                }
                if give {
                    push.push(key);
                }
            }
            let full = compared >= COMPARED || pull.len() >= EXCHANGE_MAX || push.len() >= EXCHANGE_MAX;
            if full || (cut && last == Some(*bucket)) {
                break;
            }
        }
        pull.truncate(EXCHANGE_MAX);
        push.truncate(EXCHANGE_MAX);
        let left = left.copied().collect();
        Learned::Plan { pull, push, left }
    }
}

/// What both sides have of each key.
fn pairs(
    ours: Vec<(u64, Entry)>,
    mut theirs: Vec<(u64, Entry)>,
) -> impl Iterator<Item = (InstanceKey, Option<Entry>, Option<Entry>)> {
    in_order(&mut theirs);
    let mut ours = ours.into_iter().peekable();
    let mut theirs = theirs.into_iter().peekable();
    core::iter::from_fn(move || {
        let order = match (ours.peek(), theirs.peek()) {
            (Some((a, one)), Some((b, other))) => a.cmp(b).then_with(|| one.key.cmp(&other.key)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return None,
        };
        let ours = ours.next_if(|_| order.is_le()).map(|(_, entry)| entry);
        let theirs = theirs.next_if(|_| order.is_ge()).map(|(_, entry)| entry);
        let key = ours.as_ref().or(theirs.as_ref())?.key.clone();
        Some((key, ours, theirs))
    })
}

/// Whether to pull, and whether to push: both if the content of one side wins and the override of the other.
fn decide(now: Now, since: Duration, ours: Option<&Entry>, theirs: Option<&Entry>) -> (bool, bool) {
    const NOTHING: (bool, bool) = (false, false);
    let Some(theirs) = theirs else {
        let held = ours.is_some_and(|ours| matches!(ours.state, EntryState::Held { .. }));
        return (false, held);
    };
    let Some(ours) = ours else {
        return (matches!(theirs.state, EntryState::Held { .. }), false);
    };
    match (&ours.state, &theirs.state) {
        (EntryState::Moving, _) | (_, EntryState::Moving) => NOTHING,
        (EntryState::Gone { .. }, EntryState::Gone { .. }) => NOTHING,
        (EntryState::Held { .. }, EntryState::Held { .. }) => match (copy(ours), copy(theirs)) {
            (Some(ours), Some(theirs)) => compare(now, &ours, &theirs),
            _ => NOTHING,
        },
        (EntryState::Held { age, .. }, EntryState::Gone { ago }) => {
            let cancelled = (ours.dirty, before(now, *age)) <= (theirs.dirty, before(now, *ago));
            (cancelled, !cancelled)
        }
        (EntryState::Gone { ago }, EntryState::Held { age, .. }) => {
            let heard = before(now, age.saturating_add(since));
            let cancelled = (theirs.dirty, heard) <= (ours.dirty, before(now, *ago));
            (!cancelled, cancelled)
        }
    }
}

fn copy(entry: &Entry) -> Option<Copy> {
    let EntryState::Held {
        content,
        overridden,
        stamp,
        ..
    } = entry.state
    else {
        return None;
    };
    /// What was never overridden, as far as is known, is older than everything.
    const NEVER: Stamp = Stamp { at: Wall(0), node: 0 };
    Some(Copy {
        dirty: entry.dirty,
        content,
        overridden: Stamped {
            status: overridden.filter(|status| *status != Status::Unknown),
            stamp: stamp.unwrap_or(NEVER),
        },
    })
}

fn compare(now: Now, ours: &Copy, theirs: &Copy) -> (bool, bool) {
    let content = (theirs.dirty, theirs.content).cmp(&(ours.dirty, ours.content));
    let overridden = if ours.overridden.status == theirs.overridden.status {
        Ordering::Equal
    } else {
        rank(now.wall, theirs.overridden).cmp(&rank(now.wall, ours.overridden))
    };
    (
        content.is_gt() || overridden.is_gt(),
        content.is_lt() || overridden.is_lt(),
    )
}
