//! Registrations read, pages written.

use std::hint::black_box;
use std::sync::Arc;

use eureka_registry_core::LeaseView;
use eureka_registry_core::wire::{self, Boundary, Codec, Dialect, Format};

use crate::fleet;
use crate::operation::{Operation, Run};

/// Instances of a page: a full one has two and a half times as many.
const PAGE: usize = 128;

pub(crate) const OPERATIONS: &[Operation] = &[
    decoding("decode registration, JSON", |_| decode(Format::Json)),
    decoding("decode registration, XML", |_| decode(Format::Xml)),
    encoding("encode page, JSON", |_| encode(Codec::Json)),
    encoding("encode page, compact JSON", |_| encode(Codec::CompactJson)),
    encoding("encode page, XML", |_| encode(Codec::Xml)),
];

const fn decoding(name: &'static str, prepare: fn(usize) -> Run) -> Operation {
    Operation {
        name,
        items: 1,
        instances: &[1],
        prepare,
    }
}

const fn encoding(name: &'static str, prepare: fn(usize) -> Run) -> Operation {
    Operation {
        name,
        items: 1,
        instances: &[PAGE],
        prepare,
    }
}

fn decode(format: Format) -> Run {
    let body = fleet::registration(format, 0);
    Box::new(move || {
        let registration = wire::read_registration(format, black_box(&body), Dialect::Lenient);
        let instance = registration.expect("it is well-formed").validate("app-0");
        black_box(instance.expect("nothing is missing"));
    })
}

fn encode(codec: Codec) -> Run {
    let snapshot = fleet::registry(PAGE).snapshot();
    let page: Vec<Arc<LeaseView>> = snapshot.instances().cloned().collect();
    Box::new(move || {
        let mut text = Vec::with_capacity(PAGE * 1_536);
        wire::write_list_piece(codec, Boundary::First, black_box(&page), &mut text);
        black_box(text);
    })
}
