//! Sends a batch, filled in from the registry at the moment of sending.

use std::sync::Arc;

use bytes::Bytes;
use eureka_registry_core::wire::{self, OutgoingItem, ReceivedAnswer};
use eureka_registry_core::{InstanceKey, RegistryHandle, Status};
use http::Method;

use super::link::Errand;
use crate::http::{Asking, Failed};
use crate::message::{Item, ItemOutcome, Live, NodeId, Outcome, Sending};

/// Leases looked up in one hold of the registry's lock.
const PORTION: usize = 256;
/// An answer may carry a newer copy for every item.
const LONGEST: usize = 64 << 20;

pub(super) async fn send(errand: Errand, items: Vec<Item>) -> Result<(Option<NodeId>, Outcome), Failed> {
    let sendings = rendered(&errand.registry, &items);
    let outgoing: Vec<OutgoingItem> = sendings.iter().flatten().map(outgoing).collect();
    if outgoing.is_empty() {
        return Ok((None, Outcome::Answered(vec![ItemOutcome::Void; items.len()])));
    }
    let transport = &errand.link.transport;
    let asking = Asking {
        method: Method::POST,
        path: format!("{}/peerreplication/batch/", transport.address().path),
        body: Bytes::from(wire::write_batch(&outgoing)),
        compressed: errand.link.is_ours(),
        within: errand.settings.request_timeout,
        longest: LONGEST,
        anew: false,
    };
    let answer = transport.ask(&asking).await?;
    let node = answer.node();
    let body = answer.into_success(&asking, errand.own)?;
    let answers = wire::read_batch_answer(&body)
        .map_err(|error| asking.garbage(format_args!("the answer is none: {error}"), node))?;
    if answers.len() != outgoing.len() {
        let (sent, answered) = (outgoing.len(), answers.len());
        let why = format_args!("{sent} items were sent and {answered} answered");
        return Err(asking.garbage(why, node));
    }
    let mut answers = answers.into_iter();
    let mut outcomes = Vec::with_capacity(items.len());
    for (item, sending) in items.iter().zip(&sendings) {
        let answer = sending.as_ref().and_then(|_| answers.next());
        outcomes.push(answer.map_or(ItemOutcome::Void, |answer| outcome(&item.key, answer)));
    }
    Ok((node, Outcome::Answered(outcomes)))
}

fn rendered(registry: &RegistryHandle, items: &[Item]) -> Vec<Option<Sending>> {
    let mut sendings = Vec::with_capacity(items.len());
    for portion in items.chunks(PORTION) {
        let live = registry.live(portion.iter().map(|item| &item.key));
        sendings.extend(portion.iter().zip(live).map(|(item, live)| {
            let live = live.map(|(view, age)| Live { view, age });
            item.render(live)
        }));
    }
    sendings
}

/// As Java sends it.
fn outgoing(sending: &Sending) -> OutgoingItem {
    match sending {
        Sending::Cancel(key) => OutgoingItem::Cancel { key: key.clone() },
        Sending::Register(live) => OutgoingItem::Register(Arc::new(live.view.clone())),
        Sending::Override(live) => OutgoingItem::StatusUpdate {
            key: live.view.key(),
            status: live.view.instance.overridden_status,
            last_dirty: live.view.instance.last_dirty,
        },
        Sending::ClearOverride(live) => OutgoingItem::DeleteStatusOverride {
            key: live.view.key(),
            status: Some(live.view.instance.status),
            // Java answers 500 without one, and takes no notice of one that is older than its own.
            last_dirty: live.view.instance.last_dirty.unwrap_or_default(),
        },
        Sending::Renew(live) => OutgoingItem::Heartbeat {
            key: live.view.key(),
            last_dirty: live.view.instance.last_dirty,
            status: live.view.instance.status,
            overridden: Some(live.view.instance.overridden_status)
                .filter(|status| *status != Status::Unknown),
        },
    }
}

fn outcome(key: &InstanceKey, answer: ReceivedAnswer) -> ItemOutcome {
    match answer.status {
        200..=299 => ItemOutcome::Ok,
        404 => ItemOutcome::Missing,
        409 => {
            let copy = answer.newer.and_then(|copy| copy.validate(key.app()).ok());
            match copy.filter(|copy| copy.key() == *key) {
                Some(copy) => ItemOutcome::Conflict(Arc::new(copy)),
                None => ItemOutcome::Failed(409),
            }
        }
        status => ItemOutcome::Failed(status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eureka_registry_core::{Action, Instance, LeaseTimes, LeaseView, Wall};
    use std::time::Duration;

    #[test]
    fn overrides_are_sent_as_set_and_not_as_shown() {
        let mut instance = Instance::new("a", "1", "host", "10.0.0.1");
        instance.status = Status::Down;
        instance.overridden_status = Status::OutOfService;
        instance.last_dirty = Some(5);
        let key = instance.key();
        let lease = LeaseTimes {
            terms: instance.lease,
            registered: Wall(0),
            renewed: Wall(0),
            evicted: Wall(0),
            service_up: Wall(0),
        };
        let live = |instance: &Instance| Live {
            view: LeaseView {
                instance: Arc::new(instance.clone()),
                action: Action::Added,
                last_updated: Wall(0),
                lease,
                coordinating: false,
            },
            age: Duration::ZERO,
        };
        let set = OutgoingItem::StatusUpdate {
            key: key.clone(),
            status: Status::OutOfService,
            last_dirty: Some(5),
        };
        assert_eq!(outgoing(&Sending::Override(live(&instance))), set);
        let renewed = |overridden| OutgoingItem::Heartbeat {
            key: key.clone(),
            last_dirty: Some(5),
            status: Status::Down,
            overridden,
        };
        let with = outgoing(&Sending::Renew(live(&instance)));
        assert_eq!(with, renewed(Some(Status::OutOfService)));
        instance.overridden_status = Status::Unknown;
        let without = outgoing(&Sending::Renew(live(&instance)));
        assert_eq!(without, renewed(None), "Java would remember `UNKNOWN`");
        let cleared = OutgoingItem::DeleteStatusOverride {
            key: key.clone(),
            status: Some(Status::Down),
            last_dirty: 5,
        };
        assert_eq!(outgoing(&Sending::ClearOverride(live(&instance))), cleared);
    }
}
