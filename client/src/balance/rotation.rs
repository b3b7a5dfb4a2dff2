//! Who is next: the rules of balancing as a machine without clock, lock or cache.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use eureka_registry_core::{Instance, InstanceKey, Mono, Now, Status};

use super::outliers::{Health, Outliers};
use super::target::{Addressing, Endpoint};
use super::zones::Zones;

/// How instances are picked.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct BalanceConfig {
    /// Where instances are called.
    pub addressing: Addressing,
    /// Which zone is preferred, and how far.
    pub zones: Zones,
    /// When an instance is left out.
    pub outliers: Outliers,
    /// Of the order in which instances take turns: equal seeds and calls give equal picks. `None` draws one, so that
    /// callers that start together begin at different places.
    pub seed: Option<u64>,
}

/// Instances that take turns. [`Balancer`](super::Balancer) is this with a cache and a clock.
///
/// ```
/// use std::sync::Arc;
/// use eureka_client::balance::{BalanceConfig, Feedback, Rotation};
/// use eureka_registry_core::{Instance, Now};
///
/// let now = Now::default();
/// let mut rotation = Rotation::new(BalanceConfig::default());
/// let instances = ["a", "b"].map(|id| Arc::new(Instance::new("orders", id, id, "10.0.0.1")));
/// rotation.set_instances(now, &instances);
///
/// let first = rotation.pick(now, &[]).expect("both are UP");
/// let second = rotation.pick(now, &[]).expect("both are UP");
/// assert_ne!(first.key(), second.key());
/// rotation.feedback(now, &first, Feedback::Failed);
/// ```
#[derive(Debug)]
pub struct Rotation {
    config: BalanceConfig,
    /// In the order of their keys.
    entries: Vec<Entry>,
    listed: Listed,
    /// Who can be picked, the next one first: of the own zone if that is preferred, else all of them.
    near: VecDeque<usize>,
    /// Who can be picked besides.
    far: VecDeque<usize>,
    /// How much goes to `near`, if the own zone is preferred.
    share: Option<f64>,
    /// What `near` has of its next call.
    credit: f64,
    /// When the first one that is left out comes back.
    due: Option<Mono>,
    turn: u64,
    rng: fastrand::Rng,
    counts: Counts,
}

/// How many instances there are, and why some cannot be picked.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Listed {
    /// In any state.
    pub all: usize,
    /// Those that are UP.
    pub up: usize,
    /// Those that are UP and can be called: they have a host and a port that is enabled.
    pub callable: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    picks: u64,
    far: u64,
    last_resort: u64,
    succeeded: u64,
    failed: u64,
    disregarded: u64,
    ejections: u64,
    spared: u64,
}

/// What a rotation did, and how it stands.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Figures {
    /// How many instances there are.
    pub listed: Listed,
    /// How many are left out now.
    pub ejected: usize,
    /// Which part of the calls stays in the own zone; `None` if none is preferred.
    pub zone_share: Option<f64>,
    /// Instances that were picked.
    pub picks: u64,
    /// How many of them in another zone although the own one is preferred.
    pub picks_elsewhere: u64,
    /// How many of them although they were left out, because there was nobody else.
    pub picks_as_last_resort: u64,
    /// Reports of success.
    pub succeeded: u64,
    /// Reports of failure.
    pub failed: u64,
    /// Reports that told nothing about how the instance is now: it is gone, or left out, or was since.
    pub disregarded: u64,
    /// How often an instance was left out.
    pub ejections: u64,
    /// How often an instance would have been left out, but too many were already.
    pub spared: u64,
}

/// An instance whose turn it is.
#[derive(Clone, Debug)]
pub struct Picked {
    key: InstanceKey,
    instance: Arc<Instance>,
    endpoint: Endpoint,
    epoch: u64,
}

/// How a call to an instance went.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Feedback {
    /// It works, whatever it answered.
    Ok,
    /// No answer, or one that says that it cannot serve.
    Failed,
}

#[derive(Debug)]
struct Entry {
    key: InstanceKey,
    instance: Arc<Instance>,
    endpoint: Endpoint,
    health: Health,
    /// When it was picked, last; then chance. New ones draw lots.
    turn: (u64, u32),
}

/// Who has been picked stands between those who draw lots for the same turn.
const AMONG_EQUALS: u32 = 1 << 31;

impl Rotation {
    /// Nobody.
    pub fn new(config: BalanceConfig) -> Self {
        let seed = config.seed.unwrap_or_else(drawn);
        let mut rng = fastrand::Rng::with_seed(seed);
        Self {
            config,
            entries: Vec::new(),
            listed: Listed::default(),
            near: VecDeque::new(),
            far: VecDeque::new(),
            share: None,
            credit: rng.f64(),
            due: None,
            turn: 0,
            rng,
            counts: Counts::default(),
        }
    }

    /// These are the instances now, in any order and of any status. Who stays keeps its place and what was reported on it,
    /// unless it is called elsewhere now; who is new, or UP again, starts at a random place, so that it gets its part and no
    /// rush of callers.
    pub fn set_instances<'a>(&mut self, now: Now, instances: impl IntoIterator<Item = &'a Arc<Instance>>) {
        let mut held: BTreeMap<InstanceKey, Entry> = self
            .entries
            .drain(..)
            .map(|entry| (entry.key.clone(), entry))
            .collect();
        let turns: Vec<u64> = held.values().map(|entry| entry.turn.0).collect();
        let mut listed = Listed::default();
        let mut entries = BTreeMap::new();
        for instance in instances {
            listed.all += 1;
            if instance.status != Status::Up {
                continue;
            }
            listed.up += 1;
            let Some(endpoint) = Endpoint::of(instance, self.config.addressing) else {
                continue;
            };
            listed.callable += 1;
            let key = instance.key();
            let entry = match held.remove(&key) {
                Some(mut entry) => {
                    if entry.endpoint != endpoint {
                        entry.health.renew();
                    }
                    Entry {
                        instance: Arc::clone(instance),
                        endpoint,
                        ..entry
                    }
                }
                None => Entry {
                    key: key.clone(),
                    instance: Arc::clone(instance),
                    endpoint,
                    health: Health::default(),
                    turn: self.lot(&turns),
                },
            };
            entries.insert(key, entry);
        }
        self.entries = entries.into_values().collect();
        self.listed = listed;
        self.settle(now);
    }

    /// Whose turn it is, but none of `tried`. An instance that is left out is picked only if there is nobody else; `None` if
    /// there is not even such a one.
    pub fn pick(&mut self, now: Now, tried: &[InstanceKey]) -> Option<Picked> {
        self.wake(now);
        let near_first = self.near_is_next();
        let picked = if near_first {
            self.next_near(tried).or_else(|| self.next_far(tried))
        } else {
            self.next_far(tried).or_else(|| self.next_near(tried))
        };
        let chosen = picked.or_else(|| self.last_resort(tried))?;
        self.turn += 1;
        self.counts.picks += 1;
        let entry = &mut self.entries[chosen];
        entry.turn = (self.turn, AMONG_EQUALS);
        Some(Picked {
            key: entry.key.clone(),
            instance: Arc::clone(&entry.instance),
            endpoint: entry.endpoint.clone(),
            epoch: entry.health.epoch,
        })
    }

    /// How the call to an instance that was picked went. A success ends everything that is held against it. A failure
    /// counts unless it is left out, or was since it was picked.
    pub fn feedback(&mut self, now: Now, picked: &Picked, feedback: Feedback) {
        self.wake(now);
        match feedback {
            Feedback::Ok => self.counts.succeeded += 1,
            Feedback::Failed => self.counts.failed += 1,
        }
        let Ok(index) = self.entries.binary_search_by(|entry| entry.key.cmp(&picked.key)) else {
            self.counts.disregarded += 1;
            return;
        };
        let (limit, ejected) = (self.config.outliers.limit(self.entries.len()), self.ejected());
        let health = &mut self.entries[index].health;
        match feedback {
            Feedback::Ok => {
                if health.succeeded() {
                    self.settle(now);
                }
            }
            Feedback::Failed if health.until().is_some() || health.epoch != picked.epoch => {
                self.counts.disregarded += 1;
            }
            Feedback::Failed => {
                if !health.failed(&self.config.outliers) {
                    return;
                }
                if ejected >= limit {
                    self.counts.spared += 1;
                    return;
                }
                health.eject(now, &self.config.outliers);
                self.counts.ejections += 1;
                self.settle(now);
            }
        }
    }

    /// How many instances there are, and why some cannot be picked.
    pub fn listed(&self) -> Listed {
        self.listed
    }

    /// What it did, and how it stands: who is due back is counted as left out until somebody picks.
    pub fn figures(&self) -> Figures {
        Figures {
            listed: self.listed,
            ejected: self.ejected(),
            zone_share: self.share,
            picks: self.counts.picks,
            picks_elsewhere: self.counts.far,
            picks_as_last_resort: self.counts.last_resort,
            succeeded: self.counts.succeeded,
            failed: self.counts.failed,
            disregarded: self.counts.disregarded,
            ejections: self.counts.ejections,
            spared: self.counts.spared,
        }
    }

    fn ejected(&self) -> usize {
        self.entries.len() - self.near.len() - self.far.len()
    }

    /// Whether the next call stays: no chance in it, so a part of three quarters is three of any four.
    fn near_is_next(&mut self) -> bool {
        let Some(share) = self.share.filter(|share| *share < 1.0) else {
            return true;
        };
        self.credit += share;
        let stays = self.credit >= 1.0;
        if stays {
            self.credit -= 1.0;
        }
        stays
    }

    fn next_near(&mut self, tried: &[InstanceKey]) -> Option<usize> {
        next(&mut self.near, &self.entries, tried)
    }

    fn next_far(&mut self, tried: &[InstanceKey]) -> Option<usize> {
        let chosen = next(&mut self.far, &self.entries, tried)?;
        self.counts.far += 1;
        Some(chosen)
    }

    /// Among those that are left out, the one that was picked longest ago.
    fn last_resort(&mut self, tried: &[InstanceKey]) -> Option<usize> {
        let left_out = self.entries.iter().enumerate();
        let (chosen, _) = left_out
            .filter(|(_, entry)| entry.health.until().is_some() && !tried.contains(&entry.key))
            .min_by_key(|(_, entry)| entry.turn)?;
        self.counts.last_resort += 1;
        Some(chosen)
    }

    /// A place for somebody new: before one of the others, or behind all of them, each as likely.
    fn lot(&mut self, turns: &[u64]) -> (u64, u32) {
        match turns.get(self.rng.usize(..=turns.len())) {
            Some(turn) => (*turn, self.rng.u32(..AMONG_EQUALS)),
            None => (self.turn, self.rng.u32(AMONG_EQUALS..)),
        }
    }

    fn wake(&mut self, now: Now) {
        if self.due.is_some_and(|due| due <= now.mono) {
            self.settle(now);
        }
    }

    /// Lets those back whose time is over, and as many as are too many by now; then lines up who can be picked: whoever was
    /// picked longest ago comes first. So of two that could be picked all the time, none is ever picked twice in
    /// between.
    fn settle(&mut self, now: Now) {
        let limit = self.config.outliers.limit(self.entries.len());
        let mut left_out: Vec<(Mono, usize)> = Vec::new();
        for (index, entry) in self.entries.iter_mut().enumerate() {
            match entry.health.until() {
                Some(until) if until <= now.mono => entry.health.release(),
                Some(until) => left_out.push((until, index)),
                None => {}
            }
        }
        left_out.sort_unstable();
        let excess = left_out.len().saturating_sub(limit);
        for (_, index) in left_out.drain(..excess) {
            self.entries[index].health.release();
        }
        self.due = left_out.first().map(|(until, _)| *until);
        self.line_up();
    }

    fn line_up(&mut self) {
        let available = |entry: &Entry| entry.health.until().is_none();
        let mut line: Vec<usize> = (0..self.entries.len())
            .filter(|index| available(&self.entries[*index]))
            .collect();
        line.sort_unstable_by_key(|index| self.entries[*index].turn);
        let share = self.preference(&line);
        self.share = share;
        let own = self.config.zones.own.as_deref();
        let (near, far): (Vec<usize>, Vec<usize>) = line
            .into_iter()
            .partition(|index| share.is_none() || self.entries[*index].instance.zone() == own);
        self.near = near.into();
        self.far = far.into();
    }

    /// Which part of the calls the own zone gets, if it is preferred.
    fn preference(&self, line: &[usize]) -> Option<f64> {
        let own = self.config.zones.own.as_deref()?;
        let zones: Vec<Option<&str>> = line
            .iter()
            .map(|index| self.entries[*index].instance.zone())
            .collect();
        let here = zones.iter().filter(|zone| **zone == Some(own)).count();
        let different: BTreeSet<Option<&str>> = zones.into_iter().collect();
        self.config.zones.share(here, line.len(), different.len())
    }
}

impl Picked {
    /// Its key.
    pub fn key(&self) -> &InstanceKey {
        &self.key
    }

    /// The instance as it was known when it was picked.
    pub fn instance(&self) -> &Arc<Instance> {
        &self.instance
    }

    /// Where to call it.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }
}

/// A seed that is different each time: hash maps' keys are.
fn drawn() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Takes the first one that was not tried, and puts it at the end.
fn next(line: &mut VecDeque<usize>, entries: &[Entry], tried: &[InstanceKey]) -> Option<usize> {
    let place = line
        .iter()
        .position(|index| !tried.contains(&entries[*index].key))?;
    let chosen = line.remove(place)?;
    line.push_back(chosen);
    Some(chosen)
}
