//! From start to end: how soon a server answers, how fast everybody registers the first time, and what memory it needs.

use std::time::Duration;

use anyhow::{Context, Result};

use super::contenders::Programs;
use super::figures::{Figures, Measure};
use super::{FIRST_ANSWER, FIRST_REGISTRATION, MEMORY_AFTER, MEMORY_IDLE, MEMORY_LOADED, MEMORY_PEAK, nacos};
use crate::bench::load;
use crate::bench::subject::{Kind, Subject};
use crate::bench::workload::{Fleet, Operation};

const CONNECTIONS: usize = 16;
/// Full fetches in each form: some seconds of what a virtual machine can send, so that its heap has grown to what it needs.
const FETCHES: usize = 1_000;
/// What a server frees or prepares right after it was asked something is done after this.
const REST: Duration = Duration::from_secs(1);

/// One life of one server.
pub(super) fn measure(programs: &Programs, kind: Kind, fleet: &Fleet, figures: &mut Figures) -> Result<()> {
    let (server, start) = programs.start(kind)?;
    figures.add(FIRST_ANSWER, kind, &[(Measure::Delay, start.as_secs_f64() * 1e3)]);
    std::thread::sleep(REST);
    figures.add(MEMORY_IDLE, kind, &[memory(&server)?]);
    if kind == Kind::Limit {
        return Ok(());
    }
    register(&server, kind, fleet, figures)?;
    std::thread::sleep(REST);
    figures.add(MEMORY_LOADED, kind, &[memory(&server)?]);
    if kind != Kind::RNacos {
        read(&server, fleet).context("reads in both forms")?;
        std::thread::sleep(REST);
        figures.add(MEMORY_AFTER, kind, &[memory(&server)?]);
    }
    let peak = server.resident_peak_bytes()? as f64;
    figures.add(MEMORY_PEAK, kind, &[(Measure::Bytes, peak)]);
    Ok(())
}

fn memory(server: &Subject) -> Result<(Measure, f64)> {
    Ok((Measure::Bytes, server.resident_bytes()? as f64))
}

/// Everybody registers, with a server that has done nothing yet.
fn register(server: &Subject, kind: Kind, fleet: &Fleet, figures: &mut Figures) -> Result<()> {
    let requests = if kind == Kind::RNacos {
        nacos::requests(Operation::Register, fleet, 0)
    } else {
        Operation::Register.requests(fleet, 0)
    };
    let count = requests.len();
    let before = server.cpu_seconds()?;
    let all = load::exchange_all(server.address, requests, count, CONNECTIONS);
    let answers = load::runtime()?.block_on(all)?;
    let cpu = (server.cpu_seconds()? - before) * 1e6 / answers.count as f64;
    figures.add(
        FIRST_REGISTRATION,
        kind,
        &[
            (Measure::Cpu, cpu),
            (Measure::Rate, answers.count as f64 / answers.seconds),
        ],
    );
    Ok(())
}

/// Everybody renews once, and the list is fetched in both forms.
fn read(server: &Subject, fleet: &Fleet) -> Result<()> {
    let runtime = load::runtime()?;
    for (operation, count) in [
        (Operation::Renew, fleet.instances),
        (Operation::FullIdentity, FETCHES),
        (Operation::FullGzip, FETCHES),
    ] {
        let requests = operation.requests(fleet, 0);
        runtime.block_on(load::exchange_all(server.address, requests, count, CONNECTIONS))?;
    }
    Ok(())
}
