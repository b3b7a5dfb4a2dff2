//! Asks who a peer is and how it does.

use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use eureka_registry_core::Wall;
use eureka_registry_core::wire::Route;
use http::Method;
use http::header::DATE;
use serde::Deserialize;

use super::link::Errand;
use crate::http::{Answer, Asking, Failed, clipped};
use crate::message::{Failure, NodeId, Outcome, Probed, Rules};

/// Longest answers: facts about a node, or about all of its peers.
const LONGEST: usize = 4 << 20;

/// A rule's name is no longer than this, in characters: it is shown and logged.
const WORD: usize = 40;

/// What is read of `/api/v1/node`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeBody {
    node_id: String,
    #[serde(default)]
    time: Option<u64>,
    #[serde(default)]
    preserving: Option<bool>,
    #[serde(default)]
    rules: Option<RulesBody>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RulesBody {
    lease_expiry: String,
    eviction_interval_ms: u64,
    preservation: bool,
}

impl From<RulesBody> for Rules {
    fn from(body: RulesBody) -> Self {
        Self {
            lease_expiry: clipped(&body.lease_expiry, WORD).into(),
            eviction_interval: Duration::from_millis(body.eviction_interval_ms),
            preservation: body.preservation,
        }
    }
}

/// What is read of `/api/v1/peers`.
#[derive(Deserialize)]
struct PeersBody {
    peers: Vec<PeerBody>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PeerBody {
    #[serde(default)]
    node_id: Option<String>,
    #[serde(default)]
    state: String,
}

/// A peer that answers anything but what a node of ours would is Java's: also one that wants a login for paths it does not
/// know. What it then says to a batch is another matter.
pub(super) async fn probe(errand: Errand) -> Result<(Option<NodeId>, Outcome), Failed> {
    let now = || errand.registry.now().mono;
    let asking = Asking {
        anew: true,
        ..asking(&errand, &Route::Node)
    };
    let asked = now();
    let answer = errand.link.transport.ask(&asking).await?;
    let answered = now();
    // Its clock was read somewhere in between.
    let half = answered.since(asked) / 2;
    let failure = answer.failure(errand.own);
    if let Some(failure @ (Failure::Own | Failure::Busy | Failure::Unreachable)) = failure {
        return Err(answer.failed(&asking, failure));
    }
    let Some((id, body)) = read(&answer) else {
        let wall = date(&answer).map(|wall| later(wall, half));
        return Ok((answer.node(), Outcome::Probed(java(wall))));
    };
    if id == errand.own {
        return Err(answer.failed(&asking, Failure::Own));
    }
    let reaches_us = reaches_us(&errand).await;
    let since = now().since(answered);
    let probed = Probed {
        node: Some(id),
        wall: body.time.map(|time| later(Wall(time), half + since)),
        preserving: body.preserving,
        rules: body.rules.map(Rules::from),
        reaches_us,
    };
    Ok((Some(id), Outcome::Probed(probed)))
}

fn asking(errand: &Errand, route: &Route<'_>) -> Asking {
    Asking {
        method: Method::GET,
        path: route.to_string(),
        body: Bytes::new(),
        compressed: false,
        within: errand.settings.request_timeout,
        longest: LONGEST,
        anew: false,
    }
}

fn read(answer: &Answer) -> Option<(NodeId, NodeBody)> {
    if !answer.status.is_success() {
        return None;
    }
    let body: NodeBody = serde_json::from_slice(&answer.body).ok()?;
    Some((NodeId::parse(&body.node_id)?, body))
}

fn java(wall: Option<Wall>) -> Probed {
    Probed {
        node: None,
        wall,
        preserving: None,
        rules: None,
        reaches_us: None,
    }
}

/// What its `Date` shows: whole seconds, so half a second is missing on average.
fn date(answer: &Answer) -> Option<Wall> {
    let date = httpdate::parse_http_date(answer.headers.get(DATE)?.to_str().ok()?).ok()?;
    let millis = date.duration_since(UNIX_EPOCH).ok()?.as_millis();
    Some(Wall(u64::try_from(millis).ok()?.saturating_add(500)))
}

fn later(wall: Wall, by: Duration) -> Wall {
    let millis = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
    Wall(wall.0.saturating_add(millis))
}

/// Whether the peer says that it reaches this node. A peer that does not tell is no failure of the probe.
async fn reaches_us(errand: &Errand) -> Option<bool> {
    let asking = asking(errand, &Route::Peers);
    let answer = errand.link.transport.ask(&asking).await.ok()?;
    let body = answer.into_success(&asking, errand.own).ok()?;
    let body: PeersBody = serde_json::from_slice(&body).ok()?;
    let ours = |peer: &&PeerBody| peer.node_id.as_deref().and_then(NodeId::parse) == Some(errand.own);
    body.peers.iter().find(ours).map(|peer| peer.state == "up")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_of_a_peer_are_as_long_as_rules_are() {
        let rules = |word: &str| {
            let body = RulesBody {
                lease_expiry: word.into(),
                eviction_interval_ms: u64::MAX,
                preservation: true,
            };
            Rules::from(body).lease_expiry
        };
        assert_eq!(&*rules("doubled"), "doubled");
        assert_eq!(rules(&"x\n".repeat(1 << 20)).len(), WORD);
    }
}
