//! Ways on which nothing arrives: as the senders tell, and as leases show that move at one end only.

use std::collections::BTreeSet;

use super::{Case, Index, Target};
use crate::cli::doctor::observation::{Answers, Link, Peer};
use crate::cli::doctor::report::Finding;
use crate::cli::doctor::sample::NAMED;

/// What nodes of ours say of their peers.
pub(super) fn told(case: &mut Case<'_>) {
    for (index, answers) in case
        .healthy
        .iter()
        .map(|(index, _, answers)| (*index, *answers))
        .collect::<Vec<_>>()
    {
        for peer in answers.peers.iter().flatten() {
            if !case.spoken_of.contains(&peer.address) && !is_unreachable_anyway(case, peer) {
                told_of(case, index, answers, peer);
            }
        }
    }
}

fn told_of(case: &mut Case<'_>, from: Index, answers: &Answers, peer: &Peer) {
    let to: BTreeSet<Index> = match case.target(peer) {
        Target::Named(named) => named,
        Target::Unknown(_) => case.remaining(from).into_iter().collect(),
        Target::Other => BTreeSet::new(),
    };
    let mut evidence = Vec::new();
    match &peer.link {
        Some(Link::Refused(text)) => {
            refused(case, from, peer, text);
            case.explained.extend(to.iter().map(|to| (from, *to)));
        }
        Some(Link::Down(text)) => evidence.push(format!(
            "{} says of its peer {}: {text}",
            case.name(from),
            peer.address
        )),
        Some(Link::Starting | Link::Up | Link::Own) | None => {}
    }
    let alarms = answers
        .alarms
        .iter()
        .filter(|alarm| alarm.address == peer.address);
    for alarm in alarms {
        let silent = alarm.name == "peer-silent";
        let outward = alarm.name == "one-way-link" && peer.link != Some(Link::Up);
        if silent || outward {
            evidence.push(format!(
                "{} has the alarm {}: {}",
                case.name(from),
                alarm.name,
                alarm.text
            ));
        }
    }
    if !evidence.is_empty() {
        if to.is_empty() {
            let finding = down_to_stranger(case, from, peer, evidence);
            case.find(finding);
        } else {
            for &to in &to {
                case.broken
                    .entry((from, to))
                    .or_default()
                    .extend(evidence.clone());
            }
        }
    }
    if peer.reaches_back == Some(false) {
        let text = format!(
            "{} says that its peer {} does not reach it",
            case.name(from),
            peer.address
        );
        for &to in &to {
            case.broken.entry((to, from)).or_default().push(text.clone());
        }
    }
}

/// Whether the peer is a server that was named and cannot be asked: that is a finding already.
fn is_unreachable_anyway(case: &Case<'_>, peer: &Peer) -> bool {
    let mut servers = case.seen.servers.iter();
    servers.any(|server| server.answers.is_err() && server.name == peer.address)
}

fn refused(case: &mut Case<'_>, from: Index, peer: &Peer, text: &str) {
    let name = case.name(from);
    let finding = Finding {
        name: "peer-misconfigured",
        servers: vec![name.to_owned(), peer.address.clone()],
        sentence: format!("{} refuses what {name} sends to it.", peer.address),
        evidence: vec![format!("{name} says of its peer {}: {text}", peer.address)],
        remedy: "Correct the peer's URL in the configuration: path (/eureka, or /eureka/v2 for Netflix' own server), user and password.".to_owned(),
    };
    case.spoken_of.insert(peer.address.clone());
    case.find(finding);
}

fn down_to_stranger(case: &Case<'_>, from: Index, peer: &Peer, evidence: Vec<String>) -> Finding {
    let name = case.name(from);
    Finding {
        name: "one-way-link",
        servers: vec![name.to_owned(), peer.address.clone()],
        sentence: format!("{name} does not reach its peer {}.", peer.address),
        evidence,
        remedy: "See whether that server runs, or take it out of the list of peers.".to_owned(),
    }
}

/// One finding for both directions of a way.
pub(super) fn conclude(case: &mut Case<'_>) {
    let broken = std::mem::take(&mut case.broken);
    for (&(from, to), evidence) in &broken {
        let back = broken.get(&(to, from));
        if back.is_some() && to < from {
            continue;
        }
        let mut evidence = evidence.clone();
        evidence.extend(back.into_iter().flatten().cloned());
        let ends = if back.is_some() {
            vec![(from, to), (to, from)]
        } else {
            vec![(from, to)]
        };
        for (from, to) in ends {
            evidence.extend(dead(case, from, to));
        }
        evidence.dedup();
        evidence.truncate(NAMED);
        let (a, b) = (case.name(from), case.name(to));
        let finding = if back.is_some() {
            Finding {
                name: "peer-silent",
                servers: vec![a.to_owned(), b.to_owned()],
                sentence: format!("Nothing goes between {a} and {b}, in either direction."),
                evidence,
                remedy: REMEDY.to_owned(),
            }
        } else {
            Finding {
                name: "one-way-link",
                servers: vec![a.to_owned(), b.to_owned()],
                sentence: format!(
                    "What {a} sends does not arrive at {b}: registrations and heartbeats that clients send to {a} are missing there. Nothing speaks against the way back."
                ),
                evidence,
                remedy: REMEDY.to_owned(),
            }
        };
        case.find(finding);
    }
    case.explained.extend(broken.keys());
    case.broken = broken;
}

const REMEDY: &str = "From the first server's machine, ask the second at the address that the first has for it (GET apps). If that works, see what is between them that treats POST peerreplication/batch differently (proxy, body limit, credentials), the read time-out of peers (Spring's is 200 ms), and the first server's log.";

/// The address that leads to nobody may be the one for this server.
fn dead(case: &Case<'_>, from: Index, to: Index) -> Option<String> {
    if case.remaining(from) != Some(to) {
        return None;
    }
    let (peer, failure) = case.dead_addresses(from).into_iter().next()?;
    let failure = failure.unwrap_or_else(|| "it does not say who it is".to_owned());
    Some(format!(
        "{}, which {} has as a peer address, leads nowhere when asked from here: {failure}",
        peer.address,
        case.name(from)
    ))
}
