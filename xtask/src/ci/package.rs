//! Each library packed as it would be published, and what is in the packages built.
//!
//! cargo's own verification unpacks what depends on what into its home, keeps it there, and takes it from there the next time
//! a package of the same version is verified in the same place, whatever has changed since. So this unpacks them itself.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{cargo, execute};

/// What is published for others to build on.
const LIBRARIES: [&str; 5] = [
    "eureka-registry-core",
    "eureka-replication",
    "eureka-http-api",
    "eureka-grpc-api",
    "eureka-client",
];

pub(super) fn check() -> Result<()> {
    let directory = crate::root().join("target/packages");
    if directory.exists() {
        fs::remove_dir_all(&directory)?;
    }
    let mut pack = cargo();
    // What is not committed is checked, too.
    pack.args([
        "package",
        "--quiet",
        "--allow-dirty",
        "--no-verify",
        "--target-dir",
    ]);
    pack.arg(&directory);
    for library in LIBRARIES {
        pack.args(["--package", library]);
    }
    execute(&mut pack)?;
    build(&directory.join("package"))
}

/// Unpacks all packages in `directory`, and builds each with the others in the place of what the registry has.
fn build(directory: &Path) -> Result<()> {
    let mut manifest =
        "[workspace]\nresolver = \"3\"\nmembers = [\"eureka-*/\"]\n[patch.crates-io]\n".to_owned();
    for library in LIBRARIES {
        let package = format!("{library}-{}", env!("CARGO_PKG_VERSION"));
        execute(
            Command::new("tar")
                .arg("xzf")
                .arg(format!("{package}.crate"))
                .current_dir(directory),
        )?;
        writeln!(manifest, "{library} = {{ path = {package:?} }}")?;
    }
    fs::write(directory.join("Cargo.toml"), manifest)?;
    fs::copy(crate::root().join("Cargo.lock"), directory.join("Cargo.lock")).context("Cargo.lock")?;
    for library in LIBRARIES {
        // By itself: what another package asks of a common dependency must not help.
        let mut check = cargo();
        check
            .args(["check", "--quiet", "--package", library, "--target-dir"])
            .arg(crate::target())
            .current_dir(directory);
        execute(&mut check)?;
    }
    Ok(())
}
