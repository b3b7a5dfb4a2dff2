//! Transcripts: `tests/interaction/*.txt` hold commands and what the registry answered.
//!
//! A block is one or more lines of commands, a line `----` and the expected output up to an empty line; lines with `#`
//! between blocks are comments. `UPDATE=1 cargo test -p eureka-registry-core --test it` rewrites the outputs, which are then to
//! be read before they are believed. The commands are those of [`World::run`].

mod arguments;
mod repair;
mod show;
mod world;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use self::world::World;

#[test]
fn transcripts_are_as_recorded() {
    let update = std::env::var_os("UPDATE").is_some();
    let mut differences = String::new();
    let files = files();
    assert!(!files.is_empty(), "there are transcripts");
    for path in files {
        let recorded = fs::read_to_string(&path).expect("a transcript can be read");
        let replayed = replay(&path, &recorded);
        if update {
            fs::write(&path, replayed).expect("a transcript can be written");
        } else if recorded != replayed {
            describe_difference(&mut differences, &path, &recorded, &replayed);
        }
    }
    assert!(differences.is_empty(), "{differences}");
}

/// Files of transcripts by name.
fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interaction");
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the folder of transcripts is there")
        .map(|entry| entry.expect("an entry can be read").path())
        .collect();
    files.sort();
    files
}

/// The transcript with the outputs of today.
fn replay(path: &Path, recorded: &str) -> String {
    let mut world = World::default();
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

fn describe_difference(text: &mut String, path: &Path, recorded: &str, replayed: &str) {
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

#[test]
fn a_changed_output_is_noticed() {
    let recorded = "nodes 1\nrenew A/1\n----\nmissing\n\n# More.\nstats\n----\nnonsense\n";
    let replayed = replay(Path::new("x"), recorded);
    assert!(replayed.starts_with("nodes 1\nrenew A/1\n----\nmissing\n\n# More.\nstats\n----\n"));
    assert!(!replayed.contains("nonsense"));
    let mut difference = String::new();
    describe_difference(&mut difference, Path::new("x"), recorded, &replayed);
    assert!(
        difference.starts_with("x:9: after `stats`\n  recorded\n    nonsense"),
        "{difference}"
    );
}
