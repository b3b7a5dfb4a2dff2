//! The messages of repair between nodes of ours as JSON. Java knows none of them.
//!
//! What is read is strict where Eureka's own formats are lenient: both ends are ours. Only members of unknown names are
//! skipped, for newer nodes. Instances stand in the fields of Eureka's JSON, as they were reported, and are read back
//! exactly: what Java's decoders would turn into something else has the same content hash at both ends.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use super::DecodeError;
use super::json::{
    Value, elements, members, read_reported, spelled, text, whole, write_integer, write_member,
    write_reported,
};
use crate::model::{InstanceKey, Status};
use crate::repair::{
    BUCKETS, EXCHANGE_MAX, Entry, EntryState, LATE_MAX, Offer, RepairAnswer, RepairRequest, Stamp, Stamped,
    Step,
};
use crate::time::Wall;

/// At most this many entries are taken from the answer to a list; an answer of 64 MiB with more has empty ones.
const ENTRIES: usize = 500_000;

/// Which of the four questions a message belongs to; on the wire that is the path.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum RepairKind {
    /// Are we equal, and whom of my late ones have you heard of?
    Compare,
    /// A page of everything.
    Copy,
    /// Copies and cancels, both ways.
    Exchange,
    /// What is in these buckets?
    List,
}

impl RepairKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Compare, Self::Copy, Self::Exchange, Self::List];

    /// The last segment of its path.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Compare => "compare",
            Self::Copy => "copy",
            Self::Exchange => "exchange",
            Self::List => "list",
        }
    }

    /// The kind with exactly this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

impl From<&Step> for RepairKind {
    fn from(step: &Step) -> Self {
        match step {
            Step::Compare => Self::Compare,
            Step::Copy { .. } => Self::Copy,
            Step::Exchange { .. } => Self::Exchange,
            Step::List { .. } => Self::List,
        }
    }
}

impl From<&RepairRequest> for RepairKind {
    fn from(request: &RepairRequest) -> Self {
        match request {
            RepairRequest::Compare { .. } => Self::Compare,
            RepairRequest::Copy { .. } => Self::Copy,
            RepairRequest::Exchange { .. } => Self::Exchange,
            RepairRequest::List { .. } => Self::List,
        }
    }
}

/// The body of a request.
pub fn write_repair_request(request: &RepairRequest) -> Vec<u8> {
    let mut out = Vec::new();
    match request {
        RepairRequest::Compare { root, late } => {
            write_hash(r#"{"root":"#, *root, &mut out);
            write_list(r#","late":["#, late, &mut out, write_key);
        }
        RepairRequest::List { buckets } => {
            write_list(r#"{"buckets":["#, buckets, &mut out, |bucket, out| {
                write_integer(*bucket, out);
            });
        }
        RepairRequest::Exchange { pull, push } => {
            write_list(r#"{"pull":["#, pull, &mut out, write_key);
            write_list(r#","push":["#, push, &mut out, write_offer);
        }
        RepairRequest::Copy { after: None } => out.push(b'{'),
        RepairRequest::Copy { after: Some(after) } => {
            out.extend_from_slice(br#"{"after":"#);
            write_key(after, &mut out);
        }
    }
    out.push(b'}');
    out
}

/// The body of an answer.
pub fn write_repair_answer(answer: &RepairAnswer) -> Vec<u8> {
    let mut out = Vec::new();
    match answer {
        RepairAnswer::Compare {
            root,
            sums,
            ages,
            gone,
        } => {
            write_hash(r#"{"root":"#, *root, &mut out);
            write_list(r#","sums":["#, sums, &mut out, |sum, out| {
                write_hash("", *sum, out)
            });
            write_list(r#","ages":["#, ages, &mut out, |(key, age), out| {
                write_names(key, out);
                write_millis(r#","age":"#, *age, out);
                out.push(b'}');
            });
            write_list(r#","gone":["#, gone, &mut out, |(key, dirty, ago), out| {
                write_gone(key, *dirty, *ago, out);
            });
        }
        RepairAnswer::List { entries } => write_list(r#"{"entries":["#, entries, &mut out, write_entry),
        RepairAnswer::Exchange { offers } => write_list(r#"{"offers":["#, offers, &mut out, write_offer),
        RepairAnswer::Copy {
            offers,
            more,
            total,
            held,
        } => {
            write_list(r#"{"offers":["#, offers, &mut out, write_offer);
            out.extend_from_slice(br#","total":"#);
            write_integer(*total, &mut out);
            out.extend_from_slice(format!(r#","more":{more},"held":{held}"#).as_bytes());
        }
    }
    out.push(b'}');
    out
}

/// Reads a request of this kind. Each list is bounded ([`LATE_MAX`], [`BUCKETS`], [`EXCHANGE_MAX`]), and names nothing
/// twice.
pub fn read_repair_request(kind: RepairKind, body: &[u8]) -> Result<RepairRequest, DecodeError> {
    let fields = Fields::read(body)?;
    Ok(match kind {
        RepairKind::Compare => RepairRequest::Compare {
            root: hash("root", fields.required("root")?)?,
            late: once("late", list("late", fields.required("late")?, LATE_MAX, key)?)?,
        },
        RepairKind::List => {
            let buckets = list("buckets", fields.required("buckets")?, BUCKETS, bucket)?;
            RepairRequest::List {
                buckets: once("buckets", buckets)?,
            }
        }
        RepairKind::Exchange => RepairRequest::Exchange {
            pull: once("pull", list("pull", fields.required("pull")?, EXCHANGE_MAX, key)?)?,
            push: list("push", fields.required("push")?, EXCHANGE_MAX, offer)?,
        },
        RepairKind::Copy => RepairRequest::Copy {
            after: fields.optional("after").map(key).transpose()?,
        },
    })
}

/// Reads the answer to a request of this kind. Sums are [`BUCKETS`] or none.
pub fn read_repair_answer(kind: RepairKind, body: &[u8]) -> Result<RepairAnswer, DecodeError> {
    let fields = Fields::read(body)?;
    Ok(match kind {
        RepairKind::Compare => {
            let sums = list("sums", fields.required("sums")?, BUCKETS, |value| {
                hash("sums", value)
            })?;
            if !matches!(sums.len(), 0 | BUCKETS) {
                return Err(unexpected(format!(
                    "{} `sums`, not {BUCKETS} or none",
                    sums.len()
                )));
            }
            RepairAnswer::Compare {
                root: hash("root", fields.required("root")?)?,
                sums,
                ages: list("ages", fields.required("ages")?, LATE_MAX, aged)?,
                gone: match fields.optional("gone") {
                    Some(value) => list("gone", value, LATE_MAX, gone)?,
                    None => Vec::new(),
                },
            }
        }
        RepairKind::List => RepairAnswer::List {
            entries: list("entries", fields.required("entries")?, ENTRIES, entry)?,
        },
        RepairKind::Exchange => RepairAnswer::Exchange {
            offers: list("offers", fields.required("offers")?, EXCHANGE_MAX, offer)?,
        },
        RepairKind::Copy => RepairAnswer::Copy {
            offers: list("offers", fields.required("offers")?, EXCHANGE_MAX, offer)?,
            more: flag("more", fields.required("more")?)?,
            total: number("total", fields.required("total")?)?,
            held: flag("held", fields.required("held")?)?,
        },
    })
}

fn write_key(key: &InstanceKey, out: &mut Vec<u8>) {
    write_names(key, out);
    out.push(b'}');
}

/// Opens an object that begins with a key.
fn write_names(key: &InstanceKey, out: &mut Vec<u8>) {
    write_member(r#"{"app":""#, key.app(), out);
    write_member(r#","id":""#, key.id(), out);
}

fn write_entry(entry: &Entry, out: &mut Vec<u8>) {
    write_names(&entry.key, out);
    out.extend_from_slice(br#","dirty":"#);
    write_integer(entry.dirty, out);
    match entry.state {
        EntryState::Held {
            content,
            overridden,
            stamp,
            age,
        } => {
            write_hash(r#","content":"#, content, out);
            write_millis(r#","age":"#, age, out);
            write_override(overridden, stamp, out);
        }
        EntryState::Moving => out.extend_from_slice(br#","moving":true"#),
        EntryState::Gone { ago } => write_millis(r#","ago":"#, ago, out),
    }
    out.push(b'}');
}

fn write_offer(offer: &Offer, out: &mut Vec<u8>) {
    match offer {
        Offer::Copy {
            instance,
            age,
            overridden,
        } => {
            out.extend_from_slice(br#"{"instance":"#);
            write_reported(instance, out);
            write_millis(r#","age":"#, *age, out);
            let status = overridden.and_then(|stamped| stamped.status);
            write_override(status, overridden.map(|stamped| stamped.stamp), out);
        }
        Offer::Gone { key, dirty, ago } => return write_gone(key, *dirty, *ago, out),
    }
    out.push(b'}');
}

fn write_gone(key: &InstanceKey, dirty: i64, ago: Duration, out: &mut Vec<u8>) {
    write_names(key, out);
    out.extend_from_slice(br#","dirty":"#);
    write_integer(dirty, out);
    write_millis(r#","ago":"#, ago, out);
    out.push(b'}');
}

fn write_override(status: Option<Status>, stamp: Option<Stamp>, out: &mut Vec<u8>) {
    if let Some(status) = status {
        write_member(r#","overridden":""#, status.as_str(), out);
    }
    if let Some(stamp) = stamp {
        out.extend_from_slice(br#","stamp":{"at":"#);
        write_integer(stamp.at.0, out);
        write_hash(r#","node":"#, stamp.node, out);
        out.push(b'}');
    }
}

/// Rounded up: what is handed on may look older than it is, never younger.
fn write_millis(start: &str, duration: Duration, out: &mut Vec<u8>) {
    out.extend_from_slice(start.as_bytes());
    let millis = duration.as_nanos().div_ceil(1_000_000);
    write_integer(u64::try_from(millis).unwrap_or(u64::MAX), out);
}

fn write_hash(start: &str, hash: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{start}\"{hash:016x}\"").as_bytes());
}

fn write_list<T>(start: &str, items: &[T], out: &mut Vec<u8>, mut write: impl FnMut(&T, &mut Vec<u8>)) {
    out.extend_from_slice(start.as_bytes());
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(b']');
}

/// The members of an object, by name; `null` is as good as absent. There are few, so that looking through them is cheap:
/// more than [`MEMBERS`] are refused.
struct Fields<'a>(Vec<(Box<str>, Value<'a>)>);

/// No object of ours has half as many.
const MEMBERS: usize = 32;

impl<'a> Fields<'a> {
    fn read(body: &'a [u8]) -> Result<Self, DecodeError> {
        Self::of("document", whole(body)?)
    }

    fn of(name: &str, mut value: Value<'a>) -> Result<Self, DecodeError> {
        let mut fields = Vec::with_capacity(8);
        members(name, &mut value, |name, value| {
            if fields.len() == MEMBERS {
                return Err(DecodeError::TooComplex);
            }
            if fields.iter().any(|(known, _): &(Box<str>, _)| **known == *name) {
                return Err(unexpected(format!("`{name}` twice")));
            }
            fields.push((Box::from(name), *value));
            Ok(())
        })?;
        Ok(Self(fields))
    }

    fn optional(&self, name: &str) -> Option<Value<'a>> {
        let found = self.0.iter().find(|(known, _)| **known == *name);
        found.map(|(_, value)| *value).filter(|value| !value.is_null())
    }

    fn required(&self, name: &'static str) -> Result<Value<'a>, DecodeError> {
        self.optional(name).ok_or(DecodeError::Absent(name))
    }

    fn key(&self) -> Result<InstanceKey, DecodeError> {
        let (app, id) = (self.required("app")?, self.required("id")?);
        let (app, id) = (string("app", app)?, string("id", id)?);
        if app.is_empty() || id.is_empty() {
            return Err(unexpected("`app` and `id` must not be empty".into()));
        }
        Ok(InstanceKey::new(&app, &id))
    }

    fn gone(&self) -> Result<(InstanceKey, i64, Duration), DecodeError> {
        let dirty = number("dirty", self.required("dirty")?)?;
        Ok((self.key()?, dirty, self.millis("ago")?))
    }

    fn millis(&self, name: &'static str) -> Result<Duration, DecodeError> {
        number(name, self.required(name)?).map(Duration::from_millis)
    }

    fn overridden(&self) -> Result<Option<Status>, DecodeError> {
        let Some(value) = self.optional("overridden") else {
            return Ok(None);
        };
        match Status::parse(&string("overridden", value)?) {
            Some(status) => Ok(Some(status)),
            None => Err(unexpected("`overridden` must be a status".into())),
        }
    }

    fn stamp(&self) -> Result<Option<Stamp>, DecodeError> {
        let Some(value) = self.optional("stamp") else {
            return Ok(None);
        };
        let fields = Fields::of("`stamp`", value)?;
        Ok(Some(Stamp {
            at: Wall(number("at", fields.required("at")?)?),
            node: hash("node", fields.required("node")?)?,
        }))
    }
}

fn key(value: Value<'_>) -> Result<InstanceKey, DecodeError> {
    Fields::of("a key", value)?.key()
}

fn aged(value: Value<'_>) -> Result<(InstanceKey, Duration), DecodeError> {
    let fields = Fields::of("an age", value)?;
    Ok((fields.key()?, fields.millis("age")?))
}

fn gone(value: Value<'_>) -> Result<(InstanceKey, i64, Duration), DecodeError> {
    Fields::of("a cancel", value)?.gone()
}

fn bucket(value: Value<'_>) -> Result<u16, DecodeError> {
    let bucket: u16 = number("buckets", value)?;
    if usize::from(bucket) >= BUCKETS {
        return Err(unexpected(format!("there is no bucket {bucket}")));
    }
    Ok(bucket)
}

fn entry(value: Value<'_>) -> Result<Entry, DecodeError> {
    let fields = Fields::of("an entry", value)?;
    let states = ["content", "moving", "ago"].map(|name| fields.optional(name));
    let state = match states {
        [Some(content), None, None] => EntryState::Held {
            content: hash("content", content)?,
            overridden: fields.overridden()?,
            stamp: fields.stamp()?,
            age: fields.millis("age")?,
        },
        [None, Some(moving), None] if flag("moving", moving)? => EntryState::Moving,
        [None, None, Some(_)] => EntryState::Gone {
            ago: fields.millis("ago")?,
        },
        _ => {
            let text = "an entry must have one of `content`, `moving` and `ago`";
            return Err(unexpected(text.into()));
        }
    };
    Ok(Entry {
        key: fields.key()?,
        dirty: number("dirty", fields.required("dirty")?)?,
        state,
    })
}

fn offer(value: Value<'_>) -> Result<Offer, DecodeError> {
    let fields = Fields::of("an offer", value)?;
    let Some(mut instance) = fields.optional("instance") else {
        let (key, dirty, ago) = fields.gone()?;
        return Ok(Offer::Gone { key, dirty, ago });
    };
    let overridden = match (fields.overridden()?, fields.stamp()?) {
        (status, Some(stamp)) => Some(Stamped { status, stamp }),
        (Some(_), None) => return Err(DecodeError::Absent("stamp")),
        (None, None) => None,
    };
    let mut registration = read_reported(&mut instance)?.registration;
    // What is offered is what was reported: the override stands beside it.
    registration.overridden_status = Status::Unknown;
    if registration.last_dirty.is_none() {
        return Err(DecodeError::Absent("lastDirtyTimestamp"));
    }
    let app = registration.app.clone().unwrap_or_default();
    let instance = registration
        .validate(&app)
        .map_err(|invalid| unexpected(format!("an offer: {invalid}")))?;
    Ok(Offer::Copy {
        instance: Arc::new(instance),
        age: fields.millis("age")?,
        overridden,
    })
}

/// The elements of an array that has no more than `limit`.
fn list<'a, T>(
    name: &str,
    mut value: Value<'a>,
    limit: usize,
    read: impl Fn(Value<'a>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    if !value.is_array() {
        return Err(unexpected(format!("`{name}` must be an array")));
    }
    let mut items = Vec::new();
    elements(&mut value, |value| {
        if items.len() == limit {
            return Err(unexpected(format!("more than {limit} `{name}`")));
        }
        items.push(read(*value)?);
        Ok(())
    })?;
    Ok(items)
}

/// Refuses a list that names something twice: each name is work for who answers.
fn once<T: Ord>(name: &str, items: Vec<T>) -> Result<Vec<T>, DecodeError> {
    let distinct: BTreeSet<&T> = items.iter().collect();
    if distinct.len() < items.len() {
        return Err(unexpected(format!("`{name}` names something twice")));
    }
    Ok(items)
}

/// A whole number as such, not as text.
fn number<T: FromStr>(name: &str, mut value: Value<'_>) -> Result<T, DecodeError> {
    let parsed = spelled(&mut value)?.parse().ok();
    parsed.ok_or_else(|| unexpected(format!("`{name}` must be a whole number in range")))
}

fn flag(name: &str, mut value: Value<'_>) -> Result<bool, DecodeError> {
    let parsed = spelled(&mut value)?.parse().ok();
    parsed.ok_or_else(|| unexpected(format!("`{name}` must be true or false")))
}

fn string<'a>(name: &str, mut value: Value<'a>) -> Result<Cow<'a, str>, DecodeError> {
    let quoted = value.is_string();
    match text(name, &mut value)? {
        Some(text) if quoted => Ok(text),
        Some(_) | None => Err(unexpected(format!("`{name}` must be text"))),
    }
}

/// Sixteen hexadecimal digits.
fn hash(name: &str, value: Value<'_>) -> Result<u64, DecodeError> {
    let digits = string(name, value)?;
    let all = digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let parsed = u64::from_str_radix(&digits, 16).ok().filter(|_| all);
    parsed.ok_or_else(|| unexpected(format!("`{name}` must be 16 hexadecimal digits")))
}

fn unexpected(text: String) -> DecodeError {
    DecodeError::Unexpected(text)
}
