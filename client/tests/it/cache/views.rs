//! Look-ups, origin and age of a view.

use std::time::Duration;

use eureka_client::View;
use eureka_client::cache::{Origin, Publisher};
use eureka_registry_core::{Metadata, Status, Wall};

use super::{at, instance, keys, lease, publisher, server, snapshot, up};

fn view() -> View {
    let mut a = instance("Orders", "a", Status::Up);
    a.vip_address = Some("orders,orders-v2".into());
    a.secure_vip_address = Some("secure-orders".into());
    a.metadata = [("zone", "z1"), ("version", "2")]
        .into_iter()
        .collect::<Metadata>();
    let mut b = instance("ORDERS", "B", Status::OutOfService);
    b.vip_address = Some("ORDERS".into());
    b.metadata = [("zone", "z1")].into_iter().collect::<Metadata>();
    let mut c = instance("PAYMENTS", "a", Status::Down);
    c.vip_address = Some("Payments".into());
    c.secure_vip_address = Some("Secure-Orders".into());
    let snapshot = snapshot([a, b, c].map(lease));
    View::of_server(at(1_000), snapshot, server())
}

#[test]
fn finds_by_application_in_any_case() {
    let view = view();
    for name in ["ORDERS", "orders", "Orders"] {
        assert_eq!(keys(&view.application(name)), ["ORDERS/B", "ORDERS/a"], "{name}");
        assert_eq!(keys(view.application(name).up()), ["ORDERS/a"], "{name}");
    }
    assert!(view.application("ORDER").is_empty());
    assert!(view.application("").is_empty());
    let unicode = View::of_server(at(0), snapshot([up("straße", "1")]), server());
    assert_eq!(
        keys(&unicode.application("STRASSE")),
        ["STRASSE/1"],
        "as Java turns it to upper case"
    );
    assert_eq!(keys(&unicode.application("Straße")), ["STRASSE/1"]);
}

#[test]
fn finds_by_address_in_any_case() {
    let view = view();
    assert_eq!(keys(&view.vip("orders")), ["ORDERS/B", "ORDERS/a"]);
    assert_eq!(keys(&view.vip("ORDERS")), ["ORDERS/B", "ORDERS/a"]);
    assert_eq!(keys(&view.vip("Orders")), ["ORDERS/B", "ORDERS/a"]);
    assert_eq!(keys(&view.vip("orders-v2")), ["ORDERS/a"]);
    assert_eq!(keys(&view.vip("payments")), ["PAYMENTS/a"]);
    assert_eq!(keys(&view.vip("Payments")), ["PAYMENTS/a"]);
    assert!(
        view.vip("orders,orders-v2").is_empty(),
        "an element, not the whole"
    );
    assert!(view.vip("secure-orders").is_empty(), "another address");
    assert_eq!(keys(&view.secure_vip("secure-orders")), ["ORDERS/a"]);
    assert_eq!(
        keys(&view.secure_vip("Secure-Orders")),
        ["ORDERS/a", "PAYMENTS/a"]
    );
    assert!(view.secure_vip("orders").is_empty());
}

#[test]
fn an_instance_with_an_address_in_two_spellings_is_found_once() {
    let mut one = instance("A", "1", Status::Up);
    one.vip_address = Some("a,A".into());
    let view = View::of_server(at(0), snapshot([lease(one)]), server());
    assert_eq!(keys(&view.vip("a")), ["A/1"]);
}

#[test]
fn finds_single_instances_and_metadata() {
    let view = view();
    assert_eq!(
        view.instance("orders", "B").unwrap().instance.status,
        Status::OutOfService
    );
    assert!(view.instance("orders", "b").is_none(), "ids are case-sensitive");
    assert_eq!(keys(&view.by_id("a")), ["ORDERS/a", "PAYMENTS/a"]);
    assert!(view.by_id("A").is_empty());
    assert_eq!(keys(&view.with_metadata("zone", "z1")), ["ORDERS/B", "ORDERS/a"]);
    assert_eq!(keys(&view.with_metadata("version", "2")), ["ORDERS/a"]);
    assert!(view.with_metadata("version", "").is_empty());
    assert!(view.with_metadata("Zone", "z1").is_empty());
    let applications: Vec<_> = view.applications().map(|app| app.name().to_string()).collect();
    assert_eq!(applications, ["ORDERS", "PAYMENTS"]);
    assert_eq!(view.snapshot().hash(), "DOWN_1_OUT_OF_SERVICE_1_UP_1_");
}

#[test]
fn age_goes_by_the_clock_that_does_not_step() {
    let view = view();
    let mut later = at(61_000);
    later.wall = Wall(0);
    assert_eq!(view.age(later), Some(Duration::from_secs(60)));
    assert_eq!(view.confirmed(), Some(at(1_000)));
    assert_eq!(*view.origin(), Origin::Server(server()));
    assert_eq!(view.origin().to_string(), "http://registry:8761/eureka/");
}

#[test]
fn age_of_a_copy_goes_by_the_wall_clock() {
    let view = View::of_disk(at(0).wall, snapshot([up("A", "1")]));
    assert_eq!(view.age(at(3_600_000)), Some(Duration::from_secs(3_600)));
    let mut before = at(0);
    before.wall.0 -= 5;
    assert_eq!(view.age(before), Some(Duration::ZERO));
    assert_eq!(view.confirmed(), None, "by no server since the start");
}

#[test]
fn nothing_has_no_age() {
    let view = View::nothing();
    assert_eq!(view.age(at(5)), None);
    assert_eq!(*view.origin(), Origin::Nothing);
    assert!(view.snapshot().is_empty());
    assert!(view.vip("a").is_empty());
}

#[tokio::test]
async fn a_copy_is_shown_until_a_server_answers_and_never_after() {
    let publisher = Publisher::new(|| at(90_000));
    let cache = publisher.cache();
    assert_eq!(cache.age(), None);
    assert!(publisher.begin_with(at(0).wall, snapshot([up("A", "disk")])));
    assert_eq!(cache.ready().await.unwrap().by_id("disk").len(), 1);
    assert_eq!(cache.age(), Some(Duration::from_secs(90)));
    publisher.publish(at(80_000), snapshot([up("A", "server")]), server());
    assert_eq!(cache.age(), Some(Duration::from_secs(10)));
    assert!(!publisher.begin_with(at(0).wall, snapshot([up("A", "disk")])));
    assert_eq!(keys(&cache.view().application("a")), ["A/server"]);
}

#[tokio::test]
async fn ready_waits_for_the_first_view_or_the_end() {
    let publisher = publisher();
    let (cache, empty) = (publisher.cache(), publisher.cache());
    let waiting = tokio::spawn(async move { cache.ready().await.map(|view| view.snapshot().len()) });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    // A server that knows nobody is an answer, too.
    publisher.publish(at(0), snapshot([]), server());
    assert_eq!(waiting.await.unwrap(), Some(0));
    drop(publisher);
    assert!(empty.ready().await.is_some(), "the last view stays");
    assert!(!empty.is_live());

    let publisher = super::publisher();
    let cache = publisher.cache();
    let waiting = tokio::spawn(async move { cache.ready().await.is_some() });
    tokio::task::yield_now().await;
    drop(publisher);
    assert!(!waiting.await.unwrap());
}
