//! A line of a transcript in its parts, and values in the notation of transcripts.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{InstanceKey, Origin, PeerId, Status};

/// `name [node] positional... option=value...`; every part must be used.
pub(crate) struct Arguments<'a> {
    pub(crate) name: &'a str,
    /// Which node, from 0: `n1` is the first, and the default.
    pub(crate) node: usize,
    /// What follows the name, as it stands.
    pub(crate) rest: &'a str,
    positional: RefCell<std::vec::IntoIter<&'a str>>,
    options: RefCell<BTreeMap<&'a str, &'a str>>,
}

impl<'a> Arguments<'a> {
    pub(crate) fn parse(line: &'a str) -> Self {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut words = rest.split_whitespace().peekable();
        let node = words.next_if(|word| is_node(word));
        let (options, positional): (Vec<_>, Vec<_>) = words.partition(|word| word.contains('='));
        let options = options.into_iter().filter_map(|word| word.split_once('='));
        Self {
            name,
            node: node.map_or(0, |node| node[1..].parse::<usize>().expect("digits") - 1),
            rest: rest.trim(),
            positional: RefCell::new(positional.into_iter()),
            options: RefCell::new(options.collect()),
        }
    }

    /// The next word without `=`.
    pub(crate) fn next(&self) -> Option<&'a str> {
        self.positional.borrow_mut().next()
    }

    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        self.options.borrow_mut().remove(name)
    }

    pub(crate) fn parsed<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        parse(text)
            .map(Some)
            .ok_or_else(|| format!("{name}={text} cannot be read"))
    }

    pub(crate) fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, String> {
        self.parsed(name, |text| text.parse().ok())
    }

    pub(crate) fn duration(&self, name: &str) -> Result<Option<Duration>, String> {
        self.parsed(name, duration)
    }

    pub(crate) fn key(&self) -> Result<InstanceKey, String> {
        let text = self.next().ok_or("an instance APP/id belongs here")?;
        let (app, id) = text
            .split_once('/')
            .ok_or_else(|| format!("{text} is no APP/id"))?;
        Ok(InstanceKey::new(app, id))
    }

    /// `from=client|operator|own|peer:NAME`.
    pub(crate) fn origin(&self) -> Result<Origin, String> {
        let origin = self.parsed("from", |text| {
            Some(match text {
                "client" => Origin::Client,
                "operator" => Origin::Operator,
                "own" => Origin::Own,
                _ => Origin::Peer(PeerId(Arc::from(text.strip_prefix("peer:")?))),
            })
        })?;
        Ok(origin.unwrap_or(Origin::Client))
    }

    pub(crate) fn status_option(&self, name: &str) -> Result<Option<Status>, String> {
        self.parsed(name, Status::parse)
    }

    /// Whatever options are left, in the order of their names.
    pub(crate) fn take_rest(&self) -> BTreeMap<&'a str, &'a str> {
        std::mem::take(&mut self.options.borrow_mut())
    }

    /// Fails if a part was not used: a misspelt option must not pass for an absent one.
    pub(crate) fn finish(&self) -> Result<(), String> {
        match (self.next(), self.options.borrow().keys().next()) {
            (None, None) => Ok(()),
            (Some(word), _) => Err(format!("`{word}` means nothing to `{}`", self.name)),
            (None, Some(option)) => Err(format!("`{option}=` means nothing to `{}`", self.name)),
        }
    }
}

fn is_node(word: &str) -> bool {
    word.strip_prefix('n')
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// `1500ms`, `40s`, `15m`, `1h`.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok()?;
    let millis = match &text[digits.len()..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    Some(Duration::from_millis(number * millis))
}
