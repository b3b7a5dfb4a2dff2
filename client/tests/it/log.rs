//! What a client writes to the log when a server fails and comes back.

use std::io;
use std::sync::Arc;

use eureka_client::{Client, Instance, Status};
use parking_lot::Mutex;
use tracing_subscriber::fmt::MakeWriter;

use crate::node::{Node, until, within};

/// Lines as they would be shown.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

/// Those of them that name a server.
struct Named {
    log: Log,
    url: String,
}

impl Log {
    fn of(self, url: &str) -> Named {
        Named {
            log: self,
            url: url.to_owned(),
        }
    }
}

impl Named {
    fn with(&self, part: &str) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.log.0.lock()).into_owned();
        let lines = text.lines().filter(|line| line.contains(&self.url));
        lines
            .filter(|line| line.contains(part))
            .map(str::to_owned)
            .collect()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn failures_that_are_alike_are_told_less_and_less_often_and_their_end_once() {
    let log = Log::default();
    // For all threads: what other tests reach first, with no subscriber of their own, is else taken for disabled.
    tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(log.clone())
        .init();
    let mut node = Node::start().await;
    // Other tests log, too.
    let log = log.of(&node.url());
    // Nobody is registered, so that the list of a server that was started again is no surprise.
    let client = Client::builder()
        .server(&node.url())
        .discover()
        .start()
        .expect("all is said");
    within("a list", client.cache().ready()).await;
    node.stop().await;
    until("three failures", || client.facts().stats.fetches_failed >= 3).await;
    node.restart().await;
    let told = |line: &str| !log.with(line).is_empty();
    until("the end of the failures", || {
        told("read the registry, after failures")
    })
    .await;

    let failed = log.with("reading the registry failed");
    assert!(
        failed.iter().any(|line| line.contains("failures=1")),
        "{failed:?}"
    );
    assert!(
        !failed.iter().any(|line| line.contains("failures=3")),
        "the third is like the second: {failed:?}"
    );

    let instance = Instance {
        status: Status::Starting,
        ..Instance::new("orders", "orders-1", "host-1", "10.0.0.1")
    };
    let provider = Client::builder()
        .server(&node.url())
        .register(instance)
        .start()
        .expect("all is said");
    assert!(within("the registration", provider.registration().wait_registered()).await);
    until("the line that says so", || told("eureka_client: registered")).await;
    let registered = log.with("eureka_client: registered");
    assert!(
        registered[0].contains("INFO client{instance=ORDERS/orders-1}: eureka_client: registered")
            && registered[0].contains("status=STARTING"),
        "{registered:?}"
    );
}
