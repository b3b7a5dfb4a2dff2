//! `cargo xtask bench scale`: what requests, changes, fetches and starts cost as the registry grows, and who waits.
//!
//! For each size one server is filled and asked everything, so that what is left behind by one measurement meets the
//! next, as in a node that runs for long. The limit stands beside it where the project promises a ratio to it.

mod bootstrap;
mod costs;
mod criteria;
mod figures;
mod fleet;
mod node;
mod page;
mod pauses;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::runtime::Runtime;

use self::figures::{During, Fetch, Figures, Measured, Memory, Pause, Sent};
use self::fleet::{Form, Size};
use self::node::Node;
use super::open_loop::Timed;
use super::subject::Subject;
use crate::stopwatch::{Stopwatch, minutes};

/// What the size of a registry costs, up to a million instances.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// Instances, or instances:applications.
    #[arg(long, value_delimiter = ',', default_values = ["10000", "10000:1", "100000", "1000000"])]
    sizes: Vec<Size>,
    /// Renewals a second in open loops.
    #[arg(long, default_value_t = 10_000)]
    rate: u32,
    /// How often the server and the limit take turns with the largest size.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Length of one measurement.
    #[arg(long, default_value_t = 8)]
    seconds: u64,
    /// Write all figures into this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Put the figures into docs/benchmarks.md.
    #[arg(long)]
    write: bool,
}

/// Measures, and prints what it found.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let stopwatch = Stopwatch::start();
    fs::create_dir_all(directory())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (mut sizes, mut failures) = (Vec::new(), Vec::new());
    for size in &arguments.sizes {
        println!("{} {size} applications", minutes(stopwatch.elapsed()));
        let is_largest = arguments
            .sizes
            .iter()
            .all(|other| other.instances <= size.instances);
        let rounds = if is_largest { arguments.rounds } else { 1 };
        match measure(&runtime, *size, rounds, arguments, &mut failures) {
            Ok(figures) => sizes.push(figures),
            Err(error) => failures.push(format!("{size} applications: {error:#}")),
        }
    }
    let mut measured = Measured {
        machine: super::report::machine(),
        settings: node::SETTINGS.map(String::from).to_vec(),
        rate: arguments.rate,
        rounds: arguments.rounds,
        seconds: arguments.seconds,
        took_seconds: stopwatch.elapsed().as_secs_f64(),
        sizes,
        criteria: Vec::new(),
        failures,
    };
    measured.criteria = criteria::examine(&measured);
    let page = page::write(&measured);
    println!("\n{page}");
    if let Some(file) = &arguments.json {
        fs::write(file, serde_json::to_vec_pretty(&measured)?).with_context(|| file.display().to_string())?;
    }
    ensure!(measured.failures.is_empty(), "{}", measured.failures.join("; "));
    if arguments.write {
        super::report::write("scale", &page)?;
    }
    Ok(())
}

/// Everything about one size.
fn measure(
    runtime: &Runtime,
    size: Size,
    rounds: usize,
    arguments: &Arguments,
    failures: &mut Vec<String>,
) -> Result<Figures> {
    let duration = Duration::from_secs(arguments.seconds);
    let node = Node::filled(runtime, size)?;
    let mut memory = Memory {
        idle: node.idle_bytes,
        filled: node.server.resident_bytes()?,
        ..Memory::default()
    };

    let (mut fetches, mut batches) = (Vec::new(), Batches::default());
    fetches.push(batches.beside_first(&node, arguments.rate, Form::GZIP)?);
    memory.with_gzip = node.server.resident_bytes()?;
    fetches.push(batches.beside_first(&node, arguments.rate, Form::PLAIN)?);
    memory.with_json = node.server.resident_bytes()?;
    memory.peak_with_json = node.server.resident_peak_bytes()?;
    for form in [Form::GZIP, Form::PLAIN] {
        fetches.extend(costs::fetches(&node, form)?);
    }
    let limit = limit(&node)?;
    let costs = costs::loops(&node, &limit, duration)?;
    let lookups = costs::lookups(&node)?;
    for form in Form::OTHERS {
        fetches.push(batches.beside_first(&node, arguments.rate, form)?);
    }
    let mut pauses = vec![batches.pause(&node)];
    pauses.extend(open_loops(&node, &limit, rounds, arguments)?);
    drop(limit);
    let mut or_why = |what: &str, error: anyhow::Error| failures.push(format!("{size}: {what}: {error:#}"));
    let bootstrap = bootstrap::measure(&node)
        .map_err(|error| or_why("a second server", error))
        .ok();
    match pauses::eviction(&node, arguments.rate) {
        Ok(pause) => pauses.push(pause),
        Err(error) => or_why("eviction", error),
    }
    memory.peak = node.server.resident_peak_bytes()?;
    let figures = Figures {
        size,
        fill: node.fill,
        memory,
        costs,
        fetches,
        lookups,
        pauses,
        bootstrap,
    };
    println!("{}", page::of_size(&figures));
    Ok(figures)
}

/// Renewals at a fixed rate, beside nothing, then beside more and more; where there is a bound the limit takes its turns.
fn open_loops(node: &Node<'_>, limit: &Subject, rounds: usize, arguments: &Arguments) -> Result<Vec<Pause>> {
    let (rate, duration) = (arguments.rate, Duration::from_secs(arguments.seconds));
    let renewals = |subject, during| pauses::renewals(node, subject, rate, during, duration);
    let mut all = vec![
        renewals(limit, During::Nothing)?,
        renewals(&node.server, During::Nothing)?,
    ];
    for round in 0..rounds {
        let mut subjects = [limit, &node.server];
        subjects.rotate_left(round % 2);
        for subject in subjects {
            all.push(renewals(subject, During::Fetches)?);
        }
    }
    all.push(renewals(&node.server, During::Changes)?);
    let (timed, spent, _) = pauses::first_fetch(node, Sent::Renewals, rate, Form::PLAIN_COMPACT)?;
    all.push(pauses::pause(
        Sent::Renewals,
        During::FirstFetch,
        &node.server,
        &timed,
        spent,
    ));
    Ok(all)
}

/// The limit, which serves what the server answers to a full compressed fetch. Nobody fetches anything else from it.
fn limit(node: &Node<'_>) -> Result<Subject> {
    let mut body = Vec::new();
    node.ask(&Form::GZIP.request("/eureka/apps"), Some(&mut body))?;
    let [list, nothing] = ["scale-list", "scale-nothing"].map(|name| directory().join(name));
    fs::write(&list, body)?;
    fs::write(&nothing, "")?;
    Subject::limit(&[list, nothing.clone(), nothing])
}

/// Where what the limit serves stands, and what the servers log.
fn directory() -> PathBuf {
    crate::root().join("target/bench")
}

/// A peer's batches beside the first fetches of a form, over all forms.
#[derive(Default)]
struct Batches {
    timed: Timed,
    seconds: f64,
    cpu_seconds: f64,
}

impl Batches {
    fn beside_first(&mut self, node: &Node<'_>, rate: u32, form: Form) -> Result<Fetch> {
        let (timed, spent, bytes) = pauses::first_fetch(node, Sent::Batches, rate, form)?;
        if form.gzip {
            self.timed.add(timed);
            self.seconds += spent.seconds;
            self.cpu_seconds += spent.cpu_seconds;
        }
        Ok(Fetch {
            form: form.title,
            when: "first",
            count: 1,
            bytes,
            spent,
        })
    }

    fn pause(&self, node: &Node<'_>) -> Pause {
        let spent = figures::Spent {
            seconds: self.seconds,
            cpu_seconds: self.cpu_seconds,
        };
        pauses::pause(
            Sent::Batches,
            During::FirstFetch,
            &node.server,
            &self.timed,
            spent,
        )
    }
}
