//! One configured peer: who it is, what is under way with it, and what is due.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{Instance, Learned, Mono, Now, PeerId, Step};

use crate::alarms::Evidence;
use crate::bootstrap::Bootstrap;
use crate::config::Config;
use crate::facts::{LinkState, PeerFacts, PeerKind};
use crate::inbound::Arrivals;
use crate::message::{Failure, ItemOutcome, NodeId, Output, Probed, RequestId, Rules};
use crate::peer::Peer;
use crate::repair::Repair;

/// A Java server is probed this often: to notice when one of ours takes its place.
const PROBE_JAVA: Duration = Duration::from_secs(30);
/// So many nodes that answered behind one address are remembered.
const NODES: usize = 8;
/// A peer that is heard of is tried again before its time, but not more often than this.
const KNOCK: Duration = Duration::from_secs(5);
/// Who was away for less has missed no renewal of its clients.
const BLIP: Duration = Duration::from_secs(30);
/// Who was away for longer gets this much time to pass on what its clients send once it is back.
const GRACE: Duration = Duration::from_secs(40);

/// One configured peer.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) id: PeerId,
    pub(crate) peer: Peer,
    seed: u64,
    added: Mono,
    kind: PeerKind,
    nodes: Nodes,
    /// This node of ours does not take part in repair: it has no peers configured.
    plain: Option<NodeId>,
    /// The same node is behind another address that is used.
    pub(crate) same_as: Option<PeerId>,
    probe_due: Mono,
    /// Probe it then, whatever back-off there is: it has been heard of.
    knock: Option<Mono>,
    probed: Option<Mono>,
    probes: u64,
    probe: Option<RequestId>,
    batch: Option<RequestId>,
    step: Option<(RequestId, Step)>,
    pull: Option<RequestId>,
    repair: Repair,
    /// What failed last; its success ends the failure.
    blame: Option<Activity>,
    /// It has refused what we send and taken nothing since.
    refuses: bool,
    own: Option<Mono>,
    told: Told,
    pub(crate) arrivals: Arrivals,
    pub(crate) addresses: Vec<IpAddr>,
    /// What the registry knows of it.
    reachable: bool,
    away_since: Option<Mono>,
    /// When it is to be told otherwise.
    back_at: Option<Mono>,
    failing_since: Option<Mono>,
    /// It was heard of while it could not be reached, and still could not be reached afterwards.
    heard_in_vain: bool,
}

/// What a request was for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Activity {
    Batch,
    Probe,
    Repair(Step),
    Pull,
}

/// How a request failed.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) failure: Failure,
    pub(crate) text: Arc<str>,
    pub(crate) retry_after: Option<Duration>,
}

/// What it says of itself.
#[derive(Debug)]
struct Told {
    skew: Option<i64>,
    preserving: Option<bool>,
    preserving_probes: u32,
    rules: Option<Rules>,
    reaches_us: Option<bool>,
    reaches_us_since: Mono,
}

/// Which nodes answered behind its address.
#[derive(Debug, Default)]
struct Nodes {
    current: Option<NodeId>,
    past: Vec<NodeId>,
    /// When one answered that had been replaced before.
    returned: Option<Mono>,
}

impl Link {
    pub(crate) fn new(now: Now, config: &Config, id: PeerId) -> Self {
        let seed =
            id.0.bytes()
                .fold(config.seed, |seed, byte| mixed(seed ^ u64::from(byte)));
        Self {
            peer: Peer::new(now, config, seed),
            id,
            seed,
            added: now.mono,
            kind: PeerKind::Unknown,
            nodes: Nodes::default(),
            plain: None,
            same_as: None,
            probe_due: now.mono,
            knock: None,
            probed: None,
            probes: 0,
            probe: None,
            batch: None,
            step: None,
            pull: None,
            repair: Repair::default(),
            blame: None,
            refuses: false,
            own: None,
            told: Told::new(now.mono),
            arrivals: Arrivals::default(),
            addresses: Vec::new(),
            reachable: true,
            away_since: None,
            back_at: None,
            failing_since: None,
            heard_in_vain: false,
        }
    }

    pub(crate) fn kind(&self) -> PeerKind {
        self.kind
    }

    /// It is one of ours, but takes no part in repair.
    pub(crate) fn is_plain(&self) -> bool {
        self.kind == PeerKind::Ours && !self.repairs()
    }

    /// The node of ours behind the address.
    pub(crate) fn node(&self) -> Option<NodeId> {
        self.nodes.current.filter(|_| self.kind == PeerKind::Ours)
    }

    /// When something is to be done.
    pub(crate) fn poll_timeout(&self, bootstrap: &Bootstrap) -> Option<Mono> {
        let own = [
            self.probe_at(bootstrap),
            self.copy_at(bootstrap),
            self.batch_at(),
            self.repair_at(bootstrap),
            self.back_at,
        ];
        own.into_iter().flatten().min()
    }

    /// Begins whatever is due.
    pub(crate) fn pump(
        &mut self,
        now: Now,
        config: &Config,
        bootstrap: &Bootstrap,
        mut next_id: impl FnMut() -> RequestId,
        tell: &mut impl FnMut(Output),
    ) {
        let due = |at: Option<Mono>| at.is_some_and(|at| at <= now.mono);
        let peer = || self.id.clone();
        if due(self.probe_at(bootstrap)) {
            let id = next_id();
            tell(Output::Probe { peer: peer(), id });
            self.probe = Some(id);
            if self.knock.take().is_some() {
                self.blame = None;
            }
            self.probed = Some(now.mono);
            self.probe_due = now.mono.after(self.probe_interval(config));
            self.probes += 1;
        }
        if due(self.copy_at(bootstrap)) {
            let (id, peer) = (next_id(), self.id.clone());
            if self.repairs() {
                let after = bootstrap.after(&peer);
                self.begin(id, Step::Copy { after }, tell);
            } else {
                tell(Output::Pull { peer, id });
                self.pull = Some(id);
            }
        }
        if due(self.batch_at()) {
            let id = next_id();
            if let Some(items) = self.peer.poll_batch(now, id) {
                let peer = self.id.clone();
                tell(Output::Send { peer, id, items });
                self.batch = Some(id);
            }
        }
        if due(self.repair_at(bootstrap))
            && let Some(step) = self.repair.step(now.mono, self.peer.allowance(now))
        {
            if let Step::Exchange { pull, push } = &step {
                self.peer.spend(now, pull.len() + push.len());
            }
            self.begin(next_id(), step, tell);
        }
    }

    /// Something came from it. If it could not be reached, it may be back.
    pub(crate) fn heard(&mut self, now: Now) {
        self.arrivals.note(now.mono);
        if matches!(self.peer.state(), LinkState::Unreachable | LinkState::Busy) {
            self.knock(now);
        }
    }

    /// A node came from its address, or may have, that is not known.
    pub(crate) fn knock(&mut self, now: Now) {
        let earliest = self.probed.map_or(now.mono, |last| last.after(KNOCK));
        self.knock = self.knock.or_else(|| Some(earliest.max(now.mono)));
    }

    /// The request that ended now, if it is under way.
    pub(crate) fn take(&mut self, id: RequestId) -> Option<Activity> {
        if self.probe.take_if(|probe| *probe == id).is_some() {
            Some(Activity::Probe)
        } else if self.batch.take_if(|batch| *batch == id).is_some() {
            Some(Activity::Batch)
        } else if self.pull.take_if(|pull| *pull == id).is_some() {
            Some(Activity::Pull)
        } else {
            let step = self.step.take_if(|(step, _)| *step == id);
            step.map(|(_, step)| Activity::Repair(step))
        }
    }

    /// A node of ours has answered, whatever it was.
    pub(crate) fn answered_by(&mut self, now: Now, node: NodeId) {
        if self.nodes.see(now.mono, node) {
            self.plain = None;
            self.told = Told::new(now.mono);
        }
        self.become_kind(now, PeerKind::Ours);
    }

    /// It has told who it is and how it does. `copying`: it is still to be copied from.
    pub(crate) fn probed(
        &mut self,
        now: Now,
        config: &Config,
        preserving: bool,
        probed: Probed,
        copying: bool,
    ) {
        self.succeeded(now, &Activity::Probe, copying);
        match probed.node {
            Some(node) => self.answered_by(now, node),
            None => {
                self.nodes.current = None;
                self.repair.forget();
                self.become_kind(now, PeerKind::Java);
            }
        }
        self.told.note(now, preserving, probed);
        if self.repairs() && self.same_as.is_none() && !copying {
            self.repair.want();
        }
        self.probe_due = now.mono.after(self.probe_interval(config));
    }

    /// A batch was answered: the newer copies in the answer. One of which nothing was sent changes nothing.
    pub(crate) fn batch_answered(
        &mut self,
        now: Now,
        id: RequestId,
        outcomes: Vec<ItemOutcome>,
    ) -> Vec<Arc<Instance>> {
        let is_proof = outcomes.iter().any(|outcome| *outcome != ItemOutcome::Void);
        let newer = self.peer.batch_answered(now, id, outcomes);
        if !is_proof {
            return newer;
        }
        if self.peer.state() == LinkState::Up {
            self.settled(&Activity::Batch);
        } else {
            self.blame = Some(Activity::Batch);
        }
        newer
    }

    /// The registry has learned from a step that is no copy.
    pub(crate) fn learned(&mut self, now: Now, step: &Step, learned: Learned) {
        if self.repair.learned(now.mono, step, learned) {
            self.succeeded(now, &Activity::Repair(step.clone()), false);
        } else {
            self.nonsense(now, step);
        }
    }

    /// A request that is no batch was answered. What failed before stands as long as it is still to be done.
    pub(crate) fn succeeded(&mut self, now: Now, activity: &Activity, copying: bool) {
        let stands = match &self.blame {
            None => false,
            Some(blame) if blame.is_like(activity) => false,
            Some(Activity::Batch) => !self.peer.is_idle(),
            Some(Activity::Probe) => true,
            Some(Activity::Pull | Activity::Repair(Step::Copy { .. })) => copying,
            Some(Activity::Repair(_)) => self.repair.due().is_some(),
        };
        if !stands {
            self.peer.reached(now);
            self.settled(activity);
        }
    }

    /// An answer that does not fit the question.
    pub(crate) fn nonsense(&mut self, now: Now, step: &Step) {
        let trouble = Trouble::new(
            Failure::Unreachable,
            "an answer of repair that does not fit the question",
        );
        self.failed(now, RequestId(0), &Activity::Repair(step.clone()), &trouble);
    }

    /// A request failed.
    pub(crate) fn failed(&mut self, now: Now, id: RequestId, activity: &Activity, trouble: &Trouble) {
        let of_this_step = matches!(trouble.failure, Failure::Rejected | Failure::TooLarge);
        let failure = match activity {
            Activity::Probe | Activity::Pull if of_this_step => Failure::Misconfigured,
            Activity::Probe | Activity::Pull | Activity::Batch | Activity::Repair(_) => trouble.failure,
        };
        let (text, retry_after) = (&trouble.text, trouble.retry_after);
        match (activity, failure) {
            // A node of ours without peers serves no repair.
            (Activity::Repair(_), Failure::Misconfigured) if self.nodes.current.is_some() => {
                self.plain = self.nodes.current;
                self.repair.forget();
                self.peer.set_kind(now, PeerKind::Java);
                return;
            }
            (Activity::Batch, _) => self.peer.batch_failed(now, id, failure, text, retry_after),
            (Activity::Probe | Activity::Repair(_) | Activity::Pull, _) => {
                self.peer.unreached(now, failure, text, retry_after);
            }
        }
        let is_repair = matches!(activity, Activity::Repair(_));
        if is_repair && of_this_step {
            self.repair.refused();
        } else if is_repair {
            self.repair.failed();
        }
        if *activity == Activity::Probe {
            self.probe_due = now.mono;
        }
        if !(is_repair && of_this_step) {
            self.blame = Some(activity.clone());
        }
        self.refuses |= self.peer.state() == LinkState::Misconfigured;
        let since = *self.failing_since.get_or_insert(now.mono);
        self.heard_in_vain |= self.arrivals.last.is_some_and(|last| last > since);
    }

    /// This very node has answered.
    pub(crate) fn is_own(&mut self, now: Now, id: RequestId, activity: &Activity, own: NodeId) {
        self.nodes.see(now.mono, own);
        self.own = Some(now.mono);
        let trouble = Trouble::new(Failure::Own, "answered by this very node");
        self.failed(now, id, activity, &trouble);
        self.repair.forget();
        self.become_kind(now, PeerKind::Unknown);
        self.blame = None;
        self.probe_due = now.mono;
    }

    /// What was given up is behind: compare at once when it can be asked again.
    pub(crate) fn catch_up(&mut self) {
        if self.repairs()
            && self.same_as.is_none()
            && self.peer.state() == LinkState::Up
            && self.peer.take_behind()
        {
            self.repair.want();
        }
    }

    /// The first comparison after start-up comes at a moment of its own within the interval.
    pub(crate) fn copied(&mut self, now: Now, config: &Config) {
        if !self.repairs() {
            return;
        }
        let interval = u64::try_from(config.digest_interval.as_millis()).unwrap_or(u64::MAX);
        let phase = mixed(self.seed) % interval.max(1);
        self.probe_due = self.probe_due.min(now.mono.after(Duration::from_millis(phase)));
    }

    /// Another address of the same node is used instead, or not any more.
    pub(crate) fn set_same_as(&mut self, now: Now, config: &Config, other: Option<PeerId>) {
        if other.is_some() && self.same_as.is_none() {
            // What waits here waits there, too.
            self.peer = Peer::new(now, config, self.seed);
            self.peer.set_kind(now, self.sending_kind());
            self.peer.reached(now);
            self.repair.forget();
        }
        if other.is_none() && self.same_as.is_some() {
            self.repair.want();
        }
        self.same_as = other;
    }

    /// What the registry is to be told of it, if that has changed. What was heard through it is still held for a while
    /// after it has come back, or its clients would be evicted before they could renew.
    pub(crate) fn reachable_changed(&mut self, now: Now) -> Option<Output> {
        match self.peer.state() {
            LinkState::Busy | LinkState::Unreachable => {
                self.back_at = None;
                self.away_since.get_or_insert(now.mono);
                self.tell_reachable(false)
            }
            LinkState::Starting | LinkState::Up | LinkState::Misconfigured | LinkState::Own => {
                if self.reachable {
                    return None;
                }
                let back_at = self.back_at.get_or_insert_with(|| {
                    let long = self.away_since.is_some_and(|since| now.mono.since(since) >= BLIP);
                    now.mono.after(if long { GRACE } else { Duration::ZERO })
                });
                if *back_at > now.mono {
                    return None;
                }
                self.back_at = None;
                self.away_since = None;
                self.tell_reachable(true)
            }
        }
    }

    /// The peer is none any more: nothing is held for its sake.
    pub(crate) fn tell_reachable(&mut self, reachable: bool) -> Option<Output> {
        let changed = std::mem::replace(&mut self.reachable, reachable) != reachable;
        let peer = self.id.clone();
        changed.then_some(Output::Reachable { peer, reachable })
    }

    pub(crate) fn evidence(&self, now: Now) -> Evidence {
        let facts = self.facts(now);
        let age = |moment: Mono| now.mono.since(moment);
        Evidence {
            kind: self.kind,
            state: self.peer.state(),
            known: age(self.added),
            success: self.peer.last_success().map(age),
            inbound: self.arrivals.last.map(age),
            heard_in_vain: self.heard_in_vain,
            own: self.own.map(age),
            returned: self.nodes.returned.map(age),
            refuses: self.refuses,
            reaches_us: (self.told.reaches_us, age(self.told.reaches_us_since)),
            preserving: self.told.preserving_probes,
            rules: self.told.rules.clone(),
            diverged: self.repair.diverged().map(age),
            error: facts.error,
        }
    }

    pub(crate) fn facts(&self, now: Now) -> PeerFacts {
        let mut facts = PeerFacts::of(self.id.clone());
        self.peer.report(now, &mut facts);
        facts.kind = self.kind;
        facts.node = self.node();
        if let Some(other) = &self.same_as {
            facts.error = Some(format!("the same node as {}, which is used", other.0).into());
        }
        facts.digests = self.repair.digests;
        facts.differing = self.repair.differing;
        facts.repaired = self.repair.repaired;
        facts.diverged = self.repair.diverged().map(|since| now.mono.since(since));
        facts.clock_skew = self.told.skew;
        facts.preserving = self.told.preserving;
        facts.rules = self.told.rules.clone();
        facts.reaches_us = self.told.reaches_us;
        facts.inbound = self.arrivals.facts(now);
        facts
    }

    fn begin(&mut self, id: RequestId, step: Step, tell: &mut impl FnMut(Output)) {
        self.step = Some((id, step.clone()));
        tell(Output::Repair {
            peer: self.id.clone(),
            id,
            step,
        });
    }

    /// When to probe. While it is being copied from, only to learn what it is.
    fn probe_at(&self, bootstrap: &Bootstrap) -> Option<Mono> {
        if self.probe.is_some() || (self.is_failing() && self.is_asking()) {
            return None;
        }
        match bootstrap.due(&self.id) {
            Some(due) if self.kind == PeerKind::Unknown => Some(due),
            Some(_) => None,
            None => {
                let regular = self.not_blocked(self.probe_due);
                Some(self.knock.map_or(regular, |at| at.min(regular)))
            }
        }
    }

    /// When to ask for the next part of a copy at start-up.
    fn copy_at(&self, bootstrap: &Bootstrap) -> Option<Mono> {
        let idle = self.probe.is_none() && self.step.is_none() && self.pull.is_none();
        bootstrap
            .due(&self.id)
            .filter(|_| idle && self.kind != PeerKind::Unknown && self.same_as.is_none())
    }

    /// When to ask for a batch.
    fn batch_at(&self) -> Option<Mono> {
        let idle = self.batch.is_none() && !(self.is_failing() && self.is_asking());
        self.peer
            .poll_timeout()
            .filter(|_| idle && self.kind != PeerKind::Unknown && self.same_as.is_none())
    }

    /// When to take the next step of a repair.
    fn repair_at(&self, bootstrap: &Bootstrap) -> Option<Mono> {
        let idle = self.step.is_none() && !(self.is_failing() && self.is_asking());
        let free = idle && self.repairs() && self.same_as.is_none() && bootstrap.due(&self.id).is_none();
        self.repair
            .due()
            .filter(|_| free)
            .map(|due| self.not_blocked(due))
    }

    fn not_blocked(&self, at: Mono) -> Mono {
        self.peer.blocked_until().map_or(at, |until| until.max(at))
    }

    /// It has to be tried before more is asked of it.
    fn is_failing(&self) -> bool {
        !matches!(self.peer.state(), LinkState::Up | LinkState::Starting)
    }

    /// Something is under way.
    fn is_asking(&self) -> bool {
        self.probe.is_some() || self.batch.is_some() || self.step.is_some() || self.pull.is_some()
    }

    /// Whether it takes part in repair.
    fn repairs(&self) -> bool {
        self.kind == PeerKind::Ours && self.nodes.current.is_some() && self.plain != self.nodes.current
    }

    fn become_kind(&mut self, now: Now, kind: PeerKind) {
        self.kind = kind;
        let sending = self.sending_kind();
        if self.peer.kind() != sending {
            self.peer.set_kind(now, sending);
        }
    }

    /// A node of ours without repair is sent to as if it were Java's: what it misses, nobody repairs.
    fn sending_kind(&self) -> PeerKind {
        match self.kind {
            PeerKind::Ours if self.plain.is_some() => PeerKind::Java,
            PeerKind::Ours | PeerKind::Java | PeerKind::Unknown => self.kind,
        }
    }

    fn settled(&mut self, activity: &Activity) {
        self.blame = None;
        self.failing_since = None;
        self.heard_in_vain = false;
        // A probe that is answered does not prove that anything is taken.
        if *activity != Activity::Probe || self.peer.is_idle() {
            self.refuses = false;
        }
    }

    /// Ours at every comparison, a tenth sooner or later so that they do not all come at once.
    fn probe_interval(&self, config: &Config) -> Duration {
        if self.kind != PeerKind::Ours {
            return PROBE_JAVA;
        }
        let tenths = 90 + u32::try_from(mixed(self.seed ^ self.probes) % 21).unwrap_or(0);
        config.digest_interval * tenths / 100
    }
}

impl Trouble {
    pub(crate) fn new(failure: Failure, text: &str) -> Self {
        Self {
            failure,
            text: text.into(),
            retry_after: None,
        }
    }
}

impl Activity {
    fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl Told {
    fn new(now: Mono) -> Self {
        Self {
            skew: None,
            preserving: None,
            preserving_probes: 0,
            rules: None,
            reaches_us: None,
            reaches_us_since: now,
        }
    }

    fn note(&mut self, now: Now, preserving_here: bool, probed: Probed) {
        let difference = |wall: u64| i64::try_from(i128::from(wall) - i128::from(now.wall.0)).ok();
        self.skew = probed.wall.and_then(|wall| difference(wall.0));
        self.preserving = probed.preserving;
        self.preserving_probes = match probed.preserving {
            Some(true) if !preserving_here => self.preserving_probes + 1,
            Some(_) | None => 0,
        };
        self.rules = probed.rules;
        if self.reaches_us != probed.reaches_us {
            self.reaches_us = probed.reaches_us;
            self.reaches_us_since = now.mono;
        }
    }
}

impl Nodes {
    /// `true`: another than before. A node that starts again is a new one, and the old one never returns; behind a
    /// balancer it does.
    fn see(&mut self, now: Mono, node: NodeId) -> bool {
        if self.current == Some(node) {
            return false;
        }
        if self.past.contains(&node) {
            self.returned = Some(now);
        } else {
            if self.past.len() == NODES {
                self.past.remove(0);
            }
            self.past.push(node);
        }
        self.current = Some(node);
        true
    }
}

/// One step of SplitMix64 (Steele, Lea and Flood, 2014).
pub(crate) fn mixed(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
