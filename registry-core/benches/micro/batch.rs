//! A batch of renewals as a peer sends it: read, applied one by one, answered.

use std::hint::black_box;

use eureka_registry_core::wire::{self, BatchItem, Dialect, Format, ItemAnswer};
use eureka_registry_core::{Origin, PeerId, Renewed};

use crate::fleet::{self, BATCH};
use crate::operation::{FLEETS, Operation, Run};

pub(crate) const OPERATIONS: &[Operation] = &[Operation {
    name: "batch of heartbeats",
    items: BATCH,
    instances: FLEETS,
    prepare: heartbeats,
}];

fn heartbeats(instances: usize) -> Run {
    let registry = fleet::registry(instances);
    let body = fleet::heartbeats(instances);
    let peer = Origin::Peer(PeerId("http://peer-1:8761/eureka/".into()));
    Box::new(move || {
        let items = wire::read_batch(black_box(&body), Dialect::Lenient).expect("it is well-formed");
        let mut answers = Vec::with_capacity(items.len());
        for item in items {
            let Ok(BatchItem::Heartbeat {
                key,
                last_dirty,
                overridden,
            }) = item
            else {
                panic!("{item:?} is no heartbeat");
            };
            let renewed = registry.renew(peer.clone(), &key, last_dirty, overridden);
            assert_eq!(renewed, Renewed::Ok);
            answers.push(ItemAnswer {
                status: 200,
                newer: None,
            });
        }
        black_box(wire::write_batch_answer(Format::Json, &answers, usize::MAX));
    })
}
