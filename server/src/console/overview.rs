//! The page of applications and their instances.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{
    Application, DataCenter, Instance, LeaseView, Measure, Preservation, Reads, RegistryHandle, Snapshot,
    Status,
};
use eureka_replication::Facts;

use super::html::Html;
use super::{Console, moment, regions, replicas, span};
use crate::regions::Regions;
use crate::telemetry;

/// Instances named on the page; the rest are counted.
const NAMED_MAX: usize = 5_000;

pub(super) fn write(
    console: &Console,
    registry: &RegistryHandle,
    mesh: &Facts,
    others: &Regions,
    watchers: usize,
    out: &mut Html,
) {
    let snapshot = registry.snapshot();
    let preservation = registry.explain();
    system(console, registry, &preservation, out);
    alarm(console, &preservation, &snapshot, out);
    replicas::write(registry.now(), mesh, out);
    regions::write(registry.now(), &others.facts(), out);
    out.raw("<h1>Instances currently registered with Eureka</h1>\n");
    applications(&snapshot, out);
    general(console, &snapshot, watchers, out);
}

fn system(console: &Console, registry: &RegistryHandle, preservation: &Preservation, out: &mut Html) {
    let now = registry.now();
    out.raw("<h1>System Status</h1>\n<table>\n");
    out.pair("Current time", &moment(now.wall));
    out.pair(
        "Uptime",
        &span(Duration::from_millis(
            now.wall.0.saturating_sub(console.started.0),
        )),
    );
    let measure = match preservation.measure {
        Measure::LeasesOnTime => "leases on time",
        Measure::Heartbeats => "heartbeats",
    };
    let expiration = !preservation.active;
    out.pair(
        "Lease expiration enabled",
        if expiration { "true" } else { "false" },
    );
    out.pair("Preservation measures", measure);
    out.pair(
        "Leases on time",
        &format!("{} of {} expected", preservation.on_time, preservation.expected),
    );
    out.pair("Leases run out", &preservation.overdue.to_string());
    out.pair("Renews threshold", &preservation.heartbeats.threshold.to_string());
    out.pair(
        "Renews (last min)",
        &preservation.heartbeats.last_minute.to_string(),
    );
    out.raw("</table>\n");
}

fn alarm(console: &Console, preservation: &Preservation, snapshot: &Snapshot, out: &mut Html) {
    if let Reads::Held(_) = snapshot.reads() {
        out.raw("<p class=\"alarm\">Lists are held back (403): see <a href=\"/health/ready\">why</a>.</p>\n");
    }
    if preservation.active {
        // Operators search for these words, which every Eureka console has shown.
        out.raw("<p class=\"alarm\">EMERGENCY! EUREKA MAY BE INCORRECTLY CLAIMING INSTANCES ARE UP WHEN THEY'RE NOT. Too many leases are missing at once, so nobody is evicted: see <a href=\"/api/v1/preservation\">why</a>.</p>\n");
    } else if !console.preserves {
        out.raw("<p class=\"alarm\">THE SELF PRESERVATION MODE IS TURNED OFF. Instances are evicted even if the network is what failed.</p>\n");
    }
}

fn applications(snapshot: &Snapshot, out: &mut Html) {
    if snapshot.is_empty() {
        return out.raw("<p>No instances available</p>\n");
    }
    out.raw(
        "<table>\n<tr><th>Application</th><th>AMIs</th><th>Availability Zones</th><th>Status</th></tr>\n",
    );
    let mut named = 0;
    for application in snapshot.applications() {
        if named >= NAMED_MAX {
            break;
        }
        named += application.instances().len();
        row(&application, NAMED_MAX, out);
    }
    out.raw("</table>\n");
    if snapshot.len() > named {
        out.raw("<p>");
        out.number((snapshot.len() - named) as u64);
        out.raw(" more instances are not shown; <a href=\"/api/v1/instances\">/api/v1/instances</a> lists all.</p>\n");
    }
}

fn row(application: &Application<'_>, named_max: usize, out: &mut Html) {
    let mut images: BTreeMap<&str, usize> = BTreeMap::new();
    let mut zones: BTreeMap<&str, usize> = BTreeMap::new();
    let mut states: BTreeMap<Status, Vec<&Arc<LeaseView>>> = BTreeMap::new();
    for view in application.instances() {
        let instance = &view.instance;
        *images.entry(image(instance)).or_default() += 1;
        *zones.entry(instance.zone().unwrap_or("n/a")).or_default() += 1;
        states.entry(instance.status).or_default().push(view);
    }
    out.raw("<tr><td><b>");
    out.text(application.name());
    out.raw("</b></td><td>");
    counted(&images, out);
    out.raw("</td><td>");
    counted(&zones, out);
    out.raw("</td><td>");
    // UP, the last by name, is what one looks for.
    for (status, views) in states.iter().rev() {
        out.raw(if *status == Status::Up {
            "<b>"
        } else {
            "<b class=\"off\">"
        });
        out.text(status.as_str());
        out.raw("</b> (");
        out.number(views.len() as u64);
        out.raw(") - ");
        for (position, view) in views.iter().take(named_max).enumerate() {
            if position > 0 {
                out.raw(", ");
            }
            out.link(view.instance.status_page_url.as_deref(), view.instance.id());
        }
        if views.len() > named_max {
            out.raw(", ...");
        }
        out.raw("<br>");
    }
    out.raw("</td></tr>\n");
}

/// The machine image; not every Amazon instance says.
fn image(instance: &Instance) -> &str {
    match &instance.data_center {
        DataCenter::Amazon(machine) => machine.get("ami-id").unwrap_or("n/a"),
        DataCenter::MyOwn | DataCenter::Netflix => "n/a",
    }
}

fn counted(names: &BTreeMap<&str, usize>, out: &mut Html) {
    for (position, (name, count)) in names.iter().enumerate() {
        if position > 0 {
            out.raw(", ");
        }
        out.text(name);
        out.raw(" (");
        out.number(*count as u64);
        out.raw(")");
    }
}

fn general(console: &Console, snapshot: &Snapshot, watchers: usize, out: &mut Html) {
    let memory = telemetry::memory();
    let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
    out.raw("<h1>General Info</h1>\n<table>\n");
    out.pair("version", env!("CARGO_PKG_VERSION"));
    out.pair("listens on", &console.listen);
    out.pair("gRPC on", &console.grpc);
    out.pair("watchers and streams", &watchers.to_string());
    out.pair("instances", &snapshot.len().to_string());
    out.pair("registry version", &snapshot.version().to_string());
    out.pair("memory used", &mib(memory.used));
    out.pair("memory of the machine", &mib(memory.total));
    out.raw("</table>\n");
}
