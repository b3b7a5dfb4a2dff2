//! Many readers, fast writers, and readers that do not read.

use std::sync::{Arc, Weak};
use std::thread;

use eureka_grpc_api::Config;
use eureka_grpc_api::proto::SnapshotReason;
use eureka_registry_core::{Event, Instance, Status};
use parking_lot::Mutex;

use super::node::Node;
use super::reader::Reader;

const ENCODINGS: &str = "eureka_watch_encodings_total{interface=\"grpc\"}";
const CHANGES: &str = "eureka_watch_changes_total{interface=\"grpc\"}";

#[tokio::test(start_paused = true)]
async fn a_change_is_encoded_once_for_a_thousand_readers() {
    let node = Node::new();
    (0..10).for_each(|id| node.register("A", &id.to_string()));
    let mut readers = Vec::new();
    for number in 0..1_000 {
        let filter = ["", "status == UP", "status != UP", "app == B"][number % 4];
        let mut reader = Reader::start(&node, "", filter).await.unwrap();
        reader.drain().await;
        readers.push(reader);
    }
    for _ in 0..10 {
        for status in [Status::Down, Status::Up] {
            for id in 0..10 {
                node.set_status("A", &id.to_string(), status);
            }
        }
    }
    for reader in &mut readers {
        reader.drain().await;
        assert_eq!(reader.view, reader.expected(&node));
    }
    assert!(readers.iter().step_by(4).all(|reader| reader.changes == 200));
    // Each as it is, as one that leaves a filter, and as one that enters one.
    assert_eq!(node.figure(ENCODINGS), 200 * 3);
    assert_eq!(node.figure(CHANGES), 200 * 750);
}

#[tokio::test]
async fn nothing_is_left_out_while_others_write() {
    let node = Arc::new(Node::new());
    let mut readers = Vec::new();
    for filter in ["", "status == UP", "app == W1"] {
        let mut reader = Reader::start(&node, "", filter).await.unwrap();
        reader.drain().await;
        readers.push(reader);
    }
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let node = Arc::clone(&node);
            thread::spawn(move || {
                let app = format!("W{writer}");
                for number in 0..2_000 {
                    let id = (number % 7).to_string();
                    match number % 3 {
                        0 => node.register(&app, &id),
                        1 => node.set_status(&app, &id, Status::OutOfService),
                        _ => node.cancel(&app, &id),
                    }
                }
            })
        })
        .collect();
    let written = Arc::clone(&node);
    let closing = thread::spawn(move || {
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        written.register("W1", "last");
    });
    let last = ("W1".to_owned(), "last".to_owned());
    for mut reader in readers {
        while !reader.view.contains_key(&last) {
            reader.next().await.unwrap();
        }
        assert_eq!(reader.view, reader.expected(&node));
        assert_eq!(reader.snapshots.len(), 1, "the log holds them all");
    }
    closing.join().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_reader_who_does_not_read_costs_nothing_that_grows() {
    const LOGGED: usize = 1_000;
    const KEPT: usize = 256;
    const PORTION: usize = 64;
    const CHANGED: usize = 100_000;
    let core = eureka_registry_core::Config {
        change_log_limit: LOGGED,
        ..eureka_registry_core::Config::default()
    };
    let config = Config {
        feed_kept: KEPT,
        ..Config::default()
    };
    // Every instance that was ever made of a change.
    let made: Arc<Mutex<Vec<Weak<Instance>>>> = Arc::default();
    let noted = Arc::clone(&made);
    let sink = move |happened: &Event| {
        if let Event::Applied {
            after: Some(after), ..
        } = happened
        {
            noted.lock().push(Arc::downgrade(after));
        }
    };
    let node = Node::held(core, config, Arc::new(sink));
    node.registry.open(0, None);
    node.register("A", "1");
    let mut stalled = Reader::start(&node, "", "").await.unwrap();
    stalled.drain().await;
    // With a portion in hand, and another reader who keeps up.
    (0..PORTION).for_each(|number| change(&node, number));
    stalled.take(1).await;
    let mut prompt = Reader::start(&node, "", "").await.unwrap();
    for number in 0..CHANGED {
        change(&node, number);
        if number % 100 == 0 {
            prompt.take(100).await;
        }
    }
    prompt.drain().await;
    assert_eq!(prompt.snapshots.len(), 1);

    let alive = made.lock().iter().filter(|made| made.strong_count() > 0).count();
    let bound = LOGGED + KEPT + PORTION + 2;
    assert!(
        (LOGGED..=bound).contains(&alive),
        "{alive} of {CHANGED}, at most {bound}"
    );

    assert!(stalled.drain().await.is_none());
    assert_eq!(stalled.changes, PORTION, "what it had in hand");
    assert_eq!(stalled.snapshots, [SnapshotReason::Start, SnapshotReason::TooOld]);
    assert_eq!(stalled.view, stalled.expected(&node));
    assert_eq!(stalled.view, prompt.view);
}

fn change(node: &Node, number: usize) {
    let status = if number.is_multiple_of(2) {
        Status::Down
    } else {
        Status::Up
    };
    node.set_status("A", "1", status);
}
