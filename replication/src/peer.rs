//! The sending side of one peer: what waits for it, what is on its way, and when to try again.

mod aside;
mod bisect;
mod queue;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{AppliedKind, Event, Instance, InstanceKey, LeaseTerms, Mono, Now, Origin};

use self::aside::Aside;
use self::bisect::{Bisect, Plan, Suspect, Verdict};
use self::queue::{Note, Portion, Queue, Sent, Taken};
use crate::config::Config;
use crate::facts::{LinkState, PeerFacts, PeerKind};
use crate::message::{Action, Failure, Item, ItemOutcome, RequestId};
use crate::shaper::Shaper;

/// Most items in one batch to a node of ours.
const BATCH_ITEMS_OURS: usize = 4_000;
/// When the rate is used up, a batch waits until it may take what this share of a second allows, or everything that waits: many
/// small requests would cost both sides more than the wait.
const SHARE_OF_SECOND: usize = 20;
/// After a batch that was too large, each batch that passes lets the next one be larger by one part in so many.
const GROWTH: usize = 8;
/// What an item is answered with by a server that has no time for it.
const UNAVAILABLE: u16 = 503;

/// One peer, as far as sending goes.
#[derive(Debug)]
pub(crate) struct Peer {
    kind: PeerKind,
    linger: Duration,
    linger_java: Duration,
    items_java: usize,
    bytes_ours: usize,
    portion_rate: usize,
    queue: Queue,
    flight: Option<Flight>,
    bisect: Bisect,
    aside: Aside,
    shaper: Shaper,
    /// Most items in a batch, after the peer called one too large.
    most: usize,
    /// A single item was too large, and nothing has passed since.
    single_too_large: bool,
    behind: bool,
    flushing: bool,
    /// A batch failed since the flush began: there is no time for more.
    gave_up: bool,
    tally: Tally,
}

/// The batch on its way.
#[derive(Debug)]
struct Flight {
    id: RequestId,
    items: Vec<Sent>,
    oldest: Mono,
}

/// Counters of items, see [`PeerFacts`].
#[derive(Debug, Default)]
struct Tally {
    sent: u64,
    retries: u64,
    conflicts: u64,
    missing: u64,
    failed: u64,
    overflowed: u64,
    outdated: u64,
    poisoned: u64,
}

impl Peer {
    /// Nothing is known of it, and nothing waits.
    pub(crate) fn new(now: Now, config: &Config, seed: u64) -> Self {
        Self {
            kind: PeerKind::Unknown,
            linger: config.linger,
            linger_java: config.linger_java,
            items_java: config.batch_items_java.max(1),
            bytes_ours: config.batch_bytes,
            portion_rate: (config.max_rate as usize / SHARE_OF_SECOND).max(1),
            queue: Queue::new(config.queue_limit),
            flight: None,
            bisect: Bisect::new(),
            aside: Aside::default(),
            shaper: Shaper::new(now, config.max_rate, seed),
            most: usize::MAX,
            single_too_large: false,
            behind: false,
            flushing: false,
            gave_up: false,
            tally: Tally::default(),
        }
    }

    /// What it turned out to be; nothing is sent while that is unknown.
    pub(crate) fn set_kind(&mut self, _now: Now, kind: PeerKind) {
        if self.kind != kind {
            self.kind = kind;
            self.most = usize::MAX;
        }
    }

    /// What it is, as far as is known.
    pub(crate) fn kind(&self) -> PeerKind {
        self.kind
    }

    /// Something happened in the registry: perhaps the peer is to be told. What a peer sent, and what expired, is not.
    pub(crate) fn note(&mut self, now: Now, event: &Event) {
        if is_peers_renewal(event) {
            return;
        }
        match event {
            Event::Applied {
                key,
                kind,
                before,
                after,
                origin,
                ..
            } => {
                if origin.is_peer() || *kind == AppliedKind::Adopted {
                    self.note_peers_word(key, *kind);
                } else if let Some(action) = forwarded(*kind) {
                    let instance = after.as_deref().or(before.as_deref());
                    self.put(now, key, action, instance);
                }
            }
            Event::Expired { key, .. } => self.queue.expired(key),
            Event::Late { .. } | Event::Preserving(_) => {}
            // Events of a later version of the registry are not known to concern a peer.
            _ => {}
        }
    }

    /// The next batch, if one is due. It is in flight until [`batch_answered`](Self::batch_answered) or
    /// [`batch_failed`](Self::batch_failed) with the same id; there is never a second one.
    pub(crate) fn poll_batch(&mut self, now: Now, id: RequestId) -> Option<Vec<Item>> {
        if self.due()? > now.mono {
            return None;
        }
        let items = self.shaper.allowance(now).min(self.batch_items());
        let portion = Portion {
            kind: self.kind,
            items,
            bytes: self.bytes_ours,
        };
        let taken = self.take(now, portion)?;
        let oldest = taken.iter().map(|sent| sent.since).min()?;
        self.shaper.spend(now, taken.len());
        let items = taken.iter().map(Sent::item).collect();
        self.flight = Some(Flight {
            id,
            items: taken,
            oldest,
        });
        Some(items)
    }

    /// The batch was answered, item by item. Returned are the peer's newer copies, to be adopted.
    pub(crate) fn batch_answered(
        &mut self,
        now: Now,
        id: RequestId,
        outcomes: Vec<ItemOutcome>,
    ) -> Vec<Arc<Instance>> {
        let Some(flight) = self.flight.take_if(|flight| flight.id == id) else {
            return Vec::new();
        };
        if flight.items.len() != outcomes.len() {
            let text = format!("answered {} items of {}", outcomes.len(), flight.items.len());
            self.flight = Some(flight);
            self.batch_failed(now, id, Failure::Unreachable, &text.into(), None);
            return Vec::new();
        }
        let proven = outcomes.iter().any(|outcome| *outcome != ItemOutcome::Void);
        let busy = outcomes.contains(&ItemOutcome::Failed(UNAVAILABLE));
        self.bisect.passed(&suspects(&flight.items), proven);
        let mut newer = Vec::new();
        for (sent, outcome) in flight.items.into_iter().zip(outcomes) {
            newer.extend(self.item_answered(now, sent, outcome));
        }
        self.trim();
        if !proven {
            // Nothing was sent, because there was nothing left to say: that tells nothing of the peer.
            return newer;
        }
        self.single_too_large = false;
        self.most = self.most.saturating_add(self.most.div_ceil(GROWTH));
        if busy {
            let text = Arc::from("has no time for single items (503)");
            self.tally.retries += 1;
            self.shaper.failed(now, Failure::Busy, &text, None);
        } else {
            self.shaper.answered(now);
        }
        newer
    }

    /// The batch failed as a whole: what was in it waits again. `text` is for people.
    pub(crate) fn batch_failed(
        &mut self,
        now: Now,
        id: RequestId,
        failure: Failure,
        text: &Arc<str>,
        retry_after: Option<Duration>,
    ) {
        let Some(Flight { mut items, .. }) = self.flight.take_if(|flight| flight.id == id) else {
            return;
        };
        self.tally.retries += 1;
        self.gave_up = true;
        match failure {
            Failure::Busy | Failure::Unreachable | Failure::Own => {
                self.shaper.failed(now, failure, text, retry_after);
            }
            Failure::Misconfigured => {
                self.bisect.stop();
                self.shaper.failed(now, failure, text, None);
            }
            Failure::TooLarge if items.len() > 1 => {
                self.most = items.len() / 2;
                self.shaper.complain(text);
            }
            // Two of them in a row: it refuses everything.
            Failure::TooLarge if self.single_too_large => {
                self.shaper.failed(now, Failure::Misconfigured, text, None);
            }
            Failure::TooLarge => {
                self.single_too_large = true;
                self.shaper.complain(text);
                self.set_aside(now, items.pop());
            }
            Failure::Rejected => match self.bisect.refused(suspects(&items)) {
                Verdict::Search => self.shaper.complain(text),
                Verdict::Everything => self.shaper.failed(now, Failure::Misconfigured, text, None),
                Verdict::Culprit => {
                    self.shaper.complain(text);
                    self.set_aside(now, items.pop());
                }
            },
        }
        for sent in items {
            self.queue.give_back(sent);
        }
        self.trim();
    }

    /// A probe or a step of a repair was answered.
    pub(crate) fn reached(&mut self, now: Now) {
        self.shaper.reached(now);
    }

    /// A probe or a step of a repair failed. `Rejected` and `TooLarge` are kept for display only: they say nothing of batches.
    pub(crate) fn unreached(
        &mut self,
        now: Now,
        failure: Failure,
        text: &Arc<str>,
        retry_after: Option<Duration>,
    ) {
        match failure {
            Failure::Rejected | Failure::TooLarge => self.shaper.complain(text),
            Failure::Busy | Failure::Misconfigured | Failure::Unreachable | Failure::Own => {
                self.shaper.failed(now, failure, text, retry_after);
            }
        }
    }

    /// When the back-off is over, if there is one (it may be over already). Probes and repairs keep to it, too.
    pub(crate) fn blocked_until(&self) -> Option<Mono> {
        self.shaper.until()
    }

    /// Takes `items` of a repair from the rate; may go into debt.
    pub(crate) fn spend(&mut self, now: Now, items: usize) {
        self.shaper.spend(now, items);
    }

    /// How many items the rate allows at once.
    pub(crate) fn allowance(&self, now: Now) -> usize {
        self.shaper.allowance(now)
    }

    /// Whether items were given up since the last call: only repair can bring the peer what was in them.
    pub(crate) fn take_behind(&mut self) -> bool {
        std::mem::take(&mut self.behind)
    }

    /// The node stops: from now on nothing lingers, and what waits for the end of a back-off is tried once more now.
    pub(crate) fn flush(&mut self, _now: Now) {
        self.flushing = true;
        self.gave_up = false;
        self.shaper.hurry();
    }

    /// Whether nothing waits and nothing is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.flight.is_none()
    }

    /// Whether nothing is left to be done since [`flush`](Self::flush): all is acknowledged, or the peer cannot be had.
    pub(crate) fn is_flushed(&self) -> bool {
        let hopeless = match self.shaper.state() {
            LinkState::Starting | LinkState::Up | LinkState::Busy => false,
            LinkState::Unreachable | LinkState::Misconfigured => {
                self.gave_up || self.kind == PeerKind::Unknown
            }
            LinkState::Own => true,
        };
        hopeless || self.is_idle()
    }

    /// When to call [`poll_batch`](Self::poll_batch) next; perhaps at once.
    pub(crate) fn poll_timeout(&self) -> Option<Mono> {
        self.due()
    }

    /// How the way to it is.
    pub(crate) fn state(&self) -> LinkState {
        self.shaper.state()
    }

    /// Last request that was answered, also of a probe or a repair.
    pub(crate) fn last_success(&self) -> Option<Mono> {
        self.shaper.last_success()
    }

    /// Fills in what is known here: kind, state, error, last success, lag, queue and the counters of items.
    pub(crate) fn report(&self, now: Now, facts: &mut PeerFacts) {
        let flying = self.flight.as_ref().map(|flight| flight.oldest);
        let oldest = flying.into_iter().chain(self.queue.oldest()).min();
        facts.kind = self.kind;
        facts.state = self.shaper.state();
        facts.error = self.shaper.error().cloned();
        facts.last_success = self.shaper.last_success().map(|moment| now.wall_at(moment));
        facts.lag = oldest.map_or(Duration::ZERO, |oldest| now.mono.since(oldest));
        facts.queue = self.queue.len();
        facts.sent = self.tally.sent;
        facts.retries = self.tally.retries;
        facts.conflicts = self.tally.conflicts;
        facts.missing = self.tally.missing;
        facts.failed = self.tally.failed;
        facts.overflowed = self.tally.overflowed;
        facts.outdated = self.tally.outdated;
        facts.poisoned = self.tally.poisoned;
    }

    /// Another node has said something of an instance: what ours said before may be of the past.
    fn note_peers_word(&mut self, key: &InstanceKey, kind: AppliedKind) {
        match kind {
            AppliedKind::Registered | AppliedKind::Adopted => self.queue.registered_by_peer(key),
            AppliedKind::Cancelled => self.queue.cancelled_by_peer(key),
            AppliedKind::Renewed
            | AppliedKind::Overridden
            | AppliedKind::OverrideCleared
            | AppliedKind::MetadataChanged => {}
        }
    }

    fn put(&mut self, now: Now, key: &InstanceKey, action: Action, instance: Option<&Instance>) {
        if self.aside.holds(now.mono, key, action) {
            self.tally.poisoned += 1;
            return;
        }
        let note = Note::new(now.mono, action, instance);
        let terms = instance.map_or_else(LeaseTerms::default, |instance| instance.lease);
        let dropped = self.queue.put(key, note, terms);
        self.overflowed(dropped);
    }

    /// When a batch is due. `None`: nothing waits, or it is not time's to say when it may go.
    fn due(&self) -> Option<Mono> {
        if self.flight.is_some() || self.kind == PeerKind::Unknown {
            return None;
        }
        let waiting_since = self.queue.oldest()?;
        let at_once = self.queue.is_urgent()
            || self.flushing
            || self.bisect.is_on()
            || self.queue.len() >= self.batch_items();
        let linger = match self.kind {
            PeerKind::Ours => self.linger,
            PeerKind::Java | PeerKind::Unknown => self.linger_java,
        };
        let lingered = if at_once {
            waiting_since
        } else {
            waiting_since.after(linger)
        };
        let portion = self.queue.len().min(self.portion_rate).min(self.batch_items());
        let allowed = self.shaper.allows_at(portion);
        Some(lingered.max(allowed).max(self.shaper.until().unwrap_or_default()))
    }

    fn batch_items(&self) -> usize {
        let most = match self.kind {
            PeerKind::Ours => BATCH_ITEMS_OURS,
            PeerKind::Java | PeerKind::Unknown => self.items_java,
        };
        most.min(self.most).max(1)
    }

    /// What is to be sent; `None` if what waited was too old, or not to be found.
    fn take(&mut self, now: Now, portion: Portion) -> Option<Vec<Sent>> {
        loop {
            let taken = match self.bisect.plan(portion.items) {
                Plan::Ordinary => self.queue.take(now.mono, portion),
                Plan::Alone(turn) => self.queue.take_one(now.mono, turn, portion),
                Plan::These(slots) => {
                    let (taken, looked_at) = self.queue.take_these(now.mono, &slots, portion);
                    self.bisect.trying(looked_at);
                    if taken.items.is_empty() {
                        self.bisect.clear();
                        self.outdated(taken.outdated);
                        continue;
                    }
                    taken
                }
                Plan::GiveUp => {
                    let text = Arc::from("refuses batches, and the items to blame were not found");
                    self.shaper.failed(now, Failure::Misconfigured, &text, None);
                    return None;
                }
            };
            let Taken { items, outdated, .. } = taken;
            self.outdated(outdated);
            return (!items.is_empty()).then_some(items);
        }
    }

    fn item_answered(&mut self, now: Now, sent: Sent, outcome: ItemOutcome) -> Option<Arc<Instance>> {
        match outcome {
            ItemOutcome::Ok => {
                self.tally.sent += 1;
                self.queue.settle(&sent);
            }
            ItemOutcome::Void => {
                self.queue.settle(&sent);
            }
            ItemOutcome::Missing => self.item_missing(now, &sent),
            ItemOutcome::Conflict(copy) => {
                self.tally.sent += 1;
                self.tally.conflicts += 1;
                let gone = self.queue.is_cancelled(&sent.key);
                self.queue.settle(&sent);
                return (!gone).then_some(copy);
            }
            ItemOutcome::Failed(UNAVAILABLE) => self.queue.give_back(sent),
            ItemOutcome::Failed(code) => {
                self.tally.failed += 1;
                self.queue.settle(&sent);
                let text = format!("{:?} of {} was answered {code}", sent.note.action, sent.key);
                self.shaper.complain(&text.into());
            }
        }
        None
    }

    /// The peer does not know the instance: it is to be registered there, with its override if it was about that. Once:
    /// a peer that does not take the registration is not asked without end.
    fn item_missing(&mut self, now: Now, sent: &Sent) {
        let terms = self.queue.settle(sent);
        let action = sent.note.action;
        if action == Action::Cancel {
            self.tally.sent += 1;
            return;
        }
        if action == Action::Register || sent.note.again {
            self.tally.failed += 1;
            return;
        }
        self.tally.sent += 1;
        self.tally.missing += 1;
        let Some(terms) = terms else {
            return;
        };
        if !self.aside.holds(now.mono, &sent.key, Action::Register) {
            let register = Note::new(now.mono, Action::Register, None);
            let dropped = self.queue.put_if_empty(&sent.key, register, terms);
            self.overflowed(dropped);
        }
        if action != Action::Renew {
            let mut status = Note::new(now.mono, action, None);
            status.again = true;
            let dropped = self.queue.put_if_empty(&sent.key, status, terms);
            self.overflowed(dropped);
        }
    }

    fn set_aside(&mut self, now: Now, sent: Option<Sent>) {
        let Some(sent) = sent else {
            return;
        };
        self.tally.poisoned += 1;
        if let Some(terms) = self.queue.settle(&sent) {
            let pause = Duration::from_secs(terms.duration_secs.into());
            self.aside.put(now.mono, sent.key, sent.note.action, pause);
        }
    }

    fn trim(&mut self) {
        let dropped = self.queue.trim();
        self.overflowed(dropped);
    }

    fn overflowed(&mut self, slots: u64) {
        self.tally.overflowed += slots;
        self.behind |= slots > 0;
    }

    fn outdated(&mut self, slots: u64) {
        self.tally.outdated += slots;
        self.behind |= slots > 0;
    }
}

/// Whether an event is a renewal that a peer sent, in batches of hundreds: no other peer is to be told, and nothing that waits
/// for one is of the past.
fn is_peers_renewal(event: &Event) -> bool {
    matches!(
        event,
        Event::Applied {
            kind: AppliedKind::Renewed,
            origin: Origin::Peer(_),
            ..
        }
    )
}

/// What a change of this node's own clients, operators or itself means for peers.
fn forwarded(kind: AppliedKind) -> Option<Action> {
    match kind {
        AppliedKind::Registered | AppliedKind::MetadataChanged => Some(Action::Register),
        AppliedKind::Renewed => Some(Action::Renew),
        AppliedKind::Cancelled => Some(Action::Cancel),
        AppliedKind::Overridden => Some(Action::Override),
        AppliedKind::OverrideCleared => Some(Action::ClearOverride),
        AppliedKind::Adopted => None,
    }
}

fn suspects(items: &[Sent]) -> Vec<Suspect> {
    items.iter().map(|sent| (sent.key.clone(), sent.slot)).collect()
}
