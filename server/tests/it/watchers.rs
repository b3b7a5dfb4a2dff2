//! Requests that stay: they live as long as both sides want, cost nothing while nothing happens, and end when the node does.

use std::io::{BufRead as _, ErrorKind, Read as _};
use std::time::Duration;

use eureka_grpc_api::proto;
use eureka_grpc_api::proto::watch_response::Event;
use rustix::process::Signal;
use tonic::{Code, Streaming};
use tonic_types::StatusExt as _;

use crate::call::{Calls, Reads, renewal, soon};
use crate::node::{BOUND, Connection, Node, request, until};

/// Every time-out that ends what stands still, far shorter than the quiet below.
const IMPATIENT: [&str; 4] = [
    "limits.header-timeout=200ms",
    "limits.idle-timeout=200ms",
    "limits.body-timeout=200ms",
    "limits.write-timeout=200ms",
];
const QUIET: Duration = Duration::from_millis(1_500);

/// A stream of events, after its first lines: up to the end of what is registered.
fn events(node: &Node) -> Connection {
    let mut connection = node.connect();
    connection.write(&request(
        "GET",
        "/api/v1/changes",
        "accept: text/event-stream\r\n",
        "",
    ));
    line(&mut connection, "event: synced");
    connection
}

/// Reads up to a line that contains this.
fn line(connection: &mut Connection, text: &str) {
    let mut seen = String::new();
    while !seen.lines().last().is_some_and(|line| line.contains(text)) {
        let read = connection.0.read_line(&mut seen).expect("a line comes in time");
        assert_ne!(read, 0, "the stream ended after {seen}");
    }
}

/// Nothing comes for a while, the end of the stream neither.
fn quiet(connection: &mut Connection) {
    // The rest of what was told.
    let stream = connection.0.get_mut();
    stream.set_read_timeout(Some(QUIET)).expect("not zero");
    loop {
        match connection.0.read(&mut [0; 4096]) {
            Ok(0) => panic!("the stream ended"),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
            Err(error) => panic!("the stream was cut: {error}"),
        }
    }
    connection
        .0
        .get_mut()
        .set_read_timeout(Some(BOUND))
        .expect("not zero");
}

/// The snapshot of a watch, to its end.
async fn snapshot(watch: &mut Streaming<proto::WatchResponse>) {
    loop {
        let message = soon("the snapshot", watch.message())
            .await
            .expect("it goes on")
            .expect("no end");
        if let Some(Event::SnapshotEnd(_)) = message.event {
            return;
        }
    }
}

async fn change(watch: &mut Streaming<proto::WatchResponse>) -> proto::Change {
    loop {
        let message = soon("a change", watch.message())
            .await
            .expect("it goes on")
            .expect("no end");
        if let Some(Event::Change(change)) = message.event {
            return change;
        }
    }
}

#[test]
fn a_quiet_stream_of_events_lives() {
    let node = Node::start(&IMPATIENT);
    let mut feed = events(&node);
    quiet(&mut feed);
    assert_eq!(node.register("A", "late").status, 204);
    line(&mut feed, "late");
    assert_eq!(node.metric("eureka_requests_that_stay"), 1.0);
    assert_eq!(node.metric("eureka_requests_under_way"), 0.0);
}

#[test]
fn a_long_poll_lives() {
    let node = Node::start(&IMPATIENT);
    let cursor = node.json("/api/v1/changes")["cursor"]
        .as_str()
        .expect("a cursor")
        .to_owned();
    let mut poll = node.connect();
    poll.write(&request(
        "GET",
        &format!("/api/v1/changes?since={cursor}&wait=30s"),
        "",
        "",
    ));
    node.metric_becomes("eureka_requests_that_stay", 1.0);
    quiet(&mut poll);
    assert_eq!(node.register("A", "late").status, 204);
    let answer = poll.answer();
    assert!(answer.status == 200 && answer.body.contains("late"), "{answer:?}");
    node.metric_becomes("eureka_requests_that_stay", 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn quiet_calls_live() {
    let node = Node::start(&IMPATIENT);
    let mut calls = Calls::to(&node).await;
    let mut watch = calls.watch().await.expect("it starts");
    snapshot(&mut watch).await;
    let (renewals, received) = tokio::sync::mpsc::channel(1);
    let received = tokio_stream::wrappers::ReceiverStream::new(received);
    let mut alive: Streaming<proto::KeepAliveResponse> =
        calls.streams("KeepAlive", received).await.expect("it starts");
    tokio::time::timeout(QUIET, watch.message())
        .await
        .expect_err("nothing is told");
    calls
        .register("A", "late")
        .await
        .expect("the connection is there");
    assert_eq!(
        change(&mut watch).await.instance.expect("one").instance_id,
        "late"
    );
    let message = proto::KeepAliveRequest {
        renewals: vec![renewal("A", "late")],
    };
    renewals.send(message).await.expect("the stream is there");
    let answer = soon("an answer", alive.message())
        .await
        .expect("it goes on")
        .expect("no end");
    assert_eq!(answer.results.len(), 1);
    node.metric_becomes("eureka_requests_that_stay", 2.0);
    drop((watch, alive, renewals));
    node.metric_becomes("eureka_requests_that_stay", 0.0);
    assert_eq!(
        node.metric("eureka_connections_closed_total{reason=\"unread\"}"),
        0.0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_is_not_read_is_cut() {
    let node = Node::start(&["limits.write-timeout=300ms"]);
    let mut calls = Calls::at(node.grpc.expect("it serves gRPC"), Reads::Nothing).await;
    let mut watch = calls.watch().await.expect("it starts");
    let end = soon("the node ends the connection", watch.message()).await;
    end.expect_err("it is cut");
    assert_eq!(
        node.metric("eureka_connections_closed_total{reason=\"unread\"}"),
        1.0
    );
    node.metric_becomes("eureka_requests_that_stay", 0.0);
}

#[test]
fn a_stream_of_events_that_is_not_read_is_cut() {
    let node = Node::start(&["limits.write-timeout=300ms"]);
    let mut feed = events(&node);
    // More than the kernel keeps for a reader that does not come.
    let metadata = format!(
        "\"metadata\":{{\"long\":\"{}\"}},\"vipAddress\"",
        "x".repeat(60_000)
    );
    until("it is cut", || {
        for number in 0..20 {
            let body = crate::node::registration("A", &format!("i-{number}"))
                .replace("\"vipAddress\"", &metadata)
                .replace(
                    "\"1000\"",
                    &format!("\"{}\"", node.metric("eureka_registry_version") + 1_000.0),
                );
            let answer = node.send(
                "POST",
                "/eureka/apps/A",
                "content-type: application/json\r\n",
                &body,
            );
            assert_eq!(answer.status, 204, "{answer:?}");
        }
        let cut = node.metric("eureka_connections_closed_total{reason=\"unread\"}");
        if cut == 1.0 {
            Ok(())
        } else {
            Err(format!("{cut} were cut"))
        }
    });
    feed.end();
    node.metric_becomes("eureka_requests_that_stay", 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_only_so_many() {
    let node = Node::start(&["limits.watchers=2"]);
    let mut feed = events(&node);
    let mut calls = Calls::to(&node).await;
    let mut watch = calls.watch().await.expect("there is room");
    snapshot(&mut watch).await;
    let refused = calls.watch().await.expect_err("there is none");
    assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");
    let details = refused.get_error_details();
    assert_eq!(details.error_info().expect("why").reason, "OVERLOADED");
    assert!(details.retry_info().expect("when").retry_delay.is_some());
    let (keep, renewals) = tokio::sync::mpsc::channel::<proto::KeepAliveRequest>(1);
    let renewals = tokio_stream::wrappers::ReceiverStream::new(renewals);
    let alive = calls
        .streams::<_, proto::KeepAliveResponse>("KeepAlive", renewals)
        .await
        .expect("readers keep no service from renewing");
    node.metric_becomes("eureka_requests_that_stay", 3.0);
    drop((keep, alive));
    node.metric_becomes("eureka_requests_that_stay", 2.0);
    let answer = node.send("GET", "/api/v1/changes", "accept: text/event-stream\r\n", "");
    assert_eq!(answer.status, 503);
    assert!(
        answer.head.contains("retry-after: ") && answer.body.contains("limits.watchers"),
        "{answer:?}"
    );
    assert_eq!(node.metric("eureka_watchers_refused_total"), 2.0);
    // Everything else goes on.
    assert_eq!(node.register("A", "i").status, 204);
    line(&mut feed, "\"i\"");
    drop(watch);
    node.metric_becomes("eureka_requests_that_stay", 1.0);
    calls.watch().await.expect("there is room again");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_of_them_end_when_the_node_stops() {
    let node = Node::start(&["server.drain-timeout=15s"]);
    let mut feed = events(&node);
    let cursor = node.json("/api/v1/changes")["cursor"]
        .as_str()
        .expect("a cursor")
        .to_owned();
    let mut poll = node.connect();
    poll.write(&request(
        "GET",
        &format!("/api/v1/changes?since={cursor}&wait=60s"),
        "",
        "",
    ));
    let mut calls = Calls::to(&node).await;
    let mut watch = calls.watch().await.expect("it starts");
    snapshot(&mut watch).await;
    let (_keep, renewals) = tokio::sync::mpsc::channel::<proto::KeepAliveRequest>(1);
    let renewals = tokio_stream::wrappers::ReceiverStream::new(renewals);
    let mut alive: Streaming<proto::KeepAliveResponse> =
        calls.streams("KeepAlive", renewals).await.expect("it starts");
    node.metric_becomes("eureka_requests_that_stay", 4.0);
    node.signal(Signal::TERM);
    for end in [
        soon("the watch ends", watch.message())
            .await
            .expect_err("the node stops"),
        soon("the stream of renewals ends", alive.message())
            .await
            .expect_err("the node stops"),
    ] {
        assert_eq!(end.code(), Code::Unavailable, "{end:?}");
        let why = end.get_details_error_info().expect("it says why");
        assert_eq!(why.reason, "STOPPING");
    }
    assert_eq!(poll.answer().status, 200);
    feed.end();
    drop((watch, alive, calls));
    let (status, log) = tokio::task::spawn_blocking(move || node.end_with_log())
        .await
        .expect("no panic");
    assert_eq!(status.code(), Some(0));
    assert!(
        log.iter().any(|line| line.ends_with("INFO stopped")),
        "nobody was cut: {log:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_streams_keep_for_long_messages_is_bounded() {
    // Room for two messages of 250,000 bytes: each is kept twice.
    let node = Node::start(&["limits.body=1MiB", "limits.batch=1MiB", "limits.bodies=1MiB"]);
    let long = proto::KeepAliveRequest {
        renewals: (0..1_000).map(|n| renewal("A", &format!("{n:0>240}"))).collect(),
    };
    let short = proto::KeepAliveRequest {
        renewals: vec![renewal("A", "i")],
    };
    let mut calls = Calls::to(&node).await;
    let mut kept = Vec::new();
    for (stream, (message, fits)) in [(&long, true), (&long, true), (&long, false), (&short, true)]
        .into_iter()
        .enumerate()
    {
        let (renewals, messages) = tokio::sync::mpsc::channel(1);
        renewals.send(message.clone()).await.expect("there is room");
        let messages = tokio_stream::wrappers::ReceiverStream::new(messages);
        let mut alive: Streaming<proto::KeepAliveResponse> =
            calls.streams("KeepAlive", messages).await.expect("it starts");
        match soon("an answer", alive.message()).await {
            Ok(answer) => assert!(fits && answer.is_some(), "{stream}"),
            Err(status) => assert!(
                !fits && status.code() == Code::Unavailable,
                "{stream}: {status:?}"
            ),
        }
        kept.push((renewals, alive));
    }
    assert_eq!(node.metric("eureka_streams_refused_total"), 1.0);
    let bytes = node.metric("eureka_stream_bytes");
    assert!((900_000.0..1_048_576.0).contains(&bytes), "{bytes}");
    drop(kept);
    node.metric_becomes("eureka_stream_bytes", 0.0);
}
