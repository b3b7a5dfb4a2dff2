//! Between the registry's types and those of the .proto, both ways.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use eureka_registry_core::{
    Action, Author, Cause, Change, Cursor, DEFAULT_DURATION_SECS, DEFAULT_RENEWAL_INTERVAL_SECS, DataCenter,
    Excess, Filter, Instance, InstanceKey, InstanceLimits, LeaseTerms, LeaseView, Metadata, Port, Status,
    Wall,
};

use crate::proto;
use crate::refusal::{Refusal, Violations};

/// A key of metadata that Java's encoder puts there, and no registration over REST keeps.
const JAVA_MARKER: &str = "@class";
/// Java holds times of a lease in 32 bits with a sign.
const MAX_SECS: u32 = i32::MAX as u32;
/// Whatever a field says whose number names no status.
const NO_STATUS: &str = "no such status";
/// Whatever a field says that must not be empty.
const REQUIRED: &str = "required";

/// An instance as it was reported, with the status that readers see.
pub(crate) fn instance(instance: &Instance) -> proto::Instance {
    let text = |text: &Option<Arc<str>>| text.as_deref().unwrap_or_default().to_owned();
    proto::Instance {
        app: instance.app.to_string(),
        instance_id: instance.id().to_owned(),
        host_name: instance.host_name.to_string(),
        ip_address: instance.ip_address.to_string(),
        status: status(instance.status).into(),
        overridden_status: status(instance.overridden_status).into(),
        port: Some(port(instance.port)),
        secure_port: Some(port(instance.secure_port)),
        vip_address: text(&instance.vip_address),
        secure_vip_address: text(&instance.secure_vip_address),
        metadata: pairs(&instance.metadata),
        lease_terms: Some(proto::LeaseTerms {
            renewal_interval_secs: instance.lease.renewal_interval_secs,
            duration_secs: instance.lease.duration_secs,
        }),
        data_center: Some(data_center(&instance.data_center)),
        app_group: text(&instance.app_group),
        home_page_url: text(&instance.home_page_url),
        status_page_url: text(&instance.status_page_url),
        health_check_url: text(&instance.health_check_url),
        secure_health_check_url: text(&instance.secure_health_check_url),
        asg_name: text(&instance.asg_name),
        country_id: Some(instance.country_id),
        sid: text(&instance.sid),
        last_dirty_unix_ms: instance.last_dirty,
        lease_times: None,
    }
}

/// The same with the times of its lease.
pub(crate) fn view(view: &LeaseView) -> proto::Instance {
    proto::Instance {
        lease_times: Some(proto::LeaseTimes {
            registered_unix_ms: unix_ms(view.lease.registered),
            renewed_unix_ms: unix_ms(view.lease.renewed),
            service_up_unix_ms: unix_ms(view.lease.service_up),
            last_updated_unix_ms: unix_ms(view.last_updated),
        }),
        ..instance(&view.instance)
    }
}

/// A change as it is, whatever a filter would say.
pub(crate) fn change(change: &Change) -> proto::Change {
    let (author, peer) = match &change.author {
        Author::Client => (proto::Author::Client, None),
        Author::Operator => (proto::Author::Operator, None),
        Author::Own => (proto::Author::Own, None),
        Author::Peer(peer) => (proto::Author::Peer, Some(peer.without_credentials())),
        Author::Eviction => (proto::Author::Eviction, None),
    };
    proto::Change {
        action: action(change.action).into(),
        instance: Some(instance(&change.instance)),
        at_unix_ms: unix_ms(change.at),
        author: author.into(),
        peer: peer.map(Cow::into_owned).unwrap_or_default(),
        cause: cause(change.cause).into(),
    }
}

/// What a client registers: exactly the instance that REST makes of the same content.
pub(crate) fn registration(
    given: Option<proto::Instance>,
    limits: InstanceLimits,
) -> Result<Instance, Refusal> {
    let Some(given) = given else {
        return Err(Refusal::field("instance", REQUIRED));
    };
    let mut wrong = Violations::default();
    for (field, text) in [
        ("instance.app", &given.app),
        ("instance.host_name", &given.host_name),
        ("instance.ip_address", &given.ip_address),
    ] {
        if text.is_empty() {
            wrong.push(field, REQUIRED);
        }
    }
    let blank = Instance::new(
        &given.app,
        &given.instance_id,
        &given.host_name,
        &given.ip_address,
    );
    let mut instance = Instance {
        app_group: present(&given.app_group).map(|group| upper(&group)),
        sid: present(&given.sid).filter(|sid| !matches!(&**sid, "na" | "unknown")),
        port: given_port("instance.port", given.port, blank.port, &mut wrong),
        secure_port: given_port(
            "instance.secure_port",
            given.secure_port,
            blank.secure_port,
            &mut wrong,
        ),
        home_page_url: present(&given.home_page_url),
        status_page_url: present(&given.status_page_url),
        health_check_url: present(&given.health_check_url),
        secure_health_check_url: present(&given.secure_health_check_url),
        vip_address: present(&given.vip_address),
        secure_vip_address: present(&given.secure_vip_address),
        country_id: given.country_id.unwrap_or(blank.country_id),
        data_center: given_data_center(given.data_center, &mut wrong),
        status: match given_status(given.status) {
            Ok(status) => status.unwrap_or(blank.status),
            Err(()) => {
                wrong.push("instance.status", NO_STATUS);
                blank.status
            }
        },
        lease: given_terms(given.lease_terms.unwrap_or_default(), &mut wrong),
        metadata: given_pairs(&given.metadata),
        last_dirty: given.last_dirty_unix_ms,
        asg_name: present(&given.asg_name),
        ..blank
    };
    check_limits(&instance, limits, &mut wrong);
    wrong.check()?;
    // As Java does: readers find the id there, too.
    let id: Arc<str> = Arc::from(instance.id());
    if let DataCenter::Amazon(machine) = &mut instance.data_center
        && machine.get("instance-id").is_none()
    {
        machine.insert("instance-id", &id);
    }
    Ok(instance)
}

fn check_limits(instance: &Instance, limits: InstanceLimits, wrong: &mut Violations) {
    match instance.within(limits) {
        Ok(()) => {}
        Err(excess @ Excess::Metadata { .. }) => wrong.push("instance.metadata", excess.to_string()),
        Err(excess @ Excess::Text { field, .. }) => {
            wrong.push(format!("instance.{field}"), excess.to_string());
        }
        Err(excess) => wrong.push("instance", excess.to_string()),
    }
}

/// The key that a request names; both texts are required. `prefix` is the path to them, with its dot.
pub(crate) fn key(prefix: &str, app: &str, id: &str) -> Result<InstanceKey, Refusal> {
    let mut wrong = Violations::default();
    for (field, text) in [("app", app), ("instance_id", id)] {
        if text.is_empty() {
            wrong.push(format!("{prefix}{field}"), REQUIRED);
        }
    }
    wrong.check()?;
    Ok(InstanceKey::new(app, id))
}

/// A filter, none if it is empty.
pub(crate) fn filter(field: &str, text: &str) -> Result<Option<Filter>, Refusal> {
    if text.is_empty() {
        return Ok(None);
    }
    match Filter::parse(text) {
        Ok(filter) => Ok(Some(filter)),
        Err(error) => Err(Refusal::field(field, error.to_string())),
    }
}

/// A cursor, none if it is empty.
pub(crate) fn cursor(field: &str, text: &str) -> Result<Option<Cursor>, Refusal> {
    if text.is_empty() {
        return Ok(None);
    }
    match Cursor::parse(text) {
        Some(cursor) => Ok(Some(cursor)),
        None => Err(Refusal::field(
            field,
            "expected a cursor that this interface gave",
        )),
    }
}

/// A status that may be unspecified.
pub(crate) fn optional_status(field: &str, number: i32) -> Result<Option<Status>, Refusal> {
    given_status(number).map_err(|()| Refusal::field(field, NO_STATUS))
}

/// A status that must be there.
pub(crate) fn required_status(field: &str, number: i32) -> Result<Status, Refusal> {
    optional_status(field, number)?.ok_or_else(|| Refusal::field(field, REQUIRED))
}

/// Upper case as the registry has it.
pub(crate) fn upper(text: &str) -> Arc<str> {
    Arc::clone(InstanceKey::new(text, "").app())
}

/// `Ok(None)` for unspecified, an error for a number that names no status.
fn given_status(number: i32) -> Result<Option<Status>, ()> {
    match proto::Status::try_from(number) {
        Ok(proto::Status::Unspecified) => Ok(None),
        Ok(proto::Status::Up) => Ok(Some(Status::Up)),
        Ok(proto::Status::Down) => Ok(Some(Status::Down)),
        Ok(proto::Status::Starting) => Ok(Some(Status::Starting)),
        Ok(proto::Status::OutOfService) => Ok(Some(Status::OutOfService)),
        Ok(proto::Status::Unknown) => Ok(Some(Status::Unknown)),
        Err(_) => Err(()),
    }
}

fn given_port(field: &str, given: Option<proto::Port>, absent: Port, wrong: &mut Violations) -> Port {
    let Some(given) = given else {
        return absent;
    };
    if u16::try_from(given.number).is_err() {
        wrong.push(format!("{field}.number"), "no port: expected 0 to 65535");
    }
    Port {
        number: given.number,
        enabled: given.enabled,
    }
}

fn given_terms(given: proto::LeaseTerms, wrong: &mut Violations) -> LeaseTerms {
    let mut seconds = |field, given, absent| {
        if given > MAX_SECS {
            wrong.push(field, format!("more than {MAX_SECS} seconds"));
        }
        if given == 0 { absent } else { given }
    };
    LeaseTerms {
        renewal_interval_secs: seconds(
            "instance.lease_terms.renewal_interval_secs",
            given.renewal_interval_secs,
            DEFAULT_RENEWAL_INTERVAL_SECS,
        ),
        duration_secs: seconds(
            "instance.lease_terms.duration_secs",
            given.duration_secs,
            DEFAULT_DURATION_SECS,
        ),
    }
}

fn given_data_center(given: Option<proto::DataCenter>, wrong: &mut Violations) -> DataCenter {
    let given = given.unwrap_or_default();
    let data_center = match &*given.name {
        "Amazon" => return DataCenter::Amazon(given_pairs(&given.amazon)),
        "" | "MyOwn" => DataCenter::MyOwn,
        "Netflix" => DataCenter::Netflix,
        _ => {
            wrong.push(
                "instance.data_center.name",
                "no data centre: expected MyOwn, Amazon or Netflix",
            );
            DataCenter::MyOwn
        }
    };
    if !given.amazon.is_empty() {
        wrong.push("instance.data_center.amazon", "only where the name is Amazon");
    }
    data_center
}

fn given_pairs(given: &BTreeMap<String, String>) -> Metadata {
    given
        .iter()
        .map(|(key, value)| (&**key, &**value))
        .filter(|(key, _)| *key != JAVA_MARKER)
        .collect()
}

fn present(text: &str) -> Option<Arc<str>> {
    (!text.is_empty()).then(|| Arc::from(text))
}

fn pairs(metadata: &Metadata) -> BTreeMap<String, String> {
    metadata
        .iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

fn data_center(data_center: &DataCenter) -> proto::DataCenter {
    proto::DataCenter {
        name: data_center.as_str().to_owned(),
        amazon: match data_center {
            DataCenter::Amazon(machine) => pairs(machine),
            DataCenter::MyOwn | DataCenter::Netflix => BTreeMap::new(),
        },
    }
}

const fn port(port: Port) -> proto::Port {
    proto::Port {
        number: port.number,
        enabled: port.enabled,
    }
}

const fn status(status: Status) -> proto::Status {
    match status {
        Status::Up => proto::Status::Up,
        Status::Down => proto::Status::Down,
        Status::Starting => proto::Status::Starting,
        Status::OutOfService => proto::Status::OutOfService,
        Status::Unknown => proto::Status::Unknown,
    }
}

const fn action(action: Action) -> proto::Action {
    match action {
        Action::Added => proto::Action::Added,
        Action::Modified => proto::Action::Modified,
        Action::Deleted => proto::Action::Deleted,
    }
}

const fn cause(cause: Cause) -> proto::Cause {
    match cause {
        Cause::Registered => proto::Cause::Registered,
        Cause::Renewed => proto::Cause::Renewed,
        Cause::Cancelled => proto::Cause::Cancelled,
        Cause::Expired => proto::Cause::Expired,
        Cause::Overridden => proto::Cause::Overridden,
        Cause::OverrideCleared => proto::Cause::OverrideCleared,
        Cause::MetadataChanged => proto::Cause::MetadataChanged,
        Cause::Adopted => proto::Cause::Adopted,
    }
}

fn unix_ms(wall: Wall) -> i64 {
    i64::try_from(wall.0).unwrap_or(i64::MAX)
}
