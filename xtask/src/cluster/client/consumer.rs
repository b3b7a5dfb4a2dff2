//! A service that finds others, and loses every server.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;

use super::{ANSWER, Scene, Service};
use crate::conformance::http::poll;
use crate::conformance::target::Instance;

const APP: &str = "KIT-CONSUMED";
const INSTANCES: usize = 3;
/// How long it goes on without a server.
const ALONE: Duration = Duration::from_secs(5);

/// Runs the consumer's part.
pub(super) fn goes_on(scene: &mut Scene<'_>) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("registry");
    for number in 0..INSTANCES {
        let instance = Instance::new(APP, &format!("consumed-{number}"));
        scene.servers[0].target().register(&instance)?;
    }
    let mut consumer = scene.consumer("consumer", &copied(&path))?;
    let known = poll(ANSWER, || all(&mut consumer));
    scene.step(
        "a consumer finds others",
        known.map(|()| format!("{INSTANCES} instances")),
    );
    let kept = poll(ANSWER, || match path.exists() {
        true => Ok(String::new()),
        false => Err("there is none".to_owned()),
    });
    scene.step("and keeps a copy on disk", kept);

    scene.servers.iter_mut().for_each(super::Server::kill);
    let killed = Instant::now();
    scene.step(
        "all servers are killed: it goes on, and says how old its data is",
        alone(&mut consumer),
    );
    consumer.leave().map_err(anyhow::Error::msg)?;
    restarted(scene, &path, killed)?;
    refused(scene, &path)?;
    comes_back(scene, &path)
}

fn copied(path: &Path) -> [(&'static str, String); 1] {
    [("DISK_COPY", path.display().to_string())]
}

fn all(consumer: &mut Service) -> Result<(), String> {
    match consumer.find(APP)? {
        INSTANCES => Ok(()),
        count => Err(format!("it finds {count} of {INSTANCES}")),
    }
}

fn age(facts: &Value) -> Result<Duration, String> {
    let age = facts["age_ms"].as_u64().map(Duration::from_millis);
    age.ok_or_else(|| format!("it does not say how old its data is: {facts}"))
}

/// Finds everything all the time, and gets older as time goes.
fn alone(consumer: &mut Service) -> Result<String, String> {
    let first = age(&consumer.facts()?)?;
    // The time from here on is a part of what it is to get older by.
    let since = Instant::now();
    let mut looks = 0;
    while since.elapsed() < ALONE {
        all(consumer)?;
        looks += 1;
        std::thread::sleep(Duration::from_millis(20));
    }
    let facts = consumer.facts()?;
    let last = age(&facts)?;
    // Both are whole milliseconds.
    if last + Duration::from_millis(1) < first + ALONE {
        return Err(format!("{first:?} old became {last:?} in {ALONE:?}"));
    }
    let from = facts["origin"].as_str().unwrap_or_default();
    Ok(format!(
        "found all in each of {looks} looks; {:.1} s old, from {from}",
        last.as_secs_f64()
    ))
}

/// Twice, for the first must not make the copy younger than it is.
fn restarted(scene: &Scene<'_>, path: &Path, killed: Instant) -> Result<()> {
    let step = "restarted without a server: it finds all in the copy, and says how old that is";
    let mut last = Ok(String::new());
    for _ in 0..2 {
        let mut consumer = scene.consumer("restarted", &copied(path))?;
        last = last.and_then(|_| from_disk(&mut consumer, killed));
        consumer.leave().map_err(anyhow::Error::msg)?;
    }
    scene.step(step, last);
    Ok(())
}

fn from_disk(consumer: &mut Service, killed: Instant) -> Result<String, String> {
    poll(ANSWER, || all(consumer))?;
    let least = killed.elapsed();
    let facts = consumer.facts()?;
    let old = age(&facts)?;
    let from = facts["origin"].as_str().unwrap_or_default();
    if !from.starts_with("the copy on disk") {
        return Err(format!("it is from {from:?}"));
    }
    // What was confirmed before the servers died is older than their death; clocks of a millisecond round.
    if old + Duration::from_millis(2) < least {
        return Err(format!("{old:?} old, {least:?} after the servers died"));
    }
    Ok(format!("{:.1} s old", old.as_secs_f64()))
}

type Damage = (&'static str, fn(&[u8]) -> Vec<u8>);

const DAMAGES: [Damage; 5] = [
    ("one byte changed", |copy| {
        let mut bytes = copy.to_vec();
        let at = bytes.len() - 10;
        bytes[at] ^= 1;
        bytes
    }),
    ("truncated", |copy| copy[..copy.len() / 2].to_vec()),
    ("empty", |_| Vec::new()),
    ("a foreign file", |_| b"{\"applications\": {}}\n".to_vec()),
    ("of a newer version", |copy| {
        let text = String::from_utf8_lossy(copy);
        text.replacen("EUREKA-COPY 1 ", "EUREKA-COPY 2 ", 1).into_bytes()
    }),
];

/// What is no copy, or of something else, is refused with a warning and stays as it is.
fn refused(scene: &Scene<'_>, path: &Path) -> Result<()> {
    let good = fs::read(path).with_context(|| path.display().to_string())?;
    for (what, damage) in DAMAGES {
        fs::write(path, damage(&good))?;
        let refused = without(scene, path, &copied(path))?;
        scene.step(&format!("a copy that is {what}: refused with a warning"), refused);
    }
    fs::write(path, &good)?;
    let [copy] = copied(path);
    let refused = without(scene, path, &[copy, ("VIP", "somebody".to_owned())])?;
    scene.step(
        "a copy that is of more than one asks for: refused with a warning",
        refused,
    );
    Ok(())
}

fn without(
    scene: &Scene<'_>,
    path: &Path,
    settings: &[(&'static str, String)],
) -> Result<Result<String, String>> {
    let before = fs::read(path)?;
    let mut consumer = scene.consumer("refused", settings)?;
    let warned = poll(ANSWER, || {
        let complaints = consumer.0.complaints();
        let warning = complaints
            .lines()
            .find(|line| line.contains("WARN") && line.contains("copy"));
        warning.map(str::to_owned).ok_or_else(|| "no warning".to_owned())
    });
    let known = consumer.find(APP);
    consumer.leave().map_err(anyhow::Error::msg)?;
    let after = fs::read(path)?;
    Ok(warned.and_then(|warning| match known? {
        0 if after == before => Ok(said(&warning)),
        0 => Err("the file was changed".to_owned()),
        count => Err(format!("it finds {count}")),
    }))
}

/// What a line of the log says, without the time.
fn said(line: &str) -> String {
    line.split_once("WARN ")
        .map_or(line, |(_, said)| said.trim())
        .to_owned()
}

/// With a copy that was refused and servers that come back, everything is as ever.
fn comes_back(scene: &mut Scene<'_>, path: &Path) -> Result<()> {
    fs::write(path, "no copy\n")?;
    let mut consumer = scene.consumer("back", &copied(path))?;
    scene.start_servers()?;
    for number in 0..INSTANCES {
        let instance = Instance::new(APP, &format!("consumed-{number}"));
        scene.servers[1].target().register(&instance)?;
    }
    let since = Instant::now();
    let known = poll(super::START, || {
        all(&mut consumer)?;
        match fs::read(path) {
            Ok(copy) if copy.starts_with(b"EUREKA-COPY") => Ok(()),
            _ => Err("the copy was not replaced".to_owned()),
        }
    });
    let told = known.map(|()| format!("{:.1} s after they were ready", since.elapsed().as_secs_f64()));
    scene.step(
        "the servers are back: it finds all, and replaces the refused copy",
        told,
    );
    consumer.leave().map_err(anyhow::Error::msg)
}
