//! One id that stands for more than one thing.

use std::collections::{BTreeMap, BTreeSet};

use eureka_registry_core::InstanceKey;

use super::{Case, Index};
use crate::cli::doctor::report::Finding;
use crate::cli::doctor::sample::NAMED;

pub(super) fn check(case: &mut Case<'_>) {
    two_apps(case);
    two_hosts(case);
}

/// Java keeps overrides by the id alone, and answers `instances/ID` with whichever it finds first.
fn two_apps(case: &mut Case<'_>) {
    let mut apps: BTreeMap<&str, BTreeSet<InstanceKey>> = BTreeMap::new();
    let mut servers = BTreeSet::new();
    let subject = case.seen.subject.as_ref();
    for (index, _, answers) in &case.healthy {
        for view in answers.instances() {
            let id = view.instance.id();
            if subject.is_none_or(|subject| **subject.id() == *id) {
                apps.entry(id).or_default().insert(view.key());
                servers.insert(*index);
            }
        }
        if let (Some(key), Some(subject)) = (&answers.by_id, subject) {
            apps.entry(subject.id()).or_default().insert(key.clone());
        }
    }
    if let Some(subject) = subject
        && case
            .healthy
            .iter()
            .any(|(_, _, answers)| answers.single(subject).is_some())
    {
        apps.entry(subject.id()).or_default().insert(subject.clone());
    }
    let twice: Vec<String> = apps
        .iter()
        .filter(|(_, keys)| keys.len() > 1)
        .map(|(id, keys)| {
            let names: Vec<_> = keys.iter().map(|key| &**key.app()).collect();
            format!("the id {id} is used by {}", super::joined(&names))
        })
        .collect();
    if twice.is_empty() {
        return;
    }
    let servers = servers.into_iter().map(|index| case.name(index).to_owned());
    let mut finding = Finding {
        name: "id-in-two-apps",
        servers: servers.collect(),
        sentence: "An id is used by more than one application: Java keeps overrides by the id alone, so what an operator does to one happens to the other, and instances/ID shows either.".to_owned(),
        evidence: twice.iter().take(NAMED).cloned().collect(),
        remedy: "Let each application make its id unique, as Spring does with host:application:port (eureka.instance.instance-id), and cancel what was left under a former name.".to_owned(),
    };
    if twice.len() > NAMED {
        finding
            .evidence
            .push(format!("and {} more ids", twice.len() - NAMED));
    }
    case.find(finding);
}

/// Two machines that call themselves the same replace each other.
fn two_hosts(case: &mut Case<'_>) {
    for key in case.keys() {
        let mut machines: BTreeMap<(String, String), BTreeSet<Index>> = BTreeMap::new();
        for (index, _, answers) in &case.healthy {
            let looks = answers.looks.get(&key);
            for view in looks.into_iter().flatten().filter_map(|look| look.seen.as_ref()) {
                let instance = &view.instance;
                let machine = (instance.host_name.to_string(), instance.ip_address.to_string());
                machines.entry(machine).or_default().insert(*index);
            }
        }
        if machines.len() < 2 {
            continue;
        }
        let evidence = machines.iter().map(|((host, address), servers)| {
            let servers: Vec<_> = servers.iter().map(|index| case.name(*index)).collect();
            format!(
                "host {host}, address {address}: seen at {}",
                super::joined(&servers)
            )
        });
        let servers: BTreeSet<_> = machines.values().flatten().collect();
        let finding = Finding {
            name: "id-of-two-hosts",
            servers: servers.iter().map(|index| case.name(**index).to_owned()).collect(),
            sentence: format!("Two machines register as {key}: each replaces the other, and which one a server shows depends on who came last there."),
            evidence: evidence.collect(),
            remedy: "Give each machine an id of its own (eureka.instance.instance-id); copied images and fixed ids in configuration are the usual reason.".to_owned(),
        };
        case.find(finding);
        case.accounted.insert(key);
    }
}
