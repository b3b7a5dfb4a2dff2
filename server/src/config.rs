//! Configuration: one table of keys, filled from the file, the environment and the flags, in rising order.
//!
//! [`KEYS`] is the only place that knows a key: parsing, `eureka config` and the table in `docs/operating.md` read it.

mod keys;
mod settings;
mod show;
mod sources;
mod value;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

pub use self::keys::{KEYS, Key, Kind};
pub use self::settings::{
    Bootstrap, Compat, Console, Grpc, Limits, Log, LogFormat, Metrics, Overrides, Peers, Preservation,
    Preset, RateLimiter, Regions, Registry, Replication, Responses, Server, Settings,
};
pub use self::show::markdown;
pub use self::sources::{Given, Sources};

/// A complete configuration and where each value came from.
#[derive(Clone, Debug)]
pub struct Config {
    /// The values, typed.
    pub settings: Settings,
    /// Environment variables that begin like ours but have no double underscore; orchestrators inject them.
    pub ignored_environment: Vec<String>,
    /// In the order of [`KEYS`].
    values: Vec<(&'static Key, String, Source)>,
}

/// Where a value came from; a later one wins.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Source {
    /// The table of keys.
    Default,
    /// `compat.preset`.
    Preset(&'static str),
    /// Worked out from the machine or from other keys.
    Derived,
    /// A line of the configuration file.
    File {
        /// The file as it was named.
        path: Arc<str>,
        /// From 1.
        line: usize,
    },
    /// An environment variable.
    Environment(String),
    /// A command line flag.
    Flag(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Preset(preset) => write!(f, "preset {preset}"),
            Self::Derived => f.write_str("derived"),
            Self::File { path, line } => write!(f, "{path}:{line}"),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Flag(flag) => write!(f, "flag {flag}"),
        }
    }
}

/// One thing that is wrong with the configuration.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mistake {
    /// Where it is.
    pub source: Source,
    /// What is wrong, naming the key. Never holds the value of a key that is not in the table: it may be a secret.
    pub message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.source, self.message)
    }
}

impl Config {
    /// Reads the sources and reports every mistake at once.
    pub fn load(sources: &Sources) -> Result<Self, Vec<Mistake>> {
        let read = sources.read();
        Self::resolve(read.given, read.mistakes, read.ignored_environment)
    }

    /// Keys that differ from their defaults with their values, for `/api/v1/node`, without secrets.
    pub fn summary(&self) -> Vec<(String, String)> {
        self.values
            .iter()
            .filter(|(_, _, source)| *source != Source::Default)
            .map(|(key, text, _)| (key.name.to_owned(), shown(key, text).into_owned()))
            .collect()
    }

    /// Names of the keys that have other values in `other`.
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        let pairs = self.values.iter().zip(&other.values);
        pairs
            .filter(|((_, one, _), (_, other, _))| one != other)
            .map(|((key, _, _), _)| key.name)
            .collect()
    }

    fn resolve(
        given: Vec<Given>,
        mut mistakes: Vec<Mistake>,
        ignored_environment: Vec<String>,
    ) -> Result<Self, Vec<Mistake>> {
        let mut explicit: BTreeMap<&'static str, (String, Source)> = BTreeMap::new();
        for given in given {
            let Some(key) = keys::find(&given.key) else {
                mistakes.push(keys::not_ours(&given.key, given.source));
                continue;
            };
            // A value that a later source replaces must be right all the same: it is somebody's mistake.
            if let Err(message) = (key.set)(&mut Settings::default(), &given.text) {
                mistakes.push(Mistake {
                    source: given.source,
                    message: format!("{}: {message}", key.name),
                });
                continue;
            }
            let text = match (&given.source, explicit.get(key.name)) {
                (Source::Flag(Sources::ADDING), Some((before, _))) => format!("{before},{}", given.text),
                _ => given.text,
            };
            explicit.insert(key.name, (text, given.source));
        }
        let preset = explicit
            .get("compat.preset")
            .and_then(|(text, _)| Preset::parse(text));
        let mut settings = Settings::default();
        let mut values = Vec::with_capacity(KEYS.len());
        for key in KEYS {
            let (text, source) = explicit
                .remove(key.name)
                .unwrap_or_else(|| key.fallback(preset.unwrap_or_default()));
            // Explicit values were checked above, and a test checks those of the table.
            (key.set)(&mut settings, &text).expect("a checked value is accepted again");
            values.push((key, text, source));
        }
        mistakes.extend(settings.contradictions());
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        settings.derive(|name, text| {
            if let Some(value) = values.iter_mut().find(|(key, _, _)| key.name == name) {
                (value.1, value.2) = (text.to_owned(), Source::Derived);
            }
        });
        Ok(Self {
            settings,
            ignored_environment,
            values,
        })
    }
}

/// A value as people may see it.
fn shown<'a>(key: &Key, text: &'a str) -> Cow<'a, str> {
    match key.kind {
        Kind::Regions => value::masked_regions(text).into(),
        Kind::Urls => value::masked(text).into(),
        Kind::Address
        | Kind::Boolean
        | Kind::Choice(_)
        | Kind::Count
        | Kind::Duration
        | Kind::List
        | Kind::Share
        | Kind::Size
        | Kind::Text => text.into(),
    }
}
