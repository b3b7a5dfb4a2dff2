//! What is counted: each request once, by method and code, streams when they end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use eureka_grpc_api::proto::{CancelRequest, RenewRequest};
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use parking_lot::Mutex;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::fixture::{Fixture, frame, refused, request};

/// Keeps counters, and nothing else.
#[derive(Default)]
struct Counters(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

impl Counters {
    fn read(&self) -> Vec<(String, u64)> {
        let counters = self.0.lock();
        counters
            .iter()
            .map(|(name, count)| (name.clone(), count.load(Ordering::Relaxed)))
            .filter(|(_, count)| *count > 0)
            .collect()
    }
}

impl Recorder for Counters {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let labels: Vec<_> = key.labels().map(|label| label.value()).collect();
        let name = format!("{} {}", key.name(), labels.join(" "));
        let mut counters = self.0.lock();
        Counter::from_arc(Arc::clone(counters.entry(name).or_default()))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[tokio::test(start_paused = true)]
async fn every_request_counts_once() {
    let counters = Counters::default();
    let _installed = metrics::set_default_local_recorder(&counters);
    let fixture = Fixture::new();
    fixture.register("orders", "orders-1").await;
    fixture.register("orders", "orders-2").await;
    let mut client = fixture.client();
    client.cancel(CancelRequest::default()).await.unwrap_err();
    client.renew(RenewRequest::default()).await.unwrap_err();
    refused(&fixture, request("Nothing", frame(0, b""))).await;
    refused(&fixture, request("Register", frame(0, &[0xff]))).await;
    let health = || HealthClient::with_origin(fixture.grpc.service(), "http://a".parse().unwrap());
    health().check(HealthCheckRequest::default()).await.unwrap();

    let watch = health().watch(HealthCheckRequest::default()).await;
    drop(watch.unwrap());
    let watch = health().watch(HealthCheckRequest::default()).await;
    let mut watch = watch.unwrap().into_inner();
    watch.message().await.unwrap();
    fixture.grpc.close();
    watch.message().await.unwrap();
    let end = tokio::time::timeout(std::time::Duration::from_secs(60), watch.message());
    end.await.unwrap().unwrap_err();
    let expected = [
        ("Cancel INVALID_ARGUMENT", 1),
        ("Health/Check OK", 1),
        ("Health/Watch CANCELLED", 1),
        ("Health/Watch UNAVAILABLE", 1),
        ("Register INVALID_ARGUMENT", 1),
        ("Register OK", 2),
        ("Renew INVALID_ARGUMENT", 1),
        ("other UNIMPLEMENTED", 1),
    ];
    let expected = expected.map(|(labels, count)| (format!("eureka_grpc_requests_total {labels}"), count));
    assert_eq!(counters.read(), expected);
}
