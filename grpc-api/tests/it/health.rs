//! Health: told from what the node is, to whoever asks or watches.

use std::time::Duration;

use eureka_grpc_api::GrpcService;
use eureka_registry_core::Config;
use tonic::{Code, Request};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::fixture::{Fixture, origin, told};

fn client(fixture: &Fixture) -> HealthClient<GrpcService> {
    HealthClient::with_origin(fixture.grpc.service(), origin())
}

fn held() -> Fixture {
    Fixture::held(Config::default(), eureka_grpc_api::Config::default())
}

fn of(service: &str) -> HealthCheckRequest {
    HealthCheckRequest {
        service: service.to_owned(),
    }
}

/// What has to come by itself; the clock is paused.
async fn bounded<T>(message: impl Future<Output = T>) -> T {
    let message = tokio::time::timeout(Duration::from_secs(60), message).await;
    message.expect("the stream ends")
}

async fn statuses(fixture: &Fixture) -> [ServingStatus; 3] {
    let mut statuses = [ServingStatus::Unknown; 3];
    for (status, service) in statuses
        .iter_mut()
        .zip(["", "eureka.v1.Registry", "eureka.v1.Registry/reads"])
    {
        let answer = client(fixture).check(of(service)).await.expect("it is known");
        *status = answer.into_inner().status();
    }
    statuses
}

#[tokio::test]
async fn reads_are_a_health_of_their_own() {
    use ServingStatus::{NotServing, Serving};
    let fixture = held();
    assert_eq!(statuses(&fixture).await, [Serving, Serving, NotServing]);
    fixture.registry.open(0, None);
    assert_eq!(statuses(&fixture).await, [Serving, Serving, Serving]);
    fixture.grpc.close();
    assert_eq!(statuses(&fixture).await, [NotServing, NotServing, NotServing]);
    let unknown = client(&fixture).check(of("eureka.v1.Other")).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
}

#[tokio::test(start_paused = true)]
async fn a_watch_tells_when_it_changes_and_ends_when_the_node_stops() {
    let fixture = held();
    let watch = client(&fixture).watch(of("eureka.v1.Registry/reads")).await;
    let mut watch = watch.unwrap().into_inner();
    let first = watch.message().await.unwrap().unwrap();
    assert_eq!(first.status(), ServingStatus::NotServing);
    let (opened, ()) = tokio::join!(watch.message(), async { fixture.registry.open(0, None) });
    assert_eq!(opened.unwrap().unwrap().status(), ServingStatus::Serving);
    let (closed, ()) = tokio::join!(watch.message(), async { fixture.grpc.close() });
    assert_eq!(closed.unwrap().unwrap().status(), ServingStatus::NotServing);
    let end = bounded(watch.message()).await.unwrap_err();
    assert_eq!(told(&end), (Code::Unavailable, "STOPPING".to_owned(), Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_service_is_told_as_such_and_the_stream_ends_at_the_deadline() {
    let fixture = Fixture::new();
    let mut request = Request::new(of("eureka.v1.Other"));
    request.set_timeout(Duration::from_secs(3));
    let began = tokio::time::Instant::now();
    let mut watch = client(&fixture).watch(request).await.unwrap().into_inner();
    let first = watch.message().await.unwrap().unwrap();
    assert_eq!(first.status(), ServingStatus::ServiceUnknown);
    let end = bounded(watch.message()).await.unwrap_err();
    assert_eq!(end.code(), Code::DeadlineExceeded);
    assert_eq!(began.elapsed(), Duration::from_secs(3));
}
