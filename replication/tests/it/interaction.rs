//! Transcripts of several nodes: `tests/interaction/*.txt` hold commands and what became of them, see [`transcript`].
//! `UPDATE=1 cargo test -p eureka-replication --test it` rewrites the outputs. The commands are those of [`World::run`].

#[path = "../../../registry-core/tests/it/interaction/arguments.rs"]
mod arguments;
mod network;
mod show;
#[path = "../../../registry-core/tests/it/interaction/transcript.rs"]
mod transcript;
mod world;

use std::path::Path;

use self::transcript::{Play, check, describe_difference, replay};
use self::world::World;

impl Play for World {
    fn run(&mut self, line: &str) -> Result<String, String> {
        Self::run(self, line)
    }
}

#[test]
fn transcripts_are_as_recorded() {
    check::<World>("tests/interaction");
}

#[test]
fn a_changed_output_is_noticed() {
    let recorded = "nodes 2\nshow\n----\nnonsense\n";
    let replayed = replay::<World>(Path::new("x"), recorded);
    let mut difference = String::new();
    describe_difference(&mut difference, Path::new("x"), recorded, &replayed);
    assert!(
        difference.starts_with("x:4: after `show`\n  recorded\n    nonsense"),
        "{difference}"
    );
}
