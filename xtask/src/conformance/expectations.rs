//! The places where a server differs on purpose, or where Java is known to.

use anyhow::{Context, Result};
use serde::Deserialize;

use super::report::Outcome;
use super::target::Flavour;

/// What is listed in `expectations.toml`.
#[derive(Debug, Deserialize)]
pub(crate) struct Expectations {
    #[serde(rename = "difference")]
    differences: Vec<Difference>,
}

/// One kind of test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Suite {
    Wire,
    Cases,
    Clients,
    Recorded,
}

/// One listed difference.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Difference {
    suite: Suite,
    /// The servers that differ here.
    target: Vec<Flavour>,
    /// For recorded exchanges: which recordings; all if empty.
    #[serde(default)]
    recording: Vec<String>,
    /// The names of the tests; `*` stands for any text.
    case: Vec<String>,
    /// For recorded exchanges: the parts that may differ (`status`, `body`, `header content-type`, ...).
    #[serde(default)]
    parts: Vec<String>,
    /// For recorded exchanges: the status that the server answers instead.
    status: Option<u16>,
    /// The row of docs/compat.md that says so; for our own server only.
    pub(crate) row: Option<String>,
    pub(crate) reason: String,
}

impl Expectations {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        toml::from_str(text).context("expectations.toml")
    }

    /// The difference listed for this test of a suite, if there is one.
    pub(crate) fn listed(&self, suite: Suite, flavour: Flavour, case: &str) -> Option<&Difference> {
        self.differences
            .iter()
            .find(|difference| difference.covers(suite, flavour, case))
    }

    /// Turns a failure that is listed into a skip that says so, and a success that is listed as a difference into a
    /// failure: a list that is wrong hides things.
    pub(crate) fn judge(&self, suite: Suite, flavour: Flavour, case: &str, outcome: Outcome) -> Outcome {
        let Some(difference) = self.listed(suite, flavour, case) else {
            return outcome;
        };
        match outcome {
            Outcome::Failed(_) => Outcome::Skipped(format!("differs as listed: {}", difference.reason)),
            Outcome::Passed(_) => Outcome::Failed(format!(
                "passes, but expectations.toml lists it as different: {}",
                difference.reason
            )),
            Outcome::Skipped(_) => outcome,
        }
    }

    /// The listed differences of one recording.
    pub(crate) fn recorded(&self, flavour: Flavour, recording: &str) -> Vec<&Difference> {
        let here = |difference: &&Difference| {
            difference.suite == Suite::Recorded
                && difference.target.contains(&flavour)
                && (difference.recording.is_empty()
                    || difference.recording.iter().any(|name| name == recording))
        };
        self.differences.iter().filter(here).collect()
    }
}

impl Difference {
    fn covers(&self, suite: Suite, flavour: Flavour, case: &str) -> bool {
        self.suite == suite && self.target.contains(&flavour) && self.names(case)
    }

    /// Whether this entry is about the case.
    pub(crate) fn names(&self, case: &str) -> bool {
        self.case.iter().any(|pattern| matches(pattern, case))
    }

    /// Whether an exchange may differ in these parts, with this status.
    pub(crate) fn allows(&self, parts: &[String], status: u16) -> bool {
        parts.iter().all(|part| self.parts.contains(part))
            && self.status.is_none_or(|listed| listed == status)
    }

    /// The patterns, for a message.
    pub(crate) fn cases(&self) -> String {
        self.case.join(", ")
    }
}

/// Matches a name with a pattern in which `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(name) = name.strip_prefix(start) else {
        return false;
    };
    let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
    ends.into_iter().any(|at| matches(rest, &name[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        assert!(matches("08-status/*-badts", "08-status/025-put-badts"));
        assert!(!matches("08-status/*-badts", "08-status/025-put-badts-again"));
        assert!(matches("*", ""));
        assert!(!matches("a*b*c", "acb"));
    }

    #[test]
    fn a_list_is_right_in_both_directions() {
        let text = "[[difference]]\nsuite = 'wire'\ntarget = ['spring']\ncase = ['x']\nreason = 'because'\n";
        let list = Expectations::parse(text).unwrap();
        let failed = || Outcome::Failed("no".to_owned());
        let judge = |flavour, outcome| list.judge(Suite::Wire, flavour, "x", outcome);
        assert_eq!(judge(Flavour::Ours, failed()), failed());
        assert!(matches!(judge(Flavour::Spring, failed()), Outcome::Skipped(_)));
        assert!(matches!(
            judge(Flavour::Spring, Outcome::Passed(String::new())),
            Outcome::Failed(_)
        ));
    }

    #[test]
    fn only_the_listed_parts_may_differ() {
        let text = "[[difference]]\nsuite = 'recorded'\ntarget = ['ours']\ncase = ['x']\nparts = ['status']\nstatus = 400\nreason = 'r'";
        let list = Expectations::parse(text).unwrap();
        let difference = list.recorded(Flavour::Ours, "spring")[0];
        assert!(difference.allows(&["status".to_owned()], 400));
        assert!(!difference.allows(&["status".to_owned()], 404));
        assert!(!difference.allows(&["status".to_owned(), "body".to_owned()], 400));
    }

    #[test]
    fn what_our_server_does_differently_is_a_row_of_the_compatibility_page() {
        let list = Expectations::parse(include_str!("../../conformance/expectations.toml")).unwrap();
        let page = include_str!("../../../docs/compat.md");
        for difference in &list.differences {
            let ours = difference.target.contains(&Flavour::Ours);
            assert_eq!(ours, difference.row.is_some(), "{}", difference.cases());
            if let Some(row) = &difference.row {
                assert!(
                    page.contains(&format!("\n| `{row}` |")),
                    "docs/compat.md has no row {row}"
                );
            }
        }
    }
}
