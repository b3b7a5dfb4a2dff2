//! `cargo xtask instructions`: how many instructions each of the hot paths takes, beside how many it took when that was
//! recorded.
//!
//! Valgrind counts what the package `instructions` does when it runs an operation so many times, and three times as many;
//! the difference is the operation's own. Unlike time, the count is the same on a busy machine: it depends on the
//! compiler, which `rust-toolchain.toml` pins, and a little on the C library, of which the plain memory functions are
//! asked for, whatever the processor has.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::ci::cargo;

/// So much more than recorded is too much.
const TOLERANCE: f64 = 0.05;
/// Of docs/benchmarks.md.
const SECTION: &str = "instructions";
/// How often an operation runs in the longer of two runs, in multiples of the shorter one.
const LONGER: u64 = 3;
const HEADER: &str = "\
# Instructions that one item of an operation takes: written by `cargo xtask instructions --write`, compared by
# `cargo xtask instructions`. The operations are those of the micro-benchmarks, each with so many instances, in a run that
# does it so many times, and one that does it three times as often.

";

/// Count the instructions of the hot paths, and fail if one takes 5 % more than recorded.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Only operations whose name contains this.
    only: Option<String>,
    /// Record the counts, also in docs/benchmarks.md.
    #[arg(long, conflicts_with = "only")]
    write: bool,
}

/// What was recorded, and with what.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Record {
    compiler: String,
    libc: String,
    operation: Vec<Operation>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Operation {
    name: String,
    instances: u64,
    times: u64,
    instructions: u64,
}

/// What a count is beside the recorded one.
#[derive(Debug, Eq, PartialEq)]
enum Verdict {
    Same,
    Above,
    Below,
}

/// Runs the task.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    valgrind()?;
    let mut record = read()?;
    let program = build()?;
    println!(
        "{:>12} {:>12} {:>8}  instructions of one",
        "recorded", "now", "change"
    );
    let (mut above, mut below) = (Vec::new(), Vec::new());
    for operation in &mut record.operation {
        if !arguments
            .only
            .as_ref()
            .is_none_or(|only| operation.name.contains(only))
        {
            continue;
        }
        let now = count(&program, operation).with_context(|| operation.name.clone())?;
        let change = 100.0 * (now as f64 / operation.instructions as f64 - 1.0);
        let Operation {
            name,
            instructions: before,
            ..
        } = &*operation;
        println!("{before:>12} {now:>12} {change:>+7.1}%  {name}");
        match verdict(*before, now) {
            Verdict::Above => above.push(name.clone()),
            Verdict::Below => below.push(name.clone()),
            Verdict::Same => {}
        }
        operation.instructions = now;
    }
    let (compiler, libc) = (compiler()?, libc()?);
    if arguments.write {
        (record.compiler, record.libc) = (compiler, libc);
        fs::write(path(), format!("{HEADER}{}", toml::to_string(&record)?))?;
        crate::bench::report::write(SECTION, &table(&record))?;
        println!("written to {} and docs/benchmarks.md", path().display());
        return Ok(());
    }
    for (what, then, now) in [
        ("compiler", &record.compiler, &compiler),
        ("C library", &record.libc, &libc),
    ] {
        if then != now {
            println!("the {what} was `{then}` when that was recorded, and is `{now}`");
        }
    }
    if !below.is_empty() {
        println!(
            "{} took more: record the gain with `cargo xtask instructions --write`",
            below.join("; ")
        );
    }
    if !above.is_empty() {
        println!(
            "see where they go: valgrind --tool=callgrind {} NAME INSTANCES TIMES",
            program.display()
        );
        bail!(
            "more than {} % above what is recorded: {}. If it must be so, say why and record it with \
             `cargo xtask instructions --write`",
            TOLERANCE * 100.0,
            above.join("; ")
        );
    }
    Ok(())
}

fn verdict(before: u64, after: u64) -> Verdict {
    let (before, after) = (before as f64, after as f64);
    if after > before * (1.0 + TOLERANCE) {
        Verdict::Above
    } else if after < before * (1.0 - TOLERANCE) {
        Verdict::Below
    } else {
        Verdict::Same
    }
}

/// The counts as docs/benchmarks.md shows them.
fn table(record: &Record) -> String {
    let mut table = format!("{}, {}.\n\n", record.compiler, record.libc);
    table += "| operation | instances | instructions of one |\n|---|--:|--:|\n";
    for operation in &record.operation {
        let Operation {
            name,
            instances,
            instructions,
            ..
        } = operation;
        table += &format!("| {name} | {instances} | {instructions} |\n");
    }
    table
}

fn path() -> PathBuf {
    crate::root().join("xtask/instructions/recorded.toml")
}

fn read() -> Result<Record> {
    let text = fs::read_to_string(path()).context("xtask/instructions/recorded.toml")?;
    toml::from_str(&text).context("xtask/instructions/recorded.toml")
}

fn valgrind() -> Result<()> {
    let found = Command::new("valgrind")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    ensure!(
        found.is_ok_and(|status| status.success()),
        "there is no valgrind, so nothing was counted: install the package of that name"
    );
    Ok(())
}

/// The release build of the program, from wherever cargo puts it.
fn build() -> Result<PathBuf> {
    let built = cargo()
        .args(["build", "--release", "--package", "instructions"])
        .arg("--message-format=json-render-diagnostics")
        // With it the compiler optimises otherwise.
        .env("CARGO_INCREMENTAL", "0")
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(
        built.status.success(),
        "the program whose instructions are counted does not build"
    );
    for line in String::from_utf8(built.stdout)?.lines() {
        let message: serde_json::Value = serde_json::from_str(line)?;
        if let Some(program) = message["executable"].as_str() {
            return Ok(program.into());
        }
    }
    bail!("cargo names no program")
}

/// Instructions of one item: both runs go side by side.
fn count(program: &Path, operation: &Operation) -> Result<u64> {
    let directory = tempfile::tempdir()?;
    let [shorter, longer] = [operation.times, operation.times * LONGER].map(|times| {
        let output = directory.path().join(times.to_string());
        (start(program, operation, times, &output), output)
    });
    let (before, items) = end(shorter.0?, &shorter.1)?;
    let (after, _) = end(longer.0?, &longer.1)?;
    let runs = operation.times * (LONGER - 1);
    Ok(after.saturating_sub(before) / (runs * items))
}

fn start(program: &Path, operation: &Operation, times: u64, output: &Path) -> Result<Child> {
    Command::new("valgrind")
        .args(["--quiet", "--tool=cachegrind", "--cache-sim=no"])
        .arg(format!("--cachegrind-out-file={}", output.display()))
        .arg(program)
        .args([
            &operation.name,
            &operation.instances.to_string(),
            &times.to_string(),
        ])
        // What the C library chooses by the processor would make counts depend on the machine.
        .env(
            "GLIBC_TUNABLES",
            "glibc.cpu.hwcaps=-AVX2,-AVX2_Usable,-AVX,-ERMS,-FSRM",
        )
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("valgrind")
}

/// All instructions of a run, and the items that each time did.
fn end(run: Child, output: &Path) -> Result<(u64, u64)> {
    let ended = run.wait_with_output()?;
    let errors = String::from_utf8_lossy(&ended.stderr);
    ensure!(ended.status.success(), "{}: {errors}", ended.status);
    let items = String::from_utf8(ended.stdout)?.trim().parse()?;
    Ok((summary(&fs::read_to_string(output)?)?, items))
}

fn summary(counts: &str) -> Result<u64> {
    let summary = counts.lines().find_map(|line| line.strip_prefix("summary:"));
    let summary = summary.context("the file that valgrind wrote has no summary")?;
    Ok(summary.trim().parse()?)
}

fn compiler() -> Result<String> {
    first_line(Command::new("rustc").arg("--version").current_dir(crate::root()))
}

fn libc() -> Result<String> {
    first_line(Command::new("ldd").arg("--version"))
}

fn first_line(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{SECTION, Verdict, read, summary, table, verdict};

    #[test]
    fn five_percent_more_or_less_are_the_same() {
        assert_eq!(verdict(1_000, 1_050), Verdict::Same);
        assert_eq!(verdict(1_000, 950), Verdict::Same);
        assert_eq!(verdict(1_000, 1_051), Verdict::Above);
        assert_eq!(verdict(1_000, 949), Verdict::Below);
    }

    #[test]
    fn counts_are_what_valgrind_sums_up() {
        assert_eq!(
            summary("events: Ir\nfn=main\n1 5\nsummary: 1234\n").expect("a sum"),
            1234
        );
        assert!(summary("events: Ir\n").is_err());
    }

    #[test]
    fn what_the_issue_asks_for_is_recorded() {
        let record = read().expect("it can be read");
        for name in [
            "renew",
            "batch of heartbeats",
            "encode page, JSON",
            "decode registration, JSON",
        ] {
            let recorded = record.operation.iter().find(|operation| operation.name == name);
            assert!(
                recorded.is_some_and(|operation| operation.instructions > 0),
                "{name}"
            );
        }
    }

    #[test]
    fn the_page_says_what_is_recorded() {
        let page = fs::read_to_string(crate::root().join("docs/benchmarks.md")).expect("the page");
        let table = table(&read().expect("it can be read"));
        assert!(page.contains(&format!("<!-- {SECTION} -->\n{table}<!-- end of {SECTION} -->")));
    }
}
