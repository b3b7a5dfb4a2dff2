//! The machine: events, outcomes and time in; what to do out.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{Command, Event, Instance, Learned, Mono, Now, PeerId, Step};

use crate::alarms::Alarms;
use crate::bootstrap::Bootstrap;
use crate::config::Config;
use crate::facts::{Facts, PeerKind};
use crate::inbound::Strangers;
use crate::link::{Activity, Link, Trouble};
use crate::message::{Failure, NodeId, Outcome, Output, Pulled, RequestId, Sender};
use crate::resolve::PEERS_MAX;

/// Alarms are looked after this often.
const LOOK: Duration = Duration::from_secs(5);

/// All peers of one node.
///
/// **Drain after mutate**: after any call with `&mut self` drain [`poll_output`](Self::poll_output) and read
/// [`poll_timeout`](Self::poll_timeout) again. Every output with an id must be followed by one
/// [`handle_outcome`](Self::handle_outcome): until then nothing of its kind is asked of that peer.
#[derive(Debug)]
pub struct Mesh {
    config: Config,
    links: BTreeMap<PeerId, Link>,
    strangers: Strangers,
    bootstrap: Bootstrap,
    alarms: Alarms,
    outputs: VecDeque<Output>,
    requests: u64,
    /// Outcomes of requests that were not under way.
    ignored: u64,
    preserving: bool,
    /// When to resolve the names of the peers again; `None` while that is under way.
    resolve_at: Option<Mono>,
    unresolved: Option<Arc<str>>,
    look_at: Mono,
}

impl Mesh {
    /// No peers yet: nothing is decided before [`set_peers`](Self::set_peers) is called.
    pub fn new(now: Now, config: Config) -> Self {
        Self {
            links: BTreeMap::new(),
            strangers: Strangers::default(),
            bootstrap: Bootstrap::new(now.mono, &config),
            alarms: Alarms::default(),
            outputs: VecDeque::new(),
            requests: 0,
            ignored: 0,
            preserving: false,
            resolve_at: None,
            unresolved: None,
            look_at: now.mono.after(LOOK),
            config,
        }
    }

    /// The peers, resolved, this node itself left out; at most 1,000, the rest is left out. Queues of those that stay are
    /// kept. The first call begins the start-up: without peers it asks to open at once. An empty list later is taken too.
    pub fn set_peers(&mut self, now: Now, peers: Vec<PeerId>) {
        self.unresolved = None;
        self.resolve_at = Some(now.mono.after(self.config.refresh_interval));
        let mut old = std::mem::take(&mut self.links);
        for peer in peers.into_iter().take(PEERS_MAX) {
            let link = old.remove(&peer);
            let link = link.unwrap_or_else(|| Link::new(now, &self.config, peer.clone()));
            self.links.entry(peer).or_insert(link);
        }
        for (peer, mut link) in old {
            self.outputs.extend(link.tell_reachable(true));
            self.alarms.forget(&peer, |output| self.outputs.push_back(output));
        }
        self.bootstrap.set_peers(now.mono, self.links.keys());
        self.know_nodes(now);
        self.advance(now);
    }

    /// Names are resolved so often from now on.
    pub fn set_refresh_interval(&mut self, now: Now, interval: Duration) {
        self.config.refresh_interval = interval;
        if let Some(at) = &mut self.resolve_at {
            *at = (*at).min(now.mono.after(interval));
        }
    }

    /// The names could not be resolved; nothing changes but what is known of it. It is tried again soon as long as there
    /// are no peers, and else at the next time.
    pub fn resolve_failed(&mut self, now: Now, text: &str) {
        self.unresolved = Some(text.into());
        let interval = if self.bootstrap.is_open() {
            self.config.refresh_interval
        } else {
            self.config.retry_interval
        };
        self.resolve_at = Some(now.mono.after(interval));
    }

    /// Something happened in the registry. Called while it is locked.
    pub fn handle_event(&mut self, now: Now, event: &Event) {
        for link in self.links.values_mut().filter(|link| link.same_as.is_none()) {
            link.peer.note(now, event);
        }
    }

    /// Whether there is no peer to be told of anything.
    #[cfg(feature = "driver")]
    pub(crate) fn is_alone(&self) -> bool {
        self.links.is_empty()
    }

    /// A request ended. `node` is who answered, as the answer says. What is not under way (any more) is ignored, and counted.
    pub fn handle_outcome(
        &mut self,
        now: Now,
        peer: &PeerId,
        id: RequestId,
        node: Option<NodeId>,
        outcome: Outcome,
    ) {
        let under_way = self.links.get_mut(peer).and_then(|link| link.take(id));
        let Some(activity) = under_way else {
            self.ignored += 1;
            return;
        };
        let said = match &outcome {
            Outcome::Probed(probed) => probed.node.or(node),
            Outcome::Answered(_) | Outcome::Learned(_) | Outcome::Pulled(_) | Outcome::Failed { .. } => node,
        };
        match outcome {
            _ if said == Some(self.config.node) => self.found_self(now, peer, id, &activity),
            Outcome::Failed {
                failure: Failure::Own,
                ..
            } => self.found_self(now, peer, id, &activity),
            Outcome::Failed {
                failure,
                text,
                retry_after,
            } => {
                let trouble = Trouble {
                    failure,
                    text,
                    retry_after,
                };
                self.failed(now, peer, id, &activity, &trouble);
            }
            Outcome::Answered(_) | Outcome::Probed(_) | Outcome::Learned(_) | Outcome::Pulled(_) => {
                self.succeeded(now, peer, id, said, &activity, outcome);
            }
        }
        self.know_nodes(now);
        self.advance(now);
    }

    /// A peer's request arrived: the name under which to apply it.
    pub fn handle_inbound(&mut self, now: Now, sender: &Sender) -> PeerId {
        let name = self.name_of(sender);
        match name.and_then(|name| self.links.get_mut(&name)) {
            Some(link) => {
                link.heard(now);
                link.id.clone()
            }
            None => {
                self.look_for(now, sender);
                self.strangers.note(now.mono, sender.address)
            }
        }
    }

    /// Which addresses a peer's host has, to recognise Java servers by.
    pub fn set_addresses(&mut self, peer: &PeerId, addresses: Vec<IpAddr>) {
        if let Some(link) = self.links.get_mut(peer) {
            link.addresses = addresses.iter().map(IpAddr::to_canonical).collect();
        }
    }

    /// Whether this node evicts nobody, to be compared with peers.
    pub fn set_preserving(&mut self, _now: Now, preserving: bool) {
        self.preserving = preserving;
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Now) {
        if self.resolve_at.is_some_and(|at| at <= now.mono) {
            self.resolve_at = None;
            self.outputs.push_back(Output::Resolve);
        }
        self.advance(now);
        if self.look_at.after(LOOK) <= now.mono {
            // Nobody watched: what is old now may only not have been asked.
            self.look_at = now.mono.after(LOOK);
        } else if self.look_at <= now.mono {
            self.look(now);
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        let links = self.links.values();
        let links = links.filter_map(|link| link.poll_timeout(&self.bootstrap));
        let own = [self.resolve_at, self.bootstrap.poll_timeout(), Some(self.look_at)];
        links.chain(own.into_iter().flatten()).min()
    }

    /// The next thing to do.
    #[must_use]
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The node stops: nothing lingers any more.
    pub fn flush(&mut self, now: Now) {
        for link in self.links.values_mut() {
            link.peer.flush(now);
        }
        self.advance(now);
    }

    /// Whether, since [`flush`](Self::flush), every queue is empty and acknowledged; a peer that cannot be reached was tried once.
    pub fn is_flushed(&self) -> bool {
        self.links.values().all(|link| link.peer.is_flushed())
    }

    /// What there is to know.
    pub fn facts(&self, now: Now) -> Facts {
        Facts {
            peers: self.links.values().map(|link| link.facts(now)).collect(),
            strangers: self.strangers.facts(now),
            alarms: self.alarms.list(),
            unresolved: self.unresolved.clone(),
            ignored: self.ignored,
        }
    }

    /// Begins whatever is due with any peer, and opens the registry if it may be opened now.
    fn advance(&mut self, now: Now) {
        let Self {
            config,
            links,
            bootstrap,
            outputs,
            requests,
            ..
        } = self;
        if let Some(opening) = bootstrap.decide(now.mono) {
            outputs.push_back(Output::Open {
                synced: opening.synced,
                settle: opening.settle,
            });
        }
        for link in links.values_mut() {
            link.catch_up();
            let next_id = || {
                *requests += 1;
                RequestId(*requests)
            };
            link.pump(now, config, bootstrap, next_id, &mut |output| {
                outputs.push_back(output)
            });
            outputs.extend(link.reachable_changed(now));
        }
    }

    fn look(&mut self, now: Now) {
        self.look_at = now.mono.after(LOOK);
        for (peer, link) in &self.links {
            let tell = |output| self.outputs.push_back(output);
            self.alarms
                .look(now, &self.config, peer, &link.evidence(now), tell);
        }
    }

    fn succeeded(
        &mut self,
        now: Now,
        peer: &PeerId,
        id: RequestId,
        node: Option<NodeId>,
        activity: &Activity,
        outcome: Outcome,
    ) {
        let Some(link) = self.links.get_mut(peer) else {
            return;
        };
        if let Some(node) = node {
            link.answered_by(now, node);
        }
        self.bootstrap.is_other(now.mono, peer);
        match (activity, outcome) {
            (Activity::Probe, Outcome::Probed(probed)) => {
                self.bootstrap.reached(peer);
                let copying = self.bootstrap.due(peer).is_some();
                link.probed(now, &self.config, self.preserving, probed, copying);
            }
            (Activity::Batch, Outcome::Answered(outcomes)) => {
                let newer = link.batch_answered(now, id, outcomes);
                self.outputs
                    .extend(newer.into_iter().map(|instance| adopt(peer, instance)));
            }
            (Activity::Pull, Outcome::Pulled(pulled)) => self.pulled(now, peer, pulled),
            (
                Activity::Repair(Step::Copy { .. }),
                Outcome::Learned(Learned::Copied {
                    received,
                    next,
                    total,
                    held,
                }),
            ) => {
                let last = next.is_none();
                self.bootstrap
                    .copied(now.mono, peer, received, next, (total, held));
                self.copied(now, peer, activity, last);
            }
            (Activity::Repair(step), Outcome::Learned(learned)) if !matches!(step, Step::Copy { .. }) => {
                link.learned(now, step, learned);
            }
            _ => {
                let trouble = Trouble::new(Failure::Unreachable, "an answer that does not fit the request");
                self.failed(now, peer, id, activity, &trouble);
            }
        }
    }

    fn pulled(&mut self, now: Now, peer: &PeerId, pulled: Pulled) {
        self.bootstrap.pulled(now.mono, peer, pulled);
        self.copied(now, peer, &Activity::Pull, true);
    }

    /// A copy, or a page of one, has come.
    fn copied(&mut self, now: Now, peer: &PeerId, activity: &Activity, last: bool) {
        let copying = self.bootstrap.due(peer).is_some();
        if let Some(link) = self.links.get_mut(peer) {
            link.succeeded(now, activity, copying);
            if last && !copying {
                link.copied(now, &self.config);
            }
        }
    }

    fn failed(&mut self, now: Now, peer: &PeerId, id: RequestId, activity: &Activity, trouble: &Trouble) {
        let Some(link) = self.links.get_mut(peer) else {
            return;
        };
        link.failed(now, id, activity, trouble);
        // If repair is not served there, it is pulled from instead, at once.
        let of_copy = *activity != Activity::Batch;
        if of_copy && !(link.is_plain() && matches!(activity, Activity::Repair(_))) {
            self.bootstrap.failed(now.mono, peer, trouble.retry_after);
        }
    }

    fn found_self(&mut self, now: Now, peer: &PeerId, id: RequestId, activity: &Activity) {
        if let Some(link) = self.links.get_mut(peer) {
            link.is_own(now, id, activity, self.config.node);
            self.bootstrap.is_own(peer);
        }
    }

    /// Of several addresses of one node, the first by name is used.
    fn know_nodes(&mut self, now: Now) {
        let mut first: BTreeMap<NodeId, PeerId> = BTreeMap::new();
        for (peer, link) in &mut self.links {
            let other = match link.node() {
                Some(node) => first.get(&node).cloned().or_else(|| {
                    first.insert(node, peer.clone());
                    None
                }),
                None => None,
            };
            if other == link.same_as {
                continue;
            }
            match &other {
                Some(_) => self.bootstrap.is_own(peer),
                None => self.bootstrap.is_other(now.mono, peer),
            }
            link.set_same_as(now, &self.config, other);
        }
    }

    /// A node of ours that is behind no address as far as is known may have started again behind one of these.
    fn look_for(&mut self, now: Now, sender: &Sender) {
        let address = sender.address.map(|address| address.to_canonical());
        for link in self.links.values_mut().filter(|_| sender.node.is_some()) {
            let may_be =
                link.addresses.is_empty() || address.is_some_and(|address| link.addresses.contains(&address));
            if may_be && link.kind() != PeerKind::Java {
                link.knock(now);
            }
        }
    }

    /// By the id of a node of ours; or by an address that one peer alone has that may be Java's.
    fn name_of(&self, sender: &Sender) -> Option<PeerId> {
        if let Some(node) = sender.node {
            let link = self.links.values().find(|link| link.node() == Some(node))?;
            return Some(link.id.clone());
        }
        let address = sender.address?.to_canonical();
        let may_be = |link: &&Link| link.kind() != PeerKind::Ours && link.addresses.contains(&address);
        let mut links = self.links.values().filter(may_be);
        let only = links.next().filter(|_| links.next().is_none())?;
        Some(only.id.clone())
    }
}

/// A peer's newer copy. It was the answer to a heartbeat that waited one renewal interval at most; so long ago, at
/// most, its client was heard of.
fn adopt(peer: &PeerId, instance: Arc<Instance>) -> Output {
    let age = Duration::from_secs(instance.lease.renewal_interval_secs.into());
    let just_alive =
        Duration::from_secs(instance.lease.duration_secs.into()).saturating_sub(Duration::from_millis(1));
    Output::Adopt {
        peer: peer.clone(),
        command: Command::Adopt {
            instance,
            age: age.min(just_alive),
        },
    }
}

#[cfg(test)]
mod tests;
