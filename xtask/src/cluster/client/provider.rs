//! A service that registers, and loses one server after the other.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use super::watch::Watch;
use super::{ANSWER, LEASE, RENEW, Scene, Service};
use crate::conformance::http::poll;
use crate::conformance::target::find_instance;

const APP: &str = "KIT-PROVIDER";
const ID: &str = "provider:8080";

/// Runs the provider's part.
pub(super) fn stays_registered(scene: &mut Scene<'_>) -> Result<()> {
    let nodes = scene
        .servers
        .each_ref()
        .map(|server| (server.name, server.target()));
    let watch = Watch::start(APP, nodes);
    let mut provider = scene.provider(APP, ID)?;
    scene.step("a provider registers, and both servers list it", listed(&watch));
    for (how, step) in [
        (
            Loss::Killed,
            "its server is killed: the next renewal goes to the other one",
        ),
        (Loss::Killed, "and that one is killed, when the first is back"),
        (
            Loss::Hanging,
            "its server hangs: the renewal goes to the other one within the lease",
        ),
    ] {
        let (index, changed) = lose(scene, &watch, &mut provider, how)?;
        scene.step(step, changed);
        found_again(scene, &watch, index, how)?;
    }
    scene.step(
        "all the time: no lost lease, no second registration",
        all_the_time(&watch, &mut provider),
    );
    drop(watch);
    leaves(scene, provider)
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Loss {
    Killed,
    Hanging,
}

fn listed(watch: &Watch) -> Result<String, String> {
    poll(ANSWER, || watch.complete()).map(|()| String::new())
}

/// Takes away the server that the provider renews at, and waits for a renewal at the other one.
fn lose(
    scene: &mut Scene<'_>,
    watch: &Watch,
    provider: &mut Service,
    how: Loss,
) -> Result<(usize, Result<String, String>)> {
    let facts = provider.facts().map_err(anyhow::Error::msg)?;
    let used = facts["server"].as_str().unwrap_or_default().to_owned();
    let address = |index: usize| scene.servers[index].address.to_string();
    let index = (0..2).find(|index| used.contains(&address(*index)));
    let index = index.ok_or_else(|| anyhow!("the provider renews at {used:?}"))?;
    let other = address(1 - index);
    let before = facts["renewals"].as_u64().unwrap_or_default();
    let since = Instant::now();
    match how {
        Loss::Killed => {
            scene.servers[index].kill();
            watch.forget(index);
        }
        Loss::Hanging => scene.servers[index].signal("STOP")?,
    }
    let changed = await_renewal(provider, before, &other).map(|()| {
        format!(
            "after {:.1} s; it renews every {} s",
            since.elapsed().as_secs_f64(),
            RENEW.as_secs()
        )
    });
    Ok((index, changed))
}

fn await_renewal(provider: &mut Service, before: u64, other: &str) -> Result<(), String> {
    let since = Instant::now();
    loop {
        let facts = provider.facts()?;
        let there = facts["server"]
            .as_str()
            .is_some_and(|server| server.contains(other));
        if there && facts["renewals"].as_u64() > Some(before) {
            return Ok(());
        }
        if since.elapsed() > LEASE {
            return Err(format!("no renewal there within the lease: {facts}"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Brings the server back and waits until it lists the provider.
fn found_again(scene: &mut Scene<'_>, watch: &Watch, index: usize, how: Loss) -> Result<()> {
    match how {
        Loss::Killed => {
            scene.servers[index].spawn()?;
            scene.servers[index].ready()?;
        }
        Loss::Hanging => scene.servers[index].signal("CONT")?,
    }
    poll(super::START, || watch.complete()).map_err(anyhow::Error::msg)
}

fn all_the_time(watch: &Watch, provider: &mut Service) -> Result<String, String> {
    let seen = watch.verdict()?;
    let facts = provider.facts()?;
    match facts["registrations"].as_u64() {
        Some(1) => Ok(format!("{seen}, 1 registration, {} renewals", facts["renewals"])),
        count => Err(format!("{seen}, but it registered {count:?} times: {facts}")),
    }
}

/// It cancels, and a consumer and both servers know at once.
fn leaves(scene: &Scene<'_>, mut provider: Service) -> Result<()> {
    let mut consumer = scene.consumer("sees-one-leave", &[])?;
    let known = poll(ANSWER, || match consumer.find(APP)? {
        1 => Ok(()),
        count => Err(format!("it knows {count}")),
    });
    known.map_err(anyhow::Error::msg)?;
    provider.leave().map_err(anyhow::Error::msg)?;
    let since = Instant::now();
    let seen = gone(&mut consumer).map(|()| format!("{} ms after it had left", since.elapsed().as_millis()));
    scene.step("a graceful leave is seen by a consumer", seen);
    let lists = poll(ANSWER, || {
        for server in &scene.servers {
            if find_instance(&server.target().get_json("/apps")?, APP, ID).is_some() {
                return Err(format!("{} still lists it", server.name));
            }
        }
        Ok(())
    });
    scene.step("and by both servers", lists.map(|()| String::new()));
    Ok(())
}

fn gone(consumer: &mut Service) -> Result<(), String> {
    let since = Instant::now();
    while consumer.find(APP)? > 0 {
        if since.elapsed() > ANSWER {
            return Err("it still knows the instance".to_owned());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}
