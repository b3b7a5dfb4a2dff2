//! The three sources of values: the file, the environment, the flags.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Mistake, Source};

/// The file that is read when no other is named and it is there.
const DEFAULT_FILE: &str = "eureka.toml";
const PREFIX: &str = "EUREKA_";

/// Where to read from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The file of `--config`; otherwise `eureka.toml` in the working directory, if there.
    pub file: Option<PathBuf>,
    /// The environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Values of flags: the flag, the key, the value. Later ones win.
    pub flags: Vec<(&'static str, String, String)>,
}

/// A value as a source gave it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Given {
    /// `section.key`
    pub key: String,
    /// The value as text.
    pub text: String,
    /// Where it stands.
    pub source: Source,
}

/// What all sources together gave, in rising order.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) given: Vec<Given>,
    pub(super) mistakes: Vec<Mistake>,
    pub(super) ignored_environment: Vec<String>,
}

impl Sources {
    /// The flag that adds to the value of its key instead of replacing it.
    pub const ADDING: &'static str = "--peer";

    /// The flags given here, and the environment of the process.
    pub fn of_process(file: Option<PathBuf>, flags: Vec<(&'static str, String, String)>) -> Self {
        Self {
            file,
            environment: std::env::vars_os().collect(),
            flags,
        }
    }

    pub(super) fn read(&self) -> Read {
        let mut read = Read::default();
        match &self.file {
            Some(path) => read.file(path, true),
            None => read.file(Path::new(DEFAULT_FILE), false),
        }
        read.environment(&self.environment);
        for (flag, key, text) in &self.flags {
            read.given.push(Given {
                key: key.clone(),
                text: text.clone(),
                source: Source::Flag(flag),
            });
        }
        read
    }
}

impl Read {
    fn file(&mut self, path: &Path, must_exist: bool) {
        let name: Arc<str> = Arc::from(path.to_string_lossy());
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound && !must_exist => return,
            Err(error) => {
                self.mistakes.push(Mistake {
                    source: Source::Flag("--config"),
                    message: format!("{name}: {error}"),
                });
                return;
            }
        };
        let at = |offset: usize| Source::File {
            path: Arc::clone(&name),
            line: 1 + text[..offset.min(text.len())].matches('\n').count(),
        };
        let (table, errors) = DeTable::parse_recoverable(&text);
        for error in errors {
            self.mistakes.push(Mistake {
                source: at(error.span().map_or(0, |span| span.start)),
                message: format!("not TOML: {}", error.message()),
            });
        }
        self.table("", table.get_ref(), &at);
    }

    fn table(&mut self, prefix: &str, table: &DeTable<'_>, at: &dyn Fn(usize) -> Source) {
        for (name, value) in table {
            let key = match prefix {
                "" => name.get_ref().to_string(),
                _ => format!("{prefix}.{}", name.get_ref()),
            };
            let source = at(name.span().start);
            if let DeValue::Table(inner) = value.get_ref() {
                self.table(&key, inner, at);
            } else if let Some(text) = text_of(value.get_ref()) {
                self.given.push(Given { key, text, source });
            } else {
                let message = format!(
                    "{key}: no key takes a value of type {}",
                    value.get_ref().type_str()
                );
                self.mistakes.push(Mistake { source, message });
            }
        }
    }

    fn environment(&mut self, environment: &[(OsString, OsString)]) {
        let mut ours: Vec<_> = environment
            .iter()
            .filter_map(|(name, value)| Some((name.to_str()?, value)))
            .filter(|(name, _)| name.starts_with(PREFIX))
            .collect();
        ours.sort();
        for (name, value) in ours {
            let source = Source::Environment(name.to_owned());
            match (key_of(name), value.to_str()) {
                (None, _) => self.ignored_environment.push(name.to_owned()),
                (Some(_), None) => self.mistakes.push(Mistake {
                    source,
                    message: "its value is not UTF-8".to_owned(),
                }),
                (Some(key), Some(text)) => self.given.push(Given {
                    key,
                    text: text.to_owned(),
                    source,
                }),
            }
        }
    }
}

/// `EUREKA_REGISTRY__EVICTION_INTERVAL` is `registry.eviction-interval`. Names without a double underscore are not ours:
/// an orchestrator injects `EUREKA_PORT` and the like for a service of that name.
fn key_of(name: &str) -> Option<String> {
    let rest = name.strip_prefix(PREFIX)?;
    if !rest.contains("__") {
        return None;
    }
    Some(rest.to_ascii_lowercase().replace("__", ".").replace('_', "-"))
}

fn text_of(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_owned()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(value) => Some(value.to_string()),
        DeValue::Array(values) => {
            let texts: Option<Vec<&str>> = values.iter().map(text_in_array).collect();
            Some(texts?.join(","))
        }
        DeValue::Integer(_) | DeValue::Datetime(_) | DeValue::Table(_) => None,
    }
}

fn text_in_array<'a>(value: &'a Spanned<DeValue<'_>>) -> Option<&'a str> {
    value.get_ref().as_str()
}
