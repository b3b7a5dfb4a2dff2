//! One client through its life: each step is asked of it and checked at the server.

use std::time::Duration;

use serde_json::Value;

use super::Run;
use super::faults::{self, Fault};
use super::more;
use crate::conformance::drivers::{Client, Driver};
use crate::conformance::faulty::Faulty;
use crate::conformance::http::{Request, Response, poll};
use crate::conformance::report::Outcome;
use crate::conformance::target::{Flavour, Instance, Target, find_instance};
use crate::conformance::tee::{Exchange, Tee};

const RENEW_SECONDS: u64 = 2;
const LEASE_SECONDS: u64 = 10;
/// A JVM that shares two processors with three others takes its time.
pub(super) const START: Duration = Duration::from_secs(120);

/// One step of a client's life.
pub(super) struct Step {
    pub(super) name: &'static str,
    /// Left out for a client without a registration.
    needs_registration: bool,
    /// Only for a client that speaks more lines.
    more: bool,
    act: fn(&mut Session<'_>) -> Outcome,
}

impl Step {
    const fn own(name: &'static str, act: fn(&mut Session<'_>) -> Outcome) -> Self {
        Self {
            name,
            needs_registration: true,
            more: false,
            act,
        }
    }

    const fn reading(name: &'static str, act: fn(&mut Session<'_>) -> Outcome) -> Self {
        Self {
            needs_registration: false,
            ..Self::own(name, act)
        }
    }

    const fn more(self) -> Self {
        Self { more: true, ..self }
    }

    /// Whether it is one of this client's.
    pub(super) fn is_for(&self, client: &Client) -> bool {
        client.more || !self.more
    }
}

pub(super) const STEPS: [Step; 14] = [
    Step::own("registers and is seen UP", |session| session.registers()),
    Step::own("renews at least twice", |session| session.renews()),
    Step::reading("finds another instance", |session| session.finds_another()),
    Step::reading("sees a new instance", |session| session.sees_a_new_one()),
    Step::reading("finds it by its virtual address", more::finds_by_address).more(),
    Step::reading("sees an overridden status", more::sees_an_override).more(),
    Step::reading("sees an instance leave", more::sees_one_leave).more(),
    Step::reading(faults::HASH_STEP, more::checks_the_hash).more(),
    Step::reading("follows one virtual address alone", more::follows_an_address).more(),
    Step::own("changes its metadata", more::changes_metadata).more(),
    Step::own("changes its status", |session| session.changes_status()),
    Step::own("registers again after a 404", |session| session.recovers()),
    Step::own("leaves", |session| session.leaves()),
    Step::own("is gone", |session| session.is_gone()),
];

/// One client, alive.
pub(super) struct Session<'a> {
    pub(super) run: &'a Run<'a>,
    pub(super) client: &'a Client,
    /// One before each node, in the order of the nodes.
    tees: Vec<Tee>,
    /// Behind the tees, if a fault is planted.
    _faulty: Vec<Faulty>,
    pub(super) driver: Driver,
    pub(super) app: String,
    id: String,
}

impl<'a> Session<'a> {
    pub(super) fn start(
        run: &'a Run<'a>,
        client: &'a Client,
        fault: Option<&'static Fault>,
        run_name: &str,
    ) -> Result<Self, String> {
        let app = format!("{run_name}-{}", client.name.to_uppercase());
        let mut faulty = Vec::new();
        let mut tees = Vec::new();
        let mut urls = Vec::new();
        for node in run.nodes().take(if client.more { 2 } else { 1 }) {
            let mut upstream = node.address.clone();
            if let Some(fault) = fault {
                let proxy = faults::plant(fault, node, &run.partner());
                let proxy = proxy.map_err(|error| format!("the proxy does not start: {error}"))?;
                upstream.clone_from(&proxy.address);
                faulty.push(proxy);
            }
            let tee = Tee::start(&upstream).map_err(|error| format!("no recording proxy: {error}"))?;
            urls.push(node.behind(tee.address.as_str()).to_string());
            tees.push(tee);
        }
        let id = format!("{}:kit:{}", app.to_lowercase(), 7000);
        let settings = [
            ("EUREKA_URL", urls.join(",")),
            ("APP", app.clone()),
            ("INSTANCE_ID", id),
            ("INSTANCE_PORT", "7000".to_owned()),
            ("HOST_NAME", format!("{}.kit.test", app.to_lowercase())),
            ("RENEW_SECS", RENEW_SECONDS.to_string()),
            ("FETCH_SECS", RENEW_SECONDS.to_string()),
            ("LEASE_SECS", LEASE_SECONDS.to_string()),
        ];
        let driver = run
            .workshop
            .start(client, &settings)
            .map_err(|error| format!("{error:#}"))?;
        let id = driver.registering(START)?;
        Ok(Self {
            run,
            client,
            tees,
            _faulty: faulty,
            driver,
            app,
            id,
        })
    }

    /// Every step in its order, as long as whoever is told of them wants more; those that need a registration are left
    /// out without one.
    pub(super) fn live(&mut self, told: &mut dyn FnMut(&'static str, Outcome) -> bool) {
        let mut absent = (!self.client.registers).then(|| "it only reads".to_owned());
        for (at, step) in STEPS.iter().enumerate() {
            if !step.is_for(self.client) {
                continue;
            }
            let outcome = match &absent {
                Some(why) if step.needs_registration => Outcome::Skipped(why.clone()),
                Some(_) | None => (step.act)(self),
            };
            if at == 0 && matches!(outcome, Outcome::Failed(_)) {
                absent = Some("it did not register".to_owned());
            }
            if !told(step.name, outcome) {
                break;
            }
        }
        let exchanges: Vec<Exchange> = self.tees.iter().flat_map(Tee::exchanges).collect();
        self.run.workshop.write_wire(&self.client.name, &exchanges);
        // What is gone already needs no cleaning.
        let _ = self.run.target.cancel(&self.app, &self.id);
        let later = self.later();
        let _ = self.run.target.cancel(&later.app, &later.id);
    }

    /// How long to wait for something that the client does at its own interval.
    pub(super) fn patience(&self) -> Duration {
        self.run.patience + Duration::from_secs(3 * self.client.seconds.unwrap_or(RENEW_SECONDS))
    }

    /// How many answered exchanges with any node fit.
    fn count(&self, fits: impl Fn(&Request, &Response) -> bool + Copy) -> usize {
        self.tees.iter().map(|tee| tee.count(fits)).sum()
    }

    /// Whether it is told of changes as they happen, and reads no deltas.
    pub(super) fn follows(&self) -> bool {
        self.client.follows && self.run.flavour == Flavour::Ours
    }

    fn registers(&mut self) -> Outcome {
        self.wait_for_status("UP")
            .map(|()| format!("as {}", self.id))
            .into()
    }

    fn renews(&mut self) -> Outcome {
        let renewed = poll(self.patience(), || {
            let count = self.count(|request, response| {
                request.method == "PUT" && response.status == 200 && self.is_own(request)
            });
            if count >= 2 {
                Ok(count)
            } else {
                Err(format!("{count} heartbeats were answered 200"))
            }
        });
        renewed.map(|count| format!("{count} heartbeats so far")).into()
    }

    fn finds_another(&mut self) -> Outcome {
        let partner = self.run.partner();
        self.find(&partner).into()
    }

    fn sees_a_new_one(&mut self) -> Outcome {
        let later = self.later();
        if let Err(error) = self.run.target.register(&later) {
            return Outcome::Failed(format!("the new instance cannot register: {error}"));
        }
        let found = self.find(&later.app);
        if !self.client.delta {
            return found.map(|found| format!("{found}; it reads no deltas")).into();
        }
        let told = found.and_then(|found| {
            let way = self.was_told(&|text| text.contains(&later.app))?;
            Ok(format!("{found}, by {way}"))
        });
        told.into()
    }

    /// Whether a delta that the client read said something, or an answer of the feed if it follows one.
    pub(super) fn was_told(&self, said: &dyn Fn(&str) -> bool) -> Result<&'static str, String> {
        let (path, way) = if self.follows() {
            ("/api/v1/changes", "feed")
        } else {
            ("/apps/delta", "delta")
        };
        poll(self.patience(), || {
            let told = self.count(|request, response| {
                is_at(request, path) && response.status == 200 && said(&response.text())
            });
            match told {
                0 => Err(format!("it knows, but no {way} that it read said so")),
                _ => Ok(way),
            }
        })
    }

    /// An instance of an application that the client meets while it lives.
    pub(super) fn later(&self) -> Instance {
        let app = format!("{}-LATER", self.app);
        let id = format!("{}:later", app.to_lowercase());
        Instance::new(&app, &id)
    }

    fn find(&mut self, app: &str) -> Result<String, String> {
        let patience = self.patience();
        found(&mut self.driver, &format!("find {app}"), patience)
    }

    fn changes_status(&mut self) -> Outcome {
        if !self.client.status {
            return Outcome::Skipped("it cannot".to_owned());
        }
        let mut refused = String::new();
        for status in ["DOWN", "OUT_OF_SERVICE"] {
            match self.driver.ask(&format!("status {status}"), START) {
                Ok(answer) if answer.starts_with("unsupported") => refused = answer,
                Ok(_) => return self.there_and_back(status).into(),
                Err(why) => return Outcome::Failed(why),
            }
        }
        Outcome::Skipped(refused)
    }

    fn there_and_back(&mut self, status: &str) -> Result<String, String> {
        self.wait_for_status(status)?;
        let back = self.driver.ask("status UP", START)?;
        if back.starts_with("unsupported") {
            return Ok(format!("{status}; back to UP: {back}"));
        }
        self.wait_for_status("UP")?;
        Ok(format!("{status} and back"))
    }

    fn recovers(&mut self) -> Outcome {
        let cancelled = self.run.target.cancel(&self.app, &self.id);
        match cancelled {
            Ok(answer) if answer.status == 200 => self.wait_until_known().into(),
            Ok(answer) => Outcome::Failed(format!("the kit's cancel was answered {}", answer.status)),
            Err(error) => Outcome::Failed(error.to_string()),
        }
    }

    fn leaves(&mut self) -> Outcome {
        if let Err(why) = self.driver.ask("leave", START) {
            return Outcome::Failed(why);
        }
        let cancelled = poll(Duration::from_secs(5), || {
            let count = self.count(|request, response| {
                request.method == "DELETE" && response.status == 200 && self.is_own(request)
            });
            if count > 0 {
                Ok(String::new())
            } else {
                Err("no DELETE was answered 200".to_owned())
            }
        });
        cancelled.into()
    }

    fn is_gone(&mut self) -> Outcome {
        let gone = poll(self.run.patience, || {
            for node in self.run.nodes() {
                if node.instance(&self.app, &self.id)?.is_some() {
                    return Err(format!("GET {node}/apps/APP/ID still shows it"));
                }
                if find_instance(&node.get_json("/apps")?, &self.app, &self.id).is_some() {
                    return Err(format!("GET {node}/apps still lists it"));
                }
            }
            Ok(String::new())
        });
        gone.into()
    }

    /// With whatever status: one client says UP only once.
    fn wait_until_known(&self) -> Result<String, String> {
        let mut shown = String::new();
        self.wait_for(&mut |instance| {
            shown = format!("as {}", instance["status"].as_str().unwrap_or_default());
            Ok(())
        })?;
        Ok(shown)
    }

    fn wait_for_status(&self, status: &str) -> Result<(), String> {
        self.wait_for(&mut |instance| match &instance["status"] {
            shown if *shown == *status => Ok(()),
            shown => Err(format!("the server shows {shown} for {status}")),
        })
    }

    /// Until every node shows the client's instance as it should be.
    pub(super) fn wait_for(&self, fits: &mut dyn FnMut(&Value) -> Result<(), String>) -> Result<(), String> {
        poll(self.patience(), || {
            for node in self.run.nodes() {
                match node.instance(&self.app, &self.id)? {
                    Some(instance) => fits(&instance)?,
                    None => return Err(format!("{node} does not know {}/{}", self.app, self.id)),
                }
            }
            Ok(())
        })
    }

    /// Where the client believes the first node to be.
    pub(super) fn target(&self) -> Target {
        let address = self
            .tees
            .first()
            .map_or(&self.run.target.address, |tee| &tee.address);
        self.run.target.behind(address.as_str())
    }

    /// Whether a request is about the instance itself, not its status or metadata.
    fn is_own(&self, request: &Request) -> bool {
        let path = request.target.split('?').next().unwrap_or_default();
        let path = percent_encoding::percent_decode_str(path.trim_end_matches('/'))
            .decode_utf8_lossy()
            .to_lowercase();
        path.ends_with(&format!("/apps/{}/{}", self.app, self.id).to_lowercase())
    }
}

/// Whether the path of a request ends so.
pub(super) fn is_at(request: &Request, path: &str) -> bool {
    let asked = request.target.split('?').next().unwrap_or_default();
    asked.trim_end_matches('/').ends_with(path)
}

/// Asks until something is found.
pub(super) fn found(driver: &mut Driver, question: &str, patience: Duration) -> Result<String, String> {
    poll(patience, || match found_now(driver, question)? {
        0 => Err("it does not list it".to_owned()),
        count => Ok(format!("found {count}")),
    })
}

/// How many are found now.
pub(super) fn found_now(driver: &mut Driver, question: &str) -> Result<usize, String> {
    let answer = driver.ask(question, Duration::from_secs(20))?;
    let count = answer.strip_prefix("found ");
    let count = count.and_then(|count| count.trim().parse().ok());
    count.ok_or_else(|| format!("the driver said {answer:?}"))
}
