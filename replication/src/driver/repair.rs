//! Does a step of a repair with a node of ours.

use bytes::Bytes;
use eureka_registry_core::wire::{self, RepairKind, Route};
use eureka_registry_core::{Origin, Step};
use http::Method;
use tokio::task::spawn_blocking;

use super::link::Errand;
use crate::http::{Asking, Failed, HEAVY};
use crate::message::{NodeId, Outcome};

/// Longest answer: the lines of all buckets of a large registry.
const LONGEST: usize = 64 << 20;

pub(super) async fn repair(errand: Errand, step: Step) -> Result<(Option<NodeId>, Outcome), Failed> {
    // Before the registry looks: what is heard of a lease from now on is younger than the answer can know.
    let asked = errand.registry.now().mono;
    let request = errand.registry.repair_request(&step);
    let kind = kind(&step);
    let settings = &errand.settings;
    let asking = Asking {
        method: Method::POST,
        path: Route::Repair(kind).to_string(),
        body: Bytes::from(wire::write_repair_request(&request)),
        compressed: true,
        within: match kind {
            RepairKind::Compare => settings.request_timeout,
            RepairKind::List | RepairKind::Exchange | RepairKind::Copy => settings.copy_timeout,
        },
        longest: LONGEST,
        anew: false,
    };
    let answer = errand.link.transport.ask(&asking).await?;
    let node = answer.node();
    let body = answer.into_success(&asking, errand.own)?;
    let origin = Origin::Peer(errand.link.peer.clone());
    let registry = errand.registry.clone();
    let long = body.len() > HEAVY;
    let learn = move || {
        let answer = wire::read_repair_answer(kind, &body)?;
        Ok::<_, wire::DecodeError>(registry.learn(origin, asked, &step, answer))
    };
    // The threads that serve clients have no half a second for it.
    let learned = if long {
        let learning = spawn_blocking(learn).await;
        learning
            .map_err(|_| asking.garbage("taking over the answer went wrong here: a bug of this node", node))?
    } else {
        learn()
    };
    match learned {
        Ok(learned) => Ok((node, Outcome::Learned(learned))),
        Err(error) => Err(asking.garbage(format_args!("the answer is none: {error}"), node)),
    }
}

fn kind(step: &Step) -> RepairKind {
    match step {
        Step::Compare => RepairKind::Compare,
        Step::List { .. } => RepairKind::List,
        Step::Exchange { .. } => RepairKind::Exchange,
        Step::Copy { .. } => RepairKind::Copy,
    }
}
