//! `KeepAlive`: renewals on a stream.

use std::sync::Arc;
use std::time::Duration;

use eureka_grpc_api::Config;
use eureka_grpc_api::proto::{KeepAliveRequest, KeepAliveResponse, Renewal, RenewalOutcome};
use eureka_registry_core::{AppliedKind, Event, Instance, InstanceKey, Origin};
use parking_lot::Mutex;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::{Instant, timeout};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Code, Request, Status, Streaming};
use tonic_types::StatusExt as _;

use crate::watch::node::Node;

const WATCHERS: &str = "eureka_watchers{interface=\"grpc\"}";

/// A node that notes who was renewed, and by whom.
struct Renewing {
    node: Node,
    renewed: Arc<Mutex<Vec<(String, Origin)>>>,
}

/// A stream from the client's side.
struct Client {
    requests: UnboundedSender<KeepAliveRequest>,
    answers: Streaming<KeepAliveResponse>,
}

impl Renewing {
    fn new() -> Self {
        let renewed: Arc<Mutex<Vec<_>>> = Arc::default();
        let noted = Arc::clone(&renewed);
        let sink = move |event: &Event| {
            if let Event::Applied {
                key,
                kind: AppliedKind::Renewed,
                origin,
                ..
            } = event
            {
                noted.lock().push((key.to_string(), origin.clone()));
            }
        };
        // Renewals are taken also while reads are held.
        let node = Node::held(
            eureka_registry_core::Config::default(),
            Config::default(),
            Arc::new(sink),
        );
        for id in ["1", "2"] {
            let mut instance = Instance::new("A", id, "host", "10.0.0.1");
            instance.last_dirty = Some(7);
            node.register_with(instance);
        }
        Self { node, renewed }
    }

    async fn connect(&self) -> Client {
        self.connect_for(None).await
    }

    async fn connect_for(&self, timeout: Option<Duration>) -> Client {
        let (requests, receiver) = unbounded_channel();
        let mut request = Request::new(UnboundedReceiverStream::new(receiver));
        if let Some(timeout) = timeout {
            request.set_timeout(timeout);
        }
        let answers = self.node.client().keep_alive(request).await.unwrap();
        Client {
            requests,
            answers: answers.into_inner(),
        }
    }

    fn renewed(&self) -> Vec<String> {
        self.renewed.lock().iter().map(|(key, _)| key.clone()).collect()
    }
}

impl Client {
    fn send(&self, renewals: Vec<Renewal>) {
        self.requests.send(KeepAliveRequest { renewals }).unwrap();
    }

    async fn outcomes(&mut self) -> Vec<(String, RenewalOutcome)> {
        let answer = self.answers.message().await.unwrap().unwrap();
        let results = answer.results.into_iter();
        results
            .map(|result| (format!("{}/{}", result.app, result.instance_id), result.outcome()))
            .collect()
    }

    async fn error(&mut self) -> Status {
        self.answers.message().await.unwrap_err()
    }
}

fn renewal(app: &str, id: &str, last_dirty_unix_ms: Option<i64>) -> Renewal {
    Renewal {
        app: app.to_owned(),
        instance_id: id.to_owned(),
        last_dirty_unix_ms,
    }
}

#[tokio::test(start_paused = true)]
async fn each_renewal_is_an_ordinary_one_and_answered_in_order() {
    let renewing = Renewing::new();
    let mut client = renewing.connect().await;
    client.send(vec![
        renewal("a", "2", Some(7)),
        renewal("A", "9", None),
        renewal("A", "1", Some(8)),
        renewal("A", "1", None),
    ]);
    assert_eq!(
        client.outcomes().await,
        [
            ("a/2".to_owned(), RenewalOutcome::Renewed),
            ("A/9".to_owned(), RenewalOutcome::NotRegistered),
            ("A/1".to_owned(), RenewalOutcome::ContentOutdated),
            ("A/1".to_owned(), RenewalOutcome::Renewed),
        ]
    );
    let renewed = renewing.renewed.lock().clone();
    assert_eq!(
        renewed,
        ["A/2", "A/1", "A/1"].map(|key| (key.to_owned(), Origin::Client)),
        "what is forwarded to peers"
    );
}

#[tokio::test(start_paused = true)]
async fn a_message_is_read_when_the_one_before_is_answered() {
    let renewing = Renewing::new();
    let mut client = renewing.connect().await;
    // So much that an answer is sent before the next one is asked for.
    let id = "x".repeat(100);
    renewing.node.register("A", &id);
    (0..3).for_each(|_| client.send(vec![renewal("A", &id, None); 1_000]));
    tokio::task::yield_now().await;
    assert_eq!(renewing.renewed().len(), 0, "nobody asks for an answer");
    for answered in 1..=3 {
        assert_eq!(client.outcomes().await.len(), 1_000);
        assert_eq!(renewing.renewed().len(), answered * 1_000);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_of_a_bad_message_is_applied_and_it_ends_the_stream() {
    let bad = [
        (vec![], "renewals"),
        (vec![renewal("A", "1", None); 1_001], "renewals"),
        (
            vec![renewal("A", "1", None), renewal("", "2", None)],
            "renewals[1].app",
        ),
        (
            vec![renewal("A", "1", None), renewal("A", "", None)],
            "renewals[1].instance_id",
        ),
    ];
    for (renewals, field) in bad {
        let renewing = Renewing::new();
        let mut client = renewing.connect().await;
        client.send(renewals);
        client.send(vec![renewal("A", "2", None)]);
        let status = client.error().await;
        assert_eq!(status.code(), Code::InvalidArgument);
        let details = status.get_error_details();
        assert_eq!(details.bad_request().unwrap().field_violations[0].field, field);
        assert_eq!(renewing.renewed(), Vec::<String>::new());
        assert!(client.answers.message().await.unwrap().is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_done_ends_the_stream_and_no_lease() {
    let renewing = Renewing::new();
    let lease = |id| renewing.node.registry.lease(&InstanceKey::new("A", id)).unwrap();
    let before = [lease("1"), lease("2")];
    let Client {
        requests,
        mut answers,
    } = renewing.connect().await;
    drop(requests);
    assert!(answers.message().await.unwrap().is_none(), "status OK");

    let client = renewing.connect().await;
    assert_eq!(renewing.node.figure(WATCHERS), 1);
    drop(client);
    assert_eq!(renewing.node.figure(WATCHERS), 0);
    assert_eq!([lease("1"), lease("2")], before);
    assert_eq!(renewing.node.registry.version(), 2, "nothing changed");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_the_stream() {
    let renewing = Renewing::new();
    let mut client = renewing.connect_for(Some(Duration::from_secs(40))).await;
    let began = Instant::now();
    client.send(vec![renewal("A", "1", None)]);
    assert_eq!(client.outcomes().await.len(), 1);
    assert_eq!(client.error().await.code(), Code::DeadlineExceeded);
    assert_eq!(began.elapsed(), Duration::from_secs(40));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_stops_ends_its_streams() {
    let renewing = Renewing::new();
    let mut client = renewing.connect().await;
    let waiting = tokio::spawn(async move { client.error().await });
    tokio::task::yield_now().await;
    renewing.node.grpc.close();
    let waited = timeout(Duration::from_secs(60), waiting).await;
    let status = waited.expect("at once").unwrap();
    assert_eq!(status.code(), Code::Unavailable);
    assert_eq!(
        status.get_error_details().error_info().unwrap().reason,
        "STOPPING"
    );
    let late = renewing.connect().await.error().await;
    assert_eq!(late.code(), Code::Unavailable);
}
