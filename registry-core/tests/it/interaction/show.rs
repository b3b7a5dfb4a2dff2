//! What transcripts print.

use std::fmt::Write as _;

use eureka_registry_core::{
    Action, AppliedKind, Event, LeaseView, Preservation, Recent, Snapshot, Stats, Status, Wall,
};

use super::world::START;

/// `+1m30s`-like, but in seconds: offsets are easier to compare so.
pub(crate) fn offset(wall: Wall) -> String {
    if wall == Wall(0) {
        return String::from("-");
    }
    let (sign, millis) = match wall.0.checked_sub(START.0) {
        Some(after) => ('+', after),
        None => ('-', START.0 - wall.0),
    };
    match (millis / 1_000, millis % 1_000) {
        (seconds, 0) => format!("{sign}{seconds}s"),
        (seconds, part) => format!("{sign}{seconds}.{part:03}s"),
    }
}

/// One line about a lease: everything a reader of one instance sees, defaults left out.
pub(crate) fn lease(view: &LeaseView) -> String {
    let instance = &view.instance;
    let mut line = format!("{} {} {}", view.key(), instance.status, view.action.as_str());
    if instance.overridden_status != Status::Unknown {
        write!(line, " override={}", instance.overridden_status).expect("a string takes all");
    }
    if let Some(dirty) = instance.last_dirty {
        write!(line, " dirty={dirty}").expect("a string takes all");
    }
    let times = view.lease;
    for (name, wall) in [
        ("registered", times.registered),
        ("renewed", times.renewed),
        ("up", times.service_up),
        ("evicted", times.evicted),
        ("updated", view.last_updated),
    ] {
        if wall != Wall(0) {
            write!(line, " {name}={}", offset(wall)).expect("a string takes all");
        }
    }
    if &*instance.host_name != "host" {
        write!(line, " host={}", instance.host_name).expect("a string takes all");
    }
    for (key, value) in instance.metadata.iter() {
        write!(line, " {key}:{value}").expect("a string takes all");
    }
    if view.coordinating {
        line += " coordinating";
    }
    line + "\n"
}

/// One line about an instance in a list.
pub(crate) fn listed(view: &LeaseView) -> String {
    format!(
        "{} {} {}\n",
        view.key(),
        view.instance.status,
        view.action.as_str()
    )
}

pub(crate) fn snapshot(snapshot: &Snapshot) -> String {
    let mut text = format!("version {} reads {:?}\n", snapshot.version(), snapshot.reads());
    for application in snapshot.applications() {
        let ids: Vec<_> = application
            .instances()
            .map(|view| format!("{}={}", view.instance.id(), view.instance.status))
            .collect();
        writeln!(text, "{}: {}", application.name(), ids.join(" ")).expect("a string takes all");
    }
    writeln!(text, "hash {:?}", snapshot.hash()).expect("a string takes all");
    text
}

/// `None` for renewals and registrations that only the verbose form shows.
pub(crate) fn event(event: &Event, verbose: bool) -> Option<String> {
    match event {
        Event::Applied {
            seq,
            version,
            key,
            kind,
            before,
            after,
            origin,
        } => verbose.then(|| {
            let status = |side: &Option<_>| {
                side.as_ref().map_or(
                    "-",
                    |instance: &std::sync::Arc<eureka_registry_core::Instance>| instance.status.as_str(),
                )
            };
            let (before, after) = (status(before), status(after));
            format!(
                "#{seq} v{version} {key} {} {before}>{after} from {origin:?}",
                kind_name(*kind)
            )
        }),
        Event::Expired {
            seq, version, key, ..
        } if verbose => Some(format!("#{seq} v{version} {key} expired")),
        Event::Expired { key, .. } => Some(format!("{key} expired")),
        Event::Late { key } => Some(format!("{key} late")),
        Event::Preserving(true) => Some(String::from("preserving")),
        Event::Preserving(false) => Some(String::from("not preserving")),
        other => Some(format!("{other:?}")),
    }
}

fn kind_name(kind: AppliedKind) -> &'static str {
    match kind {
        AppliedKind::Registered => "registered",
        AppliedKind::Renewed => "renewed",
        AppliedKind::Cancelled => "cancelled",
        AppliedKind::Overridden => "overridden",
        AppliedKind::OverrideCleared => "cleared",
        AppliedKind::MetadataChanged => "metadata",
        AppliedKind::Adopted => "adopted",
    }
}

pub(crate) fn preservation(explained: &Preservation) -> String {
    let mut text = format!(
        "{} on-time={}/{} quota={} overdue={}\n",
        if explained.active {
            "preserving"
        } else {
            "evicting"
        },
        explained.on_time,
        explained.expected,
        explained.quota,
        explained.overdue
    );
    let java = explained.heartbeats;
    writeln!(
        text,
        "heartbeats: clients={} threshold={} last-minute={} evicts={}",
        java.expected_clients, java.threshold, java.last_minute, java.evicts
    )
    .expect("a string takes all");
    for (kind, shares) in [("app", &explained.applications), ("zone", &explained.zones)] {
        for share in shares {
            writeln!(
                text,
                "{kind} {:?}: {}/{}",
                &*share.name, share.on_time, share.expected
            )
            .expect("a string takes all");
        }
    }
    for key in &explained.overdue_named {
        writeln!(text, "overdue {key}").expect("a string takes all");
    }
    text
}

/// What is not zero.
pub(crate) fn stats(stats: &Stats) -> String {
    let mut text = String::new();
    for (name, count) in [
        ("instances", stats.instances as u64),
        ("applications", stats.applications as u64),
        ("registrations", stats.registrations),
        ("renewals", stats.renewals),
        ("renewals-missing", stats.renewals_missing),
        ("renewals-refused", stats.renewals_refused),
        ("refusals", stats.refusals as u64),
        ("cancels", stats.cancels),
        ("evictions", stats.evictions),
        ("overrides", stats.overrides as u64),
        ("tombstones", stats.tombstones as u64),
        ("forgotten", stats.forgotten),
        ("changes", stats.changes as u64),
        ("delta", stats.delta as u64),
        ("version", stats.version),
    ] {
        if count > 0 {
            writeln!(text, "{name} {count}").expect("a string takes all");
        }
    }
    text
}

pub(crate) fn recent(title: &str, entries: &[Recent]) -> String {
    let entries: Vec<_> = entries
        .iter()
        .map(|entry| format!("{}@{}", entry.key, offset(entry.at)))
        .collect();
    let entries = if entries.is_empty() {
        String::from("none")
    } else {
        entries.join(" ")
    };
    format!("{title}: {entries}\n")
}

/// The delta, each entry's action seen from a client.
pub(crate) fn delta(views: &[std::sync::Arc<LeaseView>]) -> String {
    if views.is_empty() {
        return String::from("empty\n");
    }
    let deleted = views.iter().filter(|view| view.action == Action::Deleted).count();
    let mut text: String = views.iter().map(|view| listed(view)).collect();
    writeln!(text, "{} entries, {deleted} deleted", views.len()).expect("a string takes all");
    text
}
