//! Eureka's wire formats as pure functions: bytes to model and back, paths to [`Route`] and back.
//!
//! What is written has exactly the fields, order and types of Java's encoders, with one exception: nothing that a client
//! registered can make a document invalid. Where Java would write a character or an element name that XML does not
//! allow, it is escaped or replaced (see [`Codec::Xml`]).
//!
//! What is read is taken as it comes under [`Dialect::Lenient`], and as Java takes it under [`Dialect::Java`].
//!
//! ```
//! use eureka_registry_core::wire::{Dialect, Format, read_registration};
//!
//! let body = br#"{"instance":{"app":"orders","hostName":"h1","ipAddr":"10.0.0.1","port":{"$":"8080"},
//!                 "dataCenterInfo":{"name":"MyOwn"}}}"#;
//! let registration = read_registration(Format::Json, body, Dialect::Lenient)?;
//! let instance = registration.validate("orders")?;
//! assert_eq!(instance.id(), "h1");
//! assert_eq!(instance.port.number, 8080);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod draft;
mod error;
mod json;
mod list;
mod plain;
mod registration;
mod repair;
mod replication;
mod route;
mod status_page;
mod xml;

pub use error::{DecodeError, Invalid, ItemError};
pub use list::{
    Applications, Boundary, ListFrame, read_applications, write_application, write_list, write_list_head,
    write_list_piece, write_list_tail,
};
pub use registration::{GivenDataCenter, Registration, read_instance, read_registration, write_instance};
pub use repair::{
    RepairKind, read_repair_answer, read_repair_request, write_repair_answer, write_repair_request,
};
pub use replication::{
    BatchAnswer, BatchItem, Heartbeat, ItemAnswer, OutgoingItem, ReceivedAnswer, read_batch,
    read_batch_answer, write_batch, write_batch_answer,
};
pub use route::Route;
pub use status_page::StatusPage;

/// How a list or an application is encoded.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Codec {
    /// JSON with the reduced field set (`X-Eureka-Accept: compact`).
    CompactJson,
    /// XML with the reduced field set.
    CompactXml,
    /// JSON with all fields.
    Json,
    /// XML with all fields. Characters that XML 1.0 does not allow become U+FFFD (Java writes references that no parser
    /// takes), metadata keys are escaped as `XStream` does, colons too, and an empty key is left out.
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

/// Whose rules a body is read by.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Dialect {
    /// Refuses what Java's decoders refuse: bare numbers for ports, unknown arrays, a data centre without a known
    /// `@class`, a JSON document without its root, a batch with one bad item.
    Java,
    /// Takes every body that says what is meant; unknown fields of any shape are skipped.
    #[default]
    Lenient,
}
