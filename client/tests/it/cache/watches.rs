//! Watches: nothing is lost, nothing piles up, and they end.

use std::collections::BTreeMap;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use eureka_client::Cache;
use eureka_client::cache::{Update, Watch};
use eureka_registry_core::{Action, Mirror, Status, Wall};
use futures_core::Stream as _;

use super::{at, instance, keys, lease, publisher, server, snapshot, up};

/// What was told, as `+id`, `-id` and `~id`.
fn told(update: &Update) -> Vec<String> {
    let sign = |before: bool, after: bool| match (before, after) {
        (false, true) => '+',
        (true, false) => '-',
        (true, true) => '~',
        (false, false) => '?',
    };
    let differences = update.differences.iter();
    differences
        .map(|found| {
            format!(
                "{}{}",
                sign(found.before.is_some(), found.after.is_some()),
                found.key.id()
            )
        })
        .collect()
}

/// What is there without waiting: `None` if nothing.
fn poll(watch: &mut Watch) -> Option<Option<Update>> {
    match Pin::new(watch).poll_next(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(update) => Some(update),
        Poll::Pending => None,
    }
}

#[test]
fn begins_with_what_is_there_then_tells_changes() {
    let publisher = publisher();
    let mut mirror = Mirror::new();
    mirror.put(up("A", "1"));
    mirror.put(up("B", "1"));
    publisher.publish(at(0), mirror.snapshot(), server());
    let mut watch = publisher.cache().watch("a");
    let first = poll(&mut watch).unwrap().unwrap();
    assert_eq!(told(&first), ["+1"]);
    assert!(poll(&mut watch).is_none());

    mirror.put(up("B", "2"));
    publisher.publish(at(1), mirror.snapshot(), server());
    assert!(poll(&mut watch).is_none(), "another application");

    mirror.put(up("A", "0"));
    mirror.put(lease(instance("A", "1", Status::Down)));
    publisher.publish(at(2), mirror.snapshot(), server());
    let update = poll(&mut watch).unwrap().unwrap();
    assert_eq!(told(&update), ["+0", "~1"]);
    assert_eq!(update.view.confirmed(), Some(at(2)));
    let changed = &update.differences[1];
    assert_eq!(changed.before.as_ref().unwrap().instance.status, Status::Up);
    assert_eq!(changed.after.as_ref().unwrap().instance.status, Status::Down);

    mirror.remove(&up("A", "0").key());
    publisher.publish(at(3), mirror.snapshot(), server());
    assert_eq!(told(&poll(&mut watch).unwrap().unwrap()), ["-0"]);
    assert_eq!(keys(watch.told()), ["A/1"]);
}

#[test]
fn what_changes_before_the_first_poll_is_told() {
    let publisher = publisher();
    publisher.publish(at(0), snapshot([up("A", "1")]), server());
    let mut watch = publisher.cache().watch("A");
    publisher.publish(at(1), snapshot([up("A", "1"), up("A", "2")]), server());
    assert_eq!(told(&poll(&mut watch).unwrap().unwrap()), ["+1", "+2"]);
    assert!(poll(&mut watch).is_none());
}

#[test]
fn a_slow_reader_gets_several_changes_in_one() {
    let publisher = publisher();
    let mut watch = publisher.cache().watch("A");
    publisher.publish(at(0), snapshot([up("A", "1"), up("A", "2")]), server());
    assert_eq!(told(&poll(&mut watch).unwrap().unwrap()), ["+1", "+2"]);
    for step in 1..1_000 {
        let passing = up("A", &format!("passing-{step}"));
        publisher.publish(at(step), snapshot([up("A", "1"), passing]), server());
    }
    publisher.publish(at(1_000), snapshot([up("A", "1"), up("A", "3")]), server());
    assert_eq!(told(&poll(&mut watch).unwrap().unwrap()), ["-2", "+3"]);
    assert!(poll(&mut watch).is_none());
    publisher.publish(at(1_001), snapshot([up("A", "1")]), server());
    publisher.publish(at(1_002), snapshot([up("A", "1"), up("A", "3")]), server());
    assert!(poll(&mut watch).is_none(), "it is as it was told");
}

#[test]
fn heartbeats_are_no_news() {
    let publisher = publisher();
    let mut watch = publisher.cache().watch("A");
    publisher.publish(at(0), snapshot([up("A", "1")]), server());
    assert!(poll(&mut watch).is_some());
    let mut renewed = up("A", "1");
    renewed.lease.renewed = Wall(1_800_000_000_000);
    renewed.action = Action::Modified;
    publisher.publish(at(1), snapshot([renewed]), server());
    assert!(poll(&mut watch).is_none());
    assert_eq!(
        watch.told()[0].lease.renewed,
        Wall(1_800_000_000_000),
        "but known"
    );
}

#[test]
fn ends_with_the_client_after_what_happened_last() {
    let publisher = publisher();
    let mut watch = publisher.cache().watch("A");
    publisher.publish(at(0), snapshot([up("A", "1")]), server());
    drop(publisher);
    assert_eq!(told(&poll(&mut watch).unwrap().unwrap()), ["+1"]);
    assert!(poll(&mut watch).unwrap().is_none());
    assert!(poll(&mut watch).unwrap().is_none(), "and stays ended");
}

#[tokio::test]
async fn waiting_readers_are_woken_by_a_change_and_by_the_end() {
    let publisher = publisher();
    let mut watch = publisher.cache().watch("A");
    let (sender, mut updates) = tokio::sync::mpsc::unbounded_channel();
    let reader = tokio::spawn(async move {
        while let Some(update) = watch.next().await {
            sender.send(told(&update)).unwrap();
        }
    });
    tokio::task::yield_now().await;
    publisher.publish(at(0), snapshot([up("A", "1")]), server());
    assert_eq!(updates.recv().await.unwrap(), ["+1"]);
    publisher.publish(at(1), snapshot([]), server());
    assert_eq!(updates.recv().await.unwrap(), ["-1"]);
    tokio::task::yield_now().await;
    drop(publisher);
    reader.await.unwrap();
}

#[tokio::test]
async fn giving_up_a_wait_loses_nothing() {
    let publisher = publisher();
    let mut watch = publisher.cache().watch("A");
    {
        let mut next = pin!(watch.next());
        assert!(
            next.as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
        publisher.publish(at(0), snapshot([up("A", "1")]), server());
    }
    assert_eq!(told(&watch.next().await.unwrap()), ["+1"]);
}

#[tokio::test]
async fn each_of_many_watches_hears_of_its_own() {
    let publisher = publisher();
    let cache = publisher.cache();
    let mut readers = Vec::new();
    for index in 0..1_000 {
        let mut watch = cache.watch(&format!("app-{index}"));
        readers.push(tokio::spawn(async move {
            let mut heard = Vec::new();
            while let Some(update) = watch.next().await {
                heard.extend(update.differences.into_iter().map(|found| found.key.to_string()));
            }
            heard
        }));
    }
    tokio::task::yield_now().await;
    publisher.publish(
        at(0),
        snapshot((0..1_000).map(|index| up(&format!("app-{index}"), "1"))),
        server(),
    );
    drop(publisher);
    for (index, reader) in readers.into_iter().enumerate() {
        assert_eq!(reader.await.unwrap(), [format!("APP-{index}/1")]);
    }
}

#[test]
fn watches_addresses() {
    let publisher = publisher();
    let (mut vip, mut secure) = (
        publisher.cache().watch_vip("pay"),
        publisher.cache().watch_secure_vip("pay"),
    );
    let mut one = instance("A", "1", Status::Up);
    one.vip_address = Some("pay,other".into());
    let mut two = instance("B", "2", Status::Up);
    two.secure_vip_address = Some("PAY".into());
    publisher.publish(at(0), snapshot([lease(one.clone()), lease(two)]), server());
    assert_eq!(told(&poll(&mut vip).unwrap().unwrap()), ["+1"]);
    assert_eq!(told(&poll(&mut secure).unwrap().unwrap()), ["+2"]);
    one.vip_address = None;
    publisher.publish(at(1), snapshot([lease(one)]), server());
    assert_eq!(
        told(&poll(&mut vip).unwrap().unwrap()),
        ["-1"],
        "it is there, but not behind that address"
    );
}

struct Silent;

impl Wake for Silent {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn a_dropped_watch_leaves_nothing_behind() {
    let publisher = publisher();
    let silent = Arc::new(Silent);
    let waker = Waker::from(Arc::clone(&silent));
    let mut watch = publisher.cache().watch("A");
    for _ in 0..100 {
        assert!(
            Pin::new(&mut watch)
                .poll_next(&mut Context::from_waker(&waker))
                .is_pending()
        );
    }
    drop(waker);
    assert_eq!(
        Arc::strong_count(&silent),
        2,
        "one waker for each watch, however often it is polled"
    );
    drop(watch);
    assert_eq!(Arc::strong_count(&silent), 1);
}

/// Follows a watch to its end, applying what it tells.
fn follow(cache: &Cache, app: &str) -> BTreeMap<String, Status> {
    let mut watch = cache.watch(app);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut known = BTreeMap::new();
    runtime.block_on(async {
        while let Some(update) = watch.next().await {
            for found in update.differences {
                let id = found.key.id().to_string();
                assert_eq!(known.contains_key(&id), found.before.is_some());
                match found.after {
                    Some(view) => _ = known.insert(id, view.instance.status),
                    None => _ = known.remove(&id),
                }
            }
        }
    });
    known
}

#[test]
fn readers_on_other_threads_arrive_where_the_publisher_ends() {
    for seed in 0..20 {
        let publisher = publisher();
        let readers: Vec<_> = (0..4)
            .map(|index| {
                let cache = publisher.cache();
                std::thread::spawn(move || follow(&cache, if index % 2 == 0 { "A" } else { "B" }))
            })
            .collect();
        let mut random = fastrand::Rng::with_seed(seed);
        let mut mirror = Mirror::new();
        for step in 0..500 {
            let (app, id) = (["A", "B"][random.usize(..2)], random.u8(..8).to_string());
            let status = Status::ALL[random.usize(..5)];
            if random.bool() {
                mirror.put(lease(instance(app, &id, status)));
            } else {
                mirror.remove(&up(app, &id).key());
            }
            publisher.publish(at(step), mirror.snapshot(), server());
        }
        let last = publisher.cache().view();
        drop(publisher);
        for (index, reader) in readers.into_iter().enumerate() {
            let app = if index % 2 == 0 { "A" } else { "B" };
            let expected = last.application(app);
            let expected = expected
                .iter()
                .map(|view| (view.key().id().to_string(), view.instance.status));
            assert_eq!(reader.join().unwrap(), expected.collect(), "seed {seed}");
        }
    }
}

/// Dropping a waker may drop a whole task, as some runtimes do, and with it what the task watches.
#[test]
fn a_waker_that_looks_at_the_cache_when_it_is_dropped_finds_it_open() {
    struct Looks(Cache);
    impl Wake for Looks {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for Looks {
        fn drop(&mut self) {
            assert!(self.0.is_live());
        }
    }
    let (tell, told) = std::sync::mpsc::channel();
    // On a thread of its own: a lock that is never released is to fail this test, not to stop it.
    std::thread::spawn(move || {
        let publisher = publisher();
        let mut watch = publisher.cache().watch("a");
        for _ in 0..2 {
            let waker = Waker::from(Arc::new(Looks(publisher.cache())));
            assert!(
                Pin::new(&mut watch)
                    .poll_next(&mut Context::from_waker(&waker))
                    .is_pending()
            );
        }
        drop(watch);
        tell.send(()).unwrap();
    });
    told.recv_timeout(std::time::Duration::from_secs(30))
        .expect("a waker was dropped behind the lock");
}
