//! What must hold. Definitions:
//!
//! *Live*: some server accepted a heartbeat of the instance within its lease duration, and no old cancel came since. *Ghost*: crashed or cancelled,
//! listed later than duration + eviction interval + 30 s, outside preservation and hold. *Converged*: equal root hashes
//! and equal lists up to lease times. *Silent*: between two root exchanges no message but first-hand renewals.

use eureka_registry_core::{AppliedKind, Event, InstanceKey, Origin, RepairRequest};
use eureka_replication::{Action, Sending};

use super::client::Client;
use super::scenario::TIMEOUT;
use super::watch::{Known, Seen, place};
use super::world::{Server, World, seconds};
use crate::node::{Outgoing, Request};

/// A way that has been good for so long has brought what there was to bring: a retry after the longest back-off, two
/// digests, and what they lead to. In milliseconds.
const SETTLED: u64 = 60_000;
/// So long after the heal all nodes of ours are equal, at the latest.
const CONVERGED: u64 = 60_000;
/// So long after the heal all lists are open, at the latest: a node that starts with nothing waits for its clients.
const OPENED: u64 = 320_000;
/// For so long it has to be silent then.
const SILENT: u64 = 35_000;
/// Whatever waited for a server that stood still comes to it within this time.
const AWAKE: u64 = 2_000;
/// Until what was accepted at one server has come to another of ours.
const UNDER_WAY: u64 = 1_000;
/// How much longer than by the rules a ghost may be listed.
const GHOST: u64 = 30_000;

/// Something happened in a registry.
pub(super) fn event(world: &mut World, node: usize, event: &Event) {
    let at = world.at;
    match event {
        Event::Applied {
            key, kind, origin, ..
        } => {
            let client = Client::index(key);
            world.note(|| format!("n{node} {kind:?} {key} from {origin:?}"));
            if *kind == AppliedKind::Cancelled && origin.is_peer() {
                world.watch.buried(at, client, node);
            }
            let known = &mut world.watch.nodes[node].leases[client];
            applied(at, known, *kind, origin);
        }
        Event::Expired { key, .. } => {
            world.note(|| format!("n{node} evicts {key}"));
            expired(world, node, key);
            world.watch.nodes[node].leases[Client::index(key)].heard = None;
        }
        Event::Preserving(preserving) => {
            world.note(|| format!("n{node} preserving: {preserving}"));
            world.watch.nodes[node].preserving = *preserving;
        }
        _ => {}
    }
}

/// A batch comes to a server. A cancel in it may be older than the registration that brought the instance back: it left
/// before, and the receiver stood still, or a way was bad, or it was overtaken. Neither a timestamp nor an age is in it, so
/// it cannot be told from a new one: see docs/repair.md.
pub(super) fn arriving(world: &mut World, from: usize, to: usize, request: &Request) {
    let Request::Batch(items) = request else { return };
    if from == to && !world.scenario.nodes[to].java {
        // It is not applied.
        return;
    }
    waited(world, to, items);
    for item in items {
        let Sending::Cancel(key) = item else { continue };
        let client = Client::index(key);
        let now = world.now(to);
        let registry = world.servers[to].registry();
        let held = registry.is_some_and(|registry| registry.lease(now, key).is_some());
        let truth = &world.watch.clients[client];
        if held && truth.cancels > 0 && truth.cancelled.is_none() {
            world.note(|| format!("an old cancel of {key} of n{from} comes to n{to}"));
            world.watch.struck(client);
        }
    }
}

/// What waited for a server that stood still counts there as heard when it wakes, for nothing in a batch says when it left:
/// see docs/repair.md.
fn waited(world: &mut World, to: usize, items: &[Sending]) {
    let at = world.at;
    let mut pauses = world.watch.nodes[to].pauses.iter();
    if !pauses.any(|(_, until)| *until <= at && at < until + AWAKE) {
        return;
    }
    for item in items {
        if let Sending::Register(live) | Sending::Renew(live) = item {
            let client = Client::index(&live.view.key());
            let truth = &mut world.watch.clients[client];
            truth.touched = truth.touched.max(at);
        }
    }
}

fn applied(at: u64, known: &mut Known, kind: AppliedKind, origin: &Origin) {
    let action = match kind {
        AppliedKind::Registered | AppliedKind::MetadataChanged => Action::Register,
        AppliedKind::Renewed => Action::Renew,
        AppliedKind::Cancelled => Action::Cancel,
        AppliedKind::Overridden => Action::Override,
        AppliedKind::OverrideCleared => Action::ClearOverride,
        _ => {
            known.heard = None;
            return;
        }
    };
    let via = match origin {
        Origin::Peer(peer) => Some(peer.clone()),
        _ => None,
    };
    if via.is_none() {
        known.first_hand[place(action)] = at;
    }
    known.heard = match action {
        Action::Register | Action::Renew => Some((at, via)),
        Action::Cancel => None,
        // Of what a peer says of an override it cannot be told whether it was a repair, which is no sign of life.
        Action::Override | Action::ClearOverride if via.is_some() => known.heard.take(),
        Action::Override | Action::ClearOverride => Some((at, via)),
    };
}

/// Nobody is evicted before its lease ran out by the time this server was awake, and not while it is to be held.
fn expired(world: &mut World, node: usize, key: &InstanceKey) {
    let at = world.at;
    let client = Client::index(key);
    let seen = &world.watch.nodes[node];
    let Some((heard, via)) = seen.leases[client].heard.clone() else {
        return;
    };
    let ours = !world.scenario.nodes[node].java;
    // Java counts its pauses like any other time; only for an eviction run that comes late it makes up.
    let (watched, pauses) = if ours {
        seen.watched(at, heard)
    } else {
        (at - heard, 0)
    };
    let duration = world.watch.clients[client].duration;
    let slack = 2_000 * (pauses + 1);
    if watched + slack < duration {
        world.watch.fail("evicted early", || {
            format!(
                "n{node} evicts {key}, heard of at {}, {watched} ms awake",
                seconds(heard)
            )
        });
    }
    let others = (0..world.servers.len()).filter(|other| *other != node);
    let isolated = others
        .into_iter()
        .all(|other| world.links.open_for(at, node, other) == 0);
    let since_boot = at - world.watch.nodes[node].booted;
    // Of a sender that was not probed yet nobody knows whether it can be reached: what was heard through it is not held.
    let known = via.as_ref().is_some_and(|via| world.peers.contains(via));
    if ours && isolated && known && since_boot > 3 * duration && pauses == 0 && watched < 3 * duration {
        let others = (0..world.servers.len()).filter(|other| *other != node);
        let cut = others
            .map(|other| world.links.cut_for(at, node, other))
            .min()
            .unwrap_or(0);
        if cut > SETTLED {
            world.watch.fail("not held", || {
                format!(
                    "n{node}, which reaches nobody, evicts {key}, heard of through {via:?} at {}",
                    seconds(heard)
                )
            });
        }
    }
}

/// A request leaves: what a server sends stems from what it was told first-hand, or is a repair.
pub(super) fn sent(world: &mut World, from: usize, to: usize, outgoing: &Outgoing) {
    if let Some(since) = world.watch.silent_from
        && world.at >= since
    {
        silent(world, from, to, outgoing);
    }
    if world.scenario.nodes[from].java {
        return;
    }
    let Request::Batch(items) = &outgoing.request else {
        return;
    };
    let mut keys = Vec::new();
    for item in items {
        let (key, action) = parts(item);
        first_hand(world, from, to, &key, action);
        keys.push((key, action));
    }
    keys.sort_by(|a, b| (&a.0, place(a.1)).cmp(&(&b.0, place(b.1))));
    let count = keys.len();
    keys.dedup();
    if keys.len() < count {
        world.watch.fail("sent twice", || {
            format!("n{from} sends the same twice in one batch to n{to}")
        });
    }
    if items.len() > 250 && world.scenario.nodes[to].java {
        world
            .watch
            .fail("batch too long", || format!("{} items to Java", items.len()));
    }
}

fn first_hand(world: &mut World, from: usize, to: usize, key: &InstanceKey, action: Action) {
    let at = world.at;
    let client = Client::index(key);
    let duration = world.watch.clients[client].duration;
    let told = world.watch.nodes[from].leases[client].first_hand;
    let last = *told.iter().max().expect("five actions");
    let (told, within) = match action {
        // It may follow from a heartbeat that was answered 404.
        Action::Register | Action::Override | Action::ClearOverride => (last, duration + 5_000),
        Action::Renew => (
            told[place(action)].max(told[place(Action::Register)]),
            duration / 3 + 5_000,
        ),
        Action::Cancel => (told[place(action)], duration + 5_000),
    };
    if told == 0 || told + within < at {
        world.watch.fail("second-hand", || {
            format!(
                "n{from} sends {action:?} {key} to n{to}, told first-hand at {}",
                seconds(told)
            )
        });
    }
}

fn parts(item: &Sending) -> (InstanceKey, Action) {
    match item {
        Sending::Register(live) => (live.view.key(), Action::Register),
        Sending::Cancel(key) => (key.clone(), Action::Cancel),
        Sending::Override(live) => (live.view.key(), Action::Override),
        Sending::ClearOverride(live) => (live.view.key(), Action::ClearOverride),
        Sending::Renew(live) => (live.view.key(), Action::Renew),
    }
}

/// When all are equal nothing is sent but renewals, probes and root hashes. Java is not asked that of: where statuses
/// differ at equal dirty timestamps it answers renewals with 404 for ever, and is sent what it then refuses again.
fn silent(world: &mut World, from: usize, to: usize, outgoing: &Outgoing) {
    let java = |node: usize| world.scenario.nodes[node].java;
    if java(from) {
        return;
    }
    let quiet = |item: &Sending| match item {
        Sending::Renew(_) => true,
        _ => java(to) && world.watch.clients[Client::index(&parts(item).0)].operated,
    };
    let allowed = match &outgoing.request {
        Request::Batch(items) => items.iter().all(quiet),
        Request::Probe | Request::Repair(RepairRequest::Compare { .. }) => true,
        Request::Repair(_) | Request::Lists => false,
    };
    if !allowed {
        let text = super::trace::request(outgoing);
        world
            .watch
            .fail("not silent", || format!("n{from} sends n{to} {text}"));
    }
}

/// Once a second.
pub(super) fn look(world: &mut World) {
    for node in 0..world.servers.len() {
        if !world.is_up(node) {
            continue;
        }
        if world.watch.nodes[node].preserving {
            world.watch.nodes[node].preserved = world.at;
        }
        opening(world, node);
        for client in 0..world.clients.len() {
            let key = world.clients[client].key.clone();
            let registry = world.servers[node].registry().expect("it is up");
            if registry.lease(world.now(node), &key).is_some() {
                ghost(world, node, client);
                resurrected(world, node, client);
            } else {
                world.watch.nodes[node].leases[client].ghost = 0;
                missing(world, node, client);
            }
        }
        if world.at.is_multiple_of(5_000) {
            bounded(world, node);
        }
    }
    if world.at >= world.scenario.heal {
        converging(world);
    }
}

/// Lists are not opened empty while a peer that can be reached has something.
fn opening(world: &mut World, node: usize) {
    let now = world.now(node);
    if world.watch.nodes[node].opened {
        return;
    }
    let Some(Server::Ours(ours)) = world.servers[node].server.as_mut() else {
        world.watch.nodes[node].opened = true;
        return;
    };
    if !ours.is_open(now) {
        return;
    }
    world.watch.nodes[node].opened = true;
    world.note(|| format!("n{node} is open"));
    if world.servers[node]
        .registry()
        .is_some_and(|registry| registry.stats().instances > 0)
    {
        return;
    }
    for other in 0..world.servers.len() {
        let holds = |client: &Client| {
            let registry = world.servers[other].registry();
            registry.is_some_and(|registry| registry.lease(world.now(other), &client.key).is_some())
        };
        let reachable =
            other != node && world.is_up(other) && world.links.good_for(world.at, node, other) > 5_000;
        let live = |client: &Client| {
            let truth = &world.watch.clients[Client::index(&client.key)];
            truth.is_live(world.at) && truth.since + 10_000 < world.at
        };
        let found = reachable && world.clients.iter().any(|client| holds(client) && live(client));
        if found {
            world.watch.fail("opened empty", || {
                format!("n{node} opens empty, n{other} has something")
            });
        }
    }
}

/// A live instance is listed wherever it could be heard of.
fn missing(world: &mut World, node: usize, client: usize) {
    let at = world.at;
    if !world.watch.nodes[node].opened || world.watch.violation.is_some() {
        return;
    }
    let truth = &world.watch.clients[client];
    // A cancel under a greater dirty timestamp, taken where nobody heard that the instance is back, wins against copies of
    // copies until the server at which it registered has learned of it: see docs/repair.md.
    let buried = world.watch.nodes[node].leases[client].buried;
    if !truth.is_live(at) || truth.since.max(buried) + SETTLED > at {
        return;
    }
    let source = (0..world.servers.len()).find(|source| {
        let accepted = truth.accepted[*source];
        *source != node && truth.is_fresh(at, accepted) && can_hear(world, node, *source, client)
    });
    let itself = truth.is_fresh(at, truth.accepted[node]);
    if let Some(source) = source.or_else(|| itself.then_some(node)) {
        let key = &world.clients[client].key;
        let accepted = truth.accepted[source];
        let text = format!("{key} at n{node}, which n{source} heard at {}", seconds(accepted));
        world.watch.fail("missing", || text);
    }
}

/// Whether what one server accepted then must have come to another.
fn can_hear(world: &World, node: usize, source: usize, client: usize) -> bool {
    let at = world.at;
    let accepted = world.watch.clients[client].accepted[source];
    let java = |node: usize| world.scenario.nodes[node].java;
    let tight = world.scenario.queue_limit < 10 || world.scenario.max_rate < 100;
    if java(node) || java(source) {
        // It has to come by itself, and a full queue is not made up for.
        let good = world
            .links
            .good_for(at, source, node)
            .saturating_sub(at - accepted);
        let truth = &world.watch.clients[client];
        // A cancel that comes late takes what is new; the next heartbeat brings it back.
        return !tight && good >= SETTLED && accepted + 5_000 < at && accepted > truth.since + 10_000;
    }
    if accepted + UNDER_WAY > at {
        return false;
    }
    if world.links.good_for(at, source, node) >= SETTLED {
        return true;
    }
    (0..world.servers.len()).any(|between| {
        between != node
            && between != source
            && !java(between)
            && world.links.good_for(at, source, between) >= 2 * SETTLED
            && world.links.good_for(at, between, node) >= 2 * SETTLED
    })
}

/// What crashed is not listed for ever.
fn ghost(world: &mut World, node: usize, client: usize) {
    let at = world.at;
    let mixed = world.scenario.nodes.iter().any(|plan| plan.java);
    let java = world.scenario.nodes[node].java;
    let truth = &world.watch.clients[client];
    let seen = &world.watch.nodes[node];
    let lasts = if java { 2 * truth.duration } else { truth.duration };
    // Java cannot tell how old its copies are: who copies from it starts anew.
    let touched = if mixed {
        truth.touched.max(seen.booted)
    } else {
        truth.touched
    };
    let severed = |other: usize| {
        let pair = world.scenario.severed;
        pair == Some((node, other)) || pair == Some((other, node))
    };
    let held = (0..world.servers.len())
        .any(|other| other != node && !severed(other) && world.links.good_for(at, node, other) < SETTLED);
    let preserved = seen.preserving || seen.preserved > 0 && seen.preserved + lasts + 5_000 > at;
    let excused = at < touched + lasts || held || preserved || !seen.opened;
    let registry = world.servers[node].registry().expect("it is up");
    let size = registry.stats().instances;
    let quota = size - (size as f64 * 0.85) as usize;
    let runs = size.div_ceil(quota.max(1)) as u64;
    let bound = runs * world.scenario.nodes[node].eviction * 1_000 + GHOST + truth.duration / 3;
    let known = &mut world.watch.nodes[node].leases[client];
    known.ghost = if excused { 0 } else { known.ghost + 1_000 };
    if known.ghost > bound {
        let ghost = known.ghost;
        let key = world.clients[client].key.clone();
        world.watch.fail("ghost", || {
            format!(
                "{key} at n{node}, last heard of anywhere at {}, {ghost} ms too long",
                seconds(touched)
            )
        });
    }
}

/// What was cancelled is gone wherever the cancel could be heard of, and stays so.
fn resurrected(world: &mut World, node: usize, client: usize) {
    let at = world.at;
    let Some((cancelled, source)) = world.watch.clients[client].cancelled else {
        return;
    };
    let java = |node: usize| world.scenario.nodes[node].java;
    let weather = world.scenario.weather;
    if cancelled + SETTLED > at || world.watch.nodes[source].booted > cancelled {
        return;
    }
    let strays = weather.twice > 0 || weather.straying > 0;
    let good = world.links.good_for(at, node, source);
    // With a Java server: another one that has not heard of the cancel brings it back there, by a 404 for its heartbeat.
    // What was on its way when it was cancelled, and arrives later, cannot be told from a return: see docs/repair.md.
    let asleep = |seen: &Seen| {
        let around = |(from, until): &(u64, u64)| *from < cancelled + 5_000 && *until + TIMEOUT > cancelled;
        seen.pauses.iter().any(around)
    };
    // Nor has a copy an age that comes from a Java server, at the start of one of ours.
    let mixed = world.scenario.nodes.iter().any(|plan| plan.java);
    let restarted = mixed && world.watch.nodes.iter().any(|seen| seen.booted > cancelled);
    let told = if java(node) || strays || restarted || world.watch.nodes.iter().any(asleep) {
        false
    } else if java(source) {
        good >= SETTLED + (at - cancelled)
    } else {
        node == source || good >= SETTLED
    };
    if told {
        let key = world.clients[client].key.clone();
        world.watch.fail("resurrected", || {
            format!(
                "{key} at n{node}, cancelled at n{source} at {}",
                seconds(cancelled)
            )
        });
    }
}

/// Queues keep their limits.
fn bounded(world: &mut World, node: usize) {
    let now = world.now(node);
    let limit = world.scenario.queue_limit;
    let Some(Server::Ours(ours)) = &world.servers[node].server else {
        return;
    };
    let facts = ours.mesh.facts(now);
    if let Some(peer) = facts.peers.iter().find(|peer| peer.queue > limit) {
        let (peer, queue) = (peer.peer.clone(), peer.queue);
        world.watch.fail("unbounded", || {
            format!("n{node} has {queue} in the queue of {peer:?}")
        });
    }
}

/// After the heal all become equal, and then silent.
fn converging(world: &mut World) {
    let at = world.at;
    let heal = world.scenario.heal;
    let fading = super::equality::fading(world);
    let different = super::equality::difference(world, !fading);
    match (&different, world.watch.converged) {
        (None, None) => {
            world.watch.converged = Some(at - heal);
            world.note(|| "converged".to_owned());
        }
        (Some(text), _) if at > heal + CONVERGED => {
            let text = text.clone();
            world.watch.fail("not converged", || text);
        }
        (Some(_) | None, _) => {}
    }
    let opened = (0..world.servers.len()).all(|node| world.watch.nodes[node].opened);
    if !opened && at > heal + OPENED {
        world.watch.fail("not opened", || "lists are held".to_owned());
    }
    let settled = at > heal + CONVERGED && opened && !fading && world.watch.converged.is_some();
    if settled && world.watch.silent_from.is_none() {
        world.watch.silent_from = Some(at + 5_000);
    }
    if world.watch.silent_from.is_some_and(|since| at >= since + SILENT) {
        super::equality::javas(world);
        world.watch.finished = true;
    }
}
