//! Lists and applications as XML.

use std::sync::Arc;

use super::cursor::Cursor;
use super::instance::{write_compact_instance, write_instance};
use super::read::read_instance;
use super::text::{end_line, tag, write_element, write_inline_element};
use crate::model::upper;
use crate::snapshot::LeaseView;
use crate::wire::{Applications, Boundary, Codec, DecodeError, Dialect, ListFrame};

pub(in crate::wire) fn write_head(frame: &ListFrame<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"<applications>");
    write_element(1, tag!("versions__delta"), frame.version, out);
    write_element(1, tag!("apps__hashcode"), frame.hash, out);
}

pub(in crate::wire) fn write_compact_head(out: &mut Vec<u8>) {
    out.extend_from_slice(b"<applications>");
}

/// Appends consecutive instances of one application, which stays open.
pub(in crate::wire) fn write_run(
    codec: Codec,
    boundary: Boundary,
    app: &str,
    instances: &[Arc<LeaseView>],
    out: &mut Vec<u8>,
) {
    let compact = is_compact(codec);
    if boundary == Boundary::NewApplication {
        end_application(compact, out);
    }
    if boundary != Boundary::SameApplication {
        if compact {
            out.extend_from_slice(b"<application>");
            write_inline_element(tag!("name"), app, out);
        } else {
            end_line(1, out);
            out.extend_from_slice(b"<application>");
            write_element(2, tag!("name"), app, out);
        }
    }
    for view in instances {
        if compact {
            write_compact_instance(view, out);
        } else {
            write_instance(view, 2, out);
        }
    }
}

pub(in crate::wire) fn write_tail(empty: bool, out: &mut Vec<u8>) {
    if !empty {
        end_application(false, out);
    }
    out.extend_from_slice(b"\n</applications>");
}

pub(in crate::wire) fn write_compact_tail(frame: &ListFrame<'_>, empty: bool, out: &mut Vec<u8>) {
    if !empty {
        end_application(true, out);
    }
    if frame.tell_empty {
        let told = if empty { "true" } else { "false" };
        write_inline_element(tag!("registeredApplicationsEmpty"), told, out);
    }
    write_inline_element(tag!("versions__delta"), frame.version, out);
    write_inline_element(tag!("apps__hashcode"), frame.hash, out);
    out.extend_from_slice(b"</applications>");
}

pub(in crate::wire) fn write_application<'a>(
    codec: Codec,
    name: &str,
    instances: impl IntoIterator<Item = &'a Arc<LeaseView>>,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"<application>");
    if is_compact(codec) {
        write_inline_element(tag!("name"), name, out);
        for view in instances {
            write_compact_instance(view, out);
        }
        out.extend_from_slice(b"</application>");
    } else {
        write_element(1, tag!("name"), name, out);
        for view in instances {
            write_instance(view, 1, out);
        }
        out.extend_from_slice(b"\n</application>");
    }
}

fn is_compact(codec: Codec) -> bool {
    match codec {
        Codec::CompactJson | Codec::CompactXml => true,
        Codec::Json | Codec::Xml => false,
    }
}

fn end_application(compact: bool, out: &mut Vec<u8>) {
    if !compact {
        end_line(1, out);
    }
    out.extend_from_slice(b"</application>");
}

/// Reads `<applications>` or `<application>`; the order of their children is free.
pub(in crate::wire) fn read_applications(body: &[u8]) -> Result<Applications, DecodeError> {
    let mut list = Applications::default();
    let mut cursor = Cursor::new(body, Dialect::Lenient)?;
    let root = cursor.root()?;
    match root.name() {
        "applications" => read_list(&mut cursor, &mut list)?,
        "application" => read_application(&mut cursor, &mut list)?,
        _ => return Err(DecodeError::Unexpected("missing `applications`".into())),
    }
    Ok(list)
}

fn read_list(cursor: &mut Cursor<'_>, list: &mut Applications) -> Result<(), DecodeError> {
    while let Some(child) = cursor.next_child()? {
        match child.name() {
            "versions__delta" => list.version = Some(Arc::from(cursor.text()?)),
            "apps__hashcode" => list.hash = Some(Arc::from(cursor.text()?)),
            "application" => read_application(cursor, list)?,
            _ => cursor.skip()?,
        }
    }
    Ok(())
}

/// The name may stand behind the instances, so these are kept as drafts until it is known.
fn read_application(cursor: &mut Cursor<'_>, list: &mut Applications) -> Result<(), DecodeError> {
    let mut app = None;
    let mut drafts = Vec::new();
    while let Some(child) = cursor.next_child()? {
        match child.name() {
            "name" => app = Some(upper(&cursor.text()?)),
            "instance" => drafts.push(read_instance(cursor)?),
            _ => cursor.skip()?,
        }
    }
    for draft in drafts {
        match draft.into_view(app.as_ref()) {
            Some(view) => list.instances.push(view),
            None => list.left_out += 1,
        }
    }
    Ok(())
}
