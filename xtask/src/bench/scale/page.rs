//! The figures as a page of Markdown.

use std::fmt::{self, Write};

use super::criteria::cores_at_full_rate;
use super::figures::{During, Figures, Latency, Measured, Sent};
use crate::stopwatch::minutes;

pub(super) fn write(measured: &Measured) -> String {
    let mut page = String::new();
    write_all(measured, &mut page).expect("a String takes all");
    page
}

/// What was found with one size, to be read while the next is measured.
pub(super) fn of_size(figures: &Figures) -> String {
    let mut page = String::new();
    write_tables(std::slice::from_ref(figures), &mut page).expect("a String takes all");
    page
}

fn write_all(measured: &Measured, page: &mut String) -> fmt::Result {
    let took = std::time::Duration::from_secs_f64(measured.took_seconds);
    writeln!(
        page,
        "{}. {} renewals a second in open loops, {} rounds of {} s; the run took {} minutes.\n",
        measured.machine,
        measured.rate,
        measured.rounds,
        measured.seconds,
        minutes(took)
    )?;
    write_criteria(measured, page)?;
    write_tables(&measured.sizes, page)?;
    for failure in &measured.failures {
        writeln!(page, "\nNot measured: {failure}")?;
    }
    Ok(())
}

fn write_tables(sizes: &[Figures], page: &mut String) -> fmt::Result {
    write_costs(sizes, page)?;
    write_fetches(sizes, page)?;
    write_lookups(sizes, page)?;
    write_pauses(sizes, page)?;
    write_memory(sizes, page)?;
    write_starts(sizes, page)
}

fn write_criteria(measured: &Measured, page: &mut String) -> fmt::Result {
    writeln!(page, "| criterion | figure | at most | |\n|---|--:|--:|---|")?;
    for criterion in &measured.criteria {
        let met = match criterion.met {
            Some(true) => "met",
            Some(false) => "**NOT MET**",
            None => "not measured",
        };
        writeln!(
            page,
            "| {} | {} | {} | {met} |",
            criterion.what, criterion.figure, criterion.bound
        )?;
    }
    let large = measured.sizes.iter().max_by_key(|figures| figures.size.instances);
    if let Some([open, closed]) = large.and_then(cores_at_full_rate) {
        writeln!(
            page,
            "\nExtrapolated: a million instances that renew every 30 s are 33,333 renewals a second. They would take the server \
             {open:.2} cores at the cost of the open loop with its fetches, {closed:.2} at that of the closed loop of {}.",
            large.map_or(0, |large| large.size.instances)
        )?;
    }
    Ok(())
}

fn write_costs(sizes: &[Figures], page: &mut String) -> fmt::Result {
    writeln!(
        page,
        "\n| closed loop | instances in applications | server | CPU us each | answers/s | p50 us | p99 us | p99.9 us |\n\
         |---|--:|---|--:|--:|--:|--:|--:|"
    )?;
    for row in 0..sizes.first().map_or(0, |figures| figures.costs.len()) {
        for figures in sizes {
            let cost = &figures.costs[row];
            let Latency { p50, p99, p999, .. } = cost.latency;
            writeln!(
                page,
                "| {} | {} | {} | {:.1} | {:.0} | {p50} | {p99} | {p999} |",
                cost.what, figures.size, cost.server, cost.cpu_us, cost.per_second
            )?;
        }
    }
    Ok(())
}

fn write_fetches(sizes: &[Figures], page: &mut String) -> fmt::Result {
    writeln!(
        page,
        "\n| full fetch | instances in applications | MB | first: ms | CPU ms | again: ms | CPU ms | after one change: ms | CPU ms |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|"
    )?;
    for form in sizes.first().map_or(&[][..], |figures| &figures.fetches) {
        if form.when != "first" {
            continue;
        }
        for figures in sizes {
            let mut cells = String::new();
            let mut bytes = 0;
            for when in ["first", "again", "after one change"] {
                let is_it = |fetch: &&super::figures::Fetch| fetch.form == form.form && fetch.when == when;
                match figures.fetches.iter().find(is_it) {
                    Some(fetch) => {
                        let (millis, cpu) = (fetch.spent.seconds * 1e3, fetch.spent.cpu_seconds * 1e3);
                        write!(cells, " {millis:.1} | {cpu:.1} |")?;
                        bytes = fetch.bytes;
                    }
                    None => cells += " | |",
                }
            }
            let megabytes = bytes as f64 / 1e6;
            writeln!(
                page,
                "| {} | {} | {megabytes:.1} |{cells}",
                form.form, figures.size
            )?;
        }
    }
    Ok(())
}

fn write_lookups(sizes: &[Figures], page: &mut String) -> fmt::Result {
    writeln!(
        page,
        "\n| read after a change | instances in applications | bytes | p50 us | p99 us | longest us |\n|---|--:|--:|--:|--:|--:|"
    )?;
    for row in 0..sizes.first().map_or(0, |figures| figures.lookups.len()) {
        for figures in sizes {
            let lookup = &figures.lookups[row];
            let Latency {
                p50, p99, longest, ..
            } = lookup.latency;
            writeln!(
                page,
                "| {} | {} | {} | {p50} | {p99} | {longest} |",
                lookup.what, figures.size, lookup.bytes
            )?;
        }
    }
    Ok(())
}

fn write_pauses(sizes: &[Figures], page: &mut String) -> fmt::Result {
    writeln!(
        page,
        "\n| open loop | while | instances in applications | server | sent | CPU us each | p50 us | p99 us | p99.9 us | longest us |\n\
         |---|---|--:|---|--:|--:|--:|--:|--:|--:|"
    )?;
    for figures in sizes {
        for pause in &figures.pauses {
            let what = match pause.what {
                Sent::Renewals => "renewals",
                Sent::Batches => "peer's batches of 250",
            };
            let during = match pause.during {
                During::Nothing => "nothing",
                During::Fetches => "full gzip fetch every 5 s",
                During::Changes => "the same, 100 changes/s",
                During::FirstFetch if pause.what == Sent::Batches => "first gzip fetches, four forms",
                During::FirstFetch => "first plain fetch of a form",
                During::Eviction => "a tenth is evicted",
            };
            let Latency {
                p50,
                p99,
                p999,
                longest,
            } = pause.latency;
            // Beside a first fetch it is the fetch that takes most of it.
            let is_told = pause.during != During::FirstFetch;
            let cpu = if is_told {
                format!("{:.1}", pause.cpu_us)
            } else {
                String::new()
            };
            writeln!(
                page,
                "| {what} | {during} | {} | {} | {} | {cpu} | {p50} | {p99} | {p999} | {longest} |",
                figures.size, pause.server, pause.count
            )?;
        }
    }
    Ok(())
}

fn write_memory(sizes: &[Figures], page: &mut String) -> fmt::Result {
    writeln!(
        page,
        "\n| memory, MiB | idle | filled | bytes each | with gzip | with JSON too | bytes each | most until then | most of all |\n\
         |--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    )?;
    for figures in sizes {
        let memory = &figures.memory;
        let mebibytes = |bytes: u64| bytes as f64 / 1_048_576.0;
        let each = |bytes: u64| bytes.saturating_sub(memory.idle) / figures.size.instances as u64;
        writeln!(
            page,
            "| {} | {:.0} | {:.0} | {} | {:.0} | {:.0} | {} | {:.0} | {:.0} |",
            figures.size,
            mebibytes(memory.idle),
            mebibytes(memory.filled),
            each(memory.filled),
            mebibytes(memory.with_gzip),
            mebibytes(memory.with_json),
            each(memory.with_json),
            mebibytes(memory.peak_with_json),
            mebibytes(memory.peak)
        )?;
    }
    Ok(())
}

fn write_starts(sizes: &[Figures], page: &mut String) -> fmt::Result {
    writeln!(
        page,
        "\n| instances in applications | filled by batches: s | CPU us each | a second server copies all: s | its CPU s | its peer's CPU s | its MiB | at most |\n\
         |--:|--:|--:|--:|--:|--:|--:|--:|"
    )?;
    for figures in sizes {
        let fill = &figures.fill;
        let cpu_us = fill.cpu_seconds * 1e6 / figures.size.instances as f64;
        write!(page, "| {} | {:.1} | {cpu_us:.1} |", figures.size, fill.seconds)?;
        let Some(bootstrap) = &figures.bootstrap else {
            writeln!(page, " | | | | |")?;
            continue;
        };
        writeln!(
            page,
            " {:.1} | {:.1} | {:.1} | {:.0} | {:.0} |",
            bootstrap.seconds,
            bootstrap.own_cpu_seconds,
            bootstrap.peer_cpu_seconds,
            bootstrap.resident as f64 / 1_048_576.0,
            bootstrap.peak as f64 / 1_048_576.0
        )?;
    }
    Ok(())
}
