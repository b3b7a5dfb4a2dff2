//! A batch of renewals as a peer sends it: read, applied, answered.

use std::hint::black_box;

use eureka_registry_core::wire::{self, BatchItem, Dialect, Format, ItemAnswer};
use eureka_registry_core::{Origin, PeerId, Renewal, Renewed};

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
        let heartbeats: Vec<_> = items
            .into_iter()
            .map(|item| match item {
                Ok(BatchItem::Heartbeat(heartbeat)) => heartbeat,
                _ => panic!("{item:?} is no heartbeat"),
            })
            .collect();
        let renewals = heartbeats.iter().map(|heartbeat| Renewal {
            key: heartbeat.key(),
            last_dirty: heartbeat.last_dirty,
            overridden: heartbeat.overridden,
        });
        let mut answers = Vec::with_capacity(heartbeats.len());
        registry.renew_all(&peer, renewals, |renewed| {
            assert_eq!(renewed, Renewed::Ok);
            answers.push(ItemAnswer {
                status: 200,
                newer: None,
            });
        });
        black_box(wire::write_batch_answer(Format::Json, &answers, usize::MAX));
    })
}
