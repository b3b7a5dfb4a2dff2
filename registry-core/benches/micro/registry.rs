//! What is asked of the registry itself, through the lock, without HTTP and without encoding.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{
    Changed, Instance, InstanceKey, Origin, Registered, RegistryHandle, Renewed, Status,
};

use crate::fleet::{self, DIRTY};
use crate::operation::{FLEETS, Operation, Run};

pub(crate) const OPERATIONS: &[Operation] = &[
    operation("renew", renew),
    operation("register again, the same", register_same),
    operation("register again, changed", register_changed),
    operation("cancel and register", cancel),
    operation("override a status and take a snapshot", snapshot),
];

const fn operation(name: &'static str, prepare: fn(usize) -> Run) -> Operation {
    Operation {
        name,
        items: 1,
        instances: FLEETS,
        prepare,
    }
}

fn renew(instances: usize) -> Run {
    let registry = fleet::registry(instances);
    let keys: Vec<InstanceKey> = (0..instances)
        .map(|number| fleet::instance(number).key())
        .collect();
    let mut turns = keys.into_iter().cycle();
    Box::new(move || {
        let key = turns.next().expect("they go round");
        let renewed = registry.renew(Origin::Client, &key, Some(DIRTY), None);
        assert_eq!(renewed, Renewed::Ok);
    })
}

fn register_same(instances: usize) -> Run {
    let registry = fleet::registry(instances);
    let mut turns = changing(instances).into_iter().cycle();
    Box::new(move || register(&registry, turns.next().expect("they go round")))
}

fn register_changed(instances: usize) -> Run {
    let registry = fleet::registry(instances);
    let mut turns = changing(instances).into_iter().cycle();
    let mut dirty = DIRTY;
    Box::new(move || {
        dirty += 1;
        let mut instance = Instance::clone(&turns.next().expect("they go round"));
        instance.last_dirty = Some(dirty);
        instance.metadata.insert("build", &dirty.to_string());
        register(&registry, Arc::new(instance));
    })
}

fn cancel(instances: usize) -> Run {
    let registry = fleet::registry(instances);
    let mut turns = changing(instances).into_iter().cycle();
    Box::new(move || {
        let instance = turns.next().expect("they go round");
        let cancelled = registry.cancel(Origin::Client, &instance.key());
        assert_eq!(cancelled, Changed::Ok);
        register(&registry, instance);
    })
}

fn snapshot(instances: usize) -> Run {
    let registry = fleet::registry(instances);
    let both = [Status::OutOfService, Status::Up];
    let turns = both.map(|status| {
        changing(instances)
            .into_iter()
            .map(move |instance| (instance.key(), status))
    });
    let mut turns = turns
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .into_iter()
        .cycle();
    Box::new(move || {
        let (key, status) = turns.next().expect("they go round");
        let changed = registry.set_override(Origin::Operator, &key, status, None);
        assert_eq!(changed, Changed::Ok);
        black_box(registry.snapshot());
    })
}

fn register(registry: &RegistryHandle, instance: Arc<Instance>) {
    let registered = registry.register(Origin::Client, instance, Duration::ZERO);
    assert_eq!(registered, Registered::Accepted);
}

fn changing(instances: usize) -> Vec<Arc<Instance>> {
    let instance = |number| Arc::new(fleet::instance(number));
    fleet::changing(instances).map(instance).collect()
}
