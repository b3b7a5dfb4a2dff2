//! Registrations: when, where, with which dirty time.

use std::time::Duration;

use eureka_client::agent::{AgentConfig, Phase, Provide};
use eureka_registry_core::{Instance, Status, Wall};

use super::world::{EPOCH, Mood, World, orders, provide};

#[test]
fn registers_at_once_with_whatever_status_it_has() {
    let mut instance = orders(30);
    instance.status = Status::Starting;
    let config = AgentConfig::new().provide(Provide::new(instance));
    let mut world = World::new(1, config, |_| {});
    world.run(1_000);
    assert_eq!(world.sent, ["0.000 s1 register ORDERS/i-1 STARTING dirty=0"]);
    assert_eq!(world.events, ["0.010 registered s1"]);
    let registration = world.agent.registration().expect("it provides");
    assert_eq!(registration.phase, Phase::Registered);
    assert_eq!(registration.server.expect("a server").host(), "s1");
    assert_eq!(
        registration.confirmed.expect("confirmed").mono.0,
        0,
        "from when it was sent"
    );
}

#[test]
fn three_servers_are_tried_and_then_there_is_a_pause_that_doubles() {
    let mut world = World::new(5, provide(), |models| {
        for model in models {
            model.mood = Mood::Refuses(500);
        }
    });
    world.run(200_000);
    let times: Vec<f64> = world
        .sent
        .iter()
        .map(|line| line.split(' ').next().expect("a time").parse().expect("a number"))
        .collect();
    let pauses: Vec<f64> = times
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .filter(|gap| *gap > 0.1)
        .collect();
    for (pause, about) in pauses.iter().zip([1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]) {
        let spread = (about * 0.8 - 0.02)..(about * 1.2 + 0.02);
        assert!(spread.contains(pause), "{pause} is not about {about}: {pauses:?}");
    }
    assert!(pauses.len() >= 8);
    assert!(
        pauses.iter().any(|pause| (*pause - 30.0).abs() > 0.1),
        "with jitter: {pauses:?}"
    );
    // Three, two, three, two: nobody a second time before everybody else was asked.
    let hosts: Vec<&str> = world
        .sent
        .iter()
        .map(|line| line.split(' ').nth(1).expect("a host"))
        .collect();
    for sweep in hosts.chunks(5) {
        let mut sweep = sweep.to_vec();
        sweep.sort_unstable();
        sweep.dedup();
        assert!(sweep.len() == 5 || hosts.len() % 5 == sweep.len(), "{hosts:?}");
    }
    assert_eq!(times.iter().filter(|time| **time < 0.5).count(), 3);
}

#[test]
fn a_wrong_registration_is_not_carried_from_server_to_server() {
    let mut world = World::new(3, provide(), |models| {
        for model in models {
            model.refuses_registrations = Some(400);
        }
    });
    world.run(100_000);
    let host = world.last_host();
    assert!(
        world.sent.iter().all(|line| line.contains(&host)),
        "{:?}",
        world.sent
    );
    assert!(
        (3..=5).contains(&world.sent.len()),
        "at the longest pause: {:?}",
        world.sent
    );
    assert!(world.events[0].ends_with("the server answered 400"));
    // New content may be right: it does not wait.
    world.sent.clear();
    for model in &mut world.models {
        model.refuses_registrations = None;
    }
    world.agent.set_metadata(world.now, "size", "small");
    world.run(100);
    assert_eq!(world.taken_sent(), ["register ORDERS/i-1 UP dirty=100000"]);
    assert_eq!(
        world.agent.registration().expect("it provides").phase,
        Phase::Registered
    );
}

#[test]
fn a_server_that_does_not_let_us_in_is_no_fault_of_the_request() {
    let mut world = World::new(2, provide(), |models| models[0].mood = Mood::Refuses(401));
    world.models[1].mood = Mood::Answers;
    world.run(5_000);
    assert_eq!(world.last_host(), "s2");
    assert_eq!(world.agent.stats().registrations, 1);
}

#[test]
fn an_answer_that_was_lost_leaves_one_registration_with_the_same_dirty_time() {
    let mut world = World::new(2, provide(), |models| models[0].mood = Mood::Deaf);
    world.run(20_000);
    let registered = |world: &World, place: usize| {
        let views = world.models[place].instances.values();
        views.map(|view| view.instance.last_dirty).collect::<Vec<_>>()
    };
    assert_eq!(registered(&world, 1), [Some(EPOCH as i64)]);
    let first = registered(&world, 0);
    assert!(first.is_empty() || first == [Some(EPOCH as i64)], "{first:?}");
    assert_eq!(world.agent.stats().registrations, 1);
}

#[test]
fn changes_are_registered_at_once_and_a_storm_of_them_is_thinned_out_but_never_dropped() {
    let mut world = World::new(1, provide(), |_| {});
    world.run(1_000);
    world.sent.clear();
    for count in 0..40 {
        world.agent.set_metadata(world.now, "count", &count.to_string());
        world.run(100);
    }
    // The answers take 10 ms, so the first four go out as they come.
    let early = world.sent.len();
    assert_eq!(early, 4, "{:?}", world.sent);
    world.run(20_000);
    assert_eq!(world.sent.len(), 5, "the rest in one: {:?}", world.sent);
    assert!(
        world.sent[4].starts_with("6.0"),
        "five seconds later: {:?}",
        world.sent
    );
    let view = world.models[0].instances.values().next().expect("registered");
    assert_eq!(view.instance.metadata.get("count"), Some("39"));
    assert!(world.agent.stats().delayed_changes >= 30);
}

#[test]
fn a_change_while_a_registration_is_under_way_follows_it() {
    let mut world = World::new(1, provide(), |_| {});
    world.agent.set_status(world.now, Status::Down);
    world.run(100);
    assert_eq!(
        world.sent,
        [
            "0.000 s1 register ORDERS/i-1 UP dirty=0",
            "0.010 s1 register ORDERS/i-1 DOWN dirty=1"
        ]
    );
}

#[test]
fn the_dirty_time_goes_forward_whatever_the_clock_does() {
    let mut world = World::new(1, provide(), |_| {});
    world.run(1_000);
    let mut before = EPOCH as i64;
    for (step, wall) in [5_000_000, 10, 0, 7_000_000, 6_999_999].into_iter().enumerate() {
        world.now.wall = Wall(wall);
        world.agent.set_metadata(world.now, "step", &step.to_string());
        world.run(6_000);
        let dirty = world.models[0].instances.values().next().expect("registered");
        let dirty = dirty.instance.last_dirty.expect("a dirty time");
        assert!(dirty > before, "{dirty} after {before}");
        before = dirty;
    }
    assert_eq!(before, 7_000_001, "max(now, previous + 1)");
}

#[test]
fn what_changes_nothing_is_no_change() {
    let mut world = World::new(1, provide(), |_| {});
    world.run(1_000);
    world.sent.clear();
    world.agent.set_status(world.now, Status::Up);
    world
        .agent
        .update(world.now, |instance| instance.last_dirty = Some(77));
    world.run(1_000);
    assert!(world.sent.is_empty(), "{:?}", world.sent);
    let instance = world.agent.registration().expect("it provides").instance;
    assert_eq!(instance.last_dirty, Some(EPOCH as i64));
}

#[test]
fn an_update_cannot_make_it_another_instance() {
    let mut instance = Instance::new("orders", "", "h1", "10.0.0.1");
    instance.lease.renewal_interval_secs = 30;
    let config = AgentConfig::new().provide(Provide::new(instance));
    let mut world = World::new(1, config, |_| {});
    world.run(100);
    world.agent.update(world.now, |instance| {
        instance.app = "OTHER".into();
        instance.instance_id = Some("other".into());
        instance.host_name = "h2".into();
    });
    world.run(100);
    let keys: Vec<String> = world.models[0]
        .instances
        .keys()
        .map(ToString::to_string)
        .collect();
    assert_eq!(keys, ["ORDERS/h1"]);
    let view = world.models[0].instances.values().next().expect("registered");
    assert_eq!(&*view.instance.host_name, "h2");
}

#[test]
fn health_is_asked_for_before_the_first_registration_and_then_now_and_then() {
    let mut given = Provide::new(orders(30));
    given.health_interval = Some(Duration::from_secs(10));
    let mut world = World::new(1, AgentConfig::new().provide(given), |_| {});
    world.run(3_000);
    assert!(world.sent.is_empty());
    assert_eq!(
        world.agent.registration().expect("it provides").phase,
        Phase::Starting
    );
    world.agent.set_health(world.now, Some(Status::Down));
    world.health = Some(Some(Status::Up));
    world.run(20_000);
    assert_eq!(
        world.taken_sent(),
        [
            "register ORDERS/i-1 DOWN dirty=3000",
            "register ORDERS/i-1 UP dirty=10000"
        ]
    );
    let asked = world
        .events
        .iter()
        .filter(|line| line.ends_with("check health"))
        .count();
    assert_eq!(asked, 3, "at 0, 10 and 20 s: {:?}", world.events);
}

#[test]
fn a_health_check_that_never_answers_delays_the_registration_but_for_a_while() {
    let mut given = Provide::new(orders(30));
    given.health_interval = Some(Duration::from_secs(60));
    let mut world = World::new(1, AgentConfig::new().provide(given), |_| {});
    world.run(10_000);
    assert_eq!(world.sent, ["5.000 s1 register ORDERS/i-1 UP dirty=0"]);
}

#[test]
fn health_checks_leave_alone_what_the_owner_holds_back() {
    for own in [Status::OutOfService, Status::Starting] {
        let mut given = Provide::new(orders(30));
        given.health_interval = Some(Duration::from_secs(10));
        let mut world = World::new(1, AgentConfig::new().provide(given), |_| {});
        world.health = Some(Some(Status::Up));
        world.agent.set_health(world.now, Some(Status::Up));
        world.agent.set_status(world.now, own);
        world.run(60_000);
        assert_eq!(
            world.agent.registration().expect("it provides").instance.status,
            own
        );
        world.agent.set_status(world.now, Status::Up);
        world.health = Some(Some(Status::Down));
        world.run(60_000);
        let status = world.agent.registration().expect("it provides").instance.status;
        assert_eq!(status, Status::Down);
        // What a check itself said is not the owner's word.
        world.health = Some(Some(Status::OutOfService));
        world.run(20_000);
        world.health = Some(Some(Status::Up));
        world.run(20_000);
        let status = world.agent.registration().expect("it provides").instance.status;
        assert_eq!(status, Status::Up);
        world.health = Some(None);
        world.run(20_000);
        let status = world.agent.registration().expect("it provides").instance.status;
        assert_eq!(status, Status::Up, "nothing said: as it was");
    }
}
