//! Servers that do not know each other as peers. Replication goes one hop, so each must know each.

use std::collections::BTreeSet;

use super::{Case, Index, Target, joined};
use crate::cli::doctor::observation::Kind;
use crate::cli::doctor::report::Finding;

pub(super) fn check(case: &mut Case<'_>) {
    let mut lacking: BTreeSet<(Index, Index)> = case
        .ways()
        .into_iter()
        .filter(|way| !case.explained.contains(way) && lacks(case, *way))
        .collect();
    case.explained.extend(&lacking);
    // Java's rule hits both sides; naming it once is enough.
    let taken: BTreeSet<_> = lacking
        .iter()
        .copied()
        .filter(|&(from, to)| takes_for_itself(case, from, to))
        .collect();
    for &(from, to) in &taken {
        let both = taken.contains(&(to, from));
        if !both || from < to {
            let finding = taken_for_itself(case, from, to, both);
            case.find(finding);
        }
        lacking.remove(&(from, to));
    }
    let all: Vec<Index> = case.healthy.iter().map(|(index, ..)| *index).collect();
    let alone: Vec<_> = all
        .iter()
        .copied()
        .filter(|&one| {
            let mut others = all.iter().filter(|other| **other != one);
            all.len() > 2
                && others.all(|&other| lacking.contains(&(one, other)) && lacking.contains(&(other, one)))
        })
        .collect();
    for one in alone {
        let finding = stands_alone(case, one, &all);
        case.find(finding);
        lacking.retain(|&(from, to)| from != one && to != one);
    }
    for &(from, to) in &lacking {
        let both = lacking.contains(&(to, from));
        if !both || from < to {
            let finding = not_a_peer(case, from, to, both);
            case.find(finding);
        }
    }
}

/// Whether no address among `from`'s peers can be `to`'s.
fn lacks(case: &Case<'_>, (from, to): (Index, Index)) -> bool {
    let Some(peers) = case.answers(from).and_then(|answers| answers.peers.as_ref()) else {
        return false;
    };
    peers.iter().all(|peer| match case.target(peer) {
        Target::Named(named) => !named.contains(&to),
        Target::Other => true,
        Target::Unknown(_) => false,
    })
}

/// Java tells its own address among its peers' by the host name alone.
fn takes_for_itself(case: &Case<'_>, from: Index, to: Index) -> bool {
    let (Some(own), Some(other)) = (case.answers(from), case.answers(to)) else {
        return false;
    };
    let Some(host) = own.own_host().filter(|_| own.kind == Kind::Java) else {
        return false;
    };
    host.eq_ignore_ascii_case(&case.seen.servers[to].host)
        || other
            .own_host()
            .is_some_and(|other| host.eq_ignore_ascii_case(other))
}

fn taken_for_itself(case: &Case<'_>, from: Index, to: Index, both: bool) -> Finding {
    let (from, to) = (case.healthy_by(from), case.healthy_by(to));
    let host = from.host.unwrap_or_default();
    let who = if both {
        format!("{} and {} each take the other for itself", from.name, to.name)
    } else {
        format!("{} takes {} for itself", from.name, to.name)
    };
    Finding {
        name: "taken-for-itself",
        servers: vec![from.name.to_owned(), to.name.to_owned()],
        sentence: format!("{who}: Java knows its own address among its peers by the host name alone, whatever the port, and never replicates to it."),
        evidence: vec![
            format!("{} calls its own host {host}, and tells these peers: {}", from.name, from.peers),
            format!("{} is at the host {}{}", to.name, to.address, to.host.map_or_else(String::new, |host| format!(" and calls it {host}"))),
        ],
        remedy: "Give each server a host name of its own: eureka.instance.hostname, and the same name in the other servers' service-url. On one machine several names or loopback addresses will do.".to_owned(),
    }
}

fn stands_alone(case: &Case<'_>, one: Index, all: &[Index]) -> Finding {
    let others: Vec<_> = all
        .iter()
        .filter(|other| **other != one)
        .map(|&other| case.name(other))
        .collect();
    let named = case.healthy_by(one);
    let mut servers = vec![named.name.to_owned()];
    servers.extend(others.iter().map(|other| (*other).to_owned()));
    Finding {
        name: "not-a-peer",
        servers,
        sentence: format!(
            "{} is no peer of {}: what is registered at one side never shows at the other.",
            named.name,
            joined(&others)
        ),
        evidence: vec![
            format!("{} tells these peers: {}", named.name, named.peers),
            format!(
                "no address among the peers of {} leads to {}",
                joined(&others),
                named.name
            ),
        ],
        remedy: LIST_EACH.to_owned(),
    }
}

fn not_a_peer(case: &Case<'_>, from: Index, to: Index, both: bool) -> Finding {
    let (from, to) = (case.healthy_by(from), case.healthy_by(to));
    let mut evidence = vec![format!("{} tells these peers: {}", from.name, from.peers)];
    let sentence = if both {
        evidence.push(format!("{} tells these peers: {}", to.name, to.peers));
        format!(
            "{} and {} are no peers of each other: what is registered at one never shows at the other.",
            from.name, to.name
        )
    } else {
        format!(
            "{} has no peer address that leads to {}: what is registered at the former never shows at the latter.",
            from.name, to.name
        )
    };
    Finding {
        name: "not-a-peer",
        servers: vec![from.name.to_owned(), to.name.to_owned()],
        sentence,
        evidence,
        remedy: LIST_EACH.to_owned(),
    }
}

const LIST_EACH: &str = "List every server in every other server's peers (ours: peers.urls; Java: eureka.client.service-url.defaultZone): what a peer sent is never passed on.";

/// A server as these findings speak of it.
struct Spoken<'a> {
    name: &'a str,
    /// The host by which it was named.
    address: &'a str,
    /// The host it calls its own.
    host: Option<&'a str>,
    peers: String,
}

impl Case<'_> {
    fn healthy_by(&self, index: Index) -> Spoken<'_> {
        let answers = self.answers(index);
        let peers = answers
            .and_then(|answers| answers.peers.as_deref())
            .unwrap_or_default();
        let peers: Vec<_> = peers.iter().map(|peer| peer.address.as_str()).collect();
        Spoken {
            name: self.name(index),
            address: &self.seen.servers[index].host,
            host: answers.and_then(|answers| answers.own_host()),
            peers: if peers.is_empty() {
                "none".to_owned()
            } else {
                joined(&peers)
            },
        }
    }
}
