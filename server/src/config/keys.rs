//! What a key of the configuration is, and what is said about names that are none.

mod table;

use super::settings::{Preset, Settings};
use super::{Mistake, Source};

pub use self::table::KEYS;

/// One key of the configuration.
#[derive(Debug)]
pub struct Key {
    /// `section.key`, kebab-case.
    pub name: &'static str,
    /// What its values look like.
    pub kind: Kind,
    /// The value when nothing and no preset says otherwise.
    pub default: &'static str,
    /// The value under `eureka-java`, if it differs.
    pub java: Option<&'static str>,
    /// The value under `eureka-netflix`, if it differs.
    pub netflix: Option<&'static str>,
    /// What it does and how to choose it.
    pub doc: &'static str,
    /// Takes a value, or says what it is not.
    pub(super) set: fn(&mut Settings, &str) -> Result<(), String>,
}

/// What values look like.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// `"0.0.0.0:8761"`
    Address,
    /// `true` or `false`
    Boolean,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A whole number.
    Count,
    /// `"90s"`
    Duration,
    /// `["a", "b"]`, or `a,b` outside the file.
    List,
    /// A list of names with URLs, whose user names and passwords are not shown.
    Regions,
    /// A number from 0 to 1.
    Share,
    /// `"10MiB"`
    Size,
    /// Any text.
    Text,
    /// A list of URLs, whose user names and passwords are not shown.
    Urls,
}

impl Key {
    /// Its value under a preset when no source names it.
    pub(super) fn fallback(&self, preset: Preset) -> (String, Source) {
        let differing = match preset {
            Preset::None => None,
            Preset::EurekaJava => self.java,
            Preset::EurekaNetflix => self.netflix,
        };
        match differing {
            Some(value) => (value.to_owned(), Source::Preset(preset.name())),
            None => (self.default.to_owned(), Source::Default),
        }
    }
}

/// The key of this name.
pub(super) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// Says why a key that is not in the table is refused: a key that would do nothing is never taken silently.
pub(super) fn not_ours(name: &str, source: Source) -> Mistake {
    let later = LATER
        .iter()
        .find(|(prefix, _)| name == *prefix || (prefix.ends_with('.') && name.starts_with(prefix)));
    let message = match (later, closest(name)) {
        (Some((_, matter)), _) => format!("{name}: not available in this version: it has no {matter}"),
        (None, Some(close)) => format!("{name}: there is no such key; did you mean {close}?"),
        (None, None) => format!("{name}: there is no such key; `eureka config` lists all of them"),
    };
    Mistake { source, message }
}

/// Names that are reserved for what this version cannot do.
const LATER: &[(&str, &str)] = &[
    ("auth.", "authentication"),
    ("dns.", "DNS server"),
    ("snapshot.", "snapshot file"),
    ("tls.", "TLS"),
];

fn closest(name: &str) -> Option<&'static str> {
    let last = name.rsplit('.').next().unwrap_or(name);
    KEYS.iter()
        .map(|key| key.name)
        .filter(|known| known.rsplit('.').next() == Some(last) || distance(known, name) <= 2)
        .min_by_key(|known| distance(known, name))
}

/// How many characters must be put in, taken out or replaced to turn one name into the other.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.bytes().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}
