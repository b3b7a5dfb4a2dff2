//! Clients whose servers are named by DNS.

use std::time::Duration;

use eureka_client::{Builder, Client, LookupStats, ServerSource};
use eureka_registry_core::{Instance, InstanceKey, LeaseTerms, Status};
use tokio::runtime::Handle;

use crate::dns::Names;
use crate::node::{Node, until, within};

const FAST: Duration = Duration::from_millis(20);
const HOUR: Duration = Duration::from_secs(3_600);

fn orders() -> InstanceKey {
    InstanceKey::new("ORDERS", "orders-1")
}

/// A provider that looks for its servers by Eureka's scheme.
fn provider(names: &Names, interval: Duration) -> Builder {
    let mut instance = Instance::new("orders", "orders-1", "host-1", "10.0.0.1");
    instance.lease = LeaseTerms {
        renewal_interval_secs: 1,
        duration_secs: 90,
    };
    let source = ServerSource::Txt {
        region: "north".into(),
        domain: "example.com".into(),
        port: 8761,
        path: "/eureka/".into(),
        secure: false,
    };
    let builder = Client::builder().resolver(names.resolver()).source(source);
    builder.source_interval(interval).register(instance)
}

/// What DNS says if these are the servers.
fn zone(nodes: &[&Node]) -> String {
    let hosts: Vec<_> = nodes.iter().map(|node| node.address().to_string()).collect();
    let hosts = hosts.join("+");
    format!("txt.north.example.com TXT z.example.com\ntxt.z.example.com TXT {hosts}")
}

async fn lookups(what: &str, client: &Client, reached: impl Fn(LookupStats) -> bool) {
    until(what, || reached(client.facts().lookups)).await;
}

#[tokio::test]
async fn servers_come_from_dns_and_others_are_used_when_it_names_others() {
    let (first, second) = (Node::start().await, Node::start().await);
    let names = Names::start(&zone(&[&first])).await;
    let client = provider(&names, FAST).start().expect("a source will do");
    first.until_status(&orders(), Some(Status::Up)).await;
    lookups("another look", &client, |stats| stats.lookups > 2).await;
    let lookups = client.facts().lookups;
    assert_eq!((lookups.failed, lookups.changes, lookups.servers), (0, 1, 1));

    names.set(&zone(&[&second]));
    second.until_status(&orders(), Some(Status::Up)).await;
    assert_eq!(client.facts().lookups.changes, 2);
    let so_far = first.count("");
    second.until_count("PUT", 3).await;
    assert_eq!(first.count(""), so_far, "it is not named any more");
    assert!(client.shutdown().await);
}

#[tokio::test]
async fn while_dns_is_dead_the_servers_stay() {
    let node = Node::start().await;
    let names = Names::start(&zone(&[&node])).await;
    let client = provider(&names, FAST)
        .server("http://127.0.0.1:1/eureka/")
        .start()
        .expect("all is said");
    node.until_status(&orders(), Some(Status::Up)).await;
    for dead in ["txt.north.example.com SERVFAIL", ""] {
        names.set(dead);
        let before = client.facts().lookups.failed;
        lookups("failures", &client, |stats| stats.failed > before + 2).await;
        let renewals = node.count("PUT");
        node.until_count("PUT", renewals + 2).await;
        let lookups = client.facts().lookups;
        assert_eq!(
            (lookups.changes, lookups.servers),
            (1, 2),
            "the one that is named by its URL, too"
        );
    }
    drop(client);
    node.until_status(&orders(), None).await;
}

#[tokio::test]
async fn a_client_starts_without_dns_and_registers_once_it_answers() {
    let node = Node::start().await;
    let names = Names::start("txt.north.example.com SERVFAIL").await;
    let client = provider(&names, HOUR).start().expect("a source will do");
    lookups("a failure", &client, |stats| stats.failed > 0).await;
    assert_eq!(client.facts().lookups.servers, 0);
    assert_eq!(node.count(""), 0);
    names.set(&zone(&[&node]));
    node.until_status(&orders(), Some(Status::Up)).await;
    assert!(client.shutdown().await);
}

#[tokio::test]
async fn dns_is_asked_soon_when_a_server_fails() {
    let (mut first, second) = (Node::start().await, Node::start().await);
    let names = Names::start(&zone(&[&first])).await;
    let client = provider(&names, HOUR).start().expect("a source will do");
    first.until_status(&orders(), Some(Status::Up)).await;
    names.set(&zone(&[&second]));
    first.stop().await;
    second.until_status(&orders(), Some(Status::Up)).await;
    drop(client);
}

#[tokio::test]
async fn looking_ends_with_the_client() {
    let names = Names::start("").await;
    let alive = || Handle::current().metrics().num_alive_tasks();
    let before = alive();
    let client = provider(&names, FAST).start().expect("a source will do");
    lookups("a few looks", &client, |stats| stats.lookups > 2).await;
    assert!(alive() > before);
    client.shutdown().await;
    let ended = async {
        while alive() > before {
            tokio::task::yield_now().await;
        }
    };
    within("the end of its tasks", ended).await;
}
