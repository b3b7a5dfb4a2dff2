//! Leaving: DOWN, then a cancel, in bounded time whatever the servers do.

use std::time::Duration;

use eureka_client::agent::{AgentConfig, Phase, Provide};
use eureka_client::call::Answer;
use eureka_registry_core::Status;

use super::world::{Mood, World, consume, orders, provide, reading};

/// Everything after the agent was told to leave, until it has left.
fn left(world: &mut World) -> (Vec<String>, Vec<String>, u64) {
    let begin = world.now.mono.0;
    world.sent.clear();
    world.events.clear();
    world.agent.leave(world.now);
    world.drain();
    while !world.agent.is_finished() {
        world.run(10);
        assert!(world.now.mono.0 - begin <= 5_010, "within 5 s: {:?}", world.sent);
    }
    assert_eq!(world.agent.poll_timeout(), None);
    let took = world.now.mono.0 - begin;
    (world.taken_sent(), world.taken_events(), took)
}

#[test]
fn tells_down_and_then_cancels() {
    let mut world = World::new(1, provide(), |_| {});
    world.run(1_000);
    let (sent, events, took) = left(&mut world);
    assert_eq!(sent, ["register ORDERS/i-1 DOWN dirty=1000", "cancel ORDERS/i-1"]);
    assert_eq!(events, ["registered s1", "left cancelled=true"]);
    assert!(took <= 50);
    assert!(world.models[0].instances.is_empty());
    assert_eq!(
        world.agent.registration().expect("it provided").phase,
        Phase::Left
    );
    // Nothing follows, whatever the owner does.
    world.agent.set_status(world.now, Status::Up);
    world.agent.set_metadata(world.now, "a", "b");
    world.agent.leave(world.now);
    world.run(100_000);
    assert!(world.sent.is_empty() && world.events.is_empty());
}

#[test]
fn what_is_down_already_is_cancelled_right_away() {
    let mut instance = orders(30);
    instance.status = Status::Down;
    let mut world = World::new(1, AgentConfig::new().provide(Provide::new(instance)), |_| {});
    world.run(1_000);
    assert_eq!(left(&mut world).0, ["cancel ORDERS/i-1"]);
}

#[test]
fn whoever_never_registered_has_nothing_to_tell() {
    let mut given = Provide::new(orders(30));
    given.health_interval = Some(Duration::from_secs(10));
    let mut world = World::new(1, AgentConfig::new().provide(given), |_| {});
    let (sent, events, took) = left(&mut world);
    assert_eq!((sent.len(), took), (0, 0));
    assert_eq!(events, ["left cancelled=false"]);
}

#[test]
fn a_registration_nobody_has_sent_yet_is_taken_back() {
    use eureka_client::{Agent, Server};
    let now = super::world::start();
    let server = std::sync::Arc::new(Server::parse("http://s1/eureka").expect("a URL"));
    let mut agent = Agent::new(now, provide(), vec![server]);
    agent.leave(now);
    assert!(agent.poll_request().is_none());
    assert!(agent.is_finished());
}

#[test]
fn a_registration_under_way_is_waited_for() {
    let mut world = World::new(1, provide(), |_| {});
    let (sent, events, _) = left(&mut world);
    assert_eq!(sent, ["register ORDERS/i-1 DOWN dirty=1", "cancel ORDERS/i-1"]);
    assert_eq!(events, ["registered s1", "registered s1", "left cancelled=true"]);
}

#[test]
fn a_registration_that_may_have_arrived_is_cancelled() {
    let mut world = World::new(1, provide(), |models| models[0].mood = Mood::Deaf);
    world.run(5_010);
    world.models[0].mood = Mood::Answers;
    let (sent, events, _) = left(&mut world);
    assert_eq!(sent, ["cancel ORDERS/i-1"]);
    assert_eq!(events, ["left cancelled=true"]);
    assert!(world.models[0].instances.is_empty());
}

#[test]
fn not_known_any_more_is_left_too() {
    let mut world = World::new(1, provide(), |_| {});
    world.run(1_000);
    world.agent.leave(world.now);
    world.drain();
    world.run(10);
    world.models[0].restart();
    world.run(100);
    assert!(
        world
            .events
            .iter()
            .any(|line| line.ends_with("left cancelled=true")),
        "{:?}",
        world.events
    );
}

#[test]
fn a_cancel_that_fails_is_tried_elsewhere() {
    let mut world = World::new(3, provide(), |_| {});
    world.run(1_000);
    let host = world.last_host();
    let views = world.model(&host).instances.clone();
    for model in &mut world.models {
        model.instances = views.clone();
    }
    world.model(&host).mood = Mood::Refuses(500);
    let (sent, events, _) = left(&mut world);
    assert_eq!(sent, ["register ORDERS/i-1 DOWN dirty=1000", "cancel ORDERS/i-1"]);
    assert_eq!(*events.last().expect("events"), "left cancelled=true");
    let still = world
        .models
        .iter()
        .filter(|model| !model.instances.is_empty())
        .count();
    assert_eq!(still, 2);
}

#[test]
fn servers_that_are_all_gone_do_not_delay_the_end() {
    let mut world = World::new(4, provide(), |_| {});
    world.run(1_000);
    for model in &mut world.models {
        model.mood = Mood::Gone;
    }
    let (sent, events, took) = left(&mut world);
    assert_eq!(
        sent.iter().filter(|line| line.starts_with("cancel")).count(),
        3,
        "{sent:?}"
    );
    assert_eq!(*events.last().expect("events"), "left cancelled=false");
    assert!(took < 100);
}

#[test]
fn a_silent_server_costs_five_seconds_and_no_more() {
    for servers in [1, 3] {
        let mut world = World::new(servers, provide(), |_| {});
        world.run(1_000);
        for model in &mut world.models {
            model.mood = Mood::Silent;
        }
        let (sent, events, took) = left(&mut world);
        assert!(sent.iter().any(|line| line.starts_with("cancel")), "{sent:?}");
        assert_eq!(*events.last().expect("events"), "left cancelled=false");
        assert!(took <= 5_010);
    }
}

#[test]
fn one_silent_server_does_not_keep_the_others_from_hearing_of_it() {
    let mut world = World::new(2, provide(), |_| {});
    world.run(1_000);
    let host = world.last_host();
    let views = world.model(&host).instances.clone();
    for model in &mut world.models {
        model.instances = views.clone();
    }
    // A renewal is under way there while the owner wants to leave.
    world.model(&host).mood = Mood::Silent;
    while !world.last_host().is_empty() && !world.sent.last().is_some_and(|line| line.contains("renew")) {
        world.run(100);
    }
    world.may_overlap = true;
    let (sent, events, _) = left(&mut world);
    assert_eq!(*sent.last().expect("sent"), "cancel ORDERS/i-1");
    assert_eq!(*events.last().expect("events"), "left cancelled=true");
}

#[test]
fn without_unregistering_the_lease_is_left_to_run_out() {
    let mut given = Provide::new(orders(30));
    given.unregister = false;
    let mut world = World::new(1, AgentConfig::new().provide(given), |_| {});
    world.run(1_000);
    let (sent, events, _) = left(&mut world);
    assert!(sent.is_empty());
    assert_eq!(events, ["left cancelled=false"]);
    assert_eq!(world.models[0].instances.len(), 1);
}

#[test]
fn an_answer_after_the_end_is_counted_and_changes_nothing() {
    let mut world = World::new(1, provide(), |_| {});
    world.run(1_000);
    left(&mut world);
    world.stray(0, Answer::Done);
    world.stray(1_000, Answer::Done);
    assert_eq!(world.agent.stats().stray_answers, 2);
    assert!(world.sent.is_empty() && world.events.is_empty());
}

#[test]
fn a_consumer_stops_reading_at_once() {
    let mut world = World::new(1, reading(consume()), |_| {});
    world.agent.leave(world.now);
    assert!(world.agent.is_finished());
    world.run(100_000);
    assert_eq!(world.sent.len(), 1);
    assert!(world.events.is_empty());
}
