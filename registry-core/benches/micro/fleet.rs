//! The instances that are measured with, a hundred to an application, as Spring's client reports them.

use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::wire::{self, Format, OutgoingItem};
use eureka_registry_core::{
    Action, Clock, Config, Event, Instance, LeaseTimes, LeaseView, Now, Origin, Registered, RegistryHandle,
    Status, Wall,
};

/// Dirty timestamp of an instance before its first change; its text stands in its metadata, too.
pub(crate) const DIRTY: i64 = 1_700_000_000_000;
/// Items of a batch between servers, as Java fills it.
pub(crate) const BATCH: u64 = 250;
/// So many instances change, over and over: a delta has them all, and no more.
pub(crate) const CHANGING: usize = 100;

/// An open registry with so many instances, in which no time passes.
pub(crate) fn registry(instances: usize) -> RegistryHandle {
    struct Stopped;
    impl Clock for Stopped {
        fn now(&self) -> Now {
            Now::default()
        }
    }
    let registry = RegistryHandle::new(Config::default(), Arc::new(Stopped), Arc::new(|_: &Event| {}));
    registry.open(0, None);
    for number in 0..instances {
        let registered = registry.register(Origin::Client, Arc::new(instance(number)), Duration::ZERO);
        assert_eq!(registered, Registered::Accepted);
    }
    registry
}

/// An instance by its number.
pub(crate) fn instance(number: usize) -> Instance {
    let application = format!("app-{}", number / 100);
    let host = format!("host-{number}.example.internal");
    let id = format!("{host}:{application}:8080");
    let address = format!("10.{}.{}.{}", number >> 16 & 255, number >> 8 & 255, number & 255);
    let url = |path: &str| Some(format!("http://{host}:8080/{path}").into());
    let mut instance = Instance::new(&application, &id, &host, &address);
    instance.port.number = 8080;
    instance.secure_port.number = 443;
    instance.home_page_url = url("");
    instance.status_page_url = url("actuator/info");
    instance.health_check_url = url("actuator/health");
    instance.vip_address = Some(application.as_str().into());
    instance.secure_vip_address = Some(application.into());
    for (key, value) in [
        ("management.port", "8080"),
        ("zone", ["a", "b", "c"][number % 3]),
        ("build", &DIRTY.to_string()),
    ] {
        instance.metadata.insert(key, value);
    }
    instance.last_dirty = Some(DIRTY);
    instance
}

/// The numbers of those that change, of so many instances.
pub(crate) fn changing(instances: usize) -> impl Iterator<Item = usize> {
    (0..CHANGING).map(move |place| place * instances / CHANGING)
}

/// The body of an instance's registration.
pub(crate) fn registration(format: Format, number: usize) -> Vec<u8> {
    let instance = instance(number);
    let view = LeaseView {
        action: Action::Added,
        last_updated: Wall(0),
        lease: LeaseTimes {
            terms: instance.lease,
            registered: Wall(0),
            renewed: Wall(0),
            evicted: Wall(0),
            service_up: Wall(0),
        },
        coordinating: false,
        instance: Arc::new(instance),
    };
    let mut body = Vec::new();
    wire::write_instance(format, &view, false, &mut body);
    body
}

/// The body of a batch in which a peer tells of renewals, one for every so many instances.
pub(crate) fn heartbeats(instances: usize) -> Vec<u8> {
    let heartbeat = |item: usize| OutgoingItem::Heartbeat {
        key: instance(item * instances / BATCH as usize).key(),
        last_dirty: Some(DIRTY),
        status: Status::Up,
        overridden: None,
    };
    wire::write_batch(&(0..BATCH as usize).map(heartbeat).collect::<Vec<_>>())
}
