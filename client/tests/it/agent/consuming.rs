//! Lists and deltas: which one when, and what becomes of what is held.

use std::time::Duration;

use eureka_client::Regions;
use eureka_client::agent::FetchKind;
use eureka_client::call::Scope;
use eureka_registry_core::{Instance, Status};

use super::world::{Mood, World, consume, reading, view};

fn two(models: &mut [super::world::Model]) {
    for model in models {
        model.add("orders", "a");
        model.add("orders", "b");
    }
}

#[test]
fn a_full_list_first_and_then_deltas() {
    let mut world = World::new(1, reading(consume()), two);
    world.run(100);
    assert_eq!(world.held(), ["ORDERS/a UP", "ORDERS/b UP"]);
    assert_eq!(
        world.taken_events(),
        ["polling s1 (Configured)", "fetched Full s1"]
    );
    world.models[0].add("payments", "c");
    world.models[0].remove("orders", "a");
    world.models[0].remove("orders", "b");
    world.run(30_000);
    assert_eq!(
        world.held(),
        ["PAYMENTS/c UP"],
        "new applications appear, empty ones vanish"
    );
    assert_eq!(world.view.as_ref().expect("a view").application_count(), 1);
    world.run(600_000);
    let gaps = world.gaps("delta");
    assert!(gaps.len() >= 19, "{gaps:?}");
    assert!(gaps.iter().all(|gap| (25_500..=30_000).contains(gap)), "{gaps:?}");
    assert_eq!(world.agent.stats().full, 1);
}

#[test]
fn a_full_list_again_every_quarter_of_an_hour() {
    let mut world = World::new(1, reading(consume()), two);
    world.run(4 * 3_600_000);
    let gaps = world.gaps("full");
    assert!((15..=19).contains(&gaps.len()), "{gaps:?}");
    assert!(gaps.iter().all(|gap| *gap <= 930_000), "{gaps:?}");
}

#[test]
fn another_hash_means_a_full_list_at_once_and_the_delta_is_not_shown() {
    let mut world = World::new(1, reading(consume()), two);
    world.run(100);
    // Something that no delta ever told.
    world.models[0].add("orders", "secret");
    world.models[0].log.clear();
    world.models[0].add("orders", "told");
    let before = world.kinds.len();
    world.run(30_000);
    assert_eq!(world.held().len(), 4);
    assert_eq!(
        world.kinds[before..],
        [FetchKind::Full],
        "only the full list was shown"
    );
    let stats = world.agent.stats();
    assert_eq!((stats.hash_mismatches, stats.full, stats.delta), (1, 2, 0));
}

#[test]
fn a_mismatch_whose_full_list_fails_changes_nothing() {
    let mut world = World::new(1, reading(consume()), two);
    world.run(100);
    world.models[0].hash = Some("UP_77_");
    world.models[0].add("orders", "told");
    // The delta is answered, then the server goes.
    while !world.sent.last().is_some_and(|line| line.contains("delta")) {
        world.run(1);
    }
    world.models[0].mood = Mood::Gone;
    world.run(20_000);
    assert_eq!(world.held(), ["ORDERS/a UP", "ORDERS/b UP"]);
    assert!(world.agent.stats().fetches_failed > 0);
    world.models[0].mood = Mood::Answers;
    world.models[0].hash = None;
    world.run(31_000);
    assert_eq!(world.held().len(), 3);
}

#[test]
fn a_delta_that_does_not_fit_and_leaves_nobody_makes_no_empty_list_believed() {
    let mut world = World::new(1, reading(consume()), two);
    world.run(100);
    world.models[0].hash = Some("UP_77_");
    for id in ["a", "b"] {
        assert!(world.models[0].remove("orders", id));
    }
    world.run(60_000);
    let stats = world.agent.stats();
    assert!(stats.hash_mismatches > 0 && stats.held_empty > 0, "{stats:?}");
    assert_eq!(world.held(), ["ORDERS/a UP", "ORDERS/b UP"]);
}

#[test]
fn a_hash_that_never_fits_costs_one_full_list_an_interval() {
    let mut world = World::new(1, reading(consume()), |models| {
        two(models);
        models[0].hash = Some("UP_77_");
    });
    world.run(3_000_000);
    let stats = world.agent.stats();
    assert!((90..=120).contains(&stats.full), "{stats:?}");
    assert!(world.gaps("full").iter().all(|gap| *gap >= 25_000));
}

#[test]
fn instances_that_cannot_be_understood_make_the_hash_worthless() {
    let mut world = World::new(1, reading(consume()), |models| {
        two(models);
        models[0].left_out = 1;
        models[0].hash = Some("UP_3_");
    });
    world.run(100);
    world.models[0].left_out = 0;
    world.run(100_000);
    let stats = world.agent.stats();
    assert_eq!((stats.full, stats.hash_mismatches), (1, 0));
    assert!(stats.delta >= 3 && stats.hash_skipped == stats.delta, "{stats:?}");
}

#[test]
fn a_gap_longer_than_the_retention_of_deltas_means_a_full_list() {
    for (outage, expected) in [(100_000, 1), (181_000, 2)] {
        let mut world = World::new(1, reading(consume()), two);
        world.run(100);
        world.models[0].mood = Mood::Gone;
        world.run(outage);
        world.models[0].mood = Mood::Answers;
        world.run(40_000);
        assert_eq!(world.agent.stats().full, expected, "after {outage} ms");
    }
}

#[test]
fn deltas_that_are_switched_off_mean_full_lists() {
    for status in [403, 404] {
        let mut world = World::new(1, reading(consume()), |models| {
            two(models);
            models[0].delta_status = Some(status);
        });
        world.run(600_000);
        let stats = world.agent.stats();
        assert_eq!((stats.delta, stats.fetches_failed), (0, 0));
        assert!(stats.full >= 20);
        let asked = world.sent.iter().filter(|line| line.contains("delta")).count();
        assert_eq!(asked, 1, "it is remembered");
    }
    let mut config = consume();
    config.delta = false;
    let mut world = World::new(1, reading(config), two);
    world.run(600_000);
    assert!(world.sent.iter().all(|line| line.ends_with("full")));
}

#[test]
fn one_virtual_address_is_read_by_full_lists() {
    let mut config = consume();
    config.scope = Scope::Vip("pay".into());
    let mut world = World::new(1, reading(config), two);
    world.run(100_000);
    assert!(
        world.sent.iter().all(|line| line.ends_with("full vip=pay")),
        "{:?}",
        world.sent
    );
    assert!(world.sent.len() >= 4);
}

#[test]
fn regions_are_named_in_every_read() {
    for (regions, query) in [
        (Regions::Local, ""),
        (Regions::Named(vec!["eu".into(), "us".into()]), " regions=eu,us"),
        (Regions::Own, " regions=none-but-your-own"),
    ] {
        let mut config = consume();
        config.regions = regions;
        let mut world = World::new(1, reading(config), two);
        world.run(40_000);
        let sent = world.taken_sent();
        assert_eq!(sent[..2], [format!("full{query}"), format!("delta{query}")]);
    }
}

#[test]
fn a_tag_is_shown_to_the_server_that_gave_it_and_only_while_it_fits() {
    let mut config = consume();
    config.delta = false;
    let mut world = World::new(2, reading(config), |models| {
        two(models);
        models.iter_mut().for_each(|model| model.tags = true);
    });
    world.run(40_000);
    let host = world.last_host();
    assert_eq!(world.taken_sent(), ["full", "full held=W/1.2"]);
    assert_eq!(world.kinds, [FetchKind::Full, FetchKind::Unchanged]);
    assert_eq!(world.agent.stats().unchanged, 1);
    world.model(&host).mood = Mood::Gone;
    world.run(30_000);
    assert_eq!(world.taken_sent(), ["full held=W/1.2", "full"]);
}

#[test]
fn failures_leave_the_view_and_go_from_server_to_server() {
    let mut world = World::new(3, reading(consume()), two);
    world.run(100);
    let first = world.last_host();
    world.model(&first).mood = Mood::Refuses(502);
    world.sent.clear();
    world.run(31_000);
    let second = world.last_host();
    assert_ne!(second, first);
    assert_eq!(
        world.taken_sent(),
        ["delta", "full"],
        "another server is read anew"
    );
    for model in &mut world.models {
        model.mood = Mood::Silent;
    }
    world.run(600_000);
    assert_eq!(world.held(), ["ORDERS/a UP", "ORDERS/b UP"]);
    let fetched = world.kinds.len();
    // None of them is forgotten, and the wait is never longer than an interval.
    world.model(&second).mood = Mood::Answers;
    world.run(60_000);
    assert!(world.kinds.len() > fetched);
}

#[test]
fn an_empty_list_is_not_believed_before_it_was_confirmed_for_a_while() {
    let mut world = World::new(1, reading(consume()), two);
    world.run(1_000);
    world.models[0].restart();
    world.run(100_000);
    assert_eq!(world.held().len(), 2);
    let stats = world.agent.stats();
    assert!(
        stats.held_empty >= 2 && stats.fetches_failed == stats.held_empty,
        "{stats:?}"
    );
    world.run(60_000);
    assert!(world.held().is_empty(), "after 90 s it is");
    let at = *world.fetched_at.last().expect("fetched");
    assert!(at >= 90_000 + 25_000, "{at}");
}

#[test]
fn another_server_may_know_better_than_one_that_was_restarted() {
    let mut world = World::new(2, reading(consume()), two);
    world.run(1_000);
    let host = world.last_host();
    world.model(&host).restart();
    world.run(31_000);
    assert_ne!(world.last_host(), host);
    assert_eq!(world.held().len(), 2);
    assert_eq!(world.agent.stats().held_empty, 1);
    assert!(
        world.events.iter().any(|line| line.contains("empty")),
        "{:?}",
        world.events
    );
}

#[test]
fn a_list_that_is_not_empty_begins_the_wait_anew() {
    let mut world = World::new(1, reading(consume()), two);
    world.run(1_000);
    world.models[0].restart();
    world.run(80_000);
    assert!(world.agent.stats().held_empty > 0);
    world.models[0].add("orders", "a");
    world.run(31_000);
    assert_eq!(world.held(), ["ORDERS/a UP"]);
    world.models[0].restart();
    world.run(80_000);
    assert_eq!(world.held(), ["ORDERS/a UP"], "the first wait does not count");
}

#[test]
fn a_delta_of_somebody_begins_the_wait_anew_too() {
    let mut world = World::new(2, reading(consume()), two);
    world.run(1_000);
    let (host, other) = match world.last_host() {
        host if host == world.models[0].server.host() => (0, 1),
        _ => (1, 0),
    };
    world.models[other].restart();
    for _ in 0..2 {
        // For a moment nobody but the one that was restarted answers; then all is as before, with deltas only.
        let before = world.agent.stats();
        world.models[host].mood = Mood::Refuses(500);
        world.run(31_000);
        world.models[host].mood = Mood::Answers;
        world.run(150_000);
        let after = world.agent.stats();
        assert!(after.held_empty > before.held_empty && after.delta > before.delta);
        assert_eq!(after.full, 1, "{after:?}");
        assert_eq!(world.held().len(), 2);
    }
}

#[test]
fn an_empty_registry_is_a_view_too() {
    let mut world = World::new(1, reading(consume()), |_| {});
    world.run(1_000);
    assert_eq!(world.kinds, [FetchKind::Full]);
    assert!(world.view.as_ref().expect("a view").is_empty());
}

#[test]
fn what_was_known_before_is_held_against_empty_lists_and_never_the_base_of_a_delta() {
    let mut world = World::new(1, reading(consume()), |models| models[0].mood = Mood::Gone);
    let known = view(Instance::new("orders", "old", "h", "10.0.0.1"));
    world.agent.begin_with(world.now, vec![known.clone()]);
    world.run(10_000);
    world.models[0].mood = Mood::Answers;
    world.run(30_000);
    assert!(world.kinds.is_empty(), "the empty list is not believed yet");
    world.models[0].add("orders", "new");
    world.run(60_000);
    assert_eq!(world.kinds[0], FetchKind::Full);
    assert_eq!(world.held(), ["ORDERS/new UP"]);
    world.agent.begin_with(world.now, vec![known]);
    world.run(60_000);
    assert_eq!(world.held(), ["ORDERS/new UP"], "too late to matter");
}

#[test]
fn a_time_of_renewal_is_no_change() {
    let mut config = consume();
    config.delta = false;
    let mut world = World::new(1, reading(config), two);
    world.run(100);
    let before = world.view.clone().expect("a view");
    for view in world.models[0].instances.values_mut() {
        view.lease.renewed.0 += 30_000;
    }
    world.run(30_000);
    let after = world.view.clone().expect("a view");
    assert_eq!(world.kinds.len(), 2);
    assert!(after.differences(&before).is_empty());
    let mut down = Instance::new("orders", "a", "a", "10.0.0.9");
    down.status = Status::Down;
    world.models[0].put(down);
    world.run(30_000);
    let later = world.view.clone().expect("a view");
    assert_eq!(later.differences(&after).len(), 1);
}

#[test]
fn the_owner_can_ask_for_a_read_but_not_for_a_storm_of_them() {
    let mut world = World::new(1, reading(consume()), two);
    world.run(5_000);
    world.agent.refresh(world.now);
    world.run(20);
    assert_eq!(world.kinds.len(), 2);
    for _ in 0..100 {
        world.agent.refresh(world.now);
        world.run(20);
    }
    assert_eq!(world.kinds.len(), 4, "two more in two seconds");
}

#[test]
fn without_servers_nothing_happens_until_there_are_some() {
    let mut config = reading(consume());
    config.provide = super::world::provide().provide;
    let mut world = World::new(2, config, |_| {});
    world.run(1_000);
    let servers: Vec<_> = world.models.iter().map(|model| model.server.clone()).collect();
    world.agent.set_servers(world.now, Vec::new());
    world.sent.clear();
    world.events.clear();
    world.run(300_000);
    assert!(world.sent.is_empty());
    assert_eq!(world.taken_events(), ["no servers"], "told once");
    world.agent.set_servers(world.now, servers);
    world.run(100);
    let sent = world.taken_sent();
    assert!(sent.iter().any(|line| line.starts_with("renew")), "{sent:?}");
    assert!(
        sent.iter()
            .any(|line| line.starts_with("full") || line.starts_with("delta")),
        "{sent:?}"
    );
    world.agent.set_servers(world.now, Vec::new());
    world.run(60_000);
    assert_eq!(
        world.taken_events().last().map(String::as_str),
        Some("no servers")
    );
}

#[test]
fn small_intervals_and_long_waits_are_kept_apart() {
    let mut config = consume();
    config.interval = Duration::ZERO;
    config.full_interval = Duration::ZERO;
    let mut world = World::new(1, reading(config), two);
    world.run(10_000);
    assert!(world.sent.len() <= 1_300, "{}", world.sent.len());
}
