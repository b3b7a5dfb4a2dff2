//! Who is picked: turns, zones, and those who keep failing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use eureka_client::balance::{Addressing, BalanceConfig, Endpoint, Feedback, Figures, Picked, Rotation};
use eureka_registry_core::{Instance, InstanceKey, Mono, Now, Port, Status};

fn at(seconds: u64) -> Now {
    Now {
        mono: Mono(seconds * 1_000),
        ..Now::default()
    }
}

fn instance(id: &str, zone: &str) -> Arc<Instance> {
    let mut instance = Instance::new("orders", id, id, "10.0.0.1");
    if !zone.is_empty() {
        instance.metadata.insert("zone", zone);
    }
    Arc::new(instance)
}

fn several(count: usize, zone: &str) -> Vec<Arc<Instance>> {
    let ids = (0..count).map(|number| format!("{zone}{number:02}"));
    ids.map(|id| instance(&id, zone)).collect()
}

fn seeded(seed: u64) -> BalanceConfig {
    let mut config = BalanceConfig::default();
    config.seed = Some(seed);
    config
}

fn zoned(seed: u64) -> BalanceConfig {
    let mut config = seeded(seed);
    config.zones.own = Some("a".into());
    config
}

fn rotation(config: BalanceConfig, instances: &[Arc<Instance>]) -> Rotation {
    let mut rotation = Rotation::new(config);
    rotation.set_instances(at(0), instances);
    rotation
}

fn pick(now: Now, rotation: &mut Rotation) -> Picked {
    rotation.pick(now, &[]).expect("somebody can be picked")
}

/// Picks until it is this one.
fn pick_this(now: Now, rotation: &mut Rotation, id: &str) -> Picked {
    for _ in 0..100 {
        let picked = pick(now, rotation);
        if picked.instance().id() == id {
            return picked;
        }
    }
    panic!("{id} is not picked");
}

fn fail(now: Now, rotation: &mut Rotation, id: &str, times: usize) {
    for _ in 0..times {
        let picked = pick_this(now, rotation, id);
        rotation.feedback(now, &picked, Feedback::Failed);
    }
}

/// How often each is picked.
fn counted(now: Now, rotation: &mut Rotation, picks: usize) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for _ in 0..picks {
        let picked = pick(now, rotation);
        *counts.entry(picked.instance().id().to_owned()).or_default() += 1;
    }
    counts
}

fn in_zone(counts: &BTreeMap<String, usize>, zone: &str) -> usize {
    let zone = counts.iter().filter(|(id, _)| id.starts_with(zone));
    zone.map(|(_, count)| count).sum()
}

#[test]
fn instances_take_turns() {
    let mut rotation = rotation(seeded(1), &several(7, ""));
    let counts = counted(at(0), &mut rotation, 70);
    assert_eq!(counts.len(), 7);
    assert!(counts.values().all(|count| *count == 10), "{counts:?}");
}

#[test]
fn callers_begin_at_different_places() {
    let instances = several(10, "");
    let first = |seed| {
        let mut rotation = rotation(seeded(seed), &instances);
        pick(at(0), &mut rotation).key().clone()
    };
    let mut counts: BTreeMap<InstanceKey, usize> = BTreeMap::new();
    for seed in 0..1_000 {
        *counts.entry(first(seed)).or_default() += 1;
    }
    assert_eq!(counts.len(), 10);
    assert!(
        counts.values().all(|count| (50..200).contains(count)),
        "{counts:?}"
    );
    assert_eq!(first(3), first(3), "a seed reproduces it");
}

#[test]
fn who_is_new_gets_no_rush() {
    let mut instances = several(10, "");
    let next_ones = |instances: &[Arc<Instance>], seed| {
        let mut rotation = rotation(seeded(seed), &instances[..10]);
        counted(at(0), &mut rotation, 25);
        rotation.set_instances(at(0), instances);
        pick(at(0), &mut rotation).instance().id() == "new"
    };
    instances.push(instance("new", ""));
    let first = (0..1_000).filter(|seed| next_ones(&instances, *seed)).count();
    assert!((30..200).contains(&first), "about one caller in eleven: {first}");
}

#[test]
fn turns_are_fair_whatever_comes_and_goes() {
    for seed in 0..200 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let pool = several(12, "");
        let mut rotation = Rotation::new(seeded(seed));
        // For each pair that could be picked since then: how much more often the one was.
        let mut ahead: BTreeMap<(usize, usize), i64> = BTreeMap::new();
        let mut listed: Vec<usize> = Vec::new();
        for _ in 0..300 {
            if listed.is_empty() || rng.u8(..8) == 0 {
                let before = listed.clone();
                listed = (0..pool.len()).filter(|_| rng.bool()).collect();
                let instances = listed.iter().map(|index| &pool[*index]);
                rotation.set_instances(at(0), instances);
                let stays = |index: &usize| before.contains(index) && listed.contains(index);
                ahead.retain(|(one, other), _| stays(one) && stays(other));
                continue;
            }
            let picked = pick(at(0), &mut rotation);
            let chosen = pool.iter().position(|one| one.id() == picked.instance().id());
            let chosen = chosen.expect("it is one of them");
            assert!(listed.contains(&chosen), "seed {seed}: {chosen} is not listed");
            for other in listed.iter().filter(|other| **other != chosen) {
                let lead = ahead.entry((chosen, *other)).or_default();
                *lead += 1;
                assert!(*lead <= 1, "seed {seed}: {chosen} twice before {other}");
                *ahead.entry((*other, chosen)).or_default() -= 1;
            }
        }
    }
}

#[test]
fn only_those_that_are_up_and_can_be_called() {
    let mut instances = Vec::new();
    for status in Status::ALL {
        let mut instance = Instance::new("orders", status.as_str(), "h", "10.0.0.1");
        instance.status = status;
        instances.push(Arc::new(instance));
    }
    let mut portless = Instance::new("orders", "portless", "h", "10.0.0.1");
    portless.port.enabled = false;
    instances.push(Arc::new(portless));
    let mut rotation = rotation(seeded(1), &instances);
    assert_eq!(
        counted(at(0), &mut rotation, 10).keys().collect::<Vec<_>>(),
        ["UP"]
    );
    let listed = rotation.listed();
    assert_eq!((listed.all, listed.up, listed.callable), (6, 2, 1));
    rotation.set_instances(at(0), &instances[..1]);
    assert!(rotation.pick(at(0), &[]).is_none(), "DOWN");
}

#[test]
fn ports_and_hosts() {
    let port = |number, enabled| Port { number, enabled };
    let shown = |plain, secure, addressing| {
        let mut instance = Instance::new("orders", "i", "host", "::1");
        (instance.port, instance.secure_port) = (plain, secure);
        Endpoint::of(&instance, addressing).map(|endpoint| endpoint.to_string())
    };
    let any = Addressing::default();
    let mut secure = Addressing::default();
    secure.secure = true;
    let mut by_address = Addressing::default();
    by_address.by_address = true;
    let (on, off) = (port(80, true), port(80, false));
    let (secure_on, secure_off) = (port(443, true), port(443, false));
    assert_eq!(shown(on, secure_on, any).as_deref(), Some("http://host:80"));
    assert_eq!(shown(on, secure_on, secure).as_deref(), Some("https://host:443"));
    assert_eq!(shown(off, secure_on, any).as_deref(), Some("https://host:443"));
    assert_eq!(shown(on, secure_off, secure), None);
    assert_eq!(shown(off, secure_off, any), None);
    for number in [0, -1, 65_536] {
        assert_eq!(shown(port(number, true), secure_off, any), None, "{number}");
    }
    assert_eq!(
        shown(on, secure_off, by_address).as_deref(),
        Some("http://[::1]:80")
    );
}

#[test]
fn who_was_tried_is_not_picked_again_for_the_same_call() {
    let mut rotation = rotation(seeded(1), &several(4, ""));
    for _ in 0..20 {
        let mut tried = Vec::new();
        while let Some(picked) = rotation.pick(at(0), &tried) {
            assert!(!tried.contains(picked.key()));
            tried.push(picked.key().clone());
        }
        assert_eq!(tried.len(), 4);
    }
}

#[test]
fn the_own_zone_is_preferred_and_the_others_are_there_for_retries() {
    let instances = [several(2, "a"), several(3, "b")].concat();
    let mut rotation = rotation(zoned(1), &instances);
    let counts = counted(at(0), &mut rotation, 100);
    assert_eq!(in_zone(&counts, "a"), 100);
    assert_eq!(rotation.figures().zone_share, Some(1.0));
    let tried: Vec<InstanceKey> = instances[..2].iter().map(|one| one.key()).collect();
    let picked = rotation.pick(at(0), &tried).expect("somebody is left");
    assert_eq!(picked.instance().zone(), Some("b"));
    assert_eq!(rotation.figures().picks_elsewhere, 1);
}

#[test]
fn zones_do_not_matter_without_an_instance_of_the_own_one() {
    let mut config = zoned(1);
    config.zones.minimum = 2;
    let instances = [several(1, "a"), several(3, "b")].concat();
    let mut rotation = rotation(config, &instances);
    let counts = counted(at(0), &mut rotation, 100);
    assert!(counts.values().all(|count| *count == 25), "{counts:?}");
    assert_eq!(rotation.figures().zone_share, None);
}

/// Every zone has callers in proportion to its name alone: what each instance gets, at most.
#[test]
fn no_zone_is_overloaded_by_its_own_callers() {
    for seed in 0..200 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let sizes = [rng.usize(1..12), rng.usize(1..12), rng.usize(1..12)];
        let names = ["a", "b", "c"];
        let instances = [0, 1, 2].map(|zone| several(sizes[zone], names[zone])).concat();
        let mut rotation = rotation(zoned(seed), &instances);
        let picks = 3_000;
        let counts = counted(at(0), &mut rotation, picks);
        let near = in_zone(&counts, "a");
        // Three zones send as much: an instance's part on average, and what the zone's own callers may make of it.
        let average = 3.0 * picks as f64 / instances.len() as f64;
        let load = near as f64 / sizes[0] as f64;
        assert!(
            load <= 2.0 * average + 1.0,
            "seed {seed}: {sizes:?} {load} of {average}"
        );
        if near < picks {
            assert!(
                load >= 2.0 * average - 1.0,
                "seed {seed}: {sizes:?} spills too early"
            );
        }
        let far = counts.iter().filter(|(id, _)| !id.starts_with('a'));
        let far: Vec<usize> = far.map(|(_, count)| *count).collect();
        let (least, most) = (far.iter().min(), far.iter().max());
        assert!(
            least.zip(most).is_none_or(|(least, most)| most - least <= 1),
            "seed {seed}: who helps out takes turns: {far:?}"
        );
    }
}

#[test]
fn what_is_left_out_in_the_own_zone_goes_elsewhere() {
    let instances = [several(4, "a"), several(8, "b")].concat();
    let mut rotation = rotation(zoned(1), &instances);
    for id in ["a00", "a01", "a02"] {
        fail(at(0), &mut rotation, id, 5);
    }
    let counts = counted(at(0), &mut rotation, 900);
    // One of nine in two zones: it gets twice the average of 4.5, that is 4 of 9.
    assert_eq!(in_zone(&counts, "a"), 400, "{counts:?}");
    for id in 0..3 {
        let back = pick_this(at(30), &mut rotation, &format!("a0{id}"));
        rotation.feedback(at(30), &back, Feedback::Ok);
    }
    let counts = counted(at(30), &mut rotation, 100);
    assert_eq!(in_zone(&counts, "a"), 100, "{counts:?}");
}

#[test]
fn who_keeps_failing_is_left_out_for_longer_each_time() {
    let mut rotation = rotation(seeded(1), &several(4, ""));
    fail(at(0), &mut rotation, "00", 4);
    let picked = pick_this(at(0), &mut rotation, "00");
    rotation.feedback(at(0), &picked, Feedback::Ok);
    fail(at(0), &mut rotation, "00", 4);
    assert_eq!(rotation.figures().ejected, 0, "a success came between");
    fail(at(0), &mut rotation, "00", 1);
    let mut second = 0;
    for wait in [30, 60, 90, 120, 150, 180, 210, 240, 270, 300, 300] {
        let counts = counted(at(second), &mut rotation, 12);
        assert!(!counts.contains_key("00"), "left out for {wait} s: {counts:?}");
        let counts = counted(at(second + wait - 1), &mut rotation, 12);
        assert!(!counts.contains_key("00"), "{wait} s are not over: {counts:?}");
        second += wait;
        fail(at(second), &mut rotation, "00", 1);
    }
    second += 300;
    let picked = pick_this(at(second), &mut rotation, "00");
    rotation.feedback(at(second), &picked, Feedback::Ok);
    fail(at(second), &mut rotation, "00", 4);
    assert_eq!(rotation.figures().ejected, 0, "a success clears it");
    fail(at(second), &mut rotation, "00", 1);
    let counts = counted(at(second + 30), &mut rotation, 12);
    assert!(
        counts.contains_key("00"),
        "it is the first time again: {counts:?}"
    );
    assert_eq!(rotation.figures().ejections, 13);
}

#[test]
fn a_success_ends_it_and_late_failures_do_not_count() {
    let mut rotation = rotation(seeded(1), &several(4, ""));
    let early: Vec<Picked> = (0..2).map(|_| pick_this(at(0), &mut rotation, "00")).collect();
    fail(at(0), &mut rotation, "00", 5);
    rotation.feedback(at(1), &early[0], Feedback::Failed);
    assert_eq!(rotation.figures().disregarded, 1, "it is left out already");
    let counts = counted(at(30), &mut rotation, 4);
    assert!(counts.contains_key("00"), "it is back");
    rotation.feedback(at(30), &early[0], Feedback::Failed);
    assert_eq!(rotation.figures().ejected, 0, "that call was before");
    fail(at(30), &mut rotation, "00", 1);
    assert_eq!(rotation.figures().ejected, 1);
    rotation.feedback(at(31), &early[1], Feedback::Ok);
    assert_eq!(rotation.figures().ejected, 0, "it works");
    let gone = pick_this(at(31), &mut rotation, "00");
    rotation.set_instances(at(31), &several(4, "")[1..]);
    rotation.feedback(at(31), &gone, Feedback::Failed);
    assert_eq!(rotation.figures().disregarded, 3);
}

#[test]
fn an_instance_that_is_called_elsewhere_now_starts_anew() {
    let mut instances = several(4, "");
    let mut rotation = rotation(seeded(1), &instances);
    fail(at(0), &mut rotation, "00", 5);
    rotation.set_instances(at(0), &instances);
    assert_eq!(rotation.figures().ejected, 1, "the same list changes nothing");
    Arc::make_mut(&mut instances[0]).port.number = 9_000;
    rotation.set_instances(at(0), &instances);
    assert_eq!(rotation.figures().ejected, 0);
    fail(at(0), &mut rotation, "00", 4);
    assert_eq!(
        rotation.figures().ejected,
        0,
        "failures of the old one do not count"
    );
}

#[test]
fn the_only_one_is_never_left_out() {
    let mut rotation = rotation(seeded(1), &several(1, ""));
    fail(at(0), &mut rotation, "00", 20);
    let figures = rotation.figures();
    assert_eq!((figures.ejected, figures.ejections), (0, 0));
    assert_eq!(figures.spared, 16);
}

#[test]
fn nobody_is_left_out_unless_it_is_asked_for() {
    let mut config = seeded(1);
    config.outliers.failures = 0;
    let mut rotation = rotation(config, &several(4, ""));
    fail(at(0), &mut rotation, "00", 20);
    assert_eq!(rotation.figures().ejected, 0);
}

#[test]
fn rather_any_than_none() {
    let mut config = seeded(1);
    config.outliers.most = 1.0;
    let mut rotation = rotation(config, &several(3, ""));
    for id in ["00", "01", "02"] {
        fail(at(0), &mut rotation, id, 5);
    }
    assert_eq!(rotation.figures().ejected, 3);
    let counts = counted(at(1), &mut rotation, 30);
    assert!(counts.values().all(|count| *count == 10), "{counts:?}");
    let picked = pick(at(1), &mut rotation);
    rotation.feedback(at(1), &picked, Feedback::Ok);
    let counts = counted(at(1), &mut rotation, 10);
    assert_eq!(counts.keys().collect::<Vec<_>>(), [picked.instance().id()]);
    let tried = [picked.key().clone()];
    assert!(
        rotation.pick(at(1), &tried).is_some(),
        "a retry goes to whoever is left"
    );
    assert_eq!(rotation.figures().picks_as_last_resort, 32);
}

/// Anything happens; what must never happen is looked for after each step.
#[test]
fn never_more_than_half_are_left_out() {
    let mut seen = Figures::default();
    for seed in 0..300 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let pool = [several(5, "a"), several(4, "b"), several(3, "c")].concat();
        let mut rotation = rotation(zoned(seed), &pool);
        let (mut now, mut open) = (0, Vec::new());
        let sick = rng.u16(..);
        for _ in 0..400 {
            match rng.u8(..20) {
                0 => {
                    let up: Vec<_> = pool.iter().filter(|_| rng.u8(..4) > 0).cloned().collect();
                    rotation.set_instances(at(now), &up);
                }
                1 => now += rng.u64(1..40),
                _ => open.extend(rotation.pick(at(now), &[])),
            }
            if open.len() > rng.usize(..6) {
                let picked = open.swap_remove(rng.usize(..open.len()));
                let number = pool.iter().position(|one| one.id() == picked.instance().id());
                let failed = number.is_some_and(|number| sick >> number & 1 == 1);
                let feedback = if failed { Feedback::Failed } else { Feedback::Ok };
                rotation.feedback(at(now), &picked, feedback);
            }
            let figures = rotation.figures();
            assert!(
                figures.ejected * 2 <= figures.listed.callable,
                "seed {seed}: {figures:?}"
            );
            let picked = rotation.pick(at(now), &[]);
            assert_eq!(picked.is_some(), figures.listed.callable > 0, "seed {seed}");
            assert_eq!(rotation.figures().picks_as_last_resort, 0, "seed {seed}");
        }
        let figures = rotation.figures();
        seen.ejections += figures.ejections;
        seen.spared += figures.spared;
        seen.picks_elsewhere += figures.picks_elsewhere;
        seen.disregarded += figures.disregarded;
    }
    assert!(seen.ejections > 1_000 && seen.spared > 1_000, "{seen:?}");
    assert!(seen.picks_elsewhere > 1_000 && seen.disregarded > 100, "{seen:?}");
}

#[test]
fn an_hour_later_everybody_takes_part_again() {
    let mut rotation = rotation(seeded(1), &several(6, ""));
    for id in ["00", "01", "02"] {
        fail(at(0), &mut rotation, id, 5);
    }
    let counts = counted(at(0), &mut rotation, 60);
    assert_eq!(counts.len(), 3);
    let later = at(Duration::from_secs(3_600).as_secs());
    let counts = counted(later, &mut rotation, 60);
    assert!(counts.values().all(|count| *count == 10), "{counts:?}");
}
