//! One Java server and two of ours, each the peer of the others: whatever is done at one shows at all.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::Value;

use super::clients::{Clients, Habits};
use super::servers::{Java, Place, Server, Workshop};
use crate::conformance::http::{HttpError, Request, Response, poll};
use crate::conformance::report::{Outcome, Report};
use crate::conformance::target::{Instance, Target, find_instance, instance_path, instances};

/// Until something done at one server must show at the others.
const PATIENCE: Duration = Duration::from_secs(15);
/// Until servers must know each other: Java looks at its own instance's state every few seconds.
const ACQUAINTANCE: Duration = Duration::from_secs(60);
/// Application of the clients that live through restarts.
const CLIENTS: &str = "KIT-CLIENTS";
/// Clients renew this often.
const HEARTBEAT: Duration = Duration::from_secs(5);
const HABITS: Habits = Habits {
    per_server: 7,
    heartbeat: HEARTBEAT,
    lease_seconds: 90,
    writes: false,
};
/// Under which servers register themselves.
const APP: &str = "EUREKA-SERVER";

/// Runs the scenario.
pub(super) fn run(workshop: &Workshop, java: Java, report: &Report) -> Result<()> {
    workshop.build(java)?;
    let places = [
        Place::new(java.name(), 1)?,
        Place::new("ours-1", 2)?,
        Place::new("ours-2", 3)?,
    ];
    let urls = [
        places[0].url(Some(java)),
        places[1].url(None),
        places[2].url(None),
    ];
    let others = |own: usize| -> Vec<String> {
        let others = urls.iter().enumerate().filter(|(index, _)| *index != own);
        others.map(|(_, url)| url.clone()).collect()
    };
    let app_name = format!("server.app-name={APP}");
    let ours = ["server.register=true", &app_name, "registry.renewal-interval=2s"];
    let mut servers = [
        workshop.java(java, &places[0], &others(0), &java_settings(java)),
        workshop.ours(&places[1], &others(1), &ours),
        workshop.ours(&places[2], &others(2), &ours),
    ];
    for server in &mut servers {
        server.spawn()?;
    }
    for server in &mut servers {
        server.ready()?;
    }
    let mixed = Mixed {
        name: format!("mixed with {}", java.name()),
        report,
        java_url: urls[0].trim_end_matches('/').to_owned(),
    };
    mixed.acquaintance(&servers);
    for origin in 0..servers.len() {
        mixed.whatever_is_done_shows(&servers, origin);
    }
    let clients = Clients::start(&servers.each_ref(), CLIENTS, HABITS);
    mixed.all_clients_are_everywhere(&servers, &clients);
    mixed.restarted_empty(&mut servers, 1, &clients)?;
    mixed.restarted_empty(&mut servers, 0, &clients)?;
    drop(clients);
    mixed.leaves(&mut servers)?;
    Ok(())
}

/// What makes a Java server quick enough for a test; all else is as it comes.
fn java_settings(java: Java) -> Vec<String> {
    let settings: &[&str] = match java {
        Java::Spring => &[
            "eureka.client.register-with-eureka=true",
            "eureka.client.fetch-registry=true",
            "eureka.client.registryFetchIntervalSeconds=2",
            "eureka.client.initialInstanceInfoReplicationIntervalSeconds=1",
            "eureka.client.instanceInfoReplicationIntervalSeconds=3",
            "eureka.instance.leaseRenewalIntervalInSeconds=2",
            "eureka.instance.leaseExpirationDurationInSeconds=30",
            "eureka.server.useReadOnlyResponseCache=false",
            "eureka.server.registrySyncRetries=3",
            "eureka.server.registrySyncRetryWaitMs=1000",
            "eureka.server.peerNodeReadTimeoutMs=2000",
            "eureka.server.peerNodeConnectTimeoutMs=1000",
        ],
        Java::Netflix => &[
            "eureka.region=default",
            "eureka.name=eureka-server",
            "eureka.vipAddress=eureka-server",
            "eureka.preferSameZone=false",
            "eureka.shouldUseDns=false",
            "eureka.registration.enabled=true",
            "eureka.shouldFetchRegistry=true",
            "eureka.shouldFilterOnlyUpInstances=false",
            "eureka.client.refresh.interval=2",
            "eureka.appinfo.initial.replicate.time=1",
            "eureka.appinfo.replicate.interval=3",
            "eureka.lease.renewalInterval=2",
            "eureka.lease.duration=30",
            "eureka.shouldUseReadOnlyResponseCache=false",
            "eureka.waitTimeInMsWhenSyncEmpty=0",
            "eureka.numberRegistrySyncRetries=3",
            "eureka.registrySyncRetryWaitMs=1000",
        ],
    };
    settings.iter().map(|setting| (*setting).to_owned()).collect()
}

/// The scenario, and where its outcomes go.
struct Mixed<'a> {
    name: String,
    report: &'a Report,
    /// How ours name the Java server.
    java_url: String,
}

impl Mixed<'_> {
    fn step(&self, step: &str, result: Result<String, String>) {
        self.report.step(&self.name, step, &Outcome::from(result));
    }

    /// Every server calls the others available.
    fn acquaintance(&self, servers: &[Server]) {
        for server in servers {
            for other in servers.iter().filter(|other| other.name != server.name) {
                let host = other.address.to_string();
                let seen = poll(ACQUAINTANCE, || {
                    let available = available_replicas(&server.target())?;
                    if available.iter().any(|url| url.contains(&host)) {
                        Ok(String::new())
                    } else {
                        Err(format!("available replicas: {available:?}"))
                    }
                });
                self.step(&format!("{} calls {} available", server.name, other.name), seen);
            }
        }
    }

    /// Register, renew, override, its removal, metadata and cancel at one server show at the others, each by its own way.
    fn whatever_is_done_shows(&self, servers: &[Server], origin: usize) {
        let at = servers[origin].target();
        let instance = Instance::new("KIT-MIXED", &format!("host-{origin}:kit:80"));
        let path = instance_path(&instance.app, &instance.id);
        let arrived = self.arrivals(servers);
        let story = Story {
            mixed: self,
            servers,
            origin,
            instance: &instance,
        };
        let send = |method: &str, path: String| status(at.send(&at.request(method, &path)));
        story.shows("a registration", status(at.register(&instance)), &|shown| {
            shown.is_some_and(|shown| shown["status"] == "UP" && shown["metadata"]["kit"] == "conformance")
        });
        story.renews();
        story.shows(
            "an override",
            send("PUT", format!("{path}/status?value=OUT_OF_SERVICE")),
            &|shown| shown.is_some_and(|shown| shown["status"] == "OUT_OF_SERVICE"),
        );
        let removal = format!("{path}/status?value=UP&lastDirtyTimestamp={}", instance.dirty);
        story.shows("its removal", send("DELETE", removal), &|shown| {
            shown
                .is_some_and(|shown| shown["status"] == "UP" && shown["overriddenStatus"] != "OUT_OF_SERVICE")
        });
        story.shows(
            "metadata",
            send("PUT", format!("{path}/metadata?colour=blue")),
            &|shown| shown.is_some_and(|shown| shown["metadata"]["colour"] == "blue"),
        );
        story.shows(
            "a cancel",
            status(at.cancel(&instance.app, &instance.id)),
            &|shown| shown.is_none(),
        );
        if origin == 0 {
            self.have_arrived(&arrived, servers);
        }
    }

    /// What showed came from the Java server itself, by ours' own account.
    fn have_arrived(&self, before: &[(&str, u64)], servers: &[Server]) {
        for ((name, before), (_, after)) in before.iter().zip(self.arrivals(servers)) {
            let more = after.saturating_sub(*before);
            let result = if more > 0 {
                Ok(format!("{more} requests"))
            } else {
                Err("none".to_owned())
            };
            self.step(
                &format!("batches of {} arrived at {name}", servers[0].name),
                result,
            );
        }
    }

    /// How many requests ours have taken from the Java server, by ours' own account of their sources.
    fn arrivals(&self, servers: &[Server]) -> Vec<(&'static str, u64)> {
        let ours = servers
            .iter()
            .filter(|server| server.address != servers[0].address);
        ours.map(|server| {
            let peers = own_json(&server.target(), "/api/v1/peers").unwrap_or_default();
            let entry = peers["peers"]
                .as_array()
                .into_iter()
                .flatten()
                .find(|peer| peer["url"] == *self.java_url);
            (
                server.name,
                entry.map_or(0, |peer| peer["inbound"]["requests"].as_u64().unwrap_or(0)),
            )
        })
        .collect()
    }

    fn all_clients_are_everywhere(&self, servers: &[Server], clients: &Clients) {
        for server in servers {
            let listed = poll(PATIENCE, || {
                lists_all(&server.target(), clients, server.name == servers[0].name)
            });
            self.step(
                &format!("the clients of all servers are at {}", server.name),
                listed,
            );
        }
    }

    /// Killed and started with nothing: its first list is whole if it is ours; all of them are within two heartbeats.
    fn restarted_empty(&self, servers: &mut [Server], index: usize, clients: &Clients) -> Result<()> {
        let is_java = index == 0;
        let server = &mut servers[index];
        clients.excuse(index, true);
        server.kill();
        server.spawn()?;
        server.listening()?;
        let started = Instant::now();
        let target = server.target();
        let first = poll(PATIENCE * 4, || match target.get("/apps") {
            Ok(answer) if answer.status == 200 => answer.json().map_err(|error| error.to_string()),
            Ok(answer) => Err(format!("GET /apps: {}", answer.status)),
            Err(error) => Err(error.to_string()),
        });
        if !is_java {
            let first = first.and_then(|list| whole(&list, clients));
            self.step(
                &format!("the first list of {}, restarted empty, is whole", server.name),
                first,
            );
        }
        let full = poll(2 * HEARTBEAT + PATIENCE, || lists_all(&target, clients, is_java));
        let took = started.elapsed();
        let in_time = full.and_then(|_| {
            let told = format!("{:.2} s", took.as_secs_f64());
            if took < 2 * HEARTBEAT { Ok(told) } else { Err(told) }
        });
        self.step(
            &format!("{} is full again within two heartbeats", server.name),
            in_time,
        );
        Ok(())
    }

    /// A server that is asked to end leaves: the others forget it at once.
    fn leaves(&self, servers: &mut [Server]) -> Result<()> {
        let (rest, last) = servers.split_at_mut(2);
        let id = own_id(&last[0].target());
        let clean = last[0].stop()?;
        let ended = if clean {
            Ok(String::new())
        } else {
            Err("it did not exit with 0".to_owned())
        };
        self.step(&format!("{} ends when it is asked to", last[0].name), ended);
        for server in rest {
            let gone = id.clone().and_then(|id| {
                poll(PATIENCE, || match server.target().instance(APP, &id)? {
                    None => Ok(String::new()),
                    Some(_) => Err("it is still there".to_owned()),
                })
            });
            self.step(
                &format!("{} forgets {} when it leaves", server.name, last[0].name),
                gone,
            );
        }
        Ok(())
    }
}

/// What is done to one instance at one server.
struct Story<'a> {
    mixed: &'a Mixed<'a>,
    servers: &'a [Server],
    origin: usize,
    instance: &'a Instance,
}

impl Story<'_> {
    fn others(&self) -> impl Iterator<Item = &Server> {
        let servers = self.servers.iter().enumerate();
        servers
            .filter(|(index, _)| *index != self.origin)
            .map(|(_, server)| server)
    }

    /// What was `done` shows at the others, both alone and in their lists.
    fn shows(&self, what: &str, done: Result<u16, String>, question: &dyn Fn(Option<&Value>) -> bool) {
        for server in self.others() {
            let started = Instant::now();
            let shown = done.clone().and_then(|status| {
                if !(200..300).contains(&status) {
                    return Err(format!("answered {status}"));
                }
                poll(PATIENCE, || shows(&server.target(), self.instance, question))
            });
            let told = shown.map(|()| format!("{:.2} s", started.elapsed().as_secs_f64()));
            let step = format!(
                "{what} at {} shows at {}",
                self.servers[self.origin].name, server.name
            );
            self.mixed.step(&step, told);
        }
    }

    /// The renewal time that the others show moves on.
    fn renews(&self) {
        let before: Vec<u64> = self
            .others()
            .map(|server| renewed_at(&server.target(), self.instance))
            .collect();
        thread::sleep(Duration::from_millis(1_200));
        let origin = &self.servers[self.origin];
        let done = status(origin.target().renew(&self.instance.app, &self.instance.id));
        for (server, before) in self.others().zip(before) {
            let moved = done.clone().and_then(|_| {
                poll(PATIENCE, || match renewed_at(&server.target(), self.instance) {
                    now if now > before => Ok(String::new()),
                    now => Err(format!("renewed at {now}, as before")),
                })
            });
            self.mixed.step(
                &format!("a renewal at {} shows at {}", origin.name, server.name),
                moved,
            );
        }
    }
}

fn status(answer: Result<Response, HttpError>) -> Result<u16, String> {
    answer
        .map(|answer| answer.status)
        .map_err(|error| error.to_string())
}

/// Whether all clients are listed. `java`: or shown alone, for a Java server may keep a list in its cache that was made while the
/// last of several changes came in.
fn lists_all(target: &Target, clients: &Clients, java: bool) -> Result<String, String> {
    let list = target.get_json("/apps")?;
    let whole = whole(&list, clients);
    if !java || whole.is_ok() {
        return whole;
    }
    for id in clients.missing(&list) {
        if target.instance(CLIENTS, &id)?.is_none() {
            return whole;
        }
    }
    Ok(format!("{} in a stale list", instances(&list).len()))
}

fn whole(list: &Value, clients: &Clients) -> Result<String, String> {
    let missing = clients.missing(list);
    let listed = instances(list).len();
    if missing.is_empty() {
        Ok(format!("{listed} instances"))
    } else {
        Err(format!(
            "{} clients are missing among {listed} instances",
            missing.len()
        ))
    }
}

/// Whether a server shows an instance as it should be, both alone and in the list.
fn shows(
    target: &Target,
    instance: &Instance,
    question: &dyn Fn(Option<&Value>) -> bool,
) -> Result<(), String> {
    let alone = target.instance(&instance.app, &instance.id)?;
    if !question(alone.as_ref()) {
        return Err(format!("alone: {}", alone.unwrap_or_default()));
    }
    let list = target.get_json("/apps")?;
    let listed = find_instance(&list, &instance.app, &instance.id);
    if question(listed) {
        Ok(())
    } else {
        Err(format!("in the list: {}", listed.cloned().unwrap_or_default()))
    }
}

fn renewed_at(target: &Target, instance: &Instance) -> u64 {
    let shown = target
        .instance(&instance.app, &instance.id)
        .ok()
        .flatten()
        .unwrap_or_default();
    shown["leaseInfo"]["lastRenewalTimestamp"].as_u64().unwrap_or(0)
}

/// `available-replicas` of the status page.
fn available_replicas(target: &Target) -> Result<Vec<String>, String> {
    let request = target
        .request("GET", "/status")
        .header("Accept", "application/xml");
    let answer = target.send(&request).map_err(|error| error.to_string())?;
    let text = answer.text();
    let (_, rest) = text
        .split_once("<available-replicas>")
        .ok_or_else(|| format!("GET /status: {} without available replicas", answer.status))?;
    let (list, _) = rest.split_once("</available-replicas>").unwrap_or((rest, ""));
    Ok(list
        .split(',')
        .map(|url| url.trim().to_owned())
        .filter(|url| !url.is_empty())
        .collect())
}

/// The id under which a server of ours has registered itself.
fn own_id(target: &Target) -> Result<String, String> {
    let node = own_json(target, "/api/v1/node")?;
    node["own"]["id"]
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| "it has none".to_owned())
}

/// A page of our own API.
fn own_json(target: &Target, path: &str) -> Result<Value, String> {
    let answer = target
        .send(&Request::new("GET", path))
        .map_err(|error| error.to_string())?;
    answer
        .json()
        .map_err(|error| format!("GET {path}: {}, {error}", answer.status))
}
