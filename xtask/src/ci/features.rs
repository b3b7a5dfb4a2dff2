//! Each feature of the sans-IO crates, and of the client, compiles alone, and none of them does too.

use anyhow::{Context, Result};

use super::{cargo, execute};

const CRATES: [&str; 3] = ["registry-core", "replication", "client"];

pub(super) fn check() -> Result<()> {
    for directory in CRATES {
        let manifest = std::fs::read_to_string(crate::root().join(directory).join("Cargo.toml"))?;
        let manifest: toml::Table = manifest.parse().context(directory)?;
        let features = manifest.get("features").and_then(toml::Value::as_table);
        let features = features
            .into_iter()
            .flat_map(|table| table.keys().map(String::as_str));
        for feature in std::iter::once("").chain(features.filter(|name| *name != "default")) {
            println!(
                "{directory}: {}",
                if feature.is_empty() { "no feature" } else { feature }
            );
            let package = format!("eureka-{directory}");
            execute(
                cargo()
                    .args(["clippy", "--quiet", "--lib", "--package", &package])
                    .args([
                        "--no-default-features",
                        "--features",
                        feature,
                        "--",
                        "-D",
                        "warnings",
                    ]),
            )?;
        }
    }
    Ok(())
}
