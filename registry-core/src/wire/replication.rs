//! The batches that servers send each other.

use std::borrow::Cow;
use std::sync::Arc;

use super::json::{
    Value, digits, elements, integer, members, read_instance, root, text, write_instance, write_integer,
    write_member,
};
use super::{DecodeError, Dialect, Format, ItemError, Registration, xml};
use crate::model::{InstanceKey, KeyRef, Status};
use crate::snapshot::LeaseView;

/// One item of a batch as received; the most frequent one has its names from the body.
#[derive(Clone, Debug, PartialEq)]
pub enum BatchItem<'a> {
    /// As a DELETE of the instance.
    Cancel {
        /// Whom.
        key: InstanceKey,
    },
    /// As a DELETE of its status.
    DeleteStatusOverride {
        /// Whose.
        key: InstanceKey,
        /// The status to fall back to.
        status: Option<Status>,
        /// New dirty timestamp.
        last_dirty: Option<i64>,
    },
    /// As a renewal.
    Heartbeat(Heartbeat<'a>),
    /// As a registration under the application of `key`; still to be validated.
    Register {
        /// Whom the item names, as its heartbeats will.
        key: InstanceKey,
        /// What is to be registered.
        registration: Box<Registration>,
    },
    /// As a PUT of its status.
    StatusUpdate {
        /// Whose.
        key: InstanceKey,
        /// The status to show.
        status: Status,
        /// New dirty timestamp.
        last_dirty: Option<i64>,
    },
}

/// A renewal in a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Heartbeat<'a> {
    /// The application, as the sender spells it.
    pub app: Cow<'a, str>,
    /// The effective instance id.
    pub id: Cow<'a, str>,
    /// The sender's version.
    pub last_dirty: Option<i64>,
    /// The override the sender holds.
    pub overridden: Option<Status>,
}

impl Heartbeat<'_> {
    /// Whose it is.
    pub fn key(&self) -> KeyRef<'_> {
        KeyRef::new(&self.app, &self.id)
    }
}

/// One item of a batch as sent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum OutgoingItem {
    /// The instance is gone.
    Cancel {
        /// Which.
        key: InstanceKey,
    },
    /// Its override is gone.
    DeleteStatusOverride {
        /// Whose.
        key: InstanceKey,
        /// The status to fall back to; `None` is `UNKNOWN`.
        status: Option<Status>,
        /// Its dirty timestamp.
        last_dirty: i64,
    },
    /// It renewed.
    Heartbeat {
        /// Who.
        key: InstanceKey,
        /// Its dirty timestamp.
        last_dirty: Option<i64>,
        /// Its status.
        status: Status,
        /// The override held here.
        overridden: Option<Status>,
    },
    /// It registered.
    Register(Arc<LeaseView>),
    /// It has an override.
    StatusUpdate {
        /// Whose.
        key: InstanceKey,
        /// The status to show.
        status: Status,
        /// Its dirty timestamp.
        last_dirty: Option<i64>,
    },
}

/// The answer to one item, as sent.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemAnswer {
    /// As an HTTP status.
    pub status: u16,
    /// The newer copy that comes with a 409.
    pub newer: Option<Arc<LeaseView>>,
}

/// The answer to one item, as received.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ReceivedAnswer {
    /// As an HTTP status.
    pub status: u16,
    /// The newer copy that comes with a 409; still to be validated.
    pub newer: Option<Registration>,
}

/// At most this many items are taken; a batch of 64 MiB with more has empty ones.
const ITEMS: usize = 250_000;

/// Reads a batch item by item. Under [`Dialect::Java`] one item that cannot be read fails the whole batch.
pub fn read_batch(
    body: &[u8],
    dialect: Dialect,
) -> Result<Vec<Result<BatchItem<'_>, ItemError>>, DecodeError> {
    let mut document = root(body)?;
    if document.is_null() {
        return Err(DecodeError::Absent("document"));
    }
    let mut items = None;
    members("document", &mut document, |name, value| {
        match name {
            "replicationList" if value.is_null() => items = None,
            "replicationList" => items = Some(read_items(value, dialect)?),
            _ if dialect == Dialect::Java => return Err(unknown(name)),
            _ => {}
        }
        Ok(())
    })?;
    items.ok_or(DecodeError::Absent("replicationList"))
}

fn read_items<'a>(
    value: &mut Value<'a>,
    dialect: Dialect,
) -> Result<Vec<Result<BatchItem<'a>, ItemError>>, DecodeError> {
    if dialect == Dialect::Java && !value.is_array() {
        return Err(DecodeError::Unexpected(
            "`replicationList` must be an array".into(),
        ));
    }
    let mut items = Vec::new();
    elements(value, |value| {
        if items.len() == ITEMS {
            return Err(DecodeError::TooComplex);
        }
        match value.attempt(|value| read_item(value, dialect)) {
            Err(ItemError::Unreadable(error) | ItemError::Registration { error, .. })
                if dialect == Dialect::Java =>
            {
                return Err(error);
            }
            item => items.push(item),
        }
        Ok(())
    })?;
    Ok(items)
}

/// The members of an item, as they came.
#[derive(Default)]
struct Fields<'a> {
    app: Option<Cow<'a, str>>,
    id: Option<Cow<'a, str>>,
    last_dirty: Option<i64>,
    overridden: Option<Cow<'a, str>>,
    status: Option<Cow<'a, str>>,
    instance: Option<Value<'a>>,
    action: Option<Cow<'a, str>>,
}

fn read_item<'a>(value: &mut Value<'a>, dialect: Dialect) -> Result<BatchItem<'a>, ItemError> {
    if value.is_null() {
        return Err(ItemError::Action);
    }
    let mut fields = read_fields(value, dialect)?;
    let last_dirty = fields.last_dirty;
    // Java reads the instance of whatever item carries one, and fails the batch if it cannot.
    let registration = match fields
        .instance
        .map(|mut value| read_unwrapped(&mut value, dialect))
    {
        Some(Err(error)) => return Err(fields.unreadable(error)),
        Some(Ok(registration)) => Some(registration),
        None => None,
    };
    let action = fields.action.take().ok_or(ItemError::Action)?;
    if &*action == "Heartbeat" {
        return match (fields.app, fields.id) {
            (Some(app), Some(id)) => Ok(BatchItem::Heartbeat(Heartbeat {
                app,
                id,
                last_dirty,
                overridden: fields.overridden.as_deref().and_then(Status::parse),
            })),
            _ => Err(ItemError::Key),
        };
    }
    let key = fields.key().ok_or(ItemError::Key)?;
    match &*action {
        "Cancel" => Ok(BatchItem::Cancel { key }),
        "DeleteStatusOverride" => match (&fields.status, last_dirty) {
            (_, None) if dialect == Dialect::Java => Err(ItemError::LastDirty),
            (None, _) => Ok(BatchItem::DeleteStatusOverride {
                key,
                status: None,
                last_dirty,
            }),
            (Some(status), _) => Ok(BatchItem::DeleteStatusOverride {
                key,
                status: Some(Status::parse(status).ok_or(ItemError::Status)?),
                last_dirty,
            }),
        },
        "Register" => match registration {
            Some(registration) => Ok(BatchItem::Register {
                key,
                registration: Box::new(registration),
            }),
            None => Err(ItemError::Instance),
        },
        "StatusUpdate" => {
            let status = fields.status.as_deref().and_then(Status::parse);
            Ok(BatchItem::StatusUpdate {
                key,
                status: status.ok_or(ItemError::Status)?,
                last_dirty,
            })
        }
        action if dialect == Dialect::Java => {
            let text = format!("unknown action `{action}`");
            Err(ItemError::Unreadable(DecodeError::Unexpected(text)))
        }
        _ => Err(ItemError::Action),
    }
}

impl Fields<'_> {
    fn key(&self) -> Option<InstanceKey> {
        Some(InstanceKey::new(self.app.as_deref()?, self.id.as_deref()?))
    }

    /// A registration that cannot be read still says whose heartbeats are to be expected.
    fn unreadable(&self, error: DecodeError) -> ItemError {
        match self.key() {
            Some(key) if self.action.as_deref() == Some("Register") => ItemError::Registration {
                key,
                last_dirty: self.last_dirty,
                error,
            },
            Some(_) | None => ItemError::Unreadable(error),
        }
    }
}

fn read_fields<'a>(value: &mut Value<'a>, dialect: Dialect) -> Result<Fields<'a>, DecodeError> {
    let mut fields = Fields::default();
    members("an item", value, |name, value| {
        match name {
            "appName" => fields.app = text(name, value)?,
            "id" => fields.id = text(name, value)?,
            "lastDirtyTimestamp" => fields.last_dirty = read_last_dirty(value)?,
            "overriddenStatus" => fields.overridden = text(name, value)?,
            "status" => fields.status = text(name, value)?,
            "instanceInfo" => fields.instance = Some(*value).filter(|value| !value.is_null()),
            "action" => fields.action = text(name, value)?,
            _ if dialect == Dialect::Java => return Err(unknown(name)),
            _ => {}
        }
        Ok(())
    })?;
    Ok(fields)
}

/// Here, unlike in an instance, Java takes no text but a number's for a number.
fn read_last_dirty(value: &mut Value<'_>) -> Result<Option<i64>, DecodeError> {
    let Some(spelled) = text("lastDirtyTimestamp", value)? else {
        return Ok(None);
    };
    if let Some(number) = digits(&spelled) {
        return Ok(Some(number));
    }
    let trimmed = spelled.trim();
    if trimmed.is_empty() {
        return Ok(None);
    }
    match trimmed.parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(DecodeError::Unexpected(
            "`lastDirtyTimestamp` must be a whole number".into(),
        )),
    }
}

/// In batches instances stand without their root; one with a root is taken too where Java's rules do not forbid it.
fn read_unwrapped(value: &mut Value<'_>, dialect: Dialect) -> Result<Registration, DecodeError> {
    let mut wrapped = None;
    if dialect == Dialect::Lenient {
        let mut ahead = *value;
        members("instanceInfo", &mut ahead, |name, value| {
            if name == "instance" && value.is_object() {
                wrapped = Some(*value);
            }
            Ok(())
        })?;
    }
    let draft = match wrapped {
        Some(mut wrapped) => read_instance(&mut wrapped, dialect)?,
        None => read_instance(value, dialect)?,
    };
    Ok(draft.registration)
}

fn unknown(name: &str) -> DecodeError {
    DecodeError::Unexpected(format!("unknown `{name}`"))
}

/// The body of a batch.
pub fn write_batch(items: &[OutgoingItem]) -> Vec<u8> {
    let mut out = Vec::with_capacity(32 + 160 * items.len());
    out.extend_from_slice(br#"{"replicationList":["#);
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_item(item, &mut out);
    }
    out.extend_from_slice(b"]}");
    out
}

fn write_item(item: &OutgoingItem, out: &mut Vec<u8>) {
    let (app, id, last_dirty) = match item {
        OutgoingItem::Cancel { key } => (key.app().as_ref(), key.id().as_ref(), None),
        OutgoingItem::DeleteStatusOverride { key, last_dirty, .. } => {
            (key.app().as_ref(), key.id().as_ref(), Some(*last_dirty))
        }
        OutgoingItem::Heartbeat { key, last_dirty, .. }
        | OutgoingItem::StatusUpdate { key, last_dirty, .. } => {
            (key.app().as_ref(), key.id().as_ref(), *last_dirty)
        }
        OutgoingItem::Register(view) => {
            let instance = &*view.instance;
            (&*instance.app, instance.id(), instance.last_dirty)
        }
    };
    write_member(r#"{"appName":""#, app, out);
    write_member(r#","id":""#, id, out);
    if let Some(last_dirty) = last_dirty {
        out.extend_from_slice(br#","lastDirtyTimestamp":"#);
        write_integer(last_dirty, out);
    }
    let status = |status: Status, out: &mut Vec<u8>| {
        write_member(r#","status":""#, status.as_str(), out);
    };
    let action = match item {
        OutgoingItem::Cancel { .. } => "Cancel",
        OutgoingItem::DeleteStatusOverride { status: fallback, .. } => {
            status(fallback.unwrap_or(Status::Unknown), out);
            "DeleteStatusOverride"
        }
        OutgoingItem::Heartbeat {
            status: shown,
            overridden,
            ..
        } => {
            if let Some(overridden) = overridden {
                write_member(r#","overriddenStatus":""#, overridden.as_str(), out);
            }
            status(*shown, out);
            "Heartbeat"
        }
        OutgoingItem::Register(view) => {
            status(view.instance.status, out);
            out.extend_from_slice(br#","instanceInfo":"#);
            write_instance(view, out);
            "Register"
        }
        OutgoingItem::StatusUpdate { status: shown, .. } => {
            status(*shown, out);
            "StatusUpdate"
        }
    };
    write_member(r#","action":""#, action, out);
    out.push(b'}');
}

/// The answer to a batch, encoded.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct BatchAnswer {
    /// As many answers as the batch had items, in their order.
    pub text: Vec<u8>,
    /// Newer copies that were left out because the text had become too long.
    pub left_out: usize,
}

/// Encodes the answer to a batch. Peers ask for JSON.
///
/// When the text is `limit` bytes long, no more copies go with the answers: a hundred bytes of an item can ask for an
/// instance of any size. Who gets a 409 without a copy adopts nothing, and gets another one for its next heartbeat.
pub fn write_batch_answer(format: Format, answers: &[ItemAnswer], limit: usize) -> BatchAnswer {
    let mut encoded = BatchAnswer {
        text: Vec::with_capacity(32 + 24 * answers.len()),
        left_out: 0,
    };
    match format {
        Format::Json => write_json_answer(answers, limit, &mut encoded),
        Format::Xml => write_xml_answer(answers, limit, &mut encoded),
    }
    encoded
}

impl BatchAnswer {
    /// The copy that goes with an answer, if there is room for it.
    fn admitted<'a>(&mut self, answer: &'a ItemAnswer, limit: usize) -> Option<&'a LeaseView> {
        let newer = answer.newer.as_deref();
        if newer.is_some() && self.text.len() >= limit {
            self.left_out += 1;
            return None;
        }
        newer
    }
}

fn write_json_answer(answers: &[ItemAnswer], limit: usize, encoded: &mut BatchAnswer) {
    encoded.text.extend_from_slice(br#"{"responseList":["#);
    for (index, answer) in answers.iter().enumerate() {
        let newer = encoded.admitted(answer, limit);
        let out = &mut encoded.text;
        if index > 0 {
            out.push(b',');
        }
        if answer.status == 200 {
            out.extend_from_slice(br#"{"statusCode":200"#);
        } else {
            out.extend_from_slice(br#"{"statusCode":"#);
            write_integer(answer.status, out);
        }
        if let Some(view) = newer {
            out.extend_from_slice(br#","responseEntity":"#);
            write_instance(view, out);
        }
        out.push(b'}');
    }
    encoded.text.extend_from_slice(b"]}");
}

fn write_xml_answer(answers: &[ItemAnswer], limit: usize, encoded: &mut BatchAnswer) {
    const ROOT: &str = "com.netflix.eureka.cluster.protocol.ReplicationListResponse";
    const ANSWER: &str = "com.netflix.eureka.cluster.protocol.ReplicationInstanceResponse";
    let out = &mut encoded.text;
    xml::write_tag(b"<", ROOT, out);
    xml::end_line(1, out);
    if answers.is_empty() {
        out.extend_from_slice(b"<responseList/>");
    } else {
        out.extend_from_slice(b"<responseList>");
        for answer in answers {
            let newer = encoded.admitted(answer, limit);
            let out = &mut encoded.text;
            xml::end_line(2, out);
            xml::write_tag(b"<", ANSWER, out);
            xml::write_element(3, xml::tag!("statusCode"), &answer.status.to_string(), out);
            if let Some(view) = newer {
                xml::end_line(3, out);
                out.extend_from_slice(b"<responseEntity>");
                xml::write_instance_content(view, 4, true, out);
                xml::end_line(3, out);
                out.extend_from_slice(b"</responseEntity>");
            }
            xml::end_line(2, out);
            xml::write_tag(b"</", ANSWER, out);
        }
        let out = &mut encoded.text;
        xml::end_line(1, out);
        out.extend_from_slice(b"</responseList>");
    }
    let out = &mut encoded.text;
    xml::end_line(0, out);
    xml::write_tag(b"</", ROOT, out);
}

/// Reads the JSON answer to a batch.
pub fn read_batch_answer(body: &[u8]) -> Result<Vec<ReceivedAnswer>, DecodeError> {
    let mut answers = None;
    members("document", &mut root(body)?, |name, value| {
        if name == "responseList" {
            answers = Some(read_answers(value)?);
        }
        Ok(())
    })?;
    answers.ok_or(DecodeError::Absent("responseList"))
}

fn read_answers(value: &mut Value<'_>) -> Result<Vec<ReceivedAnswer>, DecodeError> {
    let mut answers = Vec::new();
    elements(value, |value| {
        if answers.len() == ITEMS {
            return Err(DecodeError::TooComplex);
        }
        answers.push(read_answer(value)?);
        Ok(())
    })?;
    Ok(answers)
}

/// An entity that cannot be read is none: the status alone still says what became of the item.
fn read_answer(value: &mut Value<'_>) -> Result<ReceivedAnswer, DecodeError> {
    let mut status = None;
    let mut newer = None;
    members("an answer", value, |name, value| {
        match name {
            "statusCode" => status = integer(name, value)?,
            "responseEntity" if !value.is_null() => {
                newer = value
                    .attempt(|value| read_unwrapped(value, Dialect::Lenient))
                    .ok();
            }
            _ => {}
        }
        Ok(())
    })?;
    match status.and_then(|status| u16::try_from(status).ok()) {
        Some(status) => Ok(ReceivedAnswer { status, newer }),
        None => Err(DecodeError::Unexpected("missing `statusCode`".into())),
    }
}
