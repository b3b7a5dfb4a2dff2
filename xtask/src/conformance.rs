//! `cargo xtask conformance`: real clients against any Eureka-compatible server.

mod cases;
mod clients;
pub(crate) mod drivers;
mod expect;
mod expectations;
mod fields;
pub(crate) mod http;
mod normal;
mod recorded;
pub(crate) mod report;
mod selftest;
pub(crate) mod target;
mod tee;
mod wire;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::ValueEnum;

use drivers::{Client, Workshop};
use expectations::{Expectations, Suite};
use recorded::Recording;
use report::{Outcome, Report};
use target::{Flavour, Target};

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
        target,
        flavour,
    };
    if arguments.self_test {
        selftest::run(&kit.target, &kit.run_name, &kit.report);
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

    fn clients(&self) -> Result<Vec<Client>> {
        let mut clients = drivers::manifest()?;
        if let Some(unknown) = self
            .client
            .iter()
            .find(|name| clients.iter().all(|client| client.name != **name))
        {
            bail!("there is no client {unknown}; --list names them");
        }
        clients.retain(|client| self.client.is_empty() || self.client.contains(&client.name));
        Ok(clients)
    }
}

/// One run against one server.
struct Kit {
    target: Target,
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
            let workshop = Workshop::open(&arguments.work)?;
            let run = clients::Run {
                target: &self.target,
                flavour: self.flavour,
                expectations: &self.expectations,
                report: &self.report,
                workshop: &workshop,
                run_name: &self.run_name,
                patience: self.patience,
            };
            run.all(&arguments.clients()?, arguments.jobs);
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
