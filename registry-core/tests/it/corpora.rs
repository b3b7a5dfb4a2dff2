//! Every input of every fuzz corpus, and every recorded body, has the properties that the fuzz targets check.

use std::fs;
use std::path::Path;

use crate::golden;

#[path = "../../fuzz/properties.rs"]
#[expect(unreachable_pub, reason = "the fuzz targets use it as a library")]
mod properties;

fn replay(target: &str, property: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(target);
    let mut inputs = 0;
    for entry in fs::read_dir(&corpus).expect("the corpus is there") {
        let input = fs::read(entry.expect("the corpus is readable").path()).expect("the corpus is readable");
        property(&input);
        inputs += 1;
    }
    assert!(inputs > 0, "{} is empty", corpus.display());
}

#[test]
fn batches() {
    replay("batch", properties::batch);
    for line in golden::batches() {
        for member in ["body", "answer"] {
            properties::batch(line[member].as_str().expect("it is text").as_bytes());
        }
    }
}

#[test]
fn filters() {
    replay("filter", properties::filter);
}

#[test]
fn documents_in_json() {
    replay("json", properties::json);
    recorded('{', properties::json);
}

#[test]
fn documents_in_xml() {
    replay("xml", properties::xml);
    recorded('<', properties::xml);
}

#[test]
fn repairs() {
    replay("repair", properties::repair);
}

#[test]
fn routes() {
    replay("route", properties::route);
}

/// Registrations and answers that begin like this.
fn recorded(start: char, property: fn(&[u8])) {
    let lines = golden::registrations().into_iter().chain(golden::answers());
    let mut bodies = 0;
    for line in lines {
        if let Some(body) = golden::body(&line).filter(|body| body.starts_with(start)) {
            property(body.as_bytes());
            bodies += 1;
        }
    }
    assert!(bodies > 50, "only {bodies}");
}
