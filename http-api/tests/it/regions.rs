//! Other regions: what is shown of them, to whom, and that lists, deltas and hashes of both together fit each other.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::time::Duration;

use eureka_http_api::{Config, RegionRules, RemoteRegion, RemoteRegions};
use eureka_registry_core::wire::{Format, read_applications};
use eureka_registry_core::{InstanceKey, Mirror};
use serde_json::{Value, json};

use crate::fixture::{Fixture, Read, instance, instance_with};

const WEST: &str = "http://west-1:8761/eureka/";

/// A node that knows of other regions, and what these hold.
struct World {
    node: Fixture,
    regions: RemoteRegions,
    held: BTreeMap<&'static str, Mirror>,
}

impl World {
    fn new(names: &[&'static str]) -> Self {
        Self::with(names, RegionRules::default(), Config::new("boot"))
    }

    fn with(names: &[&'static str], rules: RegionRules, config: Config) -> Self {
        let regions = names.iter().map(|name| RemoteRegion::new(name));
        Self::of(RemoteRegions::new(regions, rules).unwrap(), names, config)
    }

    fn of(regions: RemoteRegions, names: &[&'static str], config: Config) -> Self {
        let held = names.iter().map(|name| (*name, Mirror::new())).collect();
        let config = Config {
            regions: Some(regions.clone()),
            ..config
        };
        Self {
            node: Fixture::with(config),
            regions,
            held,
        }
    }

    /// West and east, both read, with an instance each beside the node's own.
    fn two() -> Self {
        let mut world = Self::new(&["west", "east"]);
        world.node.register("HERE", "h");
        world.put("west", instance("ORDERS", "w"));
        world.put("east", instance("ORDERS", "e"));
        world.publish("west");
        world.publish("east");
        world
    }

    fn put(&mut self, region: &str, mut instance: Value) {
        let instance = instance["instance"].take();
        let list =
            json!({"applications": {"application": [{"name": instance["app"], "instance": [instance]}]}});
        let read = read_applications(Format::Json, list.to_string().as_bytes()).unwrap();
        for view in read.instances {
            self.held.get_mut(region).unwrap().put(view);
        }
    }

    fn remove(&mut self, region: &str, app: &str, id: &str) -> bool {
        let held = self.held.get_mut(region).unwrap();
        held.remove(&InstanceKey::new(app, id))
    }

    fn publish(&mut self, region: &str) {
        let snapshot = self.held.get_mut(region).unwrap().snapshot();
        let now = self.node.registry.now();
        self.regions.publish(now, region, &snapshot, WEST);
    }

    /// As a server that reads this region does.
    fn get_as_server(&self, target: &str) -> Read {
        let headers = [
            ("accept", "application/json"),
            ("discoveryidentity-name", "DefaultServer"),
        ];
        self.node.send("GET", target, &headers, "")
    }

    /// `APP/id STATUS` of each instance in a list or delta, and its hash.
    fn listed(&self, target: &str) -> (Vec<String>, String) {
        let read = self.node.get(target);
        assert_eq!(read.status, 200, "{target}");
        listed(&read.json())
    }
}

fn listed(list: &Value) -> (Vec<String>, String) {
    let hash = list["applications"]["apps__hashcode"].as_str().unwrap();
    let line = |it: &Value| {
        let text = |name: &str| it[name].as_str().unwrap();
        format!("{}/{} {}", text("app"), text("instanceId"), text("status"))
    };
    (instances(list).iter().map(line).collect(), hash.to_owned())
}

fn instances(list: &Value) -> Vec<Value> {
    let applications = list["applications"]["application"].as_array().unwrap();
    let of_each = applications.iter().map(|app| app["instance"].as_array().unwrap());
    of_each.flatten().cloned().collect()
}

#[test]
fn named_regions_are_shown_beside_the_own_one() {
    let world = World::two();
    let expect = |target: &str, wanted: &[&str]| {
        let (instances, hash) = world.listed(target);
        assert_eq!(instances, wanted, "{target}");
        assert_eq!(hash, format!("UP_{}_", wanted.len()), "{target}");
    };
    expect("apps?regions=west", &["HERE/h UP", "ORDERS/w UP"]);
    expect("apps?regions=EAST", &["HERE/h UP", "ORDERS/e UP"]);
    expect(
        "apps?regions=west,east",
        &["HERE/h UP", "ORDERS/e UP", "ORDERS/w UP"],
    );
    expect("apps?regions=nowhere,east", &["HERE/h UP", "ORDERS/e UP"]);
    expect("apps?regions=nowhere", &["HERE/h UP"]);
    // No region is named: all of them.
    expect("apps", &["HERE/h UP", "ORDERS/e UP", "ORDERS/w UP"]);
    expect("apps?regions=", &["HERE/h UP", "ORDERS/e UP", "ORDERS/w UP"]);
}

#[test]
fn the_order_in_which_regions_are_named_does_not_matter() {
    let world = World::two();
    let one = world.node.get("apps?regions=west,EAST");
    let other = world.node.get("apps?regions=east,West,east");
    assert_eq!(one.headers["etag"], other.headers["etag"]);
    assert_eq!(one.body, other.body);
}

#[test]
fn every_codec_shows_them() {
    let world = World::two();
    for (accept, compact) in [
        ("application/json", "full"),
        ("application/json", "compact"),
        ("application/xml", "full"),
        ("application/xml", "compact"),
    ] {
        for target in ["apps?regions=west", "apps", "apps/ORDERS"] {
            let headers = [("accept", accept), ("x-eureka-accept", compact)];
            let plain = world.node.send("GET", target, &headers, "");
            assert_eq!(plain.headers["content-type"], accept);
            assert!(plain.text().contains("host-w"), "{target}: {}", plain.text());
            let headers = [headers[0], headers[1], ("accept-encoding", "gzip")];
            let packed = world.node.send("GET", target, &headers, "");
            let mut text = String::new();
            let mut decoder = flate2::read::GzDecoder::new(&packed.body[..]);
            decoder.read_to_string(&mut text).unwrap();
            assert_eq!(text, plain.text(), "{target}");
        }
    }
}

#[test]
fn the_bytes_are_those_of_one_registry_with_all_of_them() {
    let world = World::two();
    let alone = Fixture::new();
    alone.register("HERE", "h");
    for id in ["e", "w"] {
        alone.register("ORDERS", id);
    }
    let without_times = |mut list: Value| {
        for app in list["applications"]["application"].as_array_mut().unwrap() {
            for it in app["instance"].as_array_mut().unwrap() {
                it["leaseInfo"].take();
                it["lastUpdatedTimestamp"].take();
            }
        }
        list.to_string()
    };
    let expected = without_times(alone.get("apps").json());
    assert_eq!(without_times(world.node.get("apps").json()), expected);
}

#[test]
fn without_fallback_only_who_names_a_region_sees_it() {
    let rules = RegionRules {
        fallback: false,
        ..RegionRules::default()
    };
    let mut world = World::with(&["west"], rules, Config::new("boot"));
    world.node.register("HERE", "h");
    world.put("west", instance("ORDERS", "w"));
    world.publish("west");
    assert_eq!(world.listed("apps").0, ["HERE/h UP"]);
    assert_eq!(world.listed("apps/delta").0, ["HERE/h UP"]);
    assert_eq!(world.listed("apps?regions=west").0, ["HERE/h UP", "ORDERS/w UP"]);
    world.node.get("apps/ORDERS").is_empty_with(404);
    assert_eq!(world.listed("vips/orders").0, [""; 0]);
    // As in Java, single instances do not look at the switch.
    assert_eq!(world.node.view("ORDERS", "w")["hostName"], "host-w");
    assert!(!world.node.get("/api/v1/changes").text().contains("remote"));
}

#[test]
fn an_application_of_other_regions_is_shown_if_there_is_none_here() {
    let world = World::two();
    let ids = |target: &str| {
        let app = world.node.get(target).json()["application"].take();
        let instances = app["instance"].as_array().unwrap().iter();
        let ids: Vec<String> = instances.map(|it| it["instanceId"].to_string()).collect();
        ids
    };
    assert_eq!(ids("apps/orders"), ["\"e\"", "\"w\""]);
    assert_eq!(ids("apps/ORDERS?regions=west"), ["\"e\"", "\"w\""]);
    world.node.register("ORDERS", "h");
    assert_eq!(ids("apps/ORDERS"), ["\"h\""]);
    world.node.get("apps/NONE").is_empty_with(404);
    assert_eq!(
        world.listed("vips/orders").0,
        ["ORDERS/e UP", "ORDERS/h UP", "ORDERS/w UP"]
    );
    assert_eq!(world.listed("svips/s-orders?regions=west").0.len(), 3);
}

#[test]
fn single_instances_are_looked_for_everywhere_and_changed_nowhere_else() {
    let world = World::two();
    assert_eq!(world.node.view("ORDERS", "w")["hostName"], "host-w");
    assert_eq!(
        world.node.get("instances/e").json()["instance"]["hostName"],
        "host-e"
    );
    world.node.get("apps/ORDERS/x").is_empty_with(404);
    for target in [
        "apps/ORDERS/w",
        "apps/ORDERS/w/status?value=DOWN",
        "apps/ORDERS/w/metadata?a=b",
    ] {
        world.node.put(target).is_empty_with(404);
    }
    world.node.delete("apps/ORDERS/w").is_empty_with(404);
    world.node.delete("apps/ORDERS/w/status").is_empty_with(404);
    assert_eq!(world.node.registry.snapshot().len(), 1);
}

#[test]
fn java_finds_the_instance_and_fails_to_change_it() {
    let config = Config {
        update_interval: Duration::ZERO,
        ..Config::eureka_java("boot")
    };
    let mut world = World::with(&["west"], RegionRules::default(), config);
    world.put("west", instance("ORDERS", "w"));
    world.publish("west");
    world
        .node
        .put("apps/ORDERS/w/status?value=DOWN")
        .is_empty_with(500);
    world.node.delete("apps/ORDERS/w/status").is_empty_with(500);
    world
        .node
        .put("apps/ORDERS/x/status?value=DOWN")
        .is_empty_with(404);
    world.node.put("apps/ORDERS/w").is_empty_with(404);
}

#[test]
fn another_server_is_told_of_this_region_alone() {
    let world = World::two();
    for target in ["apps", "apps/delta", "apps?regions=west,east", "vips/here"] {
        let (instances, hash) = listed(&world.get_as_server(target).json());
        assert_eq!(
            (&*instances, &*hash),
            (&["HERE/h UP".to_owned()][..], "UP_1_"),
            "{target}"
        );
    }
    for target in ["apps/ORDERS", "apps/ORDERS/w", "instances/w"] {
        world.get_as_server(target).is_empty_with(404);
    }
    let (instances, _) = listed(&world.get_as_server("vips/orders").json());
    assert!(instances.is_empty());
}

#[test]
fn nothing_of_them_is_in_what_is_ours() {
    let world = World::two();
    let instances = world.node.get("/api/v1/instances").json();
    assert_eq!(instances["instances"].as_array().unwrap().len(), 1);
    let changes = world.node.get("/api/v1/changes").json();
    assert_eq!(changes["remote"], true);
    let since = changes["cursor"].as_str().unwrap().replace('.', "%2E");
    let later = world.node.get(&format!("/api/v1/changes?since={since}&wait=0"));
    assert_eq!(later.json()["remote"], true);
    let alone = Fixture::new();
    assert_eq!(alone.get("/api/v1/changes").json()["remote"], Value::Null);
}

#[test]
fn the_nodes_own_instance_wins() {
    let mut world = World::two();
    world.node.post(
        "ORDERS",
        &instance_with("ORDERS", "w", &json!({"hostName": "mine"})),
    );
    let host = |world: &World, target: &str| {
        let list = world.node.get(target).json();
        let found = instances(&list).into_iter().find(|it| it["instanceId"] == "w");
        found.map(|it| (it["hostName"].clone(), it["actionType"].clone()))
    };
    let expected = |host: &str, action: &str| Some((json!(host), json!(action)));
    assert_eq!(host(&world, "apps"), expected("mine", "ADDED"));
    assert_eq!(host(&world, "apps/delta"), expected("mine", "ADDED"));
    // What happens to the other one is not seen, and of two others the first by name is shown.
    world.put(
        "west",
        instance_with("ORDERS", "w", &json!({"hostName": "other"})),
    );
    world.publish("west");
    assert_eq!(host(&world, "apps"), expected("mine", "ADDED"));
    assert_eq!(host(&world, "apps/delta"), expected("mine", "ADDED"));
    // It leaves here: who follows the delta must not take it away.
    world.node.delete("apps/ORDERS/w");
    assert_eq!(host(&world, "apps").unwrap().0, "other");
    assert_eq!(host(&world, "apps/delta"), expected("other", "MODIFIED"));
    // It leaves everywhere.
    assert!(world.remove("west", "ORDERS", "w"));
    world.publish("west");
    assert_eq!(host(&world, "apps"), None);
    assert_eq!(host(&world, "apps/delta").unwrap().1, "DELETED");
}

#[test]
fn what_left_here_is_not_told_as_gone_once_a_region_has_it() {
    let mut world = World::new(&["west"]);
    world.node.register("ORDERS", "w");
    world.node.delete("apps/ORDERS/w");
    let told = |world: &World| instances(&world.node.get("apps/delta").json())[0]["actionType"].clone();
    assert_eq!(told(&world), "DELETED");
    // The first time that a region is read is no change in its own delta.
    world.put("west", instance("ORDERS", "w"));
    world.publish("west");
    assert_eq!(told(&world), "MODIFIED");
}

#[test]
fn of_two_regions_the_first_by_name_is_shown() {
    let mut world = World::two();
    world.put("east", instance_with("SAME", "s", &json!({"status": "DOWN"})));
    world.put("west", instance("SAME", "s"));
    world.publish("east");
    world.publish("west");
    let (instances, hash) = world.listed("apps");
    assert!(instances.contains(&"SAME/s DOWN".to_owned()));
    assert_eq!(hash, "DOWN_1_UP_3_");
    assert_eq!(world.node.view("SAME", "s")["status"], "DOWN");
    // A set that is made when both are there already.
    let fresh = world.listed("apps?regions=west,east,nowhere");
    assert_eq!(fresh, (instances, hash));
}

#[test]
fn changes_stay_in_the_delta_for_the_retention() {
    let mut world = World::two();
    world.node.delete("apps/HERE/h");
    world.node.advance(Duration::from_secs(200));
    // What a region began with is no change.
    assert_eq!(world.listed("apps/delta").0, [""; 0]);
    world.put("west", instance_with("ORDERS", "w", &json!({"status": "DOWN"})));
    world.publish("west");
    assert_eq!(
        world.listed("apps/delta"),
        (vec!["ORDERS/w DOWN".to_owned()], "DOWN_1_UP_1_".to_owned())
    );
    world.node.advance(Duration::from_secs(100));
    world.put("west", instance("ORDERS", "w"));
    world.publish("west");
    world.node.advance(Duration::from_secs(100));
    assert_eq!(
        world.listed("apps/delta").0,
        ["ORDERS/w UP"],
        "the second change is still young"
    );
    world.node.advance(Duration::from_secs(79));
    assert_eq!(world.listed("apps/delta").0.len(), 1);
    world.node.advance(Duration::from_secs(1));
    assert_eq!(world.listed("apps/delta"), (Vec::new(), "UP_2_".to_owned()));
}

#[test]
fn lease_times_are_no_change() {
    let mut world = World::two();
    let before = world.node.get("apps");
    world.put(
        "west",
        instance_with("ORDERS", "w", &json!({"leaseInfo": {"lastRenewalTimestamp": 5}})),
    );
    world.publish("west");
    let after = world.node.get("apps");
    assert_eq!(before.headers["etag"], after.headers["etag"]);
    let ids: Vec<String> = world.listed("apps/delta").0;
    assert_eq!(ids, ["HERE/h UP"]);
    assert_eq!(
        instances(&after.json())[2]["leaseInfo"]["lastRenewalTimestamp"],
        5
    );
}

#[test]
fn tags_change_with_what_is_shown_and_differ_by_regions() {
    let mut world = World::two();
    let targets = [
        "apps",
        "apps?regions=west",
        "apps?regions=east",
        "apps?regions=nowhere",
    ];
    let tags = |world: &World| targets.map(|target| world.node.get(target).headers["etag"].clone());
    let first = tags(&world);
    assert!(
        (1..4).all(|at| !first[at..].contains(&first[at - 1])),
        "{first:?}"
    );
    for (target, tag) in targets.iter().zip(&first) {
        let held = [
            ("accept", "application/json"),
            ("if-none-match", tag.to_str().unwrap()),
        ];
        world.node.send("GET", target, &held, "").is_empty_with(304);
    }
    world.put("west", instance("ORDERS", "w2"));
    world.publish("west");
    let second = tags(&world);
    assert_ne!(first[0], second[0]);
    assert_ne!(first[1], second[1]);
    assert_eq!(first[2..], second[2..], "nothing changed there");
    world.node.register("HERE", "h2");
    let third = tags(&world);
    assert!(second.iter().zip(&third).all(|(old, new)| old != new));
}

#[test]
fn a_change_encodes_one_page() {
    let mut world = World::new(&["west"]);
    for number in 0..600 {
        world.put("west", instance("ORDERS", &format!("i{number:03}")));
    }
    world.publish("west");
    world.node.register("HERE", "h");
    world.node.get("apps");
    let kept = world.node.api.encoded_bytes();
    world.put(
        "west",
        instance_with("ORDERS", "i300", &json!({"status": "DOWN"})),
    );
    world.publish("west");
    // Only one page is missing: it is encoded at once, so that the length is known.
    assert!(world.node.get("apps").len_known);
    let grown = world.node.api.encoded_bytes().abs_diff(kept);
    assert!(grown < kept / 10, "{kept} and {grown}");
    world.node.register("HERE", "h2");
    assert!(world.node.get("apps").len_known);
}

#[test]
fn who_names_a_region_that_is_not_read_yet_is_refused_for_a_while() {
    let mut world = World::new(&["west", "east"]);
    world.node.register("HERE", "h");
    world.node.get("apps?regions=west").is_empty_with(403);
    world.node.get("apps/delta?regions=east,west").is_empty_with(403);
    assert_eq!(world.listed("apps?regions=nowhere").0, ["HERE/h UP"]);
    assert_eq!(world.listed("apps").0, ["HERE/h UP"]);
    world.publish("west");
    assert_eq!(world.listed("apps?regions=west").0, ["HERE/h UP"]);
    world.node.get("apps?regions=east").is_empty_with(403);
    world.node.advance(Duration::from_secs(59));
    world.node.get("apps?regions=east").is_empty_with(403);
    world.node.advance(Duration::from_secs(1));
    assert_eq!(world.listed("apps?regions=east").0, ["HERE/h UP"]);
}

#[test]
fn java_refuses_while_any_region_is_not_read() {
    let rules = RegionRules {
        wait: None,
        wait_for_all: true,
        ..RegionRules::default()
    };
    let mut world = World::with(&["west", "east"], rules, Config::new("boot"));
    world.publish("west");
    world.node.advance(Duration::from_secs(3600));
    for target in ["apps?regions=west", "apps?regions=nowhere"] {
        world.node.get(target).is_empty_with(403);
    }
    assert_eq!(world.node.get("apps").status, 200);
    world.publish("east");
    assert_eq!(world.node.get("apps?regions=west").status, 200);
}

#[test]
fn only_listed_applications_are_taken() {
    let west = RemoteRegion {
        applications: Some(["orders".into(), "CARTS".into()].into()),
        ..RemoteRegion::new("west")
    };
    let regions = RemoteRegions::new([west], RegionRules::default()).unwrap();
    let mut world = World::of(regions, &["west"], Config::new("boot"));
    for app in ["ORDERS", "SECRET"] {
        world.put("west", instance(app, "first"));
    }
    world.publish("west");
    for app in ["CARTS", "SECRET"] {
        world.put("west", instance(app, "second"));
    }
    world.publish("west");
    assert_eq!(
        world.listed("apps"),
        (
            vec!["CARTS/second UP".to_owned(), "ORDERS/first UP".to_owned()],
            "UP_2_".to_owned(),
        )
    );
    assert_eq!(world.listed("apps/delta").0, ["CARTS/second UP"]);
    world.node.get("apps/SECRET").is_empty_with(404);
    world.node.get("apps/SECRET/first").is_empty_with(404);
    assert_eq!(world.regions.facts()[0].instances, 2);
}

#[test]
fn what_is_known_stays_when_a_region_cannot_be_read() {
    let mut world = World::two();
    world.node.advance(Duration::from_secs(10));
    world.regions.failed("WEST", "nobody answers");
    assert_eq!(world.listed("apps?regions=west").0, ["HERE/h UP", "ORDERS/w UP"]);
    let regions = world.node.get("/api/v1/node").json()["regions"].take();
    assert_eq!(
        regions[1],
        json!({
            "name": "west", "instances": 1, "applications": 1, "read": crate::fixture::BEGIN, "ageMs": 10_000,
            "server": WEST, "successes": 1, "failures": 1, "error": "nobody answers",
        })
    );
    world
        .regions
        .confirm(world.node.registry.now(), "west", "http://west-2:8761/eureka/");
    let regions = world.node.get("/api/v1/node").json()["regions"].take();
    assert_eq!(regions[1]["ageMs"], 0);
    assert_eq!(regions[1]["server"], "http://west-2:8761/eureka/");
    assert_eq!(regions[1]["error"], Value::Null);
    assert_eq!(regions[0]["name"], "east");
    // They come back with less.
    assert!(world.remove("west", "ORDERS", "w"));
    world.publish("west");
    assert_eq!(world.listed("apps?regions=west").0, ["HERE/h UP"]);
    assert_eq!(Fixture::new().get("/api/v1/node").json()["regions"], Value::Null);
}

#[test]
fn lists_are_held_with_the_nodes_own() {
    let mut world = World::two();
    world.node = Fixture::held(
        eureka_registry_core::Config::default(),
        Config {
            regions: Some(world.regions.clone()),
            ..Config::new("boot")
        },
    );
    for target in [
        "apps",
        "apps?regions=west",
        "apps/delta",
        "apps/ORDERS",
        "vips/orders",
    ] {
        world.node.get(target).is_empty_with(403);
    }
    assert_eq!(world.node.get("apps/ORDERS/w").status, 200);
}

/// A client that holds a list and applies deltas, as Java's does.
struct Client {
    target: &'static str,
    delta: &'static str,
    held: BTreeMap<String, Value>,
}

impl Client {
    fn fetch(&mut self, world: &World) {
        let list = world.node.get(self.target).json();
        self.held = instances(&list).into_iter().map(|it| (key(&it), it)).collect();
    }

    fn apply(&mut self, world: &World) -> String {
        let delta = world.node.get(self.delta).json();
        for it in instances(&delta) {
            if it["actionType"] == "DELETED" {
                self.held.remove(&key(&it));
            } else {
                self.held.insert(key(&it), it);
            }
        }
        listed(&delta).1
    }
}

fn key(instance: &Value) -> String {
    format!("{} {}", instance["app"], instance["instanceId"])
}

#[test]
fn who_follows_the_deltas_holds_the_list() {
    for seed in 1..7 {
        let mut random = Random(seed);
        let mut world = World::two();
        let pairs = [
            ("apps", "apps/delta"),
            ("apps?regions=west", "apps/delta?regions=west"),
        ];
        let mut clients = pairs.map(|(target, delta)| Client {
            target,
            delta,
            held: BTreeMap::new(),
        });
        for client in &mut clients {
            client.fetch(&world);
        }
        for step in 0..150 {
            change(&mut world, &mut random);
            world.node.advance(Duration::from_secs(random.below(20) as u64));
            for client in &mut clients {
                if random.below(3) > 0 {
                    let hash = client.apply(&world);
                    let list = world.node.get(client.target).json();
                    let wanted: BTreeMap<String, Value> =
                        instances(&list).into_iter().map(|it| (key(&it), it)).collect();
                    let what = |held: &BTreeMap<String, Value>| -> Vec<String> {
                        held.values()
                            .map(|it| format!("{} {} {}", key(it), it["status"], it["hostName"]))
                            .collect()
                    };
                    assert_eq!(
                        what(&client.held),
                        what(&wanted),
                        "seed {seed}, step {step}, {}",
                        client.target
                    );
                    assert_eq!(hash, listed(&list).1);
                    let up = wanted.values().filter(|it| it["status"] == "UP").count();
                    let down = wanted.len() - up;
                    let part = |name: &str, count: usize| match count {
                        0 => String::new(),
                        count => format!("{name}_{count}_"),
                    };
                    assert_eq!(hash, part("DOWN", down) + &part("UP", up));
                }
            }
        }
    }
}

/// Repeatable numbers (Marsaglia's xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

/// Something happens here or in another region, often to the same few instances.
fn change(world: &mut World, random: &mut Random) {
    let app = ["ORDERS", "CARTS"][random.below(2)];
    let id = format!("i{}", random.below(5));
    let status = ["UP", "DOWN"][random.below(2)];
    match (random.below(3), random.below(3)) {
        (0, 0) => _ = world.node.delete(&format!("apps/{app}/{id}")),
        (0, _) => {
            let dirty = world.node.registry.now().wall.0.to_string();
            let fields = json!({"status": status, "hostName": "here", "lastDirtyTimestamp": dirty,
                "leaseInfo": {"durationInSecs": 90_000, "renewalIntervalInSecs": 30_000}});
            world.node.post(app, &instance_with(app, &id, &fields));
        }
        (place, what) => {
            let region = ["west", "east"][place - 1];
            if what == 0 {
                world.remove(region, app, &id);
            } else {
                world.put(
                    region,
                    instance_with(app, &id, &json!({"status": status, "hostName": region})),
                );
            }
            if random.below(2) == 0 {
                world.publish(region);
            }
        }
    }
}
