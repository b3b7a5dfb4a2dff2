//! `cargo xtask conformance`: real clients against any Eureka-compatible server.

mod cases;
mod clients;
pub(crate) mod drivers;
mod expect;
mod expectations;
mod faulty;
mod fields;
mod grpc;
pub(crate) mod http;
mod normal;
mod recorded;
pub(crate) mod report;
mod selftest;
pub(crate) mod target;
mod tee;
mod wire;

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::ValueEnum;

use drivers::{Client, Workshop};
use expectations::{Expectations, Suite};
use grpc::Endpoint;
use recorded::Recording;
use report::{Outcome, Report};
use target::{Flavour, Target};

/// The patience of the self-test with clients: less than their leases last.
const SHORT: Duration = Duration::from_secs(8);
const EXPECTATIONS: &str = include_str!("../conformance/expectations.toml");

/// Run real Eureka clients, and checks of our own, against a server
///
/// Any Eureka-compatible server will do, Java's included: start it, and name its API, for example
/// `--target http://127.0.0.1:8761/eureka`. Prints a line for each client and step; the last line counts them; the exit
/// code is 0 if nothing failed. Clients are downloaded and built at first use; one whose tools this machine lacks is skipped.
/// What the kit registers it takes away again. A server that caches its lists, as Java's do by default, makes the kit
/// wait, not fail. More is told in xtask/conformance/README.md.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// The API of the server to test, such as http://127.0.0.1:8761/eureka
    #[arg(long, value_name = "URL", required_unless_present = "list")]
    target: Option<String>,
    /// Another node of the same cluster: clients that take several servers are given both, and must show at both
    #[arg(long, value_name = "URL")]
    second: Option<String>,
    /// The gRPC address of the server; if not given, what the server says it was configured to, else port 9761
    #[arg(long, value_name = "HOST:PORT")]
    grpc: Option<String>,
    /// Run only this client; may be repeated (see --list)
    #[arg(long, value_name = "NAME")]
    client: Vec<String>,
    /// How many clients run at a time
    #[arg(long, value_name = "N", default_value_t = 4)]
    jobs: usize,
    /// Run only these kinds of tests
    #[arg(long, value_name = "SUITE", value_delimiter = ',')]
    only: Vec<Part>,
    /// Whose server it is, where it matters; found out if not given
    #[arg(long, value_name = "WHOSE")]
    flavour: Option<Flavour>,
    /// How long a step may take
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    patience: u64,
    /// Where to install the clients and write their logs
    #[arg(long, value_name = "DIR", default_value = "target/conformance")]
    work: PathBuf,
    /// The server has never had an instance: run the cases that need that, too
    #[arg(long)]
    fresh: bool,
    /// The server evicts every second and does not preserve expired leases: run the cases that need that, too
    #[arg(long)]
    evicts: bool,
    /// Also replay exchanges recorded with a Java server; the server must be set up as that one was (see
    /// xtask/conformance/recorded) and have nothing else to do: every instance in it is cancelled
    #[arg(long, value_name = "WHICH", value_delimiter = ',')]
    recorded: Vec<Recording>,
    /// Plant faults between the kit and the server, and see whether the kit names each
    #[arg(long)]
    self_test: bool,
    /// Name the clients and checks, and do nothing
    #[arg(long)]
    list: bool,
}

/// A kind of tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Real clients, each through the whole of its life
    Clients,
    /// Public bug reports, as a few requests each
    Cases,
    /// The exchanges that --recorded names
    Recorded,
    /// Direct checks of what goes over the wire
    Wire,
}

/// Runs the task.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.list {
        return list();
    }
    let Some(url) = &arguments.target else {
        bail!("--target is missing")
    };
    let target = Target::parse(url)?;
    let flavour = match arguments.flavour {
        Some(flavour) => flavour,
        None => target.flavour()?,
    };
    let kit = Kit {
        expectations: Expectations::parse(EXPECTATIONS)?,
        report: Report::default(),
        run_name: format!("KIT{}", std::process::id()),
        patience: Duration::from_secs(arguments.patience),
        second: arguments.second.as_deref().map(Target::parse).transpose()?,
        target,
        flavour,
    };
    if arguments.self_test {
        kit.self_test(arguments)?;
    } else {
        kit.suites(arguments)?;
    }
    if kit.target.busy() > 0 {
        let times = kit.target.busy();
        kit.report.line(&format!(
            "      the server was too busy {times} times (503) and was asked again"
        ));
    }
    let counts = kit.report.counts();
    kit.report.line(&counts.to_string());
    if counts.failed > 0 {
        bail!("{} of the checks failed", counts.failed);
    }
    Ok(())
}

impl Arguments {
    /// Whether a kind of tests is wanted: what `--only` names, else the clients if some are named, else all.
    fn runs(&self, part: Part) -> bool {
        match (self.only.as_slice(), self.client.as_slice()) {
            ([], []) => true,
            ([], _) => part == Part::Clients,
            (only, _) => only.contains(&part),
        }
    }

    /// The clients that are wanted: those of the REST API, and those of gRPC.
    fn clients(&self) -> Result<(Vec<Client>, Vec<grpc::Client>)> {
        let (mut rest, mut grpc) = (drivers::manifest()?, grpc::manifest()?);
        let names: Vec<_> = rest
            .iter()
            .map(|client| &client.name)
            .chain(grpc.iter().map(|client| &client.name))
            .collect();
        if let Some(unknown) = self.client.iter().find(|name| !names.contains(name)) {
            bail!("there is no client {unknown}; --list names them");
        }
        let wanted = |name: &String| self.client.is_empty() || self.client.contains(name);
        rest.retain(|client| wanted(&client.name));
        grpc.retain(|client| wanted(&client.name));
        Ok((rest, grpc))
    }
}

/// One run against one server.
struct Kit {
    target: Target,
    second: Option<Target>,
    flavour: Flavour,
    expectations: Expectations,
    report: Report,
    /// Starts the names of all applications of this run.
    run_name: String,
    patience: Duration,
}

impl Kit {
    fn suites(&self, arguments: &Arguments) -> Result<()> {
        // Those that need a fresh server come first. The others come late: one makes Java's delta unreadable for minutes.
        if arguments.runs(Part::Cases) {
            self.cases(arguments, true)?;
        }
        if arguments.runs(Part::Wire) {
            self.wire();
        }
        if arguments.runs(Part::Clients) {
            self.clients(arguments)?;
        }
        if arguments.runs(Part::Cases) {
            self.cases(arguments, false)?;
        }
        if arguments.runs(Part::Recorded) {
            for recording in &arguments.recorded {
                recorded::replay(
                    &self.target,
                    self.flavour,
                    *recording,
                    &self.expectations,
                    &self.report,
                )?;
            }
        }
        Ok(())
    }

    fn clients(&self, arguments: &Arguments) -> Result<()> {
        let (rest, grpc) = arguments.clients()?;
        let workshop = Workshop::open(&arguments.work)?;
        let run = self.rest(&workshop, self.patience);
        if !rest.is_empty() {
            run.all(&rest, arguments.jobs);
        }
        let endpoint = Endpoint::find(arguments.grpc.as_deref(), &self.target, self.flavour);
        self.grpc(&workshop, &endpoint)
            .all(&grpc, &|client, step, outcome| {
                let case = format!("{}: {step}", client.name);
                let judged = self
                    .expectations
                    .judge(Suite::Clients, self.flavour, &case, outcome);
                self.report.step(&client.name, step, &judged);
            });
        Ok(())
    }

    /// Plants faults on the way to the REST API, and to the gRPC API.
    fn self_test(&self, arguments: &Arguments) -> Result<()> {
        if arguments.client.is_empty() {
            selftest::run(&self.target, &self.run_name, &self.report);
        }
        let (clients, grpc_clients) = arguments.clients()?;
        let workshop = Workshop::open(&arguments.work)?;
        let endpoint = Endpoint::find(arguments.grpc.as_deref(), &self.target, self.flavour);
        let run = grpc::Run {
            patience: grpc::SHORT,
            ..self.grpc(&workshop, &endpoint)
        };
        thread::scope(|scope| {
            // These wait more than they work.
            scope.spawn(|| {
                self.rest(&workshop, SHORT)
                    .self_test(&clients, 3 * arguments.jobs)
            });
            run.self_test(&grpc_clients, arguments.jobs, &|name, outcome| {
                self.report.step("self-test", name, &outcome);
            });
        });
        Ok(())
    }

    fn rest<'a>(&'a self, workshop: &'a Workshop, patience: Duration) -> clients::Run<'a> {
        clients::Run {
            target: &self.target,
            second: self.second.as_ref(),
            flavour: self.flavour,
            expectations: &self.expectations,
            report: &self.report,
            workshop,
            run_name: &self.run_name,
            patience,
        }
    }

    fn grpc<'a>(&'a self, workshop: &'a Workshop, endpoint: &'a Endpoint) -> grpc::Run<'a> {
        grpc::Run {
            target: &self.target,
            endpoint,
            workshop,
            run_name: &self.run_name,
            patience: self.patience,
        }
    }

    fn wire(&self) {
        for (name, outcome) in wire::run(&self.target, &self.run_name, self.patience) {
            let judged = self.expectations.judge(Suite::Wire, self.flavour, name, outcome);
            self.report.step("wire", name, &judged);
        }
    }
}

impl Kit {
    /// Cases that need a certain server run when that is promised.
    fn cases(&self, arguments: &Arguments, fresh: bool) -> Result<()> {
        let mut cases = cases::all()?;
        cases.retain(|case| case.fresh == fresh);
        for case in &cases {
            let outcome = if case.fresh && !arguments.fresh {
                Outcome::Skipped("needs a server that has never had an instance (--fresh)".to_owned())
            } else if case.evicts && !arguments.evicts {
                Outcome::Skipped("needs a server that evicts every second (--evicts)".to_owned())
            } else {
                case.run(&self.target)
            };
            let judged = self
                .expectations
                .judge(Suite::Cases, self.flavour, &case.id, outcome);
            self.report.step("case", &case.id, &judged);
        }
        cases::clean_up(&self.target, &cases);
        Ok(())
    }
}

fn list() -> Result<()> {
    let report = Report::default();
    for client in drivers::manifest()? {
        let (name, language, what, reads) = (&client.name, &client.language, &client.what, &client.reads);
        report.line(&format!(
            "client {name}: {what} ({language}, reads {reads}). {}",
            client.notes
        ));
    }
    for client in grpc::manifest()? {
        let (name, language, what) = (&client.name, &client.language, &client.what);
        report.line(&format!(
            "client {name}: {what} ({language}, gRPC), the programs of grpc-api/examples."
        ));
    }
    for case in cases::all()? {
        report.line(&format!(
            "case {}: {} ({})",
            case.id,
            case.why,
            case.source.join(", ")
        ));
    }
    for check in wire::CHECKS {
        report.line(&format!("wire {}: {}", check.name, check.what));
    }
    Ok(())
}
