//! What is refused first when there is too much to do.

use eureka_grpc_api::proto;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::call::{Calls, renewal};
use crate::node::{Connection, Node};

/// Requests of peers that never end: they are admitted whatever the load, and stay under way.
fn load(node: &Node, held: &mut Vec<Connection>, requests: usize) {
    while held.len() < requests {
        let mut connection = node.connect();
        connection.write(
            b"POST /eureka/peerreplication/batch/ HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{",
        );
        held.push(connection);
    }
    node.metric_becomes("eureka_requests_under_way", requests as f64);
}

/// The statuses of a full fetch, a delta, an application, a VIP, a registration, a renewal, an override and a cancel.
fn asked(node: &Node) -> [u16; 8] {
    [
        node.ask("GET", "/eureka/apps/").status,
        node.ask("GET", "/eureka/apps/delta").status,
        node.ask("GET", "/eureka/apps/A").status,
        node.ask("GET", "/eureka/vips/v").status,
        node.register("A", "i").status,
        node.ask("PUT", "/eureka/apps/A/i").status,
        node.ask("PUT", "/eureka/apps/A/i/status?value=UP").status,
        node.ask("DELETE", "/eureka/apps/A/other").status,
    ]
}

#[test]
fn full_fetches_go_first_and_renewals_never() {
    // A lag that no machine has: only requests under way count here.
    let node = Node::start(&["limits.requests=8", "limits.lag=1h"]);
    assert_eq!(node.register("A", "i").status, 204);
    let mut held = Vec::new();
    assert_eq!(asked(&node), [200, 200, 200, 200, 204, 200, 200, 404]);
    load(&node, &mut held, 4);
    assert_eq!(asked(&node), [503, 200, 200, 200, 204, 200, 200, 404]);
    load(&node, &mut held, 6);
    assert_eq!(asked(&node), [503, 503, 503, 503, 204, 200, 200, 404]);
    load(&node, &mut held, 8);
    assert_eq!(asked(&node), [503, 503, 503, 503, 503, 200, 200, 404]);
    assert_eq!(node.ask("GET", "/health/ready").status, 200);
    assert_eq!(node.ask("GET", "/").status, 503);
    let refused = node.ask("GET", "/eureka/apps");
    assert!(refused.head.contains("retry-after: 1"), "{refused:?}");
    assert_eq!(
        node.metric("eureka_requests_shed_total{class=\"registration\"}"),
        1.0
    );
    drop(held);
    node.metric_becomes("eureka_requests_under_way", 0.0);
    assert_eq!(asked(&node), [200, 200, 200, 200, 204, 200, 200, 404]);
}

/// Which calls are refused: an instance, a watch, a registration, a renewal, a stream of renewals.
async fn called(calls: &mut Calls) -> [bool; 5] {
    let instance = proto::GetInstanceRequest {
        app: "A".to_owned(),
        instance_id: "i".to_owned(),
    };
    let alive = proto::KeepAliveRequest {
        renewals: vec![renewal("A", "i")],
    };
    [
        refused(
            calls
                .unary::<_, proto::GetInstanceResponse>("GetInstance", instance)
                .await,
        ),
        refused(calls.watch().await),
        refused(calls.register("A", "i").await),
        refused(calls.renew("A", "i").await),
        refused(
            calls
                .streams::<_, proto::KeepAliveResponse>("KeepAlive", tokio_stream::iter([alive]))
                .await,
        ),
    ]
}

/// Whether it was refused, and as it should be.
fn refused<T>(outcome: Result<T, Status>) -> bool {
    let Err(status) = outcome else { return false };
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    let details = status.get_error_details();
    assert_eq!(details.error_info().expect("why").reason, "OVERLOADED");
    assert!(details.retry_info().expect("when").retry_delay.is_some());
    true
}

#[tokio::test]
async fn calls_are_refused_in_the_same_order() {
    let node = Node::start(&["limits.requests=8", "limits.lag=1h"]);
    let mut calls = Calls::to(&node).await;
    let mut held = Vec::new();
    calls.register("A", "i").await.expect("there is nothing to do");
    assert_eq!(called(&mut calls).await, [false; 5]);
    load(&node, &mut held, 4);
    assert_eq!(called(&mut calls).await, [false; 5]);
    load(&node, &mut held, 6);
    assert_eq!(called(&mut calls).await, [true, true, false, false, false]);
    load(&node, &mut held, 8);
    assert_eq!(called(&mut calls).await, [true, true, true, false, false]);
    assert_eq!(node.metric("eureka_requests_shed_total{class=\"watch\"}"), 2.0);
    drop(held);
    node.metric_becomes("eureka_requests_under_way", 0.0);
    assert_eq!(called(&mut calls).await, [false; 5]);
}
