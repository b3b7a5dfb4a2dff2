//! What the kit prints: a line for each step, and the closing count.

use std::io::{self, Write};

use parking_lot::Mutex;

/// How one step went.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// As it should be; with a short remark or an empty one.
    Passed(String),
    /// Not as it should be, and why.
    Failed(String),
    /// Not tried, or different in a way that is listed; and why.
    Skipped(String),
}

/// Collects outcomes and prints each as it comes; shared by the threads of a run.
#[derive(Debug, Default)]
pub(crate) struct Report {
    counts: Mutex<Counts>,
}

/// How many steps went which way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) skipped: usize,
}

impl Report {
    /// Counts and prints one step of one subject (a client, a case, a check).
    pub(crate) fn step(&self, subject: &str, step: &str, outcome: &Outcome) {
        let name = if step.is_empty() {
            subject.to_owned()
        } else {
            format!("{subject}: {step}")
        };
        match outcome {
            Outcome::Passed(remark) if remark.is_empty() => self.line(&format!("ok    {name}")),
            Outcome::Passed(remark) => self.line(&format!("ok    {name} ({remark})")),
            Outcome::Failed(why) => self.line(&format!("FAIL  {name} - {why}")),
            Outcome::Skipped(why) => self.line(&format!("skip  {name} - skipped: {why}")),
        }
        self.count(outcome);
    }

    /// Counts one step without a line of its own.
    pub(crate) fn count(&self, outcome: &Outcome) {
        let mut counts = self.counts.lock();
        match outcome {
            Outcome::Passed(_) => counts.passed += 1,
            Outcome::Failed(_) => counts.failed += 1,
            Outcome::Skipped(_) => counts.skipped += 1,
        }
    }

    /// Prints a line that is no step.
    pub(crate) fn line(&self, line: &str) {
        // A closed stdout ends the reading, not the run.
        let _ = writeln!(io::stdout().lock(), "{line}");
    }

    pub(crate) fn counts(&self) -> Counts {
        *self.counts.lock()
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} passed, {} failed, {} skipped",
            self.passed, self.failed, self.skipped
        )
    }
}

impl From<Result<String, String>> for Outcome {
    fn from(result: Result<String, String>) -> Self {
        result.map_or_else(Self::Failed, Self::Passed)
    }
}
