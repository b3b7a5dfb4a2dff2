//! The proof that registry-core without features has no standard library, and so no clock, thread or socket.
//!
//! A library that brings its own panic handler cannot be built if anything it depends on links the standard library:
//! the compiler finds `panic_impl` twice. So the check builds such a library around registry-core. To show that the
//! check can fail, it builds it again with the feature `shared`, which needs the standard library: that must not compile.

use std::fs;
use std::path::Path;
use std::process::Output;

use anyhow::{Context, Result, bail, ensure};

use super::cargo;

const LIBRARY: &str = r#"#![no_std]
extern crate alloc;
pub use eureka_registry_core;

use core::alloc::{GlobalAlloc, Layout};

struct NoMemory;

unsafe impl GlobalAlloc for NoMemory {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        core::ptr::null_mut()
    }
    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: NoMemory = NoMemory;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
"#;

pub(super) fn check() -> Result<()> {
    only_hashbrown()?;
    let plain = build("")?;
    if !plain.status.success() {
        bail!(
            "registry-core does not build without std:\n{}",
            String::from_utf8_lossy(&plain.stderr)
        );
    }
    let shared = build("shared")?;
    let errors = String::from_utf8_lossy(&shared.stderr);
    ensure!(
        !shared.status.success() && errors.contains("panic_impl"),
        "with `shared` the library links std and must not build, but: {errors}"
    );
    println!("registry-core: no_std, hashbrown its only dependency; with `shared` the same build finds std");
    Ok(())
}

fn only_hashbrown() -> Result<()> {
    let tree = cargo()
        .args([
            "tree",
            "--package",
            "eureka-registry-core",
            "--no-default-features",
        ])
        .args([
            "--edges", "normal", "--depth", "1", "--prefix", "none", "--format", "{lib}",
        ])
        .output()?;
    ensure!(
        tree.status.success(),
        "cargo tree: {}",
        String::from_utf8_lossy(&tree.stderr)
    );
    let names = String::from_utf8(tree.stdout)?;
    let names: Vec<_> = names.lines().map(str::trim).collect();
    ensure!(
        names == ["eureka_registry_core", "hashbrown"],
        "direct dependencies: {names:?}"
    );
    Ok(())
}

fn build(feature: &str) -> Result<Output> {
    let root = crate::root();
    let directory = root.join("target/no-std");
    fs::create_dir_all(directory.join("src"))?;
    fs::write(directory.join("src/lib.rs"), LIBRARY)?;
    fs::write(directory.join("Cargo.toml"), manifest(&root, feature))?;
    fs::copy(root.join("Cargo.lock"), directory.join("Cargo.lock"))?;
    let mut build = cargo();
    build
        .args(["build", "--quiet", "--offline"])
        .current_dir(&directory)
        .env("CARGO_TARGET_DIR", "target");
    build.output().with_context(|| format!("{build:?}"))
}

fn manifest(root: &Path, feature: &str) -> String {
    let core = root.join("registry-core");
    let features = if feature.is_empty() {
        String::new()
    } else {
        format!("{feature:?}")
    };
    format!(
        "[package]\nname = \"no-std\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
         [lib]\ncrate-type = [\"staticlib\"]\n\
         [dependencies.eureka-registry-core]\npath = {core:?}\ndefault-features = false\nfeatures = [{features}]\n\
         [profile.dev]\npanic = \"abort\"\n[workspace]\n"
    )
}
