//! `cargo xtask tidy`: the rules of style that a program can check.
//!
//! Every rule is a pure function from the [`Tree`] to [`Violation`]s, so `tests.rs` can plant a violation of each rule
//! in memory and see it named. What needs types or name resolution is left to clippy (`clippy.toml`, `[workspace.lints]`).

mod documents;
mod imports;
mod manifests;
mod source;
#[cfg(test)]
mod tests;
mod text;
mod tree;

use std::fmt;

use anyhow::{Result, bail};

use self::tree::Tree;

/// Check the rules of style that a program can check.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {}

/// A place that breaks a rule.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Violation {
    path: String,
    /// From 1; 0 when the whole file is meant.
    line: usize,
    rule: &'static str,
    message: String,
}

impl Violation {
    fn new(path: &str, line: usize, rule: &'static str, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            rule,
            message: message.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {} [{}]", self.path, self.line, self.message, self.rule)
    }
}

/// Checks the work tree that the current directory belongs to.
pub(crate) fn run(_arguments: &Arguments) -> Result<()> {
    let tree = Tree::read()?;
    let violations = check(&tree);
    for violation in &violations {
        println!("{violation}");
    }
    if !violations.is_empty() {
        bail!(
            "{} violations in {} files",
            violations.len(),
            tree.files().count()
        );
    }
    println!("tidy: {} files, no violation", tree.files().count());
    Ok(())
}

fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = text::check(tree);
    violations.extend(source::check(tree));
    violations.extend(imports::check(tree));
    violations.extend(manifests::check(tree));
    violations.extend(documents::check(tree));
    violations.sort();
    violations
}
