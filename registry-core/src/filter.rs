//! A small language that selects instances: `app == ORDERS && status != UP && zone in (a, b)`.
//!
//! ```text
//! filter     = all { "||" all }
//! all        = term { "&&" term }
//! term       = "!" term | "(" filter ")" | comparison
//! comparison = field ( "==" | "!=" | "~" ) value
//!            | field "in" "(" value { "," value } ")"
//! field      = "app" | "id" | "host" | "ip" | "status" | "override" | "zone" | "vip" | "secure-vip"
//!            | "group" | "asg" | "data-center" | "metadata." key
//! key, value = word | '"' text '"'            (in the text \" and \\ stand for " and \)
//! ```
//!
//! A word is any run of characters other than white space and ``( ) ! = & | ~ , "``. `~` compares with a pattern in which
//! `*` stands for any text, also none; everything else compares whole and minds case, except that `app` is upper case as
//! the registry has it. `vip` and `secure-vip` hold if one element of the comma-separated list does. What an instance does
//! not have is equal to nothing: `==`, `~` and `in` are false, `!=` is true; `metadata.canary ~ "*"` asks whether it is
//! there at all. `status` and `override` know only the five names, `override` is `UNKNOWN` where there is none.

mod parse;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::error::Error;
use core::fmt;

use crate::changes::Change;
use crate::model::{Action, Instance, Status};

/// Bytes a filter may have.
const MAX_LEN: usize = 4096;
/// How deeply `!` and parentheses may be nested.
const MAX_DEPTH: usize = 32;

/// A parsed filter. See the [language](Filter#language).
///
/// # Language
///
/// `field == value`, `field != value`, `field ~ "pattern*"` and `field in (value, value)`, combined with `!`, `&&`, `||`
/// and parentheses. Fields: `app`, `id`, `host`, `ip`, `status`, `override`, `zone`, `vip`, `secure-vip`, `group`, `asg`,
/// `data-center` and `metadata.KEY`. Values need quotes only if they contain white space or any of ``( ) ! = & | ~ , "``.
/// What an instance does not have is equal to nothing.
///
/// ```
/// use eureka_registry_core::Filter;
///
/// let filter = Filter::parse(r#"app == orders && (status != UP || metadata.version ~ "2.*")"#);
/// assert!(filter.is_ok());
///
/// let error = Filter::parse("app = orders").unwrap_err();
/// assert_eq!(error.to_string(), "at byte 4: expected `==`, `!=`, `~` or `in`, found `=`");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    expression: Expression,
}

/// Why a filter was refused. Positions are in bytes from 0.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum FilterError {
    /// It has more than 4,096 bytes.
    TooLong {
        /// How many it has.
        len: usize,
    },
    /// `!` and parentheses are nested more than 32 deep.
    TooDeep {
        /// Where the 33rd is.
        at: usize,
    },
    /// Something else belongs here.
    Unexpected {
        /// Where.
        at: usize,
        /// What belongs here.
        expected: &'static str,
        /// What is here; empty at the end.
        found: String,
    },
    /// There is no such field.
    UnknownField {
        /// Where it is named.
        at: usize,
        /// Its name.
        name: String,
    },
    /// There is no such status.
    UnknownStatus {
        /// Where it is named.
        at: usize,
        /// Its name.
        name: String,
    },
    /// A quoted text does not end.
    OpenText {
        /// Where it begins.
        at: usize,
    },
    /// A backslash stands before something other than `"` and `\`.
    BadEscape {
        /// Where the backslash is.
        at: usize,
    },
}

#[derive(Clone, Debug, PartialEq)]
enum Expression {
    Any(Vec<Self>),
    All(Vec<Self>),
    Not(Box<Self>),
    Compare(Field, Test),
}

#[derive(Clone, Debug, PartialEq)]
enum Field {
    App,
    Id,
    Host,
    Ip,
    Status,
    Override,
    Zone,
    Vip,
    SecureVip,
    Group,
    Asg,
    DataCenter,
    Metadata(Arc<str>),
}

#[derive(Clone, Debug, PartialEq)]
enum Test {
    /// Equal to one of these.
    In(Vec<Arc<str>>),
    /// Equal to none of these.
    NotIn(Vec<Arc<str>>),
    Like(Pattern),
}

/// The pieces between the stars, at least one.
#[derive(Clone, Debug, PartialEq)]
struct Pattern(Vec<Arc<str>>);

impl Filter {
    /// Reads a filter of at most 4 KiB, nested at most 32 deep.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        parse::parse(text).map(|expression| Self { expression })
    }

    /// Whether it selects this instance.
    pub fn matches(&self, instance: &Instance) -> bool {
        self.expression.matches(instance)
    }

    /// What a reader of whatever it selects has to be told of a change.
    pub fn sees(&self, change: &Change) -> Seen {
        let before = change.before.as_ref().map(|before| self.matches(before));
        let after = (change.action != Action::Deleted).then(|| self.matches(&change.instance));
        match (before, after) {
            (Some(false), Some(true)) => Seen::Entered,
            (Some(true), Some(false)) => Seen::Left,
            (Some(true), _) | (_, Some(true)) => Seen::Whole,
            (Some(false) | None, Some(false) | None) => Seen::Hidden,
        }
    }
}

/// What a filter lets through of a [`Change`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Seen {
    /// Nothing: the filter selects the instance neither before nor after it.
    Hidden,
    /// All of it, as it is.
    Whole,
    /// The filter selects the instance from now on: to be told as added.
    Entered,
    /// The filter does not select the instance any more: to be told as deleted, as it was before.
    Left,
}

impl Expression {
    /// Recursion is bounded: the parser refuses what is nested too deeply.
    fn matches(&self, instance: &Instance) -> bool {
        match self {
            Self::Any(terms) => terms.iter().any(|term| term.matches(instance)),
            Self::All(terms) => terms.iter().all(|term| term.matches(instance)),
            Self::Not(term) => !term.matches(instance),
            Self::Compare(field, test) => field.matches(instance, test),
        }
    }
}

impl Field {
    /// The field of this name; `None` for metadata, which needs a key.
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "app" => Self::App,
            "id" => Self::Id,
            "host" => Self::Host,
            "ip" => Self::Ip,
            "status" => Self::Status,
            "override" => Self::Override,
            "zone" => Self::Zone,
            "vip" => Self::Vip,
            "secure-vip" => Self::SecureVip,
            "group" => Self::Group,
            "asg" => Self::Asg,
            "data-center" => Self::DataCenter,
            _ => return None,
        })
    }

    fn matches(&self, instance: &Instance, test: &Test) -> bool {
        if matches!(self, Self::Vip | Self::SecureVip) {
            test.holds_for_list(self.of(instance))
        } else {
            test.holds_for(self.of(instance))
        }
    }

    fn of<'a>(&self, instance: &'a Instance) -> Option<&'a str> {
        match self {
            Self::App => Some(&instance.app),
            Self::Id => Some(instance.id()),
            Self::Host => Some(&instance.host_name),
            Self::Ip => Some(&instance.ip_address),
            Self::Status => Some(instance.status.as_str()),
            Self::Override => Some(instance.overridden_status.as_str()),
            Self::Zone => instance.zone(),
            Self::Vip => instance.vip_address.as_deref(),
            Self::SecureVip => instance.secure_vip_address.as_deref(),
            Self::Group => instance.app_group.as_deref(),
            Self::Asg => instance.asg_name.as_deref(),
            Self::DataCenter => Some(instance.data_center.as_str()),
            Self::Metadata(key) => instance.metadata.get(key),
        }
    }
}

impl Test {
    fn holds_for(&self, value: Option<&str>) -> bool {
        match self {
            Self::NotIn(_) => !self.names(value),
            Self::In(_) | Self::Like(_) => self.names(value),
        }
    }

    /// The same for a comma-separated list, of which one element is enough.
    fn holds_for_list(&self, list: Option<&str>) -> bool {
        let named = list.is_some_and(|list| list.split(',').any(|element| self.names(Some(element))));
        match self {
            Self::NotIn(_) => !named,
            Self::In(_) | Self::Like(_) => named,
        }
    }

    fn names(&self, value: Option<&str>) -> bool {
        value.is_some_and(|value| match self {
            Self::In(values) | Self::NotIn(values) => values.iter().any(|named| **named == *value),
            Self::Like(pattern) => pattern.matches(value),
        })
    }
}

impl Pattern {
    fn new(text: &str) -> Self {
        Self(text.split('*').map(Arc::from).collect())
    }

    /// The first piece begins the text, the last ends it, and those between follow each other, each as early as it can.
    fn matches(&self, text: &str) -> bool {
        let [first, between @ .., last] = &*self.0 else {
            return self.0.iter().any(|whole| **whole == *text);
        };
        let Some(mut rest) = text.strip_prefix(&**first) else {
            return false;
        };
        for piece in between {
            let Some((_, after)) = rest.split_once(&**piece) else {
                return false;
            };
            rest = after;
        }
        rest.ends_with(&**last)
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { len } => write!(f, "the filter has {len} bytes, more than {MAX_LEN}"),
            Self::TooDeep { at } => write!(f, "at byte {at}: nested more than {MAX_DEPTH} deep"),
            Self::Unexpected { at, expected, found } if found.is_empty() => {
                write!(f, "at byte {at}: expected {expected}, found the end")
            }
            Self::Unexpected { at, expected, found } => {
                write!(f, "at byte {at}: expected {expected}, found `{found}`")
            }
            Self::UnknownField { at, name } => write!(f, "at byte {at}: there is no field `{name}`"),
            Self::UnknownStatus { at, name } => {
                write!(f, "at byte {at}: `{name}` is none of")?;
                Status::ALL.iter().try_for_each(|status| write!(f, " {status}"))
            }
            Self::OpenText { at } => write!(f, "at byte {at}: the quoted text does not end"),
            Self::BadEscape { at } => write!(f, "at byte {at}: only \\\" and \\\\ may be escaped"),
        }
    }
}

impl Error for FilterError {}
