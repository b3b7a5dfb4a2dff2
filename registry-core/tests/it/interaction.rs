//! Transcripts: `tests/interaction/*.txt` hold commands and what the registry answered, see [`transcript`].
//! `UPDATE=1 cargo test -p eureka-registry-core --test it` rewrites the outputs. The commands are those of [`World::run`].

mod arguments;
mod repair;
mod show;
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
    let recorded = "nodes 1\nrenew A/1\n----\nmissing\n\n# More.\nstats\n----\nnonsense\n";
    let replayed = replay::<World>(Path::new("x"), recorded);
    assert!(replayed.starts_with("nodes 1\nrenew A/1\n----\nmissing\n\n# More.\nstats\n----\n"));
    assert!(!replayed.contains("nonsense"));
    let mut difference = String::new();
    describe_difference(&mut difference, Path::new("x"), recorded, &replayed);
    assert!(
        difference.starts_with("x:9: after `stats`\n  recorded\n    nonsense"),
        "{difference}"
    );
}
