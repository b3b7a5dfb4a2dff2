//! What clients see, or not; and what is left when every other cause was ruled out.

use std::collections::{BTreeMap, BTreeSet};

use eureka_registry_core::{InstanceKey, LeaseView, Status};

use super::{Case, Index, Target, joined};
use crate::cli::doctor::observation::{Kind, List};
use crate::cli::doctor::report::Finding;
use crate::cli::doctor::sample::NAMED;

/// Lists that are not answered.
pub(super) fn holds(case: &mut Case<'_>) {
    let mut findings = Vec::new();
    for (_, server, answers) in &case.healthy {
        let name = server.name.clone();
        match &answers.list {
            List::Open(_) => {}
            List::Held => findings.push(held(name, answers.kind)),
            List::Unreadable(why) => findings.push(Finding {
                name: "list-unreadable",
                servers: vec![name.clone()],
                sentence: format!("The list of {name} cannot be read: clients get nothing from it either."),
                evidence: vec![format!("GET apps: {why}")],
                remedy: unreadable(why).to_owned(),
            }),
        }
    }
    case.report.findings.extend(findings);
}

fn unreadable(why: &str) -> &'static str {
    if why == "status 503" {
        "It has too much to do, or limits the rate of lists (ours: limits.*, eureka_requests_shed_total). Ask again later."
    } else {
        "An empty 200 of Java's comes from one registration that its encoder cannot write; its log names the application."
    }
}

fn held(name: String, kind: Kind) -> Finding {
    let (because, remedy) = match kind {
        Kind::Ours => (
            "it has not yet copied its peers' instances, or found nobody to copy from",
            "Wait: it opens by itself, at the latest after bootstrap.wait-when-empty. /health/ready says why it holds; a peer that it cannot reach makes it wait longer.",
        ),
        Kind::Java => (
            "it found nothing to copy when it started, and waits for heartbeats to fill it",
            "Wait: it opens after eureka.server.wait-time-in-ms-when-sync-empty (5 min). See why it found no peer to copy from.",
        ),
    };
    Finding {
        name: "reads-held",
        sentence: format!(
            "{name} has been started and holds back its lists: {because}. Clients keep what they have."
        ),
        servers: vec![name],
        evidence: vec!["GET apps is 403, while single instances and writes are answered".to_owned()],
        remedy: remedy.to_owned(),
    }
}

/// What was asked, in the end: is it there, and is it the same?
pub(super) fn check(case: &mut Case<'_>) {
    peers(case);
    alarms(case);
    match case.seen.subject.clone() {
        Some(subject) => one(case, &subject),
        None => all(case),
    }
}

fn peers(case: &mut Case<'_>) {
    let mut notes = Vec::new();
    for &(index, server, answers) in &case.healthy {
        let Some(peers) = &answers.peers else {
            notes.push(format!("{} does not tell its peers.", server.name));
            continue;
        };
        let told: Vec<_> = peers
            .iter()
            .map(|peer| {
                let who = match case.target(peer) {
                    Target::Named(named) if named.contains(&index) => "itself".to_owned(),
                    Target::Named(named) => {
                        joined(&named.iter().map(|to| case.name(*to)).collect::<Vec<_>>())
                    }
                    Target::Other => "a server that was not named".to_owned(),
                    Target::Unknown(failure) => failure.unwrap_or_else(|| "nobody knows whom".to_owned()),
                };
                let available = match peer.available {
                    Some(true) => ", available",
                    Some(false) => ", unavailable: no instance of its application has that host name",
                    None => "",
                };
                format!("{} (leads to {who}{available})", peer.address)
            })
            .collect();
        let told = if told.is_empty() {
            "none".to_owned()
        } else {
            told.join(", ")
        };
        notes.push(format!("Peers of {}: {told}.", server.name));
    }
    case.report.checked.extend(notes);
}

/// Alarms of ours that nothing found so far explains; each pair of servers once.
fn alarms(case: &mut Case<'_>) {
    let mut told: BTreeSet<(&str, BTreeSet<String>)> = BTreeSet::new();
    let mut findings = Vec::new();
    for &(from, server, answers) in &case.healthy {
        for alarm in &answers.alarms {
            let (name, sentence, remedy) = match alarm.name.as_str() {
                "different-rules" => (
                    "different-rules",
                    "has a peer whose leases follow other rules, so that the two evict at different times",
                    "Configure the same rules on all servers (registry.lease-expiry; Java's leases last twice their duration, preset or not).",
                ),
                "diverged" => (
                    "diverged",
                    "has differed from a peer for longer than repair takes",
                    "See /api/v1/peers of both for what repair reports, and their logs for what they refuse.",
                ),
                _ => continue,
            };
            let peer = answers
                .peers
                .iter()
                .flatten()
                .find(|peer| peer.address == alarm.address);
            let to: BTreeSet<Index> = match peer.map(|peer| case.target(peer)) {
                Some(Target::Named(named)) => named,
                Some(Target::Other | Target::Unknown(_)) | None => BTreeSet::new(),
            };
            let touched =
                |to: &Index| case.explained.contains(&(from, *to)) || case.explained.contains(&(*to, from));
            if name == "diverged" && to.iter().any(touched) {
                continue;
            }
            let other = to
                .first()
                .map_or(alarm.address.as_str(), |to| case.name(*to))
                .to_owned();
            let servers = vec![server.name.clone(), other];
            // One that preserves and one that may not are told to be different already: that is the reason.
            let mut found = case.report.findings.iter_mut();
            let preserving = found.find(|found| {
                found.name == "preservation-on-one-side"
                    && servers.iter().all(|server| found.servers.contains(server))
            });
            if let Some(preserving) = preserving.filter(|_| name == "different-rules") {
                preserving.evidence.push(alarm.text.clone());
                continue;
            }
            if told.insert((name, servers.iter().cloned().collect())) {
                findings.push(Finding {
                    name,
                    servers,
                    sentence: format!("{} {sentence}.", server.name),
                    evidence: vec![alarm.text.clone()],
                    remedy: remedy.to_owned(),
                });
            }
        }
    }
    case.report.findings.extend(findings);
}

fn one(case: &mut Case<'_>, subject: &InstanceKey) {
    let mut shown: BTreeMap<Status, Vec<&str>> = BTreeMap::new();
    let mut absent = Vec::new();
    for (_, server, answers) in &case.healthy {
        match (answers.single(subject), answers.listed(subject)) {
            (Some(view), _) | (None, Some(view)) => {
                shown.entry(view.instance.status).or_default().push(&server.name)
            }
            (None, None) => absent.push(server.name.as_str()),
        }
    }
    let told: Vec<_> = shown
        .iter()
        .map(|(status, servers)| format!("{status} at {}", joined(servers)))
        .chain((!absent.is_empty()).then(|| format!("missing at {}", joined(&absent))))
        .collect();
    let told = format!("{subject} is {}.", told.join(", "));
    let absent: Vec<String> = absent.iter().map(|name| (*name).to_owned()).collect();
    let statuses: Vec<_> = shown.keys().copied().collect();
    let has: Vec<String> = shown.values().flatten().map(|name| (*name).to_owned()).collect();
    if !case.healthy.is_empty() {
        case.note(told);
    }
    if has.is_empty() && !case.healthy.is_empty() {
        let finding = not_registered(case, subject, absent);
        case.find(finding);
    } else if !absent.is_empty() && !case.accounted.contains(subject) {
        case.find(not_visible(&absent, &[subject.to_string()]));
    } else if absent.is_empty()
        && !statuses.contains(&Status::Up)
        && statuses.len() == 1
        && !case.accounted.contains(subject)
    {
        case.find(not_up(subject, has, statuses[0]));
    }
}

fn not_registered(case: &Case<'_>, subject: &InstanceKey, servers: Vec<String>) -> Finding {
    let alike: BTreeSet<String> = case
        .healthy
        .iter()
        .flat_map(|(_, _, answers)| answers.instances())
        .map(LeaseView::key)
        .filter(|key| {
            key.id() == subject.id()
                || (key.app() == subject.app() && key.id().eq_ignore_ascii_case(subject.id()))
        })
        .map(|key| key.to_string())
        .collect();
    let mut evidence = vec![format!(
        "apps/{subject} is 404 at every server that answers, and none lists it"
    )];
    evidence.extend(alike.iter().take(NAMED).map(|key| format!("there is {key}")));
    Finding {
        name: "not-registered",
        servers,
        sentence: format!("{subject} is registered at none of these servers."),
        evidence,
        remedy: "See the client's log and which server it is configured with. Names of applications are compared in upper case, ids as they are.".to_owned(),
    }
}

fn not_visible(servers: &[String], keys: &[String]) -> Finding {
    let names: Vec<_> = servers.iter().map(String::as_str).collect();
    Finding {
        name: "not-visible",
        servers: servers.to_vec(),
        sentence: format!("{} at {}, and none of the known causes shows.", if keys.len() == 1 { format!("{} is missing", keys[0]) } else { format!("{} instances are missing", keys.len()) }, joined(&names)),
        evidence: keys.iter().take(NAMED).map(|key| format!("apps/{key} is 404 there, and another server has it")).collect(),
        remedy: "Ask again with --watch 35s: within a heartbeat interval a server asks for what it lacks. If it stays so, see the logs of the servers that have it for what their peer answered.".to_owned(),
    }
}

fn not_up(subject: &InstanceKey, servers: Vec<String>, status: Status) -> Finding {
    Finding {
        name: "not-up",
        servers,
        sentence: format!("Every server shows {subject}, but as {status}: clients that only take UP leave it out."),
        evidence: vec![format!("its status is {status} everywhere")],
        remedy: "If an operator's override does that (overriddenStatus), remove it (DELETE apps/APP/ID/status?value=UP); else the client reports it: see its health check.".to_owned(),
    }
}

fn all(case: &mut Case<'_>) {
    let mut everything: BTreeSet<InstanceKey> = BTreeSet::new();
    let mut lists: Vec<(Index, BTreeSet<InstanceKey>)> = Vec::new();
    for (index, server, answers) in &case.healthy {
        let List::Open(instances) = &answers.list else {
            continue;
        };
        let keys: BTreeSet<_> = instances.iter().map(LeaseView::key).collect();
        let apps: BTreeSet<_> = keys.iter().map(|key| &**key.app()).collect();
        case.report.checked.push(format!(
            "{} lists {} instances of {} applications, hash {}.",
            server.name,
            keys.len(),
            apps.len(),
            hash(instances)
        ));
        everything.extend(keys.iter().cloned());
        lists.push((*index, keys));
    }
    for (index, keys) in &lists {
        let missing: Vec<_> = everything.difference(keys).map(ToString::to_string).collect();
        if !missing.is_empty() {
            let more = missing.len().saturating_sub(NAMED);
            let named = missing[..missing.len().min(NAMED)].join(", ");
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            let name = case.name(*index);
            case.note(format!(
                "{name} does not list {} of all {}: {named}{more}.",
                missing.len(),
                everything.len()
            ));
        }
    }
    let mut unexplained: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
    for key in case.keys() {
        let lacking = case.healthy.iter().filter(|(_, _, answers)| {
            answers.look(&key).is_some_and(|look| look.seen.is_none()) && answers.listed(&key).is_none()
        });
        let lacking: Vec<_> = lacking.map(|(_, server, _)| server.name.clone()).collect();
        // Whatever left everywhere while we looked is gone.
        let had = case
            .healthy
            .iter()
            .any(|(_, _, answers)| answers.single(&key).is_some());
        if !lacking.is_empty() && had && !case.accounted.contains(&key) {
            unexplained.entry(lacking).or_default().push(key.to_string());
        }
    }
    for (servers, keys) in unexplained {
        case.find(not_visible(&servers, &keys));
    }
}

/// Eureka's hash: how many instances have which status.
fn hash(instances: &[LeaseView]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for view in instances {
        *counts.entry(view.instance.status.as_str()).or_default() += 1;
    }
    counts
        .iter()
        .map(|(status, count)| format!("{status}_{count}_"))
        .collect()
}
