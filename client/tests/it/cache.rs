//! The cache: views, watches, listeners and the copy on disk.

mod copy;
mod damage;
mod keep;
mod listeners;
mod views;
mod watches;

use std::sync::Arc;

use eureka_client::Server;
use eureka_client::cache::Publisher;
use eureka_registry_core::{
    Action, Instance, LeaseTimes, LeaseView, Mirror, Mono, Now, Snapshot, Status, Wall,
};

/// A reading of both clocks, so many milliseconds after the start.
fn at(millis: u64) -> Now {
    Now {
        mono: Mono(millis),
        wall: Wall(1_700_000_000_000 + millis),
    }
}

fn publisher() -> Publisher {
    Publisher::new(|| at(0))
}

fn server() -> Arc<Server> {
    Arc::new(Server::parse("http://registry:8761/eureka/").unwrap())
}

fn instance(app: &str, id: &str, status: Status) -> Instance {
    let mut instance = Instance::new(app, id, &format!("{id}.example"), "10.0.0.1");
    instance.status = status;
    instance.last_dirty = Some(1_700_000_000_000);
    instance
}

fn lease(instance: Instance) -> LeaseView {
    LeaseView {
        lease: LeaseTimes {
            terms: instance.lease,
            registered: Wall(1_700_000_000_001),
            renewed: Wall(1_700_000_000_002),
            evicted: Wall(0),
            service_up: Wall(1_700_000_000_003),
        },
        instance: Arc::new(instance),
        action: Action::Added,
        last_updated: Wall(1_700_000_000_004),
        coordinating: false,
    }
}

fn up(app: &str, id: &str) -> LeaseView {
    lease(instance(app, id, Status::Up))
}

fn snapshot(views: impl IntoIterator<Item = LeaseView>) -> Snapshot {
    let mut mirror = Mirror::new();
    for view in views {
        mirror.put(view);
    }
    mirror.snapshot()
}

/// `APP/id` of each.
fn keys<'a>(views: impl IntoIterator<Item = &'a Arc<LeaseView>>) -> Vec<String> {
    views.into_iter().map(|view| view.key().to_string()).collect()
}
