//! Lists that lag behind the registry they are made from.

use std::collections::BTreeMap;

use eureka_registry_core::InstanceKey;

use super::standing::Standing;
use super::{Case, Index, joined};
use crate::cli::doctor::observation::{Answers, Kind, List};
use crate::cli::doctor::report::Finding;
use crate::cli::doctor::sample::NAMED;

pub(super) fn check(case: &mut Case<'_>) {
    let mut lagging: BTreeMap<Index, Vec<String>> = BTreeMap::new();
    for key in case.keys() {
        for &(index, _, answers) in &case.healthy {
            let lag = matches!(answers.list, List::Open(_))
                .then(|| lag(answers, &key))
                .flatten()
                .map(|evidence| format!("{}: {evidence}", case.name(index)));
            if let Some(evidence) = lag {
                lagging.entry(index).or_default().push(evidence);
                case.accounted.insert(key.clone());
            }
        }
    }
    for kind in [Kind::Ours, Kind::Java] {
        let whose = |index: &Index| case.answers(*index).is_some_and(|answers| answers.kind == kind);
        let (names, evidence): (Vec<_>, Vec<_>) = lagging
            .iter()
            .filter(|(index, _)| whose(index))
            .map(|(index, evidence)| (case.name(*index).to_owned(), evidence.clone()))
            .unzip();
        if !names.is_empty() {
            let mut evidence = evidence.concat();
            evidence.truncate(NAMED);
            case.find(finding(kind, names, evidence));
        }
    }
}

fn finding(kind: Kind, servers: Vec<String>, evidence: Vec<String>) -> Finding {
    let names: Vec<_> = servers.iter().map(String::as_str).collect();
    let lists = format!(
        "The lists of {} lag behind what is registered there",
        joined(&names)
    );
    let (sentence, remedy) = match kind {
        Kind::Ours => (
            format!("{lists}: they are made anew only every responses.update-interval."),
            "Set responses.update-interval = \"0s\", as by default, unless Java's way is wanted; nothing needs to be done for this instance.",
        ),
        Kind::Java => (
            format!(
                "{lists}: Java answers them from a read-only cache, up to 30 s old, and clients fetch every 30 s besides."
            ),
            "Wait, or switch the cache off (eureka.server.use-read-only-response-cache=false), or make it shorter (response-cache-update-interval-ms); single instances (apps/APP/ID) are never cached.",
        ),
    };
    Finding {
        name: "read-cache",
        servers,
        sentence,
        evidence,
        remedy: remedy.to_owned(),
    }
}

/// What the list shows otherwise than the registry, which was asked before it.
fn lag(answers: &Answers, key: &InstanceKey) -> Option<String> {
    let look = answers.look(key)?;
    match (&look.seen, answers.listed(key)) {
        (Some(single), None) => Some(format!(
            "apps/{key} shows it as {}, and apps, asked after that, does not list it",
            single.instance.status
        )),
        (Some(single), Some(listed)) => {
            let version = |view: &eureka_registry_core::LeaseView| {
                let instance = &view.instance;
                (instance.status, instance.overridden_status, instance.last_dirty)
            };
            (version(single) != version(listed)).then(|| {
                format!(
                    "apps/{key} shows {} with lastDirtyTimestamp {}, and apps, asked after that, still {} with {}",
                    single.instance.status,
                    single.instance.last_dirty.unwrap_or_default(),
                    listed.instance.status,
                    listed.instance.last_dirty.unwrap_or_default(),
                )
            })
        }
        (None, Some(listed)) => {
            let standing = Standing::of(answers, listed, look.at);
            (!standing.run_out)
                .then(|| format!("apps/{key} is 404, and apps, asked after that, still lists it"))
        }
        (None, None) => None,
    }
}
