//! One client of the gRPC API through its life: each step is asked of its programs and checked from the REST side.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::faults::Fault;
use super::proxy::Proxy;
use super::{Client, Run};
use crate::conformance::drivers::Driver;
use crate::conformance::http::{excerpt, poll};
use crate::conformance::report::Outcome;
use crate::conformance::target::instance_path;

const RENEW_SECONDS: u64 = 1;
/// Shorter than the session, so that only renewals keep the instance; long enough for a program that starts slowly.
const LEASE_SECONDS: u64 = 5;
/// Where no server listens: the first of two that the programs are given.
const NOBODY: &str = "127.0.0.1:1";
/// An interpreter that shares two processors with others takes its time.
const START: Duration = Duration::from_secs(60);

type Step = fn(&mut Session<'_>) -> Result<String, String>;

pub(super) const STEPS: [(&str, Step); 9] = [
    ("registers and is seen UP", |session| session.registers()),
    ("keeps its lease by the stream alone", |session| {
        session.keeps_its_lease()
    }),
    ("watches: a snapshot, then its own change", |session| {
        session.watches()
    }),
    ("sets a status and clears it", |session| session.sets_a_status()),
    ("goes on where it was", |session| session.goes_on()),
    ("says what is wrong", |session| session.says_what_is_wrong()),
    ("asks for health and services", |session| {
        session.asks_the_server()
    }),
    ("registers again when told to", |session| {
        session.registers_again()
    }),
    ("leaves", |session| session.leaves()),
];

/// One client, alive.
pub(super) struct Session<'a> {
    run: &'a Run<'a>,
    client: &'a Client,
    proxy: Proxy,
    app: String,
    id: String,
    service: Driver,
    watcher: Option<Driver>,
    /// Where the snapshot of the first watcher ended.
    cursor: String,
}

impl<'a> Session<'a> {
    /// Starts the service, through a proxy with a fault or without one.
    pub(super) fn start(
        run: &'a Run<'a>,
        client: &'a Client,
        address: &str,
        fault: Option<&'static Fault>,
        run_name: &str,
    ) -> Result<Self, String> {
        let proxy =
            Proxy::start(address, fault).map_err(|error| format!("the proxy does not start: {error}"))?;
        let app = format!("{run_name}-{}", client.name.to_uppercase());
        let id = format!("{}:kit", app.to_lowercase());
        let (renew, lease) = (RENEW_SECONDS.to_string(), LEASE_SECONDS.to_string());
        let options = ["--app", &app, "--id", &id, "--renew", &renew, "--lease", &lease];
        let service = launch(run, client, &proxy, "service", &app, &options)?;
        Ok(Self {
            run,
            client,
            proxy,
            app,
            id,
            service,
            watcher: None,
            cursor: String::new(),
        })
    }

    /// Every step in its order, as long as whoever is told of them wants more.
    pub(super) fn live(&mut self, mut told: impl FnMut(&'static str, Outcome) -> bool) {
        for (name, step) in STEPS {
            let skipped = name == "asks for health and services" && !self.client.asks_the_server;
            let outcome = if skipped {
                Outcome::Skipped("the others show it".to_owned())
            } else {
                step(self).into()
            };
            if !told(name, outcome) {
                break;
            }
        }
        if let Some(watcher) = &self.watcher {
            watcher.terminate();
        }
        self.service.terminate();
        // What is gone already needs no cleaning.
        let _ = self.run.target.cancel(&self.app, &self.id);
    }

    fn registers(&mut self) -> Result<String, String> {
        self.service.heard("registered ", START)?;
        self.await_status("UP")?;
        Ok(format!("as {}", self.id))
    }

    /// Longer than its lease, with renewals that move its time and no second registration.
    fn keeps_its_lease(&mut self) -> Result<String, String> {
        let start = Instant::now();
        let longer = Duration::from_secs(LEASE_SECONDS + 2);
        let first = self.lease_times()?;
        let mut renewals = 0;
        let mut last = first;
        while start.elapsed() < longer || renewals < 2 {
            if start.elapsed() > longer + self.run.patience {
                return Err(format!("{renewals} renewals in {} s", start.elapsed().as_secs()));
            }
            std::thread::sleep(Duration::from_millis(200));
            let now = self.lease_times()?;
            if now.0 != first.0 {
                return Err("it registered again".to_owned());
            }
            renewals += usize::from(now.1 > last.1);
            last = now;
        }
        Ok(format!("{renewals} renewals in {} s", start.elapsed().as_secs()))
    }

    /// When the instance was registered, and renewed last.
    fn lease_times(&self) -> Result<(i64, i64), String> {
        let instance = self.instance()?;
        let time = |name: &str| {
            instance["leaseInfo"][name]
                .as_i64()
                .ok_or_else(|| format!("the server shows no {name}"))
        };
        Ok((time("registrationTimestamp")?, time("lastRenewalTimestamp")?))
    }

    fn watches(&mut self) -> Result<String, String> {
        let mut watcher = self.watch("", "first")?;
        watcher.heard("snapshot SNAPSHOT_REASON_START", START)?;
        watcher.heard(&format!("there {} UP", self.name()), self.run.patience)?;
        let synced = watcher.heard("synced 1 ", self.run.patience)?;
        self.cursor = synced.rsplit(' ').next().unwrap_or_default().to_owned();
        self.operate(&["metadata", &self.app, &self.id, "kit=by gRPC"])?;
        if self.instance()?["metadata"]["kit"] != "by gRPC" {
            return Err("the server does not show the new metadata".to_owned());
        }
        let told = format!("ADDED {} UP METADATA_CHANGED by CLIENT", self.name());
        watcher.heard(&told, self.run.patience)?;
        self.watcher = Some(watcher);
        Ok(told)
    }

    fn sets_a_status(&mut self) -> Result<String, String> {
        self.operate(&["status", &self.app, &self.id, "OUT_OF_SERVICE"])?;
        self.await_status("OUT_OF_SERVICE")?;
        self.told(&format!("MODIFIED {} OUT_OF_SERVICE OVERRIDDEN by ", self.name()))?;
        self.operate(&["clear", &self.app, &self.id])?;
        self.await_status("UP")?;
        self.told(&format!("MODIFIED {} UP OVERRIDE_CLEARED by ", self.name()))?;
        Ok("OUT_OF_SERVICE and back".to_owned())
    }

    /// After a connection that broke, and in a new process: by cursor, with no snapshot, and nothing left out.
    fn goes_on(&mut self) -> Result<String, String> {
        self.proxy.cut();
        let path = format!("{}/metadata?kit=cut", instance_path(&self.app, &self.id));
        let put = self.run.target.send(&self.run.target.request("PUT", &path));
        if put.map_err(|error| error.to_string())?.status != 200 {
            return Err("the kit's change of metadata was refused".to_owned());
        }
        let change = format!("ADDED {} UP METADATA_CHANGED by CLIENT", self.name());
        let watcher = self.watcher.as_mut().ok_or("there is no watcher")?;
        watcher.heard("lost ", self.run.patience)?;
        let next = watcher.next_but("lost ", self.run.patience)?;
        if !next.starts_with(&change) {
            return Err(format!("after the connection broke it heard {next:?}"));
        }
        let second = self.watch(&self.cursor, "second")?;
        let causes = [
            "METADATA_CHANGED",
            "OVERRIDDEN",
            "OVERRIDE_CLEARED",
            "METADATA_CHANGED",
        ];
        for cause in causes {
            let line = second.line(START)?;
            if !line.contains(&format!("{} ", self.name())) || !line.contains(&format!(" {cause} ")) {
                return Err(format!("from an old cursor it heard {line:?} for {cause}"));
            }
        }
        second.terminate();
        Ok("4 changes after the cursor, no snapshot".to_owned())
    }

    fn says_what_is_wrong(&mut self) -> Result<String, String> {
        self.fails(&["get", &self.app, "no-such-id"], &["notfound", "notregistered"])?;
        self.fails(
            &["status", &self.app, &self.id, "SIDEWAYS"],
            &["invalidargument", "status"],
        )?;
        self.await_status("UP")?;
        self.fails(&["list", "app =="], &["invalidargument", "filter"])?;
        let nameless = format!("{}:nameless", self.id);
        let mut service = self.launch("service", "nameless", &["--app", "", "--id", &nameless])?;
        match service.ended(START)? {
            Some(1) => {}
            code => return Err(format!("a service without an application ended with {code:?}")),
        }
        says(&service.complaints(), &["invalidargument", "app"])?;
        Ok("a missing instance, a status, a filter, an application".to_owned())
    }

    fn asks_the_server(&mut self) -> Result<String, String> {
        let health = self.operate(&["health"])?;
        for service in ["eureka.v1.Registry", "eureka.v1.Registry/reads"] {
            if !health.contains(&format!("{service} SERVING")) {
                return Err(format!("health says {health:?}"));
            }
        }
        let services = self.operate(&["services"])?;
        for service in ["eureka.v1.Registry", "grpc.health.v1.Health"] {
            if !services.iter().any(|line| line == service) {
                return Err(format!("reflection names {services:?}"));
            }
        }
        Ok(services.join(", "))
    }

    fn registers_again(&mut self) -> Result<String, String> {
        let cancelled = self.run.target.cancel(&self.app, &self.id);
        match cancelled {
            Ok(answer) if answer.status == 200 => {}
            Ok(answer) => return Err(format!("the kit's cancel was answered {}", answer.status)),
            Err(error) => return Err(error.to_string()),
        }
        self.told(&format!("DELETED {} UP CANCELLED by CLIENT", self.name()))?;
        let why = self.service.heard("registering again: ", self.run.patience)?;
        self.service.heard("registered ", self.run.patience)?;
        self.await_status("UP")?;
        self.told(&format!("ADDED {} UP REGISTERED by CLIENT", self.name()))?;
        Ok(why)
    }

    fn leaves(&mut self) -> Result<String, String> {
        self.service.terminate();
        match self.service.ended(self.run.patience)? {
            Some(0) => {}
            code => return Err(format!("it ended with {code:?}")),
        }
        // At once: some seconds later its lease would have run out.
        if self.run.target.instance(&self.app, &self.id)?.is_some() {
            return Err("the server still shows it".to_owned());
        }
        self.told(&format!("DELETED {} UP CANCELLED by CLIENT", self.name()))
    }

    fn name(&self) -> String {
        format!("{}/{}", self.app, self.id)
    }

    fn instance(&self) -> Result<Value, String> {
        self.run
            .target
            .instance(&self.app, &self.id)?
            .ok_or_else(|| format!("the server does not know {}", self.name()))
    }

    fn await_status(&self, status: &str) -> Result<(), String> {
        poll(self.run.patience, || match &self.instance()?["status"] {
            shown if *shown == *status => Ok(()),
            shown => Err(format!("the server shows {shown} for {status}")),
        })
    }

    fn told(&mut self, start: &str) -> Result<String, String> {
        let watcher = self.watcher.as_mut().ok_or("there is no watcher")?;
        watcher.heard(start, self.run.patience)
    }

    fn watch(&self, cursor: &str, label: &str) -> Result<Driver, String> {
        let filter = format!("app == {}", self.app);
        self.launch("watch", label, &["--filter", &filter, "--cursor", cursor])
    }

    /// What a single call prints; it must succeed.
    fn operate(&self, words: &[&str]) -> Result<Vec<String>, String> {
        let (code, lines, complaints) = self.call(words)?;
        if code == Some(0) {
            Ok(lines)
        } else {
            Err(format!("{}: {}", words.join(" "), excerpt(&complaints)))
        }
    }

    /// A single call must fail and say all of this.
    fn fails(&self, words: &[&str], parts: &[&str]) -> Result<(), String> {
        let (code, _, complaints) = self.call(words)?;
        if code != Some(1) {
            return Err(format!("{} ended with {code:?}", words.join(" ")));
        }
        says(&complaints, parts)
    }

    fn call(&self, words: &[&str]) -> Result<(Option<i32>, Vec<String>, String), String> {
        let mut program = self.launch("operate", words[0], words)?;
        let code = program.ended(START)?;
        let mut lines = Vec::new();
        while let Ok(line) = program.line(Duration::from_secs(1)) {
            lines.push(line);
        }
        Ok((code, lines, program.complaints()))
    }

    fn launch(&self, program: &str, label: &str, options: &[&str]) -> Result<Driver, String> {
        let label = format!("{}-{label}", self.app);
        launch(self.run, self.client, &self.proxy, program, &label, options)
    }
}

fn launch(
    run: &Run<'_>,
    client: &Client,
    proxy: &Proxy,
    program: &str,
    label: &str,
    options: &[&str],
) -> Result<Driver, String> {
    let command = client.run.iter().map(|word| word.replace("{program}", program));
    let servers = format!("{NOBODY},{}", proxy.address);
    let options = ["--servers", &servers].into_iter().chain(options.iter().copied());
    let argv: Vec<_> = command.chain(options.map(str::to_owned)).collect();
    run.workshop
        .launch(&format!("{program}-{label}"), &argv, &[])
        .map_err(|error| format!("{error:#}"))
}

/// Whether an error names all of this, however the language writes codes (`NOT_FOUND`, `NotFound`).
fn says(complaints: &str, parts: &[&str]) -> Result<(), String> {
    let plain = complaints.to_lowercase().replace('_', "");
    match parts.iter().find(|part| !plain.contains(*part)) {
        Some(part) => Err(format!("{:?} does not say {part}", excerpt(complaints))),
        None => Ok(()),
    }
}

impl Driver {
    /// The next line that starts so; those before it are passed over.
    fn heard(&mut self, start: &str, patience: Duration) -> Result<String, String> {
        self.until(patience, |line| line.starts_with(start))
            .map_err(|why| format!("nothing began with {start:?}: {why}"))
    }

    /// The next line that starts otherwise.
    fn next_but(&mut self, start: &str, patience: Duration) -> Result<String, String> {
        self.until(patience, |line| !line.starts_with(start))
    }

    fn until(&mut self, patience: Duration, fits: impl Fn(&str) -> bool) -> Result<String, String> {
        let begin = Instant::now();
        loop {
            let line = self.line(patience.saturating_sub(begin.elapsed()))?;
            if fits(&line) {
                return Ok(line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::says;

    #[test]
    fn codes_are_known_in_every_spelling() {
        let parts = ["notfound", "notregistered"];
        assert_eq!(says("error: NOT_FOUND NOT_REGISTERED: x", &parts), Ok(()));
        assert_eq!(says("error: NotFound NOT_REGISTERED: x", &parts), Ok(()));
        assert!(says("error: NotFound: x", &parts).is_err());
    }
}
