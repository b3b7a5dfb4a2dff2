//! What the doctor says.

use std::fmt;

use serde_json::{Value, json};

/// Everything it found, and what it looked at.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// What is wrong.
    pub(super) findings: Vec<Finding>,
    /// What was looked at and seen, in plain sentences.
    pub(super) checked: Vec<String>,
    /// Whether a server could not be asked at all.
    pub(super) unasked: bool,
}

/// One thing that is wrong.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Finding {
    /// Its name, for scripts.
    pub(super) name: &'static str,
    /// The servers it is about; where it has a direction, from the first to the second.
    pub(super) servers: Vec<String>,
    /// What is wrong, in one sentence.
    pub(super) sentence: String,
    /// What shows it.
    pub(super) evidence: Vec<String>,
    /// What to do about it.
    pub(super) remedy: String,
}

impl Report {
    /// 0 without findings, 1 with, 2 if a server could not be asked at all.
    pub(super) fn exit_code(&self) -> u8 {
        if self.unasked {
            2
        } else {
            u8::from(!self.findings.is_empty())
        }
    }

    /// The same for programs.
    pub(super) fn json(&self) -> Value {
        let findings: Vec<_> = self.findings.iter().map(Finding::json).collect();
        json!({"findings": findings, "checked": self.checked})
    }
}

impl Finding {
    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "servers": self.servers,
            "sentence": self.sentence,
            "evidence": self.evidence,
            "remedy": self.remedy,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.checked {
            writeln!(f, "{}", shown(line))?;
        }
        if !self.checked.is_empty() {
            writeln!(f)?;
        }
        if self.findings.is_empty() {
            return writeln!(f, "Nothing is wrong that can be seen from here.");
        }
        for (index, finding) in self.findings.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{}. {finding}", index + 1)?;
        }
        Ok(())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.name, shown(&self.sentence))?;
        for line in &self.evidence {
            writeln!(f, "   seen: {}", shown(line))?;
        }
        writeln!(f, "   do:   {}", shown(&self.remedy))
    }
}

/// Text that strangers may have chosen, for a terminal: without control characters.
fn shown(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_registrants_chose_cannot_move_the_cursor() {
        let report = Report {
            findings: vec![Finding {
                name: "x",
                servers: Vec::new(),
                sentence: "a\u{1b}[2Jb".to_owned(),
                evidence: vec!["c\nd".to_owned()],
                remedy: "e".to_owned(),
            }],
            ..Report::default()
        };
        let text = report.to_string();
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert_eq!(text.lines().count(), 3, "{text:?}");
        assert_eq!(report.exit_code(), 1);
    }
}
