//! Wire formats beyond what was recorded: hostile and odd input, cuts of lists, paths.

mod decode;
mod encode;
mod repair;
mod route;

use std::sync::Arc;

use eureka_registry_core::{Action, DataCenter, Instance, LeaseTimes, LeaseView, Metadata, Wall};

/// An instance with everything that can be there.
pub(crate) fn full(app: &str, id: &str) -> Arc<LeaseView> {
    let mut instance = Instance::new(app, id, "h1", "10.0.0.1");
    let text = |text: &str| Some(Arc::from(text));
    instance.app_group = text("GROUP");
    instance.sid = text("s");
    instance.home_page_url = text("http://h1/");
    instance.status_page_url = text("http://h1/info");
    instance.health_check_url = text("http://h1/health");
    instance.secure_health_check_url = text("https://h1/health");
    instance.vip_address = text("v1,v2");
    instance.secure_vip_address = text("sv");
    instance.asg_name = text("asg");
    instance.last_dirty = Some(7);
    instance.metadata = [("zone", "z1"), ("a_b", "x")].into_iter().collect();
    instance.data_center = DataCenter::Amazon([("instance-id", "i-1"), ("mac", "m")].into_iter().collect());
    view(instance)
}

/// An instance with as little as there can be, but this metadata.
pub(crate) fn with_metadata(pairs: &[(&str, &str)]) -> Arc<LeaseView> {
    let mut instance = Instance::new("APP", "i", "h1", "10.0.0.1");
    instance.last_dirty = Some(1);
    instance.metadata = pairs.iter().copied().collect::<Metadata>();
    view(instance)
}

pub(crate) fn view(instance: Instance) -> Arc<LeaseView> {
    Arc::new(LeaseView {
        lease: LeaseTimes {
            terms: instance.lease,
            registered: Wall(1),
            renewed: Wall(2),
            evicted: Wall(0),
            service_up: Wall(3),
        },
        instance: Arc::new(instance),
        action: Action::Modified,
        last_updated: Wall(4),
        coordinating: true,
    })
}
