//! What must hold for any bytes: nothing panics, and what was read survives being written and read again.
//!
//! The fuzz targets search for bytes that break one of these; `tests/it` replays the ones found so far.

use std::sync::Arc;

use eureka_registry_core::wire::{
    BatchItem, Codec, Dialect, Format, ItemAnswer, ListFrame, OutgoingItem, Registration, RepairKind, Route,
    read_applications, read_batch, read_batch_answer, read_instance, read_registration, read_repair_answer,
    read_repair_request, write_batch, write_batch_answer, write_instance, write_list, write_repair_answer,
    write_repair_request,
};
use eureka_registry_core::{
    Action, DataCenter, Filter, Instance, LeaseTimes, LeaseView, Metadata, Status, Wall,
};

/// A registration, an instance or a list in JSON.
pub fn json(data: &[u8]) {
    document(Format::Json, data);
}

/// A registration, an instance or a list in XML.
pub fn xml(data: &[u8]) {
    document(Format::Xml, data);
}

/// A batch, or the answer to one.
pub fn batch(data: &[u8]) {
    let java = read_batch(data, Dialect::Java);
    let lenient = read_batch(data, Dialect::Lenient);
    if let Ok(java) = &java {
        let lenient = lenient.as_ref().expect("lenient rules take what Java's take");
        assert_eq!(java.len(), lenient.len());
    }
    let items: Vec<OutgoingItem> = lenient
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(outgoing)
        .collect();
    let written = write_batch(&items);
    let read = read_batch(&written, Dialect::Java).expect("what we send is readable");
    let again: Vec<OutgoingItem> = read
        .into_iter()
        .filter_map(|item| outgoing(item.expect("what we send is readable")))
        .collect();

    assert_eq!(again, items);

    if let Ok(answers) = read_batch_answer(data) {
        let answers: Vec<ItemAnswer> = answers
            .into_iter()
            .map(|answer| ItemAnswer {
                status: answer.status,
                newer: answer.newer.and_then(registered),
            })
            .collect();
        let written = write_batch_answer(Format::Json, &answers, usize::MAX);
        let again = read_batch_answer(&written.text).expect("it is readable");
        assert_eq!(again.len(), answers.len());
        for (again, answer) in again.into_iter().zip(answers) {
            assert_eq!(again.status, answer.status);
            assert_eq!(again.newer.and_then(registered), answer.newer.map(normal_in_json));
        }
    }
}

/// A message of repair: each kind of request and answer.
pub fn repair(data: &[u8]) {
    for kind in RepairKind::ALL {
        if let Ok(request) = read_repair_request(kind, data) {
            assert_eq!(RepairKind::from(&request), kind);
            let written = write_repair_request(&request);
            assert_eq!(read_repair_request(kind, &written), Ok(request));
        }
        if let Ok(answer) = read_repair_answer(kind, data) {
            let written = write_repair_answer(&answer);
            assert_eq!(read_repair_answer(kind, &written), Ok(answer));
        }
    }
}

/// A path.
pub fn route(data: &[u8]) {
    let Ok(path) = std::str::from_utf8(data) else {
        return;
    };
    let Some(route) = Route::parse(path) else { return };
    assert!(route.methods().contains(&"OPTIONS"));
    let printed = route.to_string();
    assert!(printed.bytes().all(|byte| byte.is_ascii_graphic()));
    let again = Route::parse(&printed).expect("a printed route is one");
    match (again, route) {
        // The case of an application means nothing; `delta` in lower case would be another route.
        (Route::App { app }, Route::App { app: lower }) if lower == "delta" => assert_eq!(app, "DELTA"),
        (again, route) => assert_eq!(again, route),
    }
}

/// A filter.
pub fn filter(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let filter = match Filter::parse(text) {
        Ok(filter) => filter,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let view = view(sample());
    let matches = filter.matches(&view.instance);
    // One more level of nesting may be one too many.
    if let Ok(not) = Filter::parse(&format!("!({text})")) {
        assert_eq!(not.matches(&view.instance), !matches);
    }
    if let Ok(both) = Filter::parse(&format!("({text})||({text})&&({text})")) {
        assert_eq!(both.matches(&view.instance), matches);
    }
}

fn document(format: Format, data: &[u8]) {
    let java = read_registration(format, data, Dialect::Java);
    let lenient = read_registration(format, data, Dialect::Lenient);
    assert!(
        java.is_err() || lenient.is_ok(),
        "lenient rules take what Java's take"
    );
    for registration in [java, lenient].into_iter().flatten() {
        if let Some(view) = registered(registration) {
            survives(&view);
        }
    }
    if let Ok(view) = read_instance(format, data) {
        survives(&Arc::new(view));
    }
    if let Ok(list) = read_applications(format, data) {
        let instances: Vec<_> = list.instances.into_iter().map(Arc::new).collect();
        all_survive(&instances);
    }
}

/// The instance as a registry would show it, if it would take it.
fn registered(registration: Registration) -> Option<Arc<LeaseView>> {
    let app = registration.app.clone()?;
    Some(view(registration.validate(&app).ok()?))
}

fn view(instance: Instance) -> Arc<LeaseView> {
    Arc::new(LeaseView {
        lease: LeaseTimes {
            terms: instance.lease,
            registered: Wall(1),
            renewed: Wall(2),
            evicted: Wall(3),
            service_up: Wall(4),
        },
        instance: Arc::new(instance),
        action: Action::Added,
        last_updated: Wall(5),
        coordinating: false,
    })
}

fn survives(view: &Arc<LeaseView>) {
    all_survive(std::slice::from_ref(view));
    for format in [Format::Json, Format::Xml] {
        let mut out = Vec::new();
        write_instance(format, view, true, &mut out);
        let read = read_instance(format, &out).expect("a single instance is readable");
        let mut expected = normal(format, view);
        if format == Format::Xml && matches!(expected.status, Status::OutOfService | Status::Unknown) {
            expected.status = Status::Down;
        }
        assert_eq!(*read.instance, expected, "{format:?}");
    }
}

fn all_survive(views: &[Arc<LeaseView>]) {
    let frame = ListFrame {
        version: "1",
        hash: "UP_1_",
        tell_empty: true,
    };
    for codec in Codec::ALL {
        let body = write_list(codec, &frame, views);
        let list = read_applications(codec.format(), &body).expect("a list is readable");
        assert_eq!(
            (list.version.as_deref(), list.hash.as_deref()),
            (Some("1"), Some("UP_1_"))
        );
        assert_eq!(
            (list.instances.len(), list.left_out),
            (views.len(), 0),
            "{codec:?}"
        );
        for (read, view) in list.instances.iter().zip(views) {
            let expected = normal(codec.format(), view);
            match codec {
                Codec::Json | Codec::Xml => {
                    assert_eq!(*read.instance, expected, "{codec:?}");
                    assert_eq!((read.lease, read.last_updated), (view.lease, view.last_updated));
                    assert_eq!((read.action, read.coordinating), (view.action, view.coordinating));
                }
                Codec::CompactJson | Codec::CompactXml => {
                    assert_eq!(*read.instance, compact(expected), "{codec:?}");
                }
            }
        }
    }
}

/// What compact codecs keep.
fn compact(instance: Instance) -> Instance {
    let kept = [
        "availability-zone",
        "instance-id",
        "local-ipv4",
        "public-hostname",
        "public-ipv4",
    ];
    let data_center = match instance.data_center {
        DataCenter::Amazon(machine) => {
            let kept = machine.iter().filter(|(key, _)| kept.contains(key)).collect();
            DataCenter::Amazon(kept)
        }
        other => other,
    };
    Instance {
        instance_id: instance.instance_id,
        host_name: instance.host_name,
        ip_address: instance.ip_address,
        port: instance.port,
        secure_port: instance.secure_port,
        vip_address: instance.vip_address,
        secure_vip_address: instance.secure_vip_address,
        data_center,
        status: instance.status,
        asg_name: instance.asg_name,
        ..Instance::new(&instance.app, "", "", "")
    }
}

fn normal_in_json(view: Arc<LeaseView>) -> Arc<LeaseView> {
    Arc::new(LeaseView {
        instance: Arc::new(normal(Format::Json, &view)),
        ..(*view).clone()
    })
}

/// What a format can carry of an instance.
fn normal(format: Format, view: &LeaseView) -> Instance {
    let mut instance = (*view.instance).clone();
    match format {
        Format::Json => {
            // Only what came as XML can have it: in JSON it is Java's own marker.
            let unmarked = |map: &Metadata| map.iter().filter(|(key, _)| *key != "@class").collect();
            instance.metadata = unmarked(&instance.metadata);
            if let DataCenter::Amazon(machine) = &mut instance.data_center {
                *machine = unmarked(machine);
            }
            derive_id(&mut instance);
            let upper = |text: Arc<str>| Arc::from(text.to_uppercase());
            instance.app_group = instance.app_group.map(upper);
        }
        Format::Xml => {
            let text = |text: &str| -> String {
                text.chars()
                    .map(|c| if is_allowed(c) { c } else { '\u{fffd}' })
                    .collect()
            };
            let map = |map: &Metadata| -> Metadata {
                let pairs: Vec<_> = map.iter().map(|(key, value)| (key, text(value))).collect();
                pairs
                    .iter()
                    .filter(|(key, _)| !key.is_empty())
                    .map(|(key, value)| (*key, &**value))
                    .collect()
            };
            instance.metadata = map(&instance.metadata);
            if let DataCenter::Amazon(machine) = &mut instance.data_center {
                *machine = map(machine);
            }
            for field in [
                &mut instance.app,
                &mut instance.host_name,
                &mut instance.ip_address,
            ] {
                *field = Arc::from(text(field));
            }
            for field in [
                &mut instance.instance_id,
                &mut instance.app_group,
                &mut instance.sid,
                &mut instance.home_page_url,
                &mut instance.status_page_url,
                &mut instance.health_check_url,
                &mut instance.secure_health_check_url,
                &mut instance.vip_address,
                &mut instance.secure_vip_address,
                &mut instance.asg_name,
            ] {
                *field = field.as_ref().map(|field| Arc::from(text(field)));
            }
        }
    }
    instance
}

/// In JSON the id of an instance without one may be in its metadata.
fn derive_id(instance: &mut Instance) {
    if instance.instance_id.is_some() {
        return;
    }
    let Some(id) = instance
        .metadata
        .get("instanceId")
        .filter(|id| !id.trim().is_empty())
    else {
        return;
    };
    let host = &*instance.host_name;
    instance.instance_id = Some(if host.trim().is_empty() || id.starts_with(host) {
        Arc::from(id)
    } else {
        Arc::from(format!("{host}:{id}"))
    });
}

fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..)
}

/// A received item as its sender might have had it.
fn outgoing(item: BatchItem<'_>) -> Option<OutgoingItem> {
    Some(match item {
        BatchItem::Cancel { key } => OutgoingItem::Cancel { key },
        BatchItem::DeleteStatusOverride {
            key,
            status,
            last_dirty,
        } => OutgoingItem::DeleteStatusOverride {
            key,
            status: Some(status.unwrap_or(Status::Unknown)),
            last_dirty: last_dirty?,
        },
        BatchItem::Heartbeat(heartbeat) => OutgoingItem::Heartbeat {
            key: heartbeat.key().to_key(),
            last_dirty: heartbeat.last_dirty,
            status: Status::Up,
            overridden: heartbeat.overridden,
        },
        BatchItem::Register { registration, .. } => {
            OutgoingItem::Register(normal_in_json(registered(*registration)?))
        }
        BatchItem::StatusUpdate {
            key,
            status,
            last_dirty,
        } => OutgoingItem::StatusUpdate {
            key,
            status,
            last_dirty,
        },
    })
}

fn sample() -> Instance {
    let mut instance = Instance::new("ORDERS", "h1:orders:8080", "h1", "10.0.0.1");
    instance.vip_address = Some(Arc::from("orders,orders-v2"));
    instance.metadata = [("zone", "a"), ("version", "2.1")].into_iter().collect();
    instance
}
