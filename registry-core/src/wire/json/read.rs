//! Instances from JSON, in every shape that a client is known to send.

use std::borrow::Cow;
use std::sync::Arc;

use super::value::{Value, elements, integer, members, pairs, root, text};
use crate::model::{DataCenter, Metadata, Port};
use crate::wire::draft::{self, Draft, METADATA_PAIRS};
use crate::wire::{DecodeError, Dialect, GivenDataCenter};

/// Java reads an object it does not know as more fields of the instance; this many inside each other are enough.
const FLATTENED_OBJECTS: u32 = 16;

/// Reads `{"instance":{..}}`.
pub(in crate::wire) fn read_wrapped_instance(body: &[u8], dialect: Dialect) -> Result<Draft, DecodeError> {
    let mut document = root(body)?;
    if document.is_null() {
        return Err(DecodeError::Absent("document"));
    }
    let mut found = None;
    members("document", &mut document, |name, value| {
        if name == "instance" {
            found = Some(value.attempt(|value| read_instance(value, dialect)));
        } else if dialect == Dialect::Java {
            return Err(unknown(name, "document"));
        }
        Ok(())
    })?;
    match found {
        Some(draft) => draft,
        None => Err(DecodeError::Unexpected("missing `instance`".into())),
    }
}

/// Reads an instance without its root.
pub(in crate::wire) fn read_instance(value: &mut Value<'_>, dialect: Dialect) -> Result<Draft, DecodeError> {
    let mut draft = read_fields(value, dialect, false)?;
    if dialect == Dialect::Java && draft.registration.app.is_none() {
        return Err(DecodeError::Unexpected("missing `app`".into()));
    }
    derive_id(&mut draft);
    Ok(draft)
}

/// Reads an instance as `write_reported` wrote it: nothing is derived, dropped or turned to upper case, so that what came
/// by XML has the same content hash on every node.
pub(in crate::wire) fn read_reported(value: &mut Value<'_>) -> Result<Draft, DecodeError> {
    read_fields(value, Dialect::Lenient, true)
}

fn read_fields(value: &mut Value<'_>, dialect: Dialect, verbatim: bool) -> Result<Draft, DecodeError> {
    let mut reader = Reader {
        draft: Draft::new(),
        dialect,
        verbatim,
        ended: false,
    };
    reader.read_fields(value, 0)?;
    Ok(reader.draft)
}

/// Spring's server finds the id of its oldest clients in their metadata.
fn derive_id(draft: &mut Draft) {
    let registration = &mut draft.registration;
    if registration.instance_id.is_some() {
        return;
    }
    let Some(id) = registration.metadata.get("instanceId") else {
        return;
    };
    if id.trim().is_empty() {
        return;
    }
    registration.instance_id = Some(match &registration.host_name {
        Some(host) if !host.trim().is_empty() && !id.starts_with(&**host) => {
            Arc::from(format!("{host}:{id}"))
        }
        Some(_) | None => Arc::from(id),
    });
}

struct Reader {
    draft: Draft,
    dialect: Dialect,
    /// Takes texts as they are where Java changes them.
    verbatim: bool,
    /// Under Java's rules: an unknown object has ended the instance.
    ended: bool,
}

impl Reader {
    fn read_fields(&mut self, value: &mut Value<'_>, depth: u32) -> Result<(), DecodeError> {
        members("instance", value, |name, value| {
            if self.ended {
                return Err(unknown(name, "instance"));
            }
            self.read_field(name, value, depth)
        })
    }

    fn read_field(&mut self, name: &str, value: &mut Value<'_>, depth: u32) -> Result<(), DecodeError> {
        if value.is_null() {
            return Ok(());
        }
        let draft = &mut self.draft;
        match name {
            "instanceId"
            | "hostName"
            | "ipAddr"
            | "homePageUrl"
            | "statusPageUrl"
            | "healthCheckUrl"
            | "secureHealthCheckUrl"
            | "vipAddress"
            | "secureVipAddress"
            | "asgName" => {
                draft.set_text(name, &scalar(name, value)?);
            }
            "app" => draft.set_app(&scalar(name, value)?),
            "appGroupName" => {
                let group = scalar(name, value)?;
                draft.registration.app_group = Some(if self.verbatim {
                    Arc::from(group)
                } else {
                    crate::model::upper(&group)
                });
            }
            "sid" => draft.set_sid(&scalar(name, value)?),
            "status" => draft.registration.status = draft::status(&scalar(name, value)?),
            "overriddenStatus" | "overriddenstatus" => {
                draft.registration.overridden_status = draft::status(&scalar(name, value)?);
            }
            "port" => read_port(name, value, &mut draft.registration.port, self.dialect)?,
            "securePort" => {
                read_port(name, value, &mut draft.registration.secure_port, self.dialect)?;
            }
            "countryId" => draft.registration.country_id = small_integer(name, value)?,
            "dataCenterInfo" => {
                draft.registration.data_center = read_data_center(value, self.dialect, self.verbatim)?;
            }
            "leaseInfo" => read_lease(value, draft)?,
            "metadata" => {
                draft.registration.metadata = read_metadata(value, self.dialect, self.verbatim)?;
            }
            "isCoordinatingDiscoveryServer" => draft.coordinating = boolean(name, value)?,
            "lastUpdatedTimestamp" => draft.last_updated = integer(name, value)?.unwrap_or(0),
            "lastDirtyTimestamp" => draft.registration.last_dirty = integer(name, value)?,
            "actionType" => draft.action = draft::action(&scalar(name, value)?),
            _ => self.read_unknown(name, value, depth)?,
        }
        Ok(())
    }

    /// Java ignores scalars it does not know, and arrays of one. It takes the members of objects for the instance's, which
    /// then ends where the object does: nothing may follow.
    fn read_unknown(&mut self, name: &str, value: &mut Value<'_>, depth: u32) -> Result<(), DecodeError> {
        if self.dialect == Dialect::Lenient {
            return Ok(());
        }
        if value.is_array() {
            let mut scalars = 0;
            elements(value, |value| {
                let scalar = !value.is_array() && !value.is_object();
                scalars += if scalar { 1 } else { 2 };
                Ok(())
            })?;
            if scalars != 1 {
                return Err(DecodeError::Unexpected(format!("unknown array `{name}`")));
            }
        }
        if value.is_object() {
            if depth == FLATTENED_OBJECTS {
                return Err(DecodeError::TooComplex);
            }
            self.read_fields(value, depth + 1)?;
            self.ended = true;
        }
        Ok(())
    }
}

/// The text of a value that is not `null`.
fn scalar<'a>(name: &str, value: &mut Value<'a>) -> Result<Cow<'a, str>, DecodeError> {
    Ok(text(name, value)?.unwrap_or_default())
}

/// True for `true`, `"true"` in lower case, and numbers but 0.
fn boolean(name: &str, value: &mut Value<'_>) -> Result<bool, DecodeError> {
    if value.is_number() {
        return Ok(integer(name, value)? != Some(0));
    }
    Ok(scalar(name, value)? == "true")
}

/// A whole number of 32 bits: refused like `integer` if it does not fit.
fn small_integer(name: &str, value: &mut Value<'_>) -> Result<i32, DecodeError> {
    let quoted = value.is_string();
    match i32::try_from(integer(name, value)?.unwrap_or(0)) {
        Ok(number) => Ok(number),
        Err(_) if quoted => Ok(0),
        Err(_) => Err(DecodeError::Unexpected(format!("`{name}` is out of range"))),
    }
}

/// `{"$":8080,"@enabled":"true"}`; what is absent keeps its default.
fn read_port(
    field: &str,
    value: &mut Value<'_>,
    port: &mut Port,
    dialect: Dialect,
) -> Result<(), DecodeError> {
    if !value.is_object() {
        if dialect == Dialect::Java {
            return Err(DecodeError::Unexpected(format!("`{field}` must be an object")));
        }
        port.number = small_integer(field, value)?;
        return Ok(());
    }
    members(field, value, |name, value| {
        match name {
            "$" => port.number = small_integer(name, value)?,
            "@enabled" => port.enabled = boolean(name, value)?,
            _ if dialect == Dialect::Java => return Err(unknown(name, field)),
            _ => {}
        }
        Ok(())
    })
}

/// A member that must not be there under Java's rules.
fn unknown(name: &str, within: &str) -> DecodeError {
    DecodeError::Unexpected(format!("unknown `{name}` in `{within}`"))
}

#[derive(Clone, Copy, PartialEq)]
enum Class {
    Amazon,
    Default,
    Unknown,
}

fn read_data_center(
    value: &mut Value<'_>,
    dialect: Dialect,
    verbatim: bool,
) -> Result<GivenDataCenter, DecodeError> {
    let mut class = Class::Unknown;
    let mut name_given = None;
    let mut machine = None;
    let mut stray = None;
    members("dataCenterInfo", value, |name, value| {
        match name {
            "@class" => {
                class = match &*scalar(name, value)? {
                    "com.netflix.appinfo.AmazonInfo" => Class::Amazon,
                    "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo"
                    | "com.netflix.appinfo.MyDataCenterInfo" => Class::Default,
                    _ => Class::Unknown,
                };
            }
            "name" => name_given = text(name, value)?,
            "metadata" => machine = Some(*value),
            _ => stray = Some(name.to_owned()),
        }
        Ok(())
    })?;
    let unexpected = |text: &str| Err(DecodeError::Unexpected(text.to_owned()));
    if dialect == Dialect::Java {
        match class {
            Class::Unknown => return unexpected("unknown or missing `@class` in `dataCenterInfo`"),
            Class::Amazon if machine.is_none_or(|value: Value<'_>| value.is_null()) => {
                return unexpected("missing `metadata` in `dataCenterInfo`");
            }
            Class::Default if machine.is_some() => return Err(unknown("metadata", "dataCenterInfo")),
            Class::Amazon | Class::Default => {}
        }
        if let Some(name) = stray.filter(|_| class == Class::Default) {
            return Err(unknown(&name, "dataCenterInfo"));
        }
    }
    if class == Class::Amazon || name_given.as_deref() == Some("Amazon") {
        let machine = machine.filter(|value| !value.is_null());
        let machine = match machine {
            Some(mut value) => read_metadata(&mut value, dialect, verbatim)?,
            None => Metadata::default(),
        };
        return Ok(GivenDataCenter::Named(DataCenter::Amazon(machine)));
    }
    match name_given {
        None => Ok(GivenDataCenter::Unnamed),
        Some(name) => match draft::data_center(&name, Metadata::default()) {
            Some(data_center) => Ok(GivenDataCenter::Named(data_center)),
            None => unexpected("unknown `name` in `dataCenterInfo`: Amazon, MyOwn or Netflix"),
        },
    }
}

/// Members of any other name are skipped, by Java too.
fn read_lease(value: &mut Value<'_>, draft: &mut Draft) -> Result<(), DecodeError> {
    members("leaseInfo", value, |name, value| {
        match name {
            _ if value.is_null() => {}
            "renewalIntervalInSecs" => draft.set_renewal_interval(small_integer(name, value)?),
            "durationInSecs" => draft.set_duration(small_integer(name, value)?),
            "registrationTimestamp"
            | "lastRenewalTimestamp"
            | "renewalTimestamp"
            | "evictionTimestamp"
            | "serviceUpTimestamp" => {
                draft.set_lease_time(name, integer(name, value)?.unwrap_or(0));
            }
            _ => {}
        }
        Ok(())
    })
}

/// Text pairs. Other scalars become their text, `null` becomes `"null"`, Java's own marker `@class` is dropped unless they
/// are taken `verbatim`.
fn read_metadata(value: &mut Value<'_>, dialect: Dialect, verbatim: bool) -> Result<Metadata, DecodeError> {
    if dialect == Dialect::Lenient && value.is_array() {
        // How PHP spells an empty map.
        elements(value, |_| {
            Err(DecodeError::Unexpected("`metadata` must be an object".into()))
        })?;
        return Ok(Metadata::default());
    }
    let mut texts: Vec<(Cow<'_, str>, Cow<'_, str>)> = Vec::new();
    pairs("metadata", value, |name, value| {
        if name == "@class" && !verbatim {
            return Ok(());
        }
        // A client may have brought together more by and by.
        if texts.len() == METADATA_PAIRS && !verbatim {
            return Err(DecodeError::TooComplex);
        }
        let text = text(&name, value)?.unwrap_or(Cow::Borrowed("null"));
        texts.push((name, text));
        Ok(())
    })?;
    Ok(texts.iter().map(|(name, text)| (&**name, &**text)).collect())
}
