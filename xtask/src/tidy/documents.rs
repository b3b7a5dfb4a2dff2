//! Rules about documents: what they name exists, and what must be named is.

use std::collections::BTreeSet;

use syn::visit::{self, Visit};

use super::Violation;
use super::tree::Tree;

const COMPAT: &str = "docs/compat.md";
const EXPECTATIONS: &str = "xtask/conformance/expectations.toml";
const ARCHITECTURE: &str = "ARCHITECTURE.md";
const OPERATING: &str = "docs/operating.md";
/// Starts the name of each metric of ours.
const METRIC: &str = "eureka_";

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    compat_rows(tree, &mut violations);
    transcripts(tree, &mut violations);
    metrics(tree, &mut violations);
    code_map(tree, &mut violations);
    violations
}

/// The last column of each row of docs/compat.md names its tests: `crate/module::function`, or a file of the project.
fn compat_rows(tree: &Tree, violations: &mut Vec<Violation>) {
    let Some(file) = tree.file(COMPAT) else { return };
    let tests = tests(tree);
    let mut seen = BTreeSet::new();
    for (index, line) in file.text.lines().enumerate() {
        let Some(row) = row(line) else { continue };
        let mut push = |message| violations.push(Violation::new(COMPAT, index + 1, "compat", message));
        let id = row[0].trim_matches('`').to_owned();
        if !seen.insert(id.clone()) {
            push(format!("`{id}` is there twice"));
        }
        let named: Vec<_> = row[row.len() - 1].split('`').skip(1).step_by(2).collect();
        if named.is_empty() {
            push(format!("`{id}` names no test"));
        }
        for test in named {
            if !tests.contains(test) && !tree.holds(test) {
                push(format!("`{id}`: there is no test `{test}`"));
            }
        }
    }
    let expectations = tree.file(EXPECTATIONS).map_or("", |file| &file.text);
    let rows = expectations
        .lines()
        .filter_map(|line| line.strip_prefix("row = \"")?.strip_suffix('"'));
    for row in rows.filter(|row| !seen.contains(*row)) {
        violations.push(Violation::new(
            EXPECTATIONS,
            0,
            "compat",
            format!("{COMPAT} has no row `{row}`"),
        ));
    }
}

/// The cells of a table row that has a code span as its first cell; heads and rulers have none.
fn row(line: &str) -> Option<Vec<&str>> {
    let cells = line.strip_prefix("| `")?.trim_end().strip_suffix('|')?;
    let cells: Vec<_> = cells.split(" | ").map(str::trim).collect();
    (cells.len() > 1).then_some(cells)
}

/// Every test function as `crate/module::function`, `module` being its file or the inline module around it.
fn tests(tree: &Tree) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (file, syntax) in tree.rust() {
        let module = match file.stem() {
            stem @ ("main" | "mod" | "tests") => file.path.rsplit('/').nth(1).unwrap_or(stem),
            stem => stem,
        };
        let prefix = format!("{}/{module}::", file.place().0);
        let mut tests = Tests {
            prefix,
            names: &mut names,
        };
        tests.visit_file(syntax);
    }
    names
}

struct Tests<'a> {
    prefix: String,
    names: &'a mut BTreeSet<String>,
}

impl<'ast> Visit<'ast> for Tests<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        let is_test = item.attrs.iter().any(|attribute| {
            attribute
                .path()
                .segments
                .last()
                .is_some_and(|segment| segment.ident == "test")
        });
        if is_test {
            self.names.insert(format!("{}{}", self.prefix, item.sig.ident));
        }
        visit::visit_item_fn(self, item);
    }
}

/// A transcript is run because a test names it, or because a test runs all of its directory: reads it, or has the shared
/// runner `check` it.
fn transcripts(tree: &Tree, violations: &mut Vec<Violation>) {
    for file in tree.files() {
        let (directory, inside) = file.place();
        let Some(name) = inside.strip_prefix("tests/interaction/") else {
            continue;
        };
        let Some(stem) = name.strip_suffix(".txt") else {
            continue;
        };
        let sources = tree.files().filter(|file| {
            let (owner, inside) = file.place();
            owner == directory && inside.starts_with("tests/") && inside.ends_with(".rs")
        });
        let is_run = |text: &str| {
            text.contains(&format!("\"{stem}\""))
                || text.contains(&format!("{stem}.txt"))
                || (text.contains("read_dir(") && text.contains("interaction"))
                || (text.contains("check::<") && text.contains("(\"tests/interaction\")"))
        };
        if !sources.into_iter().any(|file| is_run(&file.text)) {
            violations.push(Violation::new(
                &file.path,
                0,
                "transcript",
                "no test runs this transcript",
            ));
        }
    }
}

/// The metrics in the sources of server, http-api and grpc-api are those that docs/operating.md lists.
fn metrics(tree: &Tree, violations: &mut Vec<Violation>) {
    let Some(document) = tree.file(OPERATING) else {
        return;
    };
    let listed = quoted(&document.text, '`');
    let mut counted = BTreeSet::new();
    for file in tree.files() {
        if !["server/src/", "http-api/src/", "grpc-api/src/"]
            .iter()
            .any(|source| file.path.starts_with(source))
        {
            continue;
        }
        for name in quoted(&file.text, '"') {
            if !listed.contains(name) {
                let message = format!("{OPERATING} does not list `{name}`");
                violations.push(Violation::new(&file.path, 0, "metrics", message));
            }
            counted.insert(name);
        }
    }
    for name in listed.difference(&counted) {
        let message = format!("the server has no metric `{name}`");
        violations.push(Violation::new(OPERATING, 0, "metrics", message));
    }
}

/// The tables of ARCHITECTURE.md name every module of a crate that has a table, and none that is not there.
fn code_map(tree: &Tree, violations: &mut Vec<Violation>) {
    let Some(document) = tree.file(ARCHITECTURE) else {
        return;
    };
    let mut push = |message| violations.push(Violation::new(ARCHITECTURE, 0, "code-map", message));
    for section in document.text.split("\n### `").skip(1) {
        let Some((directory, text)) = section.split_once("/`\n") else {
            continue;
        };
        let text = text.split("\n## ").next().unwrap_or(text);
        let rows = text.lines().filter_map(row);
        let named: BTreeSet<_> = rows
            .flat_map(|row| row[0].split('`').map(str::to_owned).collect::<Vec<_>>())
            .collect();
        let named: BTreeSet<_> = named
            .iter()
            .filter(|name| name.ends_with(".rs") || name.ends_with('/'))
            .collect();
        if named.is_empty() {
            continue;
        }
        for name in &named {
            if !tree.holds(&format!("{directory}/src/{name}")) {
                push(format!("{directory}/src has no `{name}`"));
            }
        }
        let source = format!("{directory}/src/");
        let modules = tree.files().filter_map(|file| file.path.strip_prefix(&source));
        for module in modules.filter(|name| !name.contains('/') && !["lib.rs", "main.rs"].contains(name)) {
            if !named.iter().any(|name| *name == module) {
                push(format!("`{module}` of {directory} is not on the map"));
            }
        }
    }
}

/// Names of metrics between two such quotes.
fn quoted(text: &str, quote: char) -> BTreeSet<&str> {
    let is_name = |name: &&str| {
        name.chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let parts = text
        .split(quote)
        .filter(|part| part.starts_with(METRIC) && part.len() > METRIC.len());
    parts.filter(is_name).collect()
}
