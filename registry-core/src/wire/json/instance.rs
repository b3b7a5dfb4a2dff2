//! Instances as JSON: every field in the place where Java's encoders have it.

use super::text::{write_integer, write_member, write_string, write_word};
use crate::model::{DataCenter, Instance, LeaseTerms, Metadata, Port};
use crate::snapshot::{LeaseTimes, LeaseView};

/// Appends `{"instance":{..}}`.
pub(in crate::wire) fn write_wrapped_instance(view: &LeaseView, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"instance":"#);
    write_instance(view, out);
    out.push(b'}');
}

/// Appends an instance with all fields, unwrapped as batches have it.
pub(in crate::wire) fn write_instance(view: &LeaseView, out: &mut Vec<u8>) {
    write_fields(view, out);
    write_word(r#","actionType":""#, view.action.as_str(), out);
    write_optional(r#","asgName":""#, view.instance.asg_name.as_deref(), out);
    out.push(b'}');
}

/// Appends the server's own instance as its status page has it: nothing was ever done to it.
pub(in crate::wire) fn write_status_page_instance(view: &LeaseView, out: &mut Vec<u8>) {
    write_fields(view, out);
    write_optional(r#","asgName":""#, view.instance.asg_name.as_deref(), out);
    out.push(b'}');
}

fn write_fields(view: &LeaseView, out: &mut Vec<u8>) {
    let instance = &*view.instance;
    write_names(instance, out);
    write_word(
        r#","overriddenStatus":""#,
        instance.overridden_status.as_str(),
        out,
    );
    write_ports(instance, out);
    out.extend_from_slice(br#","countryId":"#);
    write_integer(instance.country_id, out);
    write_data_center(&instance.data_center, |_| true, out);
    write_lease(&view.lease, out);
    out.extend_from_slice(br#","metadata":"#);
    if instance.metadata.is_empty() {
        out.extend_from_slice(br#"{"@class":"java.util.Collections$EmptyMap"}"#);
    } else {
        write_map(&instance.metadata, |_| true, out);
    }
    write_texts(instance, out);
    let coordinating = if view.coordinating { "true" } else { "false" };
    write_word(r#","isCoordinatingDiscoveryServer":""#, coordinating, out);
    out.extend_from_slice(br#","lastUpdatedTimestamp":""#);
    write_integer(view.last_updated.0, out);
    out.push(b'"');
    write_last_dirty(instance, out);
}

fn write_names(instance: &Instance, out: &mut Vec<u8>) {
    out.push(b'{');
    if let Some(id) = &instance.instance_id {
        write_member(r#""instanceId":""#, id, out);
        out.push(b',');
    }
    write_member(r#""hostName":""#, &instance.host_name, out);
    write_member(r#","app":""#, &instance.app, out);
    write_member(r#","ipAddr":""#, &instance.ip_address, out);
    write_optional(r#","sid":""#, instance.sid.as_deref(), out);
    write_word(r#","status":""#, instance.status.as_str(), out);
}

fn write_texts(instance: &Instance, out: &mut Vec<u8>) {
    write_optional(r#","appGroupName":""#, instance.app_group.as_deref(), out);
    write_optional(r#","homePageUrl":""#, instance.home_page_url.as_deref(), out);
    write_optional(r#","statusPageUrl":""#, instance.status_page_url.as_deref(), out);
    write_optional(
        r#","healthCheckUrl":""#,
        instance.health_check_url.as_deref(),
        out,
    );
    let secure_health_check_url = instance.secure_health_check_url.as_deref();
    write_optional(r#","secureHealthCheckUrl":""#, secure_health_check_url, out);
    write_optional(r#","vipAddress":""#, instance.vip_address.as_deref(), out);
    write_optional(
        r#","secureVipAddress":""#,
        instance.secure_vip_address.as_deref(),
        out,
    );
}

fn write_last_dirty(instance: &Instance, out: &mut Vec<u8>) {
    if let Some(last_dirty) = instance.last_dirty {
        out.extend_from_slice(br#","lastDirtyTimestamp":""#);
        write_integer(last_dirty, out);
        out.push(b'"');
    }
}

/// Appends what an instance reported, in the same fields, and nothing that the registry knows besides.
pub(in crate::wire) fn write_reported(instance: &Instance, out: &mut Vec<u8>) {
    write_names(instance, out);
    write_ports(instance, out);
    out.extend_from_slice(br#","countryId":"#);
    write_integer(instance.country_id, out);
    write_data_center(&instance.data_center, |_| true, out);
    write_terms(instance.lease, out);
    out.extend_from_slice(br#"},"metadata":"#);
    write_map(&instance.metadata, |_| true, out);
    write_texts(instance, out);
    write_last_dirty(instance, out);
    write_optional(r#","asgName":""#, instance.asg_name.as_deref(), out);
    out.push(b'}');
}

/// Appends an instance with the reduced field set.
pub(super) fn write_compact_instance(view: &LeaseView, out: &mut Vec<u8>) {
    let instance = &*view.instance;
    out.push(b'{');
    if let Some(id) = &instance.instance_id {
        write_member(r#""instanceId":""#, id, out);
        out.push(b',');
    }
    write_member(r#""app":""#, &instance.app, out);
    write_member(r#","ipAddr":""#, &instance.ip_address, out);
    write_optional(r#","vipAddress":""#, instance.vip_address.as_deref(), out);
    write_optional(
        r#","secureVipAddress":""#,
        instance.secure_vip_address.as_deref(),
        out,
    );
    write_data_center(&instance.data_center, is_compact_machine_key, out);
    write_member(r#","hostName":""#, &instance.host_name, out);
    write_word(r#","status":""#, instance.status.as_str(), out);
    out.extend_from_slice(br#","lastUpdatedTimestamp":"#);
    write_integer(view.last_updated.0, out);
    write_word(r#","actionType":""#, view.action.as_str(), out);
    write_optional(r#","asgName":""#, instance.asg_name.as_deref(), out);
    write_ports(instance, out);
    out.push(b'}');
}

/// What compact codecs keep of Amazon's machine metadata.
pub(in crate::wire) fn is_compact_machine_key(key: &str) -> bool {
    matches!(
        key,
        "availability-zone" | "instance-id" | "local-ipv4" | "public-hostname" | "public-ipv4"
    )
}

#[inline(always)]
fn write_optional(start: &str, text: Option<&str>, out: &mut Vec<u8>) {
    if let Some(text) = text {
        write_member(start, text, out);
    }
}

fn write_ports(instance: &Instance, out: &mut Vec<u8>) {
    write_port(r#","port":{"$":"#, instance.port, out);
    write_port(r#","securePort":{"$":"#, instance.secure_port, out);
}

#[inline(always)]
fn write_port(start: &str, port: Port, out: &mut Vec<u8>) {
    out.extend_from_slice(start.as_bytes());
    write_integer(port.number, out);
    if port.enabled {
        out.extend_from_slice(br#","@enabled":"true"}"#);
    } else {
        out.extend_from_slice(br#","@enabled":"false"}"#);
    }
}

fn write_data_center(data_center: &DataCenter, keep: fn(&str) -> bool, out: &mut Vec<u8>) {
    out.extend_from_slice(br#","dataCenterInfo":{"@class":"#);
    match data_center {
        DataCenter::Amazon(machine) => {
            out.extend_from_slice(br#""com.netflix.appinfo.AmazonInfo","name":"Amazon","metadata":"#);
            write_map(machine, keep, out);
        }
        DataCenter::MyOwn | DataCenter::Netflix => {
            let start = r#""com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo","name":""#;
            write_word(start, data_center.as_str(), out);
        }
    }
    out.push(b'}');
}

fn write_map(map: &Metadata, keep: fn(&str) -> bool, out: &mut Vec<u8>) {
    out.push(b'{');
    let mut separator = "";
    for (key, value) in map.iter().filter(|(key, _)| keep(key)) {
        out.extend_from_slice(separator.as_bytes());
        separator = ",";
        write_string(key, out);
        out.push(b':');
        write_string(value, out);
    }
    out.push(b'}');
}

fn write_lease(lease: &LeaseTimes, out: &mut Vec<u8>) {
    write_terms(lease.terms, out);
    out.extend_from_slice(br#","registrationTimestamp":"#);
    write_integer(lease.registered.0, out);
    out.extend_from_slice(br#","lastRenewalTimestamp":"#);
    write_integer(lease.renewed.0, out);
    out.extend_from_slice(br#","evictionTimestamp":"#);
    write_integer(lease.evicted.0, out);
    out.extend_from_slice(br#","serviceUpTimestamp":"#);
    write_integer(lease.service_up.0, out);
    out.push(b'}');
}

/// Opens the lease.
fn write_terms(terms: LeaseTerms, out: &mut Vec<u8>) {
    out.extend_from_slice(br#","leaseInfo":{"renewalIntervalInSecs":"#);
    write_integer(terms.renewal_interval_secs, out);
    out.extend_from_slice(br#","durationInSecs":"#);
    write_integer(terms.duration_secs, out);
}
