//! Lists of applications: the whole registry, a delta, the instances of a VIP.

use std::sync::Arc;

use super::{Codec, DecodeError, Format, json, xml};
use crate::snapshot::LeaseView;

/// How a piece of a list joins what was written before it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Boundary {
    /// Nothing: it follows the head.
    First,
    /// The piece before ended another application.
    NewApplication,
    /// The piece before ended in the same application.
    SameApplication,
}

/// What a list says about itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ListFrame<'a> {
    /// `versions__delta`: `"1"` for the whole registry, a counter for deltas, `"-1"` for VIPs.
    pub version: &'a str,
    /// `apps__hashcode`
    pub hash: &'a str,
    /// Whether compact codecs say `registeredApplicationsEmpty`, as Eureka 2.0.6 does and 1.10.18 does not. Java
    /// clients skip it.
    pub tell_empty: bool,
}

/// Appends what stands before the instances of a list.
pub fn write_list_head(codec: Codec, frame: &ListFrame<'_>, out: &mut Vec<u8>) {
    match codec {
        Codec::Json => json::write_head(frame, out),
        Codec::CompactJson => json::write_compact_head(out),
        Codec::Xml => xml::write_head(frame, out),
        Codec::CompactXml => xml::write_compact_head(out),
    }
}

/// Appends consecutive instances; the last application stays open for the next piece or the tail. Writes nothing for no
/// instances.
///
/// The pieces of a list, whatever its cut, give the bytes of the whole.
pub fn write_list_piece(codec: Codec, boundary: Boundary, instances: &[Arc<LeaseView>], out: &mut Vec<u8>) {
    let mut boundary = boundary;
    for run in instances.chunk_by(|a, b| a.instance.app == b.instance.app) {
        let name = &run[0].instance.app;
        match codec.format() {
            Format::Json => json::write_run(codec, boundary, name, run, out),
            Format::Xml => xml::write_run(codec, boundary, name, run, out),
        }
        boundary = Boundary::NewApplication;
    }
}

/// Appends what stands behind the instances of a list; `empty` if there was none.
pub fn write_list_tail(codec: Codec, frame: &ListFrame<'_>, empty: bool, out: &mut Vec<u8>) {
    match codec {
        Codec::Json => json::write_tail(empty, out),
        Codec::CompactJson => json::write_compact_tail(frame, empty, out),
        Codec::Xml => xml::write_tail(empty, out),
        Codec::CompactXml => xml::write_compact_tail(frame, empty, out),
    }
}

/// A whole list of instances that are sorted by application: delta, VIPs.
pub fn write_list(codec: Codec, frame: &ListFrame<'_>, instances: &[Arc<LeaseView>]) -> Vec<u8> {
    let mut out = Vec::with_capacity(256 + 1536 * instances.len());
    write_list_head(codec, frame, &mut out);
    write_list_piece(codec, Boundary::First, instances, &mut out);
    write_list_tail(codec, frame, instances.is_empty(), &mut out);
    out
}

/// Appends one application (root-wrapped).
pub fn write_application<'a>(
    codec: Codec,
    name: &str,
    instances: impl IntoIterator<Item = &'a Arc<LeaseView>>,
    out: &mut Vec<u8>,
) {
    match codec.format() {
        Format::Json => json::write_application(codec, name, instances, out),
        Format::Xml => xml::write_application(codec, name, instances, out),
    }
}

/// A list as read: full or compact, all of it, a delta, or one application.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Applications {
    /// `versions__delta`
    pub version: Option<Arc<str>>,
    /// `apps__hashcode`; `None` for one application.
    pub hash: Option<Arc<str>>,
    /// The instances, in the order of the document.
    pub instances: Vec<LeaseView>,
    /// How many instances could not be understood and were left out.
    pub left_out: usize,
}

/// Reads a list, or one application, as a server answers it. An instance that cannot be understood is left out and
/// counted.
pub fn read_applications(format: Format, body: &[u8]) -> Result<Applications, DecodeError> {
    match format {
        Format::Json => json::read_applications(body),
        Format::Xml => xml::read_applications(body),
    }
}
