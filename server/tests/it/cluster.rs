//! Clusters of real nodes: what happens at one shows at the others.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

use rustix::process::Signal;

use crate::node::{Answer, Node, until};

/// Short intervals, so that nothing that is waited for takes long.
const QUICK: [&str; 4] = [
    "bootstrap.settle=0s",
    "bootstrap.retry-interval=100ms",
    "replication.digest-interval=1s",
    "bootstrap.wait-when-empty=15s",
];
const JSON: &str = "accept: application/json\r\n";

/// Ports that nobody uses now, below those that the system hands out itself.
pub(crate) fn free_ports<const N: usize>() -> [u16; N] {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = 12_000 + u16::try_from(std::process::id() % 400).expect("it is small") * 40;
    [(); N].map(|()| {
        loop {
            let port = start + NEXT.fetch_add(1, Ordering::Relaxed);
            if TcpListener::bind(("127.0.0.1", port)).is_ok() {
                return port;
            }
        }
    })
}

pub(crate) fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}/eureka")
}

/// A node at `port` with these peers and keys.
pub(crate) fn member(port: u16, peers: &[u16], set: &[&str]) -> Node {
    let listen = format!("127.0.0.1:{port}");
    let peers: Vec<_> = peers.iter().map(|port| url(*port)).collect();
    let mut arguments = vec!["--listen", &listen];
    for peer in &peers {
        arguments.extend(["--peer", peer]);
    }
    for pair in QUICK.iter().chain(set) {
        arguments.extend(["--set", pair]);
    }
    Node::serve(&arguments)
}

/// Nodes that all name each other, themselves included, and that all serve lists.
fn cluster<const N: usize>(set: &[&str]) -> [Node; N] {
    let ports = free_ports::<N>();
    let nodes = ports.map(|port| member(port, &ports, set));
    for node in &nodes {
        opens(node);
    }
    nodes
}

/// Waits until a node serves lists.
pub(crate) fn opens(node: &Node) {
    until("lists are served", || {
        let answer = node.ask("GET", "/health/ready?reads");
        if answer.status == 200 {
            Ok(())
        } else {
            Err(format!("{answer:?} and {}", node.json("/api/v1/peers")))
        }
    });
}

/// Waits until the instance at `path` shows all of `parts` on a node.
pub(crate) fn shows(node: &Node, path: &str, parts: &[&str]) {
    until("the instance shows it", || {
        let answer = node.send("GET", path, JSON, "");
        if answer.status == 200 && parts.iter().all(|part| answer.body.contains(part)) {
            Ok(())
        } else {
            Err(format!(
                "{answer:?}, not {parts:?}; {}",
                node.json("/api/v1/peers")
            ))
        }
    });
}

fn is_gone(node: &Node, path: &str) {
    until("the instance is gone", || match node.ask("GET", path) {
        Answer { status: 404, .. } => Ok(()),
        answer => Err(format!("{answer:?}")),
    });
}

#[test]
fn what_happens_at_one_node_shows_at_every_other() {
    let nodes = cluster::<3>(&[]);
    for (position, node) in nodes.iter().enumerate() {
        let others: Vec<_> = nodes
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != position)
            .map(|(_, node)| node)
            .collect();
        let id = format!("i-{position}");
        let path = format!("/eureka/apps/A/{id}");
        let every = |parts: &[&str]| others.iter().for_each(|other| shows(other, &path, parts));

        assert_eq!(node.register("A", &id).status, 204);
        every(&["\"status\":\"UP\""]);

        let renewed: Vec<_> = others
            .iter()
            .map(|other| other.metric("eureka_renewals_total"))
            .collect();
        assert_eq!(
            node.ask("PUT", &format!("{path}?status=UP&lastDirtyTimestamp=1000"))
                .status,
            200
        );
        for (other, before) in others.iter().zip(renewed) {
            until("the renewal came", || {
                match other.metric("eureka_renewals_total") {
                    now if now > before => Ok(()),
                    now => Err(format!("{now} renewals")),
                }
            });
        }

        assert_eq!(
            node.ask("PUT", &format!("{path}/status?value=OUT_OF_SERVICE"))
                .status,
            200
        );
        every(&[
            "\"status\":\"OUT_OF_SERVICE\"",
            "\"overriddenStatus\":\"OUT_OF_SERVICE\"",
        ]);
        assert_eq!(node.ask("DELETE", &format!("{path}/status?value=UP")).status, 200);
        every(&["\"status\":\"UP\"", "\"overriddenStatus\":\"UNKNOWN\""]);

        assert_eq!(
            node.ask("PUT", &format!("{path}/metadata?colour=green")).status,
            200
        );
        every(&["\"colour\":\"green\""]);

        assert_eq!(node.ask("DELETE", &path).status, 200);
        others.iter().for_each(|other| is_gone(other, &path));
    }
}

#[test]
fn a_node_that_comes_back_empty_serves_no_list_before_it_has_copied() {
    let ports = free_ports::<2>();
    let kept = member(ports[0], &ports, &[]);
    let lost = member(ports[1], &ports, &[]);
    opens(&kept);
    for id in ["i-1", "i-2", "i-3"] {
        assert_eq!(kept.register("A", id).status, 204);
        shows(&lost, &format!("/eureka/apps/A/{id}"), &[]);
    }
    drop(lost);
    // As long as the other does not answer there is nothing to copy.
    kept.signal(Signal::STOP);
    let back = member(ports[1], &ports, &[]);
    for _ in 0..10 {
        let list = back.send("GET", "/eureka/apps", JSON, "");
        assert_eq!(list.status, 403, "{list:?}");
    }
    let ready = back.ask("GET", "/health/ready");
    assert_eq!(ready.status, 200);
    assert!(
        ready.body.contains("\"reads\":\"held\"") && ready.body.contains("\"because\":"),
        "{ready:?}"
    );
    kept.signal(Signal::CONT);
    let list = until("lists are served again", || {
        let list = back.send("GET", "/eureka/apps", JSON, "");
        if list.status == 403 {
            Err(format!("{list:?}"))
        } else {
            Ok(list)
        }
    });
    assert_eq!(list.status, 200);
    for id in ["i-1", "i-2", "i-3"] {
        assert!(list.body.contains(id), "{id} is not in the first list: {list:?}");
    }
}

#[test]
fn what_was_registered_just_before_the_end_is_on_the_peer() {
    let [leaving, staying] = cluster::<2>(&["server.register=true", "server.hostname=n"]);
    let own = format!("/eureka/apps/EUREKA/n:eureka:{}", leaving.address.port());
    shows(&staying, &own, &[]);
    // The peer is slow: one batch is on its way to it, and what is registered now has to wait.
    staying.signal(Signal::STOP);
    assert_eq!(leaving.register("A", "first").status, 204);
    until("the first is on its way", || {
        let peers = leaving.json("/api/v1/peers");
        let (queue, lag) = (&peers["peers"][0]["queue"], &peers["peers"][0]["lagMs"]);
        if *queue == 0 && *lag != 0 {
            Ok(())
        } else {
            Err(peers.to_string())
        }
    });
    assert_eq!(leaving.register("A", "last").status, 204);
    leaving.signal(Signal::TERM);
    leaving.line("sending what waits for peers");
    staying.signal(Signal::CONT);
    let (status, log) = leaving.end_with_log();
    assert_eq!(status.code(), Some(0));
    assert!(
        !log.iter().any(|line| line.contains("stopped before")),
        "{log:#?}"
    );
    let last = staying.send("GET", "/eureka/apps/A/last", JSON, "");
    assert_eq!(last.status, 200, "{last:?}");
    assert_eq!(
        staying.ask("GET", &own).status,
        404,
        "its own instance has taken leave"
    );
}

#[test]
fn what_was_never_sent_is_repaired() {
    let ports = free_ports::<3>();
    // It names a node that is not there, so that it serves repair, and not the one that comes.
    let unaware = member(ports[0], &ports[2..], &["bootstrap.wait-when-empty=1s"]);
    opens(&unaware);
    assert_eq!(unaware.register("A", "early").status, 204);
    let late = member(ports[1], &ports[..1], &[]);
    opens(&late);
    let found = late.send("GET", "/eureka/apps/A/early", JSON, "");
    assert_eq!(found.status, 200, "copied at its start: {found:?}");
    assert_eq!(unaware.register("A", "unsent").status, 204);
    shows(&late, "/eureka/apps/A/unsent", &[]);
}
