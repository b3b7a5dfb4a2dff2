//! The figures as a page of Markdown, and as JSON.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::contenders::{JAVA_FRESH, JAVA_OPTIONS, version};
use super::criteria::judge;
use super::figures::{Figures, Measure, Spread};
use super::{
    FIRST_ANSWER, FIRST_REGISTRATION, GZIP_LIST, GZIP_ONE_SHOT, MEMORY_AFTER, MEMORY_IDLE, MEMORY_LOADED,
    MEMORY_PEAK, MISSED, Measured, PROPAGATION_LIST, PROPAGATION_SINGLE, Row,
};
use crate::bench::report::machine;
use crate::bench::subject::Kind;
use crate::bench::wrk;

/// Closed loops, in the order of the table.
const LOOPS: [&str; 14] = [
    FIRST_REGISTRATION,
    Row::Register.title(),
    Row::Renew.title(),
    Row::RenewOneApplication.title(),
    Row::RenewManyApplications.title(),
    Row::Batch.title(),
    Row::Full.title(),
    Row::FullBusy.title(),
    Row::FullGzip.title(),
    Row::FullGzipBusy.title(),
    Row::Delta.title(),
    Row::DeltaBusy.title(),
    Row::Application.title(),
    Row::Vip.title(),
];
const PACED: [&str; 2] = [Row::RenewPaced.title(), Row::RenewPacedFast.title()];
const MEMORY: [&str; 4] = [MEMORY_IDLE, MEMORY_LOADED, MEMORY_AFTER, MEMORY_PEAK];
const POM: &str = "xtask/cluster/spring/pom.xml";

/// One slice, while the run goes on.
pub(super) fn slice_line(title: &str, kind: Kind, values: &[(Measure, f64)]) -> String {
    let value = |wanted| {
        let found = values.iter().find(|(measure, _)| *measure == wanted);
        found.map_or(0.0, |(_, value)| *value)
    };
    format!(
        "{title:34} {:10} {:>9.2} us CPU each, {:>9.0}/s, p50 {:>7.0} us, p99 {:>7.0} us, others {:.2} cores",
        kind.name(),
        value(Measure::Cpu),
        value(Measure::Rate),
        value(Measure::P50),
        value(Measure::P99),
        value(Measure::Others)
    )
}

/// One life, likewise.
pub(super) fn life_line(figures: &Figures, kind: Kind) -> String {
    let mut line = format!("{:10}", kind.name());
    for what in [FIRST_ANSWER].iter().chain(&MEMORY) {
        for (measure, unit, divisor) in [(Measure::Delay, "ms", 1.0), (Measure::Bytes, "MiB", 1_048_576.0)] {
            if let Some(value) = figures.values(what, kind, measure).last() {
                write!(line, " {what}: {:.1} {unit};", value / divisor).expect("a String takes all");
            }
        }
    }
    line
}

/// Everything, for a program.
pub(super) fn json(measured: &Measured<'_>) -> Value {
    let arguments = measured.arguments;
    let criteria = judge(&measured.figures, arguments.instances);
    let criteria: Vec<_> = criteria
        .iter()
        .map(|criterion| {
            let [_, bound, _] = criterion.cells();
            json!({
                "criterion": criterion.text,
                "figure": criterion.figure.median,
                "least": criterion.figure.least,
                "most": criterion.figure.most,
                "bound": bound,
                "met": criterion.is_met(),
            })
        })
        .collect();
    let absent: Vec<_> = measured
        .absent
        .iter()
        .map(|(kind, why)| json!({ "server": kind.name(), "why": why }))
        .collect();
    json!({
        "conditions": conditions(measured),
        "rounds": arguments.rounds,
        "seconds": arguments.seconds,
        "instances": arguments.instances,
        "applications": arguments.applications,
        "connections": arguments.connections,
        "absent": absent,
        "warmed_up": measured.warmed,
        "failed": measured.failed,
        "figures": measured.figures.json(),
        "criteria": criteria,
    })
}

/// Everything, for docs/benchmarks.md.
pub(super) fn page(measured: &Measured<'_>) -> String {
    let mut page = conditions(measured);
    let written = write_page(&mut page, measured);
    written.expect("a String takes all");
    page
}

fn write_page(page: &mut String, measured: &Measured<'_>) -> std::fmt::Result {
    let figures = &measured.figures;
    write_loops(page, figures)?;
    write_ratios(page, figures)?;
    write_paced(page, figures)?;
    write_lives(page, figures)?;
    write_delays(page, figures)?;
    write_once(page, figures)?;
    let criteria = judge(figures, measured.arguments.instances);
    if !criteria.is_empty() {
        writeln!(page, "\n| promise | figure | bound | |\n|---|--:|--:|---|")?;
    }
    for criterion in criteria {
        let [figure, bound, verdict] = criterion.cells();
        writeln!(page, "| {} | {figure} | {bound} | {verdict} |", criterion.text)?;
    }
    Ok(())
}

fn write_loops(page: &mut String, figures: &Figures) -> std::fmt::Result {
    writeln!(
        page,
        "| what | server | CPU us each | answers/s | p50 ms | p99 ms | MB/s | CPU of others, cores |\n\
         |---|---|--:|--:|--:|--:|--:|--:|"
    )?;
    for what in LOOPS {
        for kind in figures.kinds(what) {
            let spread = |measure| figures.spread(what, kind, measure);
            let millis = |measure| cell(spread(measure), |value| precise(value / 1e3));
            writeln!(
                page,
                "| {what} | {} | {} | {} | {} | {} | {} | {} |",
                kind.name(),
                range(spread(Measure::Cpu), precise),
                range(spread(Measure::Rate), |value| format!("{value:.0}")),
                millis(Measure::P50),
                millis(Measure::P99),
                cell(spread(Measure::Throughput), |value| format!("{value:.0}")),
                cell(spread(Measure::Others), |value| format!("{value:.2}")),
            )?;
        }
    }
    Ok(())
}

fn write_ratios(page: &mut String, figures: &Figures) -> std::fmt::Result {
    let mut head = "\n| ours to theirs | server | CPU | rate |\n|---|---|--:|--:|\n";
    for what in LOOPS {
        for kind in figures.kinds(what).filter(|kind| *kind != Kind::Eureka) {
            let ratio = |measure| figures.ratio(what, measure, [Kind::Eureka, kind]);
            if ratio(Measure::Cpu).is_some() {
                writeln!(
                    page,
                    "{head}| {what} | {} | {} | {} |",
                    kind.name(),
                    range(ratio(Measure::Cpu), precise),
                    range(ratio(Measure::Rate), precise)
                )?;
                head = "";
            }
        }
    }
    Ok(())
}

fn write_paced(page: &mut String, figures: &Figures) -> std::fmt::Result {
    let mut head = "\n| open loop | server | CPU us each | answers/s | p50 ms | p99 ms | p99.9 ms | longest ms |\n\
                    |---|---|--:|--:|--:|--:|--:|--:|\n";
    for what in PACED {
        for kind in figures.kinds(what) {
            let spread = |measure| figures.spread(what, kind, measure);
            let millis = |measure| range(spread(measure), |value| precise(value / 1e3));
            writeln!(
                page,
                "{head}| {what} | {} | {} | {} | {} | {} | {} | {} |",
                kind.name(),
                range(spread(Measure::Cpu), precise),
                cell(spread(Measure::Rate), |value| format!("{value:.0}")),
                millis(Measure::P50),
                millis(Measure::P99),
                millis(Measure::P999),
                cell(spread(Measure::Longest), |value| precise(value / 1e3)),
            )?;
            head = "";
        }
    }
    Ok(())
}

fn write_lives(page: &mut String, figures: &Figures) -> std::fmt::Result {
    let mut head = "\n| server | start to first answer, ms | memory idle, MiB | with all instances, MiB \
                    | after reads in both forms, MiB | at most, MiB |\n|---|--:|--:|--:|--:|--:|\n";
    for kind in figures.kinds(FIRST_ANSWER) {
        let delay = figures.spread(FIRST_ANSWER, kind, Measure::Delay);
        write!(page, "{head}| {} | {} |", kind.name(), range(delay, precise))?;
        head = "";
        for what in MEMORY {
            let bytes = figures.spread(what, kind, Measure::Bytes);
            write!(page, " {} |", range(bytes, |value| precise(value / 1_048_576.0)))?;
        }
        writeln!(page)?;
    }
    Ok(())
}

/// Between servers, and to watchers.
fn write_delays(page: &mut String, figures: &Figures) -> std::fmt::Result {
    let mut head =
        "\n| delay | server | median ms | p99 ms | longest ms | CPU us each |\n|---|---|--:|--:|--:|--:|\n";
    let watching = crate::bench::watch::titles();
    for what in [PROPAGATION_SINGLE, PROPAGATION_LIST].into_iter().chain(watching) {
        for kind in figures.kinds(what) {
            let millis = |measure| {
                let spread = figures.spread(what, kind, measure);
                cell(spread, |value| precise(value / 1e3))
            };
            writeln!(
                page,
                "{head}| {what} | {} | {} | {} | {} | {} |",
                kind.name(),
                millis(Measure::P50),
                millis(Measure::P99),
                millis(Measure::Longest),
                cell(figures.spread(what, kind, Measure::Cpu), precise)
            )?;
            head = "";
        }
    }
    Ok(())
}

fn write_once(page: &mut String, figures: &Figures) -> std::fmt::Result {
    let mut head = "\n| | server | |\n|---|---|--:|\n";
    let rows = [
        (GZIP_LIST, Measure::Bytes, " bytes"),
        (GZIP_ONE_SHOT, Measure::Bytes, " bytes"),
        (MISSED, Measure::Missing, " of 20"),
    ];
    for (what, measure, unit) in rows {
        for kind in figures.kinds(what) {
            let value = cell(figures.spread(what, kind, measure), |value| format!("{value:.0}"));
            writeln!(page, "{head}| {what} | {} | {value}{unit} |", kind.name())?;
            head = "";
        }
    }
    Ok(())
}

/// Machine, versions, and what is left out.
fn conditions(measured: &Measured<'_>) -> String {
    let arguments = measured.arguments;
    let mut text = format!(
        "{}. {} instances in {} applications, {} connections, {} rounds of slices of {} s; the run took {}.\n\n",
        machine(),
        arguments.instances,
        arguments.applications,
        arguments.connections,
        arguments.rounds,
        arguments.seconds,
        measured.took
    );
    let mut add = |line: String| {
        text.push_str("* ");
        text.push_str(&line);
        text.push('\n');
    };
    add(format!(
        "{}, commit {}",
        said("date", &["-u", "+%F %R UTC"]),
        said("git", &["describe", "--always", "--dirty"])
    ));
    add(format!(
        "{}; {}",
        said("rustc", &["--version"]),
        wrk::version().unwrap_or_default()
    ));
    let kinds = &arguments.servers;
    let is_there = |kind| kinds.contains(&kind) && measured.absent.iter().all(|(absent, _)| *absent != kind);
    if is_there(Kind::Java) || is_there(Kind::JavaFresh) {
        let virtual_machine = version(Path::new("java"), "-version").unwrap_or_default();
        add(format!(
            "java: Spring Cloud {} on Spring Boot {}, {virtual_machine}, `{}`, `{}`; java-fresh: with `{JAVA_FRESH}`, too",
            pinned("spring-cloud.version"),
            pinned("version"),
            JAVA_OPTIONS.join(" "),
            measured.java_settings.join("`, `")
        ));
    }
    if is_there(Kind::RNacos) {
        add("r-nacos: 0.8.8, its own API; it has no list of everything".to_owned());
    }
    for (kind, why) in &measured.absent {
        add(format!("{} was not measured: {why}", kind.name()));
    }
    for line in &measured.warmed {
        add(format!("warmed up: {line}"));
    }
    for line in &measured.failed {
        add(format!("failed: {}", line.replace('\n', " ")));
    }
    text.push('\n');
    text
}

/// The first line that a command says.
fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(crate::root())
        .output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let text = text.unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

/// What stands first in such an element of the Spring server's manifest.
fn pinned(element: &str) -> String {
    let manifest = fs::read_to_string(crate::root().join(POM)).unwrap_or_default();
    let (start, end) = (format!("<{element}>"), format!("</{element}>"));
    let inner = manifest
        .split_once(&start)
        .and_then(|(_, rest)| rest.split_once(&end));
    inner.map_or_else(String::new, |(inner, _)| inner.to_owned())
}

/// The median; nothing if there is none.
fn cell(spread: Option<Spread>, text: impl Fn(f64) -> String) -> String {
    spread.map_or_else(String::new, |spread| text(spread.median))
}

/// The median with least and most.
fn range(spread: Option<Spread>, text: impl Fn(f64) -> String) -> String {
    match spread {
        None => String::new(),
        Some(spread) if spread.count == 1 => text(spread.median),
        Some(spread) => {
            let [median, least, most] = [spread.median, spread.least, spread.most].map(text);
            format!("{median} ({least} to {most})")
        }
    }
}

/// Three digits that mean something.
fn precise(value: f64) -> String {
    let digits = match value.abs() {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        value if value >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        assert_eq!(
            [12345.6, 123.4, 12.34, 1.234, 0.1234].map(precise),
            ["12346", "123", "12.3", "1.23", "0.123"]
        );
    }

    #[test]
    fn a_page_shows_only_what_was_measured() {
        let mut figures = Figures::default();
        for rate in [1_000.0, 1_300.0, 1_200.0] {
            let values = [(Measure::Rate, rate), (Measure::Cpu, 10.0), (Measure::P50, 150.0)];
            figures.add(Row::Renew.title(), Kind::Eureka, &values);
        }
        let mut page = String::new();
        write_loops(&mut page, &figures).unwrap();
        write_ratios(&mut page, &figures).unwrap();
        write_paced(&mut page, &figures).unwrap();
        let rows: Vec<_> = page.lines().skip(2).collect();
        assert_eq!(
            rows,
            ["| renew | eureka | 10.0 (10.0 to 10.0) | 1200 (1000 to 1300) | 0.150 |  |  |  |"]
        );
    }

    #[test]
    fn the_pinned_versions_are_found() {
        for element in ["version", "spring-cloud.version"] {
            assert!(
                pinned(element).starts_with(|first: char| first.is_ascii_digit()),
                "{element}"
            );
        }
    }
}
