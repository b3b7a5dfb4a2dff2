//! Instances as XML: every field in the place where Java's encoders have it.

use super::name::write_name;
use super::text::{
    Tag, end_line, tag, write_element, write_inline_element, write_named_element, write_text, write_word,
};
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
    write_word(level, tag!("actionType"), view.action.as_str(), out);
    write_optional(level, tag!("asgName"), view.instance.asg_name.as_deref(), out);
}

/// Appends the fields of the server's own instance: nothing was ever done to it.
pub(in crate::wire) fn write_status_page_instance(view: &LeaseView, level: usize, out: &mut Vec<u8>) {
    write_fields(view, level, true, out);
    write_optional(level, tag!("asgName"), view.instance.asg_name.as_deref(), out);
}

fn write_fields(view: &LeaseView, level: usize, masked: bool, out: &mut Vec<u8>) {
    let instance = &*view.instance;
    write_optional(level, tag!("instanceId"), instance.instance_id.as_deref(), out);
    write_element(level, tag!("hostName"), &instance.host_name, out);
    write_element(level, tag!("app"), &instance.app, out);
    write_element(level, tag!("ipAddr"), &instance.ip_address, out);
    write_optional(level, tag!("sid"), instance.sid.as_deref(), out);
    let status = if masked {
        mask(instance.status)
    } else {
        instance.status
    };
    write_word(level, tag!("status"), status.as_str(), out);
    write_word(
        level,
        tag!("overriddenstatus"),
        instance.overridden_status.as_str(),
        out,
    );
    end_line(level, out);
    write_port("<port", instance.port, "</port>", out);
    end_line(level, out);
    write_port("<securePort", instance.secure_port, "</securePort>", out);
    end_line(level, out);
    write_integer(tag!("countryId"), instance.country_id, out);
    write_data_center(&instance.data_center, level, out);
    write_lease(&view.lease, level, out);
    write_metadata(&instance.metadata, level, out);
    write_optional(level, tag!("appGroupName"), instance.app_group.as_deref(), out);
    write_optional(level, tag!("homePageUrl"), instance.home_page_url.as_deref(), out);
    write_optional(
        level,
        tag!("statusPageUrl"),
        instance.status_page_url.as_deref(),
        out,
    );
    write_optional(
        level,
        tag!("healthCheckUrl"),
        instance.health_check_url.as_deref(),
        out,
    );
    let secure_health_check_url = instance.secure_health_check_url.as_deref();
    write_optional(level, tag!("secureHealthCheckUrl"), secure_health_check_url, out);
    write_optional(level, tag!("vipAddress"), instance.vip_address.as_deref(), out);
    write_optional(
        level,
        tag!("secureVipAddress"),
        instance.secure_vip_address.as_deref(),
        out,
    );
    let coordinating = if view.coordinating { "true" } else { "false" };
    write_word(level, tag!("isCoordinatingDiscoveryServer"), coordinating, out);
    end_line(level, out);
    write_integer(tag!("lastUpdatedTimestamp"), view.last_updated.0, out);
    if let Some(last_dirty) = instance.last_dirty {
        end_line(level, out);
        write_integer(tag!("lastDirtyTimestamp"), last_dirty, out);
    }
}

/// Appends an instance with the reduced field set, without any space.
pub(super) fn write_compact_instance(view: &LeaseView, out: &mut Vec<u8>) {
    let instance = &*view.instance;
    let optional = |tag, text: Option<&str>, out: &mut Vec<u8>| {
        if let Some(text) = text {
            write_inline_element(tag, text, out);
        }
    };
    out.extend_from_slice(b"<instance>");
    optional(tag!("instanceId"), instance.instance_id.as_deref(), out);
    write_inline_element(tag!("app"), &instance.app, out);
    write_inline_element(tag!("ipAddr"), &instance.ip_address, out);
    optional(tag!("vipAddress"), instance.vip_address.as_deref(), out);
    optional(
        tag!("secureVipAddress"),
        instance.secure_vip_address.as_deref(),
        out,
    );
    write_compact_data_center(&instance.data_center, out);
    write_inline_element(tag!("hostName"), &instance.host_name, out);
    write_inline_element(tag!("status"), instance.status.as_str(), out);
    write_integer(tag!("lastUpdatedTimestamp"), view.last_updated.0, out);
    write_inline_element(tag!("actionType"), view.action.as_str(), out);
    optional(tag!("asgName"), instance.asg_name.as_deref(), out);
    write_port("<port", instance.port, "</port>", out);
    write_port("<securePort", instance.secure_port, "</securePort>", out);
    out.extend_from_slice(b"</instance>");
}

/// What Java shows of a status where it does not know the version of the API.
fn mask(status: Status) -> Status {
    match status {
        Status::Up | Status::Starting => status,
        Status::Down | Status::OutOfService | Status::Unknown => Status::Down,
    }
}

#[inline(always)]
fn write_optional(level: usize, tag: Tag, text: Option<&str>, out: &mut Vec<u8>) {
    if let Some(text) = text {
        write_element(level, tag, text, out);
    }
}

#[inline(always)]
fn write_integer(tag: Tag, number: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(tag.start.as_bytes());
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    out.extend_from_slice(tag.end.as_bytes());
}

#[inline(always)]
fn write_port(start: &str, port: Port, end: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(start.as_bytes());
    if port.enabled {
        out.extend_from_slice(br#" enabled="true">"#);
    } else {
        out.extend_from_slice(br#" enabled="false">"#);
    }
    out.extend_from_slice(itoa::Buffer::new().format(port.number).as_bytes());
    out.extend_from_slice(end.as_bytes());
}

fn write_data_center(data_center: &DataCenter, level: usize, out: &mut Vec<u8>) {
    end_line(level, out);
    match data_center {
        DataCenter::Amazon(machine) => {
            out.extend_from_slice(AMAZON);
            write_word(level + 1, tag!("name"), "Amazon", out);
            write_metadata(machine, level + 1, out);
        }
        DataCenter::MyOwn | DataCenter::Netflix => {
            out.extend_from_slice(DEFAULT_DATA_CENTER);
            write_word(level + 1, tag!("name"), data_center.as_str(), out);
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
                write_named_element(key, value, out);
            }
            out.extend_from_slice(b"</metadata>");
        }
        DataCenter::MyOwn | DataCenter::Netflix => {
            out.extend_from_slice(DEFAULT_DATA_CENTER);
            write_inline_element(tag!("name"), data_center.as_str(), out);
        }
    }
    out.extend_from_slice(b"</dataCenterInfo>");
}

fn write_lease(lease: &LeaseTimes, level: usize, out: &mut Vec<u8>) {
    end_line(level, out);
    out.extend_from_slice(b"<leaseInfo>");
    let mut write = |tag, number: u64| {
        end_line(level + 1, out);
        write_integer(tag, number, out);
    };
    write(
        tag!("renewalIntervalInSecs"),
        lease.terms.renewal_interval_secs.into(),
    );
    write(tag!("durationInSecs"), lease.terms.duration_secs.into());
    write(tag!("registrationTimestamp"), lease.registered.0);
    write(tag!("lastRenewalTimestamp"), lease.renewed.0);
    write(tag!("evictionTimestamp"), lease.evicted.0);
    write(tag!("serviceUpTimestamp"), lease.service_up.0);
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
