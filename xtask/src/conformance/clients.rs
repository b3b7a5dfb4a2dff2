//! Real clients, each through the whole of its life: registering, renewing, finding, changing, leaving.

mod faults;
mod more;
mod session;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::drivers::{Client, Workshop, missing};
use super::expectations::{Expectations, Suite};
use super::report::{Outcome, Report};
use super::selftest::judge;
use super::target::{Flavour, Instance, Target};
use faults::Fault;
use session::{STEPS, Session};

/// What all clients of a run share.
pub(crate) struct Run<'a> {
    pub(crate) target: &'a Target,
    /// Another node of the same cluster. Clients that can are given both, and what they do must show at both.
    pub(crate) second: Option<&'a Target>,
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
        self.beside_the_partner(&|next| self.work(clients, next), jobs);
    }

    /// Plants every fault before every client that is ours, `jobs` at a time; the step made for it must be the first to
    /// fail.
    pub(crate) fn self_test(&self, clients: &[Client], jobs: usize) {
        let mut planted = Vec::new();
        for client in clients.iter().filter(|client| client.more) {
            match self.ready(client) {
                Ok(()) => {
                    let follows = client.follows && self.flavour == Flavour::Ours;
                    let faults = faults::ALL
                        .iter()
                        .filter(|fault| !follows || fault.caught_by != faults::HASH_STEP);
                    planted.extend(faults.map(Some).chain([None]).map(|fault| (client, fault)));
                }
                Err(outcome) => self.report.step("self-test", &client.name, &outcome),
            }
        }
        let work = |next: &AtomicUsize| {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some((client, fault)) = planted.get(at) else {
                    return;
                };
                let name = fault.map_or("without a fault", |fault| fault.name);
                let named = self.first_failure(client, *fault, at);
                let outcome = judge(fault.map(|fault| fault.caught_by), named);
                self.report
                    .step("self-test", &format!("{}, {name}", client.name), &outcome);
            }
        };
        self.beside_the_partner(&work, jobs);
    }

    /// Lives until a step fails, and says which and why.
    fn first_failure(
        &self,
        client: &Client,
        fault: Option<&'static Fault>,
        number: usize,
    ) -> Result<Option<(&'static str, String)>, String> {
        let mut named = None;
        let mut session = Session::start(self, client, fault, &format!("{}-{number}", self.run_name))?;
        session.live(&mut |step, outcome| match outcome {
            Outcome::Failed(why) => {
                named = Some((step, why));
                false
            }
            Outcome::Passed(_) | Outcome::Skipped(_) => true,
        });
        Ok(named)
    }

    /// Works in some threads, beside an instance that clients can find.
    fn beside_the_partner(&self, work: &(dyn Fn(&AtomicUsize) + Sync), jobs: usize) {
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
            let workers: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(|| work(&next))).collect();
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
        match self.ready(client) {
            Ok(()) => {}
            Err(skipped @ Outcome::Skipped(_)) => {
                for step in STEPS.iter().filter(|step| step.is_for(client)) {
                    self.step(client, step.name, skipped.clone());
                }
                return;
            }
            Err(failed) => return self.step(client, "installs", failed),
        }
        match Session::start(self, client, None, self.run_name) {
            Ok(mut session) => session.live(&mut |step, outcome| {
                self.step(client, step, outcome);
                true
            }),
            Err(why) => self.step(client, "starts", Outcome::Failed(why)),
        }
    }

    /// Installs a client; or says why it is skipped, or cannot be installed.
    fn ready(&self, client: &Client) -> Result<(), Outcome> {
        if let Some(command) = missing(&client.toolchain) {
            return Err(Outcome::Skipped(format!("this machine has no {command}")));
        }
        if let Some(path) = &client.only_path
            && *path != self.target.prefix
        {
            return Err(Outcome::Skipped(format!("it can only talk to {path}")));
        }
        let installed = self.workshop.install(&client.name, &client.install);
        installed.map_err(Outcome::Failed)
    }

    /// The nodes at which things must show.
    fn nodes(&self) -> impl Iterator<Item = &Target> {
        [self.target].into_iter().chain(self.second)
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
