//! Files of commands and what they answered, played again.
//!
//! A block is one or more lines of commands, a line `----` and the expected output up to an empty line; lines with `#`
//! between blocks are comments. With `UPDATE` in the environment the outputs are rewritten, which are then to be read
//! before they are believed. The tests of other crates include this file, too.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// What the commands of a transcript move.
pub(crate) trait Play: Default {
    /// Runs one line and tells what came of it.
    fn run(&mut self, line: &str) -> Result<String, String>;
}

/// Plays every transcript of a folder of this crate.
pub(crate) fn check<W: Play>(folder: &str) {
    let update = std::env::var_os("UPDATE").is_some();
    let mut differences = String::new();
    let files = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder));
    assert!(!files.is_empty(), "there are transcripts");
    for path in files {
        let recorded = fs::read_to_string(&path).expect("a transcript can be read");
        let replayed = replay::<W>(&path, &recorded);
        if update {
            fs::write(&path, replayed).expect("a transcript can be written");
        } else if recorded != replayed {
            describe_difference(&mut differences, &path, &recorded, &replayed);
        }
    }
    assert!(differences.is_empty(), "{differences}");
}

/// Files of transcripts by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the folder of transcripts is there")
        .map(|entry| entry.expect("an entry can be read").path())
        .collect();
    files.sort();
    files
}

/// The transcript with the outputs of today.
pub(crate) fn replay<W: Play>(path: &Path, recorded: &str) -> String {
    let mut world = W::default();
    let mut replayed = String::new();
    let mut output = String::new();
    let mut lines = recorded.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        writeln!(replayed, "{line}").expect("writing to a string cannot fail");
        if line == "----" {
            replayed += &std::mem::take(&mut output);
            let after = lines.by_ref().find(|(_, line)| line.is_empty());
            if after.is_some() {
                replayed.push('\n');
            }
        } else if !line.is_empty() && !line.starts_with('#') {
            let place = format!("{}:{}", path.display(), index + 1);
            let answer = world.run(line).unwrap_or_else(|error| panic!("{place}: {error}"));
            assert!(
                !answer.contains("\n\n") && !answer.starts_with('\n'),
                "{place}: an empty line ends a block"
            );
            output += &answer;
        } else {
            assert!(
                output.is_empty(),
                "{}:{index}: a block ends without ----",
                path.display()
            );
        }
    }
    assert!(
        output.is_empty(),
        "{}: the last block has no ----",
        path.display()
    );
    replayed
}

pub(crate) fn describe_difference(text: &mut String, path: &Path, recorded: &str, replayed: &str) {
    let (old, new): (Vec<_>, Vec<_>) = (recorded.lines().collect(), replayed.lines().collect());
    let first = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let command = old[..first.min(old.len())]
        .iter()
        .rposition(|line| *line == "----")
        .map_or("", |dashes| old[dashes - 1]);
    let around = |lines: &[&str]| {
        lines[first.min(lines.len())..]
            .iter()
            .take(4)
            .copied()
            .collect::<Vec<_>>()
            .join("\n    ")
    };
    write!(
        text,
        "{}:{}: after `{command}`\n  recorded\n    {}\n  now\n    {}\n",
        path.display(),
        first + 1,
        around(&old),
        around(&new)
    )
    .expect("writing to a string cannot fail");
}
