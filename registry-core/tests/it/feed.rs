//! The feed: many readers of different speeds, of whom each sees every change once and in order, or is told otherwise.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use eureka_registry_core::{
    Action, Clock, Config, Cursor, Event, Feed, Follower, Instance, InstanceKey, News, Now, Origin,
    RegistryHandle, Told,
};

use crate::numbers::Numbers;

type Encoded = OnceLock<String>;

struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Now {
        Now::default()
    }
}

struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn registry(config: Config) -> RegistryHandle {
    let registry = RegistryHandle::new(config, Arc::new(Stopped), Arc::new(|_: &Event| {}));
    registry.open(1, None);
    registry
}

fn named(id: &str) -> Instance {
    let mut instance = Instance::new("A", id, "host", "10.0.0.1");
    instance.lease.duration_secs = 10_000;
    instance
}

fn register(registry: &RegistryHandle, instance: Instance) {
    registry.register(Origin::Client, Arc::new(instance), Duration::ZERO);
}

fn register_all(registry: &RegistryHandle, numbers: std::ops::Range<usize>) {
    for number in numbers {
        register(registry, named(&number.to_string()));
    }
}

fn poll(follower: &mut Follower<Encoded>, limit: usize) -> Poll<News<Encoded>> {
    follower.poll_news(&mut Context::from_waker(Waker::noop()), limit)
}

/// The changes that are there now.
fn told(follower: &mut Follower<Encoded>, limit: usize) -> Vec<Arc<Told<Encoded>>> {
    match poll(follower, limit) {
        Poll::Ready(News::Changes(told)) => told,
        other => panic!("there are changes, not {other:?}"),
    }
}

fn versions(told: &[Arc<Told<Encoded>>]) -> Vec<u64> {
    told.iter().map(|told| told.change.version).collect()
}

#[test]
fn a_reader_gets_all_in_order_a_few_at_a_time() {
    let registry = registry(Config::default());
    let feed = Feed::new(registry.clone(), 100);
    let mut follower = feed.follow(registry.cursor(0));
    assert!(poll(&mut follower, 4).is_pending());
    register_all(&registry, 0..10);
    assert_eq!(versions(&told(&mut follower, 4)), [1, 2, 3, 4]);
    assert_eq!(follower.cursor(), registry.cursor(4));
    assert_eq!(versions(&told(&mut follower, 4)), [5, 6, 7, 8]);
    assert_eq!(versions(&told(&mut follower, 0)), [9], "at least one");
    assert_eq!(versions(&told(&mut follower, 4)), [10]);
    assert!(poll(&mut follower, 4).is_pending());
    // Whoever comes later finds what is kept.
    let mut other = feed.follow(registry.cursor(7));
    assert_eq!(versions(&told(&mut other, 100)), [8, 9, 10]);
}

#[test]
fn a_change_is_encoded_once_for_all() {
    let registry = registry(Config::default());
    let feed = Feed::<Encoded>::new(registry.clone(), 100);
    let mut followers: Vec<_> = (0..50).map(|_| feed.follow(registry.cursor(0))).collect();
    let encodings = AtomicUsize::new(0);
    for round in 0..20 {
        register_all(&registry, 3 * round..3 * round + 3);
        for (number, follower) in followers.iter_mut().enumerate() {
            // Some read in one piece what others read in two.
            let mut seen = 0;
            while seen < 3 {
                let told = told(follower, 1 + number % 3);
                seen += told.len();
                for told in told {
                    told.encoded.get_or_init(|| {
                        encodings.fetch_add(1, Ordering::SeqCst);
                        told.change.key.to_string()
                    });
                }
            }
        }
    }
    assert_eq!(encodings.load(Ordering::SeqCst), 60);
}

#[test]
fn who_comes_from_behind_finds_what_was_encoded_ahead() {
    let registry = registry(Config::default());
    let feed = Feed::<Encoded>::new(registry.clone(), 100);
    register_all(&registry, 0..4);
    let ahead = told(&mut feed.follow(registry.cursor(2)), 1);
    let mut follower = feed.follow(registry.cursor(0));
    let behind = told(&mut follower, 4);
    assert_eq!(versions(&behind), [1, 2, 3, 4]);
    assert!(Arc::ptr_eq(&ahead[0], &behind[2]));
}

#[test]
fn a_burst_of_more_than_is_kept_is_encoded_once_for_readers_side_by_side() {
    let registry = registry(Config::default());
    let feed = Feed::<Encoded>::new(registry.clone(), 100);
    let mut followers: Vec<_> = (0..10).map(|_| feed.follow(registry.cursor(0))).collect();
    register_all(&registry, 0..1_000);
    let mut first = BTreeMap::new();
    for _ in 0..20 {
        for follower in &mut followers {
            for told in told(follower, 50) {
                let one = first
                    .entry(told.change.version)
                    .or_insert_with(|| Arc::clone(&told));
                assert!(Arc::ptr_eq(one, &told), "the same for all");
            }
        }
    }
    assert_eq!(first.len(), 1_000);
}

#[test]
fn a_slow_reader_gets_what_the_log_has_and_drives_out_nothing() {
    let registry = registry(Config {
        change_log_limit: 50,
        ..Config::default()
    });
    let feed = Feed::<Encoded>::new(registry.clone(), 10);
    let mut slow = feed.follow(registry.cursor(0));
    let mut fast = feed.follow(registry.cursor(0));
    register_all(&registry, 0..40);
    while fast.cursor().version() < 40 {
        told(&mut fast, 64);
    }
    let newest = told(&mut feed.follow(registry.cursor(35)), 64);
    assert_eq!(versions(&told(&mut slow, 20)), (1..=20).collect::<Vec<_>>());
    let again = told(&mut feed.follow(registry.cursor(35)), 64);
    assert_eq!(versions(&again), [36, 37, 38, 39, 40]);
    assert!(
        newest
            .iter()
            .zip(&again)
            .all(|(one, other)| Arc::ptr_eq(one, other))
    );

    // Changes 21 to 30 have left the log.
    register_all(&registry, 40..80);
    let lost = poll(&mut slow, 20);
    assert!(
        matches!(lost, Poll::Ready(News::Lost { foreign: false })),
        "{lost:?}"
    );
    let snapshot = registry.snapshot();
    assert_eq!(snapshot.version(), 80);
    slow.restart(snapshot.version());
    assert!(poll(&mut slow, 20).is_pending());
    register_all(&registry, 80..81);
    assert_eq!(versions(&told(&mut slow, 20)), [81]);
}

#[test]
fn cursors_of_others_and_of_the_future_are_foreign() {
    let ours = registry(Config::default());
    let other = registry(Config {
        seed: [3, 4],
        ..Config::default()
    });
    register_all(&ours, 0..3);
    let feed = Feed::<Encoded>::new(ours.clone(), 10);
    let is_foreign = |cursor: Cursor| {
        let news = poll(&mut feed.follow(cursor), 1);
        matches!(news, Poll::Ready(News::Lost { foreign: true }))
    };
    assert!(is_foreign(other.cursor(1)));
    assert!(is_foreign(other.cursor(3)));
    assert!(is_foreign(ours.cursor(4)));
    assert!(is_foreign(ours.cursor(u64::MAX)));
    assert!(!is_foreign(ours.cursor(3)));
}

#[test]
fn large_changes_are_kept_for_fewer_readers() {
    let registry = registry(Config::default());
    let feed = Feed::<Encoded>::new(registry.clone(), 10_000);
    let mut follower = feed.follow(registry.cursor(0));
    let large = |id: usize| {
        let mut instance = named(&id.to_string());
        instance.metadata.insert("large", &"x".repeat(1 << 20));
        instance
    };
    register(&registry, large(0));
    let first = Arc::downgrade(&told(&mut follower, 1)[0]);
    for id in 1..16 {
        register(&registry, large(id));
        told(&mut follower, 1);
        assert_eq!(first.strong_count() > 0, id < 15, "after {id}");
    }
}

#[test]
fn who_waits_is_woken_once_by_a_change_and_not_by_a_renewal() {
    let registry = registry(Config::default());
    let feed = Feed::<Encoded>::new(registry.clone(), 10);
    let woken = Arc::new(Woken(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    register_all(&registry, 0..1);
    let mut follower = feed.follow(registry.cursor(1));
    assert!(follower.poll_news(&mut context, 10).is_pending());
    registry.renew(Origin::Client, &InstanceKey::new("A", "0"), None, None);
    assert_eq!(woken.0.load(Ordering::SeqCst), 0);
    register_all(&registry, 1..4);
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    // What was read leaves nothing to be woken for; what came meanwhile does not have to wait.
    assert!(matches!(
        follower.poll_news(&mut context, 2),
        Poll::Ready(News::Changes(_))
    ));
    register_all(&registry, 4..5);
    assert_eq!(woken.0.load(Ordering::SeqCst), 1, "it does not wait");
    assert!(matches!(
        follower.poll_news(&mut context, 10),
        Poll::Ready(News::Changes(_))
    ));
    assert!(follower.poll_news(&mut context, 10).is_pending());
    register_all(&registry, 5..6);
    assert_eq!(woken.0.load(Ordering::SeqCst), 2);
}

#[test]
fn closing_wakes_everybody_and_holds_for_all_to_come() {
    let registry = registry(Config::default());
    let feed = Feed::<Encoded>::new(registry.clone(), 10);
    let woken = Arc::new(Woken(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    let mut follower = feed.follow(registry.cursor(0));
    assert!(follower.poll_news(&mut context, 10).is_pending());
    feed.close();
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    for _ in 0..2 {
        assert!(matches!(
            follower.poll_news(&mut context, 10),
            Poll::Ready(News::Closed)
        ));
    }
    let mut later = feed.follow(registry.cursor(0));
    assert!(matches!(poll(&mut later, 10), Poll::Ready(News::Closed)));
}

/// A reader with a copy of the registry of its own, as clients have.
struct Reader {
    follower: Follower<Encoded>,
    woken: Arc<Woken>,
    waits: bool,
    copy: BTreeMap<InstanceKey, Arc<Instance>>,
    lost: usize,
}

impl Reader {
    fn new(registry: &RegistryHandle, feed: &Arc<Feed<Encoded>>) -> Self {
        let mut reader = Self {
            follower: feed.follow(registry.cursor(0)),
            woken: Arc::new(Woken(AtomicUsize::new(0))),
            waits: false,
            copy: BTreeMap::new(),
            lost: 0,
        };
        reader.begin(registry);
        reader
    }

    fn begin(&mut self, registry: &RegistryHandle) {
        let snapshot = registry.snapshot();
        let held = snapshot.instances();
        self.copy = held
            .map(|view| (view.key(), Arc::clone(&view.instance)))
            .collect();
        self.follower.restart(snapshot.version());
    }

    /// Reads once; false if there is nothing.
    fn read(&mut self, registry: &RegistryHandle, limit: usize) -> bool {
        let waker = Waker::from(Arc::clone(&self.woken));
        let seen = self.follower.cursor().version();
        match self.follower.poll_news(&mut Context::from_waker(&waker), limit) {
            Poll::Pending => {
                assert_eq!(seen, registry.version(), "nothing was left lying");
                self.waits = true;
                self.woken.0.store(0, Ordering::SeqCst);
                return false;
            }
            Poll::Ready(News::Lost { foreign }) => {
                assert!(!foreign);
                self.lost += 1;
                self.begin(registry);
            }
            Poll::Ready(News::Changes(told)) => {
                assert!((1..=limit).contains(&told.len()));
                for (told, version) in told.iter().zip(seen + 1..) {
                    assert_eq!(told.change.version, version, "each once, in order");
                    self.apply(told);
                }
                assert_eq!(self.follower.cursor().version(), seen + told.len() as u64);
            }
            Poll::Ready(News::Closed) => panic!("nobody closes"),
        }
        self.waits = false;
        true
    }

    fn apply(&mut self, told: &Told<Encoded>) {
        let change = &told.change;
        let before = match change.action {
            Action::Deleted => self.copy.remove(&change.key),
            Action::Added | Action::Modified => {
                self.copy.insert(change.key.clone(), Arc::clone(&change.instance))
            }
        };
        assert_eq!(before, change.before, "{change:?}");
    }
}

/// Writers and readers in random turns, and the borders of log and feed so narrow that all are met.
fn play(seed: u64) -> usize {
    let mut random = Numbers::new(seed);
    let mut config = Config {
        change_log_limit: 30 + random.below(60),
        ..Config::default()
    };
    if random.one_in(2) {
        config.change_log_bytes = 20_000 + random.below(20_000);
    }
    let registry = registry(config);
    let feed = Feed::new(registry.clone(), 1 + random.below(40));
    let mut readers: Vec<_> = (0..6).map(|_| Reader::new(&registry, &feed)).collect();
    for _ in 0..600 {
        for _ in 0..random.below(8) {
            let id = random.below(12).to_string();
            if random.one_in(3) {
                registry.cancel(Origin::Client, &InstanceKey::new("A", &id));
            } else {
                register(&registry, named(&id));
            }
        }
        // The first reads always, the last almost never.
        for (speed, reader) in readers.iter_mut().enumerate() {
            if reader.waits && reader.follower.cursor().version() != registry.version() {
                assert_eq!(reader.woken.0.load(Ordering::SeqCst), 1, "it was woken");
            }
            if random.one_in(1 + 3 * speed) {
                reader.read(&registry, 1 + random.below(9));
            }
        }
        if random.one_in(40) {
            let place = random.below(readers.len());
            readers[place] = Reader::new(&registry, &feed);
        }
    }
    let expected: BTreeMap<_, _> = registry
        .snapshot()
        .instances()
        .map(|view| (view.key(), Arc::clone(&view.instance)))
        .collect();
    for reader in &mut readers {
        while reader.read(&registry, 5) {}
        assert_eq!(reader.copy, expected);
    }
    readers.iter().map(|reader| reader.lost).sum()
}

#[test]
fn readers_of_any_speed_see_everything_once_or_are_told() {
    let lost: usize = (0..40).map(play).sum();
    assert!(lost > 40, "slow readers were lost {lost} times only");
}

struct Unpark {
    reader: Thread,
    woken: AtomicBool,
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        self.reader.unpark();
    }
}

impl Unpark {
    /// Sleeps until it is woken. Who is not woken fails instead of sleeping for ever.
    fn wait(&self) {
        let woken = (0..60).any(|_| {
            if !self.woken.load(Ordering::SeqCst) {
                thread::park_timeout(Duration::from_secs(1));
            }
            self.woken.swap(false, Ordering::SeqCst)
        });
        assert!(woken, "nobody wakes it");
    }
}

/// Reads on its own thread until it has seen a version, and sleeps when there is nothing.
fn read_until(registry: &RegistryHandle, feed: &Arc<Feed<Encoded>>, last: u64, limit: usize) {
    let unpark = Arc::new(Unpark {
        reader: thread::current(),
        woken: AtomicBool::new(false),
    });
    let waker = Waker::from(Arc::clone(&unpark));
    let mut context = Context::from_waker(&waker);
    let mut follower = feed.follow(registry.cursor(0));
    while follower.cursor().version() < last {
        let seen = follower.cursor().version();
        match follower.poll_news(&mut context, limit) {
            Poll::Ready(News::Changes(told)) => {
                for (told, version) in told.iter().zip(seen + 1..) {
                    assert_eq!(told.change.version, version);
                    told.encoded.get_or_init(|| told.change.key.to_string());
                }
            }
            Poll::Ready(other) => panic!("{other:?}"),
            Poll::Pending => unpark.wait(),
        }
    }
}

#[test]
fn threads_that_read_while_others_write_miss_nothing() {
    let registry = registry(Config::default());
    let feed = Feed::new(registry.clone(), 64);
    thread::scope(|scope| {
        for reader in 0..8 {
            let (registry, feed) = (&registry, &feed);
            scope.spawn(move || read_until(registry, feed, 4_000, 1 + 10 * reader));
        }
        for writer in 0..4 {
            let registry = &registry;
            scope.spawn(move || register_all(registry, 1_000 * writer..1_000 * (writer + 1)));
        }
    });
    assert_eq!(registry.version(), 4_000);
}
