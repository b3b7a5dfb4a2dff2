//! Real clients, each through the whole of its life: registering, renewing, finding, changing, leaving.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::drivers::{Client, Driver, Workshop, missing};
use super::expectations::{Expectations, Suite};
use super::http::{Request, Response, poll};
use super::report::{Outcome, Report};
use super::target::{Flavour, Instance, Target, find_instance};
use super::tee::Tee;

const RENEW_SECONDS: u64 = 2;
const LEASE_SECONDS: u64 = 10;
/// A JVM that shares two processors with three others takes its time.
const START: Duration = Duration::from_secs(120);

const STEPS: [&str; 8] = [
    "registers and is seen UP",
    "renews at least twice",
    "finds another instance",
    "sees a new instance",
    "changes its status",
    "registers again after a 404",
    "leaves",
    "is gone",
];

/// What all clients of a run share.
pub(crate) struct Run<'a> {
    pub(crate) target: &'a Target,
    pub(crate) flavour: Flavour,
    pub(crate) expectations: &'a Expectations,
    pub(crate) report: &'a Report,
    pub(crate) workshop: &'a Workshop,
    pub(crate) run_name: &'a str,
    pub(crate) patience: Duration,
}

impl Run<'_> {
    /// Runs the clients, `jobs` at a time.
    pub(crate) fn all(&self, clients: &[Client], jobs: usize) {
        let partner = Instance::new(
            &self.partner(),
            &format!("{}:partner", self.run_name.to_lowercase()),
        );
        if let Err(error) = self.target.register(&partner) {
            let outcome = Outcome::Failed(format!("the instance to be found cannot register: {error}"));
            return self.report.step("clients", "", &outcome);
        }
        let (next, done) = (AtomicUsize::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| self.keep_alive(&partner, &done));
            let workers: Vec<_> = (0..jobs.max(1))
                .map(|_| scope.spawn(|| self.work(clients, &next)))
                .collect();
            for worker in workers {
                if worker.join().is_err() {
                    self.report.step(
                        "clients",
                        "",
                        &Outcome::Failed("the kit itself failed".to_owned()),
                    );
                }
            }
            done.store(true, Ordering::Relaxed);
        });
        // What is gone already needs no cleaning.
        let _ = self.target.cancel(&partner.app, &partner.id);
    }

    fn partner(&self) -> String {
        format!("{}-PARTNER", self.run_name)
    }

    fn keep_alive(&self, partner: &Instance, done: &AtomicBool) {
        for tick in 0.. {
            if done.load(Ordering::Relaxed) {
                return;
            }
            if tick % 50 == 0
                && self
                    .target
                    .renew(&partner.app, &partner.id)
                    .is_ok_and(|answer| answer.status == 404)
            {
                // A client that then does not find it says so.
                let _ = self.target.register(partner);
            }
            thread::sleep(Duration::from_millis(200));
        }
    }

    fn work(&self, clients: &[Client], next: &AtomicUsize) {
        while let Some(client) = clients.get(next.fetch_add(1, Ordering::Relaxed)) {
            self.one(client);
        }
    }

    fn one(&self, client: &Client) {
        let every = |outcome: &Outcome| {
            STEPS
                .iter()
                .for_each(|step| self.step(client, step, outcome.clone()))
        };
        if let Some(command) = missing(&client.toolchain) {
            return every(&Outcome::Skipped(format!("this machine has no {command}")));
        }
        if client
            .only_path
            .as_ref()
            .is_some_and(|path| *path != self.target.prefix)
        {
            let path = client.only_path.as_deref().unwrap_or_default();
            return every(&Outcome::Skipped(format!("it can only talk to {path}")));
        }
        if let Err(why) = self.workshop.install(&client.name, &client.install) {
            return self.step(client, "installs", Outcome::Failed(why));
        }
        match Session::start(self, client) {
            Ok(mut session) => session.live(),
            Err(why) => self.step(client, "starts", Outcome::Failed(why)),
        }
    }

    fn step(&self, client: &Client, step: &str, outcome: Outcome) {
        let case = format!("{}: {step}", client.name);
        self.report.step(
            &client.name,
            step,
            &self
                .expectations
                .judge(Suite::Clients, self.flavour, &case, outcome),
        );
    }
}

/// One client, alive.
struct Session<'a> {
    run: &'a Run<'a>,
    client: &'a Client,
    tee: Tee,
    driver: Driver,
    app: String,
    id: String,
}

impl<'a> Session<'a> {
    fn start(run: &'a Run<'a>, client: &'a Client) -> Result<Self, String> {
        let tee = Tee::start(&run.target.address).map_err(|error| format!("no recording proxy: {error}"))?;
        let app = format!("{}-{}", run.run_name, client.name.to_uppercase());
        let id = format!("{}:kit:{}", app.to_lowercase(), 7000);
        let settings = [
            ("EUREKA_URL", run.target.behind(tee.address.as_str()).to_string()),
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
            tee,
            driver,
            app,
            id,
        })
    }

    /// Every step in its order; those that need a registration are left out without one.
    fn live(&mut self) {
        let registers = self.client.registers;
        let own: [fn(&mut Self) -> Outcome; 2] = [Self::registers, Self::renews];
        let rest: [fn(&mut Self) -> Outcome; 4] =
            [Self::changes_status, Self::recovers, Self::leaves, Self::is_gone];
        let reading: [fn(&mut Self) -> Outcome; 2] = [Self::finds_another, Self::sees_a_new_one];
        let steps = own.into_iter().chain(reading).chain(rest);
        let mut absent = (!registers).then(|| "it only reads".to_owned());
        for (at, (name, step)) in STEPS.iter().zip(steps).enumerate() {
            let needs_registration = !(2..=3).contains(&at);
            let outcome = match &absent {
                Some(why) if needs_registration => Outcome::Skipped(why.clone()),
                Some(_) | None => step(self),
            };
            if at == 0 && matches!(outcome, Outcome::Failed(_)) {
                absent = Some("it did not register".to_owned());
            }
            self.run.step(self.client, name, outcome);
        }
        self.run
            .workshop
            .write_wire(&self.client.name, &self.tee.exchanges());
        // What is gone already needs no cleaning.
        let _ = self.run.target.cancel(&self.app, &self.id);
        let later = self.later();
        let _ = self.run.target.cancel(&later.app, &later.id);
    }

    /// How long to wait for something that the client does at its own interval.
    fn patience(&self) -> Duration {
        self.run.patience + Duration::from_secs(3 * self.client.seconds.unwrap_or(RENEW_SECONDS))
    }

    fn registers(&mut self) -> Outcome {
        self.wait_for_status("UP")
            .map(|()| format!("as {}", self.id))
            .into()
    }

    fn renews(&mut self) -> Outcome {
        let renewed = poll(self.patience(), || {
            let count = self.tee.count(|request, response| {
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
        let in_delta = |request: &Request, response: &Response| {
            let path = request.target.split('?').next().unwrap_or_default();
            path.trim_end_matches('/').ends_with("/apps/delta")
                && response.status == 200
                && response.text().contains(&later.app)
        };
        let by_delta = found.and_then(|found| {
            poll(self.patience(), || match self.tee.count(in_delta) {
                0 => Err("it found it, but no delta that it read had it".to_owned()),
                _ => Ok(format!("{found}, by delta")),
            })
        });
        by_delta.into()
    }

    fn later(&self) -> Instance {
        let app = format!("{}-LATER", self.app);
        let id = format!("{}:later", app.to_lowercase());
        Instance::new(&app, &id)
    }

    fn find(&mut self, app: &str) -> Result<String, String> {
        let patience = self.patience();
        let driver = &mut self.driver;
        poll(patience, || {
            let answer = driver.ask(&format!("find {app}"), Duration::from_secs(20))?;
            match answer
                .strip_prefix("found ")
                .and_then(|count| count.trim().parse::<usize>().ok())
            {
                Some(0) => Err("it does not list it".to_owned()),
                Some(count) => Ok(format!("found {count}")),
                None => Err(format!("the driver said {answer:?}")),
            }
        })
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
            let count = self.tee.count(|request, response| {
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
            if self.run.target.instance(&self.app, &self.id)?.is_some() {
                return Err("GET apps/APP/ID still shows it".to_owned());
            }
            match find_instance(&self.run.target.get_json("/apps")?, &self.app, &self.id) {
                Some(_) => Err("GET apps still lists it".to_owned()),
                None => Ok(String::new()),
            }
        });
        gone.into()
    }

    /// With whatever status: one client says UP only once.
    fn wait_until_known(&self) -> Result<String, String> {
        poll(self.patience(), || {
            match self.run.target.instance(&self.app, &self.id)? {
                Some(instance) => Ok(format!("as {}", instance["status"].as_str().unwrap_or_default())),
                None => Err(format!("the server does not know {}/{}", self.app, self.id)),
            }
        })
    }

    fn wait_for_status(&self, status: &str) -> Result<(), String> {
        poll(self.patience(), || {
            match self.run.target.instance(&self.app, &self.id)? {
                Some(instance) if instance["status"] == status => Ok(()),
                Some(instance) => Err(format!("the server shows {} for {status}", instance["status"])),
                None => Err(format!("the server does not know {}/{}", self.app, self.id)),
            }
        })
    }

    /// Whether a request is about the instance itself, not its status or metadata.
    fn is_own(&self, request: &Request) -> bool {
        let path = request
            .target
            .split('?')
            .next()
            .unwrap_or_default()
            .trim_end_matches('/');
        let path = percent_encoding::percent_decode_str(path)
            .decode_utf8_lossy()
            .to_lowercase();
        path.ends_with(&format!("/apps/{}/{}", self.app, self.id).to_lowercase())
    }
}
