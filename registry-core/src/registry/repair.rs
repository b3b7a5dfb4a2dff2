//! Repair between nodes of ours: what is asked, what is answered, and what is learned from answers.

mod plan;

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

use super::{Registry, before};
use crate::command::{Origin, Registered};
use crate::digest::{key_hash, shown_override};
use crate::lease::Lease;
use crate::model::InstanceKey;
use crate::repair::{
    BUCKETS, EXCHANGE_MAX, Entry, EntryState, LATE_MAX, LIST_MAX, Learned, Offer, RepairAnswer,
    RepairRequest, Step,
};
use crate::time::{Mono, Now};
use crate::watch::Moment;

/// At most this many leases are summed up per call on the way.
const SETTLED: usize = 64;
/// An exchange ends when it is about this long on the wire, in bytes.
const EXCHANGE_BYTES: usize = 1 << 20;
/// What a cancel takes on the wire, in bytes, about.
const CANCEL_BYTES: usize = 128;
/// A page of a copy looks at most at this many leases, those included that have run out.
const COPY_LOOKS: usize = 2 * EXCHANGE_MAX;

impl Registry {
    /// A step, filled in from what is here now. Nothing is changed but that what has settled is summed up.
    pub fn repair_request(&mut self, now: Now, step: &Step) -> RepairRequest {
        self.sum_up(now);
        match step {
            Step::Compare => RepairRequest::Compare {
                root: self.digest.root(),
                late: self.next_late(),
            },
            Step::List { buckets } => RepairRequest::List {
                buckets: buckets.clone(),
            },
            Step::Exchange { pull, push } => RepairRequest::Exchange {
                pull: pull.iter().take(EXCHANGE_MAX).cloned().collect(),
                push: self.offers(now, push),
            },
            Step::Copy { after } => RepairRequest::Copy { after: after.clone() },
        }
    }

    /// Answers another node's request; of an exchange, takes over what wins.
    pub fn repair_answer(&mut self, now: Now, origin: Origin, request: RepairRequest) -> RepairAnswer {
        self.sum_up(now);
        match request {
            RepairRequest::Compare { root, late } => {
                let own = self.digest.root();
                let differ = root != own;
                RepairAnswer::Compare {
                    root: own,
                    sums: if differ {
                        self.digest.sums().to_vec()
                    } else {
                        Vec::new()
                    },
                    gone: self.gone(now, &late),
                    ages: self.ages(now, late),
                }
            }
            RepairRequest::List { buckets } => RepairAnswer::List {
                entries: self.entries(now, &buckets),
            },
            RepairRequest::Exchange { pull, push } => {
                let push = push.into_iter().take(EXCHANGE_MAX);
                self.take_offers(now, &origin, Duration::ZERO, push);
                RepairAnswer::Exchange {
                    offers: self.offers(now, &pull),
                }
            }
            RepairRequest::Copy { after } => self.copy(now, after.as_ref()),
        }
    }

    /// Learns from the answer to `step`, which was asked at `asked`: ages in the answer are older by the time since then,
    /// which is more than the truth and never less.
    pub fn learn(
        &mut self,
        now: Now,
        origin: Origin,
        asked: Mono,
        step: &Step,
        answer: RepairAnswer,
    ) -> Learned {
        self.sum_up(now);
        let since = now.mono.since(asked);
        match (step, answer) {
            (
                Step::Compare,
                RepairAnswer::Compare {
                    root,
                    sums,
                    ages,
                    gone,
                },
            ) => {
                for (key, age) in ages.into_iter().take(LATE_MAX) {
                    self.hear_of(now, &key, age.saturating_add(since));
                }
                for (key, dirty, ago) in gone.into_iter().take(LATE_MAX) {
                    self.bury(now, origin.clone(), &key, dirty, ago);
                }
                self.differing(root, &sums)
            }
            (Step::List { buckets }, RepairAnswer::List { entries }) => {
                self.plan(now, since, buckets, entries)
            }
            (_, answer) => {
                let (learned, offers) = Self::offered(step, answer);
                learned.with_adopted(self.take_offers(now, &origin, since, offers))
            }
        }
    }

    /// What is learned from an answer that offers something, and what that is.
    pub(crate) fn offered(step: &Step, answer: RepairAnswer) -> (Learned, Vec<Offer>) {
        match (step, answer) {
            (Step::Exchange { pull, push }, RepairAnswer::Exchange { mut offers }) => {
                // Of what was asked for, and of each once: the rest would pass by the plan and by the rate.
                let mut asked: BTreeSet<&InstanceKey> = pull.iter().take(EXCHANGE_MAX).collect();
                offers.retain(|offer| asked.remove(&offer.key()));
                let learned = Learned::Exchanged {
                    adopted: 0,
                    received: offers.len(),
                    sent: push.len().min(EXCHANGE_MAX),
                };
                (learned, offers)
            }
            (
                Step::Copy { after },
                RepairAnswer::Copy {
                    mut offers,
                    more,
                    total,
                    held,
                },
            ) => {
                offers.truncate(EXCHANGE_MAX);
                let next = offers.last().map(Offer::key).filter(|_| more);
                if next.is_some() && next <= *after {
                    // It would lead round and round.
                    return (Learned::Nonsense, Vec::new());
                }
                let learned = Learned::Copied {
                    received: offers.len(),
                    next,
                    total,
                    held,
                };
                (learned, offers)
            }
            _ => (Learned::Nonsense, Vec::new()),
        }
    }

    /// A registration of a peer was refused for what it was, not for its age: the peer's heartbeats for it, if they are not
    /// newer, are taken and ignored for as long as cancels are remembered. Otherwise Java would send it for ever.
    pub fn refuse(&mut self, now: Now, key: &InstanceKey, dirty: i64) {
        self.observe(now);
        self.counters.refused += 1;
        self.refusals.add(Moment::of(now.mono), key, dirty);
    }

    /// Takes over what wins of what another node offers; `since` is how old the offers are. Tells how many changed
    /// something.
    pub(crate) fn take_offers(
        &mut self,
        now: Now,
        origin: &Origin,
        since: Duration,
        offers: impl IntoIterator<Item = Offer>,
    ) -> usize {
        let mut changed = 0;
        for offer in offers {
            changed += usize::from(self.take_offer(now, origin, since, offer));
        }
        changed
    }

    fn take_offer(&mut self, now: Now, origin: &Origin, since: Duration, offer: Offer) -> bool {
        match offer {
            Offer::Copy {
                instance,
                age,
                overridden,
            } => {
                let key = instance.key();
                let adopted = self.adopt(now, origin.clone(), instance, age.saturating_add(since));
                let merged = adopted != Registered::Refused
                    && overridden.is_some_and(|theirs| self.merge_override(now, origin, &key, theirs));
                adopted == Registered::Accepted || merged
            }
            // It is not made older: a cancel that looks older than it is may lose against a heartbeat before it.
            Offer::Gone { key, dirty, ago } => self.bury(now, origin.clone(), &key, dirty, ago),
        }
    }

    /// Another node heard of a lease so long ago.
    fn hear_of(&mut self, now: Now, key: &InstanceKey, age: Duration) {
        self.observe(now);
        let Some(slot) = self.leases.find(key) else { return };
        if age < self.leases.get(slot).lasts() {
            self.freshen(now, slot, before(now, age));
        }
    }

    fn sum_up(&mut self, now: Now) {
        self.observe(now);
        let ticks = self.ticks(now);
        let mut left = SETTLED;
        while left > 0 && self.digest.settle(ticks, &mut self.leases) {
            left -= 1;
        }
    }

    /// Late leases, each in its turn if there are many.
    fn next_late(&mut self) -> Vec<InstanceKey> {
        let late = self.leases.late();
        if late.len() <= LATE_MAX {
            self.late_from = 0;
        }
        let from = self.late_from.checked_rem(late.len()).unwrap_or(0);
        let turn = late[from..].iter().chain(&late[..from]).take(LATE_MAX);
        let keys: Vec<_> = turn.map(|slot| (*self.leases.get(*slot).key).clone()).collect();
        self.late_from = from + keys.len();
        keys
    }

    /// The ages of those that are held and have not run out.
    fn ages(&self, now: Now, keys: Vec<InstanceKey>) -> Vec<(InstanceKey, Duration)> {
        let known = keys.into_iter().take(LATE_MAX).filter_map(|key| {
            let lease = self.leases.get(self.leases.find(&key)?);
            let age = age(now, lease);
            (age < lease.lasts()).then_some((key, age))
        });
        known.collect()
    }

    /// The cancels of those that were cancelled here, or are known to have been.
    fn gone(&self, now: Now, keys: &[InstanceKey]) -> Vec<(InstanceKey, i64, Duration)> {
        let absent = keys
            .iter()
            .take(LATE_MAX)
            .filter(|key| self.leases.find(*key).is_none());
        let known = absent.filter_map(|key| {
            let tombstone = self.tombstones.get(key)?;
            Some((key.clone(), tombstone.dirty, elapsed(now, tombstone.at)))
        });
        known.collect()
    }

    fn differing(&self, root: u64, sums: &[u64]) -> Learned {
        if root == self.digest.root() {
            return Learned::Equal;
        }
        if sums.len() != BUCKETS {
            // Equal when it was asked, and changed since.
            return if sums.is_empty() {
                Learned::Equal
            } else {
                Learned::Nonsense
            };
        }
        let pairs = (0..).zip(self.digest.sums().iter().zip(sums));
        let buckets: Vec<u16> = pairs
            .filter(|(_, (ours, theirs))| ours != theirs)
            .map(|(bucket, _)| bucket)
            .collect();
        if buckets.is_empty() {
            return Learned::Equal;
        }
        Learned::Differ { buckets }
    }

    /// What these buckets hold, until there are enough.
    fn entries(&self, now: Now, buckets: &[u16]) -> Vec<Entry> {
        let mut entries = Vec::new();
        for bucket in buckets.iter().take(BUCKETS) {
            let bucket = self.bucket(now, *bucket).into_iter();
            entries.extend(bucket.map(|(_, entry)| entry));
            if entries.len() >= LIST_MAX {
                break;
            }
        }
        entries
    }

    /// What a bucket holds with the hashes of the keys, in the order of these: comparing keys takes longer.
    fn bucket(&self, now: Now, bucket: u16) -> Vec<(u64, Entry)> {
        let leases = self.digest.roster(bucket).iter();
        let held = leases.filter_map(|slot| {
            let lease = self.leases.get(*slot);
            Some((lease.part.hash(), self.entry(now, lease)?))
        });
        let gone = self.tombstones.of_bucket(bucket).map(|(key, tombstone)| {
            let entry = Entry {
                key: key.clone(),
                dirty: tombstone.dirty,
                state: EntryState::Gone {
                    ago: elapsed(now, tombstone.at),
                },
            };
            (key_hash(key), entry)
        });
        let mut entries: Vec<_> = held.chain(gone).collect();
        in_order(&mut entries);
        entries
    }

    fn entry(&self, now: Now, lease: &Lease) -> Option<Entry> {
        if !lease.part.is_in() {
            return None;
        }
        let state = match lease.part.settled() {
            None => EntryState::Moving,
            Some(content) => EntryState::Held {
                content,
                overridden: shown_override(lease),
                stamp: self.overrides.stamped(&lease.key).map(|stamped| stamped.stamp),
                age: age(now, lease),
            },
        };
        Some(Entry {
            key: (*lease.key).clone(),
            dirty: lease.dirty(),
            state,
        })
    }

    /// What is known of these keys, until it is enough.
    fn offers(&self, now: Now, keys: &[InstanceKey]) -> Vec<Offer> {
        let mut left = EXCHANGE_BYTES;
        let mut offers = Vec::new();
        for key in keys.iter().take(EXCHANGE_MAX) {
            let Some(offer) = self.offer(now, key) else {
                continue;
            };
            let size = size(&offer);
            if size > left && !offers.is_empty() {
                break;
            }
            left = left.saturating_sub(size);
            offers.push(offer);
        }
        offers
    }

    fn offer(&self, now: Now, key: &InstanceKey) -> Option<Offer> {
        if let Some(slot) = self.leases.find(key) {
            let lease = self.leases.get(slot);
            return (age(now, lease) < lease.lasts()).then(|| self.copy_of(now, lease));
        }
        let tombstone = self.tombstones.get(key)?;
        Some(Offer::Gone {
            key: key.clone(),
            dirty: tombstone.dirty,
            ago: elapsed(now, tombstone.at),
        })
    }

    fn copy_of(&self, now: Now, lease: &Lease) -> Offer {
        Offer::Copy {
            instance: lease.as_reported(),
            age: age(now, lease),
            overridden: self.overrides.stamped(&lease.key),
        }
    }

    /// A page of everything that has not run out.
    fn copy(&self, now: Now, after: Option<&InstanceKey>) -> RepairAnswer {
        let mut left = EXCHANGE_BYTES;
        let mut offers = Vec::new();
        let mut passed = None;
        let mut more = false;
        for (looks, key) in self.listing.keys(after).enumerate() {
            let Some(slot) = self.leases.find(&key) else {
                continue;
            };
            let lease = self.leases.get(slot);
            if age(now, lease) >= lease.lasts() && looks < COPY_LOOKS {
                passed = Some(slot);
                continue;
            }
            let offer = self.copy_of(now, lease);
            let size = size(&offer);
            if looks >= COPY_LOOKS || offers.len() >= EXCHANGE_MAX - 1 || (size > left && !offers.is_empty())
            {
                more = true;
                break;
            }
            left = left.saturating_sub(size);
            offers.push(offer);
            passed = None;
        }
        if more && let Some(slot) = passed {
            // It has run out and nobody takes it, but the next page begins behind it.
            offers.push(self.copy_of(now, self.leases.get(slot)));
        }
        RepairAnswer::Copy {
            offers,
            more,
            total: self.digest.len() + self.digest.moving(),
            held: self.phase != super::Phase::Open,
        }
    }
}

fn in_order(entries: &mut [(u64, Entry)]) {
    entries.sort_unstable_by(|(a, one), (b, other)| a.cmp(b).then_with(|| one.key.cmp(&other.key)));
}

/// How long ago any node heard of it.
fn age(now: Now, lease: &Lease) -> Duration {
    elapsed(now, lease.heard)
}

fn elapsed(now: Now, since: Moment) -> Duration {
    let age = Moment::of(now.mono).0.saturating_sub(since.0);
    Duration::from_millis(u64::try_from(age).unwrap_or(0))
}

/// About how many bytes it takes on the wire.
fn size(offer: &Offer) -> usize {
    match offer {
        Offer::Copy { instance, .. } => instance.encoded_bytes(),
        Offer::Gone { .. } => CANCEL_BYTES,
    }
}
