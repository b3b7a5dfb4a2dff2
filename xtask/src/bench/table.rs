//! `cargo xtask bench`: the server beside a bare HTTP server, Spring's Eureka server and others, in one table.
//!
//! Everything runs in one run on one machine. Servers take turns slice by slice, in an order that rotates from round to
//! round, and whose turn it is not is stopped. The load generator shares the cores with the server, so the
//! primary figure is the CPU time of the server's process for each request, from `/proc`; requests per second are a lower bound.

mod contenders;
mod criteria;
pub(super) mod figures;
mod life;
mod nacos;
mod once;
mod page;
mod propagation;
mod slices;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use self::contenders::{Contender, Programs};
use self::figures::{Figures, Measure};
use self::slices::{Generations, Slicing};
use super::subject::Kind;
use super::watch;
use super::workload::{Fleet, Operation};
use super::wrk;
use crate::stopwatch::{Stopwatch, minutes};

/// The comparison.
// Its name is taken by those that it is part of.
#[derive(clap::Args, Debug)]
#[group(skip)]
pub(super) struct Arguments {
    /// Whom to measure; who is not installed is left out, and the table says so
    #[arg(long, value_delimiter = ',', default_values = ["eureka", "limit", "java", "java-fresh", "r-nacos"])]
    servers: Vec<Kind>,
    /// What to measure; everything if none is named
    #[arg(long, value_delimiter = ',')]
    rows: Vec<Row>,
    /// How often everything is measured on each server
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Length of one slice
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    /// Connections of a closed loop, each with one request at a time
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// Instances registered
    #[arg(long, default_value_t = 10_000)]
    instances: usize,
    /// Applications they belong to
    #[arg(long, default_value_t = 100)]
    applications: usize,
    /// Let Spring's server keep connections open for more than the hundred requests of its default
    #[arg(long)]
    java_keeps_connections: bool,
    /// Write the figures of all rounds to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Put the table into docs/benchmarks.md
    #[arg(long)]
    pub(super) write: bool,
}

/// What is measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(super) enum Row {
    /// Start to first answer, memory, and the first registration of everybody
    Life,
    /// Renewals
    Renew,
    /// Renewals where all instances are in one application
    RenewOneApplication,
    /// Renewals where each application has ten instances
    RenewManyApplications,
    /// Registrations of instances that are there, changed
    Register,
    /// Heartbeats in batches of 250 from a peer
    Batch,
    /// The full list
    Full,
    /// The full list in gzip
    FullGzip,
    /// The same while 100 registrations a second change it
    FullGzipBusy,
    /// The full list while 100 registrations a second change it
    FullBusy,
    /// The delta of 100 changes, in gzip
    Delta,
    /// The same while 100 registrations a second change it
    DeltaBusy,
    /// One application
    Application,
    /// One VIP
    Vip,
    /// 1,000 renewals a second in an open loop
    RenewPaced,
    /// 10,000 renewals a second in an open loop
    RenewPacedFast,
    /// The size of the list in gzip
    GzipSize,
    /// Registrations while a list is being built
    Race,
    /// Watchers of a hundred changes a second
    Watch,
    /// From registration at one server to visible at another
    Propagation,
}

const FIRST_ANSWER: &str = "start to first answer";
const FIRST_REGISTRATION: &str = "register, the first time";
const MEMORY_IDLE: &str = "memory without instances";
const MEMORY_LOADED: &str = "memory when all have registered";
const MEMORY_AFTER: &str = "memory after reads in both forms";
const MEMORY_PEAK: &str = "memory at most";
const GZIP_LIST: &str = "full list in gzip";
const GZIP_ONE_SHOT: &str = "full list in gzip, compressed in one go";
const MISSED: &str = "registrations while a list is built, missing from the next one";
const PROPAGATION_SINGLE: &str = "register at one server to answered by its peer";
const PROPAGATION_LIST: &str = "register at one server to listed by its peer";

/// Rows of slices on one server of each kind, in the order of a round: first those that need to know what is registered.
const SLICES: [Row; 15] = [
    Row::Renew,
    Row::Batch,
    Row::RenewPaced,
    Row::RenewPacedFast,
    Row::Full,
    Row::FullGzip,
    Row::Application,
    Row::Vip,
    Row::Delta,
    Row::DeltaBusy,
    Row::FullBusy,
    Row::FullGzipBusy,
    Row::Register,
    Row::GzipSize,
    Row::Race,
];
/// What is measured of Java in so many rounds only, for each slice of it needs another one before; but for what is compared.
const JAVA_ROUNDS: usize = 3;
const WATCH: watch::Size = watch::Size {
    watchers: 200,
    rate: 100,
    seconds: 5,
};

impl Row {
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Life => FIRST_ANSWER,
            Self::Renew => "renew",
            Self::RenewOneApplication => "renew, all in one application",
            Self::RenewManyApplications => "renew, ten to an application",
            Self::Register => "register again, changed",
            Self::Batch => "heartbeat in a batch of 250",
            Self::Full => "full fetch, identity",
            Self::FullGzip => "full fetch, gzip",
            Self::FullGzipBusy => "full fetch, gzip, 100 changes/s",
            Self::FullBusy => "full fetch, identity, 100 changes/s",
            Self::Delta => "delta of 100 changes, gzip",
            Self::DeltaBusy => "delta of 100, gzip, 100 changes/s",
            Self::Application => "one application",
            Self::Vip => "one VIP",
            Self::RenewPaced => "1,000 renewals/s, open loop",
            Self::RenewPacedFast => "10,000 renewals/s, open loop",
            Self::GzipSize => GZIP_LIST,
            Self::Race => MISSED,
            Self::Watch => "watch",
            Self::Propagation => PROPAGATION_LIST,
        }
    }

    /// What is asked in a slice.
    const fn operation(self) -> Operation {
        match self {
            Self::Register => Operation::Register,
            Self::Batch => Operation::Batch,
            Self::Full | Self::FullBusy => Operation::FullIdentity,
            Self::FullGzip | Self::FullGzipBusy => Operation::FullGzip,
            Self::Delta | Self::DeltaBusy => Operation::DeltaGzip,
            Self::Application => Operation::Application,
            Self::Vip => Operation::Vip,
            Self::Renew
            | Self::RenewOneApplication
            | Self::RenewManyApplications
            | Self::RenewPaced
            | Self::RenewPacedFast
            | Self::Life
            | Self::GzipSize
            | Self::Race
            | Self::Watch
            | Self::Propagation => Operation::Renew,
        }
    }

    /// Whether requests of one kind are sent for some time.
    const fn is_slice(self) -> bool {
        !matches!(self, Self::GzipSize | Self::Race)
    }

    /// How many of the instances register again meanwhile, in turn, if any do.
    const fn changing(self, fleet: &Fleet) -> Option<usize> {
        if matches!(self, Self::FullBusy | Self::FullGzipBusy) {
            Some(fleet.instances)
        } else if matches!(self, Self::DeltaBusy) {
            // Those that are in the delta, so that it stays as long as it is.
            Some(slices::CHANGED)
        } else {
            None
        }
    }

    /// Requests a second, if they come at a fixed rate.
    const fn paced(self) -> Option<u32> {
        if matches!(self, Self::RenewPaced) {
            Some(1_000)
        } else if matches!(self, Self::RenewPacedFast) {
            Some(10_000)
        } else {
            None
        }
    }

    /// How many of the rounds a server takes part in.
    fn rounds(self, kind: Kind, all: usize) -> usize {
        let few = all.min(JAVA_ROUNDS);
        match (kind, self) {
            (Kind::Eureka, Self::GzipSize) | (Kind::Eureka | Kind::JavaFresh, Self::Race) => 1,
            (_, Self::GzipSize | Self::Race) => 0,
            (Kind::Limit, Self::RenewOneApplication | Self::RenewManyApplications) => 0,
            (Kind::Java | Kind::JavaFresh | Kind::RNacos, Self::FullBusy | Self::DeltaBusy) => 0,
            // It promises nothing about lists that are current, and its copy of the delta is 30 s old.
            (Kind::Java, Self::Delta) | (Kind::JavaFresh, Self::Life | Self::Renew | Self::Register) => 0,
            (Kind::Java, Self::Life | Self::Renew | Self::Register | Self::FullGzip | Self::FullGzipBusy)
            | (Kind::JavaFresh, Self::FullGzipBusy) => all,
            (Kind::Java, _) => few,
            (Kind::JavaFresh, Self::Application | Self::Delta | Self::FullGzip | Self::Vip) => few,
            (Kind::JavaFresh, _) => 0,
            (Kind::RNacos, Self::Life) => few,
            (Kind::RNacos, _) if self == Self::FullGzipBusy || !nacos::knows(self.operation()) => 0,
            (Kind::RNacos, _) => few,
            (Kind::Eureka | Kind::Limit, _) => all,
        }
    }
}

/// Everything that was measured, and under what conditions.
struct Measured<'a> {
    arguments: &'a Arguments,
    figures: Figures,
    absent: Vec<(Kind, String)>,
    java_settings: Vec<String>,
    /// How many slices a server took until it got no faster.
    warmed: Vec<String>,
    /// Slices that failed, and why.
    failed: Vec<String>,
    took: String,
}

/// Measures, and returns the page.
pub(super) fn measure(arguments: &Arguments) -> Result<String> {
    wrk::version()?;
    let stopwatch = Stopwatch::start();
    let fleet = Fleet {
        instances: arguments.instances,
        applications: arguments.applications,
    };
    let programs = Programs::find(&arguments.servers, &fleet, arguments.java_keeps_connections)?;
    let mut measured = Measured {
        arguments,
        figures: Figures::default(),
        absent: programs.absent.clone(),
        java_settings: programs.java_settings.clone(),
        warmed: Vec::new(),
        failed: Vec::new(),
        took: String::new(),
    };
    measured.lives(&programs, &fleet);
    measured.slices(&programs, &[(fleet, &SLICES)]);
    let spread = |applications| Fleet {
        applications,
        ..fleet
    };
    measured.slices(
        &programs,
        &[
            (spread(1), &[Row::RenewOneApplication]),
            (
                spread(arguments.instances.div_ceil(10)),
                &[Row::RenewManyApplications],
            ),
        ],
    );
    measured.others(&programs);
    measured.took = minutes(stopwatch.elapsed());
    if let Some(file) = &arguments.json {
        let text = serde_json::to_string_pretty(&page::json(&measured))?;
        fs::write(file, text).with_context(|| file.display().to_string())?;
    }
    Ok(page::page(&measured))
}

impl Measured<'_> {
    fn wants(&self, row: Row) -> bool {
        self.arguments.rows.is_empty() || self.arguments.rows.contains(&row)
    }

    /// Who takes part in a round, in the order of that round.
    fn turns(&self, programs: &Programs, round: usize) -> Vec<Kind> {
        let mut kinds = self.arguments.servers.clone();
        kinds.retain(|kind| programs.has(*kind));
        let first = round % kinds.len().max(1);
        kinds.rotate_left(first);
        kinds
    }

    fn lives(&mut self, programs: &Programs, fleet: &Fleet) {
        let rounds = self.arguments.rounds;
        for round in 0..rounds {
            for kind in self.turns(programs, round) {
                if self.wants(Row::Life) && round < Row::Life.rounds(kind, rounds) {
                    let life = life::measure(programs, kind, fleet, &mut self.figures);
                    self.note(kind, Row::Life, life);
                    println!("{}", page::life_line(&self.figures, kind));
                }
            }
        }
    }

    /// Rounds of slices on servers that live as long, one of each kind for each fleet.
    fn slices(&mut self, programs: &Programs, groups: &[(Fleet, &'static [Row])]) {
        let rounds = self.arguments.rounds;
        let mut generations = Generations::default();
        let mut contenders = Vec::new();
        for kind in self.turns(programs, 0) {
            for (fleet, rows) in groups {
                let mut rows = rows.to_vec();
                rows.retain(|row| self.wants(*row) && row.rounds(kind, rounds) > 0);
                if !rows.is_empty() {
                    let first = rows[0];
                    match Contender::new(programs, kind, *fleet, rows) {
                        Ok(contender) => contenders.push(contender),
                        Err(error) => self.note(kind, first, Err(error)),
                    }
                }
            }
        }
        for contender in contenders.iter().filter(|contender| contender.kind.warms_up()) {
            let first = contender.rows[0];
            let warmed = self.warm(contender, &mut generations);
            self.note(contender.kind, first, warmed);
        }
        let rows = groups.iter().flat_map(|(_, rows)| rows.iter().copied());
        for round in 0..rounds {
            self.round(&mut contenders, rows.clone(), round, &mut generations);
        }
    }

    fn warm(&mut self, contender: &Contender<'_>, generations: &mut Generations) -> Result<()> {
        let _turn = contender.subject.turn()?;
        let loops = contender
            .rows
            .iter()
            .filter(|row| row.is_slice() && row.paced().is_none());
        for row in loops {
            let stopwatch = Stopwatch::start();
            let connections = self.arguments.connections;
            let warmed = slices::warm(contender, *row, connections, generations).map(|[last, best]| {
                let line = format!(
                    "{}, {}: {} s, {last:.0}/s at last, {best:.0}/s at best",
                    contender.kind.name(),
                    row.title(),
                    stopwatch.elapsed().as_secs()
                );
                println!("warmed up: {line}");
                self.warmed.push(line);
            });
            self.note(contender.kind, *row, warmed);
        }
        Ok(())
    }

    fn round(
        &mut self,
        contenders: &mut [Contender<'_>],
        rows: impl Iterator<Item = Row>,
        round: usize,
        generations: &mut Generations,
    ) {
        let rounds = self.arguments.rounds;
        for contender in contenders.iter_mut() {
            let kind = contender.kind;
            if contender
                .rows
                .iter()
                .any(|row| row.is_slice() && round < row.rounds(kind, rounds))
            {
                let row = contender.rows[0];
                let done = contender.renew_registrations(generations.next());
                self.note(kind, row, done);
            }
        }
        for row in rows {
            for turn in 0..contenders.len() {
                let contender = &contenders[(round + turn) % contenders.len()];
                if contender.rows.contains(&row) && round < row.rounds(contender.kind, rounds) {
                    self.turn_or_again(contender, row, generations);
                }
            }
        }
    }

    /// What fails is tried once more.
    fn turn_or_again(&mut self, contender: &Contender<'_>, row: Row, generations: &mut Generations) {
        for _ in 0..2 {
            let done = self.turn(contender, row, generations);
            let is_done = done.is_ok();
            self.note(contender.kind, row, done);
            if is_done {
                return;
            }
        }
    }

    fn turn(&mut self, contender: &Contender<'_>, row: Row, generations: &mut Generations) -> Result<()> {
        let slicing = Slicing {
            seconds: self.arguments.seconds,
            connections: self.arguments.connections,
        };
        let _turn = contender.subject.turn()?;
        if row == Row::GzipSize {
            return once::gzip_size(contender, &mut self.figures);
        }
        if row == Row::Race {
            return once::race(contender, &mut self.figures);
        }
        let values = slices::measure(contender, row, slicing, generations)?.values;
        println!("{}", page::slice_line(row.title(), contender.kind, &values));
        self.figures.add(row.title(), contender.kind, &values);
        Ok(())
    }

    /// Two servers that replicate, and watchers.
    fn others(&mut self, programs: &Programs) {
        let kinds = self.turns(programs, 0);
        if self.wants(Row::Propagation) {
            for kind in [Kind::Eureka, Kind::Java] {
                if kinds.contains(&kind) {
                    let done = propagation::measure(&programs.eureka, kind, &mut self.figures);
                    self.note(kind, Row::Propagation, done);
                }
            }
        }
        if self.wants(Row::Watch) && kinds.contains(&Kind::Eureka) {
            let done = self.watch();
            self.note(Kind::Eureka, Row::Watch, done);
        }
    }

    fn watch(&mut self) -> Result<()> {
        for delivery in watch::deliveries(WATCH)? {
            let [median, p99, longest] = delivery.delays.map(f64::from);
            let values = [
                (Measure::Cpu, delivery.cpu),
                (Measure::P50, median),
                (Measure::P99, p99),
                (Measure::Longest, longest),
            ];
            self.figures.add(delivery.title, Kind::Eureka, &values);
        }
        Ok(())
    }

    /// A run of half an hour does not end for what fails, but the page tells.
    fn note(&mut self, kind: Kind, row: Row, done: Result<()>) {
        if let Err(error) = done {
            let line = format!("{}, {}: {error:#}", kind.name(), row.title());
            println!("failed: {line}");
            self.failed.push(line);
        }
    }
}
