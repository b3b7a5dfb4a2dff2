//! Instances as XML: every field in the place where Java's encoders have it.

use super::name::write_name;
use super::text::{end_line, write_element, write_inline_element, write_tag, write_text};
use crate::model::{DataCenter, Metadata, Port, Status};
use crate::snapshot::{LeaseTimes, LeaseView};
use crate::wire::json::is_compact_machine_key;

const DEFAULT_DATA_CENTER: &[u8] =
    br#"<dataCenterInfo class="com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo">"#;
const AMAZON: &[u8] = br#"<dataCenterInfo class="com.netflix.appinfo.AmazonInfo">"#;

/// Appends `<instance>` as the root of a document.
pub(in crate::wire) fn write_wrapped_instance(view: &LeaseView, masked: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(b"<instance>");
    write_instance_content(view, 1, masked, out);
    out.extend_from_slice(b"\n</instance>");
}

/// Appends `<instance>` at a level of a list.
pub(super) fn write_instance(view: &LeaseView, level: usize, out: &mut Vec<u8>) {
    end_line(level, out);
    out.extend_from_slice(b"<instance>");
    write_instance_content(view, level + 1, false, out);
    end_line(level, out);
    out.extend_from_slice(b"</instance>");
}

/// Appends the fields of an instance, each on its line.
pub(in crate::wire) fn write_instance_content(
    view: &LeaseView,
    level: usize,
    masked: bool,
    out: &mut Vec<u8>,
) {
    write_fields(view, level, masked, out);
    write_element(level, "actionType", view.action.as_str(), out);
    write_optional(level, "asgName", view.instance.asg_name.as_deref(), out);
}

/// Appends the fields of the server's own instance: nothing was ever done to it.
pub(in crate::wire) fn write_status_page_instance(view: &LeaseView, level: usize, out: &mut Vec<u8>) {
    write_fields(view, level, true, out);
    write_optional(level, "asgName", view.instance.asg_name.as_deref(), out);
}

fn write_fields(view: &LeaseView, level: usize, masked: bool, out: &mut Vec<u8>) {
    let instance = &*view.instance;
    write_optional(level, "instanceId", instance.instance_id.as_deref(), out);
    write_element(level, "hostName", &instance.host_name, out);
    write_element(level, "app", &instance.app, out);
    write_element(level, "ipAddr", &instance.ip_address, out);
    write_optional(level, "sid", instance.sid.as_deref(), out);
    let status = if masked {
        mask(instance.status)
    } else {
        instance.status
    };
    write_element(level, "status", status.as_str(), out);
    write_element(
        level,
        "overriddenstatus",
        instance.overridden_status.as_str(),
        out,
    );
    end_line(level, out);
    write_port("port", instance.port, out);
    end_line(level, out);
    write_port("securePort", instance.secure_port, out);
    end_line(level, out);
    write_integer("countryId", instance.country_id, out);
    write_data_center(&instance.data_center, level, out);
    write_lease(&view.lease, level, out);
    write_metadata(&instance.metadata, level, out);
    write_optional(level, "appGroupName", instance.app_group.as_deref(), out);
    write_optional(level, "homePageUrl", instance.home_page_url.as_deref(), out);
    write_optional(level, "statusPageUrl", instance.status_page_url.as_deref(), out);
    write_optional(level, "healthCheckUrl", instance.health_check_url.as_deref(), out);
    let secure_health_check_url = instance.secure_health_check_url.as_deref();
    write_optional(level, "secureHealthCheckUrl", secure_health_check_url, out);
    write_optional(level, "vipAddress", instance.vip_address.as_deref(), out);
    write_optional(
        level,
        "secureVipAddress",
        instance.secure_vip_address.as_deref(),
        out,
    );
    let coordinating = if view.coordinating { "true" } else { "false" };
    write_element(level, "isCoordinatingDiscoveryServer", coordinating, out);
    end_line(level, out);
    write_integer("lastUpdatedTimestamp", view.last_updated.0, out);
    if let Some(last_dirty) = instance.last_dirty {
        end_line(level, out);
        write_integer("lastDirtyTimestamp", last_dirty, out);
    }
}

/// Appends an instance with the reduced field set, without any space.
pub(super) fn write_compact_instance(view: &LeaseView, out: &mut Vec<u8>) {
    let instance = &*view.instance;
    let optional = |name, text: Option<&str>, out: &mut Vec<u8>| {
        if let Some(text) = text {
            write_inline_element(name, text, out);
        }
    };
    out.extend_from_slice(b"<instance>");
    optional("instanceId", instance.instance_id.as_deref(), out);
    write_inline_element("app", &instance.app, out);
    write_inline_element("ipAddr", &instance.ip_address, out);
    optional("vipAddress", instance.vip_address.as_deref(), out);
    optional("secureVipAddress", instance.secure_vip_address.as_deref(), out);
    write_compact_data_center(&instance.data_center, out);
    write_inline_element("hostName", &instance.host_name, out);
    write_inline_element("status", instance.status.as_str(), out);
    write_integer("lastUpdatedTimestamp", view.last_updated.0, out);
    write_inline_element("actionType", view.action.as_str(), out);
    optional("asgName", instance.asg_name.as_deref(), out);
    write_port("port", instance.port, out);
    write_port("securePort", instance.secure_port, out);
    out.extend_from_slice(b"</instance>");
}

/// What Java shows of a status where it does not know the version of the API.
fn mask(status: Status) -> Status {
    match status {
        Status::Up | Status::Starting => status,
        Status::Down | Status::OutOfService | Status::Unknown => Status::Down,
    }
}

fn write_optional(level: usize, name: &str, text: Option<&str>, out: &mut Vec<u8>) {
    if let Some(text) = text {
        write_element(level, name, text, out);
    }
}

fn write_integer(name: &str, number: impl itoa::Integer, out: &mut Vec<u8>) {
    write_tag(b"<", name, out);
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    write_tag(b"</", name, out);
}

fn write_port(name: &str, port: Port, out: &mut Vec<u8>) {
    out.push(b'<');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(if port.enabled {
        br#" enabled="true">"#
    } else {
        br#" enabled="false">"#
    });
    out.extend_from_slice(itoa::Buffer::new().format(port.number).as_bytes());
    write_tag(b"</", name, out);
}

fn write_data_center(data_center: &DataCenter, level: usize, out: &mut Vec<u8>) {
    end_line(level, out);
    match data_center {
        DataCenter::Amazon(machine) => {
            out.extend_from_slice(AMAZON);
            write_element(level + 1, "name", "Amazon", out);
            write_metadata(machine, level + 1, out);
        }
        DataCenter::MyOwn | DataCenter::Netflix => {
            out.extend_from_slice(DEFAULT_DATA_CENTER);
            write_element(level + 1, "name", data_center.as_str(), out);
        }
    }
    end_line(level, out);
    out.extend_from_slice(b"</dataCenterInfo>");
}

fn write_compact_data_center(data_center: &DataCenter, out: &mut Vec<u8>) {
    match data_center {
        DataCenter::Amazon(machine) => {
            out.extend_from_slice(AMAZON);
            out.extend_from_slice(b"<name>Amazon</name><metadata>");
            for (key, value) in machine.iter().filter(|(key, _)| is_compact_machine_key(key)) {
                write_inline_element(key, value, out);
            }
            out.extend_from_slice(b"</metadata>");
        }
        DataCenter::MyOwn | DataCenter::Netflix => {
            out.extend_from_slice(DEFAULT_DATA_CENTER);
            write_inline_element("name", data_center.as_str(), out);
        }
    }
    out.extend_from_slice(b"</dataCenterInfo>");
}

fn write_lease(lease: &LeaseTimes, level: usize, out: &mut Vec<u8>) {
    end_line(level, out);
    out.extend_from_slice(b"<leaseInfo>");
    for (name, number) in [
        (
            "renewalIntervalInSecs",
            u64::from(lease.terms.renewal_interval_secs),
        ),
        ("durationInSecs", u64::from(lease.terms.duration_secs)),
        ("registrationTimestamp", lease.registered.0),
        ("lastRenewalTimestamp", lease.renewed.0),
        ("evictionTimestamp", lease.evicted.0),
        ("serviceUpTimestamp", lease.service_up.0),
    ] {
        end_line(level + 1, out);
        write_integer(name, number, out);
    }
    end_line(level, out);
    out.extend_from_slice(b"</leaseInfo>");
}

fn write_metadata(metadata: &Metadata, level: usize, out: &mut Vec<u8>) {
    end_line(level, out);
    if metadata.is_empty() {
        out.extend_from_slice(br#"<metadata class="java.util.Collections$EmptyMap"/>"#);
        return;
    }
    out.extend_from_slice(b"<metadata>");
    for (key, value) in metadata.iter().filter(|(key, _)| !key.is_empty()) {
        end_line(level + 1, out);
        out.push(b'<');
        let start = out.len();
        write_name(key, out);
        let end = out.len();
        out.push(b'>');
        write_text(value, out);
        out.extend_from_slice(b"</");
        out.extend_from_within(start..end);
        out.push(b'>');
    }
    end_line(level, out);
    out.extend_from_slice(b"</metadata>");
}
