//! Renewals: on time, elsewhere if they fail, and what follows a 404.

use eureka_client::agent::{AgentConfig, Phase, Provide};

use super::world::{Mood, World, orders, provide};

#[test]
fn renews_within_the_interval_with_jitter_and_the_registered_dirty_time() {
    let mut world = World::new(1, provide(), |_| {});
    world.run(3_600_000);
    let gaps = world.gaps("renew");
    assert!(gaps.len() > 110, "{}", gaps.len());
    assert!(gaps.iter().all(|gap| (27_000..=30_000).contains(gap)), "{gaps:?}");
    assert!(gaps.iter().any(|gap| *gap < 28_000) && gaps.iter().any(|gap| *gap > 29_000));
    assert!(
        world.sent[1..]
            .iter()
            .all(|line| line.ends_with("renew UP dirty=0"))
    );
    assert_eq!(world.agent.stats().renewals, gaps.len() as u64 + 1);
}

#[test]
fn an_unknown_instance_registers_at_the_same_server_at_once_and_keeps_its_dirty_time() {
    let mut world = World::new(3, provide(), |_| {});
    world.run(1_000);
    let host = world.last_host();
    world.model(&host).restart();
    world.sent.clear();
    world.events.clear();
    world.run(31_000);
    assert_eq!(world.last_host(), host);
    assert_eq!(
        world.taken_sent(),
        ["renew UP dirty=0", "register ORDERS/i-1 UP dirty=0"]
    );
    let [missing, registered] = &world.taken_events()[..] else {
        panic!("two events");
    };
    assert_eq!(*missing, format!("missing {host}"));
    assert_eq!(*registered, format!("registered {host}"));
    assert_eq!(world.agent.stats().renewals_missing, 1);
}

#[test]
fn a_renewal_that_fails_goes_to_the_next_server_and_not_to_the_next_interval() {
    let mut world = World::new(2, provide(), |_| {});
    world.run(1_000);
    let host = world.last_host();
    let other = if host == "s1" { "s2" } else { "s1" };
    // As if replicated.
    let views = world.model(&host).instances.clone();
    world.model(other).instances = views;
    world.model(&host).mood = Mood::Gone;
    world.sent.clear();
    world.run(31_000);
    assert_eq!(world.last_host(), other);
    let gaps = world.gaps("renew");
    assert_eq!(gaps, [10]);
    let failed = world.events.iter().any(|line| {
        line.contains(&format!("renew {host}: the server cannot be reached")) && line.contains("ms left")
    });
    assert!(failed, "{:?}", world.events);
}

#[test]
fn pauses_between_renewals_stay_under_a_third_of_the_lease() {
    let mut world = World::new(1, provide(), |_| {});
    world.run(1_000);
    world.models[0].mood = Mood::Refuses(500);
    world.run(400_000);
    let gaps = world.gaps("renew");
    assert!(gaps[0] < 1_300 && gaps[1] < 2_500, "{gaps:?}");
    assert!(gaps.iter().all(|gap| *gap <= 30_050), "{gaps:?}");
    assert!(gaps.iter().rev().take(5).all(|gap| *gap >= 15_000), "{gaps:?}");
    // The lease ran out there meanwhile.
    world.models[0].mood = Mood::Answers;
    world.models[0].restart();
    world.run(31_000);
    assert_eq!(
        world.agent.registration().expect("it provides").phase,
        Phase::Registered
    );
    assert_eq!(world.models[0].instances.len(), 1);
    assert!(world.events.iter().any(|line| line.ends_with(", 0 ms left")));
}

#[test]
fn a_short_lease_is_fought_for_in_short_pauses() {
    let mut instance = orders(30);
    instance.lease.duration_secs = 30;
    let config = AgentConfig::new().provide(Provide::new(instance));
    let mut world = World::new(1, config, |_| {});
    world.run(1_000);
    world.models[0].mood = Mood::Refuses(500);
    world.run(200_000);
    let gaps = world.gaps("renew");
    assert!(
        gaps.len() > 15 && gaps.iter().all(|gap| *gap <= 10_050),
        "{gaps:?}"
    );
}

#[test]
fn a_server_that_hangs_does_not_cost_a_short_lease() {
    let config = AgentConfig::new().provide(Provide::new(orders(2))).seed(7);
    let mut world = World::new(2, config, |_| {});
    world.run(1_000);
    let host = world.last_host();
    let other = if host == "s1" { "s2" } else { "s1" };
    // As if replicated.
    let views = world.model(&host).instances.clone();
    world.model(other).instances = views;
    world.model(&host).mood = Mood::Silent;
    world.sent.clear();
    world.run(6_000);
    assert_eq!(world.last_host(), other);
    let gaps = world.gaps("renew");
    assert!(
        gaps.len() > 1 && gaps.iter().all(|gap| *gap <= 2_050),
        "the request time-out is 5 s, and the lease 6 s: {gaps:?}"
    );
}

#[test]
fn a_lost_answer_to_a_renewal_costs_one_more_renewal() {
    let mut world = World::new(1, provide(), |_| {});
    world.run(1_000);
    world.models[0].mood = Mood::Deaf;
    world.run(33_000);
    world.models[0].mood = Mood::Answers;
    world.run(10_000);
    let stats = world.agent.stats();
    assert_eq!(
        (stats.renewals_failed, stats.renewals, stats.registrations),
        (1, 1, 1)
    );
}

#[test]
fn content_that_no_server_takes_does_not_cost_the_lease() {
    let mut world = World::new(1, provide(), |_| {});
    world.run(1_000);
    world.models[0].refuses_registrations = Some(400);
    world.agent.set_metadata(world.now, "size", "too large");
    world.run(100_000);
    let renewals: Vec<_> = world.sent.iter().filter(|line| line.contains("renew")).collect();
    assert!(renewals.len() >= 3, "{:?}", world.sent);
    assert!(
        renewals.iter().all(|line| line.ends_with("dirty=0")),
        "of what is registered: {renewals:?}"
    );
}

#[test]
fn a_process_that_slept_renews_when_it_wakes() {
    let mut world = World::new(1, provide(), |_| {});
    world.run(1_000);
    world.sent.clear();
    world.now.mono.0 += 3_600_000;
    world.agent.handle_timeout(world.now);
    world.drain();
    assert_eq!(world.taken_sent(), ["renew UP dirty=0"]);
}
