//! Two regions of two nodes each that read each other: what is shown where, how soon, and what stays when one is gone.

mod faults;

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::Value;

use super::servers::{Java, Place, Server, Workshop};
use crate::conformance::http::Request;
use crate::conformance::report::{Outcome, Report};
use crate::conformance::target::{Instance, Target, find_instance, instances};

/// Until something done in one region must show in the other.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often it is looked for.
const LOOK: Duration = Duration::from_millis(5);
/// How long nothing may come back that has left: several reads by whoever could bring it.
const WATCHED: Duration = Duration::from_secs(3);
/// Applications that regions take of each other; all others stay at home.
const SHOWN: &str = "KIT-SHOWN";
const HIDDEN: &str = "KIT-HIDDEN";

/// Two nodes, each the peer of the other.
struct Region {
    /// How the other region calls it.
    name: &'static str,
    java: Option<Java>,
    servers: [Server; 2],
}

/// What is told of a run.
struct Story<'a> {
    name: &'a str,
    report: &'a Report,
}

/// Nodes of ours in both regions.
pub(super) fn ours(workshop: &Workshop, report: &Report) -> Result<()> {
    let story = Story {
        name: "regions",
        report,
    };
    let names = ["region-east-1", "region-east-2", "region-west-1", "region-west-2"];
    let mut regions = start(workshop, names, [41, 42, 43, 44], None)?;
    story.show_each_other(&regions);
    faults::one_of_two_dies(&story, &mut regions, 0)?;
    faults::a_region_dies(&story, &mut regions, 0)?;
    faults::nobody_answers_at_the_start(workshop, &story)
}

/// Java servers in the one, nodes of ours in the other.
pub(super) fn mixed(workshop: &Workshop, java: Java, report: &Report) -> Result<()> {
    workshop.build(java)?;
    let name = format!("regions, one of {}", java.name());
    let story = Story { name: &name, report };
    let names = ["region-java-1", "region-java-2", "region-ours-1", "region-ours-2"];
    let mut regions = start(workshop, names, [51, 52, 53, 54], Some(java))?;
    story.show_each_other(&regions);
    story.virtual_addresses(&regions);
    faults::one_of_two_dies(&story, &mut regions, 0)?;
    faults::a_region_dies(&story, &mut regions, 1)?;
    faults::a_region_dies(&story, &mut regions, 0)
}

/// Both regions, of which the first is Java's if one is.
fn start(
    workshop: &Workshop,
    names: [&'static str; 4],
    hosts: [u8; 4],
    java: Option<Java>,
) -> Result<[Region; 2]> {
    let place = |at: usize| Place::new(names[at], hosts[at]);
    let east = [place(0)?, place(1)?];
    let west = [place(2)?, place(3)?];
    let urls = [
        east.each_ref().map(|place| place.url(java)),
        west.each_ref().map(|place| place.url(None)),
    ];
    let mut regions = [
        Region {
            name: "east",
            java,
            servers: [0, 1].map(|at| {
                node(
                    workshop,
                    java,
                    &east[at],
                    &urls[0][1 - at],
                    ("west", &urls[1]),
                    at,
                )
            }),
        },
        Region {
            name: "west",
            java: None,
            servers: [0, 1].map(|at| {
                node(
                    workshop,
                    None,
                    &west[at],
                    &urls[1][1 - at],
                    ("east", &urls[0]),
                    at,
                )
            }),
        },
    ];
    // Java reads the other region once while it starts, and then at its interval.
    for region in regions.iter_mut().rev() {
        for server in &mut region.servers {
            server.spawn()?;
        }
        for server in &mut region.servers {
            server.ready()?;
        }
    }
    Ok(regions)
}

/// A node that reads the other region: of ours from either of its nodes, of Java's from one, for it takes one URL.
fn node(
    workshop: &Workshop,
    java: Option<Java>,
    place: &Place,
    peer: &str,
    (name, urls): (&str, &[String; 2]),
    at: usize,
) -> Server {
    let peers = [peer.to_owned()];
    let Some(java) = java else {
        let servers = format!("regions.urls={name}={}", urls.join(" "));
        let applications = format!("regions.applications={name}={SHOWN}");
        let settings = [
            &*servers,
            &*applications,
            "regions.fetch-interval=1s",
            "preservation.enabled=false",
            "bootstrap.settle=2s",
        ];
        return workshop.ours(place, &peers, &settings);
    };
    let settings: Vec<String> = match java {
        Java::Spring => vec![
            format!("eureka.server.remote-region-urls-with-name.{name}={}", urls[at]),
            format!("eureka.server.remote-region-app-whitelist.{name}={SHOWN}"),
            "eureka.server.remote-region-registry-fetch-interval=1".to_owned(),
            "eureka.server.use-read-only-response-cache=false".to_owned(),
            // What happens in another region does not end a cached list: it is three minutes old then.
            "eureka.server.response-cache-auto-expiration-in-seconds=1".to_owned(),
            "eureka.server.enable-self-preservation=false".to_owned(),
            "eureka.server.registry-sync-retries=0".to_owned(),
            "eureka.client.register-with-eureka=false".to_owned(),
            "eureka.client.fetch-registry=false".to_owned(),
        ],
        Java::Netflix => vec![
            format!("eureka.remoteRegionUrlsWithName={name};{}", urls[at]),
            format!("eureka.remoteRegion.{name}.appWhiteList={SHOWN}"),
            "eureka.remoteRegion.registryFetchIntervalInSeconds=1".to_owned(),
            "eureka.shouldUseReadOnlyResponseCache=false".to_owned(),
            "eureka.responseCacheAutoExpirationInSeconds=1".to_owned(),
            "eureka.enableSelfPreservation=false".to_owned(),
            "eureka.region=default".to_owned(),
            "eureka.name=eureka-server".to_owned(),
            "eureka.shouldUseDns=false".to_owned(),
            "eureka.registration.enabled=false".to_owned(),
            "eureka.shouldFetchRegistry=false".to_owned(),
            "eureka.numberRegistrySyncRetries=0".to_owned(),
            "eureka.waitTimeInMsWhenSyncEmpty=0".to_owned(),
        ],
    };
    workshop.java(java, place, &peers, &settings)
}

impl Story<'_> {
    fn step(&self, step: &str, result: Result<String, String>) {
        self.report.step(self.name, step, &Outcome::from(result));
    }

    /// Instances come and leave in each region, and the other one shows it.
    fn show_each_other(&self, [east, west]: &[Region; 2]) {
        for (here, there) in [(east, west), (west, east)] {
            let instance = Instance::new(SHOWN, &format!("of-{}", here.name));
            self.comes(here, there, &instance);
            self.stays_at_home(here, there);
            self.is_read_by_all(here, there, &instance);
            self.does_not_come_back(here, there, &instance);
            self.leaves(here, there, &instance);
        }
    }

    fn comes(&self, here: &Region, there: &Region, instance: &Instance) {
        let started = Instant::now();
        let done = accepted(
            here.servers[0]
                .target()
                .register(instance)
                .map(|answer| answer.status),
        );
        for server in &there.servers {
            let target = server.target();
            for list in [format!("/apps?regions={}", here.name), "/apps".to_owned()] {
                let shown = done.clone().and_then(|()| {
                    look(PATIENCE, || {
                        let list = target.get_json(&list)?;
                        find_instance(&list, SHOWN, &instance.id)
                            .map(drop)
                            .ok_or_else(|| "it is not listed".to_owned())
                    })
                });
                let step = format!("what registers in {} is in {list} of {}", here.name, server.name);
                self.step(&step, shown.map(|()| since(started)));
            }
        }
        // The delta says so, too, and its hash is that of the list.
        for server in there.servers.iter().filter(|_| there.java.is_none()) {
            let target = server.target();
            let agreed = look(PATIENCE, || {
                let (list, delta) = (target.get_json("/apps")?, target.get_json("/apps/delta")?);
                let hash = |list: &Value| list["applications"]["apps__hashcode"].clone();
                match (hash(&list), hash(&delta)) {
                    (one, other) if one == other => Ok(one.to_string()),
                    (one, other) => Err(format!("{one} and {other}")),
                }
            });
            self.step(
                &format!("list and delta of {} fit each other", server.name),
                agreed,
            );
        }
    }

    fn stays_at_home(&self, here: &Region, there: &Region) {
        let secret = Instance::new(HIDDEN, &format!("hidden-{}", here.name));
        let marker = Instance::new(SHOWN, &format!("after-hidden-{}", here.name));
        let home = here.servers[0].target();
        for server in &there.servers {
            let done = accepted(home.register(&secret).map(|answer| answer.status));
            let done = done.and_then(|()| accepted(home.register(&marker).map(|answer| answer.status)));
            let target = server.target();
            let kept = done.and_then(|()| {
                // What registered after it is there, so it would be.
                look(PATIENCE, || {
                    match find_instance(&target.get_json("/apps")?, SHOWN, &marker.id) {
                        Some(_) => Ok(()),
                        None => Err("the marker is not listed".to_owned()),
                    }
                })?;
                match find_instance(&target.get_json("/apps")?, HIDDEN, &secret.id) {
                    None => Ok(String::new()),
                    Some(_) => Err("it is listed".to_owned()),
                }
            });
            let step = format!(
                "an application of {} that {} does not take is not shown",
                here.name, server.name
            );
            self.step(&step, kept);
        }
    }

    /// Alone, with its application, and by nobody changed.
    fn is_read_by_all(&self, here: &Region, there: &Region, instance: &Instance) {
        for server in &there.servers {
            let target = server.target();
            let app = target.get_json(&format!("/apps/{SHOWN}"));
            let alone = target.instance(SHOWN, &instance.id);
            let result = match (app, alone) {
                (Ok(_), Ok(Some(_))) => Ok(String::new()),
                (Err(why), _) | (_, Err(why)) => Err(why),
                (_, Ok(None)) => Err("alone it is not found".to_owned()),
            };
            // Java's application shows the instances of the first region that has it.
            self.step(
                &format!("{} shows it alone and with its application", server.name),
                result,
            );
            let renewed = target.renew(SHOWN, &instance.id).map(|answer| answer.status);
            let result = match renewed {
                Ok(404) => Ok("404".to_owned()),
                other => Err(format!("{other:?}")),
            };
            self.step(
                &format!("nobody renews an instance of {} at {}", here.name, server.name),
                result,
            );
        }
    }

    /// What a region has read is not handed back to where it came from.
    fn does_not_come_back(&self, here: &Region, there: &Region, instance: &Instance) {
        for server in there.servers.iter().filter(|_| there.java.is_none()) {
            let target = server.target();
            let request = target
                .request("GET", "/apps")
                .header("Accept", "application/json");
            let read = target.send(&request.header("DiscoveryIdentity-Name", "DefaultServer"));
            let own = read.map_err(|error| error.to_string()).and_then(|answer| {
                let list = answer.json().map_err(|error| error.to_string())?;
                match find_instance(&list, SHOWN, &instance.id) {
                    None => Ok(format!("{} instances", instances(&list).len())),
                    Some(_) => Err("it is in it".to_owned()),
                }
            });
            self.step(
                &format!("servers of {} do not get it back from {}", here.name, server.name),
                own,
            );
        }
    }

    /// It leaves, and is nowhere any more.
    fn leaves(&self, here: &Region, there: &Region, instance: &Instance) {
        let started = Instant::now();
        let done = accepted(
            here.servers[0]
                .target()
                .cancel(SHOWN, &instance.id)
                .map(|answer| answer.status),
        );
        let everywhere: Vec<&Server> = there.servers.iter().chain(&here.servers).collect();
        for server in &everywhere {
            let target = server.target();
            let gone = done
                .clone()
                .and_then(|()| look(PATIENCE, || is_gone(&target, instance)));
            let step = format!("what leaves {} is gone at {}", here.name, server.name);
            self.step(&step, gone.map(|()| since(started)));
        }
        let watched = Instant::now();
        let mut back = Ok(format!("{} s", WATCHED.as_secs()));
        while watched.elapsed() < WATCHED && back.is_ok() {
            for server in &everywhere {
                if let Err(why) = is_gone(&server.target(), instance) {
                    back = Err(format!("{}: {why}", server.name));
                }
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        self.step(&format!("and does not come back to {}", here.name), back);
    }

    /// Whether other regions are among the instances of a virtual address, in Java's servers and in ours.
    fn virtual_addresses(&self, [java, ours]: &[Region; 2]) {
        let counts = [(java, ours), (ours, java)].map(|(here, there)| {
            let instance = Instance::new(SHOWN, &format!("vip-of-{}", there.name));
            let done = accepted(
                there.servers[0]
                    .target()
                    .register(&instance)
                    .map(|answer| answer.status),
            );
            let target = here.servers[0].target();
            done.and_then(|()| {
                look(PATIENCE, || {
                    match find_instance(&target.get_json("/apps")?, SHOWN, &instance.id) {
                        Some(_) => Ok(()),
                        None => Err("it is not listed".to_owned()),
                    }
                })?;
                let list = target.get_json(&format!("/vips/{}", SHOWN.to_lowercase()))?;
                Ok(find_instance(&list, SHOWN, &instance.id).is_some())
            })
        });
        let result = match counts {
            [Ok(java), Ok(ours)] if java == ours => Ok(if java { "yes" } else { "no" }.to_owned()),
            other => Err(format!("Java and ours: {other:?}")),
        };
        self.step("virtual addresses show other regions, here as in Java", result);
    }
}

impl Region {
    /// The region as a node of ours in the other one knows it.
    fn known_to(&self, server: &Server) -> Result<Value, String> {
        let node = server.target().send(&Request::new("GET", "/api/v1/node"));
        let node = node.map_err(|error| error.to_string())?.json();
        let regions = node.map_err(|error| error.to_string())?["regions"].take();
        let mut regions = regions.as_array().into_iter().flatten();
        let found = regions.find(|region| region["name"] == self.name).cloned();
        found.ok_or_else(|| format!("{} does not know {}", server.name, self.name))
    }
}

/// Neither listed nor found.
fn is_gone(target: &Target, instance: &Instance) -> Result<(), String> {
    let list = target.get_json("/apps")?;
    if find_instance(&list, &instance.app, &instance.id).is_some() {
        return Err("it is listed".to_owned());
    }
    match target.instance(&instance.app, &instance.id)? {
        None => Ok(()),
        Some(_) => Err("alone it is found".to_owned()),
    }
}

fn accepted<E: std::fmt::Display>(status: Result<u16, E>) -> Result<(), String> {
    match status {
        Ok(status) if (200..300).contains(&status) => Ok(()),
        Ok(status) => Err(format!("answered {status}")),
        Err(error) => Err(error.to_string()),
    }
}

fn since(started: Instant) -> String {
    format!("{} ms", started.elapsed().as_millis())
}

/// Asks until it is so, in short intervals, for the time is told.
fn look<T>(patience: Duration, mut question: impl FnMut() -> Result<T, String>) -> Result<T, String> {
    let started = Instant::now();
    loop {
        match question() {
            Ok(answer) => return Ok(answer),
            Err(why) if started.elapsed() >= patience => {
                return Err(format!("{why} (waited {} s)", patience.as_secs()));
            }
            Err(_) => std::thread::sleep(LOOK),
        }
    }
}
