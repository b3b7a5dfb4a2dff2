//! Rules about `Cargo.toml` files: the direction of dependencies between the crates.

use super::Violation;
use super::tree::Tree;

const CORE: &str = "eureka-registry-core";
const COMPOSERS: [&str; 2] = ["server", "xtask"];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in tree.files() {
        let (directory, "Cargo.toml") = file.place() else {
            continue;
        };
        if directory.is_empty() {
            continue; // the workspace itself
        }
        let manifest: toml::Table = match file.text.parse() {
            Ok(manifest) => manifest,
            Err(error) => {
                violations.push(Violation::new(&file.path, 0, "manifest", error.to_string()));
                continue;
            }
        };
        let mut push = |message: String| {
            violations.push(Violation::new(&file.path, 0, "manifest", message));
        };
        let inherits = manifest.get("lints").and_then(|lints| lints.get("workspace"));
        if inherits != Some(&toml::Value::Boolean(true)) {
            push("`[lints] workspace = true` is missing".to_owned());
        }
        let Some(dependencies) = manifest.get("dependencies").and_then(toml::Value::as_table) else {
            continue;
        };
        for (name, value) in dependencies {
            let is_optional = value.get("optional") == Some(&toml::Value::Boolean(true));
            if directory == "registry-core" && !is_optional && name != "hashbrown" {
                push(format!(
                    "registry-core's only dependency without features is hashbrown, not `{name}`"
                ));
            }
            let is_ours = name.starts_with("eureka-");
            if ["eureka-server", "xtask"].contains(&name.as_str()) {
                push(format!("nothing depends on `{name}`"));
            } else if is_ours && name != CORE && !COMPOSERS.contains(&directory) {
                push(format!(
                    "a library depends on {CORE} and on no sibling, not on `{name}`"
                ));
            }
        }
    }
    violations
}
