//! Every input of the corpus of the fuzz target `proto` has the property that it searches to break.

use std::fs;
use std::path::Path;

#[path = "../../../registry-core/fuzz/calls.rs"]
mod calls;

#[test]
fn messages() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../registry-core/fuzz/corpus/proto");
    let mut inputs = 0;
    for entry in fs::read_dir(&corpus).expect("the corpus is there") {
        let path = entry.expect("the corpus is readable").path();
        calls::proto(&fs::read(path).expect("the corpus is readable"));
        inputs += 1;
    }
    assert!(inputs > 10, "only {inputs}");
}
