//! `Watch`: snapshots, changes, cursors, filters, and what ends a stream.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use eureka_grpc_api::Config;
use eureka_grpc_api::proto::watch_response::Event;
use eureka_grpc_api::proto::{Action, Cause, SnapshotReason, WatchRequest};
use eureka_registry_core::{Instance, Status};
use prost::Message as _;
use tokio::time::{Instant, advance, timeout};
use tonic::{Code, Request};
use tonic_types::StatusExt as _;

pub(crate) mod node;

mod crowd;
mod histories;
mod reader;

use node::Node;
use reader::Reader;

const HEARTBEAT: Duration = Duration::from_secs(15);

/// With so many changes to go back to.
fn remembering(changes: usize) -> Node {
    let core = eureka_registry_core::Config {
        change_log_limit: changes,
        ..eureka_registry_core::Config::default()
    };
    Node::with(core, Config::default())
}

/// An instance that says so many bytes.
fn large(app: &str, id: usize, bytes: usize) -> Instance {
    let mut large = Instance::new(app, &id.to_string(), "host", "10.0.0.1");
    large.metadata.insert("text", &"x".repeat(bytes));
    large
}

#[tokio::test(start_paused = true)]
async fn what_is_there_comes_first_and_then_what_changes() {
    let node = Node::new();
    node.register("B", "1");
    node.register("A", "2");
    let mut reader = Reader::start(&node, "", "").await.unwrap();
    let Event::SnapshotBegin(begin) = reader.next().await.unwrap() else {
        panic!()
    };
    assert_eq!(begin.reason(), SnapshotReason::Start);
    let Event::SnapshotPage(page) = reader.next().await.unwrap() else {
        panic!()
    };
    let names: Vec<_> = page.instances.iter().map(|instance| &*instance.app).collect();
    assert_eq!(names, ["A", "B"]);
    assert!(
        page.instances
            .iter()
            .all(|instance| instance.lease_times.is_none())
    );
    let Event::SnapshotEnd(end) = reader.next().await.unwrap() else {
        panic!()
    };
    assert_eq!(end.instances, 2);
    assert_eq!(reader.cursor, node.registry.cursor(2).to_string());

    node.set_status("A", "2", Status::OutOfService);
    let Event::Change(change) = reader.next().await.unwrap() else {
        panic!()
    };
    assert_eq!(change.action(), Action::Modified);
    assert_eq!(change.cause(), Cause::Overridden);
    assert_eq!(change.instance.unwrap().instance_id, "2");
    node.cancel("B", "1");
    let Event::Change(change) = reader.next().await.unwrap() else {
        panic!()
    };
    assert_eq!(change.action(), Action::Deleted);
    assert_eq!(reader.cursor, node.registry.cursor(4).to_string());
    assert_eq!(reader.view, reader.expected(&node));
}

#[tokio::test(start_paused = true)]
async fn an_empty_registry_is_a_snapshot_too() {
    let node = Node::new();
    let mut reader = Reader::start(&node, "", "").await.unwrap();
    assert!(matches!(reader.next().await.unwrap(), Event::SnapshotBegin(_)));
    let Event::SnapshotEnd(end) = reader.next().await.unwrap() else {
        panic!()
    };
    assert_eq!(end.instances, 0);
    assert_eq!(reader.cursor, node.registry.cursor(0).to_string());
}

#[tokio::test(start_paused = true)]
async fn a_change_during_the_snapshot_is_told_after_it() {
    let node = Node::new();
    (0..3).for_each(|id| node.register_with(large("A", id, 64 << 10)));
    let mut reader = Reader::start(&node, "", "").await.unwrap();
    // The beginning and one page.
    reader.take(2).await;
    node.cancel("A", "2");
    node.cancel("A", "0");
    // The other pages and the end.
    reader.take(3).await;
    assert_eq!(reader.view.len(), 3, "the snapshot is of one moment");
    assert_eq!(reader.version(), 3);
    reader.drain().await;
    assert_eq!(reader.changes, 2);
    assert_eq!(reader.view, reader.expected(&node));
}

#[tokio::test(start_paused = true)]
async fn a_cursor_goes_on_where_it_was() {
    let node = remembering(4);
    node.register("A", "1");
    let mut reader = Reader::start(&node, "", "").await.unwrap();
    reader.drain().await;
    for _ in 0..2 {
        node.set_status("A", "1", Status::Down);
        node.set_status("A", "1", Status::OutOfService);
    }
    reader.reconnect(&node).await.unwrap();
    reader.drain().await;
    assert_eq!((reader.snapshots.len(), reader.changes), (1, 4));

    // One more than the node remembers.
    for status in [Status::Down, Status::Up, Status::Down, Status::Up, Status::Down] {
        node.set_status("A", "1", status);
    }
    reader.reconnect(&node).await.unwrap();
    reader.drain().await;
    assert_eq!(reader.snapshots, [SnapshotReason::Start, SnapshotReason::TooOld]);
    assert_eq!(reader.changes, 4);
    assert_eq!(reader.view, reader.expected(&node));

    // Never given out.
    let ahead = node.registry.cursor(node.registry.version() + 1).to_string();
    let mut reader = Reader::start(&node, &ahead, "").await.unwrap();
    reader.drain().await;
    assert_eq!(reader.snapshots, [SnapshotReason::OtherServer]);
}

#[tokio::test(start_paused = true)]
async fn the_cursor_of_another_server_begins_with_a_snapshot() {
    let seeded = |seed| {
        let core = eureka_registry_core::Config {
            seed: [seed, 0],
            ..eureka_registry_core::Config::default()
        };
        Node::with(core, Config::default())
    };
    let (first, second) = (seeded(1), seeded(2));
    first.register("A", "1");
    let mut reader = Reader::start(&first, "", "").await.unwrap();
    reader.drain().await;
    // At the same version, with other content.
    second.register("B", "1");
    reader.reconnect(&second).await.unwrap();
    reader.drain().await;
    assert_eq!(
        reader.snapshots,
        [SnapshotReason::Start, SnapshotReason::OtherServer]
    );
    assert_eq!(reader.view, reader.expected(&second));
    second.register("B", "2");
    reader.drain().await;
    assert_eq!(reader.changes, 1);
    let figure = "eureka_watch_snapshots_total{interface=\"grpc\",reason=\"other-server\"}";
    assert_eq!(second.figure(figure), 1);
}

#[tokio::test(start_paused = true)]
async fn a_filter_is_entered_and_left() {
    let node = Node::new();
    node.register("A", "1");
    node.register("B", "1");
    let mut reader = Reader::start(&node, "", "app == A && status == UP")
        .await
        .unwrap();
    reader.drain().await;
    assert_eq!(reader.view.len(), 1);

    node.set_status("A", "1", Status::OutOfService);
    let Event::Change(change) = reader.next().await.unwrap() else {
        panic!()
    };
    assert_eq!(
        (change.action(), change.cause()),
        (Action::Deleted, Cause::Filtered)
    );
    let instance = change.instance.unwrap();
    assert_eq!(
        instance.status(),
        eureka_grpc_api::proto::Status::Up,
        "as it was before"
    );

    node.set_status("B", "1", Status::OutOfService);
    node.set_status("A", "1", Status::Down);
    node.set_status("A", "1", Status::Up);
    let Event::Change(change) = reader.next().await.unwrap() else {
        panic!()
    };
    assert_eq!(
        (change.action(), change.cause()),
        (Action::Added, Cause::Filtered)
    );
    assert_eq!(reader.cursor, node.registry.cursor(6).to_string());

    node.cancel("A", "1");
    let Event::Change(change) = reader.next().await.unwrap() else {
        panic!()
    };
    assert_eq!(
        (change.action(), change.cause()),
        (Action::Deleted, Cause::Cancelled)
    );
    node.register("A", "1");
    let Event::Change(change) = reader.next().await.unwrap() else {
        panic!()
    };
    assert_eq!(
        (change.action(), change.cause()),
        (Action::Added, Cause::Registered)
    );
    assert_eq!(reader.view, reader.expected(&node));
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_tells_that_it_is_alive() {
    let node = Node::new();
    let mut reader = Reader::start(&node, "", "app == A").await.unwrap();
    reader.drain().await;
    let began = Instant::now();
    // Changes that the reader is not told do not keep the heartbeat away, and take the cursor along.
    advance(Duration::from_secs(10)).await;
    node.register("B", "1");
    node.register("B", "2");
    assert!(matches!(reader.next().await.unwrap(), Event::Heartbeat(_)));
    assert_eq!(began.elapsed(), HEARTBEAT);
    assert_eq!(reader.version(), 2);
    assert!(matches!(reader.next().await.unwrap(), Event::Heartbeat(_)));
    assert_eq!(began.elapsed(), 2 * HEARTBEAT);

    // Counted from the last message.
    advance(Duration::from_secs(5)).await;
    node.register("A", "1");
    assert!(matches!(reader.next().await.unwrap(), Event::Change(_)));
    let told = Instant::now();
    assert!(matches!(reader.next().await.unwrap(), Event::Heartbeat(_)));
    assert_eq!(told.elapsed(), HEARTBEAT);
    assert_eq!(reader.version(), 3);
}

#[tokio::test(start_paused = true)]
async fn one_poll_looks_at_a_bounded_number_of_things() {
    let node = Node::new();
    for id in 0..2_500 {
        node.register("A", &format!("{id:04}"));
    }
    let mut reader = Reader::start(&node, "", "id == 2499").await.unwrap();
    reader.take(1).await;
    let mut polls = 0;
    loop {
        let (polled, again) = reader.poll_once().await;
        polls += 1;
        let Poll::Ready(message) = polled else {
            assert!(again, "it goes on by itself");
            continue;
        };
        assert!(matches!(reader.apply(message.unwrap()), Event::SnapshotPage(_)));
        break;
    }
    assert_eq!(
        polls, 2,
        "a thousand instances each, the first of them with the beginning"
    );

    reader.drain().await;
    for _ in 0..100 {
        node.set_status("A", "0000", Status::Down);
        node.set_status("A", "0000", Status::Up);
    }
    node.set_status("A", "2499", Status::Down);
    let mut polls = 0;
    while let (Poll::Pending, again) = reader.poll_once().await {
        assert!(again, "it goes on by itself");
        polls += 1;
    }
    assert_eq!(polls, 3, "64 changes each");
}

#[tokio::test(start_paused = true)]
async fn pages_are_small() {
    let node = Node::new();
    for id in 0..250 {
        node.register("A", &id.to_string());
    }
    for id in 0..5 {
        node.register_with(large("B", id, 40_000));
    }
    for filter in ["", "app in (A, B)"] {
        let mut reader = Reader::start(&node, "", filter).await.unwrap();
        let mut instances = 0;
        loop {
            match reader.next().await.unwrap() {
                Event::SnapshotPage(page) => {
                    // It is full as soon as it has 64 KiB.
                    assert!(page.encoded_len() < (64 << 10) + 41_000, "{filter}");
                    instances += page.instances.len();
                }
                Event::SnapshotEnd(_) => break,
                Event::SnapshotBegin(_) | Event::Change(_) | Event::Heartbeat(_) => {}
            }
        }
        assert_eq!(instances, 255, "{filter}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_page_lets_go_of_the_snapshot() {
    let node = Node::new();
    (0..3).for_each(|id| node.register_with(large("A", id, 64 << 10)));
    let pinned: Vec<_> = node.registry.snapshot().instances().map(Arc::downgrade).collect();
    let mut reader = Reader::start(&node, "", "").await.unwrap();
    assert!(matches!(reader.next().await.unwrap(), Event::SnapshotBegin(_)));
    for id in 0..3 {
        node.cancel("A", &id.to_string());
        // What readers of lists have is current again.
        node.registry.snapshot();
    }
    let held = || pinned.iter().filter(|view| view.strong_count() > 0).count();
    for left in [3, 3, 0] {
        assert!(matches!(reader.next().await.unwrap(), Event::SnapshotPage(_)));
        assert_eq!(held(), left);
    }
    assert!(matches!(reader.next().await.unwrap(), Event::SnapshotEnd(_)));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_the_stream() {
    let node = Node::new();
    let mut request = Request::new(WatchRequest::default());
    request.set_timeout(Duration::from_secs(40));
    let began = Instant::now();
    let mut stream = node.client().watch(request).await.unwrap().into_inner();
    let mut messages = 0;
    let status = loop {
        match stream.message().await {
            Ok(message) => messages += usize::from(message.is_some()),
            Err(status) => break status,
        }
    };
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert_eq!(began.elapsed(), Duration::from_secs(40));
    assert_eq!(messages, 4, "begin, end and two heartbeats");

    // Also while there is much to tell.
    (0..3).for_each(|id| node.register_with(large("A", id, 64 << 10)));
    let mut request = Request::new(WatchRequest::default());
    request.set_timeout(Duration::from_secs(1));
    let mut stream = node.client().watch(request).await.unwrap().into_inner();
    // With the first page, in one piece.
    stream.message().await.unwrap();
    stream.message().await.unwrap();
    advance(Duration::from_secs(1)).await;
    assert_eq!(stream.message().await.unwrap_err().code(), Code::DeadlineExceeded);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_stops_ends_its_streams() {
    let node = Node::new();
    (0..3).for_each(|id| node.register_with(large("A", id, 64 << 10)));
    let mut beginning = Reader::start(&node, "", "").await.unwrap();
    let mut walking = Reader::start(&node, "", "").await.unwrap();
    walking.take(2).await;
    let mut following = Reader::start(&node, "", "").await.unwrap();
    following.drain().await;
    assert_eq!(node.figure("eureka_watchers{interface=\"grpc\"}"), 3);
    let waiting = tokio::spawn(async move { following.next().await.unwrap_err() });
    tokio::task::yield_now().await;

    node.grpc.close();
    let ended = timeout(HEARTBEAT, waiting).await.expect("at once").unwrap();
    let refused = Reader::start(&node, "", "").await.err().unwrap();
    for status in [
        ended,
        beginning.next().await.unwrap_err(),
        walking.next().await.unwrap_err(),
        refused,
    ] {
        assert_eq!(status.code(), Code::Unavailable);
        let details = status.get_error_details();
        assert_eq!(details.error_info().unwrap().reason, "STOPPING");
        assert!(details.retry_info().is_some());
    }
    drop((beginning, walking));
    assert_eq!(node.figure("eureka_watchers{interface=\"grpc\"}"), 0);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_told_while_reads_are_held() {
    let node = Node::held(
        eureka_registry_core::Config::default(),
        Config::default(),
        Arc::new(|_: &eureka_registry_core::Event| {}),
    );
    node.register("A", "1");
    let held = node.registry.cursor(1).to_string();
    for cursor in ["", &held] {
        let status = Reader::start(&node, cursor, "").await.err().unwrap();
        assert_eq!(status.code(), Code::Unavailable);
        let details = status.get_error_details();
        assert_eq!(details.error_info().unwrap().reason, "READS_HELD");
        assert_eq!(
            details.retry_info().unwrap().retry_delay,
            Some(Duration::from_secs(1))
        );
    }
    node.registry.open(1, None);
    let mut reader = Reader::start(&node, "", "").await.unwrap();
    reader.drain().await;
    assert_eq!(reader.view.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_bad_request_is_refused_before_anything_is_told() {
    let node = Node::new();
    for (cursor, filter, field) in [
        ("0", "", "cursor"),
        ("0000000000000abc.07", "", "cursor"),
        ("", "app = A", "filter"),
        ("", "app == A &&", "filter"),
    ] {
        let status = Reader::start(&node, cursor, filter).await.err().unwrap();
        assert_eq!(status.code(), Code::InvalidArgument);
        let details = status.get_error_details();
        let violations = &details.bad_request().unwrap().field_violations;
        assert_eq!(violations[0].field, field);
    }
    assert_eq!(node.figure("eureka_watchers{interface=\"grpc\"}"), 0);
}
