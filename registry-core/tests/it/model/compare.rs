//! Everything the registry shows against what the model says.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::time::Duration;

use eureka_registry_core::{
    Action, Changed, Changes, Instance, InstanceKey, LeaseTimes, LeaseView, Now, Reads, Registered, Registry,
    Renewed, RepairRequest, Reply, Snapshot, Status, Step, Wall,
};

use super::reference::{Held, Reference, Standing, duration, millis, wall};

pub(super) fn compare(now: Now, registry: &mut Registry, model: &mut Reference) -> Result<(), String> {
    digest(now, registry, model)?;
    leases(now, registry, model)?;
    let snapshot = registry.snapshot(now);
    lists(now, &snapshot, model)?;
    addresses(&snapshot, model)?;
    preservation(now, registry, model)?;
    figures(registry, model)?;
    changes(now, registry, model)?;
    recents(now, registry, model)
}

/// Equal content has equal roots, other content other ones; and whoever is late is asked about.
fn digest(now: Now, registry: &mut Registry, model: &mut Reference) -> Result<(), String> {
    model.settle(now);
    let RepairRequest::Compare { root, mut late } = registry.repair_request(now, &Step::Compare) else {
        return Err(String::from("another request than asked for"));
    };
    let stats = registry.stats();
    let content = model.digest();
    let moving = model.leases.values().filter(|held| !held.out && !held.settled);
    equal(
        "digest",
        (stats.digest, stats.moving),
        (content.len(), moving.count()),
    )?;
    if !model.roots.contains_key(&content) {
        let other = model.contents.insert(root, content.clone());
        equal("other content of this root", other, None)?;
    }
    equal("root", root, *model.roots.entry(content).or_insert(root))?;
    late.sort_unstable();
    let expected = model
        .leases
        .iter()
        .filter(|(_, held)| held.standing != Standing::OnTime);
    equal("late", late, expected.map(|(key, _)| key.clone()).collect())
}

/// The answer in words.
pub(super) fn reply(reply: &Reply) -> &'static str {
    match reply {
        Reply::Registered(Registered::Accepted) => "accepted",
        Reply::Registered(Registered::KeptNewer) => "kept newer",
        Reply::Registered(Registered::Refused) => "refused",
        Reply::Renewed(Renewed::Ok) | Reply::Changed(Changed::Ok) => "ok",
        Reply::Renewed(Renewed::Missing) | Reply::Changed(Changed::Missing) => "missing",
        Reply::Renewed(Renewed::Ahead) => "ahead",
        Reply::Renewed(Renewed::Behind(_)) => "behind",
        other => panic!("there is no word for {other:?}"),
    }
}

fn equal<T: PartialEq + Debug>(what: &str, found: T, expected: T) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    let (found, expected) = (format!("{found:?}"), format!("{expected:?}"));
    let same = found
        .bytes()
        .zip(expected.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let around =
        |text: &str| String::from_utf8_lossy(&text.as_bytes()[same.saturating_sub(120)..]).into_owned();
    Err(format!(
        "{what}: found ...\n  {}\nexpected ...\n  {}",
        around(&found),
        around(&expected)
    ))
}

fn leases(now: Now, registry: &Registry, model: &Reference) -> Result<(), String> {
    for app in ["A", "B", "C"] {
        for id in ["1", "2", "3", "4"] {
            let key = InstanceKey::new(app, id);
            let held = model.leases.get(&key);
            let expected = held.map(|held| view(now, model, held));
            equal("lease", registry.lease(now, &key), expected.clone())?;
            let expected = expected.filter(|_| model.visible(now, &key));
            equal("find", registry.find(now, &key), expected)?;
            let age = held.map(|held| Duration::from_millis((millis(now.mono) - held.heard).unsigned_abs()));
            equal("age", registry.age(now, &key), age)?;
        }
    }
    for id in ["1", "4", "5"] {
        let first = model
            .leases
            .keys()
            .find(|key| &**key.id() == id && model.visible(now, key));
        let found = registry.find_by_id(now, id).map(|view| view.key());
        equal("find by id", found.as_ref(), first)?;
    }
    Ok(())
}

fn view(now: Now, model: &Reference, held: &Held) -> LeaseView {
    let ahead = model.config.compat.renewal_shown_ahead && held.renewed;
    let shown = held.heard + if ahead { duration(held) } else { 0 };
    LeaseView {
        instance: held.instance.clone().into(),
        action: held.action,
        last_updated: wall(now, held.updated),
        lease: LeaseTimes {
            terms: held.instance.lease,
            registered: wall(now, held.registered),
            renewed: wall(now, shown),
            evicted: Wall(0),
            service_up: held.up.map_or(Wall(0), |up| wall(now, up)),
        },
        coordinating: false,
    }
}

type Listed = BTreeMap<InstanceKey, (Action, Instance)>;

fn listed<'a>(views: impl IntoIterator<Item = &'a std::sync::Arc<LeaseView>>) -> (Vec<InstanceKey>, Listed) {
    let views: Vec<_> = views.into_iter().collect();
    let order = views.iter().map(|view| view.key()).collect();
    let listed = views
        .iter()
        .map(|view| (view.key(), (view.action, Instance::clone(&view.instance))))
        .collect();
    (order, listed)
}

fn lists(now: Now, snapshot: &Snapshot, model: &Reference) -> Result<(), String> {
    equal("version", snapshot.version(), model.log.len() as u64)?;
    let open = model.open_from.is_some_and(|from| model.now_ticks(now) >= from);
    equal("reads", snapshot.reads() == Reads::Open, open)?;
    let expected: Listed = model
        .leases
        .iter()
        .map(|(key, held)| (key.clone(), (held.action, held.instance.clone())))
        .collect();
    let (order, instances) = listed(snapshot.instances());
    equal("order", &order, &expected.keys().cloned().collect())?;
    equal("instances", instances, expected)?;
    equal("length", snapshot.len(), order.len())?;
    let mut applications = Vec::new();
    for application in snapshot.applications() {
        applications.extend(application.instances().map(|view| view.key()));
        let found = snapshot
            .application(application.name())
            .map(|found| found.instances().count());
        equal("application", found, Some(application.instances().count()))?;
    }
    equal("applications", &applications, &order)?;
    equal("no application", snapshot.application("D").is_none(), true)?;

    let (order, delta) = listed(&snapshot.delta());
    let expected = model.delta();
    equal("order of the delta", order, expected.keys().cloned().collect())?;
    equal("delta", delta, expected)?;
    equal("hash", snapshot.hash(), hash(model))
}

fn hash(model: &Reference) -> String {
    let mut names: Vec<_> = model
        .leases
        .values()
        .map(|held| held.instance.status.as_str())
        .collect();
    names.sort_unstable();
    let groups = names.chunk_by(|a, b| a == b);
    groups
        .map(|group| format!("{}_{}_", group[0], group.len()))
        .collect()
}

fn addresses(snapshot: &Snapshot, model: &Reference) -> Result<(), String> {
    for vip in ["v", "w", "v,w", ""] {
        let found: Vec<_> = snapshot.by_vip(vip).iter().map(|view| view.key()).collect();
        let has = |held: &Held| {
            held.instance
                .vip_address
                .as_ref()
                .is_some_and(|all| all.split(',').any(|one| one == vip))
        };
        let expected = model.leases.iter().filter(|(_, held)| has(held));
        equal("vip", found, expected.map(|(key, _)| key.clone()).collect())?;
    }
    for id in ["1", "5"] {
        let found: Vec<_> = snapshot.by_id(id).iter().map(|view| view.key()).collect();
        let expected = model.leases.keys().filter(|key| &**key.id() == id);
        equal("by id", found, expected.cloned().collect())?;
    }
    for key in model.leases.keys() {
        equal("instance", snapshot.instance(key).is_some(), true)?;
    }
    Ok(())
}

fn preservation(now: Now, registry: &Registry, model: &Reference) -> Result<(), String> {
    let ticks = model.now_ticks(now);
    let explained = registry.explain(now);
    let (on_time, expected) = model.expected.share(&model.leases, |_, _| true);
    equal(
        "on time",
        (explained.on_time, explained.expected),
        (on_time, expected),
    )?;
    equal(
        "heartbeats",
        explained.heartbeats,
        model.expected.heartbeats(ticks),
    )?;
    equal("active", explained.active, !model.evicts(now))?;
    equal("quota", explained.quota, model.expected.quota(model.leases.len()))?;
    let (apps, zones) = model.expected.groups(&model.leases);
    let shares = |shares: &[eureka_registry_core::Share]| -> Vec<_> {
        let share = shares.iter();
        share
            .map(|share| (String::from(&*share.name), share.on_time, share.expected))
            .collect()
    };
    let expected_apps = apps.into_iter().map(|name| {
        let (on_time, expected) = model.expected.share(&model.leases, |app, _| app == name);
        (name, on_time, expected)
    });
    equal(
        "applications expected",
        shares(&explained.applications),
        expected_apps.collect(),
    )?;
    let expected_zones = zones.into_iter().map(|name| {
        let (on_time, expected) = model.expected.share(&model.leases, |_, zone| zone == name);
        (name, on_time, expected)
    });
    equal(
        "zones expected",
        shares(&explained.zones),
        expected_zones.collect(),
    )?;
    equal("overdue named", explained.overdue_named.len(), explained.overdue)
}

fn figures(registry: &Registry, model: &Reference) -> Result<(), String> {
    let stats = registry.stats();
    let count = |status| {
        model
            .leases
            .values()
            .filter(|held| held.instance.status == status)
            .count()
    };
    equal("by status", stats.by_status, Status::ALL.map(count))?;
    let overrides = model
        .overrides
        .iter()
        .map(|(key, (status, _))| (key.clone(), *status));
    let overrides: Vec<_> = overrides.collect();
    equal("overrides", registry.overrides(None, 100), overrides.clone())?;
    let after = overrides.first().map(|(key, _)| key);
    let rest = overrides.iter().skip(1).take(1).cloned().collect();
    equal("overrides behind the first", registry.overrides(after, 1), rest)?;
    let apps: BTreeSet<_> = model.leases.keys().map(|key| key.app()).collect();
    for (what, found, expected) in [
        ("instances", stats.instances, model.leases.len()),
        ("applications", stats.applications, apps.len()),
        ("overrides", stats.overrides, model.overrides.len()),
        ("tombstones", stats.tombstones, model.tombstones.len()),
        (
            "changes",
            stats.changes,
            model.log.len().min(model.config.change_log_limit),
        ),
        ("delta", stats.delta, model.delta().len()),
    ] {
        equal(what, found, expected)?;
    }
    let counts = &model.counts;
    for (what, found, expected) in [
        ("registrations", stats.registrations, counts.registrations),
        ("renewals", stats.renewals, counts.renewals),
        (
            "renewals missing",
            stats.renewals_missing,
            counts.renewals_missing,
        ),
        ("cancels", stats.cancels, counts.cancels),
        ("evictions", stats.evictions, counts.evictions),
        ("forgotten", stats.forgotten, counts.forgotten),
    ] {
        equal(what, found, expected)?;
    }
    Ok(())
}

/// From a few places, of which some are too old and one lies ahead.
fn changes(now: Now, registry: &Registry, model: &Reference) -> Result<(), String> {
    let current = model.log.len();
    let kept_from = current.saturating_sub(model.config.change_log_limit);
    for back in [
        0,
        1,
        3,
        model.config.change_log_limit,
        model.config.change_log_limit + 1,
    ] {
        let Some(since) = current.checked_sub(back) else {
            continue;
        };
        match registry.changes(now, since as u64, 5) {
            Changes::Lost { current: version } => {
                equal("lost", (since < kept_from, version), (true, current as u64))?;
            }
            Changes::Since {
                changes,
                current: version,
            } => {
                equal("kept", (since >= kept_from, version), (true, current as u64))?;
                let found: Vec<_> = changes
                    .into_iter()
                    .map(|change| {
                        (
                            (change.version, change.at),
                            (change.key, change.action),
                            change.before.map(|before| Instance::clone(&before)),
                            Instance::clone(&change.instance),
                            (change.author, change.cause),
                        )
                    })
                    .collect();
                let expected = model
                    .log
                    .iter()
                    .zip(1..)
                    .skip(since)
                    .take(5)
                    .map(|(logged, version)| {
                        (
                            (version, wall(now, logged.moment)),
                            (logged.key.clone(), logged.action),
                            logged.before.clone(),
                            logged.instance.clone(),
                            logged.because.clone(),
                        )
                    });
                equal("changes", found, expected.collect())?;
            }
        }
    }
    for logged in model.log[kept_from..].iter().rev().take(3) {
        let until = model.log.partition_point(|other| other.moment <= logged.moment);
        let at = wall(now, logged.moment);
        equal("version at", registry.version_at(now, at), Some(until as u64))?;
    }
    let ahead = registry.changes(now, current as u64 + 1, 5);
    equal(
        "changes ahead",
        ahead,
        Changes::Lost {
            current: current as u64,
        },
    )
}

fn recents(now: Now, registry: &Registry, model: &Reference) -> Result<(), String> {
    for (what, found, expected) in [
        (
            "registrations",
            registry.recent_registrations(now),
            &model.registered,
        ),
        ("cancels", registry.recent_cancels(now), &model.cancelled),
    ] {
        equal("recents", found.len(), expected.len().min(1_000))?;
        let found = found.into_iter().take(5);
        let found: Vec<_> = found.map(|recent| (recent.at, recent.key)).collect();
        let expected = expected.iter().rev().take(5);
        let expected = expected.map(|(at, key)| (wall(now, *at), key.clone()));
        equal(&format!("recent {what}"), found, expected.collect())?;
    }
    Ok(())
}
