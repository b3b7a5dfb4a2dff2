//! The layers around a service that misbehaves.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use eureka_grpc_api::proto;
use eureka_server::config::{Config, Sources};
use eureka_server::http::{Body, Front, Listener, Received, Speaks, Stack};
use eureka_server::telemetry::Meters;
use http::{Request, Response};
use hyper::body::Incoming;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::sync::oneshot;
use tonic::Code;
use tower::Service;

use crate::call::{Calls, Reads, renewal};
use crate::node::{Connection, request};

/// Panics where its path says.
#[derive(Clone)]
struct Clumsy;

impl Service<Request<Received<Incoming>>> for Clumsy {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Received<Incoming>>) -> Self::Future {
        let path = request.uri().path().to_owned();
        assert_ne!(path, "/at-once", "clumsy");
        Box::pin(async move {
            tokio::task::yield_now().await;
            assert_ne!(path, "/later", "clumsy");
            Ok(Response::new(Body::default()))
        })
    }
}

/// Serves it until the sender is dropped; what is counted can be read.
async fn serve(speaks: Speaks) -> (SocketAddr, PrometheusHandle, oneshot::Sender<()>) {
    let limits = Config::load(&Sources::default())
        .expect("defaults are right")
        .settings
        .limits;
    let recorder = PrometheusBuilder::new().build_recorder();
    let meters = metrics::with_local_recorder(&recorder, Meters::new);
    let front = Arc::new(Front::new(&limits, Arc::new(meters)));
    let listener = Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
    let address = listener.address();
    let (sender, stop) = oneshot::channel::<()>();
    let layered = Stack::new(&front, speaks, Clumsy);
    tokio::spawn(async move {
        let stop = async {
            // Dropping the sender is the signal.
            drop(stop.await);
            Duration::ZERO
        };
        listener.serve(&limits, front, layered, stop).await
    });
    (address, recorder.handle(), sender)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_panic_is_a_500_and_the_connection_goes_on() {
    let (address, counted, _running) = serve(Speaks::Http).await;
    let statuses = tokio::task::spawn_blocking(move || {
        let mut connection = Connection::to(address);
        ["/at-once", "/fine", "/later", "/fine"].map(|path| {
            connection.write(&request("GET", path, "", ""));
            let answer = connection.answer();
            (answer.status, answer.head.contains("x-request-id"))
        })
    });
    assert_eq!(
        statuses.await.unwrap(),
        [(500, true), (200, false), (500, true), (200, false)]
    );
    let counted = counted.render();
    assert!(
        counted.lines().any(|line| line == "eureka_panics_total 2"),
        "{counted}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_call_that_panics_is_internal_and_the_connection_goes_on() {
    for speaks in [Speaks::Grpc, Speaks::Both] {
        let (address, _, _running) = serve(speaks).await;
        let mut calls = Calls::at(address, Reads::All).await;
        for path in ["/at-once", "/later", "/at-once"] {
            let renewal = Some(renewal("A", "i"));
            let call = calls.unary::<_, proto::RenewResponse>(path, proto::RenewRequest { renewal });
            let refused = call.await.expect_err("it panics");
            assert_eq!(refused.code(), Code::Internal, "{path}: {refused:?}");
            assert!(
                refused.metadata().contains_key("x-request-id"),
                "{path}: {refused:?}"
            );
        }
    }
}
