//! `cargo xtask bench client`: how soon a consumer is told of a registration, and what ten thousand clients that only
//! register cost.

mod fleet;
mod latency;

use std::fmt::Write;

use anyhow::Result;

use self::fleet::Measured;
use super::delays::quantile;
use super::report::machine;

pub(super) use self::fleet::be;

/// Measures both.
pub(super) fn measure(clients: usize) -> Result<String> {
    let delays = [latency::measure(true)?, latency::measure(false)?];
    let fleet = fleet::measure(clients)?;
    println!("{fleet:?}");
    let mut page = format!(
        "{}. {} registrations, {} a second; polling each {} s.\n\n",
        machine(),
        latency::CHANGES,
        latency::RATE,
        latency::POLL.as_secs_f64()
    );
    write(&mut page, &delays, &fleet).expect("a String takes all");
    Ok(page)
}

fn write(page: &mut String, delays: &[Vec<u32>; 2], fleet: &Measured) -> std::fmt::Result {
    writeln!(
        page,
        "| from registration to callback | median ms | p99 ms | longest ms |\n|---|--:|--:|--:|"
    )?;
    for (name, delays) in ["change feed", "polling"].into_iter().zip(delays) {
        let millis = |share| f64::from(quantile(delays, share)) / 1e3;
        writeln!(
            page,
            "| {name} | {:.2} | {:.2} | {:.2} |",
            millis(0.5),
            millis(0.99),
            millis(1.0)
        )?;
    }
    let Measured {
        clients,
        alone,
        registered,
        renewed,
        left,
        server_seconds,
        server_bytes,
    } = fleet;
    let interval = fleet::INTERVAL.as_secs();
    let mebibytes = |bytes: u64| bytes as f64 / 1_048_576.0;
    writeln!(
        page,
        "\n| {clients} clients, one process, one pool | took s | CPU of them, s | CPU of the server, s | memory of them, MiB | sockets |\n\
         |---|--:|--:|--:|--:|--:|"
    )?;
    writeln!(
        page,
        "| before there is one | | | | {:.1} | |",
        mebibytes(alone.bytes)
    )?;
    let rows = [
        (
            "all registered",
            registered.seconds,
            registered.cpu,
            registered.bytes,
            registered.sockets,
        ),
        (
            "a renewal interval later",
            interval as f64,
            renewed.cpu,
            renewed.bytes,
            renewed.sockets,
        ),
        ("all left", left.seconds, left.cpu, left.peak_bytes, 0),
    ];
    for ((name, seconds, cpu, bytes, sockets), server) in rows.into_iter().zip(server_seconds) {
        let (memory, sockets) = match sockets {
            0 => (format!("{:.1} at most", mebibytes(bytes)), String::new()),
            _ => (format!("{:.1}", mebibytes(bytes)), sockets.to_string()),
        };
        writeln!(
            page,
            "| {name} | {seconds:.1} | {cpu:.2} | {server:.2} | {memory} | {sockets} |"
        )?;
    }
    writeln!(
        page,
        "\n{} renewals in those {interval} s; the server's memory then was {:.1} MiB.",
        renewed.renewals,
        mebibytes(*server_bytes)
    )
}
