//! Changes over gRPC, from the frontend of our servers in the same process, and REST where gRPC is of no use.

use std::sync::Arc;
use std::time::Duration;

use eureka_client::call::{Answer, Call, Change, Request, RequestId};
use eureka_client::{GrpcFeed, Pool, Server};
use eureka_grpc_api::{Config, Grpc};
use eureka_registry_core::{
    Action, Clock, DataCenter, Event, Instance, InstanceKey, Mono, Now, Origin, Port, RegistryHandle, Status,
    Wall,
};
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

/// Nobody listens there: an answer that is `Unreachable` was asked for over REST.
const REST: &str = "http://127.0.0.1:1/eureka/";

struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Now {
        Now {
            mono: Mono(0),
            wall: Wall(1_795_000_000_000),
        }
    }
}

struct Node {
    registry: RegistryHandle,
    feed: GrpcFeed,
    pool: Pool,
    task: JoinHandle<()>,
}

impl Node {
    async fn new() -> Self {
        let registry = RegistryHandle::new(Default::default(), Arc::new(Stopped), Arc::new(|_: &Event| {}));
        registry.open(0, None);
        let grpc = Grpc::new(registry.clone(), Config::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let service = TowerToHyperService::new(grpc.service());
                let connection =
                    http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service);
                connections.spawn(connection);
            }
        });
        let server = Server::parse(REST).unwrap().in_zone("elsewhere");
        Self {
            registry,
            feed: GrpcFeed::new().with(server, &address).unwrap(),
            pool: Pool::default(),
            task,
        }
    }

    fn register(&self, instance: Instance) {
        self.registry
            .register(Origin::Client, Arc::new(instance), Duration::ZERO);
    }

    fn cursor(&self, version: u64) -> Arc<str> {
        self.registry.cursor(version).to_string().into()
    }

    async fn ask(&self, call: Call) -> Answer {
        let request = Request {
            id: RequestId(1),
            server: Arc::new(Server::parse(REST).unwrap()),
            call,
            within: Duration::from_secs(30),
        };
        self.feed.send(&self.pool, &request).await
    }

    async fn changes(
        &self,
        since: &Arc<str>,
        filter: Option<&str>,
        wait: Duration,
    ) -> (Arc<str>, Vec<Change>) {
        let answer = self.ask(changes(since, filter, wait)).await;
        let Answer::Changes {
            cursor,
            changes,
            remote: false,
        } = answer
        else {
            panic!("{answer:?}");
        };
        (cursor, changes)
    }
}

const WAIT: Duration = Duration::from_secs(25);

fn changes(since: &Arc<str>, filter: Option<&str>, wait: Duration) -> Call {
    Call::Changes {
        since: Some(Arc::clone(since)),
        filter: filter.map(Arc::from),
        wait,
    }
}

fn ids(changes: &[Change]) -> Vec<String> {
    changes
        .iter()
        .map(|change| change.view.key().to_string())
        .collect()
}

fn full() -> Instance {
    let text = |text: &str| Some(Arc::from(text));
    let mut instance = Instance::new("orders", "o-1", "host", "10.0.0.1");
    instance.app_group = text("GROUP");
    instance.sid = text("sid");
    instance.port = Port {
        number: 1,
        enabled: false,
    };
    instance.secure_port = Port {
        number: 2,
        enabled: true,
    };
    instance.home_page_url = text("http://host/");
    instance.status_page_url = text("http://host/info");
    instance.health_check_url = text("http://host/health");
    instance.secure_health_check_url = text("https://host/health");
    instance.vip_address = text("a,b");
    instance.secure_vip_address = text("c");
    instance.country_id = 49;
    instance.data_center = DataCenter::Amazon(
        [("availability-zone", "1c"), ("instance-id", "i-1")]
            .into_iter()
            .collect(),
    );
    instance.status = Status::Starting;
    instance.lease.renewal_interval_secs = 7;
    instance.lease.duration_secs = 21;
    instance.metadata = [("", "empty"), ("a/b", "ü \u{1F980}")].into_iter().collect();
    instance.last_dirty = Some(1_794_999_999_999);
    instance.asg_name = text("asg");
    instance
}

/// Agents may share one feed, and each has its own time.
#[tokio::test]
async fn who_asks_while_another_question_waits_is_answered_over_rest() {
    let node = Node::new().await;
    let start = node.cursor(0);
    let wait = Duration::from_secs(2);
    tokio::select! {
        biased;
        first = node.ask(changes(&start, None, wait)) => panic!("the second one waited for {first:?}"),
        second = node.ask(changes(&start, None, wait)) => {
            assert!(matches!(second, Answer::Unreachable(_)), "{second:?}");
        }
    }
}

#[tokio::test]
async fn changes_come_whole_and_in_order_over_one_stream() {
    let node = Node::new().await;
    let start = node.cursor(0);
    node.register(full());
    let (cursor, told) = node.changes(&start, None, WAIT).await;
    assert_eq!(*told[0].view.instance, full());
    assert_eq!(told[0].action, Action::Added);
    assert_eq!(told[0].view.last_updated, Wall(1_795_000_000_000));
    assert_eq!((told.len(), &cursor), (1, &node.cursor(1)));

    let (same, told) = node.changes(&cursor, None, Duration::from_millis(20)).await;
    assert_eq!((same, told), (cursor.clone(), Vec::new()), "nothing happened");

    node.registry
        .set_override(Origin::Client, &full().key(), Status::OutOfService, None);
    let (cursor, told) = node.changes(&cursor, None, WAIT).await;
    assert_eq!(told[0].view.instance.status, Status::OutOfService);
    assert_eq!(told[0].view.instance.overridden_status, Status::OutOfService);
    assert_eq!(told[0].action, Action::Modified);

    // A question that waits already.
    let (answer, ()) = tokio::join!(node.changes(&cursor, None, WAIT), async {
        tokio::task::yield_now().await;
        node.registry.cancel(Origin::Client, &full().key());
    });
    assert_eq!(answer.1[0].action, Action::Deleted);
    assert_eq!(answer.0, node.cursor(3));
    assert_eq!((node.feed.stats().streams, node.feed.stats().failures), (1, 0));
}

#[tokio::test]
async fn only_what_the_filter_selects() {
    let node = Node::new().await;
    let start = node.cursor(0);
    node.register(Instance::new("other", "1", "host", "10.0.0.1"));
    node.register(full());
    let (_, told) = node.changes(&start, Some("vip == \"b\""), WAIT).await;
    assert_eq!(ids(&told), ["ORDERS/o-1"]);
    let (_, told) = node.changes(&start, None, WAIT).await;
    assert_eq!(
        told[0].view.key(),
        InstanceKey::new("OTHER", "1"),
        "another question, another stream"
    );
    assert_eq!(node.feed.stats().streams, 2);
}

#[tokio::test]
async fn a_question_that_is_given_up_loses_nothing() {
    let node = Node::new().await;
    let start = node.cursor(0);
    let given_up = node.changes(&start, None, WAIT);
    assert!(
        tokio::time::timeout(Duration::from_millis(20), given_up)
            .await
            .is_err()
    );
    node.register(full());
    let (cursor, told) = node.changes(&start, None, WAIT).await;
    assert_eq!(
        (ids(&told), cursor),
        (vec!["ORDERS/o-1".to_owned()], node.cursor(1))
    );
}

#[tokio::test]
async fn everything_else_is_asked_over_rest() {
    let node = Node::new().await;
    let first = Call::Changes {
        since: None,
        filter: None,
        wait: Duration::ZERO,
    };
    assert!(matches!(node.ask(first).await, Answer::Unreachable(_)));
    assert!(matches!(
        node.ask(Call::Cancel(full().key())).await,
        Answer::Unreachable(_)
    ));
    assert_eq!(node.feed.stats().streams, 0);
    let unknown = Request {
        id: RequestId(1),
        server: Arc::new(Server::parse("http://127.0.0.1:2/eureka/").unwrap()),
        call: changes(&node.cursor(0), None, WAIT),
        within: Duration::from_secs(30),
    };
    assert!(matches!(
        node.feed.send(&node.pool, &unknown).await,
        Answer::Unreachable(_)
    ));
    assert_eq!(node.feed.stats(), Default::default());
}

#[tokio::test]
async fn a_cursor_of_another_server_is_a_question_for_rest() {
    let (node, other) = (Node::new().await, Node::new().await);
    let foreign: Arc<str> = "18c2fe-not-of-here.0".into();
    for cursor in [&foreign, &other.cursor(0)] {
        if **cursor == *node.cursor(0) {
            continue;
        }
        assert!(matches!(
            node.ask(changes(cursor, None, WAIT)).await,
            Answer::Unreachable(_)
        ));
    }
    assert_eq!(
        node.feed.stats().failures,
        1,
        "and the next one at once: gRPC has a pause"
    );
    assert!(matches!(
        node.ask(changes(&node.cursor(0), None, WAIT)).await,
        Answer::Unreachable(_)
    ));
    assert_eq!(node.feed.stats().failures, 1);
}

#[tokio::test]
async fn a_server_that_goes_away_is_a_question_for_rest() {
    let node = Node::new().await;
    node.register(full());
    let (cursor, told) = node.changes(&node.cursor(0), None, WAIT).await;
    assert_eq!(told.len(), 1);
    node.task.abort();
    assert!(matches!(
        node.ask(changes(&cursor, None, WAIT)).await,
        Answer::Unreachable(_)
    ));
    assert_eq!((node.feed.stats().streams, node.feed.stats().failures), (1, 1));
}

#[test]
fn addresses_are_http() {
    let server = || Server::parse(REST).unwrap();
    for wrong in ["", "host:9761", "https://host:9761", "/path", "http://"] {
        assert!(GrpcFeed::new().with(server(), wrong).is_err(), "{wrong}");
    }
    assert!(GrpcFeed::new().with(server(), "http://host:9761").is_ok());
}
