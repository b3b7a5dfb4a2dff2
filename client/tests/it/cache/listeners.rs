//! Listeners and their guards.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use eureka_registry_core::Wall;
use parking_lot::Mutex;

use super::{at, publisher, server, snapshot, up};

#[test]
fn hears_of_every_change_until_its_guard_goes() {
    let publisher = publisher();
    let cache = publisher.cache();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let guard = cache.on_change({
        let (heard, cache) = (Arc::clone(&heard), cache.clone());
        move |update| {
            assert!(
                Arc::ptr_eq(&cache.view(), &update.view),
                "what it is told is shown already"
            );
            let keys: Vec<_> = update
                .differences
                .iter()
                .map(|found| found.key.to_string())
                .collect();
            heard.lock().push(keys.join(" "));
        }
    });
    publisher.publish(at(0), snapshot([up("A", "1"), up("B", "1")]), server());
    let mut renewed = up("A", "1");
    renewed.lease.renewed = Wall(1_800_000_000_000);
    publisher.publish(at(1), snapshot([renewed, up("B", "1")]), server());
    publisher.publish(at(2), snapshot([up("B", "1")]), server());
    drop(guard);
    publisher.publish(at(3), snapshot([]), server());
    assert_eq!(*heard.lock(), ["A/1 B/1", "A/1"]);
    assert_eq!(Arc::strong_count(&heard), 1, "nothing of it is kept");
}

#[test]
fn one_that_panics_is_called_again_and_spoils_nothing() {
    let publisher = publisher();
    let cache = publisher.cache();
    let calls = Arc::new(AtomicUsize::new(0));
    let count = |panics: bool| {
        let calls = Arc::clone(&calls);
        move |_: &_| {
            calls.fetch_add(1, Ordering::Relaxed);
            assert!(!panics, "on purpose");
        }
    };
    let _guards = (cache.on_change(count(true)), cache.on_change(count(false)));
    publisher.publish(at(0), snapshot([up("A", "1")]), server());
    publisher.publish(at(1), snapshot([]), server());
    assert_eq!(calls.load(Ordering::Relaxed), 4);
    assert!(cache.view().snapshot().is_empty());
}

#[test]
fn may_end_itself_and_others_while_it_is_called() {
    let publisher = publisher();
    let cache = publisher.cache();
    let guards = Arc::new(Mutex::new(Vec::new()));
    let calls = Arc::new(AtomicUsize::new(0));
    for _ in 0..2 {
        let (held, calls) = (Arc::clone(&guards), Arc::clone(&calls));
        let guard = cache.on_change(move |_| {
            calls.fetch_add(1, Ordering::Relaxed);
            let gone: Vec<_> = held.lock().drain(..).collect();
            drop(gone);
        });
        guards.lock().push(guard);
    }
    publisher.publish(at(0), snapshot([up("A", "1")]), server());
    publisher.publish(at(1), snapshot([]), server());
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}
