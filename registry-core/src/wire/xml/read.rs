//! Instances from XML.

use std::sync::Arc;

use super::cursor::{Cursor, Element};
use super::name::read_name;
use crate::model::{Metadata, Status};
use crate::wire::draft::{self, Draft, METADATA_PAIRS};
use crate::wire::{DecodeError, Dialect, GivenDataCenter};

/// Reads `<instance>`.
pub(in crate::wire) fn read_wrapped_instance(body: &[u8], dialect: Dialect) -> Result<Draft, DecodeError> {
    let mut cursor = Cursor::new(body, dialect)?;
    if cursor.root()?.name() != "instance" {
        return Err(DecodeError::Unexpected("missing `instance`".into()));
    }
    let draft = read_instance(&mut cursor)?;
    if dialect == Dialect::Java && draft.registration.app.is_none() {
        return Err(DecodeError::Unexpected("missing `app`".into()));
    }
    Ok(draft)
}

/// Reads the children of `<instance>`; unknown ones are skipped, by Java too.
pub(super) fn read_instance(cursor: &mut Cursor<'_>) -> Result<Draft, DecodeError> {
    let mut draft = Draft::new();
    while let Some(child) = cursor.next_child()? {
        read_field(cursor, &child, &mut draft)?;
    }
    Ok(draft)
}

fn read_field(cursor: &mut Cursor<'_>, element: &Element<'_>, draft: &mut Draft) -> Result<(), DecodeError> {
    let name = element.name();
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
            draft.set_text(name, &cursor.text()?);
        }
        "app" => draft.set_app(&cursor.text()?),
        "appGroupName" => draft.registration.app_group = Some(Arc::from(cursor.text()?)),
        "sid" => draft.set_sid(&cursor.text()?),
        "status" => draft.registration.status = status(&cursor.text()?),
        "overriddenstatus" | "overriddenStatus" => {
            draft.registration.overridden_status = status(&cursor.text()?);
        }
        "port" => {
            let port = &mut draft.registration.port;
            port.enabled = element.attribute("enabled")?.is_none_or(|value| value != "false");
            if let Some(number) = integer(cursor, name)? {
                port.number = number;
            }
        }
        "securePort" => {
            let port = &mut draft.registration.secure_port;
            port.enabled = element.attribute("enabled")?.is_some_and(|value| value == "true");
            if let Some(number) = integer(cursor, name)? {
                port.number = number;
            }
        }
        "countryId" => {
            if let Some(number) = integer(cursor, name)? {
                draft.registration.country_id = number;
            }
        }
        "dataCenterInfo" => draft.registration.data_center = read_data_center(cursor)?,
        "leaseInfo" => read_lease(cursor, draft)?,
        "metadata" => draft.registration.metadata = read_metadata(cursor)?,
        "isCoordinatingDiscoveryServer" => {
            draft.coordinating = cursor.text()?.eq_ignore_ascii_case("true");
        }
        "lastUpdatedTimestamp" => draft.last_updated = integer(cursor, name)?.unwrap_or(0),
        "lastDirtyTimestamp" => draft.registration.last_dirty = integer(cursor, name)?,
        "actionType" => draft.action = draft::action(&cursor.text()?),
        _ => cursor.skip()?,
    }
    Ok(())
}

/// In XML the case of a status does not matter.
fn status(text: &str) -> Status {
    draft::status(&text.to_uppercase())
}

/// A whole number. An empty element is no number at all: refused by Java, otherwise as if it were absent.
fn integer<T: std::str::FromStr>(cursor: &mut Cursor<'_>, name: &str) -> Result<Option<T>, DecodeError> {
    let text = cursor.text()?;
    let text = match cursor.dialect() {
        Dialect::Java => &*text,
        Dialect::Lenient if text.trim().is_empty() => return Ok(None),
        Dialect::Lenient => text.trim(),
    };
    match text.parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(DecodeError::Unexpected(format!(
            "`{name}` must be a whole number"
        ))),
    }
}

/// The name decides, the class does not matter.
fn read_data_center(cursor: &mut Cursor<'_>) -> Result<GivenDataCenter, DecodeError> {
    let mut name = None;
    let mut machine = Metadata::default();
    while let Some(child) = cursor.next_child()? {
        match child.name() {
            "name" => name = Some(cursor.text()?),
            "metadata" => machine = read_metadata(cursor)?,
            _ => cursor.skip()?,
        }
    }
    let Some(name) = name else {
        return Ok(GivenDataCenter::Unnamed);
    };
    let name = if name.eq_ignore_ascii_case("Amazon") {
        "Amazon"
    } else {
        &name
    };
    match draft::data_center(name, machine) {
        Some(data_center) => Ok(GivenDataCenter::Named(data_center)),
        None => Err(DecodeError::Unexpected(
            "unknown `name` in `dataCenterInfo`: Amazon, MyOwn or Netflix".into(),
        )),
    }
}

/// What is no number counts as absent.
fn read_lease(cursor: &mut Cursor<'_>, draft: &mut Draft) -> Result<(), DecodeError> {
    while let Some(child) = cursor.next_child()? {
        let text = cursor.text()?;
        let text = text.trim();
        match child.name() {
            "renewalIntervalInSecs" => draft.set_renewal_interval(text.parse().unwrap_or(0)),
            "durationInSecs" => draft.set_duration(text.parse().unwrap_or(0)),
            name => {
                draft.set_lease_time(name, text.parse().unwrap_or(0));
            }
        }
    }
    Ok(())
}

fn read_metadata(cursor: &mut Cursor<'_>) -> Result<Metadata, DecodeError> {
    let mut pairs = Vec::new();
    while let Some(child) = cursor.next_child()? {
        if pairs.len() == METADATA_PAIRS {
            return Err(DecodeError::TooComplex);
        }
        pairs.push((read_name(child.name()), cursor.text()?));
    }
    Ok(pairs.iter().map(|(key, value)| (&**key, &**value)).collect())
}
