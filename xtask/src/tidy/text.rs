//! Rules about lines and file names.

use super::Violation;
use super::tree::{File, Tree};

const FILE_LINES_MAX: usize = 800;

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in tree.files() {
        white_space(file, &mut violations);
        left_over(file, &mut violations);
        if file.path.ends_with(".rs") {
            module(file, &mut violations);
        }
    }
    violations
}

fn white_space(file: &File, violations: &mut Vec<Violation>) {
    for (index, line) in file.text.lines().enumerate() {
        if line.ends_with([' ', '\t']) {
            violations.push(Violation::new(
                &file.path,
                index + 1,
                "white-space",
                "white space at the end of the line",
            ));
        }
    }
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        violations.push(Violation::new(
            &file.path,
            0,
            "white-space",
            "the last line has no end",
        ));
    }
}

/// Promises to finish later: either it is finished, or an issue says so.
fn left_over(file: &File, violations: &mut Vec<Violation>) {
    // Documents may name the words; code may not use them. Split, so that this file passes its own rule.
    let words = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
    let code = [
        concat!("to", "do!("),
        concat!("unimpl", "emented!("),
        concat!("allow(dead_", "code"),
    ];
    if file.path.ends_with(".md") {
        return;
    }
    for (index, line) in file.text.lines().enumerate() {
        let mut words = words.iter().filter(|word| has_word(line, word));
        let mut code = code.iter().filter(|text| line.contains(*text));
        if let Some(found) = words.next().or_else(|| code.next()) {
            let message = format!("`{found}`: finish it, delete it or file an issue");
            violations.push(Violation::new(&file.path, index + 1, "left-over", message));
        }
    }
}

fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        ![before, after]
            .into_iter()
            .flatten()
            .any(|c| c.is_alphanumeric() || c == '_')
    })
}

fn module(file: &File, violations: &mut Vec<Violation>) {
    if !file.text.starts_with("//! ") {
        violations.push(Violation::new(
            &file.path,
            1,
            "module-doc",
            "the first line is not a `//!` sentence",
        ));
    }
    let lines = file.text.lines().count();
    if lines > FILE_LINES_MAX {
        let message = format!("{lines} lines, {FILE_LINES_MAX} are allowed: split it by idea");
        violations.push(Violation::new(&file.path, lines, "file-length", message));
    }
    if file.path.ends_with("/mod.rs")
        && !file.path.ends_with("/wire/mod.rs")
        && !file.path.contains("/tests/")
    {
        let message = "write `name.rs` beside `name/`, not `name/mod.rs`";
        violations.push(Violation::new(&file.path, 0, "mod-rs", message));
    }
}
