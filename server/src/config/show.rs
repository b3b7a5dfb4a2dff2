//! The configuration for people: what is in force, and the table of all keys.

use std::fmt;

use super::{Config, KEYS, Key, Kind, shown};

/// Every key with its effective value and where it came from, as a TOML file that would give the same.
impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self
            .values
            .iter()
            .map(|(key, text, source)| {
                (
                    format!("{} = {}", key.name, literal(key, &shown(key, text))),
                    source,
                )
            })
            .collect();
        let width = lines.iter().map(|(line, _)| line.len()).max().unwrap_or(0);
        for (line, source) in &lines {
            writeln!(f, "{line:width$}  # {source}")?;
        }
        for name in &self.ignored_environment {
            writeln!(
                f,
                "# ignored: environment {name} (only names with a double underscore are configuration)"
            )?;
        }
        Ok(())
    }
}

/// The table of all keys, for `docs/operating.md`.
pub fn markdown() -> String {
    let mut table = String::from("| key | value | default | what it does |\n|---|---|---|---|\n");
    for key in KEYS {
        let mut default = code(literal(key, key.default));
        for (preset, differing) in [("eureka-java", key.java), ("eureka-netflix", key.netflix)] {
            if let Some(value) = differing {
                default.push_str(&format!("; {} in `{preset}`", code(literal(key, value))));
            }
        }
        table.push_str(&format!(
            "| `{}` | {} | {default} | {} |\n",
            key.name,
            kind(key.kind),
            key.doc
        ));
    }
    table
}

fn code(text: String) -> String {
    format!("`{text}`")
}

fn kind(kind: Kind) -> String {
    match kind {
        Kind::Address => "address".to_owned(),
        Kind::Boolean => "`true`, `false`".to_owned(),
        Kind::Choice(words) => words
            .iter()
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(", "),
        Kind::Count => "number".to_owned(),
        Kind::Duration => "duration".to_owned(),
        Kind::List => "list".to_owned(),
        Kind::Regions => "list of `name=url url`".to_owned(),
        Kind::Share => "share".to_owned(),
        Kind::Size => "size".to_owned(),
        Kind::Text => "text".to_owned(),
        Kind::Urls => "list of URLs".to_owned(),
    }
}

/// A value as it would stand in the file.
fn literal(key: &Key, text: &str) -> String {
    match key.kind {
        Kind::Boolean | Kind::Count | Kind::Share => text.to_owned(),
        Kind::List | Kind::Regions | Kind::Urls => {
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            let quoted: Vec<_> = parts.map(|part| format!("{part:?}")).collect();
            format!("[{}]", quoted.join(", "))
        }
        Kind::Address | Kind::Choice(_) | Kind::Duration | Kind::Size | Kind::Text => format!("{text:?}"),
    }
}
