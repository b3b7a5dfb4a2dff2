//! Where heartbeats arrive, where they do not, and what becomes of leases without them.

use std::collections::BTreeMap;

use eureka_registry_core::InstanceKey;

use super::standing::{SETTLED, Standing};
use super::{Case, Index, Target, joined, seconds};
use crate::cli::doctor::observation::{Kind, Link, List};
use crate::cli::doctor::report::Finding;
use crate::cli::doctor::sample::NAMED;

/// Copies of one heartbeat are no further apart than this.
const SAME_HEARTBEAT: i64 = 2_500;

/// What was seen of single instances, gathered into findings.
#[derive(Default)]
struct Gathered {
    /// Servers (that keeps, that dropped) with what was kept.
    kept: Kept,
    /// Servers that were started after the last heartbeat of what they lack.
    young: BTreeMap<Index, Vec<String>>,
}

type Kept = BTreeMap<(Index, Index), Vec<String>>;

pub(super) fn check(case: &mut Case<'_>) {
    let mut gathered = Gathered::default();
    for key in case.keys() {
        one(case, &key, &mut gathered);
    }
    let Gathered { mut kept, young } = gathered;
    for (index, evidence) in young {
        let finding = just_started(case, index, evidence);
        case.find(finding);
    }
    among_ours(case, &mut kept);
    for ((keeps, dropped), evidence) in kept {
        let finding = preservation(case, keeps, dropped, evidence);
        case.find(finding);
    }
}

fn one(case: &mut Case<'_>, key: &InstanceKey, gathered: &mut Gathered) {
    let mut here = Vec::new();
    let mut absent = Vec::new();
    for &(index, _, answers) in &case.healthy {
        match Standing::last(answers, key) {
            Some(standing) => here.push((index, standing)),
            None if answers.look(key).is_some_and(|look| look.seen.is_none()) => absent.push(index),
            None => {}
        }
    }
    if here.is_empty() {
        return;
    }
    let fresh: Vec<_> = here.iter().filter(|(_, standing)| standing.is_fresh()).collect();
    if fresh.is_empty() {
        gone(case, key, &here, &absent, &mut gathered.kept);
        return;
    }
    let (origin, group) = origin(&here);
    if case.seen.subject.is_some() {
        tell_origin(case, key, origin, &group);
    }
    let sources: Vec<Index> = group.iter().map(|(index, _)| *index).collect();
    for to in absent {
        lacking(case, key, origin, &sources, to, gathered);
    }
    for &(to, standing) in &here {
        if is_behind(case, key, origin, (to, standing)) {
            let text = format!(
                "{key}: {} heard of it {} ago, {} {} ago (it renews every {})",
                case.name(origin.0),
                seconds(origin.1.age),
                case.name(to),
                seconds(standing.age),
                seconds(standing.interval())
            );
            missed(case, key, &sources, origin.0, to, text);
        }
    }
}

/// One server does not have what another hears of.
fn lacking(
    case: &mut Case<'_>,
    key: &InstanceKey,
    origin: At<'_>,
    sources: &[Index],
    to: Index,
    gathered: &mut Gathered,
) {
    let (from, standing) = origin;
    if is_new(case, origin) {
        case.note(format!(
            "{key} was registered less than {} ago and may still be on its way to {}.",
            seconds(SETTLED),
            case.name(to)
        ));
        case.accounted.insert(key.clone());
        return;
    }
    let text = format!(
        "{key}: {} heard of it {} ago, {} does not have it",
        case.name(from),
        seconds(standing.age),
        case.name(to)
    );
    let started = case.answers(to).and_then(|answers| answers.started);
    let young = started.is_some_and(|started| standing.heard < started + SETTLED);
    if !young
        || sources
            .iter()
            .any(|source| case.explained.contains(&(*source, to)))
    {
        missed(case, key, sources, from, to, text);
        return;
    }
    case.accounted.insert(key.clone());
    // Whoever knows nobody to copy from has that as a finding; lists that are held say the same.
    let held = case
        .answers(to)
        .is_some_and(|answers| matches!(answers.list, List::Held));
    if !held && !case.explained.contains(&(to, from)) {
        gathered.young.entry(to).or_default().push(text);
    }
}

fn just_started(case: &Case<'_>, index: Index, mut evidence: Vec<String>) -> Finding {
    evidence.truncate(NAMED);
    let name = case.name(index);
    Finding {
        name: "just-started",
        servers: vec![name.to_owned()],
        sentence: format!("{name} was started after the last heartbeats of what it lacks, and did not copy it from its peers."),
        evidence,
        remedy: "Wait for the next heartbeats (30 s): each brings what is missing. Java copies from one peer at its start, only what is UP, and not at all if register-with-eureka is off and registry-sync-retries is 0.".to_owned(),
    }
}

type At<'a> = (Index, Standing<'a>);

/// Where the heartbeats arrive first, and everywhere where the newest one is.
fn origin<'a>(here: &[At<'a>]) -> (At<'a>, Vec<At<'a>>) {
    let newest = here
        .iter()
        .map(|(_, standing)| standing.heard)
        .max()
        .unwrap_or_default();
    let mut group: Vec<At<'a>> = here
        .iter()
        .copied()
        .filter(|(_, standing)| newest - standing.heard <= SAME_HEARTBEAT.min(standing.interval() / 2))
        .collect();
    group.sort_by_key(|(index, standing)| (standing.heard, *index));
    (group[0], group)
}

fn tell_origin(case: &mut Case<'_>, key: &InstanceKey, origin: At<'_>, group: &[At<'_>]) {
    let skewed = |at: &At<'_>| {
        case.answers(at.0)
            .is_some_and(|answers| answers.clock_offset != 0)
    };
    if group.len() > 1 && group.iter().any(skewed) {
        let names: Vec<_> = group.iter().map(|(index, _)| case.name(*index)).collect();
        case.note(format!(
            "{key}: its last heartbeat or registration was {} ago, at {}; their clocks differ too much to say where first.",
            seconds(origin.1.age),
            joined(&names)
        ));
        return;
    }
    let name = case.name(origin.0);
    let later: Vec<_> = group[1..]
        .iter()
        .map(|(index, standing)| {
            format!(
                "{} later at {}",
                seconds(standing.heard - origin.1.heard),
                case.name(*index)
            )
        })
        .collect();
    let later = if later.is_empty() {
        String::new()
    } else {
        format!(", and {}", later.join(", "))
    };
    case.note(format!(
        "{key}: its last heartbeat or registration was {} ago, first at {name}{later}: the client most likely uses {name}.",
        seconds(origin.1.age)
    ));
}

/// A registration that may still be on its way.
fn is_new(case: &Case<'_>, (index, standing): At<'_>) -> bool {
    let Some(answers) = case.answers(index) else {
        return false;
    };
    let registered = i64::try_from(standing.view.lease.registered.0).unwrap_or(i64::MAX);
    let at = standing.heard + standing.age;
    at - (registered - answers.clock_offset) < SETTLED
}

/// Whether heartbeats that are at the origin do not arrive: by how old the lease is here, or because it did not move while
/// we watched for longer than it takes.
fn is_behind(case: &Case<'_>, key: &InstanceKey, (origin, first): At<'_>, (to, standing): At<'_>) -> bool {
    if origin == to {
        return false;
    }
    let lag = first.heard - standing.heard;
    if lag > first.allowance() {
        return true;
    }
    let watched = i64::try_from(case.seen.watched.as_millis()).unwrap_or(i64::MAX);
    let moved = |index: Index, now: &Standing<'_>| {
        let before = case
            .answers(index)
            .and_then(|answers| Standing::first(answers, key));
        before.is_some_and(|before| before.heard < now.heard)
    };
    watched >= first.interval() + SETTLED && lag > 0 && moved(origin, &first) && !moved(to, &standing)
}

/// Something of the origin's does not arrive: that is explained already, or shows that the way is broken.
fn missed(case: &mut Case<'_>, key: &InstanceKey, sources: &[Index], origin: Index, to: Index, text: String) {
    let held = case
        .answers(to)
        .is_some_and(|answers| matches!(answers.list, List::Held));
    if held
        || sources
            .iter()
            .any(|source| case.explained.contains(&(*source, to)))
    {
        case.accounted.insert(key.clone());
        return;
    }
    // A node of ours knows whether its peer answers: then it is something else.
    if is_up(case, origin, to) {
        return;
    }
    case.accounted.insert(key.clone());
    case.broken.entry((origin, to)).or_default().push(text);
}

fn is_up(case: &Case<'_>, from: Index, to: Index) -> bool {
    let peers = case.answers(from).and_then(|answers| answers.peers.as_ref());
    peers.into_iter().flatten().any(|peer| {
        peer.link == Some(Link::Up)
            && match case.target(peer) {
                Target::Named(named) => named.contains(&to),
                Target::Other | Target::Unknown(_) => false,
            }
    })
}

/// Nobody hears of it any more: its copies go one by one, except where nobody is evicted.
fn gone(case: &mut Case<'_>, key: &InstanceKey, here: &[At<'_>], absent: &[Index], kept: &mut Kept) {
    case.accounted.insert(key.clone());
    let preserving = |index: Index| case.answers(index).and_then(|answers| answers.preserving);
    let mut explained = false;
    for (keeps, standing) in here {
        for dropped in absent {
            if standing.run_out && preserving(*keeps) == Some(true) && preserving(*dropped) == Some(false) {
                explained = true;
                kept.entry((*keeps, *dropped)).or_default().push(format!(
                    "{key}: {} last heard of it {} ago and keeps it, {} has dropped it",
                    case.name(*keeps),
                    seconds(standing.age),
                    case.name(*dropped)
                ));
            }
        }
    }
    if case.seen.subject.is_some() && !explained {
        let finding = client_elsewhere(case, key, here);
        case.find(finding);
    } else if !explained {
        case.note(format!(
            "{key} has missed its heartbeats everywhere: its leases run out one by one."
        ));
    }
}

fn client_elsewhere(case: &Case<'_>, key: &InstanceKey, here: &[At<'_>]) -> Finding {
    let mut evidence: Vec<_> = here
        .iter()
        .map(|(index, standing)| {
            format!(
                "{} last heard of it {} ago, though it renews every {}",
                case.name(*index),
                seconds(standing.age),
                seconds(standing.interval())
            )
        })
        .collect();
    let mut strangers: Vec<&str> = Vec::new();
    for (_, _, answers) in &case.healthy {
        for peer in answers.peers.iter().flatten() {
            if matches!(case.target(peer), Target::Other) && !strangers.contains(&peer.address.as_str()) {
                strangers.push(&peer.address);
            }
        }
    }
    if !strangers.is_empty() {
        evidence.push(format!(
            "servers that were not asked, but are peers: {}",
            joined(&strangers)
        ));
    }
    Finding {
        name: "client-elsewhere",
        servers: here.iter().map(|(index, _)| case.name(*index).to_owned()).collect(),
        sentence: format!("The client of {key} sends its heartbeats to none of these servers: what they have of it is old and runs out."),
        evidence,
        remedy: "See which server the client is configured with (eureka.client.service-url.defaultZone) and whether it still runs; then ask again with that server among them.".to_owned(),
    }
}

/// Nodes of ours preserve for a reason, so that one that does while another does not is worth a word by itself.
fn among_ours(case: &Case<'_>, kept: &mut Kept) {
    for (keeps, drops) in case.ways() {
        let state = |index: Index| {
            let answers = case.answers(index)?;
            (answers.kind == Kind::Ours).then_some(answers.preserving)?
        };
        let touched = |way: &(Index, Index)| case.explained.contains(way) || case.broken.contains_key(way);
        if state(keeps) == Some(true)
            && state(drops) == Some(false)
            && !touched(&(keeps, drops))
            && !touched(&(drops, keeps))
        {
            let text = || {
                format!(
                    "/api/v1/preservation: active at {}, not at {}",
                    case.name(keeps),
                    case.name(drops)
                )
            };
            kept.entry((keeps, drops)).or_insert_with(|| vec![text()]);
        }
    }
}

fn preservation(case: &Case<'_>, keeps: Index, dropped: Index, mut evidence: Vec<String>) -> Finding {
    evidence.truncate(NAMED);
    let (keeps, dropped) = (case.name(keeps), case.name(dropped));
    Finding {
        name: "preservation-on-one-side",
        servers: vec![keeps.to_owned(), dropped.to_owned()],
        sentence: format!("{keeps} evicts nobody (self preservation), {dropped} does: the former goes on showing instances whose leases have run out, the latter does not."),
        evidence,
        remedy: "The instances in question do not send heartbeats: see whether they are gone. If they are, cancel them (DELETE apps/APP/ID), or tell a node of ours so (POST /api/v1/preservation/accept); if they are not, find out why their heartbeats do not arrive. Configure preservation alike on all servers.".to_owned(),
    }
}
