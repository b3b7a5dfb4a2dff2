//! From what was seen to what is wrong. Pure: the same observations give the same findings.
//!
//! A cause that is certain comes first and explains what follows from it, so that one fault is one finding: a server that
//! does not know another as its peer has no broken link to it besides.

mod addresses;
mod caches;
mod clocks;
mod content;
mod ids;
mod leases;
mod links;
mod mesh;
mod reach;
mod standing;
mod visible;

use std::collections::{BTreeMap, BTreeSet};

use eureka_registry_core::InstanceKey;

use super::observation::{Answers, Identity, Observations, Peer, Server};
use super::report::{Finding, Report};

/// What is wrong, and what was looked at.
pub(super) fn examine(seen: &Observations) -> Report {
    let mut case = Case::new(seen);
    reach::check(&mut case);
    addresses::check(&mut case);
    mesh::check(&mut case);
    links::told(&mut case);
    visible::holds(&mut case);
    clocks::check(&mut case);
    ids::check(&mut case);
    caches::check(&mut case);
    leases::check(&mut case);
    content::check(&mut case);
    links::conclude(&mut case);
    visible::check(&mut case);
    case.report
}

/// One server that answers, by its place in the order in which they were named.
type Index = usize;

/// What was seen, and what was concluded so far.
struct Case<'a> {
    seen: &'a Observations,
    /// Servers that answer, each node once.
    healthy: Vec<(Index, &'a Server, &'a Answers)>,
    /// Ways (from, to) whose trouble has a finding of its own.
    explained: BTreeSet<(Index, Index)>,
    /// Ways on which nothing arrives, with what shows it.
    broken: BTreeMap<(Index, Index), Vec<String>>,
    /// Addresses of peers that a finding is about.
    spoken_of: BTreeSet<String>,
    /// Instances that are not everywhere or not the same everywhere, for a reason that was found.
    accounted: BTreeSet<InstanceKey>,
    report: Report,
}

/// To whom the address of a peer leads.
enum Target {
    /// To servers that were named; more than one behind a load balancer.
    Named(BTreeSet<Index>),
    /// To somebody else.
    Other,
    /// Nobody answers there when asked from here.
    Unknown(Option<String>),
}

impl<'a> Case<'a> {
    fn new(seen: &'a Observations) -> Self {
        Self {
            seen,
            healthy: Vec::new(),
            explained: BTreeSet::new(),
            broken: BTreeMap::new(),
            spoken_of: BTreeSet::new(),
            accounted: BTreeSet::new(),
            report: Report::default(),
        }
    }

    fn name(&self, index: Index) -> &'a str {
        &self.seen.servers[index].name
    }

    fn answers(&self, index: Index) -> Option<&'a Answers> {
        self.seen.servers[index].answers.as_ref().ok()
    }

    fn find(&mut self, finding: Finding) {
        self.report.findings.push(finding);
    }

    fn note(&mut self, sentence: String) {
        self.report.checked.push(sentence);
    }

    /// The instances that were looked at one by one.
    fn keys(&self) -> BTreeSet<InstanceKey> {
        let looked_at = self
            .healthy
            .iter()
            .flat_map(|(_, _, answers)| answers.looks.keys());
        looked_at.cloned().collect()
    }

    /// Ordered pairs of different servers that answer.
    fn ways(&self) -> Vec<(Index, Index)> {
        let indexes: Vec<_> = self.healthy.iter().map(|(index, ..)| *index).collect();
        let from = indexes.iter().copied();
        from.flat_map(|from| indexes.iter().map(move |to| (from, *to)))
            .filter(|(from, to)| from != to)
            .collect()
    }

    /// The servers that were named and are one of these.
    fn named(&self, identities: &[Identity]) -> BTreeSet<Index> {
        let healthy = self.healthy.iter();
        healthy
            .filter(|(_, _, answers)| answers.identity().is_some_and(|own| identities.contains(own)))
            .map(|(index, ..)| *index)
            .collect()
    }

    /// To whom the address of this peer leads.
    fn target(&self, peer: &Peer) -> Target {
        let answering = self.seen.addresses.get(&peer.address);
        let mut identities = answering.map_or_else(Vec::new, |answering| answering.identities.clone());
        identities.extend(peer.node.clone().map(Identity::Node));
        let mut named = self.named(&identities);
        named.extend(
            self.healthy
                .iter()
                .filter(|(_, server, _)| server.name == peer.address)
                .map(|(index, ..)| *index),
        );
        if !named.is_empty() {
            return Target::Named(named);
        }
        if identities.is_empty() {
            Target::Unknown(answering.and_then(|answering| answering.failure.clone()))
        } else {
            Target::Other
        }
    }

    /// The one server to which an address that nobody answers at must lead: all others have theirs.
    fn remaining(&self, from: Index) -> Option<Index> {
        let peers = self.answers(from)?.peers.as_ref()?;
        let mut led_to = BTreeSet::from([from]);
        for peer in peers {
            if let Target::Named(named) = self.target(peer) {
                led_to.extend(named);
            }
        }
        let mut others = self.healthy.iter().map(|(index, ..)| *index);
        let remaining = others.find(|index| !led_to.contains(index))?;
        others.all(|index| led_to.contains(&index)).then_some(remaining)
    }

    /// Addresses of peers of this server that lead to nobody when asked from here, with the reason.
    fn dead_addresses(&self, from: Index) -> Vec<(&'a Peer, Option<String>)> {
        let peers = self.answers(from).and_then(|answers| answers.peers.as_ref());
        let peers = peers.into_iter().flatten();
        peers
            .filter_map(|peer| match self.target(peer) {
                Target::Unknown(failure) => Some((peer, failure)),
                Target::Named(_) | Target::Other => None,
            })
            .collect()
    }
}

/// `a`, `b` and `c`.
fn joined(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Milliseconds as seconds for people.
fn seconds(milliseconds: i64) -> String {
    let tenths = milliseconds / 100;
    if tenths.abs() < 100 {
        format!(
            "{}{}.{} s",
            if tenths < 0 { "-" } else { "" },
            tenths.abs() / 10,
            tenths.abs() % 10
        )
    } else {
        format!("{} s", milliseconds / 1000)
    }
}

#[cfg(test)]
mod tests;
