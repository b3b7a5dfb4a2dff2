//! The steps of a client that says more of itself: what it knows, whom it asks, what it counts.

use std::time::Duration;

use serde_json::Value;

use super::faults;
use super::session::{START, Session, found, found_now, is_at};
use crate::conformance::drivers::Driver;
use crate::conformance::http::{Request, poll};
use crate::conformance::report::Outcome;
use crate::conformance::target::{Target, instance_path};
use crate::conformance::tee::Tee;

const ANSWER: Duration = Duration::from_secs(20);

pub(super) fn finds_by_address(session: &mut Session<'_>) -> Outcome {
    let address = session.later().app.to_lowercase();
    let patience = session.patience();
    let plain = found(&mut session.driver, &format!("vip {address}"), patience);
    let both = plain.and_then(|_| found(&mut session.driver, &format!("svip {address}"), patience));
    both.map(|_| "vipAddress and secureVipAddress".to_owned()).into()
}

pub(super) fn sees_an_override(session: &mut Session<'_>) -> Outcome {
    overridden(session).into()
}

fn overridden(session: &mut Session<'_>) -> Result<String, String> {
    let later = session.later();
    let path = format!("{}/status?value=", instance_path(&later.app, &later.id));
    for (method, value, status) in [
        ("PUT", "OUT_OF_SERVICE", "OUT_OF_SERVICE"),
        ("DELETE", "UP", "UP"),
    ] {
        let target = session.run.target;
        let answer = target.send(&target.request(method, &format!("{path}{value}")));
        let answer = answer.map_err(|error| error.to_string())?;
        if answer.status != 200 {
            return Err(format!(
                "the kit's {method} of the status was answered {}",
                answer.status
            ));
        }
        let patience = session.patience();
        poll(patience, || {
            match &shown(&mut session.driver, &later.app)?[&later.id]["status"] {
                seen if *seen == *status => Ok(()),
                seen => Err(format!("it shows {seen} for {status}")),
            }
        })?;
    }
    Ok("OUT_OF_SERVICE and back".to_owned())
}

pub(super) fn sees_one_leave(session: &mut Session<'_>) -> Outcome {
    left(session).into()
}

fn left(session: &mut Session<'_>) -> Result<String, String> {
    let later = session.later();
    let cancelled = session.run.target.cancel(&later.app, &later.id);
    let status = cancelled.map_err(|error| error.to_string())?.status;
    if status != 200 {
        return Err(format!("the kit's cancel was answered {status}"));
    }
    let patience = session.patience();
    poll(patience, || {
        match found_now(&mut session.driver, &format!("find {}", later.app))? {
            0 => Ok(()),
            count => Err(format!("it still lists {count}")),
        }
    })?;
    let gone = if session.follows() {
        "\"cancelled\""
    } else {
        "DELETED"
    };
    let way = session.was_told(&|text| text.contains(&later.app) && text.contains(gone))?;
    Ok(format!("by {way}"))
}

/// A reader behind a proxy that gives every list a wrong hash: it must see that, read everything, and know everything.
pub(super) fn checks_the_hash(session: &mut Session<'_>) -> Outcome {
    if session.follows() {
        return Outcome::Skipped("it is told of changes as they happen, and reads no deltas".to_owned());
    }
    hash(session).into()
}

fn hash(session: &Session<'_>) -> Result<String, String> {
    let proxy = faults::wrong_hash(&session.target());
    let proxy = proxy.map_err(|error| format!("the proxy does not start: {error}"))?;
    let (tee, mut reader) = reader(session, &proxy.address, &[])?;
    let facts = poll(session.patience(), || {
        let facts = facts(&mut reader)?;
        let mismatches = facts["hash_mismatches"].as_u64().unwrap_or_default();
        let full =
            facts["full"].as_u64().unwrap_or_default() + facts["unchanged"].as_u64().unwrap_or_default();
        if mismatches > 0 && full > 1 {
            Ok(facts)
        } else {
            Err(format!("{mismatches} mismatches and {full} full lists"))
        }
    })?;
    let lists: Vec<&str> = tee_paths(&tee, session);
    let after_a_delta = lists
        .iter()
        .skip_while(|path| **path != "delta")
        .any(|path| *path == "full");
    if !after_a_delta {
        return Err(format!("it asked for {lists:?}"));
    }
    found(
        &mut reader,
        &format!("find {}", session.run.partner()),
        session.patience(),
    )?;
    leave(&mut reader)?;
    Ok(format!(
        "{} mismatches, {} full lists",
        facts["hash_mismatches"], facts["full"]
    ))
}

/// Which lists were asked for, in order.
fn tee_paths(tee: &Tee, session: &Session<'_>) -> Vec<&'static str> {
    let full = format!("{}/apps", session.run.target.prefix);
    let exchanges = tee.exchanges();
    let named = exchanges.iter().filter_map(|exchange| {
        if is_at(&exchange.request, "/apps/delta") {
            Some("delta")
        } else {
            is_at(&exchange.request, &full).then_some("full")
        }
    });
    named.collect()
}

/// A reader of the instances of one virtual address: it knows those and nobody else, and asks for nothing else.
pub(super) fn follows_an_address(session: &mut Session<'_>) -> Outcome {
    alone(session).into()
}

fn alone(session: &Session<'_>) -> Result<String, String> {
    let partner = session.run.partner();
    let address = session.target().address;
    let (tee, mut reader) = reader(session, &address, &[("VIP", partner.to_lowercase())])?;
    found(&mut reader, &format!("find {partner}"), session.patience())?;
    let others = found_now(&mut reader, &format!("find {}", session.app))?;
    let all = tee.count(|request: &Request, _| is_at(request, "/apps") || is_at(request, "/apps/delta"));
    leave(&mut reader)?;
    match (others, all) {
        (0, 0) => Ok(String::new()),
        (0, all) => Err(format!("it asked {all} times for the whole registry")),
        (others, _) => Err(format!("it lists {others} instances of another address")),
    }
}

pub(super) fn changes_metadata(session: &mut Session<'_>) -> Outcome {
    metadata(session).into()
}

fn metadata(session: &mut Session<'_>) -> Result<String, String> {
    session.driver.ask("metadata kit changed", START)?;
    session.wait_for(&mut |instance| match &instance["metadata"]["kit"] {
        shown if *shown == *"changed" => Ok(()),
        shown => Err(format!("the server shows {shown}")),
    })?;
    Ok(String::new())
}

/// The same client once more, which registers nothing, behind a recording proxy.
fn reader(session: &Session<'_>, upstream: &str, more: &[(&str, String)]) -> Result<(Tee, Driver), String> {
    let tee = Tee::start(upstream).map_err(|error| format!("no recording proxy: {error}"))?;
    let target: Target = session.run.target.behind(tee.address.as_str());
    let mut settings = vec![
        ("EUREKA_URL", target.to_string()),
        ("APP", String::new()),
        ("FETCH_SECS", "1".to_owned()),
    ];
    settings.extend_from_slice(more);
    let started = session.run.workshop.start(session.client, &settings);
    let driver = started.map_err(|error| format!("{error:#}"))?;
    driver.registering(START)?;
    Ok((tee, driver))
}

fn leave(driver: &mut Driver) -> Result<(), String> {
    driver.ask("leave", START).map(drop)
}

/// What a client says of itself.
fn facts(driver: &mut Driver) -> Result<Value, String> {
    read(&driver.ask("facts", ANSWER)?, "facts ")
}

/// The instances of an application as a client knows them, by their ids.
fn shown(driver: &mut Driver, app: &str) -> Result<Value, String> {
    read(&driver.ask(&format!("show {app}"), ANSWER)?, "shown ")
}

fn read(answer: &str, start: &str) -> Result<Value, String> {
    let json = answer.strip_prefix(start);
    let value = json.and_then(|json| serde_json::from_str(json).ok());
    value.ok_or_else(|| format!("the driver said {answer:?}"))
}
