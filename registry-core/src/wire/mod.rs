//! Eureka's wire formats as pure functions: bytes to model and back, paths to [`Route`] and back.
//!
//! What is written has exactly the fields, order and types of Java's encoders. What is read is taken as it comes under
//! [`Dialect::Lenient`], and exactly as Java takes it under [`Dialect::Java`].

use std::sync::Arc;

mod error;
mod replication;
mod route;
mod status_page;

pub use error::{DecodeError, Invalid, ItemError};
pub use replication::{
    BatchItem, ItemAnswer, OutgoingItem, ReceivedAnswer, read_batch, read_batch_answer, write_batch,
    write_batch_answer,
};
pub use route::Route;
pub use status_page::StatusPage;

use crate::model::{DataCenter, Instance, LeaseTerms, Metadata, Port, Status};
use crate::snapshot::LeaseView;

/// How a list or an application is encoded.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Codec {
    /// JSON with the reduced field set (`X-Eureka-Accept: compact`).
    CompactJson,
    /// XML with the reduced field set.
    CompactXml,
    /// JSON with all fields.
    Json,
    /// XML with all fields.
    Xml,
}

impl Codec {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::CompactJson, Self::CompactXml, Self::Json, Self::Xml];

    /// The codec of a format, compact or not.
    pub const fn new(format: Format, compact: bool) -> Self {
        match (format, compact) {
            (Format::Json, false) => Self::Json,
            (Format::Json, true) => Self::CompactJson,
            (Format::Xml, false) => Self::Xml,
            (Format::Xml, true) => Self::CompactXml,
        }
    }

    /// Its format.
    pub const fn format(self) -> Format {
        match self {
            Self::CompactJson | Self::Json => Format::Json,
            Self::CompactXml | Self::Xml => Format::Xml,
        }
    }

    /// `application/json` or `application/xml`; always without a charset, as Java has it.
    pub const fn content_type(self) -> &'static str {
        self.format().content_type()
    }
}

/// JSON or XML.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Format {
    /// `application/json`
    Json,
    /// `application/xml`
    Xml,
}

impl Format {
    /// `application/json` or `application/xml`.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Xml => "application/xml",
        }
    }
}

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

/// Whose rules a body is read by.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Dialect {
    /// Refuses exactly what Java's decoders refuse.
    Java,
    /// Takes every body that says what is meant.
    #[default]
    Lenient,
}

/// Appends what stands before the instances of a list. `version` is `versions__delta`, `hash` is `apps__hashcode`.
pub fn write_list_head(_codec: Codec, _version: &str, _hash: &str, _out: &mut Vec<u8>) {
    unimplemented!()
}

/// Appends consecutive instances; the last application stays open for the next piece or the tail. Writes nothing for no
/// instances.
pub fn write_list_piece(
    _codec: Codec,
    _boundary: Boundary,
    _instances: &[Arc<LeaseView>],
    _out: &mut Vec<u8>,
) {
    unimplemented!()
}

/// Appends what stands behind the instances of a list; `empty` if there was none.
pub fn write_list_tail(_codec: Codec, _version: &str, _hash: &str, _empty: bool, _out: &mut Vec<u8>) {
    unimplemented!()
}

/// A whole list of instances that are sorted by application: delta, VIPs.
pub fn write_list(_codec: Codec, _version: &str, _hash: &str, _instances: &[Arc<LeaseView>]) -> Vec<u8> {
    unimplemented!()
}

/// Appends one application (root-wrapped).
pub fn write_application<'a>(
    _codec: Codec,
    _name: &str,
    _instances: impl IntoIterator<Item = &'a Arc<LeaseView>>,
    _out: &mut Vec<u8>,
) {
    unimplemented!()
}

/// Appends one instance (root-wrapped). `masked` shows every status but `UP`, `DOWN` and `STARTING` as `DOWN` in XML, as
/// Java does for single instances; JSON is never masked.
pub fn write_instance(_format: Format, _view: &LeaseView, _masked: bool, _out: &mut Vec<u8>) {
    unimplemented!()
}

/// Reads the body of a registration: a root-wrapped instance.
pub fn read_registration(
    _format: Format,
    _body: &[u8],
    _dialect: Dialect,
) -> Result<Registration, DecodeError> {
    unimplemented!()
}

/// Reads a root-wrapped instance as a server answers it.
pub fn read_instance(_format: Format, _body: &[u8]) -> Result<LeaseView, DecodeError> {
    unimplemented!()
}

/// Reads a list as a server answers it.
pub fn read_applications(_format: Format, _body: &[u8]) -> Result<Applications, DecodeError> {
    unimplemented!()
}

/// A list as read: full or compact, all of it or a delta.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Applications {
    /// `versions__delta`
    pub version: Option<Arc<str>>,
    /// `apps__hashcode`
    pub hash: Arc<str>,
    /// The instances, in the order of the document.
    pub instances: Vec<LeaseView>,
    /// How many instances could not be understood and were left out.
    pub left_out: usize,
}

/// A registration as decoded, not yet checked for what is missing.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Registration {
    /// `instanceId`; absent and empty ones are `None`.
    pub instance_id: Option<Arc<str>>,
    /// Application name, upper case.
    pub app: Option<Arc<str>>,
    /// Application group.
    pub app_group: Option<Arc<str>>,
    /// Host name.
    pub host_name: Option<Arc<str>>,
    /// IP address.
    pub ip_address: Option<Arc<str>>,
    /// Deprecated, but carried; `na` and `unknown` are `None`.
    pub sid: Option<Arc<str>>,
    /// The plain port; 7001, enabled, if absent.
    pub port: Port,
    /// The TLS port; 7002, not enabled, if absent.
    pub secure_port: Port,
    /// Home page.
    pub home_page_url: Option<Arc<str>>,
    /// Status page.
    pub status_page_url: Option<Arc<str>>,
    /// Health check.
    pub health_check_url: Option<Arc<str>>,
    /// Health check over TLS.
    pub secure_health_check_url: Option<Arc<str>>,
    /// Virtual addresses.
    pub vip_address: Option<Arc<str>>,
    /// Virtual addresses over TLS.
    pub secure_vip_address: Option<Arc<str>>,
    /// Deprecated, but carried.
    pub country_id: i32,
    /// Where it runs.
    pub data_center: Option<DataCenter>,
    /// The status as reported, UP if absent.
    pub status: Status,
    /// The override as reported, `Unknown` if absent.
    pub overridden_status: Status,
    /// What it asks of its lease, defaults filled in.
    pub lease: LeaseTerms,
    /// Free text pairs.
    pub metadata: Metadata,
    /// Version of the content by the client's clock.
    pub last_dirty: Option<i64>,
    /// Auto-scaling group.
    pub asg_name: Option<Arc<str>>,
}

impl Registration {
    /// The instance, or the first thing that is wrong with it, in Java's order and words. `path_app` is the
    /// application of the path, in any case.
    pub fn validate(self, _path_app: &str) -> Result<Instance, Invalid> {
        unimplemented!()
    }
}
