//! The page at `/status`.

use super::Format;
use crate::snapshot::LeaseView;

/// What `/status` tells about a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatusPage {
    /// `num-of-cpus`, `total-avail-memory`, `current-memory-usage`, `server-uptime`.
    pub general: Vec<(String, String)>,
    /// `registered-replicas`, `available-replicas`, `unavailable-replicas`.
    pub application: Vec<(String, String)>,
    /// The server's own instance.
    pub instance: Option<LeaseView>,
    /// Left out where nothing is configured to judge it by.
    pub healthy: Option<bool>,
}

impl StatusPage {
    /// Appends the page.
    pub fn write(&self, _format: Format, _out: &mut Vec<u8>) {
        unimplemented!()
    }
}
