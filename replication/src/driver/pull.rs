//! Takes over everything a Java server holds.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use eureka_registry_core::wire::{self, Applications, Format};
use eureka_registry_core::{Action, Command, Instance, Origin, PeerId, RegistryHandle, Status};
use http::{Method, StatusCode};
use tokio::task::spawn_blocking;

use super::link::Errand;
use crate::http::{Asking, Failed};
use crate::message::{NodeId, Outcome, Pulled};

/// Longest list, unpacked: some one and a half million instances. A node of ours without peers of its own, which serves no
/// copies in portions, is copied like this, too, when it gets its first one.
const LONGEST: usize = 1536 << 20;

/// A region that nobody has. A Java server that is asked for regions lists its own and those; asked for none it lists all
/// that it knows, and their instances would become ours.
const NO_OTHER_REGION: &str = "none-but-your-own";

pub(super) async fn pull(errand: Errand) -> Result<(Option<NodeId>, Outcome), Failed> {
    let asking = Asking {
        method: Method::GET,
        path: format!(
            "{}/apps/?regions={NO_OTHER_REGION}",
            errand.link.transport.address().path
        ),
        body: Bytes::new(),
        compressed: false,
        within: errand.settings.copy_timeout,
        longest: LONGEST,
        anew: false,
    };
    let answer = errand.link.transport.ask(&asking).await?;
    let node = answer.node();
    if answer.status == StatusCode::FORBIDDEN {
        let held = Pulled {
            instances: 0,
            checked: false,
            held: true,
        };
        return Ok((node, Outcome::Pulled(held)));
    }
    let body = answer.into_success(&asking, errand.own)?;
    // Seconds of work, perhaps.
    let (registry, peer) = (errand.registry.clone(), errand.link.peer.clone());
    let taken = spawn_blocking(move || {
        let list = wire::read_applications(Format::Json, &body)?;
        Ok::<_, wire::DecodeError>(take_over(&registry, &peer, list))
    });
    match taken.await {
        Ok(Ok(pulled)) => Ok((node, Outcome::Pulled(pulled))),
        Ok(Err(error)) => Err(asking.garbage(format_args!("the answer is no list: {error}"), node)),
        Err(_) => Err(asking.garbage("taking over the list went wrong here: a bug of this node", node)),
    }
}

/// Age zero: what Java tells of a lease is no age. Until the registry is opened, it takes such copies for unconfirmed.
fn take_over(registry: &RegistryHandle, peer: &PeerId, list: Applications) -> Pulled {
    let checked = fits(&list);
    let mut instances = 0;
    for view in list.instances {
        if view.action == Action::Deleted || !is_valid(&view.instance) {
            continue;
        }
        let command = Command::Adopt {
            instance: Arc::clone(&view.instance),
            age: Duration::ZERO,
        };
        registry.apply(Origin::Peer(peer.clone()), command);
        instances += 1;
    }
    Pulled {
        instances,
        checked,
        held: false,
    }
}

/// What a registration would have to have.
fn is_valid(instance: &Instance) -> bool {
    !instance.app.is_empty()
        && !instance.id().is_empty()
        && !instance.host_name.is_empty()
        && !instance.ip_address.is_empty()
}

/// Whether the list is whole by its own hash. Instances that cannot be understood are in the hash, whatever their status:
/// one of them must not keep this node from ever having a copy.
fn fits(list: &Applications) -> bool {
    let Some(counts) = list.hash.as_deref().and_then(counts_of) else {
        return false;
    };
    let mut missing = 0;
    for (status, told) in Status::ALL.into_iter().zip(counts) {
        let is_one = |view: &&eureka_registry_core::LeaseView| view.instance.status == status;
        let Some(rest) = told.checked_sub(list.instances.iter().filter(is_one).count()) else {
            return false;
        };
        missing += rest;
    }
    missing == list.left_out
}

/// Reads a reconcile hash: how many instances have each status, in the order of [`Status::ALL`].
fn counts_of(hash: &str) -> Option<[usize; 5]> {
    let mut counts = [0; 5];
    let mut rest = hash;
    while !rest.is_empty() {
        let (slot, after) = Status::ALL
            .into_iter()
            .zip(&mut counts)
            .find_map(|(status, slot)| {
                let after = rest.strip_prefix(status.as_str())?;
                Some((slot, after.strip_prefix('_')?))
            })?;
        let (number, after) = after.split_once('_')?;
        *slot = number.parse().ok()?;
        rest = after;
    }
    Some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use eureka_registry_core::reconcile_hash;

    #[test]
    fn hashes_are_read_back() {
        for counts in [[0; 5], [1, 2, 3, 4, 5], [0, 0, 70, 0, 1]] {
            assert_eq!(counts_of(&reconcile_hash(counts)), Some(counts));
        }
        for hash in ["UP", "UP_", "UP_1", "UP_x_", "ASLEEP_1_", "UP_1__"] {
            assert_eq!(counts_of(hash), None, "{hash}");
        }
    }
}
