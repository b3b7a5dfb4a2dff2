//! What breaks in one region, as the other one sees it.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::{PATIENCE, Region, SHOWN, Story, accepted, is_gone, look, since};
use crate::cluster::servers::{Place, Server, Workshop};
use crate::conformance::target::{Instance, Target, find_instance};

/// How long a dead region is looked at.
const DEAD: Duration = Duration::from_secs(4);

/// The node that is read dies: its companion is read.
pub(super) fn one_of_two_dies(story: &Story<'_>, regions: &mut [Region; 2], dying: usize) -> Result<()> {
    let [one, other] = regions;
    let (here, there) = if dying == 0 { (one, other) } else { (other, one) };
    let reader = &there.servers[0];
    let read = here.known_to(reader).map_err(anyhow::Error::msg)?;
    let victim = usize::from(
        read["server"]
            .as_str()
            .is_some_and(|url| url.contains(&here.servers[1].address.to_string())),
    );
    let started = Instant::now();
    here.servers[victim].kill();
    let instance = Instance::new(SHOWN, "after-a-death");
    let survivor = &here.servers[1 - victim];
    let done = accepted(survivor.target().register(&instance).map(|answer| answer.status));
    let shown = done.and_then(|()| look(PATIENCE, || is_shown(&reader.target(), &instance)));
    let step = format!(
        "the node that {} reads dies, and it reads the other one",
        reader.name
    );
    story.step(&step, shown.map(|()| since(started)));
    let now = here.known_to(reader).map(|region| region["server"].to_string());
    let moved = now.and_then(|server| match server.contains(&survivor.address.to_string()) {
        true => Ok(String::new()),
        false => Err(server),
    });
    story.step("and says so", moved);
    here.servers[victim].spawn()?;
    here.servers[victim].ready()?;
    Ok(())
}

/// All of a region die: what was known stays, and its age is told; the other region lives on. They come back.
pub(super) fn a_region_dies(story: &Story<'_>, regions: &mut [Region; 2], dying: usize) -> Result<()> {
    let [one, other] = regions;
    let (here, there) = if dying == 0 { (one, other) } else { (other, one) };
    let instance = Instance::new(SHOWN, &format!("survives-{}", here.name));
    let done = accepted(
        here.servers[0]
            .target()
            .register(&instance)
            .map(|answer| answer.status),
    );
    let known = done.and_then(|()| {
        there
            .servers
            .iter()
            .try_for_each(|server| look(PATIENCE, || is_shown(&server.target(), &instance)))
    });
    story.step(
        &format!("an instance of {} is known", here.name),
        known.map(|()| String::new()),
    );
    for server in &mut here.servers {
        server.kill();
    }
    story.step(
        &format!("all of {} are dead: what was known stays", here.name),
        stays(there, &instance),
    );
    if there.java.is_none() {
        let age = here.known_to(&there.servers[0]).and_then(|region| {
            let (age, error) = (region["ageMs"].as_u64().unwrap_or(0), region["error"].to_string());
            let told = format!("{age} ms old, {error}");
            let old = u128::from(age) + 2_000 >= DEAD.as_millis() && region["error"].is_string();
            if old { Ok(told) } else { Err(told) }
        });
        story.step("its age is told, and why", age);
    }
    comes_back(story, here, there, &instance)
}

/// For a while the list shows the instance, and what happens in the region itself.
fn stays(region: &Region, instance: &Instance) -> Result<String, String> {
    let started = Instant::now();
    let (mut slowest, mut reads) = (Duration::ZERO, 0);
    while started.elapsed() < DEAD {
        let local = Instance::new("KIT-LOCAL", &format!("local-{reads}"));
        accepted(
            region.servers[0]
                .target()
                .register(&local)
                .map(|answer| answer.status),
        )?;
        for server in &region.servers {
            let asked = Instant::now();
            is_shown(&server.target(), instance).map_err(|why| format!("{}: {why}", server.name))?;
            slowest = slowest.max(asked.elapsed());
        }
        is_shown(&region.servers[0].target(), &local)?;
        reads += 1;
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(format!(
        "{} reads, the slowest took {} ms",
        2 * reads,
        slowest.as_millis()
    ))
}

/// They start with nothing and know nobody: what was known stays until they have something to tell.
fn comes_back(story: &Story<'_>, here: &mut Region, there: &Region, instance: &Instance) -> Result<()> {
    for server in &mut here.servers {
        server.spawn()?;
    }
    for server in &mut here.servers {
        server.listening()?;
    }
    let fresh = Instance::new(SHOWN, &format!("again-{}", here.name));
    let home = here.servers[0].target();
    let done = look(PATIENCE, || {
        accepted(home.register(&fresh).map(|answer| answer.status))
    });
    let started = Instant::now();
    for server in &there.servers {
        let replaced = done.clone().and_then(|()| {
            look(4 * PATIENCE, || {
                is_shown(&server.target(), &fresh)?;
                is_gone(&server.target(), instance)
            })
        });
        let step = format!(
            "{} comes back with somebody else, and {} shows that",
            here.name, server.name
        );
        story.step(&step, replaced.map(|()| since(started)));
    }
    Ok(())
}

/// A node whose other region does not answer: who names it is refused for a while, nobody else is.
pub(super) fn nobody_answers_at_the_start(workshop: &Workshop, story: &Story<'_>) -> Result<()> {
    let nobody = Place::new("region-nobody", 46)?;
    let place = Place::new("region-lonely", 45)?;
    let urls = format!("regions.urls=east={}", nobody.url(None));
    let mut server = workshop.ours(&place, &[], &[&urls, "regions.wait=3s"]);
    server.spawn()?;
    server.listening()?;
    let started = Instant::now();
    let status = |server: &Server, path: &str| match server.target().get(path) {
        Ok(answer) => Ok(answer.status),
        Err(error) => Err(error.to_string()),
    };
    let first = (status(&server, "/apps?regions=east"), status(&server, "/apps"));
    let held = match first {
        (Ok(403), Ok(200)) => Ok("403 and 200".to_owned()),
        other => Err(format!("{other:?}")),
    };
    story.step(
        "at the start who names a region that is not read is refused, and nobody else",
        held,
    );
    let opened = look(PATIENCE, || match status(&server, "/apps?regions=east")? {
        200 => Ok(()),
        status => Err(format!("answered {status}")),
    });
    story.step("not for ever", opened.map(|()| since(started)));
    Ok(())
}

fn is_shown(target: &Target, instance: &Instance) -> Result<(), String> {
    let list = target.get_json("/apps")?;
    let found = find_instance(&list, &instance.app, &instance.id);
    found
        .map(drop)
        .ok_or_else(|| format!("{} is not listed", instance.id))
}
