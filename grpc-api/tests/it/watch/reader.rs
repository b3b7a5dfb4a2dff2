//! A reader as clients are to be written: replaces what it knows by a snapshot, applies changes, and keeps the cursor.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use eureka_grpc_api::proto::watch_response::Event;
use eureka_grpc_api::proto::{self, Action, Cause, SnapshotReason, WatchRequest, WatchResponse};
use eureka_registry_core::Filter;
use tokio_stream::Stream as _;
use tonic::{Status, Streaming};

use super::node::Node;

/// What a client knows of an instance, as far as tests compare it.
type Known = (i32, BTreeMap<String, String>);
/// All of it, by application and id.
pub(crate) type View = BTreeMap<(String, String), Known>;

pub(crate) struct Reader {
    stream: Streaming<WatchResponse>,
    filter: String,
    pub(crate) view: View,
    pub(crate) cursor: String,
    /// Reasons of the snapshots that were read.
    pub(crate) snapshots: Vec<SnapshotReason>,
    /// Changes that were read.
    pub(crate) changes: usize,
    arriving: Option<View>,
}

impl Reader {
    /// Begins to watch, with a cursor or without one.
    pub(crate) async fn start(node: &Node, cursor: &str, filter: &str) -> Result<Self, Status> {
        Ok(Self {
            stream: open(node, cursor, filter).await?,
            filter: filter.to_owned(),
            view: View::new(),
            cursor: cursor.to_owned(),
            snapshots: Vec::new(),
            changes: 0,
            arriving: None,
        })
    }

    /// Leaves the stream, and goes on with what is known, here or elsewhere.
    pub(crate) async fn reconnect(&mut self, node: &Node) -> Result<(), Status> {
        self.stream = open(node, &self.cursor, &self.filter).await?;
        self.arriving = None;
        Ok(())
    }

    /// The next message, applied.
    pub(crate) async fn next(&mut self) -> Result<Event, Status> {
        let message = self.stream.message().await?.expect("a watch ends with a status");
        Ok(self.apply(message))
    }

    /// Whatever there is without waiting. The error, if that ended the stream.
    pub(crate) async fn drain(&mut self) -> Option<Status> {
        while let Some(message) = self.poll().await {
            match message {
                Ok(message) => _ = self.apply(message),
                Err(status) => return Some(status),
            }
        }
        None
    }

    /// At most so many messages of those that are there.
    pub(crate) async fn take(&mut self, most: usize) {
        for _ in 0..most {
            let Some(message) = self.poll().await else { return };
            self.apply(message.unwrap());
        }
    }

    /// One poll, and whether the stream asks for another one at once.
    pub(crate) async fn poll_once(&mut self) -> (Poll<Result<WatchResponse, Status>>, bool) {
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let polled = Pin::new(&mut self.stream).poll_next(&mut Context::from_waker(&waker));
        tokio::task::yield_now().await;
        let polled = polled.map(|message| message.expect("a watch ends with a status"));
        (polled, woken.0.load(Ordering::SeqCst))
    }

    /// A message that is there, or none.
    async fn poll(&mut self) -> Option<Result<WatchResponse, Status>> {
        loop {
            match self.poll_once().await {
                (Poll::Ready(message), _) => return Some(message),
                (Poll::Pending, true) => {}
                (Poll::Pending, false) => return None,
            }
        }
    }

    /// What the registry holds, as this reader should see it.
    pub(crate) fn expected(&self, node: &Node) -> View {
        let filter = (!self.filter.is_empty()).then(|| Filter::parse(&self.filter).unwrap());
        let snapshot = node.registry.snapshot();
        let selected = snapshot
            .instances()
            .map(|view| &view.instance)
            .filter(|instance| filter.as_ref().is_none_or(|filter| filter.matches(instance)));
        selected
            .map(|instance| {
                let metadata = instance.metadata.iter();
                let metadata = metadata.map(|(key, value)| (key.to_owned(), value.to_owned()));
                let status = proto::Status::from_str_name(&format!("STATUS_{}", instance.status)).unwrap();
                (
                    (instance.app.to_string(), instance.id().to_owned()),
                    (status.into(), metadata.collect()),
                )
            })
            .collect()
    }

    /// The version in the cursor.
    pub(crate) fn version(&self) -> u64 {
        version(&self.cursor)
    }

    pub(crate) fn apply(&mut self, message: WatchResponse) -> Event {
        let event = message.event.expect("every message says something");
        if !message.cursor.is_empty() {
            self.moves_on(&message.cursor, &event);
            self.cursor = message.cursor;
        }
        match &event {
            Event::SnapshotBegin(begin) => {
                self.snapshots.push(begin.reason());
                self.arriving = Some(View::new());
            }
            Event::SnapshotPage(page) => {
                assert!(!page.instances.is_empty());
                let arriving = self.arriving.as_mut().expect("a page follows a beginning");
                for instance in &page.instances {
                    let (key, known) = known(instance);
                    assert!(arriving.last_key_value().is_none_or(|(last, _)| *last < key));
                    arriving.insert(key, known);
                }
            }
            Event::SnapshotEnd(end) => {
                self.view = self.arriving.take().expect("an end follows a beginning");
                assert_eq!(end.instances, self.view.len() as u64);
            }
            Event::Change(change) => self.change(change),
            Event::Heartbeat(_) => assert!(self.arriving.is_none()),
        }
        event
    }

    fn change(&mut self, change: &proto::Change) {
        assert!(self.arriving.is_none(), "no change within a snapshot");
        self.changes += 1;
        let (key, known) = known(change.instance.as_ref().unwrap());
        let before = match change.action() {
            Action::Added | Action::Modified => self.view.insert(key, known),
            Action::Deleted => self.view.remove(&key),
            Action::Unspecified => panic!("{change:?}"),
        };
        let new = change.action() == Action::Added;
        if change.cause() == Cause::Filtered || change.action() == Action::Modified {
            assert_eq!(before.is_none(), new, "{change:?}");
        }
    }

    /// Without a filter every version is told, with one they rise.
    fn moves_on(&self, cursor: &str, event: &Event) {
        let (before, after) = (version(&self.cursor), version(cursor));
        match event {
            Event::Change(_) if self.filter.is_empty() => assert_eq!(after, before + 1),
            Event::Change(_) => assert!(after > before),
            Event::Heartbeat(_) => assert!(after >= before),
            Event::SnapshotBegin(_) | Event::SnapshotPage(_) => panic!("no cursor within a snapshot"),
            Event::SnapshotEnd(_) => {}
        }
    }
}

async fn open(node: &Node, cursor: &str, filter: &str) -> Result<Streaming<WatchResponse>, Status> {
    let request = WatchRequest {
        cursor: cursor.to_owned(),
        filter: filter.to_owned(),
    };
    node.client()
        .watch(request)
        .await
        .map(tonic::Response::into_inner)
}

fn known(instance: &proto::Instance) -> ((String, String), Known) {
    (
        (instance.app.clone(), instance.instance_id.clone()),
        (instance.status, instance.metadata.clone()),
    )
}

/// Zero for no cursor.
fn version(cursor: &str) -> u64 {
    cursor
        .split_once('.')
        .map_or(0, |(_, version)| version.parse().unwrap())
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}
