//! A small model of Java's server as a replication peer.
//!
//! Its registry is ours with Java's rules switched on. What it sends, and how, is modelled here as Java does it: one task
//! for each action and instance, a newer one in the place of the older; batches of at most 250 once the first task has
//! waited for 500 ms, several of them under way at once; renewals forwarded, one hop; 404 for a heartbeat sends the
//! registration, 409 is adopted; time-outs retried after a second, failed connections after 100 ms, until the task
//! expires; any other failure drops the batch. It knows neither repair nor ages.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{
    AppliedKind, Command, Config, Event, Instance, InstanceKey, Mono, Now, Origin, PeerId, Registry, Reply,
    Status,
};
use eureka_replication::{Action, Failure, Item, RequestId, Sender, Sending};

use crate::node::{Answer, Outgoing, Request, live, replicate};

/// Waiting for company, in milliseconds.
const BATCHING: u64 = 500;
/// After a time-out or 503.
const CONGESTION: u64 = 1_000;
/// After a failed connection.
const NETWORK: u64 = 100;
const BATCH: usize = 250;
/// `maxTimeForReplication`: how long cancels and overrides are tried, in milliseconds.
const PATIENCE: u64 = 30_000;

/// A Java server.
#[derive(Debug)]
pub(super) struct Java {
    pub(super) registry: Registry,
    pub(super) events: Vec<Event>,
    peers: Vec<Replica>,
    /// The peers to copy from, at start, that were not asked yet.
    to_copy: Vec<PeerId>,
    opened: bool,
    requests: u64,
    waiting: BTreeMap<(PeerId, RequestId), Vec<Task>>,
    outgoing: Vec<Outgoing>,
}

/// What waits for a peer.
#[derive(Debug)]
struct Replica {
    peer: PeerId,
    /// In their order.
    tasks: Vec<Task>,
    /// Nothing is sent before.
    blocked: Mono,
}

#[derive(Clone, Debug)]
struct Task {
    item: Item,
    since: Mono,
    expires: Mono,
}

impl Java {
    /// An empty server that copies from the first of its peers that has something.
    pub(super) fn new(now: Now, config: Config, peers: Vec<PeerId>) -> Self {
        let replicas = peers.iter().map(|peer| Replica {
            peer: peer.clone(),
            tasks: Vec::new(),
            blocked: Mono(0),
        });
        let mut java = Self {
            registry: Registry::new(now, config),
            events: Vec::new(),
            peers: replicas.collect(),
            to_copy: peers.into_iter().rev().collect(),
            opened: false,
            requests: 0,
            waiting: BTreeMap::new(),
            outgoing: Vec::new(),
        };
        java.copy_on(now, 0);
        java
    }

    /// What a client or an operator asks for.
    pub(super) fn apply(&mut self, now: Now, origin: Origin, command: Command) -> Reply {
        let reply = self.registry.apply(now, origin, command);
        self.carry_out(now);
        reply
    }

    /// Does what is due.
    pub(super) fn tick(&mut self, now: Now) {
        for _ in 0..64 {
            if self.registry.poll_timeout().is_none_or(|(due, _)| due > now.mono) {
                break;
            }
            self.registry.handle_timeout(now);
        }
        self.carry_out(now);
    }

    /// When to call [`tick`](Self::tick) next.
    pub(super) fn next_due(&self) -> Option<Mono> {
        let registry = self.registry.poll_timeout().map(|(due, _)| due);
        let batches = self.peers.iter().filter_map(Replica::due);
        registry.into_iter().chain(batches).min()
    }

    /// The requests that are to be sent now.
    pub(super) fn take_outgoing(&mut self) -> Vec<Outgoing> {
        std::mem::take(&mut self.outgoing)
    }

    /// Answers a request of another server. What is ours it does not know.
    pub(super) fn serve(&mut self, now: Now, sender: &Sender, request: &Request) -> Answer {
        let answer = match request {
            Request::Probe | Request::Repair(_) => Answer::Status(404),
            Request::Lists => Answer::Lists(self.registry.snapshot(now).instances().cloned().collect()),
            Request::Batch(items) => {
                let origin = Origin::Peer(PeerId(sender.identity.clone().unwrap_or_default()));
                let answers = items
                    .iter()
                    .map(|item| replicate(now, &mut self.registry, &origin, item));
                Answer::Batch(answers.collect())
            }
        };
        self.carry_out(now);
        answer
    }

    /// A request ended.
    pub(super) fn answered(
        &mut self,
        now: Now,
        peer: &PeerId,
        id: RequestId,
        answer: Result<Answer, Failure>,
    ) {
        let Some(tasks) = self.waiting.remove(&(peer.clone(), id)) else {
            return;
        };
        if tasks.is_empty() {
            self.copied(now, answer);
        } else {
            match answer {
                Ok(Answer::Batch(answers)) if answers.len() == tasks.len() => {
                    for (task, (status, newer)) in tasks.into_iter().zip(answers) {
                        self.item_answered(now, peer, &task, status, newer);
                    }
                }
                Ok(Answer::Status(503)) | Err(Failure::Busy) => self.again(now, peer, tasks, CONGESTION),
                Err(Failure::Unreachable) => self.again(now, peer, tasks, NETWORK),
                Ok(_) | Err(_) => {}
            }
        }
        self.carry_out(now);
    }

    fn item_answered(
        &mut self,
        now: Now,
        peer: &PeerId,
        task: &Task,
        status: u16,
        newer: Option<Arc<Instance>>,
    ) {
        if task.item.action != Action::Renew {
            return;
        }
        if status == 404 {
            let item = Item {
                key: task.item.key.clone(),
                action: Action::Register,
            };
            self.enqueue(now, Some(peer), item);
        } else if let Some(newer) = newer {
            let origin = Origin::Peer(peer.clone());
            let key = newer.key();
            if newer.overridden_status != Status::Unknown {
                let status = newer.overridden_status;
                self.registry
                    .set_override(now, origin.clone(), &key, status, None);
            }
            self.registry.register(now, origin, newer, Duration::ZERO);
        }
    }

    /// Back to the front, unless something newer took the place.
    fn again(&mut self, now: Now, peer: &PeerId, tasks: Vec<Task>, delay: u64) {
        let Some(replica) = self.peers.iter_mut().find(|replica| replica.peer == *peer) else {
            return;
        };
        replica.blocked = Mono(now.mono.0 + delay);
        let mut kept: Vec<_> = tasks
            .into_iter()
            .filter(|task| task.expires > now.mono)
            .filter(|task| replica.tasks.iter().all(|other| other.item != task.item))
            .collect();
        kept.append(&mut replica.tasks);
        replica.tasks = kept;
    }

    /// The embedded client's copy of the first peer that has something: what is UP.
    fn copied(&mut self, now: Now, answer: Result<Answer, Failure>) {
        let mut synced = 0;
        if let Ok(Answer::Lists(views)) = answer {
            for view in views.iter().filter(|view| view.instance.status == Status::Up) {
                let instance = Arc::clone(&view.instance);
                let origin = Origin::Peer(PeerId("copy".into()));
                self.registry.register(now, origin, instance, Duration::ZERO);
                synced += 1;
            }
        }
        if synced > 0 {
            self.to_copy.clear();
        }
        self.copy_on(now, synced);
    }

    /// Asks the next peer, or opens.
    fn copy_on(&mut self, now: Now, synced: usize) {
        if let Some(peer) = self.to_copy.pop() {
            self.send(peer, Vec::new(), Request::Lists);
        } else if !self.opened {
            self.opened = true;
            self.registry.open(now, synced, None);
        }
    }

    fn carry_out(&mut self, now: Now) {
        while let Some(event) = self.registry.poll_event() {
            if let Event::Applied {
                key, kind, origin, ..
            } = &event
                && !origin.is_peer()
                && let Some(action) = forwarded(*kind)
            {
                let key = key.clone();
                self.enqueue(now, None, Item { key, action });
            }
            self.events.push(event);
        }
        self.send_due(now);
    }

    /// A task for one peer or for all of them.
    fn enqueue(&mut self, now: Now, only: Option<&PeerId>, item: Item) {
        let renewal = self
            .registry
            .lease(now, &item.key)
            .map_or(90, |view| u64::from(view.instance.lease.renewal_interval_secs));
        let lasts = match item.action {
            Action::Register | Action::Renew => renewal * 1_000,
            Action::Cancel | Action::Override | Action::ClearOverride => PATIENCE,
        };
        let task = Task {
            item,
            since: now.mono,
            expires: Mono(now.mono.0 + lasts),
        };
        for replica in &mut self.peers {
            if only.is_some_and(|only| *only != replica.peer) {
                continue;
            }
            match replica.tasks.iter_mut().find(|other| other.item == task.item) {
                Some(older) => *older = task.clone(),
                None => replica.tasks.push(task.clone()),
            }
        }
    }

    fn send_due(&mut self, now: Now) {
        for index in 0..self.peers.len() {
            let replica = &mut self.peers[index];
            if replica.due().is_none_or(|due| due > now.mono) {
                continue;
            }
            let count = replica.tasks.len().min(BATCH);
            let mut tasks: Vec<_> = replica.tasks.drain(..count).collect();
            let peer = replica.peer.clone();
            tasks.retain(|task| task.expires > now.mono);
            let rendered = tasks.into_iter().filter_map(|task| {
                let sending = render(now, &self.registry, &task.item)?;
                Some((task, sending))
            });
            let (tasks, sending): (Vec<_>, Vec<_>) = rendered.unzip();
            if !tasks.is_empty() {
                self.send(peer, tasks, Request::Batch(sending));
            }
        }
    }

    /// `tasks` is empty for everything that is no batch.
    fn send(&mut self, peer: PeerId, tasks: Vec<Task>, request: Request) {
        self.requests += 1;
        let id = RequestId(self.requests);
        self.waiting.insert((peer.clone(), id), tasks);
        self.outgoing.push(Outgoing { peer, id, request });
    }
}

impl Replica {
    fn due(&self) -> Option<Mono> {
        let first = self.tasks.first()?;
        Some(Mono(first.since.0 + BATCHING).max(self.blocked))
    }
}

/// What Java forwards of what it was told by clients.
const fn forwarded(kind: AppliedKind) -> Option<Action> {
    match kind {
        AppliedKind::Registered | AppliedKind::MetadataChanged => Some(Action::Register),
        AppliedKind::Renewed => Some(Action::Renew),
        AppliedKind::Cancelled => Some(Action::Cancel),
        AppliedKind::Overridden => Some(Action::Override),
        AppliedKind::OverrideCleared => Some(Action::ClearOverride),
        AppliedKind::Adopted => None,
    }
}

/// The instance as it is when it is sent. Java's override updates carry the status of the moment.
fn render(now: Now, registry: &Registry, item: &Item) -> Option<Sending> {
    let live = || live(now, registry, &item.key);
    match item.action {
        Action::Cancel => Some(Sending::Cancel(InstanceKey::clone(&item.key))),
        Action::Register => live().map(Sending::Register),
        Action::Override => live().map(Sending::Override),
        Action::ClearOverride => live().map(Sending::ClearOverride),
        Action::Renew => live().map(Sending::Renew),
    }
}
