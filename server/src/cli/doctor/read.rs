//! What answers say, taken apart.

use eureka_registry_core::LeaseView;
use eureka_registry_core::wire::{Format, read_applications, read_instance};
use eureka_replication::PeerAddress;
use serde::Deserialize;

use super::ask::Reply;
use super::observation::{Alarm, Identity, Link, List, Peer};

/// `/api/v1/node`, as far as it matters here.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Node {
    /// Random for each boot.
    pub(super) node_id: String,
    /// Its clock, Unix milliseconds.
    pub(super) time: i64,
    /// How long it has run, in milliseconds.
    #[serde(default)]
    pub(super) uptime_ms: Option<i64>,
    #[serde(default)]
    rules: Option<Rules>,
    #[serde(default)]
    config: serde_json::Map<String, serde_json::Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rules {
    lease_expiry: String,
}

impl Node {
    /// Whether it shows renewals one duration ahead, as Java does.
    pub(super) fn renewals_ahead(&self) -> bool {
        let told = self.rules.as_ref().map(|rules| rules.lease_expiry.as_str());
        let configured = || self.config.get("registry.lease-expiry")?.as_str();
        told.or_else(configured) == Some("doubled")
    }
}

/// `/api/v1/preservation`, as far as it matters here.
#[derive(Deserialize)]
struct Preservation {
    /// Whether nobody is evicted.
    active: bool,
}

/// `/api/v1/peers`, as far as it matters here.
#[derive(Deserialize)]
struct Peers {
    peers: Vec<PeerBody>,
    #[serde(default)]
    alarms: Vec<AlarmBody>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PeerBody {
    url: String,
    #[serde(default)]
    node_id: Option<String>,
    state: String,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    reaches_us: Option<bool>,
}

#[derive(Deserialize)]
struct AlarmBody {
    name: String,
    url: String,
    text: String,
}

/// `/api/v1/node`; `None` if it is something else.
pub(super) fn node(body: &[u8]) -> Option<Node> {
    serde_json::from_slice(body).ok()
}

/// `/api/v1/preservation`: whether nobody is evicted.
pub(super) fn preserving(body: &[u8]) -> Option<bool> {
    let preservation: Preservation = serde_json::from_slice(body).ok()?;
    Some(preservation.active)
}

/// `/api/v1/peers`: the peers, and what is wrong with them.
pub(super) fn peers(body: &[u8]) -> Option<(Vec<Peer>, Vec<Alarm>)> {
    let body: Peers = serde_json::from_slice(body).ok()?;
    let peers = body.peers.into_iter().map(|peer| Peer {
        address: plain(&peer.url),
        node: peer.node_id,
        link: Some(link(&peer.state, peer.error)),
        reaches_back: peer.reaches_us,
        available: None,
    });
    let alarms = body.alarms.into_iter().map(|alarm| Alarm {
        name: alarm.name,
        address: plain(&alarm.url),
        text: alarm.text,
    });
    Some((peers.collect(), alarms.collect()))
}

/// The list of everything.
pub(super) fn list(reply: Result<Reply, String>) -> List {
    let reply = match reply {
        Ok(reply) => reply,
        Err(error) => return List::Unreadable(error),
    };
    match reply.status {
        200 if reply.body.is_empty() => List::Unreadable("200 with an empty body".to_owned()),
        200 => match read_applications(Format::Json, &reply.body) {
            Ok(read) => List::Open(read.instances),
            Err(error) => List::Unreadable(error.to_string()),
        },
        403 => List::Held,
        status => List::Unreadable(format!("status {status}")),
    }
}

/// A single instance: `None` if the answer says nothing of it.
pub(super) fn single(reply: &Reply) -> Option<Option<LeaseView>> {
    match reply.status {
        200 => read_instance(Format::Json, &reply.body).ok().map(Some),
        404 => Some(None),
        _ => None,
    }
}

fn link(state: &str, error: Option<String>) -> Link {
    let text = error.unwrap_or_else(|| state.to_owned());
    match state {
        "up" => Link::Up,
        "own" => Link::Own,
        "misconfigured" => Link::Refused(text),
        "busy" | "unreachable" => Link::Down(text),
        _ => Link::Starting,
    }
}

/// Java's status page.
#[derive(Debug)]
pub(super) struct StatusPage {
    /// Who it is.
    pub(super) identity: Identity,
    /// Its peers.
    pub(super) peers: Vec<Peer>,
    /// When its own instance was made, which is when it was started; by its own clock.
    pub(super) started: Option<i64>,
}

/// Java's status page in XML.
pub(super) fn status_page(text: &str) -> Option<StatusPage> {
    let (_, own) = text.split_once("<instanceInfo>")?;
    let address = element(own, "ipAddr").unwrap_or_default();
    let port = own
        .split_once("<port ")
        .and_then(|(_, rest)| rest.split_once('>')?.1.split_once('<'))
        .map_or("", |(port, _)| port);
    let host = element(own, "hostName").unwrap_or_default();
    let identity = Identity::Java {
        id: element(own, "instanceId").unwrap_or_else(|| host.clone()),
        host,
        place: format!("{address}:{port}"),
    };
    let available = urls(text, "available-replicas");
    let mut peers: Vec<_> = urls(text, "registered-replicas")
        .into_iter()
        .map(|url| Peer {
            available: Some(available.contains(&url)),
            address: url,
            ..Peer::default()
        })
        .collect();
    peers.dedup_by(|a, b| a.address == b.address);
    Some(StatusPage {
        identity,
        peers,
        started: element(own, "lastUpdatedTimestamp").and_then(|time| time.parse().ok()),
    })
}

/// Joined by commas, with or without a blank and one at the end.
fn urls(text: &str, name: &str) -> Vec<String> {
    let joined = element(text, name).unwrap_or_default();
    joined
        .split(',')
        .map(str::trim)
        .filter(|url| !url.is_empty())
        .map(plain)
        .collect()
}

/// A peer's address in one spelling and without credentials.
pub(super) fn plain(url: &str) -> String {
    match PeerAddress::parse(url) {
        Ok(address) => address.id().0.to_string(),
        // Whatever it is, what stands before an @ is not shown.
        Err(_) => url.rsplit('@').next().unwrap_or_default().to_owned(),
    }
}

/// The text of the first element of this name without attributes.
fn element(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (inside, _) = rest.split_once(&format!("</{name}>"))?;
    let unescaped = inside
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&apos;", "'")
        .replace("&amp;", "&");
    Some(unescaped.trim().to_owned())
}

/// The page at `/` of Java's servers: whether leases do not expire. `None` if it does not say.
pub(super) fn dashboard_preserving(text: &str) -> Option<bool> {
    let (_, rest) = text.split_once("Lease expiration enabled")?;
    let (_, cell) = rest.split_once("<td>")?;
    let (value, _) = cell.split_once("</td>")?;
    match value.trim() {
        "true" => Some(false),
        "false" => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "<com.netflix.eureka.util.StatusInfo>
  <applicationStats>
    <registered-replicas>http://u:p@b:1/eureka/, http://c:1/eureka/v2/</registered-replicas>
    <available-replicas>http://c:1/eureka/v2/,</available-replicas>
    <unavailable-replicas>http://u:p@b:1/eureka/,</unavailable-replicas>
  </applicationStats>
  <instanceInfo>
    <instanceId>a:eureka-server:8761</instanceId>
    <hostName>a.example</hostName>
    <ipAddr>192.0.2.2</ipAddr>
    <port enabled=\"true\">8761</port>
    <lastUpdatedTimestamp>1795996662104</lastUpdatedTimestamp>
  </instanceInfo>
</com.netflix.eureka.util.StatusInfo>";

    #[test]
    fn a_status_page_names_the_server_and_its_peers_without_their_passwords() {
        let StatusPage {
            identity,
            peers,
            started,
        } = status_page(STATUS).unwrap();
        assert_eq!(started, Some(1_795_996_662_104));
        let expected = Identity::Java {
            id: "a:eureka-server:8761".to_owned(),
            host: "a.example".to_owned(),
            place: "192.0.2.2:8761".to_owned(),
        };
        assert_eq!(identity, expected);
        let peers: Vec<_> = peers
            .iter()
            .map(|peer| (peer.address.as_str(), peer.available))
            .collect();
        let expected = [
            ("http://b:1/eureka", Some(false)),
            ("http://c:1/eureka/v2", Some(true)),
        ];
        assert_eq!(peers, expected);
    }

    #[test]
    fn a_dashboard_says_whether_leases_expire() {
        let page = "<td>Lease expiration enabled</td>\n   <td>false</td>";
        assert_eq!(dashboard_preserving(page), Some(true));
        assert_eq!(dashboard_preserving(&page.replace("false", "true")), Some(false));
        assert_eq!(dashboard_preserving("<h1>Whitelabel</h1>"), None);
    }

    #[test]
    fn the_states_of_a_peer_are_ways() {
        assert_eq!(link("up", None), Link::Up);
        assert_eq!(link("busy", Some("503".to_owned())), Link::Down("503".to_owned()));
        assert_eq!(
            link("misconfigured", None),
            Link::Refused("misconfigured".to_owned())
        );
        assert_eq!(link("own", None), Link::Own);
        assert_eq!(link("starting", None), Link::Starting);
    }
}
