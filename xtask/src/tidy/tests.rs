//! Each rule sees the violation that was planted for it, and only that.

use super::check;
use super::tree::Tree;

const CORE_LIB: &str =
    "//! Core.\n#![no_std]\nmod lease;\n#[cfg(feature = \"shared\")]\nmod shared;\nmod wire;\n";
const MANIFEST: &str = "[lints]\nworkspace = true\n[dependencies]\nhashbrown = \"1\"\nhttp = { version = \"1\", optional = true }\n";

/// A small tree that breaks no rule.
fn clean() -> Tree {
    let mut tree = Tree::default();
    tree.add("registry-core/Cargo.toml", MANIFEST);
    tree.add("registry-core/src/lib.rs", CORE_LIB);
    tree.add(
        "registry-core/src/lease.rs",
        "//! Leases.\nuse core::fmt;\nfn renew(now: u64, id: u64) {}\n",
    );
    tree.add(
        "registry-core/src/shared.rs",
        "//! The lock.\nuse std::thread;\nuse crate::lease;\n",
    );
    tree.add(
        "registry-core/src/wire/mod.rs",
        "//! Bytes.\nuse crate::model::Instance;\nuse super::Lease;\n",
    );
    tree.add(
        "registry-core/tests/it/main.rs",
        "//! Tests.\nmod lease;\nmod interaction;\n",
    );
    tree.add(
        "registry-core/tests/it/lease.rs",
        "//! Lease tests.\n#[test]\nfn expires() {}\n",
    );
    tree.add(
        "registry-core/tests/it/interaction.rs",
        "//! Transcripts.\nconst RUN: [&str; 1] = [\"late\"];\n",
    );
    tree.add("registry-core/tests/interaction/late.txt", "advance 40s\n");
    tree.add(
        "http-api/Cargo.toml",
        "[lints]\nworkspace = true\n[dependencies]\neureka-registry-core = \"1\"\n",
    );
    tree.add(
        "docs/compat.md",
        "| id | test |\n|---|---|\n| `expiry` | `registry-core/lease::expires` |\n",
    );
    tree
}

/// The rules that the clean tree breaks once `text` is written to `path`.
fn broken(path: &str, text: &str) -> Vec<&'static str> {
    let mut tree = clean();
    tree.add(path, text);
    let mut rules: Vec<_> = check(&tree).into_iter().map(|violation| violation.rule).collect();
    rules.dedup();
    rules
}

fn lease(text: &str) -> Vec<&'static str> {
    broken("registry-core/src/lease.rs", text)
}

fn lines(count: usize) -> String {
    "    let _ = 0;\n".repeat(count)
}

#[test]
fn a_clean_tree_breaks_no_rule() {
    assert_eq!(check(&clean()), []);
}

#[test]
fn every_module_opens_with_its_documentation() {
    assert_eq!(lease("fn renew() {}\n"), ["module-doc"]);
}

#[test]
fn files_end_at_800_lines() {
    let long = |count| format!("//! Long.\n{}", "// x\n".repeat(count));
    assert_eq!(lease(&long(799)), [""; 0]);
    assert_eq!(lease(&long(800)), ["file-length"]);
}

#[test]
fn functions_end_at_70_lines_wherever_they_stand() {
    let free = |count| format!("//! F.\nfn f() {{\n{}}}\n", lines(count));
    assert_eq!(lease(&free(68)), [""; 0]);
    assert_eq!(lease(&free(69)), ["function-length"]);
    let method = format!("//! F.\nimpl T {{\nfn f(&self) {{\n{}}}\n}}\n", lines(69));
    assert_eq!(lease(&method), ["function-length"]);
    let default = format!("//! F.\ntrait T {{\nfn f(&self) {{\n{}}}\n}}\n", lines(69));
    assert_eq!(lease(&default), ["function-length"]);
    let nested = format!("//! F.\nmod inner {{\nfn f() {{\n{}}}\n}}\n", lines(69));
    assert_eq!(lease(&nested), ["function-length"]);
}

#[test]
fn the_documentation_of_a_function_does_not_count_as_its_length() {
    let text = format!("//! F.\n{}fn f() {{\n{}}}\n", "/// x\n".repeat(30), lines(60));
    assert_eq!(lease(&text), [""; 0]);
}

#[test]
fn now_is_the_first_argument() {
    assert_eq!(lease("//! F.\nfn renew(id: u64, now: u64) {}\n"), ["now-first"]);
    assert_eq!(
        lease("//! F.\nimpl T { fn renew(&self, now: u64) {} }\n"),
        [""; 0]
    );
}

#[test]
fn code_promises_nothing_for_later() {
    for text in [
        "// TO-DO: x",
        "// FIX-ME",
        "// XX-X why",
        "fn f() { to-do!() }",
        "#[allow(dead_-code)] fn f() {}",
    ] {
        let text = text.replace('-', "");
        assert_eq!(lease(&format!("//! F.\n{text}\n")), ["left-over"], "{text}");
    }
    assert_eq!(lease("//! F.\n// The TODOS of Xavier XXXL.\n"), [""; 0]);
}

#[test]
fn lines_end_without_white_space_and_files_with_a_line_end() {
    assert_eq!(lease("//! F.\n// a \n"), ["white-space"]);
    assert_eq!(lease("//! F.\n// a"), ["white-space"]);
}

#[test]
fn a_file_that_does_not_parse_is_named() {
    assert_eq!(lease("//! F.\nfn f( {}\n"), ["syntax"]);
}

#[test]
fn no_test_is_switched_off() {
    assert_eq!(lease("//! F.\n#[test]\n#[ignore]\nfn f() {}\n"), ["ignored-test"]);
}

#[test]
fn mod_rs_stands_only_in_wire_and_tests() {
    let text = "//! Codec.\n";
    let mut tree = clean();
    tree.add("http-api/src/lib.rs", "//! A.\nmod json;\n");
    tree.add("http-api/src/json/mod.rs", text);
    let rules: Vec<_> = check(&tree).into_iter().map(|violation| violation.rule).collect();
    assert_eq!(rules, ["mod-rs"]);
    assert_eq!(broken("registry-core/tests/it/lease/mod.rs", text), [""; 0]);
}

#[test]
fn lib_rs_holds_no_code() {
    let text = CORE_LIB.to_owned() + "pub fn f() {}\n";
    assert_eq!(broken("registry-core/src/lib.rs", &text), ["lib-rs"]);
    let text = CORE_LIB.to_owned() + "mod inline { }\n";
    assert_eq!(broken("registry-core/src/lib.rs", &text), ["lib-rs"]);
}

#[test]
fn a_file_that_no_module_names_is_found() {
    assert_eq!(
        broken("registry-core/src/old.rs", "//! Old.\n"),
        ["unreached-file"]
    );
}

#[test]
fn the_machine_knows_no_std_no_wire_and_no_lock() {
    let imports = [
        "use std::time::Instant;",
        "use std::{fmt, thread};",
        "fn f() { std::thread::yield_now() }",
        "extern crate std;",
        "use crate::wire::json;",
        "use crate::{lease::Lease, shared::RegistryHandle};",
        "use super::wire;",
        "fn f() -> crate::shared::Handle { panic!() }",
    ];
    for import in imports {
        assert_eq!(lease(&format!("//! F.\n{import}\n")), ["machine"], "{import}");
    }
    assert_eq!(
        lease("//! F.\n#[cfg(test)]\nmod tests { use std::vec; }\n"),
        [""; 0]
    );
}

#[test]
fn wire_reads_models_and_snapshots_only() {
    for import in [
        "use crate::registry::Registry;",
        "use crate::{model::Instance, lease};",
    ] {
        let text = format!("//! Bytes.\n{import}\n");
        assert_eq!(
            broken("registry-core/src/wire/mod.rs", &text),
            ["wire"],
            "{import}"
        );
    }
}

#[test]
fn only_the_edges_of_a_library_touch_a_runtime() {
    for import in [
        "use tokio::spawn;",
        "fn f() { hyper::body() }",
        "use tonic::Status;",
    ] {
        let text = format!("//! F.\n{import}\n");
        assert_eq!(lease(&text), ["runtime"], "{import}");
        let mut tree = clean();
        tree.add("replication/src/lib.rs", "//! R.\nmod driver;\n");
        tree.add("replication/src/driver.rs", text.clone());
        assert_eq!(check(&tree), []);
        for (file, rules) in [
            ("client/src/cache.rs", [].as_slice()),
            ("replication/src/cache.rs", &["runtime"]),
        ] {
            let mut tree = clean();
            let root = format!("{}/src/lib.rs", file.split('/').next().unwrap());
            tree.add(&root, "//! C.\nmod cache;\n");
            tree.add(file, text.clone());
            let found: Vec<_> = check(&tree).iter().map(|violation| violation.rule).collect();
            assert_eq!(found, rules, "{file}");
        }
    }
}

#[test]
fn the_core_is_no_std() {
    let text = CORE_LIB.replace("#![no_std]\n", "");
    assert_eq!(broken("registry-core/src/lib.rs", &text), ["no-std"]);
    let text = CORE_LIB.replace("#![no_std]", "#![cfg_attr(not(feature = \"shared\"), no_std)]");
    assert_eq!(broken("registry-core/src/lib.rs", &text), [""; 0]);
}

#[test]
fn dependencies_point_to_the_core_and_nowhere_else() {
    let cases = [
        ("http-api/Cargo.toml", "eureka-replication = \"1\""),
        ("http-api/Cargo.toml", "eureka-server = \"1\""),
        ("registry-core/Cargo.toml", "serde = \"1\""),
        ("server/Cargo.toml", "xtask = { path = \"../xtask\" }"),
    ];
    for (path, dependency) in cases {
        let text = format!("[lints]\nworkspace = true\n[dependencies]\n{dependency}\n");
        assert_eq!(broken(path, &text), ["manifest"], "{dependency}");
    }
    assert_eq!(
        broken("server/Cargo.toml", "[dependencies]\n"),
        ["manifest"],
        "lints are inherited"
    );
    let composed = "[lints]\nworkspace = true\n[dependencies]\neureka-http-api = \"1\"\n";
    assert_eq!(broken("server/Cargo.toml", composed), [""; 0]);
}

#[test]
fn every_difference_from_java_names_a_test_that_exists() {
    let rows = [
        "| `expiry` | `registry-core/lease::expired` |",
        "| `expiry` | not yet |",
        "| `expiry` | `registry-core/tests/interaction/early.txt` |",
        "| `expiry` | `registry-core/lease::expires` |\n| `expiry` | `registry-core/lease::expires` |",
    ];
    for row in rows {
        assert_eq!(broken("docs/compat.md", &format!("{row}\n")), ["compat"], "{row}");
    }
    let row = "| `expiry` | `registry-core/tests/interaction/late.txt`, `registry-core/lease::expires` |\n";
    assert_eq!(broken("docs/compat.md", row), [""; 0]);
}

#[test]
fn every_expected_difference_is_a_row() {
    let text = "[[difference]]\nrow = \"expiry\"\n";
    assert_eq!(broken("xtask/conformance/expectations.toml", text), [""; 0]);
    assert_eq!(
        broken("xtask/conformance/expectations.toml", "row = \"convenience\"\n"),
        ["compat"]
    );
}

#[test]
fn every_transcript_is_run() {
    assert_eq!(
        broken("registry-core/tests/interaction/early.txt", "nodes 3\n"),
        ["transcript"]
    );
    let mut tree = clean();
    tree.add("registry-core/tests/interaction/early.txt", "nodes 3\n");
    for all in ["std::fs::read_dir", "check::<World>"] {
        let text = format!("//! Transcripts.\nfn all() {{ {all}(\"tests/interaction\"); }}\n");
        tree.add("registry-core/tests/it/interaction.rs", text);
        assert_eq!(check(&tree), [], "{all}");
    }
}

#[test]
fn metrics_and_their_documentation_are_the_same() {
    let counted = "//! Meters.\nconst A: &str = \"eureka_a_total\";\n";
    let with = |listed: &str| {
        let mut tree = clean();
        tree.add("server/src/lib.rs", "//! S.\nmod telemetry;\n");
        tree.add("server/src/telemetry.rs", counted);
        tree.add("docs/operating.md", format!("| {listed} |\n"));
        check(&tree)
            .into_iter()
            .map(|violation| violation.message)
            .collect::<Vec<_>>()
    };
    assert_eq!(with("`eureka_a_total`"), [""; 0]);
    assert_eq!(with("none"), ["docs/operating.md does not list `eureka_a_total`"]);
    assert_eq!(
        with("`eureka_a_total`, `eureka_b`"),
        ["the server has no metric `eureka_b`"]
    );
}

#[test]
fn the_code_map_names_every_module_and_no_other() {
    let head = "## Map\n\n### `registry-core/`\nWhat.\n\n| under | what |\n|---|---|\n";
    let rows = "| `lease.rs` | leases |\n| `shared.rs`, `wire/` | the rest |\n";
    assert_eq!(broken("ARCHITECTURE.md", &format!("{head}{rows}")), [""; 0]);
    assert_eq!(
        broken("ARCHITECTURE.md", &format!("{head}{rows}| `gone.rs` | gone |\n")),
        ["code-map"]
    );
    assert_eq!(
        broken(
            "ARCHITECTURE.md",
            &format!("{head}| `lease.rs`, `wire/` | leases |\n")
        ),
        ["code-map"]
    );
}
