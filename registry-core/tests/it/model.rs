//! The registry against a reference model, compared after every random command.
//!
//! The model ([`reference`]) is written from the rules and shares nothing with the registry: it keeps plain maps, looks at
//! everything each time, and has no buckets, pages or counters. A failure names seed and configuration and lists the commands.

mod commands;
mod compare;
mod following;
mod preserving;
mod reference;

use eureka_registry_core::{
    Command, Config, Event, LeaseExpiry, Measure, Now, PreservationConfig, Registered, Registry, Reply,
};
use std::fmt::Write as _;
use std::time::Duration;

use self::commands::{Random, Step};
use self::compare::compare;
use self::following::Followers;
use self::reference::{Counts, Reference};

/// Commands in one run.
const STEPS: usize = 400;

#[test]
fn ours_behaves_as_the_model_says() {
    met(
        10,
        (0..25).map(|seed| run(seed, "default", small(Config::default()))),
    );
}

#[test]
fn javas_preset_behaves_as_the_model_says() {
    let spring = (100..120).map(|seed| run(seed, "eureka-java", small(Config::eureka_java())));
    let netflix = (130..135).map(|seed| run(seed, "eureka-netflix", small(Config::eureka_netflix())));
    met(8, spring.chain(netflix));
}

#[test]
fn mixed_settings_behave_as_the_model_says() {
    met(
        10,
        (200..240).map(|seed| {
            let mut random = Random::new(seed);
            let mut config = small(Config::default());
            if random.one_in(2) {
                config.lease_expiry = LeaseExpiry::Doubled;
            }
            if random.one_in(2) {
                config.preservation.measure = Measure::Heartbeats;
            }
            config.preservation.enabled = random.one_in(2);
            config.preservation.tolerated_losses = random.below(4);
            config.preservation.threshold = [0.0, 0.5, 0.85, 1.0][random.below(4)];
            let compat = &mut config.compat;
            for switch in [
                &mut compat.renewal_shown_ahead,
                &mut compat.override_by_id,
                &mut compat.override_equal_ignored,
                &mut compat.override_lost_on_eviction,
                &mut compat.metadata_keeps_dirty,
                &mut compat.rule_flips_hidden,
                &mut compat.no_tombstones,
                &mut compat.failed_cancels_listed,
            ] {
                *switch = random.one_in(2);
            }
            run(seed, "mixed", config)
        }),
    );
}

/// What never happened was not compared. The last two need tombstones.
fn met(kinds: usize, runs: impl Iterator<Item = Counts>) {
    let mut sums = [0; 10];
    for counts in runs {
        let counts = [
            counts.registrations,
            counts.renewals,
            counts.renewals_missing,
            counts.cancels,
            counts.evictions,
            counts.late,
            counts.turns,
            counts.pauses,
            counts.forgotten,
            counts.ignored,
        ];
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    assert!(
        sums[..kinds].iter().all(|sum| *sum > 5),
        "too little happened: {sums:?}"
    );
}

/// Everything happens sooner and every memory is shorter, so that short runs meet every border.
fn small(config: Config) -> Config {
    Config {
        seed: [11, 12],
        eviction_interval: Duration::from_secs(7),
        delta_retention: Duration::from_secs(25),
        listed_lease_age: Duration::from_secs(20),
        override_retention: Duration::from_secs(60),
        override_limit: 2,
        tombstone_retention: Duration::from_secs(45),
        tombstone_limit: 2,
        change_log_limit: 40,
        preservation: PreservationConfig {
            update_interval: Duration::from_secs(150),
            ..config.preservation
        },
        ..config
    }
}

fn run(seed: u64, name: &str, config: Config) -> Counts {
    let mut random = Random::new(seed);
    let now = random.start();
    let mut pair = Pair {
        registry: Registry::new(now, config.clone()),
        model: Reference::new(now, config),
        followers: Followers::new(),
        now,
    };
    let mut history = String::new();
    for _ in 0..STEPS {
        let due = pair.registry.poll_timeout().map(|(due, _)| due);
        let step = random.step(pair.now.mono, due);
        writeln!(history, "{} {step}", pair.now.mono.0).expect("a string takes all");
        if let Err(difference) = pair.take(&step) {
            panic!("seed {seed}, {name}, after\n{history}\n{difference}");
        }
    }
    let seen = pair.followers.seen;
    assert!(
        seen.iter().all(|count| *count > 0),
        "seed {seed}: readers saw {seen:?}"
    );
    pair.model.counts
}

struct Pair {
    registry: Registry,
    model: Reference,
    followers: Followers,
    now: Now,
}

impl Pair {
    fn take(&mut self, step: &Step) -> Result<(), String> {
        let now = self.now;
        let due = self.registry.poll_timeout().map(|(due, _)| due);
        match step {
            Step::Pass(by) => {
                self.now.mono = now.mono.after(*by);
                self.now.wall.0 += u64::try_from(by.as_millis()).expect("short");
                return Ok(());
            }
            Step::SetWall(to) => {
                self.now.wall = *to;
                return Ok(());
            }
            Step::Timeout => {
                self.model.observe(now, due);
                self.registry.handle_timeout(now);
                let events = self.drain();
                self.model.handle_timeout(now, &events)?;
            }
            Step::Open { synced, settle } => {
                self.model.observe(now, due);
                self.registry.open(now, *synced, *settle);
                let events = self.drain();
                self.model.open(now, *synced, *settle);
                self.model.expect(now, &events)?;
            }
            Step::Accept => {
                self.model.observe(now, due);
                self.registry.accept_losses(now);
                let events = self.drain();
                self.model.accept(now);
                self.model.expect(now, &events)?;
            }
            Step::Apply(origin, command) => {
                self.model.observe(now, due);
                let reply = self.registry.apply(now, origin.clone(), command.clone());
                let events = self.drain();
                if let Command::Adopt { instance, age } = command {
                    let accepted = reply == Reply::Registered(Registered::Accepted);
                    self.model.learn_winner(instance, *age, accepted)?;
                }
                let expected = self.model.apply(now, origin, command);
                if compare::reply(&reply) != expected {
                    return Err(format!("answered {reply:?}, expected {expected}"));
                }
                self.model.expect(now, &events)?;
            }
        }
        compare(now, &mut self.registry, &mut self.model)?;
        self.followers.follow(now, &mut self.registry)
    }

    fn drain(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.registry.poll_event()).collect()
    }
}
