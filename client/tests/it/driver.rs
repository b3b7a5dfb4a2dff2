//! The whole client against servers inside the test: registers, follows, survives, and leaves.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use eureka_client::cache::Origin;
use eureka_client::cache::copy::DiskCopy;
use eureka_client::call::Scope;
use eureka_client::{BuildError, Builder, Client, Pool, ServerError};
use eureka_registry_core::{Instance, InstanceKey, LeaseTerms, Now, Origin as Author, Status, Wall};
use tokio::sync::{mpsc, watch};

use crate::listed::Listed;
use crate::node::{Node, until, within};

/// The shortest renewal interval there is.
const EAGER: LeaseTerms = LeaseTerms {
    renewal_interval_secs: 1,
    duration_secs: 90,
};

fn instance(app: &str, id: &str) -> Instance {
    Instance {
        lease: EAGER,
        ..Instance::new(app, id, "host-1", "10.0.0.1")
    }
}

fn key(app: &str, id: &str) -> InstanceKey {
    InstanceKey::new(app, id)
}

#[tokio::test]
async fn an_instance_registers_renews_and_leaves_down_first() {
    let node = Node::start().await;
    let client = Client::builder()
        .server(&node.url())
        .register(instance("orders", "orders-1"))
        .start()
        .expect("all is said");
    let registration = client.registration();
    assert!(within("the registration", registration.wait_registered()).await);
    let orders = key("ORDERS", "orders-1");
    assert!(node.lease(&orders).is_some());
    node.until_count("PUT /eureka/apps/ORDERS/orders-1", 2).await;
    assert_eq!(node.count("POST"), 1, "a renewal is no registration");

    assert!(client.shutdown().await, "the server said that it is gone");
    assert_eq!(node.lease(&orders), None);
    assert_eq!(node.count("POST"), 2, "DOWN before it went");
    assert_eq!(node.count("DELETE"), 1);
    assert!(
        !registration.wait_registered().await,
        "it will not be registered again"
    );
}

#[tokio::test]
async fn dropping_the_client_leaves_in_the_background() {
    let node = Node::start().await;
    let client = Client::builder()
        .server(&node.url())
        .register(instance("orders", "orders-1"))
        .start()
        .expect("all is said");
    let orders = key("ORDERS", "orders-1");
    node.until_status(&orders, Some(Status::Up)).await;
    drop(client);
    node.until_status(&orders, None).await;
    assert_eq!(node.count("DELETE"), 1);
}

#[tokio::test]
async fn what_the_owner_changes_is_told_at_once() {
    let node = Node::start().await;
    let client = Client::builder()
        .server(&node.url())
        .register(Instance {
            status: Status::Starting,
            ..Instance::new("orders", "orders-1", "host-1", "10.0.0.1")
        })
        .start()
        .expect("all is said");
    let orders = key("ORDERS", "orders-1");
    node.until_status(&orders, Some(Status::Starting)).await;
    let registration = client.registration();
    registration.set_metadata("zone", "a");
    registration.set_status(Status::Up);
    node.until_status(&orders, Some(Status::Up)).await;
    let seen = node.lease(&orders).expect("it is up");
    assert_eq!(seen.instance.metadata.get("zone"), Some("a"));
}

#[tokio::test]
async fn a_server_that_forgot_everything_is_told_again() {
    let mut node = Node::start().await;
    let client = Client::builder()
        .server(&node.url())
        .register(instance("orders", "orders-1"))
        .start()
        .expect("all is said");
    let orders = key("ORDERS", "orders-1");
    node.until_status(&orders, Some(Status::Up)).await;
    node.restart().await;
    node.until_status(&orders, Some(Status::Up)).await;
    drop(client);
}

#[tokio::test]
async fn when_its_server_dies_the_next_one_is_told() {
    let (mut first, mut second) = (Node::start().await, Node::start().await);
    let client = Client::builder()
        .server(&first.url())
        .server(&second.url())
        .register(instance("orders", "orders-1"))
        .start()
        .expect("all is said");
    assert!(within("the registration", client.registration().wait_registered()).await);
    let orders = key("ORDERS", "orders-1");
    let (dying, other) = if first.lease(&orders).is_some() {
        (&mut first, &mut second)
    } else {
        (&mut second, &mut first)
    };
    assert_eq!(other.count(""), 0, "one of them is enough");
    dying.stop().await;
    other.until_status(&orders, Some(Status::Up)).await;
}

#[tokio::test]
async fn a_consumer_is_told_of_a_registration_through_the_feed() {
    let node = Node::start().await;
    let client = Client::builder()
        .server(&node.url())
        .discover()
        .start()
        .expect("all is said");
    let cache = client.cache();
    within("the first list", cache.ready()).await;
    node.until_count("GET /api/v1/changes", 2).await;

    let (tell, mut told) = mpsc::unbounded_channel();
    let _listening = cache.on_change(move |update| {
        let _ = tell.send(update.view.application("orders").len());
    });
    let orders = Arc::new(instance("orders", "orders-1"));
    node.registry.register(Author::Client, orders, Duration::ZERO);
    assert_eq!(within("the callback", told.recv()).await, Some(1));
    node.registry.cancel(Author::Client, &key("ORDERS", "orders-1"));
    assert_eq!(within("the callback", told.recv()).await, Some(0));
}

#[tokio::test]
async fn a_consumer_that_polls_is_told_with_the_next_poll() {
    let node = Node::start().await;
    let client = Client::builder()
        .server(&node.url())
        .feed(false)
        .fetch_interval(Duration::from_millis(50))
        .start()
        .expect("all is said");
    let mut orders = client.cache().watch("orders");
    node.until_count("GET /eureka/apps", 1).await;
    let instance = Arc::new(instance("orders", "orders-1"));
    node.registry.register(Author::Client, instance, Duration::ZERO);
    let update = within("the change", orders.next())
        .await
        .expect("the client lives");
    assert_eq!(update.view.application("orders").up().count(), 1);
    assert_eq!(node.count("GET /api/v1/changes"), 0, "nobody asked the feed");
}

#[tokio::test]
async fn without_any_server_the_cache_goes_on_and_says_how_old_it_is() {
    let mut node = Node::start().await;
    let orders = Arc::new(instance("orders", "orders-1"));
    node.registry.register(Author::Client, orders, Duration::ZERO);
    let client = Client::builder()
        .server(&node.url())
        .fetch_interval(Duration::from_millis(20))
        .start()
        .expect("all is said");
    let cache = client.cache();
    within("the first list", cache.ready()).await;
    node.stop().await;

    let failed = || client.facts().stats.fetches_failed;
    let (before, confirmed) = (failed(), cache.view().confirmed());
    until("a failure", || failed() > before).await;
    let age = cache.age().expect("something is known");
    until("a greater age", || cache.age() > Some(age)).await;
    let view = cache.view();
    assert_eq!(view.application("orders").up().count(), 1);
    let mono = |confirmed: Option<Now>| confirmed.expect("a server said so").mono;
    assert!(
        mono(view.confirmed()) >= mono(confirmed),
        "it is what was known last"
    );
    assert!(matches!(view.origin(), Origin::Server(_)));
}

#[tokio::test]
async fn a_copy_on_disk_is_what_a_consumer_without_servers_begins_with() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("registry");
    let mut node = Node::start().await;
    let orders = Arc::new(instance("orders", "orders-1"));
    node.registry.register(Author::Client, orders, Duration::ZERO);
    let client = Client::builder()
        .server(&node.url())
        .disk_copy(&path)
        .start()
        .expect("all is said");
    within("the first list", client.cache().ready()).await;
    client.shutdown().await;
    assert!(path.exists(), "it was written before the client ended");

    let url = node.url();
    node.stop().await;
    let client = Client::builder()
        .server(&url)
        .disk_copy(&path)
        .start()
        .expect("all is said");
    let view = within("the copy", client.cache().ready())
        .await
        .expect("the client lives");
    assert!(matches!(view.origin(), Origin::Disk { .. }));
    assert_eq!(view.application("orders").up().count(), 1);
    assert!(client.cache().age().is_some());
    drop(client);

    std::fs::write(&path, "no copy").expect("the file is ours");
    let client = Client::builder()
        .server(&url)
        .disk_copy(&path)
        .start()
        .expect("all is said");
    until("a failure", || client.facts().stats.fetches_failed > 0).await;
    assert_eq!(*client.cache().view().origin(), Origin::Nothing);
    client.shutdown().await;
    assert_eq!(std::fs::read(&path).expect("it is there"), b"no copy");
}

/// Servers and consumers that start again at once: what the servers have forgotten must not be forgotten here, too, just
/// because a server answers sooner than the disk.
#[tokio::test]
async fn a_copy_on_disk_that_takes_long_to_read_is_not_lost_to_a_server_that_knows_nobody_yet() {
    const INSTANCES: usize = 20_000;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("registry");
    let mut known = Listed::new();
    for number in 0..INSTANCES {
        known.put(instance("orders", &format!("orders-{number}")));
    }
    known.show();
    DiskCopy::new(&path, &Scope::All, &[])
        .write(Wall(1), known.cache().view().snapshot())
        .expect("the file is ours");

    let node = Node::start().await;
    let client = Client::builder()
        .server(&node.url())
        .disk_copy(&path)
        .start()
        .expect("all is said");
    // The second one is sent when the first one has been answered.
    node.until_count("GET /eureka/apps/", 2).await;
    let view = client.cache().view();
    assert!(
        matches!(view.origin(), Origin::Disk { .. }),
        "{:?}",
        view.origin()
    );
    assert_eq!(view.application("orders").len(), INSTANCES);
    assert!(client.facts().stats.held_empty > 0);
}

#[test]
fn a_client_that_never_ran_has_ended_with_its_runtime() {
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().expect("a runtime")
    };
    let first = runtime();
    let client = first.block_on(async {
        Client::builder()
            .server("http://127.0.0.1:1/eureka/")
            .register(instance("orders", "orders-1"))
            .start()
            .expect("all is said")
    });
    drop(first);
    let registered = async { within("the end", client.registration().wait_registered()).await };
    assert!(!runtime().block_on(registered));
}

#[tokio::test]
async fn what_the_health_hook_says_is_the_status() {
    let node = Node::start().await;
    let (say, said) = watch::channel(Some(Status::Down));
    let client = Client::builder()
        .server(&node.url())
        .register(instance("orders", "orders-1"))
        .health(Duration::from_millis(20), move || {
            let status = *said.borrow();
            async move { status }
        })
        .start()
        .expect("all is said");
    let orders = key("ORDERS", "orders-1");
    node.until_count("POST", 1).await;
    node.until_status(&orders, Some(Status::Down)).await;
    say.send_replace(Some(Status::Up));
    node.until_status(&orders, Some(Status::Up)).await;
    client.shutdown().await;
}

#[tokio::test]
async fn a_health_hook_that_panics_or_never_answers_is_down_and_the_lease_goes_on() {
    let node = Node::start().await;
    let orders = key("ORDERS", "orders-1");
    let panics = Client::builder()
        .server(&node.url())
        .register(instance("orders", "orders-1"))
        .health(Duration::from_millis(20), || async { panic!("as a bug would") })
        .start()
        .expect("all is said");
    node.until_status(&orders, Some(Status::Down)).await;
    node.until_count("PUT /eureka/apps/ORDERS/orders-1", 1).await;
    assert_eq!(panics.facts().panics, 0, "it is not the client's own");

    let carts = key("CARTS", "carts-1");
    let hangs = Client::builder()
        .server(&node.url())
        .register(instance("carts", "carts-1"))
        .health(Duration::from_millis(20), std::future::pending)
        .health_within(Duration::from_millis(20))
        .start()
        .expect("all is said");
    node.until_status(&carts, Some(Status::Down)).await;
    node.until_count("PUT /eureka/apps/CARTS/carts-1", 1).await;
    drop((panics, hangs));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_health_hook_that_blocks_its_thread_is_down_and_its_late_answer_is_none() {
    let node = Node::start().await;
    let orders = key("ORDERS", "orders-1");
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = parking_lot::Mutex::new(held);
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let held = Arc::new(held);
    let client = Client::builder()
        .server(&node.url())
        .register(instance("orders", "orders-1"))
        .health(Duration::from_millis(20), move || {
            let (held, turn) = (Arc::clone(&held), count.fetch_add(1, Ordering::Relaxed));
            async move {
                match turn {
                    // Ends with the test at the latest, which drops the other side.
                    0 => held.lock().recv().map_or(None, |()| Some(Status::Up)),
                    _ => None,
                }
            }
        })
        .health_within(Duration::from_millis(20))
        .start()
        .expect("all is said");
    node.until_status(&orders, Some(Status::Down)).await;
    assert_eq!(
        asked.load(Ordering::Relaxed),
        1,
        "not asked again before it is done"
    );
    release.send(()).expect("the hook waits");
    let again = async {
        while asked.load(Ordering::Relaxed) < 3 {
            tokio::task::yield_now().await;
        }
    };
    within("the next questions", again).await;
    let registration = client.registration().now().expect("it registers");
    assert_eq!(
        registration.instance.status,
        Status::Down,
        "that it is UP came too late"
    );
    client.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_that_panics_or_blocks_keeps_no_renewal_from_being_sent() {
    let node = Node::start().await;
    let client = Client::builder()
        .server(&node.url())
        .register(instance("orders", "orders-1"))
        .discover()
        .start()
        .expect("all is said");
    let (entered, mut is_entered) = mpsc::unbounded_channel();
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = parking_lot::Mutex::new(held);
    let _panicking = client.cache().on_change(|_| panic!("as a bug would"));
    let _blocking = client.cache().on_change(move |_| {
        let _ = entered.send(());
        // Ends with the test, which drops the other side.
        let _ = held.lock().recv();
    });
    within("the listener", is_entered.recv()).await;
    // It blocks the listeners, but neither the cache nor the renewals.
    let carts = Client::builder()
        .server(&node.url())
        .register(instance("carts", "carts-1"))
        .start()
        .expect("all is said");
    let cache = client.cache();
    let mut watch = cache.watch("carts");
    within("the cache", watch.next()).await.expect("it goes on");
    let so_far = node.count("PUT /eureka/apps/ORDERS");
    node.until_count("PUT /eureka/apps/ORDERS", so_far + 2).await;
    assert_eq!(client.facts().panics, 0, "it is not the client's own");
    assert!(carts.shutdown().await);
    drop(release);
    assert!(client.shutdown().await);
}

#[test]
fn a_runtime_that_is_shut_down_takes_the_client_with_it_and_nothing_panics() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let client = runtime.block_on(async {
        let node = Node::start().await;
        let client = Client::builder()
            .server(&node.url())
            .register(instance("orders", "orders-1"))
            .discover()
            .start()
            .expect("all is said");
        assert!(within("the registration", client.registration().wait_registered()).await);
        client
    });
    drop(runtime);

    let registration = client.registration();
    registration.set_status(Status::Down);
    let (cache, facts) = (client.cache(), client.facts());
    assert!(!cache.is_live());
    assert_eq!(facts.panics, 0);
    let other = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    assert!(!other.block_on(client.shutdown()), "nobody confirmed anything");
}

#[tokio::test]
async fn clients_share_the_connections_of_one_pool() {
    let node = Node::start().await;
    let (pool, server) = (Pool::default(), node.server());
    let start = |number: usize| {
        let id = format!("orders-{number}");
        let builder = Client::builder()
            .servers([Arc::clone(&server)])
            .pool(pool.clone());
        builder
            .register(instance("orders", &id))
            .start()
            .expect("all is said")
    };
    let clients: Vec<_> = (0..200).map(start).collect();
    for client in &clients {
        assert!(within("a registration", client.registration().wait_registered()).await);
    }
    assert_eq!(node.registry.snapshot().len(), 200);
    assert!(node.connections() <= 64, "{} connections", node.connections());
    assert_eq!(clients[0].cache().view().origin(), &Origin::Nothing);
    for client in clients {
        assert!(client.shutdown().await);
    }
    assert!(node.registry.snapshot().is_empty());
}

#[tokio::test]
async fn what_was_not_said_is_an_error_at_the_start() {
    let start = |builder: Builder| builder.start().err();
    let url = "http://127.0.0.1:8761/eureka/";
    assert_eq!(
        start(Client::builder().server("localhost").server("?").discover()),
        Some(BuildError::Server(ServerError::Scheme))
    );
    assert_eq!(start(Client::builder().discover()), Some(BuildError::NoServers));
    assert_eq!(
        start(Client::builder().server(url)),
        Some(BuildError::NothingToDo)
    );
    for (field, instance) in [
        ("app", instance("", "orders-1")),
        ("host_name", Instance::new("orders", "orders-1", "", "10.0.0.1")),
        ("ip_address", Instance::new("orders", "orders-1", "host-1", "")),
    ] {
        assert_eq!(
            start(Client::builder().server(url).register(instance)),
            Some(BuildError::Instance(field))
        );
    }
    let secure = start(
        Client::builder()
            .server("https://127.0.0.1:8761/eureka/")
            .discover(),
    );
    assert_eq!(secure, (!cfg!(feature = "tls")).then_some(BuildError::NoTls));
    let outside = std::thread::spawn(move || Client::builder().server(url).discover().start().err());
    assert_eq!(outside.join().expect("no panic"), Some(BuildError::NoRuntime));
}
