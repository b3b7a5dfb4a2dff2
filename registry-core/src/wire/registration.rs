//! One instance on its own: what registers it, what a single look-up answers.

use std::sync::Arc;

use super::{DecodeError, Dialect, Format, Invalid, json, xml};
use crate::model::{DataCenter, Instance, LeaseTerms, Metadata, Port, Status, upper};
use crate::snapshot::LeaseView;

/// A registration as decoded, not yet checked for what is missing.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Registration {
    /// `instanceId`; an empty one names nothing.
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
    pub data_center: GivenDataCenter,
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

/// `dataCenterInfo` as decoded.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum GivenDataCenter {
    /// Not there.
    Missing,
    /// A data centre. A `DefaultDataCenterInfo` that is called `Amazon` is Amazon's: Java takes it as it is, and can
    /// then encode no list that has it.
    Named(DataCenter),
    /// There, but without a name.
    Unnamed,
}

impl Registration {
    /// What a decoder starts from.
    pub(super) fn blank() -> Self {
        let Instance {
            port,
            secure_port,
            country_id,
            ..
        } = Instance::new("", "", "", "");
        Self {
            instance_id: None,
            app: None,
            app_group: None,
            host_name: None,
            ip_address: None,
            sid: None,
            port,
            secure_port,
            home_page_url: None,
            status_page_url: None,
            health_check_url: None,
            secure_health_check_url: None,
            vip_address: None,
            secure_vip_address: None,
            country_id,
            data_center: GivenDataCenter::Missing,
            status: Status::Up,
            overridden_status: Status::Unknown,
            lease: LeaseTerms::default(),
            metadata: Metadata::default(),
            last_dirty: None,
            asg_name: None,
        }
    }

    /// The instance, or the first thing that is wrong with it, in Java's order and words. `path_app` is the
    /// application of the path, in any case.
    ///
    /// An Amazon instance without an `instance-id` gets its effective id there, as Java does.
    pub fn validate(self, path_app: &str) -> Result<Instance, Invalid> {
        if self.has_no_id() {
            return Err(Invalid::InstanceId);
        }
        let Some(host_name) = present(&self.host_name) else {
            return Err(Invalid::HostName);
        };
        let Some(ip_address) = present(&self.ip_address) else {
            return Err(Invalid::IpAddress);
        };
        let Some(app) = present(&self.app) else {
            return Err(Invalid::AppName);
        };
        let path = upper(path_app);
        if path != app {
            return Err(Invalid::Mismatch {
                path: path.to_string(),
                body: app.to_string(),
            });
        }
        let data_center = match &self.data_center {
            GivenDataCenter::Missing => return Err(Invalid::DataCenter),
            GivenDataCenter::Unnamed => return Err(Invalid::DataCenterName),
            GivenDataCenter::Named(data_center) => data_center.clone(),
        };
        let mut instance = self.into_instance(app, host_name, ip_address, data_center);
        let id: Arc<str> = Arc::from(instance.id());
        if let DataCenter::Amazon(machine) = &mut instance.data_center
            && machine.get("instance-id").is_none()
        {
            machine.insert("instance-id", &id);
        }
        Ok(instance)
    }

    /// The instance with everything that may be absent as it is here.
    pub(super) fn into_instance(
        self,
        app: Arc<str>,
        host_name: Arc<str>,
        ip_address: Arc<str>,
        data_center: DataCenter,
    ) -> Instance {
        Instance {
            instance_id: self.instance_id,
            app,
            app_group: self.app_group,
            host_name,
            ip_address,
            sid: self.sid,
            port: self.port,
            secure_port: self.secure_port,
            home_page_url: self.home_page_url,
            status_page_url: self.status_page_url,
            health_check_url: self.health_check_url,
            secure_health_check_url: self.secure_health_check_url,
            vip_address: self.vip_address,
            secure_vip_address: self.secure_vip_address,
            country_id: self.country_id,
            data_center,
            status: self.status,
            overridden_status: self.overridden_status,
            lease: self.lease,
            metadata: self.metadata,
            last_dirty: self.last_dirty,
            asg_name: self.asg_name,
        }
    }

    fn has_no_id(&self) -> bool {
        let machine_id = match &self.data_center {
            GivenDataCenter::Named(DataCenter::Amazon(machine)) => machine.get("instance-id"),
            GivenDataCenter::Missing | GivenDataCenter::Unnamed | GivenDataCenter::Named(_) => None,
        };
        present(&self.instance_id).is_none()
            && machine_id.is_none_or(str::is_empty)
            && present(&self.host_name).is_none()
    }
}

/// The text, unless it is blank: absent or empty, as Java understands it.
fn present(text: &Option<Arc<str>>) -> Option<Arc<str>> {
    text.as_ref().filter(|text| !text.is_empty()).cloned()
}

/// Reads the body of a registration: a root-wrapped instance. Bytes behind it are ignored, as by Java.
pub fn read_registration(format: Format, body: &[u8], dialect: Dialect) -> Result<Registration, DecodeError> {
    let draft = match format {
        Format::Json => json::read_wrapped_instance(body, dialect)?,
        Format::Xml => xml::read_wrapped_instance(body, dialect)?,
    };
    Ok(draft.registration)
}

/// Reads a root-wrapped instance as a server answers it.
pub fn read_instance(format: Format, body: &[u8]) -> Result<LeaseView, DecodeError> {
    let draft = match format {
        Format::Json => json::read_wrapped_instance(body, Dialect::Lenient)?,
        Format::Xml => xml::read_wrapped_instance(body, Dialect::Lenient)?,
    };
    draft
        .into_view(None)
        .ok_or_else(|| DecodeError::Unexpected("instance without app or id".into()))
}

/// Appends one instance (root-wrapped). `masked` shows every status but `UP`, `DOWN` and `STARTING` as `DOWN` in XML, as
/// Java does for single instances; JSON is never masked.
pub fn write_instance(format: Format, view: &LeaseView, masked: bool, out: &mut Vec<u8>) {
    match format {
        Format::Json => json::write_wrapped_instance(view, out),
        Format::Xml => xml::write_wrapped_instance(view, masked, out),
    }
}
