//! Addresses that lead to changing servers, or back to whoever uses them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Case, Index, Target};
use crate::cli::doctor::observation::{Identity, Link, Peer};
use crate::cli::doctor::report::Finding;

/// What is wrong with one address, for all servers that use it.
#[derive(Default)]
struct Trouble {
    shared: bool,
    users: BTreeSet<Index>,
    evidence: Vec<String>,
}

pub(super) fn check(case: &mut Case<'_>) {
    let mut troubles: BTreeMap<String, Trouble> = BTreeMap::new();
    for &(index, _, answers) in &case.healthy {
        for peer in answers.peers.iter().flatten() {
            if let Some((shared, evidence)) = judge(case, index, peer) {
                let trouble = troubles.entry(peer.address.clone()).or_default();
                trouble.shared |= shared;
                trouble.users.insert(index);
                trouble.evidence.extend(evidence);
            }
        }
    }
    for (address, trouble) in troubles {
        explain(case, &trouble);
        let finding = trouble.finding(case, &address);
        case.find(finding);
        case.spoken_of.insert(address);
    }
}

/// Whether the address leads to more than one server, or else to its user alone; `None` if it does neither.
fn judge(case: &Case<'_>, user: Index, peer: &Peer) -> Option<(bool, Vec<String>)> {
    let own = case.answers(user)?;
    let answering = case.seen.addresses.get(&peer.address);
    let identities: BTreeSet<_> = answering
        .iter()
        .flat_map(|answering| &answering.identities)
        .collect();
    let alarm = |name: &str| {
        let mut alarms = own.alarms.iter();
        alarms.find(|alarm| alarm.name == name && alarm.address == peer.address)
    };
    let told = |text: &str| format!("{} says of its peer {}: {text}", case.name(user), peer.address);
    let shared = alarm("shared-address");
    if identities.len() > 1 || shared.is_some() {
        let seen = (identities.len() > 1).then(|| changing(&identities));
        return Some((
            true,
            seen.into_iter()
                .chain(shared.map(|alarm| told(&alarm.text)))
                .collect(),
        ));
    }
    let back = alarm("self-loop");
    let leads_back = own.identity().is_some_and(|own| identities.contains(own));
    if !leads_back && back.is_none() && peer.link != Some(Link::Own) {
        return None;
    }
    let seen = leads_back.then(|| {
        let address = &peer.address;
        format!(
            "asked from here, {address} answers as {} itself does",
            case.name(user)
        )
    });
    let mut evidence: Vec<_> = seen
        .into_iter()
        .chain(back.map(|alarm| told(&alarm.text)))
        .collect();
    if evidence.is_empty() {
        evidence.push(told("it leads back to itself"));
    }
    Some((false, evidence))
}

fn changing(identities: &BTreeSet<&Identity>) -> String {
    let names: Vec<_> = identities
        .iter()
        .map(|identity| match identity {
            Identity::Node(id) => format!("node {id}"),
            Identity::Java { id, place, .. } => format!("{id} ({place})"),
            Identity::Unnamed => "a server that does not say who it is".to_owned(),
        })
        .collect();
    format!("asked several times, it was answered by {}", names.join(", "))
}

/// What should have gone to the others by this address went astray: to those that no other address leads to.
fn explain(case: &mut Case<'_>, trouble: &Trouble) {
    for &user in &trouble.users {
        let own = case.answers(user).and_then(|answers| answers.peers.as_ref());
        let own: Vec<_> = own.into_iter().flatten().map(|peer| case.target(peer)).collect();
        let others: Vec<_> = case.healthy.iter().map(|(index, ..)| *index).collect();
        for other in others {
            let alone = |target: &Target| match target {
                Target::Named(named) => named.len() == 1 && named.contains(&other),
                Target::Other | Target::Unknown(_) => false,
            };
            if other != user && !own.iter().any(alone) {
                case.explained.insert((user, other));
            }
        }
    }
}

impl Trouble {
    fn finding(&self, case: &Case<'_>, address: &str) -> Finding {
        let users: Vec<_> = self.users.iter().map(|index| case.name(*index)).collect();
        let mut evidence = self.evidence.clone();
        evidence.dedup();
        let (name, sentence, remedy) = if self.shared {
            (
                "shared-address",
                format!(
                    "{} a peer address, {address}, that several servers share: what is sent there reaches one of them, by chance.",
                    has(&users)
                ),
                "List every peer by an address of its own (in Kubernetes the names of a headless service), never a load balancer's.",
            )
        } else {
            (
                "self-loop",
                format!(
                    "{} a peer address, {address}, that leads back to itself: it replicates to itself, and the peer that was meant gets nothing.",
                    has(&users)
                ),
                "Correct the address in the list of peers. A server leaves itself out of that list only if the host name there is its own: Java compares nothing else.",
            )
        };
        Finding {
            name,
            servers: users.iter().map(|user| (*user).to_owned()).collect(),
            sentence,
            evidence,
            remedy: remedy.to_owned(),
        }
    }
}

/// A server that was named by an address that is not its own: nothing it says can be compared.
pub(super) fn shared_server(name: &str, answering: &BTreeSet<&Identity>) -> Finding {
    Finding {
        name: "shared-address",
        servers: vec![name.to_owned()],
        sentence: format!("{name} is an address that several servers share: what is asked there is answered by one of them, by chance."),
        evidence: vec![changing(answering)],
        remedy: "Ask each server by an address of its own; a load balancer is for clients, never for peers or for a comparison.".to_owned(),
    }
}

fn has(users: &[&str]) -> String {
    let names = super::joined(users);
    if users.len() == 1 {
        format!("{names} has")
    } else {
        format!("{names} have")
    }
}
