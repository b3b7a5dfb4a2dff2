//! `cargo xtask fuzz`: the fuzz targets of the decoders.
//!
//! The targets are a package of their own in `registry-core/fuzz`, in libFuzzer's form. They are built here with the
//! compiler of the project instead of by cargo-fuzz, which needs a nightly one: coverage is a stable option, and the
//! address sanitizer, which is not, has little to find where `unsafe` is forbidden.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::ci::{cargo, execute};

const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Cdebug-assertions -Coverflow-checks";

/// Fuzz the decoders: search for inputs that break one, or replay the recorded ones.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Only these targets (files of registry-core/fuzz/fuzz_targets); all of them by default.
    targets: Vec<String>,
    /// How long to search, for each target. Without it the corpora are replayed.
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
    /// Replace each corpus by the smallest one that covers as much.
    #[arg(long, conflicts_with = "seconds")]
    minimize: bool,
}

/// What is done with a target's corpus.
#[derive(Clone, Copy)]
enum Work {
    Replay,
    Search(Duration),
    Minimize,
}

/// Runs the task.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let work = match (arguments.seconds, arguments.minimize) {
        (Some(seconds), _) => Work::Search(Duration::from_secs(seconds)),
        (None, true) => Work::Minimize,
        (None, false) => Work::Replay,
    };
    fuzz(&arguments.targets, work)
}

/// Whether the targets still compile; what their corpora hold is replayed by the tests.
pub(crate) fn check() -> Result<()> {
    let mut check = cargo();
    check.current_dir(directory()).args([
        "clippy",
        "--quiet",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ]);
    execute(check.env("CARGO_TARGET_DIR", crate::root().join("target/fuzz")))
}

/// Searches each target for as long as said.
pub(crate) fn search(duration: Duration) -> Result<()> {
    fuzz(&[], Work::Search(duration))
}

fn fuzz(wanted: &[String], work: Work) -> Result<()> {
    let directory = directory();
    let targets: Vec<_> = targets(&directory)?
        .into_iter()
        .filter(|target| wanted.is_empty() || wanted.contains(target))
        .collect();
    if targets.is_empty() {
        bail!("no such target in {}", directory.display());
    }
    let programs = build(&directory)?;
    for target in targets {
        println!("fuzz: {target}");
        target_run(&directory, &programs.join(&target), &target, work).with_context(|| target.clone())?;
    }
    Ok(())
}

fn directory() -> PathBuf {
    crate::root().join("registry-core/fuzz")
}

fn targets(directory: &Path) -> Result<Vec<String>> {
    let listing = fs::read_dir(directory.join("fuzz_targets")).context("registry-core/fuzz/fuzz_targets")?;
    let mut names = Vec::new();
    for entry in listing {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.extend(name.strip_suffix(".rs").map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

fn build(directory: &Path) -> Result<PathBuf> {
    let target = host()?;
    let output = crate::root().join("target/fuzz");
    let mut build = cargo();
    build
        .current_dir(directory)
        .args(["build", "--quiet", "--release", "--bins", "--target", &target]);
    execute(build.env("RUSTFLAGS", COVERAGE).env("CARGO_TARGET_DIR", &output))?;
    Ok(output.join(target).join("release"))
}

/// A named target keeps the flags away from build scripts and macros.
fn host() -> Result<String> {
    let version = Command::new("rustc")
        .arg("-vV")
        .current_dir(crate::root())
        .output()?;
    let version = String::from_utf8(version.stdout)?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc -vV names no host")?.to_owned())
}

fn target_run(directory: &Path, program: &Path, target: &str, work: Work) -> Result<()> {
    let corpus = directory.join("corpus").join(target);
    fs::create_dir_all(&corpus)?;
    let findings = directory.join("artifacts").join(target);
    fs::create_dir_all(&findings)?;
    let mut run = Command::new(program);
    run.current_dir(directory)
        .args(["-rss_limit_mb=1024", "-timeout=10", "-print_final_stats=1"])
        .arg(format!("-artifact_prefix={}/", findings.display()));
    match work {
        Work::Replay => execute(run.arg("-runs=0").arg(&corpus)),
        Work::Search(duration) => {
            let working = crate::root().join("target/fuzz/corpus").join(target);
            fs::create_dir_all(&working)?;
            execute(
                run.arg(format!("-max_total_time={}", duration.as_secs()))
                    .args([&working, &corpus]),
            )
        }
        Work::Minimize => {
            let working = crate::root().join("target/fuzz/corpus").join(target);
            fs::create_dir_all(&working)?;
            let smallest = crate::root().join("target/fuzz/smallest").join(target);
            if smallest.exists() {
                fs::remove_dir_all(&smallest)?;
            }
            fs::create_dir_all(&smallest)?;
            execute(run.arg("-merge=1").args([&smallest, &corpus, &working]))?;
            fs::remove_dir_all(&corpus)?;
            fs::create_dir_all(&corpus)?;
            for entry in fs::read_dir(&smallest)? {
                let entry = entry?;
                fs::copy(entry.path(), corpus.join(entry.file_name()))?;
            }
            Ok(())
        }
    }
}
