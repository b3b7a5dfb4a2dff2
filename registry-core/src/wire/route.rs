//! The paths of the REST API, Eureka's and ours.

use std::fmt;

/// A path of the API, its names decoded. [`Display`](fmt::Display) gives the path back, percent-encoded.
///
/// Eureka's own stand under `/eureka/` and, the same, under `/eureka/v2/`.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Route {
    /// `apps/{app}`
    App {
        /// Application name, in any case.
        app: String,
    },
    /// `apps`
    Apps,
    /// `asg/{name}/status`
    AsgStatus {
        /// Auto-scaling group.
        name: String,
    },
    /// `peerreplication/batch`
    Batch,
    /// `/api/v1/changes`
    Changes,
    /// `apps/delta`
    Delta,
    /// `healthcheck` (Netflix only)
    Healthcheck,
    /// `apps/{app}/{id}`
    Instance {
        /// Application name, in any case.
        app: String,
        /// Effective instance id.
        id: String,
    },
    /// `instances/{id}`
    InstanceById {
        /// Effective instance id.
        id: String,
    },
    /// `apps/{app}/{id}/metadata`
    InstanceMetadata {
        /// Application name, in any case.
        app: String,
        /// Effective instance id.
        id: String,
    },
    /// `apps/{app}/{id}/status`
    InstanceStatus {
        /// Application name, in any case.
        app: String,
        /// Effective instance id.
        id: String,
    },
    /// `/api/v1/instances`
    Instances,
    /// `/api/v1/lastn`
    Lastn,
    /// `/api/v1/node`
    Node,
    /// `/api/v1/peers`
    Peers,
    /// `/api/v1/preservation`
    Preservation,
    /// `/api/v1/preservation/accept`
    PreservationAccept,
    /// `svips/{address}`
    SecureVip {
        /// Secure virtual address.
        address: String,
    },
    /// `status`
    Status,
    /// `serverinfo/statusoverrides` (Netflix only)
    StatusOverrides,
    /// `vips/{address}`
    Vip {
        /// Virtual address.
        address: String,
    },
}

impl Route {
    /// The route of a path (without the query), `None` if there is none.
    pub fn parse(_path: &str) -> Option<Self> {
        unimplemented!()
    }

    /// The methods it has, in the order of Java's `Allow`: `["GET", "OPTIONS"]`. HEAD goes wherever GET does.
    pub fn methods(&self) -> &'static [&'static str] {
        unimplemented!()
    }
}

impl fmt::Display for Route {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        unimplemented!()
    }
}
