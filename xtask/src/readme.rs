//! `cargo xtask readme`: documents that are made from sources, so the two cannot drift apart: the README of each library
//! is its crate documentation, and the table of keys in docs/operating.md is the server's own.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::ci::{cargo, execute};

const LIBRARIES: [&str; 5] = ["registry-core", "replication", "http-api", "grpc-api", "client"];
const OPERATING: &str = "docs/operating.md";
const KEYS: [&str; 2] = ["<!-- keys -->\n", "<!-- end of keys -->"];

/// Write the documents that are made from sources: the libraries' READMEs, the table of configuration keys.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Write nothing; fail if a document is not what would be written.
    #[arg(long)]
    pub(crate) check: bool,
}

/// Writes or checks the documents.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut pages = vec![operating()?];
    for directory in LIBRARIES {
        pages.push(readme(directory).context(directory)?);
    }
    let mut stale = Vec::new();
    for (path, text) in pages {
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            continue;
        }
        if arguments.check {
            stale.push(path.display().to_string());
        } else {
            fs::write(&path, text)?;
            println!("wrote {}", path.display());
        }
    }
    if !stale.is_empty() {
        bail!(
            "not what the sources say: {}; run `cargo xtask readme`",
            stale.join(", ")
        );
    }
    Ok(())
}

fn operating() -> Result<(PathBuf, String)> {
    let path = crate::root().join(OPERATING);
    let page = fs::read_to_string(&path).context(OPERATING)?;
    // All of the workspace, because that is what the tests have built: one package alone would be built anew.
    execute(cargo().args(["build", "--quiet", "--workspace", "--bins"]))?;
    let own = std::env::current_exe()?;
    let printed = Command::new(own.with_file_name("eureka"))
        .args(["config", "--markdown"])
        .output()?;
    ensure!(
        printed.status.success(),
        "eureka config: {}",
        String::from_utf8_lossy(&printed.stderr)
    );
    let table = String::from_utf8(printed.stdout)?;
    Ok((path, between(&page, KEYS, &table).context(OPERATING)?))
}

/// The page with other text between two of its markers.
pub(crate) fn between(page: &str, markers: [&str; 2], text: &str) -> Result<String> {
    let [start, end] = markers;
    let (before, rest) = page.split_once(start).with_context(|| format!("no {start}"))?;
    let (_, after) = rest.split_once(end).with_context(|| format!("no {end}"))?;
    Ok(format!("{before}{start}{text}{end}{after}"))
}

fn readme(directory: &str) -> Result<(PathBuf, String)> {
    let directory_path = crate::root().join(directory);
    let source = fs::read_to_string(directory_path.join("src/lib.rs"))?;
    Ok((
        directory_path.join("README.md"),
        render(&format!("eureka-{directory}"), &source),
    ))
}

/// The documentation of a crate as a page of its own.
fn render(name: &str, source: &str) -> String {
    let mut page = format!("# {name}\n\n");
    let mut in_code = false;
    let mut is_rust = false;
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    for line in lines.map(|line| line.strip_prefix(' ').unwrap_or(line)) {
        if let Some(language) = line.strip_prefix("```") {
            in_code = !in_code;
            let attributes = ["", "no_run", "rust", "ignore", "compile_fail", "should_panic"];
            is_rust = in_code && attributes.contains(&language);
            page += if is_rust { "```rust" } else { line };
        } else if is_rust && (line == "#" || line.starts_with("# ")) {
            continue; // lines that rustdoc hides
        } else if in_code {
            page += line;
        } else {
            page += &unlink(line);
        }
        page.push('\n');
    }
    page
}

/// Links to items mean nothing outside rustdoc: only their code span stays.
fn unlink(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some(start) = rest.find("[`") {
        let Some(length) = rest[start..].find("`]").map(|end| end + 2) else {
            break;
        };
        let (link, after) = (&rest[start + 1..start + length - 1], &rest[start + length..]);
        text += &rest[..start];
        text += link;
        let target = after.starts_with('(').then(|| after.find(')')).flatten();
        rest = target.map_or(after, |end| &after[end + 1..]);
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::render;

    #[test]
    fn a_readme_is_the_crate_documentation_without_what_only_rustdoc_understands() {
        let source = "//! A [`Lease`] of [`one`](crate::one).\n//!\n//! ```\n//! # hidden();\n//! shown();\n//! ```\n\
            //! ```text\n//! # kept\n//! ```\n\nmod lease;\n//! not this\n";
        let page = "# eureka-x\n\nA `Lease` of `one`.\n\n```rust\nshown();\n```\n```text\n# kept\n```\n";
        assert_eq!(render("eureka-x", source), page);
    }
}
