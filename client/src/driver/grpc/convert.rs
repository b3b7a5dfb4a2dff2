//! Messages to the model.

use std::collections::BTreeMap;
use std::sync::Arc;

use eureka_registry_core::{
    Action, DataCenter, Instance, LeaseTerms, LeaseTimes, LeaseView, Metadata, Port, Status, Wall,
};

use super::proto;
use crate::call::Change;

/// One change; `None` if it says too little to be one.
pub(super) fn change(told: proto::Change) -> Option<Change> {
    let action = match told.action() {
        proto::Action::Deleted => Action::Deleted,
        proto::Action::Modified => Action::Modified,
        proto::Action::Added | proto::Action::Unspecified => Action::Added,
    };
    let at = Wall(u64::try_from(told.at_unix_ms).unwrap_or(0));
    let instance = instance(told.instance?)?;
    // Changes are told without lease times; when it happened is the best that is known.
    let lease = LeaseTimes {
        terms: instance.lease,
        registered: at,
        renewed: at,
        evicted: Wall(0),
        service_up: Wall(0),
    };
    Some(Change {
        action,
        view: LeaseView {
            instance: Arc::new(instance),
            action,
            last_updated: at,
            lease,
            coordinating: false,
        },
    })
}

fn instance(told: proto::Instance) -> Option<Instance> {
    if told.app.is_empty() || told.instance_id.is_empty() {
        return None;
    }
    let mut instance = Instance::new(&told.app, &told.instance_id, &told.host_name, &told.ip_address);
    instance.status = status(told.status());
    instance.overridden_status = status(told.overridden_status());
    instance.country_id = told.country_id.unwrap_or(instance.country_id);
    instance.last_dirty = told.last_dirty_unix_ms;
    let given = |text: String| (!text.is_empty()).then(|| Arc::from(text));
    instance.vip_address = given(told.vip_address);
    instance.secure_vip_address = given(told.secure_vip_address);
    instance.app_group = given(told.app_group);
    instance.home_page_url = given(told.home_page_url);
    instance.status_page_url = given(told.status_page_url);
    instance.health_check_url = given(told.health_check_url);
    instance.secure_health_check_url = given(told.secure_health_check_url);
    instance.asg_name = given(told.asg_name);
    instance.sid = given(told.sid);
    instance.metadata = pairs(&told.metadata);
    if let Some(port) = told.port {
        instance.port = self::port(port);
    }
    if let Some(port) = told.secure_port {
        instance.secure_port = self::port(port);
    }
    if let Some(terms) = told.lease_terms {
        instance.lease = LeaseTerms {
            renewal_interval_secs: terms.renewal_interval_secs,
            duration_secs: terms.duration_secs,
        };
    }
    if let Some(data_center) = told.data_center {
        instance.data_center = match &*data_center.name {
            "Amazon" => DataCenter::Amazon(pairs(&data_center.amazon)),
            "Netflix" => DataCenter::Netflix,
            _ => DataCenter::MyOwn,
        };
    }
    Some(instance)
}

fn status(told: proto::Status) -> Status {
    match told {
        proto::Status::Up => Status::Up,
        proto::Status::Down => Status::Down,
        proto::Status::Starting => Status::Starting,
        proto::Status::OutOfService => Status::OutOfService,
        proto::Status::Unknown | proto::Status::Unspecified => Status::Unknown,
    }
}

fn port(told: proto::Port) -> Port {
    Port {
        number: told.number,
        enabled: told.enabled,
    }
}

fn pairs(told: &BTreeMap<String, String>) -> Metadata {
    told.iter().map(|(key, value)| (&**key, &**value)).collect()
}
