//! Three nodes, of which two can never reach each other: what happens at one reaches the other through the third.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::Value;

use super::clients::{Clients, Habits};
use super::hang::watch;
use super::relay::Relay;
use super::servers::{Place, Server, Workshop};
use crate::conformance::http::poll;
use crate::conformance::report::{Outcome, Report};
use crate::conformance::target::{Instance, instance_path};

const LEASE_SECONDS: u32 = 6;
/// Ten lease durations.
const WATCHED: Duration = Duration::from_secs(60);
/// Two digests on either side of the third node, and what lies between.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs the scenario.
pub(super) fn run(workshop: &Workshop, report: &Report) -> Result<()> {
    let places = [
        Place::new("detour-a", 1)?,
        Place::new("detour-b", 1)?,
        Place::new("detour-c", 1)?,
    ];
    let (to_a, to_c) = (Relay::new(places[0].address)?, Relay::new(places[2].address)?);
    // The digest interval is to the lease as by default.
    let settings = [
        "preservation.enabled=false",
        "registry.eviction-interval=1s",
        "bootstrap.settle=3s",
        "replication.digest-interval=666ms",
    ];
    let b = places[1].url(None);
    let mut servers = [
        workshop.ours(&places[0], &[b.clone(), to_c.url()], &settings),
        workshop.ours(&places[1], &[places[0].url(None), places[2].url(None)], &settings),
        workshop.ours(&places[2], &[b, to_a.url()], &settings),
    ];
    for server in &mut servers {
        server.spawn()?;
    }
    for server in &mut servers {
        server.listening()?;
    }
    let habits = Habits {
        per_server: 5,
        heartbeat: Duration::from_secs(2),
        lease_seconds: LEASE_SECONDS,
        writes: false,
    };
    let clients = Clients::start(&servers.iter().collect::<Vec<_>>(), "KIT-DETOUR", habits);
    for server in &mut servers {
        server.ready()?;
    }
    to_a.cut();
    to_c.cut();
    let lost = watch(&servers, &clients, WATCHED);
    let step = format!(
        "two nodes cut off for {} leases: nobody flaps",
        WATCHED.as_secs() / u64::from(LEASE_SECONDS)
    );
    let result = if lost.is_empty() {
        Ok(String::new())
    } else {
        Err(lost.join("; "))
    };
    report.step("detour", &step, &Outcome::from(result));
    changes_arrive(&servers, report);
    report.step("detour", "no write has failed", &Outcome::from(clients.account()));
    Ok(())
}

/// Everything done at the first shows at the last.
fn changes_arrive(servers: &[Server], report: &Report) {
    let (a, c) = (servers[0].target(), servers[2].target());
    let instance = Instance::new("KIT-DETOUR", "traveller");
    let path = instance_path(&instance.app, &instance.id);
    let seen = |what: &str, question: &dyn Fn(Option<&Value>) -> bool| {
        let started = Instant::now();
        let shown = poll(PATIENCE, || {
            let shown = c.instance(&instance.app, &instance.id)?;
            if question(shown.as_ref()) {
                Ok(())
            } else {
                Err(format!("{}", shown.unwrap_or_default()))
            }
        });
        let told = shown.map(|()| format!("{:.2} s", started.elapsed().as_secs_f64()));
        report.step(
            "detour",
            &format!("{what} takes the way through the third"),
            &Outcome::from(told),
        );
    };
    // Whether each was taken shows in what follows.
    let _ = a.register(&instance);
    seen("a registration", &|shown| shown.is_some());
    let _ = a.send(&a.request("PUT", &format!("{path}/status?value=OUT_OF_SERVICE")));
    seen("an override", &|shown| {
        shown.is_some_and(|shown| shown["status"] == "OUT_OF_SERVICE")
    });
    let _ = a.send(&a.request("DELETE", &format!("{path}/status?value=UP")));
    seen("its removal", &|shown| {
        shown.is_some_and(|shown| shown["status"] == "UP")
    });
    let _ = a.send(&a.request("PUT", &format!("{path}/metadata?colour=blue")));
    seen("metadata", &|shown| {
        shown.is_some_and(|shown| shown["metadata"]["colour"] == "blue")
    });
    let _ = a.cancel(&instance.app, &instance.id);
    seen("a cancel", &|shown| shown.is_none());
}
