//! What is served when: readiness, reads that are held, leases that ran out.

use crate::node::Node;

#[test]
fn without_peers_reads_are_open_at_once() {
    let node = Node::start(&[]);
    let ready = node.ask("GET", "/health/ready");
    assert_eq!(ready.status, 200);
    assert!(ready.body.contains("\"reads\":\"open\""), "{ready:?}");
    assert_eq!(node.ask("GET", "/health/ready?reads").status, 200);
    assert_eq!(node.ask("GET", "/health/live").status, 200);
    assert_eq!(node.ask("GET", "/eureka/apps").status, 200);
    assert_eq!(node.ask("POST", "/health/live").status, 405);
}

#[test]
fn while_reads_are_held_it_is_ready_and_says_so() {
    let node = Node::start(&["compat.preset=eureka-netflix"]);
    let ready = node.ask("GET", "/health/ready");
    assert_eq!(ready.status, 200);
    assert!(ready.body.contains("\"reads\":\"held\""), "{ready:?}");
    assert!(
        ready.body.contains("\"because\":\"the node started with nothing"),
        "{ready:?}"
    );
    assert_eq!(node.ask("GET", "/health/ready?reads").status, 503);
    assert_eq!(
        node.send("GET", "/eureka/v2/apps", "accept-encoding: gzip\r\n", "")
            .status,
        403
    );
    assert_eq!(node.register("A", "i").status, 204);
    assert_eq!(node.ask("PUT", "/eureka/v2/apps/A/i").status, 200);
    assert_eq!(node.ask("GET", "/eureka/v2/apps/A/i").status, 200);
    assert_eq!(node.metric("eureka_reads_held"), 1.0);
}

#[test]
fn a_hold_ends() {
    let node = Node::start(&["bootstrap.hold-alone=true", "bootstrap.wait-when-empty=1s"]);
    for _ in 0..100_000 {
        if node.ask("GET", "/health/ready?reads").status == 200 {
            assert_eq!(node.ask("GET", "/eureka/apps").status, 200);
            return;
        }
    }
    panic!("reads are held for ever");
}

#[test]
fn who_does_not_renew_is_evicted() {
    let node = Node::start(&[
        "preservation.enabled=false",
        "registry.eviction-interval=100ms",
        "log.level=info",
    ]);
    let body = crate::node::registration("A", "i").replace(
        "\"lastDirtyTimestamp\"",
        "\"leaseInfo\":{\"renewalIntervalInSecs\":1,\"durationInSecs\":1},\"lastDirtyTimestamp\"",
    );
    let answer = node.send(
        "POST",
        "/eureka/apps/A",
        "content-type: application/json\r\n",
        &body,
    );
    assert_eq!(answer.status, 204);
    node.line("evicted: its lease ran out app=\"A\" id=\"i\"");
    assert_eq!(node.ask("GET", "/eureka/apps/A/i").status, 404);
    assert_eq!(node.metric("eureka_evictions_total"), 1.0);
}
