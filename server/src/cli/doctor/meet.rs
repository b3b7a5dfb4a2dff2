//! The first questions to a server: what it is, whom it knows, what time it has.

use std::collections::BTreeMap;

use eureka_replication::PeerAddress;

use super::ask::{Asker, Reply};
use super::observation::{Alarm, Answers, Identity, Kind, List, Peer};
use super::read;

/// How often an address is asked who it is, so that a load balancer shows more than one of its servers.
const ASKED: usize = 4;
const JSON: &str = "application/json";
const XML: &str = "application/xml";

/// A server that answers.
#[derive(Debug)]
pub(super) struct Met {
    /// Where its API was found.
    pub(super) address: PeerAddress,
    /// What it said so far.
    pub(super) answers: Answers,
}

/// Who answers at an address.
#[derive(Debug)]
pub(super) struct Who {
    /// Each time on a connection of its own.
    pub(super) identities: Vec<Identity>,
    kind: Kind,
    clock: Bounds,
    peers: Option<Vec<Peer>>,
    /// By its own clock.
    started: Option<i64>,
    renewals_ahead: bool,
    path: String,
}

/// Asks a server everything but its instances.
pub(super) async fn meet(asker: Asker, mut address: PeerAddress) -> Result<Met, String> {
    let who = identify(asker, &address).await?;
    address.path.clone_from(&who.path);
    let (peers, alarms) = match who.kind {
        Kind::Ours => peers_of_ours(asker, &address).await,
        Kind::Java => (who.peers, Vec::new()),
    };
    let clock_offset = who.clock.offset();
    let answers = Answers {
        kind: who.kind,
        clock_offset,
        started: who.started.map(|started| started - clock_offset),
        renewals_ahead: who.renewals_ahead,
        identities: who.identities,
        list: List::Unreadable("it was not asked".to_owned()),
        peers,
        alarms,
        preserving: preserving(asker, &address, who.kind).await,
        looks: BTreeMap::new(),
        by_id: None,
    };
    Ok(Met { address, answers })
}

/// Asks who answers at an address, more than once.
pub(super) async fn identify(asker: Asker, address: &PeerAddress) -> Result<Who, String> {
    let mut who = Who {
        identities: Vec::new(),
        kind: Kind::Java,
        clock: Bounds::default(),
        peers: None,
        started: None,
        renewals_ahead: true,
        path: address.path.clone(),
    };
    for attempt in 0..ASKED {
        // A balancer takes turns by requests: one that needs two questions each time would show the same server always.
        let java = who.kind == Kind::Java && !who.identities.is_empty();
        if java && ask_status_page(asker, address, attempt, &mut who).await? {
            continue;
        }
        if ask_node(asker, address, attempt, &mut who).await? || java {
            continue;
        }
        if ask_status_page(asker, address, attempt, &mut who).await? {
            continue;
        }
        if who.identities.is_empty() {
            must_have_lists(asker, address).await?;
            break;
        }
        who.identities.push(Identity::Unnamed);
    }
    Ok(who)
}

/// `/api/v1/node` names a node of ours. `false` if the answer is none of ours.
async fn ask_node(
    asker: Asker,
    address: &PeerAddress,
    attempt: usize,
    who: &mut Who,
) -> Result<bool, String> {
    let target = format!("{}/api/v1/node", root(address));
    let reply = asker.get(address, &target, JSON, attempt).await?;
    who.clock.narrow_by_date(&reply);
    let Some(node) = (reply.status == 200).then(|| read::node(&reply.body)).flatten() else {
        return Ok(false);
    };
    who.clock.narrow(node.time, node.time, &reply);
    who.kind = Kind::Ours;
    who.started = node.uptime_ms.map(|uptime| node.time - uptime);
    who.renewals_ahead = node.renewals_ahead();
    who.identities.push(Identity::Node(node.node_id));
    Ok(true)
}

/// Java's status page names the server and its peers. `false` if there is none.
async fn ask_status_page(
    asker: Asker,
    address: &PeerAddress,
    attempt: usize,
    who: &mut Who,
) -> Result<bool, String> {
    // Netflix' own server has its API one segment deeper than Spring's.
    let deeper = format!("{}/v2", address.path);
    for path in [address.path.as_str(), deeper.as_str()] {
        let reply = asker
            .get(address, &format!("{path}/status"), XML, attempt)
            .await?;
        who.clock.narrow_by_date(&reply);
        if matches!(reply.status, 401 | 403) {
            return Err(format!("it refuses to answer: {}", reply.status));
        }
        let text = String::from_utf8_lossy(&reply.body);
        if let Some(page) = (reply.status == 200).then(|| read::status_page(&text)).flatten() {
            path.clone_into(&mut who.path);
            who.identities.push(page.identity);
            who.peers = Some(page.peers);
            who.started = page.started;
            return Ok(true);
        }
    }
    Ok(false)
}

/// A proxy may show the lists only; something else than Eureka has none.
async fn must_have_lists(asker: Asker, address: &PeerAddress) -> Result<(), String> {
    let target = format!("{}/apps", address.path);
    let reply = asker.get(address, &target, JSON, 0).await?;
    match reply.status {
        200 | 403 => Ok(()),
        status => Err(format!("it has no Eureka API there: {target} is {status}")),
    }
}

async fn peers_of_ours(asker: Asker, address: &PeerAddress) -> (Option<Vec<Peer>>, Vec<Alarm>) {
    let target = format!("{}/api/v1/peers", root(address));
    match asker.get(address, &target, JSON, 0).await {
        Ok(reply) if reply.status == 200 => match read::peers(&reply.body) {
            Some((peers, alarms)) => (Some(peers), alarms),
            None => (None, Vec::new()),
        },
        // Served only where peers are configured.
        Ok(reply) if reply.status == 404 => (Some(Vec::new()), Vec::new()),
        Ok(_) | Err(_) => (None, Vec::new()),
    }
}

async fn preserving(asker: Asker, address: &PeerAddress, kind: Kind) -> Option<bool> {
    let root = root(address);
    match kind {
        Kind::Ours => {
            let target = format!("{root}/api/v1/preservation");
            let reply = asker.get(address, &target, JSON, 0).await.ok()?;
            read::preserving(&reply.body)
        }
        Kind::Java => {
            let reply = asker
                .get(address, &format!("{root}/"), "text/html", 0)
                .await
                .ok()?;
            read::dashboard_preserving(&String::from_utf8_lossy(&reply.body))
        }
    }
}

/// The path under which everything but Eureka's API is.
fn root(address: &PeerAddress) -> &str {
    let path = address.path.strip_suffix("/v2").unwrap_or(&address.path);
    path.strip_suffix("/eureka").unwrap_or(path)
}

/// Between which bounds a server's clock lies against ours, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    low: i64,
    high: i64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            low: i64::MIN,
            high: i64::MAX,
        }
    }
}

impl Bounds {
    /// `Date` has whole seconds, and Tomcat keeps one for up to a second more.
    fn narrow_by_date(&mut self, reply: &Reply) {
        if let Some(date) = reply.date {
            self.narrow(date, date + 1999, reply);
        }
    }

    /// Its clock was between these two when it answered. What fits nothing seen before is another server's behind the
    /// same address, and left out.
    fn narrow(&mut self, earliest: i64, latest: i64, reply: &Reply) {
        let (low, high) = (earliest - reply.received, latest - reply.sent);
        if low <= self.high && high >= self.low {
            self.low = self.low.max(low);
            self.high = self.high.min(high);
        }
    }

    /// The smallest difference that fits: none, where that is possible.
    fn offset(self) -> i64 {
        0.clamp(self.low, self.high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(date: i64, sent: i64, received: i64) -> Reply {
        Reply {
            status: 200,
            sent,
            received,
            date: Some(date),
            body: Vec::new(),
        }
    }

    #[test]
    fn a_clock_that_may_agree_agrees() {
        let mut bounds = Bounds::default();
        bounds.narrow_by_date(&reply(5_000, 5_900, 5_950));
        assert_eq!(bounds.offset(), 0);
        assert_eq!(Bounds::default().offset(), 0);
    }

    #[test]
    fn a_clock_that_cannot_agree_differs_by_no_more_than_is_certain() {
        let mut bounds = Bounds::default();
        bounds.narrow_by_date(&reply(65_000, 5_000, 5_100));
        assert_eq!(bounds.offset(), 59_900);
        bounds.narrow(65_500, 65_500, &reply(0, 5_400, 5_410));
        assert_eq!(bounds.offset(), 60_090);
    }
}
