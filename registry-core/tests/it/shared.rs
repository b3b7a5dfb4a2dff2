//! The handle: what is published when, who is told, and what a panic leaves behind.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use eureka_registry_core::{
    AppliedKind, Changed, Changes, Clock, Config, Event, EventSink, Instance, InstanceKey, KeyRef, Learned,
    Mono, Now, Origin, PeerId, Reads, Registered, RegistryHandle, Renewal, Renewed, RepairAnswer, Step, Wall,
};
use parking_lot::Mutex;

/// A clock that stands until it is moved, and counts how often it was read.
#[derive(Default)]
struct Stopped {
    millis: AtomicU64,
    reads: AtomicUsize,
}

impl Clock for Stopped {
    fn now(&self) -> Now {
        self.reads.fetch_add(1, Ordering::SeqCst);
        let millis = self.millis.load(Ordering::SeqCst);
        Now {
            mono: Mono(millis),
            wall: Wall(1_700_000_000_000 + millis),
        }
    }
}

struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn opened(clock: &Arc<Stopped>) -> RegistryHandle {
    let handle = RegistryHandle::new(
        Config::default(),
        Arc::clone(clock) as _,
        Arc::new(|_: &Event| {}),
    );
    handle.open(1, None);
    handle
}

fn register(handle: &RegistryHandle, id: &str) {
    let mut instance = Instance::new("A", id, "host", "10.0.0.1");
    instance.last_dirty = Some(1);
    instance.lease.duration_secs = 10_000;
    let registered = handle.register(Origin::Client, Arc::new(instance), Duration::ZERO);
    assert_eq!(registered, Registered::Accepted);
}

#[test]
fn readers_stay_off_the_lock_while_nothing_changed() {
    let clock = Arc::new(Stopped::default());
    let handle = opened(&clock);
    register(&handle, "1");
    let first = handle.snapshot();
    // Whoever takes the lock reads the clock.
    let reads = clock.reads.load(Ordering::SeqCst);
    let second = handle.snapshot();
    assert_eq!(clock.reads.load(Ordering::SeqCst), reads);
    assert!(
        first
            .pages()
            .zip(second.pages())
            .all(|(first, second)| Arc::ptr_eq(first, second))
    );

    let renewed = handle.renew(Origin::Client, &InstanceKey::new("A", "1"), Some(1), None);
    assert_eq!(renewed, Renewed::Ok);
    let reads = clock.reads.load(Ordering::SeqCst);
    assert_eq!(handle.snapshot().version(), first.version());
    assert_eq!(
        clock.reads.load(Ordering::SeqCst),
        reads,
        "a renewal changes no list"
    );
}

#[test]
fn reads_are_current() {
    let clock = Arc::new(Stopped::default());
    let handle = opened(&clock);
    for count in 1..=300 {
        register(&handle, &count.to_string());
        assert_eq!(handle.snapshot().len(), count);
    }
    assert_eq!(
        handle.cancel(Origin::Client, &InstanceKey::new("A", "7")),
        Changed::Ok
    );
    assert_eq!(handle.snapshot().len(), 299);
    assert_eq!(handle.find(&InstanceKey::new("A", "7")), None);
    assert!(handle.find_by_id("8").is_some());
}

#[test]
fn passing_time_is_published_too() {
    let clock = Arc::new(Stopped::default());
    let handle = RegistryHandle::new(
        Config::default(),
        Arc::clone(&clock) as _,
        Arc::new(|_: &Event| {}),
    );
    assert_ne!(handle.snapshot().reads(), Reads::Open);
    handle.open(1, None);
    assert_eq!(handle.snapshot().reads(), Reads::Open);

    register(&handle, "1");
    assert_eq!(handle.snapshot().delta().len(), 1);
    let mut waits = 0;
    while !handle.snapshot().delta().is_empty() {
        let (wait, _) = handle.handle_timeout().expect("something is due");
        let wait = u64::try_from(wait.as_millis()).expect("short");
        clock.millis.fetch_add(wait.min(1_000), Ordering::SeqCst);
        waits += 1;
        assert!(waits < 1_000, "the delta empties");
    }
    assert!((180_000..=182_000).contains(&clock.millis.load(Ordering::SeqCst)));
}

#[test]
fn subscribers_hear_of_changes_and_not_of_renewals() {
    let clock = Arc::new(Stopped::default());
    let handle = opened(&clock);
    register(&handle, "1");
    let mut subscription = handle.subscribe();
    let woken = Arc::new(Woken(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    assert_eq!(subscription.poll_changed(&mut context), Poll::Pending);

    handle.renew(Origin::Client, &InstanceKey::new("A", "1"), Some(1), None);
    assert_eq!(woken.0.load(Ordering::SeqCst), 0);
    assert_eq!(subscription.poll_changed(&mut context), Poll::Pending);

    register(&handle, "2");
    register(&handle, "3");
    assert_eq!(woken.0.load(Ordering::SeqCst), 1, "one wake until it asks again");
    let version = handle.snapshot().version();
    assert_eq!(subscription.poll_changed(&mut context), Poll::Ready(version));
    assert_eq!(subscription.seen(), version);
    assert_eq!(subscription.poll_changed(&mut context), Poll::Pending);

    // A change between two polls needs no waker.
    let mut late = handle.subscribe();
    register(&handle, "4");
    let version = handle.snapshot().version();
    assert_eq!(
        pin!(late.changed()).as_mut().poll(&mut context),
        Poll::Ready(version)
    );
}

#[test]
fn a_dropped_subscription_leaves_its_place_to_the_next() {
    let clock = Arc::new(Stopped::default());
    let handle = opened(&clock);
    let woken = Arc::new(Woken(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    for _ in 0..1_000 {
        let mut subscription = handle.subscribe();
        assert!(subscription.poll_changed(&mut context).is_pending());
    }
    let mut kept = handle.subscribe();
    assert!(kept.poll_changed(&mut context).is_pending());
    register(&handle, "1");
    assert_eq!(woken.0.load(Ordering::SeqCst), 1, "only the living are woken");
    assert!(kept.poll_changed(&mut context).is_ready());
}

#[test]
fn the_sink_hears_everything_in_order_from_all_threads() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink = {
        let heard = Arc::clone(&heard);
        move |event: &Event| {
            if let Event::Applied { seq, version, .. } = event {
                heard.lock().push((*seq, *version));
            }
        }
    };
    let handle = RegistryHandle::new(Config::default(), Arc::new(Stopped::default()), Arc::new(sink));
    handle.open(1, None);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let handle = handle.clone();
            scope.spawn(move || {
                for index in 0..250 {
                    let id = format!("{thread}-{index}");
                    register(&handle, &id);
                    handle.renew(Origin::Client, &InstanceKey::new("A", &id), Some(1), None);
                    assert!(handle.snapshot().instance(&InstanceKey::new("A", &id)).is_some());
                }
            });
        }
    });
    let heard = heard.lock();
    assert_eq!(heard.len(), 2_000);
    assert!(
        heard
            .windows(2)
            .all(|pair| pair[0].0 + 1 == pair[1].0 && pair[0].1 <= pair[1].1)
    );
    assert_eq!(handle.snapshot().len(), 1_000);
    assert_eq!(handle.stats().instances, 1_000);
}

/// Hears of all but the renewals of clients.
struct Deaf(Arc<Mutex<Vec<(AppliedKind, Origin)>>>);

impl EventSink for Deaf {
    fn event(&self, event: &Event) {
        if let Event::Applied { kind, origin, .. } = event {
            self.0.lock().push((*kind, origin.clone()));
        }
    }

    fn hears_renewals(&self, origin: &Origin) -> bool {
        *origin != Origin::Client
    }
}

#[test]
fn a_renewal_that_nobody_wants_to_hear_of_is_one_all_the_same() {
    let heard = Arc::default();
    let clock = Arc::new(Stopped::default());
    let sink = Arc::new(Deaf(Arc::clone(&heard)));
    let handle = RegistryHandle::new(Config::default(), Arc::clone(&clock) as _, sink);
    handle.open(1, None);
    register(&handle, "1");
    let key = InstanceKey::new("A", "1");
    clock.millis.store(5_000, Ordering::SeqCst);
    assert_eq!(handle.renew(Origin::Client, &key, Some(1), None), Renewed::Ok);
    let renewed = handle.find(&key).expect("it registered").lease.renewed;
    assert_eq!(renewed, Wall(1_700_000_005_000));
    assert_eq!(handle.stats().renewals, 1);
    let renewal = || Renewal {
        key: KeyRef::new("A", "1"),
        last_dirty: Some(1),
        overridden: None,
    };
    handle.renew_all(&Origin::Client, [renewal()], |_| {});
    let north = Origin::Peer(PeerId("north".into()));
    handle.renew_all(&north, [renewal()], |_| {});
    handle.renew(Origin::Own, &key, Some(1), None);
    let told = [
        (AppliedKind::Registered, Origin::Client),
        (AppliedKind::Renewed, north),
        (AppliedKind::Renewed, Origin::Own),
    ];
    assert_eq!(*heard.lock(), told);
}

#[test]
fn a_cursor_follows_the_changes_of_its_own_registry() {
    let handle = opened(&Arc::new(Stopped::default()));
    let start = handle.cursor(handle.snapshot().version());
    register(&handle, "1");
    register(&handle, "2");
    let Changes::Since { changes, current } = handle.changes(start, 1) else {
        panic!("nothing is lost");
    };
    assert_eq!((changes.len(), changes[0].version, current), (1, 1, 2));
    let seen = handle.cursor(changes[0].version);
    let Changes::Since { changes, .. } = handle.changes(seen, 10) else {
        panic!("nothing is lost");
    };
    assert_eq!(
        changes
            .iter()
            .map(|change| &**change.key.id())
            .collect::<Vec<_>>(),
        ["2"]
    );

    let config = Config {
        seed: [3, 4],
        ..Config::default()
    };
    let other = RegistryHandle::new(config, Arc::new(Stopped::default()), Arc::new(|_: &Event| {}));
    other.open(1, None);
    register(&other, "1");
    assert_eq!(
        other.changes(start, 10),
        Changes::Lost { current: 1 },
        "another start, another seed"
    );
    let ahead = handle.cursor(3);
    assert_eq!(handle.changes(ahead, 10), Changes::Lost { current: 2 });
}

#[test]
fn a_panicking_sink_leaves_the_registry_usable() {
    let armed = Arc::new(AtomicBool::new(false));
    let sink = {
        let armed = Arc::clone(&armed);
        move |_: &Event| assert!(!armed.swap(false, Ordering::SeqCst), "the sink fails once")
    };
    let handle = RegistryHandle::new(Config::default(), Arc::new(Stopped::default()), Arc::new(sink));
    handle.open(1, None);
    register(&handle, "1");
    assert_eq!(handle.snapshot().len(), 1);

    let mut subscription = handle.subscribe();
    let woken = Arc::new(Woken(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    assert!(subscription.poll_changed(&mut context).is_pending());
    armed.store(true, Ordering::SeqCst);
    let outcome = catch_unwind(AssertUnwindSafe(|| register(&handle, "2")));
    assert!(outcome.is_err());
    assert_eq!(handle.stats().instances, 2);
    assert_eq!(handle.snapshot().len(), 2, "what was done is seen");
    assert_eq!(woken.0.load(Ordering::SeqCst), 1, "who waits for it is woken");
    register(&handle, "3");
    assert_eq!(handle.snapshot().len(), 3);
}

/// Whoever takes the lock reads the clock, so a clock that counts tells how often it was taken.
#[test]
fn the_renewals_of_a_batch_are_taken_a_portion_at_a_time_and_answered_in_order() {
    let clock = Arc::new(Stopped::default());
    let handle = opened(&clock);
    for number in (0..250).step_by(2) {
        register(&handle, &number.to_string());
    }
    clock.millis.store(7_000, Ordering::SeqCst);
    let ids: Vec<String> = (0..250).map(|number| number.to_string()).collect();
    let renewals = ids.iter().map(|id| Renewal {
        key: KeyRef::new("a", id),
        last_dirty: Some(1),
        overridden: None,
    });
    let before = clock.reads.load(Ordering::SeqCst);
    let mut outcomes = Vec::new();
    handle.renew_all(&Origin::Peer(PeerId(Arc::from("peer"))), renewals, |renewed| {
        // The lock is not held: this would wait for ever.
        outcomes.push((handle.stats().instances, renewed));
    });
    let reads = clock.reads.load(Ordering::SeqCst) - before - outcomes.len();
    assert_eq!(reads, 4, "250 in portions of 64");
    for (number, (_, renewed)) in outcomes.iter().enumerate() {
        let expected = if number % 2 == 0 {
            Renewed::Ok
        } else {
            Renewed::Missing
        };
        assert_eq!(*renewed, expected, "{number}");
    }
    assert_eq!(handle.age(&InstanceKey::new("A", "248")), Some(Duration::ZERO));
}

#[test]
fn what_a_peer_offers_is_taken_over_a_little_at_a_time() {
    let clock = Arc::new(Stopped::default());
    let (one, other) = (opened(&clock), opened(&clock));
    for number in 0..300 {
        register(&one, &number.to_string());
    }
    clock.millis.store(5_000, Ordering::SeqCst);
    let peer = || Origin::Peer(PeerId(Arc::from("peer")));
    let step = Step::Copy { after: None };
    let asked = clock.now().mono;
    let answer = one.repair_answer(peer(), other.repair_request(&step));
    clock.millis.store(7_000, Ordering::SeqCst);
    let before = clock.reads.load(Ordering::SeqCst);
    let learned = other.learn(peer(), asked, &step, answer);
    assert!(
        matches!(
            learned,
            Learned::Copied {
                received: 300,
                next: None,
                ..
            }
        ),
        "{learned:?}"
    );
    assert!(
        clock.reads.load(Ordering::SeqCst) - before >= 4,
        "in several portions"
    );
    assert_eq!(other.stats().instances, 300);
    let key = InstanceKey::new("A", "7");
    assert_eq!(other.age(&key), Some(Duration::from_secs(7)), "as old as it is");

    // The other way round, in an exchange: what is pushed is taken over by whoever answers.
    for number in 300..600 {
        register(&other, &number.to_string());
    }
    let keys = (0..600).map(|number| InstanceKey::new("A", &number.to_string()));
    let step = Step::Exchange {
        pull: Vec::new(),
        push: keys.collect(),
    };
    let request = other.repair_request(&step);
    let before = clock.reads.load(Ordering::SeqCst);
    let answer = one.repair_answer(peer(), request);
    assert!(
        clock.reads.load(Ordering::SeqCst) - before >= 9,
        "in several portions"
    );
    assert_eq!(answer, RepairAnswer::Exchange { offers: Vec::new() });
    assert_eq!(one.stats().instances, 600);
    let step = swapped(step);
    let answer = one.repair_answer(peer(), other.repair_request(&step));
    let asked = clock.now().mono;
    let exchanged = Learned::Exchanged {
        adopted: 0,
        received: 600,
        sent: 0,
    };
    assert_eq!(
        other.learn(peer(), asked, &step, answer),
        exchanged,
        "all of it is there"
    );
}

/// What was to be pushed is to be pulled, and the other way round.
fn swapped(step: Step) -> Step {
    match step {
        Step::Exchange { pull, push } => Step::Exchange {
            pull: push,
            push: pull,
        },
        other => other,
    }
}

#[test]
fn a_refusal_by_the_handle_is_remembered() {
    let handle = opened(&Arc::new(Stopped::default()));
    let key = InstanceKey::new("A", "1");
    handle.refuse(&key, 5);
    let peer = Origin::Peer(PeerId(Arc::from("peer")));
    assert_eq!(handle.renew(peer, &key, Some(5), None), Renewed::Ok);
    assert_eq!(handle.stats().refused, 1);
}
