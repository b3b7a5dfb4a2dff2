//! What a trace says of requests and instances.

use eureka_registry_core::{Instance, InstanceKey, Offer, RepairRequest};
use eureka_replication::{Live, Sending};

use crate::node::{Outgoing, Request};

/// A request, in short.
pub(super) fn request(outgoing: &Outgoing) -> String {
    let text = match &outgoing.request {
        Request::Batch(items) => list(items, item),
        Request::Probe => "probe".to_owned(),
        Request::Lists => "lists".to_owned(),
        Request::Repair(RepairRequest::Compare { root, late }) => {
            format!("compare {root:016x} late [{}]", list(late, key))
        }
        Request::Repair(RepairRequest::Exchange { pull, push }) => {
            format!("exchange pull [{}] push [{}]", list(pull, key), list(push, offer))
        }
        Request::Repair(other) => format!("{other:?}"),
    };
    format!("#{} {text}", outgoing.id.0)
}

/// What is compared of an instance.
pub(super) fn instance(instance: &Instance) -> String {
    let Instance {
        status,
        overridden_status: overridden,
        last_dirty,
        metadata,
        ..
    } = instance;
    let metadata: Vec<_> = metadata
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let dirty = last_dirty.unwrap_or(0);
    format!("{status} ({overridden}) dirty {dirty} {}", metadata.join(","))
}

fn item(item: &Sending) -> String {
    let of = |live: &Live| format!("{} {}", key(&live.view.key()), instance(&live.view.instance));
    match item {
        Sending::Register(live) => format!("register {}", of(live)),
        Sending::Cancel(cancelled) => format!("cancel {}", key(cancelled)),
        Sending::Override(live) => format!("override {}", of(live)),
        Sending::ClearOverride(live) => format!("clear {}", of(live)),
        Sending::Renew(live) => format!("renew {}", key(&live.view.key())),
    }
}

fn offer(offer: &Offer) -> String {
    match offer {
        Offer::Copy {
            instance: copy,
            age,
            overridden,
        } => {
            let (key, copy) = (key(&copy.key()), instance(copy));
            format!("{key} {copy} age {} {overridden:?}", age.as_millis())
        }
        Offer::Gone {
            key: gone,
            dirty,
            ago,
        } => {
            format!("{} gone dirty {dirty} ago {}", key(gone), ago.as_millis())
        }
    }
}

fn key(key: &InstanceKey) -> String {
    key.id().to_string()
}

fn list<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
    let texts: Vec<_> = items.iter().map(text).collect();
    texts.join("; ")
}
