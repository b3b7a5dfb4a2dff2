//! Two nodes that were told one address as their peer, a load balancer's, which also leads back to themselves.

use std::thread;
use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use super::relay::Relay;
use super::servers::{Place, Server, Workshop};
use crate::conformance::http::{Request, poll};
use crate::conformance::report::{Outcome, Report};
use crate::conformance::target::Instance;

const DETECTED: Duration = Duration::from_secs(90);
const INSTANCES: usize = 20;

/// Runs the scenario.
pub(super) fn run(workshop: &Workshop, report: &Report) -> Result<()> {
    let places = [Place::new("balanced-a", 1)?, Place::new("balanced-b", 1)?];
    let balancer = Relay::balancing(places.iter().map(|place| place.address).collect())?;
    let settings = [
        "replication.digest-interval=1s",
        "bootstrap.settle=2s",
        "bootstrap.wait-when-empty=5s",
    ];
    let mut servers = places
        .each_ref()
        .map(|place| workshop.ours(place, &[balancer.url()], &settings));
    for server in &mut servers {
        server.spawn()?;
    }
    for server in &mut servers {
        server.ready()?;
    }
    let step =
        |name: &str, result: Result<String, String>| report.step("balancer", name, &Outcome::from(result));
    for server in &servers {
        step(
            &format!("{} says that the address is shared or its own", server.name),
            poll(DETECTED, || alarmed(server)),
        );
    }
    let a = servers[0].target();
    let instances: Vec<Instance> = (0..INSTANCES)
        .map(|index| Instance::new("KIT-BALANCED", &format!("i-{index}")))
        .collect();
    for instance in &instances {
        a.register(instance)?;
    }
    thread::sleep(Duration::from_secs(5));
    for server in &servers {
        step(
            &format!("nothing is applied twice at {}", server.name),
            applied_once(server),
        );
    }
    for instance in &instances {
        a.cancel(&instance.app, &instance.id)?;
    }
    thread::sleep(Duration::from_secs(3));
    let left = a.get("/apps/KIT-BALANCED").map(|answer| answer.status);
    let gone = match left {
        Ok(404) => Ok(String::new()),
        other => Err(format!("GET apps/KIT-BALANCED: {other:?}")),
    };
    step("what was cancelled stays away", gone);
    Ok(())
}

fn alarmed(server: &Server) -> Result<String, String> {
    let answer = server
        .target()
        .send(&Request::new("GET", "/api/v1/peers"))
        .map_err(|error| error.to_string())?;
    let peers = answer.json().map_err(|error| error.to_string())?;
    let alarms = peers["alarms"].as_array().cloned().unwrap_or_default();
    let names: Vec<&str> = alarms.iter().filter_map(|alarm| alarm["name"].as_str()).collect();
    if names
        .iter()
        .any(|name| ["shared-address", "self-loop"].contains(name))
    {
        Ok(names.join(", "))
    } else {
        Err(format!("alarms: {names:?}"))
    }
}

/// Each instance is in the log of changes at most once: whoever gets its own batch back does not apply it.
fn applied_once(server: &Server) -> Result<String, String> {
    let request = Request::new("GET", "/api/v1/lastn");
    let answer = server
        .target()
        .send(&request)
        .map_err(|error| error.to_string())?;
    let lists = answer
        .json()
        .map_err(|error| format!("GET /api/v1/lastn: {}, {error}", answer.status))?;
    let registered = lists["registered"].as_array().cloned().unwrap_or_default();
    let of_ours = |entry: &&Value| entry["app"] == "KIT-BALANCED";
    let mut ids: Vec<String> = registered
        .iter()
        .filter(of_ours)
        .map(|entry| entry["id"].to_string())
        .collect();
    let all = ids.len();
    ids.sort();
    ids.dedup();
    if all == ids.len() {
        Ok(format!("{all} registrations"))
    } else {
        Err(format!("{all} registrations of {} instances", ids.len()))
    }
}
