//! Start-up: from whom a node that begins empty has copied, and when its reads may be opened.
//!
//! The rules, in this order:
//!
//! 1. No peers, or none but this very node: open at once.
//! 2. Somebody gave a copy that is not empty and fits what it says of itself: open as soon as all peers that can be
//!    reached are merged. A peer that cannot be reached delays that by its first attempt; one whose copies never fit, by three;
//!    one that hangs or never ends, by half a minute.
//! 3. Everybody answered, and all are empty or hold their own lists: open, but hold reads for a while, in which clients come back.
//! 4. Otherwise somebody could not be asked and nobody had anything: wait, and try again now and then.
//!    After `wait_when_empty` open in any case.

use std::collections::BTreeMap;
use std::time::Duration;

use eureka_registry_core::{InstanceKey, Mono, PeerId, Settle};

use crate::config::Config;
use crate::message::Pulled;

/// So many copies in a row that do not fit: the peer counts as one that cannot be copied from.
const UNFIT: u32 = 3;
/// A copy that has twice as much as it is said to have, and this much more, has no end.
const SLACK: usize = 1_000;
/// Once one copy is there, nobody waits longer than this for the others: what they have, repair brings.
const COMPANY: Duration = Duration::from_secs(30);
/// Reads stay held until no renewal was answered Missing for this long.
const QUIET: Duration = Duration::from_secs(10);

/// The start-up of one node.
#[derive(Debug)]
pub(crate) struct Bootstrap {
    settle: Duration,
    wait_when_empty: Duration,
    retry_interval: Duration,
    began: Mono,
    phase: Phase,
    /// Since when somebody's copy is here and fits.
    checked: Option<Mono>,
    sources: BTreeMap<PeerId, Source>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    /// Who the peers are is not known yet.
    Waiting,
    Copying,
    Open,
}

/// One peer to copy from.
#[derive(Debug)]
struct Source {
    state: SourceState,
    /// Not before.
    next: Mono,
    /// Its last attempt failed, or it was never tried.
    failed: bool,
    /// Something was answered since it last failed: it is being copied from.
    answering: bool,
    unfit: u32,
    copy: Copy,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum SourceState {
    Pending,
    /// It has nothing.
    Empty,
    /// Its lists are held; it may have something already.
    Holding(usize),
    /// Copied, and it fits.
    Checked(usize),
    /// This very node.
    Own,
}

/// A copy in pages, under way.
#[derive(Debug, Default)]
struct Copy {
    after: Option<InstanceKey>,
    pages: usize,
    received: usize,
    /// Instances in all, as the first page said.
    total: usize,
}

/// What was decided, once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Opening {
    /// Instances copied from the peer that had most.
    pub(crate) synced: usize,
    /// If nobody had anything: how long reads are held.
    pub(crate) settle: Option<Settle>,
}

impl Bootstrap {
    /// The time that is waited at most begins.
    pub(crate) fn new(now: Mono, config: &Config) -> Self {
        Self {
            settle: config.settle,
            wait_when_empty: config.wait_when_empty,
            retry_interval: config.retry_interval,
            began: now,
            phase: Phase::Waiting,
            checked: None,
            sources: BTreeMap::new(),
        }
    }

    /// The peers to copy from. Once open, nobody is copied from any more.
    pub(crate) fn set_peers<'a>(&mut self, now: Mono, peers: impl Iterator<Item = &'a PeerId>) {
        if self.phase == Phase::Open {
            return;
        }
        self.phase = Phase::Copying;
        let mut old = std::mem::take(&mut self.sources);
        for peer in peers {
            let source = old.remove(peer).unwrap_or_else(|| Source::new(now));
            self.sources.insert(peer.clone(), source);
        }
    }

    /// When to ask this peer next, if it is still to be copied from.
    pub(crate) fn due(&self, peer: &PeerId) -> Option<Mono> {
        let source = self.sources.get(peer).filter(|_| self.phase == Phase::Copying)?;
        (source.state == SourceState::Pending).then_some(source.next)
    }

    /// Behind which key the next page begins.
    pub(crate) fn after(&self, peer: &PeerId) -> Option<InstanceKey> {
        self.sources.get(peer)?.copy.after.clone()
    }

    /// The peer has said who it is.
    pub(crate) fn reached(&mut self, peer: &PeerId) {
        if let Some(source) = self.sources.get_mut(peer) {
            source.answering = true;
        }
    }

    /// It is this very node: it does not count. It may turn out to be another one later.
    pub(crate) fn is_own(&mut self, peer: &PeerId) {
        if let Some(source) = self.sources.get_mut(peer)
            && source.state == SourceState::Pending
        {
            source.state = SourceState::Own;
        }
    }

    /// It is not this node after all.
    pub(crate) fn is_other(&mut self, now: Mono, peer: &PeerId) {
        if let Some(source) = self.sources.get_mut(peer)
            && source.state == SourceState::Own
        {
            *source = Source::new(now);
        }
    }

    /// It could not be asked, or not to the end.
    pub(crate) fn failed(&mut self, now: Mono, peer: &PeerId, retry_after: Option<Duration>) {
        if let Some(source) = self.sources.get_mut(peer) {
            source.failed = true;
            source.answering = false;
            let asked = retry_after.unwrap_or_default().min(self.wait_when_empty);
            source.next = now.after(self.retry_interval.max(asked));
        }
    }

    /// A page from a node of ours was taken over.
    pub(crate) fn copied(
        &mut self,
        now: Mono,
        peer: &PeerId,
        received: usize,
        next: Option<InstanceKey>,
        (total, held): (usize, bool),
    ) {
        let retry = now.after(self.retry_interval);
        let Some(source) = self.sources.get_mut(peer) else {
            return;
        };
        source.answering = true;
        let copy = &mut source.copy;
        if copy.pages == 0 {
            copy.total = total;
        }
        copy.pages += 1;
        copy.received += received;
        copy.after = next;
        let overlong = copy.received > copy.total.max(total).saturating_mul(2).saturating_add(SLACK);
        if copy.after.is_some() && !overlong {
            return;
        }
        let copy = std::mem::take(copy);
        let fits = !overlong && copy.fits(total);
        source.conclude(copy.received, fits, held, retry);
    }

    /// Everything of a Java server was taken over.
    pub(crate) fn pulled(&mut self, now: Mono, peer: &PeerId, pulled: Pulled) {
        let retry = now.after(self.retry_interval);
        if let Some(source) = self.sources.get_mut(peer) {
            source.answering = true;
            source.conclude(pulled.instances, pulled.checked, pulled.held, retry);
        }
    }

    /// Whether reads may be opened now: said once.
    pub(crate) fn decide(&mut self, now: Mono) -> Option<Opening> {
        if self.checked.is_none() && self.has_copy() {
            self.checked = Some(now);
        }
        let opening = match self.phase {
            Phase::Waiting => self.given_up(now),
            Phase::Copying => self.judge(now).or_else(|| self.given_up(now)),
            Phase::Open => None,
        }?;
        self.phase = Phase::Open;
        self.sources.clear();
        Some(opening)
    }

    /// Whether it is over.
    pub(crate) fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// When [`decide`](Self::decide) will open in any case.
    pub(crate) fn poll_timeout(&self) -> Option<Mono> {
        let in_any_case = self.began.after(self.wait_when_empty);
        let alone = self.checked.map(|since| since.after(COMPANY));
        (self.phase != Phase::Open).then(|| alone.map_or(in_any_case, |alone| alone.min(in_any_case)))
    }

    fn has_copy(&self) -> bool {
        let mut sources = self.sources.values();
        sources.any(|source| matches!(source.state, SourceState::Checked(_)))
    }

    fn judge(&self, now: Mono) -> Option<Opening> {
        let own = |source: &&Source| source.state != SourceState::Own;
        let sources = || self.sources.values().filter(own);
        let checked = self.has_copy();
        let waited = self.checked.is_some_and(|since| now >= since.after(COMPANY));
        let done = |source: &Source| source.state != SourceState::Pending;
        let nobody = sources().next().is_none();
        let complete = sources().all(|source| done(source) || source.cannot_be_had());
        if nobody || (checked && (complete || waited)) {
            Some(self.opening(None))
        } else if !checked && sources().all(done) {
            let left = self.wait_when_empty.saturating_sub(now.since(self.began));
            Some(self.opening(Some(Settle {
                at_least: self.settle.min(left),
                quiet: QUIET,
                at_most: left,
            })))
        } else {
            None
        }
    }

    fn given_up(&self, now: Mono) -> Option<Opening> {
        (now >= self.began.after(self.wait_when_empty)).then(|| self.opening(None))
    }

    fn opening(&self, settle: Option<Settle>) -> Opening {
        let had = self.sources.values().map(|source| match source.state {
            SourceState::Checked(instances) | SourceState::Holding(instances) => instances,
            SourceState::Pending | SourceState::Empty | SourceState::Own => 0,
        });
        Opening {
            synced: had.max().unwrap_or(0),
            settle,
        }
    }
}

impl Source {
    fn new(now: Mono) -> Self {
        Self {
            state: SourceState::Pending,
            next: now,
            failed: false,
            answering: false,
            unfit: 0,
            copy: Copy::default(),
        }
    }

    /// The copy is complete.
    fn conclude(&mut self, instances: usize, fits: bool, held: bool, retry: Mono) {
        self.state = match (held, fits, instances) {
            (true, _, _) => SourceState::Holding(instances),
            (false, true, 0) => SourceState::Empty,
            (false, true, _) => SourceState::Checked(instances),
            (false, false, _) => {
                self.unfit += 1;
                self.next = retry;
                SourceState::Pending
            }
        };
    }

    /// Nobody waits for it if another peer has given a copy.
    fn cannot_be_had(&self) -> bool {
        (self.failed && !self.answering) || self.unfit >= UNFIT
    }
}

impl Copy {
    /// One page is one moment: it fits exactly. Between several the registry moves on: by the difference of the totals,
    /// and by comings and goings that cancel out in them, one in a hundred.
    fn fits(&self, total: usize) -> bool {
        let moved = match self.pages {
            1 => 0,
            _ => self.total.abs_diff(total) + self.total.div_ceil(100),
        };
        self.received.abs_diff(total) <= moved
    }
}

#[cfg(test)]
mod tests;
