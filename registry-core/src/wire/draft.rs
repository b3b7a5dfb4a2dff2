//! An instance while it is being decoded, from whatever format.

use std::sync::Arc;

use super::Registration;
use super::registration::GivenDataCenter;
use crate::model::{
    Action, DEFAULT_DURATION_SECS, DEFAULT_RENEWAL_INTERVAL_SECS, DataCenter, Metadata, Status, upper,
};
use crate::snapshot::{LeaseTimes, LeaseView};
use crate::time::Wall;

/// More metadata pairs than this are refused: they could not be honest, and decoding must stay cheap.
pub(super) const METADATA_PAIRS: usize = 16_384;

/// What was read so far.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) registration: Registration,
    pub(super) action: Option<Action>,
    pub(super) last_updated: i64,
    pub(super) registered: i64,
    pub(super) renewed: i64,
    pub(super) evicted: i64,
    pub(super) service_up: i64,
    pub(super) coordinating: bool,
}

impl Draft {
    pub(super) fn new() -> Self {
        Self {
            registration: Registration::blank(),
            action: None,
            last_updated: 0,
            registered: 0,
            renewed: 0,
            evicted: 0,
            service_up: 0,
            coordinating: false,
        }
    }

    /// Sets the application, upper case.
    pub(super) fn set_app(&mut self, text: &str) {
        self.registration.app = Some(upper(text));
    }

    /// Sets the deprecated `sid`; its two words for none mean none.
    pub(super) fn set_sid(&mut self, text: &str) {
        self.registration.sid = (text != "na" && text != "unknown").then(|| Arc::from(text));
    }

    /// Sets the interval; values that make no sense mean the default.
    pub(super) fn set_renewal_interval(&mut self, secs: i32) {
        self.registration.lease.renewal_interval_secs =
            positive(secs).unwrap_or(DEFAULT_RENEWAL_INTERVAL_SECS);
    }

    /// Sets the duration; values that make no sense mean the default.
    pub(super) fn set_duration(&mut self, secs: i32) {
        self.registration.lease.duration_secs = positive(secs).unwrap_or(DEFAULT_DURATION_SECS);
    }

    /// Sets a text field that is carried as it is; false if there is none of this name.
    pub(super) fn set_text(&mut self, field: &str, text: &str) -> bool {
        let registration = &mut self.registration;
        let slot = match field {
            "instanceId" => &mut registration.instance_id,
            "hostName" => &mut registration.host_name,
            "ipAddr" => &mut registration.ip_address,
            "homePageUrl" => &mut registration.home_page_url,
            "statusPageUrl" => &mut registration.status_page_url,
            "healthCheckUrl" => &mut registration.health_check_url,
            "secureHealthCheckUrl" => &mut registration.secure_health_check_url,
            "vipAddress" => &mut registration.vip_address,
            "secureVipAddress" => &mut registration.secure_vip_address,
            "asgName" => &mut registration.asg_name,
            _ => return false,
        };
        *slot = Some(Arc::from(text));
        true
    }

    /// Sets one of the times of the lease; false if there is none of this name.
    pub(super) fn set_lease_time(&mut self, field: &str, millis: i64) -> bool {
        let slot = match field {
            "registrationTimestamp" => &mut self.registered,
            "lastRenewalTimestamp" | "renewalTimestamp" => &mut self.renewed,
            "evictionTimestamp" => &mut self.evicted,
            "serviceUpTimestamp" => &mut self.service_up,
            _ => return false,
        };
        *slot = millis;
        true
    }

    /// What a server tells, `app` being the application it stands in; `None` without application or id.
    pub(super) fn into_view(self, app: Option<&Arc<str>>) -> Option<LeaseView> {
        let lease = LeaseTimes {
            terms: self.registration.lease,
            registered: wall(self.registered),
            renewed: wall(self.renewed),
            evicted: wall(self.evicted),
            service_up: wall(self.service_up),
        };
        let (action, last_updated, coordinating) = (self.action, self.last_updated, self.coordinating);
        let registration = self.registration;
        let app = registration.app.clone().or_else(|| app.cloned())?;
        let text = |text: &Option<Arc<str>>| text.clone().unwrap_or_else(|| Arc::from(""));
        let host_name = text(&registration.host_name);
        let ip_address = text(&registration.ip_address);
        let data_center = match &registration.data_center {
            GivenDataCenter::Named(data_center) => data_center.clone(),
            GivenDataCenter::Missing | GivenDataCenter::Unnamed => DataCenter::MyOwn,
        };
        let instance = registration.into_instance(app, host_name, ip_address, data_center);
        if instance.app.is_empty() || instance.id().is_empty() {
            return None;
        }
        Some(LeaseView {
            instance: Arc::new(instance),
            action: action.unwrap_or(Action::Added),
            last_updated: wall(last_updated),
            lease,
            coordinating,
        })
    }
}

/// The action with exactly this name.
pub(super) fn action(text: &str) -> Option<Action> {
    [Action::Added, Action::Deleted, Action::Modified]
        .into_iter()
        .find(|action| action.as_str() == text)
}

/// The status of this name; unknown ones are `Unknown`, as in Java.
pub(super) fn status(text: &str) -> Status {
    Status::parse(text).unwrap_or(Status::Unknown)
}

/// The data centre of this name; `machine` is used if it is Amazon.
pub(super) fn data_center(name: &str, machine: Metadata) -> Option<DataCenter> {
    match name {
        "Amazon" => Some(DataCenter::Amazon(machine)),
        "MyOwn" => Some(DataCenter::MyOwn),
        "Netflix" => Some(DataCenter::Netflix),
        _ => None,
    }
}

fn positive(secs: i32) -> Option<u32> {
    match u32::try_from(secs) {
        Ok(0) | Err(_) => None,
        Ok(secs) => Some(secs),
    }
}

fn wall(millis: i64) -> Wall {
    Wall(u64::try_from(millis).unwrap_or(0))
}
