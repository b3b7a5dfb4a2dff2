//! The same instance with different content at different servers.

use std::collections::{BTreeMap, BTreeSet};

use eureka_registry_core::{Instance, InstanceKey};

use super::standing::{SETTLED, Standing};
use super::{Case, Index};
use crate::cli::doctor::report::Finding;
use crate::cli::doctor::sample::NAMED;

/// Characters of a value that are shown.
const SHOWN: usize = 80;

/// Findings of a name about the same servers, with their evidence.
type Found = BTreeMap<(&'static str, Vec<Index>), Vec<(InstanceKey, String)>>;

pub(super) fn check(case: &mut Case<'_>) {
    let mut found = Found::new();
    for key in case.keys() {
        if !case.accounted.contains(&key) || case.seen.subject.is_some() {
            compare(case, &key, &mut found);
        }
    }
    for ((name, servers), differences) in found {
        for (key, _) in &differences {
            case.accounted.insert(key.clone());
        }
        let servers = servers
            .into_iter()
            .map(|index| case.name(index).to_owned())
            .collect();
        case.find(finding(name, servers, &differences));
    }
}

fn compare(case: &Case<'_>, key: &InstanceKey, found: &mut Found) {
    let copies: Vec<(Index, &Instance)> = case
        .healthy
        .iter()
        .filter_map(|(index, _, answers)| {
            let look = answers.look(key)?;
            let view = look.seen.as_ref()?;
            let updated = i64::try_from(view.last_updated.0).unwrap_or(i64::MAX);
            // What changed just now may still be on its way.
            let settled = look.at + answers.clock_offset - updated >= SETTLED;
            settled.then_some((*index, &*view.instance))
        })
        .collect();
    let newest = copies.iter().max_by_key(|(_, instance)| instance.last_dirty);
    let Some(&(newest, _)) = newest else { return };
    let cut_off = |index: Index| {
        let ways = [(newest, index), (index, newest)];
        let stale = case
            .answers(index)
            .and_then(|answers| Standing::last(answers, key));
        let stale = stale.is_some_and(|standing| !standing.is_fresh());
        ways.iter().any(|way| case.broken.contains_key(way))
            || (stale && ways.iter().any(|way| case.explained.contains(way)))
    };
    let copies: Vec<_> = copies
        .into_iter()
        .filter(|(index, _)| *index == newest || !cut_off(*index))
        .collect();
    let tables: Vec<_> = copies
        .iter()
        .map(|(index, instance)| (*index, fields(instance)))
        .collect();
    let Some((_, first)) = tables.first() else { return };
    let mut evidence = Vec::new();
    let mut differing = BTreeSet::new();
    for (position, (field, _)) in first.iter().enumerate() {
        let mut values: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (index, table) in &tables {
            values
                .entry(&table[position].1)
                .or_default()
                .push(case.name(*index));
        }
        if values.len() > 1 {
            differing.insert(*field);
            let values: Vec<_> = values
                .iter()
                .map(|(value, servers)| format!("{} at {}", cut(value), super::joined(servers)))
                .collect();
            evidence.push(format!("{field} {}", values.join(", ")));
        }
    }
    // Machines of different names have a finding of their own.
    if differing.is_empty() || differing.contains(HOST) || differing.contains(ADDRESS) {
        return;
    }
    let name = if differing.contains(OVERRIDE) && !differing.contains(DIRTY) {
        "override-differs"
    } else if differing.contains(DIRTY) {
        "differing-versions"
    } else {
        "differing-content"
    };
    let servers = tables.iter().map(|(index, _)| *index).collect();
    let text = format!("{key}: {}", evidence.join("; "));
    found
        .entry((name, servers))
        .or_default()
        .push((key.clone(), text));
}

const HOST: &str = "hostName";
const ADDRESS: &str = "ipAddr";
const OVERRIDE: &str = "overriddenStatus";
const DIRTY: &str = "lastDirtyTimestamp";

/// What a client reported, with the status and the override: everything that servers should have alike.
fn fields(instance: &Instance) -> [(&'static str, String); 16] {
    let text = |value: &Option<_>| value.as_deref().map_or_else(String::new, str::to_owned);
    let port = |port: eureka_registry_core::Port| {
        format!("{}{}", port.number, if port.enabled { "" } else { " (disabled)" })
    };
    [
        (
            DIRTY,
            instance
                .last_dirty
                .map_or_else(String::new, |dirty| dirty.to_string()),
        ),
        ("status", instance.status.to_string()),
        (OVERRIDE, instance.overridden_status.to_string()),
        (HOST, instance.host_name.to_string()),
        (ADDRESS, instance.ip_address.to_string()),
        ("port", port(instance.port)),
        ("securePort", port(instance.secure_port)),
        ("vipAddress", text(&instance.vip_address)),
        ("secureVipAddress", text(&instance.secure_vip_address)),
        ("metadata", pairs(&instance.metadata)),
        ("homePageUrl", text(&instance.home_page_url)),
        ("statusPageUrl", text(&instance.status_page_url)),
        ("healthCheckUrl", text(&instance.health_check_url)),
        ("asgName", text(&instance.asg_name)),
        ("zone", instance.zone().unwrap_or_default().to_owned()),
        (
            "leaseInfo",
            format!(
                "{} s, {} s",
                instance.lease.renewal_interval_secs, instance.lease.duration_secs
            ),
        ),
    ]
}

/// In one order, because servers differ in it.
fn pairs(metadata: &eureka_registry_core::Metadata) -> String {
    let pairs: BTreeMap<_, _> = metadata.iter().collect();
    let pairs: Vec<_> = pairs
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    pairs.join(" ")
}

fn cut(value: &str) -> String {
    match value.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None if value.is_empty() => "nothing".to_owned(),
        None => value.to_owned(),
    }
}

fn finding(name: &'static str, servers: Vec<String>, differences: &[(InstanceKey, String)]) -> Finding {
    let whose = match differences {
        [(key, _)] => format!("of {key}"),
        more => format!("of {} instances", more.len()),
    };
    let (sentence, remedy) = match name {
        "override-differs" => (
            format!(
                "The overrides {whose} differ though the versions (lastDirtyTimestamp) are equal: between Java servers no heartbeat ever repairs that."
            ),
            "Send the override again to one of the servers (PUT apps/APP/ID/status?value=OUT_OF_SERVICE), or its removal (DELETE apps/APP/ID/status?value=UP): either is replicated, whatever that server has now.",
        ),
        "differing-versions" => (
            format!("The servers have different versions {whose}, and had time to exchange them."),
            "The next heartbeat that reaches the server with the newer copy should bring it to the others. Ask again with --watch 35s; if they still differ, the way between them is broken, or the client's clock was set back (then cancel the instance).",
        ),
        _ => (
            format!(
                "The contents {whose} differ though the versions (lastDirtyTimestamp) are equal: between Java servers no heartbeat ever repairs that."
            ),
            "Let the client register again, for instance by restarting it; a change of metadata that was sent to one server (PUT apps/APP/ID/metadata) can be sent again.",
        ),
    };
    let mut evidence: Vec<_> = differences
        .iter()
        .take(NAMED)
        .map(|(_, text)| text.clone())
        .collect();
    if differences.len() > NAMED {
        evidence.push(format!("and {} more", differences.len() - NAMED));
    }
    Finding {
        name,
        servers,
        sentence,
        evidence,
        remedy: remedy.to_owned(),
    }
}
