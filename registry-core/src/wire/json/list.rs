//! Lists and applications as JSON.

use std::sync::Arc;

use super::instance::{write_compact_instance, write_instance};
use super::read::read_instance;
use super::text::write_member;
use super::value::{Value, elements, members, root, text};
use crate::model::upper;
use crate::snapshot::LeaseView;
use crate::wire::{Applications, Boundary, Codec, DecodeError, Dialect, ListFrame};

pub(in crate::wire) fn write_head(frame: &ListFrame<'_>, out: &mut Vec<u8>) {
    write_member(r#"{"applications":{"versions__delta":""#, frame.version, out);
    write_member(r#","apps__hashcode":""#, frame.hash, out);
    out.extend_from_slice(br#","application":["#);
}

pub(in crate::wire) fn write_compact_head(out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"applications":{"application":["#);
}

/// Appends consecutive instances of one application, which stays open.
pub(in crate::wire) fn write_run(
    codec: Codec,
    boundary: Boundary,
    app: &str,
    instances: &[Arc<LeaseView>],
    out: &mut Vec<u8>,
) {
    match boundary {
        Boundary::First => {}
        Boundary::NewApplication => out.extend_from_slice(b"]},"),
        Boundary::SameApplication => out.push(b','),
    }
    if boundary != Boundary::SameApplication {
        write_member(r#"{"name":""#, app, out);
        out.extend_from_slice(br#","instance":["#);
    }
    write_instances(codec, instances, out);
}

pub(in crate::wire) fn write_tail(empty: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(if empty { b"]}}" } else { b"]}]}}" });
}

pub(in crate::wire) fn write_compact_tail(frame: &ListFrame<'_>, empty: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(if empty { b"]" } else { b"]}]" });
    if frame.tell_empty {
        let told: &[u8] = if empty { b"true" } else { b"false" };
        out.extend_from_slice(br#","registeredApplicationsEmpty":"#);
        out.extend_from_slice(told);
    }
    write_member(r#","versions__delta":""#, frame.version, out);
    write_member(r#","apps__hashcode":""#, frame.hash, out);
    out.extend_from_slice(b"}}");
}

pub(in crate::wire) fn write_application<'a>(
    codec: Codec,
    name: &str,
    instances: impl IntoIterator<Item = &'a Arc<LeaseView>>,
    out: &mut Vec<u8>,
) {
    write_member(r#"{"application":{"name":""#, name, out);
    out.extend_from_slice(br#","instance":["#);
    write_instances(codec, instances, out);
    out.extend_from_slice(b"]}}");
}

fn write_instances<'a>(
    codec: Codec,
    instances: impl IntoIterator<Item = &'a Arc<LeaseView>>,
    out: &mut Vec<u8>,
) {
    for (index, view) in instances.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        match codec {
            Codec::CompactJson | Codec::CompactXml => write_compact_instance(view, out),
            Codec::Json | Codec::Xml => write_instance(view, out),
        }
    }
}

/// Reads `{"applications":{..}}` or `{"application":{..}}`; the order of their members is free.
pub(in crate::wire) fn read_applications(body: &[u8]) -> Result<Applications, DecodeError> {
    let mut list = Applications::default();
    let mut found = false;
    members("document", &mut root(body)?, |name, value| {
        match name {
            "applications" => read_list(value, &mut list)?,
            "application" => elements(value, |value| read_application(value, &mut list))?,
            _ => return Ok(()),
        }
        found = true;
        Ok(())
    })?;
    if !found {
        return Err(DecodeError::Unexpected("missing `applications`".into()));
    }
    Ok(list)
}

fn read_list(value: &mut Value<'_>, list: &mut Applications) -> Result<(), DecodeError> {
    members("applications", value, |name, value| {
        match name {
            "versions__delta" => list.version = text(name, value)?.map(Arc::from),
            "apps__hashcode" => list.hash = text(name, value)?.map(Arc::from),
            "application" => elements(value, |value| read_application(value, list))?,
            _ => {}
        }
        Ok(())
    })
}

/// The name may stand behind the instances, so these are read when it is known.
fn read_application(value: &mut Value<'_>, list: &mut Applications) -> Result<(), DecodeError> {
    let mut app = None;
    let mut instances = Vec::new();
    members("application", value, |name, value| {
        match name {
            "name" => app = text(name, value)?.map(|name| upper(&name)),
            "instance" if !value.is_null() => instances.push(*value),
            _ => {}
        }
        Ok(())
    })?;
    for mut value in instances {
        elements(&mut value, |value| {
            let draft = value.attempt(|value| read_instance(value, Dialect::Lenient));
            match draft.ok().and_then(|draft| draft.into_view(app.as_ref())) {
                Some(view) => list.instances.push(view),
                None => list.left_out += 1,
            }
            Ok(())
        })?;
    }
    Ok(())
}
