//! Servers that cannot be asked, addresses that are no single server's, and servers that were named twice.

use std::collections::BTreeSet;

use super::{Case, addresses};
use crate::cli::doctor::observation::{Identity, Kind};
use crate::cli::doctor::report::Finding;

pub(super) fn check(case: &mut Case<'_>) {
    let seen = case.seen;
    let mut known: Vec<(usize, &Identity)> = Vec::new();
    for (index, server) in seen.servers.iter().enumerate() {
        match &server.answers {
            Err(failure) => {
                case.report.unasked = true;
                case.find(Finding {
                    name: "server-unreachable",
                    servers: vec![server.name.clone()],
                    sentence: format!("{} cannot be asked: clients and peers that are as near as we are get nothing from it either.", server.name),
                    evidence: vec![failure.clone()],
                    remedy: "See whether it runs, listens on that address, and lets us in (credentials belong into the URL); the other findings are about the servers that answer.".to_owned(),
                });
            }
            Ok(answers) => {
                let answering: BTreeSet<_> = answers.identities.iter().collect();
                if answering.len() > 1 {
                    case.find(addresses::shared_server(&server.name, &answering));
                    continue;
                }
                let same = answers
                    .identity()
                    .and_then(|own| known.iter().find(|(_, other)| *other == own));
                if let Some((first, identity)) = same {
                    let first = seen.servers[*first].name.clone();
                    case.find(same_node(&first, &server.name, identity));
                    continue;
                }
                known.extend(answers.identity().map(|identity| (index, identity)));
                case.healthy.push((index, server, answers));
                let kind = match answers.kind {
                    Kind::Ours => "a node of ours",
                    Kind::Java => "a Java server",
                };
                case.note(format!(
                    "{} is {kind}, {}.",
                    server.name,
                    own_name(answers.identity())
                ));
            }
        }
    }
}

fn own_name(identity: Option<&Identity>) -> String {
    match identity {
        Some(Identity::Node(id)) => format!("id {id}"),
        Some(Identity::Java { id, host, .. }) => format!("instance {id}, host name {host}"),
        Some(Identity::Unnamed) | None => "which does not say who it is".to_owned(),
    }
}

fn same_node(first: &str, second: &str, identity: &Identity) -> Finding {
    Finding {
        name: "same-server",
        servers: vec![first.to_owned(), second.to_owned()],
        sentence: format!("{first} and {second} are one and the same server."),
        evidence: vec![format!("both answer as {}", own_name(Some(identity)))],
        remedy: "Give each server an address of its own, and name that; whoever lists both as peers has one peer less than it seems.".to_owned(),
    }
}
