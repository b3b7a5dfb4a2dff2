//! What is promised in figures: how stale a view can be, how large an agent is, that it comes to rest.

use std::time::Duration;

use eureka_client::agent::{AgentConfig, Provide};
use eureka_client::{Agent, Consume};

use super::world::{EPOCH, Mood, World, consume, orders, provide, reading};

fn moods(random: &mut fastrand::Rng) -> Mood {
    match random.u8(0..7) {
        0 => Mood::Silent,
        1 => Mood::Deaf,
        2 => Mood::Gone,
        3 => Mood::HoldsReads,
        4 => Mood::Refuses(500),
        5 => Mood::Refuses(403),
        _ => Mood::Answers,
    }
}

/// One server always answers; the others do whatever a die says, anew every few seconds.
fn longest_gap(seed: u64, servers: usize, consume: Consume) -> (Duration, Duration) {
    let mut random = fastrand::Rng::with_seed(seed);
    let config = reading(consume).seed(seed);
    let mut world = World::new(servers, config, |models| {
        for model in &mut *models {
            model.add("orders", "a");
            model.feed = random.bool();
            model.remote = random.u8(0..5) == 0;
            model.mood = moods(&mut random);
        }
        models[0].mood = Mood::Answers;
    });
    for count in 0..400 {
        world.run(random.u64(500..20_000));
        for model in &mut world.models[1..] {
            model.mood = moods(&mut random);
        }
        let id = (count % 5).to_string();
        for model in &mut world.models {
            model.add("orders", &id);
        }
    }
    let ends = [0, world.now.mono.0];
    let mut at: Vec<u64> = ends.into_iter().chain(world.fetched_at.iter().copied()).collect();
    at.sort_unstable();
    let longest = at.windows(2).map(|pair| pair[1] - pair[0]).max().expect("gaps");
    (Duration::from_millis(longest), world.agent.staleness_bound())
}

#[test]
fn a_view_is_never_older_than_the_bound_while_one_server_answers() {
    for seed in 0..12 {
        for servers in [1, 2, 5] {
            for consume in [Consume::default(), consume()] {
                let (longest, bound) = longest_gap(seed, servers, consume);
                assert!(
                    longest <= bound,
                    "seed {seed}, {servers} servers: {longest:?} > {bound:?}"
                );
            }
        }
    }
}

#[test]
fn the_bound_is_what_its_documentation_says() {
    let secs = Duration::from_secs_f64;
    assert_eq!(reading(consume()).staleness_bound(1), secs(30.0 + 5.0 + 15.0));
    assert_eq!(reading(consume()).staleness_bound(3), secs(30.0 + 5.0 + 45.0));
    assert_eq!(
        reading(consume()).staleness_bound(4),
        secs(30.0 + 5.0 + 60.0 + 36.0)
    );
    let mut quick = Consume::default();
    quick.interval = secs(1.0);
    assert_eq!(reading(quick).staleness_bound(1), secs(26.0 + 5.0 + 15.0));
    assert_eq!(provide().staleness_bound(3), Duration::ZERO);
    assert_eq!(reading(consume()).emptied_bound(1), secs(50.0 * 2.0 + 90.0));
}

#[test]
fn a_registry_that_became_empty_is_believed_within_its_bound() {
    for (seed, consume) in [(1, Consume::default()), (2, consume())] {
        let bound = reading(consume.clone()).emptied_bound(2);
        let mut world = World::new(2, reading(consume).seed(seed), |models| {
            models.iter_mut().for_each(|model| model.add("orders", "a"));
        });
        world.run(100_000);
        world.models.iter_mut().for_each(super::world::Model::restart);
        world.run(u64::try_from(bound.as_millis()).expect("short"));
        assert!(world.held().is_empty());
    }
}

#[test]
fn it_comes_to_rest_whatever_the_servers_do() {
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut given = Provide::new(orders(10));
        given.health_interval = Some(Duration::from_secs(7));
        let config = AgentConfig::new()
            .provide(given)
            .consume(Consume::default())
            .seed(seed);
        let mut world = World::new(3, config, |models| models[0].add("orders", "a"));
        for step in 0..200 {
            for model in &mut world.models {
                model.mood = moods(&mut random);
                if random.u8(0..10) == 0 {
                    model.restart();
                }
                model.feed = random.bool();
            }
            world.agent.set_metadata(world.now, "step", &step.to_string());
            world.now.wall.0 = random.u64(0..2 * EPOCH);
            // The world itself asserts that no timer lies in the past, and that requests do not overlap.
            world.run(random.u64(1..30_000));
        }
        let hours = world.now.mono.0 as f64 / 3_600_000.0;
        assert!(
            (world.sent.len() as f64) < 6_000.0 * hours,
            "{} in {hours} h",
            world.sent.len()
        );
        for model in &mut world.models {
            model.mood = Mood::Answers;
        }
        world.run(60_000);
        let registration = world.agent.registration().expect("it provides");
        let holders = world.models.iter().filter(|model| {
            let mut views = model.instances.values();
            views.any(|view| view.instance.last_dirty == registration.instance.last_dirty)
        });
        assert!(
            holders.count() >= 1,
            "seed {seed}: registered in its newest state"
        );
        world.agent.leave(world.now);
        world.run(6_000);
        assert!(world.agent.is_finished());
        assert_eq!(world.agent.poll_timeout(), None);
    }
}

/// Whoever writes the longest time there is means "never", and must not get a panic.
#[test]
fn times_of_any_length_are_understood() {
    for time in [Duration::ZERO, Duration::MAX] {
        let mut given = Provide::new(orders(10));
        given.leave_within = time;
        given.health_interval = Some(time);
        let mut read = Consume::default();
        read.interval = time;
        read.full_interval = time;
        read.delta_retention = time;
        read.hold_empty = time;
        for feed in [true, false] {
            read.feed = feed;
            let mut config = AgentConfig::new()
                .provide(given.clone())
                .consume(read.clone())
                .seed(7);
            config.request_timeout = time;
            config.endpoints.session = time;
            config.endpoints.quarantine = time;
            config.endpoints.quarantine_max = time;
            assert!(config.emptied_bound(usize::MAX) >= config.staleness_bound(usize::MAX));
            let mut world = World::new(2, config, |models| models[0].add("orders", "a"));
            world.models[0].feed = feed;
            world.run(5_000);
            assert!(world.agent.staleness_bound() >= time.min(Duration::from_secs(86_400)));
            world.models[0].restart();
            world.run(5_000);
            world.agent.leave(world.now);
            world.run(5_000);
            assert!(world.agent.is_finished());
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let config = provide().consume(Consume::default()).seed(seed);
        let mut world = World::new(3, config, |models| models[1].mood = Mood::Refuses(503));
        world.run(600_000);
        world.sent
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}

#[test]
fn an_agent_that_reads_nothing_is_small() {
    assert!(size_of::<Agent>() <= 1_600, "{}", size_of::<Agent>());
}
