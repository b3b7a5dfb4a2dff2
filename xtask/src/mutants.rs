//! `cargo xtask mutants`: plants the seeded bugs of a package, one after the other, and tells which of them its tests miss.
//!
//! The list is `tests/mutants.txt` of the package. The bugs are planted in a copy under `target/mutants`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::stopwatch::{Stopwatch, minutes};

/// Packages with a list, each with the packages of the workspace it needs.
const PACKAGES: [(&str, &[&str]); 6] = [
    ("registry-core", &[]),
    ("http-api", &["registry-core"]),
    ("grpc-api", &["registry-core"]),
    ("replication", &["registry-core"]),
    ("client", &["registry-core", "http-api"]),
    ("server", &["registry-core", "http-api", "replication", "client"]),
];
/// Tests that take longer than this hang because of the bug.
const LIMIT: Duration = Duration::from_secs(300);

/// Plant seeded bugs and see whether the tests notice them.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Only bugs whose description contains this.
    pub(crate) only: Option<String>,
}

/// One bug.
struct Mutant {
    description: String,
    file: String,
    before: String,
    after: String,
}

impl Mutant {
    /// The text of its file with the bug.
    fn plant(&self, right: &str) -> Result<String> {
        let found = right.matches(&self.before).count();
        ensure!(
            found == 1,
            "`{}` occurs {found} times in {}",
            self.before,
            self.file
        );
        Ok(right.replacen(&self.before, &self.after, 1))
    }
}

/// Runs the task.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut missed = Vec::new();
    for (package, needed) in PACKAGES {
        let list = crate::root().join(package).join("tests/mutants.txt");
        let list = fs::read_to_string(&list).with_context(|| list.display().to_string())?;
        let mut mutants = read(&list)?;
        if let Some(only) = &arguments.only {
            mutants.retain(|mutant| mutant.description.contains(only));
        }
        if mutants.is_empty() {
            continue;
        }
        let copy = Copy::new(package, needed)?;
        ensure!(copy.passes()?, "the tests of {package} fail without any bug");
        let missed_before = missed.len();
        for mutant in &mutants {
            let stopwatch = Stopwatch::start();
            let noticed = copy.notices(mutant).with_context(|| mutant.description.clone())?;
            let verdict = if noticed { "noticed" } else { "MISSED " };
            println!(
                "{} {verdict} {package}: {}",
                minutes(stopwatch.elapsed()),
                mutant.description
            );
            if !noticed {
                missed.push(mutant.description.clone());
            }
        }
        println!(
            "mutants: {package}: {} of {} noticed",
            mutants.len() + missed_before - missed.len(),
            mutants.len()
        );
    }
    ensure!(missed.is_empty(), "the tests miss {}", missed.join("; "));
    Ok(())
}

/// Blocks of four lines, `# description`, file, `- before` and `+ after`, between empty lines.
fn read(list: &str) -> Result<Vec<Mutant>> {
    let mut mutants = Vec::new();
    for block in list.split("\n\n").skip(1) {
        let lines: Vec<_> = block.trim_matches('\n').lines().collect();
        let [description, file, before, after] = lines[..] else {
            bail!("a block of {} lines: {block}", lines.len());
        };
        let field = |line: &str, mark: &str| {
            let text = line
                .strip_prefix(mark)
                .with_context(|| format!("{mark} is missing: {block}"))?;
            Ok::<_, anyhow::Error>(text.trim().to_owned())
        };
        mutants.push(Mutant {
            description: field(description, "#")?,
            file: file.to_owned(),
            before: field(before, "-")?,
            after: field(after, "+")?,
        });
    }
    Ok(mutants)
}

/// A workspace of the package and what it needs.
struct Copy {
    root: PathBuf,
    package: &'static str,
}

impl Copy {
    fn new(package: &'static str, needed: &[&str]) -> Result<Self> {
        let root = crate::root().join("target/mutants").join(package);
        if root.exists() {
            fs::remove_dir_all(&root)?;
        }
        fs::create_dir_all(&root)?;
        let members: Vec<_> = needed.iter().copied().chain([package]).collect();
        for member in &members {
            copy(&crate::root().join(member), &root.join(member))?;
        }
        fs::copy(crate::root().join("Cargo.lock"), root.join("Cargo.lock"))?;
        let manifest = fs::read_to_string(crate::root().join("Cargo.toml"))?;
        let mut manifest: toml::Table = manifest.parse()?;
        let workspace = manifest.get_mut("workspace").and_then(toml::Value::as_table_mut);
        let workspace = workspace.context("Cargo.toml has no [workspace]")?;
        workspace.remove("default-members");
        workspace.insert("members".to_owned(), members.into());
        fs::write(root.join("Cargo.toml"), toml::to_string(&manifest)?)?;
        Ok(Self { root, package })
    }

    /// Whether the tests fail with this bug.
    fn notices(&self, mutant: &Mutant) -> Result<bool> {
        let path = self.root.join(self.package).join(&mutant.file);
        let right = fs::read_to_string(&path).with_context(|| mutant.file.clone())?;
        fs::write(&path, mutant.plant(&right)?)?;
        let passes = self.passes();
        fs::write(&path, right)?;
        Ok(!passes?)
    }

    fn passes(&self) -> Result<bool> {
        for program in self.build()? {
            let tests = Command::new(program)
                .current_dir(self.root.join(self.package))
                .env("RUST_BACKTRACE", "0")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()?;
            if !ends_well(tests)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The programs of the tests. What does not compile is no bug that a test could notice.
    fn build(&self) -> Result<Vec<PathBuf>> {
        let built = crate::ci::cargo()
            .current_dir(self.root.join(self.package))
            .args([
                "test",
                "--quiet",
                "--no-run",
                "--all-features",
                "--message-format=json",
            ])
            .env("CARGO_TARGET_DIR", crate::root().join("target/mutants/build"))
            .env("RUSTFLAGS", "--cap-lints=allow")
            .output()?;
        ensure!(
            built.status.success(),
            "{}",
            String::from_utf8_lossy(&built.stderr)
        );
        let mut programs = Vec::new();
        for line in String::from_utf8(built.stdout)?.lines() {
            let message: serde_json::Value = serde_json::from_str(line)?;
            programs.extend(message["executable"].as_str().map(PathBuf::from));
        }
        ensure!(!programs.is_empty(), "there are no tests");
        Ok(programs)
    }
}

/// Whether the tests pass, and before the limit.
fn ends_well(mut tests: Child) -> Result<bool> {
    let stopwatch = Stopwatch::start();
    loop {
        if let Some(status) = tests.try_wait()? {
            return Ok(status.success());
        }
        if stopwatch.elapsed() > LIMIT {
            tests.kill()?;
            tests.wait()?;
            return Ok(false);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Copies a package without what was built in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_name() == "target" {
            continue;
        }
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{PACKAGES, read};
    use std::fs;

    #[test]
    fn every_listed_bug_can_be_planted() {
        for (package, _) in PACKAGES {
            let package = crate::root().join(package);
            let list = fs::read_to_string(package.join("tests/mutants.txt")).expect("a list");
            for mutant in read(&list).expect("blocks") {
                let source = fs::read_to_string(package.join(&mutant.file)).expect("its file");
                mutant.plant(&source).expect("its place");
            }
        }
    }

    #[test]
    fn reads_blocks_and_refuses_what_is_none() {
        let mutants =
            read("# About the list.\n\n# A bug.\nsrc/a.rs\n- one\n+ two\n\n# None is left.\nb.rs\n- x\n+\n");
        let mutants = mutants.expect("a list");
        assert_eq!(mutants.len(), 2);
        assert_eq!(
            (mutants[0].description.as_str(), mutants[0].file.as_str()),
            ("A bug.", "src/a.rs")
        );
        assert_eq!(
            (mutants[0].before.as_str(), mutants[1].after.as_str()),
            ("one", "")
        );
        assert!(read("#\n\n# A bug.\nsrc/a.rs\n- one\n").is_err());
        assert!(read("#\n\n# A bug.\nsrc/a.rs\n+ one\n- two\n").is_err());
    }
}
