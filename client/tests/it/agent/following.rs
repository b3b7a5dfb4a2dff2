//! Feeds: followed where there is one, polled where there is none or where it is no use.

use eureka_client::agent::{AgentConfig, FetchKind};
use eureka_client::call::Scope;
use eureka_client::{Consume, Regions};
use eureka_registry_core::Instance;

use super::world::{Model, Mood, World, reading};

fn follow() -> AgentConfig {
    reading(Consume::default())
}

fn one(models: &mut [Model]) {
    for model in models {
        model.add("orders", "a");
    }
}

#[test]
fn the_cursor_comes_before_the_list_and_then_changes_come_as_they_happen() {
    let mut world = World::new(1, follow(), one);
    world.run(1_000);
    assert_eq!(world.taken_sent(), ["changes from now", "full", "changes 1.1"]);
    assert_eq!(world.taken_events(), ["following s1", "fetched Full s1"]);
    world.models[0].add("orders", "b");
    world.models[0].remove("orders", "a");
    world.run(2);
    assert_eq!(world.held(), ["ORDERS/b UP"], "one answer, applied whole");
    assert_eq!(world.kinds, [FetchKind::Full, FetchKind::Feed]);
    assert_eq!(world.taken_sent(), ["changes 1.3"]);
    world.run(60_000);
    assert_eq!(
        world.taken_sent(),
        ["changes 1.3", "changes 1.3"],
        "each waits for 25 s"
    );
    assert_eq!(world.agent.stats().feed, 3);
}

#[test]
fn what_happens_between_cursor_and_list_is_not_lost() {
    let mut world = World::new(1, follow(), one);
    world.run(5);
    world.models[0].add("orders", "b");
    world.run(10);
    world.models[0].add("orders", "c");
    world.run(1_000);
    assert_eq!(world.held().len(), 3);
}

#[test]
fn servers_without_a_feed_are_polled_and_asked_again_with_the_full_lists() {
    let mut world = World::new(1, follow(), |models| {
        one(models);
        models[0].feed = false;
    });
    world.run(100_000);
    let sent = world.taken_sent();
    assert_eq!(sent[..3], ["changes from now", "full", "delta"]);
    assert!(sent[3..].iter().all(|line| line == "delta"));
    assert_eq!(world.taken_events()[0], "polling s1 (NoFeed)");
    world.models[0].feed = true;
    world.run(1_000_000);
    assert!(
        world.events.iter().any(|line| line.ends_with("following s1")),
        "after an upgrade"
    );
}

#[test]
fn whoever_hides_the_feed_behind_another_status_is_polled_if_it_serves_lists() {
    for status in [400, 401, 403, 405, 500, 501] {
        let mut world = World::new(1, follow(), |models| {
            one(models);
            models[0].feed_status = Some(status);
        });
        world.run(1_000);
        assert_eq!(world.taken_sent(), ["changes from now", "full"], "{status}");
        assert_eq!(world.held().len(), 1);
    }
}

#[test]
fn a_server_that_holds_its_lists_back_is_left_for_another_one() {
    let mut world = World::new(2, follow(), |models| {
        one(models);
        models[0].mood = Mood::HoldsReads;
    });
    world.run(5_000);
    assert_eq!(world.last_host(), "s2");
    assert!(world.taken_events().contains(&"following s2".to_owned()));
}

#[test]
fn feeds_that_are_refused_everywhere_do_not_keep_lists_away() {
    let mut world = World::new(2, follow(), |models| {
        one(models);
        models.iter_mut().for_each(|model| model.feed_status = Some(503));
    });
    world.run(10_000);
    assert_eq!(world.held().len(), 1);
    world.run(120_000);
    assert!(world.agent.stats().delta >= 3, "{:?}", world.sent);
    assert!(world.events.iter().any(|line| line.contains("(FeedFailed)")));
    // Minutes later it is asked for again.
    world.models.iter_mut().for_each(|model| model.feed_status = None);
    world.run(330_000);
    assert!(
        world.events.iter().any(|line| line.contains("following")),
        "{:?}",
        world.events
    );
}

#[test]
fn long_polls_that_never_come_through_are_given_up() {
    let mut world = World::new(1, follow(), one);
    world.run(1_000);
    for _ in 0..40 {
        // A proxy that cuts whatever takes long: only the long poll is hit.
        world.run(1_000);
        if world.agent.poll_timeout().is_none() {
            world.models[0].mood = Mood::Gone;
            world.run(5);
            world.models[0].mood = Mood::Answers;
        }
    }
    let polled = world
        .events
        .iter()
        .any(|line| line.contains("polling s1 (FeedFailed)"));
    assert!(polled, "{:?}", world.events);
}

#[test]
fn an_outage_of_everything_is_not_the_feeds_fault() {
    let mut world = World::new(2, follow(), one);
    world.run(1_000);
    for model in &mut world.models {
        model.mood = Mood::Gone;
    }
    world.run(600_000);
    assert_eq!(world.held().len(), 1);
    for model in &mut world.models {
        model.mood = Mood::Answers;
        model.restart();
        model.add("orders", "b");
    }
    world.run(40_000);
    assert_eq!(world.held(), ["ORDERS/b UP"]);
    world.models.iter_mut().for_each(|model| model.add("orders", "c"));
    world.run(1_000);
    assert_eq!(world.held().len(), 2, "followed again at once: {:?}", world.sent);
    assert!(
        world.events.iter().all(|line| !line.contains("polling")),
        "{:?}",
        world.events
    );
}

#[test]
fn a_cursor_that_is_gone_begins_anew() {
    let mut world = World::new(1, follow(), one);
    world.run(1_000);
    world.models[0].restart();
    world.models[0].add("orders", "b");
    world.sent.clear();
    world.run(1_000);
    assert_eq!(world.taken_sent(), ["changes from now", "full", "changes 2.1"]);
    assert_eq!(world.held(), ["ORDERS/b UP"]);
    assert_eq!(world.agent.stats().feed_gone, 1);
    // Again and again is no use.
    for _ in 0..3 {
        world.models[0].restart();
        world.models[0].add("orders", "b");
        world.run(2_000);
    }
    assert!(
        world.events.iter().any(|line| line.contains("(FeedFailed)")),
        "{:?}",
        world.events
    );
}

#[test]
fn a_feed_that_is_not_there_any_more_is_followed_by_polling() {
    let mut world = World::new(1, follow(), one);
    world.run(1_000);
    world.models[0].feed = false;
    world.models[0].add("orders", "b");
    world.run(1_000);
    assert_eq!(world.held().len(), 2);
    assert!(
        world
            .events
            .iter()
            .any(|line| line.ends_with("polling s1 (NoFeed)"))
    );
}

#[test]
fn from_a_server_with_a_feed_to_one_without_and_back() {
    let mut world = World::new(2, follow(), |models| {
        one(models);
        models[0].feed = false;
    });
    let all = [world.models[0].server.clone(), world.models[1].server.clone()];
    world.agent.set_servers(world.now, vec![all[1].clone()]);
    world.run(60_000);
    assert_eq!(world.last_host(), "s2");
    world.agent.set_servers(world.now, vec![all[0].clone()]);
    world.run(60_000);
    assert_eq!(world.last_host(), "s1", "{:?}", world.sent);
    world.agent.set_servers(world.now, vec![all[1].clone()]);
    world.run(60_000);
    let ways: Vec<String> = world.taken_events();
    let ways: Vec<&String> = ways
        .iter()
        .filter(|line| line.contains("olling") || line.contains("ollowing"))
        .collect();
    let end = &ways[ways.len() - 3..];
    assert_eq!(end, ["following s2", "polling s1 (NoFeed)", "following s2"]);
}

#[test]
fn lists_with_other_regions_are_polled_unless_the_own_one_is_all_that_is_wanted() {
    let mut world = World::new(1, follow(), |models| {
        one(models);
        models[0].remote = true;
    });
    world.run(100_000);
    assert_eq!(world.taken_sent()[..3], ["changes from now", "full", "delta"]);
    assert_eq!(world.taken_events()[0], "polling s1 (OtherRegions)");

    let mut consume = Consume::default();
    consume.regions = Regions::Own;
    let mut world = World::new(1, reading(consume), |models| {
        one(models);
        models[0].remote = true;
    });
    world.run(1_000);
    assert_eq!(world.taken_events()[0], "following s1");

    let mut consume = Consume::default();
    consume.regions = Regions::Named(vec!["eu".into()]);
    let mut world = World::new(1, reading(consume), one);
    world.run(1_000);
    assert_eq!(world.taken_sent(), ["full regions=eu"]);
    assert_eq!(world.taken_events()[0], "polling s1 (NamedRegions)");
}

#[test]
fn regions_that_appear_while_it_is_followed_end_that() {
    let mut world = World::new(1, follow(), one);
    world.run(1_000);
    world.models[0].remote = true;
    world.run(30_000);
    assert!(
        world
            .events
            .iter()
            .any(|line| line.ends_with("polling s1 (OtherRegions)"))
    );
}

#[test]
fn full_lists_come_beside_the_feed() {
    let mut world = World::new(1, follow(), one);
    world.run(2_000_000);
    let gaps = world.gaps("full");
    assert!(
        gaps.len() >= 2 && gaps.iter().all(|gap| *gap <= 930_000),
        "{gaps:?}"
    );
}

#[test]
fn a_virtual_address_is_followed_with_a_filter_and_left_by_who_gives_it_up() {
    let mut consume = Consume::default();
    consume.scope = Scope::Vip("a\"b\\c".into());
    let mut world = World::new(1, reading(consume), |models| {
        let mut instance = Instance::new("orders", "a", "a", "10.0.0.1");
        instance.vip_address = Some("x,a\"b\\c".into());
        models[0].put(instance);
    });
    world.run(1_000);
    let filter = r#"if vip == "a\"b\\c""#;
    assert_eq!(
        world.taken_sent(),
        [
            format!("changes from now {filter}"),
            r#"full vip=a"b\c"#.to_owned(),
            format!("changes 1.1 {filter}")
        ]
    );
    assert_eq!(world.held().len(), 1);
    world.models[0].add("orders", "a");
    world.run(10);
    assert!(world.held().is_empty());
}

#[test]
fn a_server_that_does_not_wait_is_not_asked_without_end() {
    let mut world = World::new(1, follow(), |models| {
        one(models);
        models[0].waits = false;
    });
    world.run(60_000);
    assert!(
        (55..=70).contains(&world.sent.len()),
        "about one a second: {}",
        world.sent.len()
    );
}

#[test]
fn a_server_that_tells_the_same_again_and_again_is_not_asked_without_end() {
    let mut world = World::new(1, follow(), one);
    world.run(1_000);
    world.sent.clear();
    world.models[0].stuck = true;
    world.models[0].add("orders", "b");
    world.run(60_000);
    assert_eq!(world.held().len(), 2);
    assert!(
        (55..=70).contains(&world.sent.len()),
        "about one a second: {}",
        world.sent.len()
    );
}

#[test]
fn a_storm_of_changes_is_read_in_a_bounded_number_of_answers() {
    let mut world = World::new(1, follow(), one);
    world.run(1_000);
    world.sent.clear();
    for _ in 0..2_000 {
        world.models[0].add("orders", "a");
        world.run(1);
    }
    assert!(world.sent.len() <= 100 + 40 + 2, "{}", world.sent.len());
}

#[test]
fn the_owner_can_switch_feeds_off() {
    let mut world = World::new(1, reading(super::world::consume()), one);
    world.run(1_000);
    assert_eq!(world.taken_sent(), ["full"]);
}
