//! Whether all nodes are equal: their digests, and what readers see, up to lease times.

use std::collections::BTreeMap;
use std::sync::Arc;

use eureka_registry_core::{Instance, InstanceKey};

use super::client::Client;
use super::trace;
use super::world::{Server, World};

/// Whether a node of ours holds something that does not renew any more and has not run out yet. At each node that happens
/// at its own moment, and for that long their digests differ.
pub(super) fn fading(world: &World) -> bool {
    const MARGIN: u64 = 2_000;
    (0..world.servers.len()).any(|node| {
        let ours = !world.scenario.nodes[node].java;
        let Some(registry) = world.servers[node].registry().filter(|_| ours) else {
            return false;
        };
        world
            .clients
            .iter()
            .zip(&world.watch.clients)
            .any(|(client, truth)| {
                let last = truth.accepted.iter().max().expect("there are servers");
                let renews = client.running && last + client.interval() + 2_000 > world.at;
                let Some(age) = registry.age(world.now(node), &client.key) else {
                    return false;
                };
                // By the time of the server, which does not count its pauses.
                let heard = world.at.saturating_sub(age.as_millis() as u64);
                let (watched, _) = world.watch.nodes[node].watched(world.at, heard);
                !renews && watched < truth.duration + MARGIN
            })
    })
}

/// The first difference between two nodes of ours, that of their digests included.
pub(super) fn difference(world: &mut World, digests: bool) -> Option<String> {
    let mut first: Option<(usize, u64, BTreeMap<InstanceKey, Arc<Instance>>)> = None;
    for node in 0..world.servers.len() {
        let now = world.now(node);
        let at = world.at;
        let clients = &world.watch.clients;
        let ours = match world.servers[node].server.as_mut() {
            None => return Some(format!("n{node} is down")),
            Some(Server::Java(_)) => continue,
            Some(Server::Ours(ours)) => ours,
        };
        let root = ours.root(now);
        let snapshot = ours.registry.snapshot(now);
        // What has run out is nobody's any more; each node evicts it when its time comes.
        let live = snapshot
            .instances()
            .filter(|view| clients[Client::index(&view.key())].is_live(at));
        let listed: BTreeMap<_, _> = live
            .map(|view| (view.key(), Arc::clone(&view.instance)))
            .collect();
        let Some((other, their_root, theirs)) = &first else {
            first = Some((node, root, listed));
            continue;
        };
        if let Some(text) = differs(theirs, &listed) {
            return Some(format!("n{other} and n{node}: {text}"));
        }
        if digests && root != *their_root {
            return Some(format!("n{other} and n{node}: the digests differ"));
        }
    }
    None
}

fn differs(
    left: &BTreeMap<InstanceKey, Arc<Instance>>,
    right: &BTreeMap<InstanceKey, Arc<Instance>>,
) -> Option<String> {
    for (key, instance) in left {
        match right.get(key) {
            None => return Some(format!("{key} is at the first only")),
            Some(other) if other != instance => {
                return Some(format!(
                    "{key} is {} and {}",
                    trace::instance(instance),
                    trace::instance(other)
                ));
            }
            Some(_) => {}
        }
    }
    let more = right.keys().find(|key| !left.contains_key(*key))?;
    Some(format!("{more} is at the second only"))
}

/// What servers that behave like Java must have in the end: every live instance, under its newest dirty timestamp, and
/// with the same status. Excluded, because Java cannot do better:
///
/// * the status of an instance that an operator ever touched: overrides that differ at equal dirty timestamps never heal;
/// * metadata: Java's own changes leave the dirty timestamp as it is, so nobody sees that they differ;
/// * a status that the client itself moved between UP and OUT_OF_SERVICE: it depends on which copies met in which order;
/// * which of the statuses that a client reported, one after the other, under one constant dirty timestamp: who missed a
///   registration is told nothing by heartbeats, which compare these timestamps alone, and batches under way at the same
///   time overtake each other. It must be one of those it reported, at both.
pub(super) fn javas(world: &mut World) {
    let Some(model) = (0..world.servers.len()).find(|node| !world.scenario.nodes[*node].java) else {
        return;
    };
    for node in 0..world.servers.len() {
        if !world.scenario.nodes[node].java {
            continue;
        }
        for client in 0..world.clients.len() {
            let truth = &world.watch.clients[client];
            let recent = truth
                .accepted
                .iter()
                .any(|accepted| *accepted + truth.duration / 2 > world.at);
            if !recent || truth.operated {
                continue;
            }
            let key = &world.clients[client].key;
            let view = |node: usize| world.servers[node].registry()?.lease(world.now(node), key);
            let (Some(ours), javas) = (view(model), view(node)) else {
                continue;
            };
            let same = javas.as_ref().is_some_and(|javas| {
                let (model, client) = (ours.instance.status, &world.clients[client]);
                let status = javas.instance.status;
                let excused = client.wavered || client.told_both(model, status);
                ours.instance.last_dirty == javas.instance.last_dirty && (model == status || excused)
            });
            if !same {
                let javas = javas.map(|view| trace::instance(&view.instance));
                let text = format!(
                    "{key} is {javas:?} at n{node}, at n{model} {}",
                    trace::instance(&ours.instance)
                );
                return world.watch.fail("Java differs", || text);
            }
        }
    }
}
