//! Each line of the rules of start-up.

use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{InstanceKey, Mono, PeerId, Settle};

use super::{Bootstrap, Opening};
use crate::config::Config;
use crate::message::Pulled;

const SETTLE: Duration = Duration::from_secs(40);
const WAIT: Duration = Duration::from_secs(300);

fn peer(name: &str) -> PeerId {
    PeerId(Arc::from(name))
}

fn key(id: &str) -> InstanceKey {
    InstanceKey::new("APP", id)
}

fn start(peers: &[&str]) -> Bootstrap {
    let mut bootstrap = Bootstrap::new(Mono(0), &Config::default());
    let peers: Vec<_> = peers.iter().map(|name| peer(name)).collect();
    bootstrap.set_peers(Mono(0), peers.iter());
    bootstrap
}

fn at(secs: u64) -> Mono {
    Mono(secs * 1_000)
}

/// A whole copy in one page.
fn copied(bootstrap: &mut Bootstrap, name: &str, instances: usize) {
    bootstrap.copied(Mono(0), &peer(name), instances, None, (instances, false));
}

fn opened(synced: usize) -> Option<Opening> {
    Some(Opening { synced, settle: None })
}

fn settling(synced: usize, at_least: Duration, at_most: Duration) -> Option<Opening> {
    Some(Opening {
        synced,
        settle: Some(Settle {
            at_least,
            quiet: Duration::from_secs(10),
            at_most,
        }),
    })
}

#[test]
fn without_peers_it_opens_at_once() {
    let mut bootstrap = start(&[]);
    assert_eq!(bootstrap.decide(Mono(0)), opened(0));
    assert_eq!(bootstrap.decide(at(1_000)), None, "said once");
    assert!(bootstrap.is_open());
}

#[test]
fn before_the_peers_are_known_it_does_not_open_until_the_wait_is_over() {
    let mut bootstrap = Bootstrap::new(Mono(0), &Config::default());
    assert_eq!(bootstrap.decide(at(299)), None);
    assert_eq!(bootstrap.poll_timeout(), Some(at(300)));
    assert_eq!(bootstrap.decide(at(300)), opened(0));
}

#[test]
fn this_node_behind_a_url_does_not_count() {
    let mut bootstrap = start(&["a", "b"]);
    bootstrap.is_own(&peer("a"));
    assert_eq!(bootstrap.decide(Mono(0)), None, "there is another");
    bootstrap.is_own(&peer("b"));
    assert_eq!(bootstrap.decide(Mono(0)), opened(0));
}

#[test]
fn a_url_that_led_here_may_lead_elsewhere_later() {
    let mut bootstrap = start(&["a", "b"]);
    bootstrap.is_own(&peer("a"));
    bootstrap.is_other(at(3), &peer("a"));
    assert_eq!(bootstrap.due(&peer("a")), Some(at(3)), "it is asked then");
    copied(&mut bootstrap, "b", 5);
    assert_eq!(bootstrap.decide(at(3)), None);
}

#[test]
fn a_peer_that_hangs_or_never_ends_does_not_keep_a_copy_from_its_readers() {
    let mut bootstrap = start(&["a", "b"]);
    copied(&mut bootstrap, "b", 5);
    assert_eq!(bootstrap.decide(at(2)), None);
    assert_eq!(bootstrap.poll_timeout(), Some(at(32)));
    // Page after page, and always more.
    bootstrap.copied(at(31), &peer("a"), 10, Some(key("x")), (1_000_000, false));
    assert_eq!(bootstrap.decide(at(31)), None);
    assert_eq!(bootstrap.decide(at(32)), opened(5));
}

#[test]
fn a_copy_opens_when_all_peers_are_merged() {
    let mut bootstrap = start(&["a", "b"]);
    copied(&mut bootstrap, "a", 10);
    assert_eq!(bootstrap.decide(at(1)), None, "b is not");
    assert_eq!(bootstrap.due(&peer("a")), None, "asked once");
    assert_eq!(bootstrap.due(&peer("b")), Some(Mono(0)));
    copied(&mut bootstrap, "b", 12);
    assert_eq!(
        bootstrap.decide(at(2)),
        opened(12),
        "of the same instances, most likely"
    );
}

#[test]
fn a_peer_that_cannot_be_reached_delays_a_copy_by_one_attempt() {
    let mut bootstrap = start(&["a", "b"]);
    copied(&mut bootstrap, "a", 10);
    assert_eq!(bootstrap.decide(at(1)), None);
    bootstrap.failed(at(2), &peer("b"), None);
    assert_eq!(bootstrap.decide(at(2)), opened(10));
}

#[test]
fn a_peer_that_answers_again_is_waited_for() {
    let mut bootstrap = start(&["a", "b"]);
    bootstrap.failed(at(1), &peer("b"), None);
    bootstrap.reached(&peer("b"));
    copied(&mut bootstrap, "a", 10);
    assert_eq!(bootstrap.decide(at(7)), None, "it is being copied from");
    bootstrap.failed(at(8), &peer("b"), None);
    assert_eq!(bootstrap.decide(at(8)), opened(10));
}

#[test]
fn all_empty_settles() {
    let mut bootstrap = start(&["a", "b"]);
    copied(&mut bootstrap, "a", 0);
    assert_eq!(bootstrap.decide(at(1)), None);
    bootstrap.pulled(
        at(2),
        &peer("b"),
        Pulled {
            instances: 0,
            checked: true,
            held: false,
        },
    );
    assert_eq!(
        bootstrap.decide(at(10)),
        settling(0, SETTLE, Duration::from_secs(290))
    );
}

#[test]
fn all_holding_settles_whatever_they_have_already() {
    let mut bootstrap = start(&["a", "b"]);
    bootstrap.copied(Mono(0), &peer("a"), 7, None, (7, true));
    bootstrap.pulled(
        Mono(0),
        &peer("b"),
        Pulled {
            instances: 0,
            checked: false,
            held: true,
        },
    );
    assert_eq!(bootstrap.decide(Mono(0)), settling(7, SETTLE, WAIT));
}

#[test]
fn a_copy_beside_a_holding_peer_opens() {
    let mut bootstrap = start(&["a", "b"]);
    bootstrap.copied(Mono(0), &peer("a"), 3, None, (3, true));
    copied(&mut bootstrap, "b", 10);
    assert_eq!(bootstrap.decide(Mono(0)), opened(10));
}

#[test]
fn nothing_obtained_and_one_unreachable_waits_and_tries_again() {
    let mut bootstrap = start(&["a", "b"]);
    copied(&mut bootstrap, "a", 0);
    bootstrap.failed(at(1), &peer("b"), None);
    assert_eq!(bootstrap.due(&peer("b")), Some(at(6)), "one retry interval later");
    assert_eq!(
        bootstrap.decide(at(60)),
        None,
        "an empty list would drop the caches of clients"
    );
    bootstrap.failed(at(6), &peer("b"), Some(Duration::from_secs(20)));
    assert_eq!(bootstrap.due(&peer("b")), Some(at(26)), "as it asked");
    assert_eq!(bootstrap.decide(at(299)), None);
    assert_eq!(bootstrap.poll_timeout(), Some(at(300)));
    assert_eq!(bootstrap.decide(at(300)), opened(0));
}

#[test]
fn the_unreachable_one_comes_back() {
    let mut bootstrap = start(&["a", "b"]);
    copied(&mut bootstrap, "a", 0);
    bootstrap.failed(at(1), &peer("b"), None);
    copied(&mut bootstrap, "b", 4);
    assert_eq!(bootstrap.decide(at(6)), opened(4));
}

#[test]
fn holding_peers_and_an_unreachable_one_wait() {
    let mut bootstrap = start(&["a", "b"]);
    bootstrap.copied(Mono(0), &peer("a"), 3, None, (3, true));
    bootstrap.failed(at(1), &peer("b"), None);
    assert_eq!(
        bootstrap.decide(at(299)),
        None,
        "nobody had a copy that can be trusted"
    );
    assert_eq!(bootstrap.decide(at(300)), opened(3));
}

#[test]
fn a_copy_that_does_not_fit_is_tried_again() {
    let mut bootstrap = start(&["a"]);
    let unfit = Pulled {
        instances: 9,
        checked: false,
        held: false,
    };
    bootstrap.pulled(at(1), &peer("a"), unfit);
    assert_eq!(bootstrap.due(&peer("a")), Some(at(6)));
    assert_eq!(bootstrap.decide(at(1)), None);
    bootstrap.pulled(
        at(6),
        &peer("a"),
        Pulled {
            checked: true,
            ..unfit
        },
    );
    assert_eq!(bootstrap.decide(at(6)), opened(9));
}

#[test]
fn a_peer_whose_copies_never_fit_is_not_checked_but_does_not_hold_up_others() {
    let mut bootstrap = start(&["a", "b"]);
    copied(&mut bootstrap, "b", 10);
    let unfit = Pulled {
        instances: 9,
        checked: false,
        held: false,
    };
    bootstrap.pulled(at(1), &peer("a"), unfit);
    bootstrap.pulled(at(2), &peer("a"), unfit);
    assert_eq!(bootstrap.decide(at(2)), None);
    bootstrap.pulled(at(3), &peer("a"), unfit);
    assert_eq!(bootstrap.decide(at(3)), opened(10));

    let mut bootstrap = start(&["a"]);
    for second in 1..10 {
        bootstrap.pulled(at(second), &peer("a"), unfit);
    }
    assert_eq!(bootstrap.decide(at(10)), None, "alone it is no copy");
    assert!(bootstrap.due(&peer("a")).is_some(), "and is tried further");
}

#[test]
fn pages_until_the_last() {
    let mut bootstrap = start(&["a"]);
    bootstrap.copied(at(1), &peer("a"), 1_000, Some(key("m")), (1_500, false));
    assert_eq!(bootstrap.after(&peer("a")), Some(key("m")));
    assert_eq!(bootstrap.decide(at(1)), None);
    bootstrap.failed(at(2), &peer("a"), None);
    assert_eq!(
        bootstrap.after(&peer("a")),
        Some(key("m")),
        "a page that failed is asked for again"
    );
    bootstrap.copied(at(7), &peer("a"), 500, None, (1_500, false));
    assert_eq!(bootstrap.decide(at(7)), opened(1_500));
}

#[test]
fn pages_must_fit_the_total() {
    // (pages, totals, whether it fits)
    for (pages, totals, fits) in [
        (vec![10], vec![10], true),
        (vec![9], vec![10], false),
        (vec![1_000, 500], vec![1_500, 1_500], true),
        (vec![1_000, 485], vec![1_500, 1_500], true),
        (vec![1_000, 484], vec![1_500, 1_500], false),
        (vec![1_000, 200], vec![1_500, 1_200], true),
        (vec![1_000, 200], vec![1_500, 1_500], false),
        (vec![1_000, 900], vec![1_500, 1_900], true),
    ] {
        let mut bootstrap = start(&["a"]);
        for (index, (page, total)) in pages.iter().zip(&totals).enumerate() {
            let next = (index + 1 < pages.len()).then(|| key("m"));
            bootstrap.copied(at(1), &peer("a"), *page, next, (*total, false));
        }
        assert_eq!(bootstrap.decide(at(1)).is_some(), fits, "{pages:?} of {totals:?}");
        if !fits {
            assert_eq!(bootstrap.due(&peer("a")), Some(at(6)));
            assert_eq!(bootstrap.after(&peer("a")), None, "from the beginning");
        }
    }
}

#[test]
fn peers_may_come_and_go_while_it_copies() {
    let mut bootstrap = start(&["a", "b"]);
    copied(&mut bootstrap, "a", 10);
    let peers = [peer("a"), peer("c")];
    bootstrap.set_peers(at(1), peers.iter());
    assert_eq!(bootstrap.decide(at(1)), None, "c is new");
    bootstrap.failed(at(2), &peer("c"), None);
    assert_eq!(
        bootstrap.decide(at(2)),
        opened(10),
        "what was copied is remembered, b is gone"
    );
    bootstrap.set_peers(at(3), peers.iter());
    assert_eq!(bootstrap.due(&peer("c")), None, "there is no second start-up");
}

#[test]
fn a_copy_without_end_holds_nobody_up() {
    let mut bootstrap = start(&["a", "b"]);
    copied(&mut bootstrap, "a", 10);
    let mut pages = 0;
    while bootstrap.decide(at(pages)).is_none() {
        let next = Some(key(&format!("{pages:05}")));
        bootstrap.copied(at(pages), &peer("b"), 999, next, (40, false));
        pages += 1;
        assert!(pages < 100, "it is copied for ever");
    }
    assert_eq!(pages, 6, "two pages each of three attempts");
}
