//! What the most frequent request costs in memory: nothing beyond what the HTTP library made for it.

use allocation_counter::measure;
use bytes::Bytes;
use http::{Request, StatusCode};

use crate::fixture::{DIRTY, Fixture};

/// A renewal as clients of Eureka send it, in its headers as well.
fn renewal(app: &str, id: &str) -> Request<Bytes> {
    Request::put(format!(
        "/eureka/apps/{app}/{id}?status=UP&lastDirtyTimestamp={DIRTY}"
    ))
    .header("host", "127.0.0.1:8761")
    .header("accept", "application/json, application/*+json")
    .header("discoveryidentity-name", "DefaultClient")
    .header("discoveryidentity-version", "1.4")
    .header("discoveryidentity-id", "10.0.0.7")
    .header("accept-encoding", "gzip, x-gzip, deflate")
    .header("user-agent", "Java-EurekaClient/v2.0.4")
    .body(Bytes::new())
    .unwrap()
}

#[test]
fn a_renewal_allocates_nothing() {
    let fixture = Fixture::new();
    let ids: Vec<String> = (0..100).map(|number| format!("host-{number}:a:8080")).collect();
    ids.iter().for_each(|id| fixture.register("A", id));
    // The first one of its kind makes the place where such are counted.
    assert_eq!(
        fixture.api.respond(renewal("A", &ids[0])).status(),
        StatusCode::OK
    );
    for id in &ids {
        let request = renewal("A", id);
        let mut status = None;
        let made = measure(|| status = Some(fixture.api.respond(request).status()));
        assert_eq!(status, Some(StatusCode::OK));
        assert_eq!(made.count_total, 0, "{made:?}");
    }
}

#[test]
fn only_names_that_have_to_be_changed_take_memory() {
    let fixture = Fixture::new();
    fixture.register("A", "h:a");
    let count = |app: &str, id: &str| {
        let request = renewal(app, id);
        measure(|| drop(fixture.api.respond(request))).count_total
    };
    count("A", "h:a");
    assert_eq!(count("A", "h:a"), 0);
    assert_eq!(count("a", "h:a"), 1, "the application in upper case");
    assert_eq!(count("A", "h%3Aa"), 1, "the id decoded");
}
