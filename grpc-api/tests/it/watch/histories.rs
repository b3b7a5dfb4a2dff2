//! Random histories: writers, readers that fall behind, go away and come back, and nodes that start again.

use eureka_grpc_api::Config;
use eureka_registry_core::{Instance, InstanceKey, Origin, Status};
use std::time::Duration;

use super::node::Node;
use super::reader::Reader;

const HISTORIES: u64 = 1_000;
const STEPS: usize = 60;
const FILTERS: [&str; 4] = [
    "",
    "status == UP",
    "app == A || metadata.k == 1",
    "status != UP && id ~ \"*1\"",
];

/// Numbers from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::try_from(self.below(choices.len() as u64)).unwrap()]
    }
}

/// Small logs, so that readers get lost, each boot under a seed of its own.
fn node(dice: &mut Dice) -> Node {
    let core = eureka_registry_core::Config {
        seed: [dice.below(u64::MAX), 0],
        change_log_limit: dice.of(&[1, 8, 64]),
        ..eureka_registry_core::Config::default()
    };
    let config = Config {
        feed_kept: dice.of(&[1, 4, 1_000]),
        ..Config::default()
    };
    Node::with(core, config)
}

fn write(dice: &mut Dice, node: &Node) {
    let (app, id) = (dice.of(&["A", "B"]), dice.of(&["1", "2", "11"]));
    match dice.below(6) {
        0 | 1 => {
            let mut instance = Instance::new(app, id, "host", "10.0.0.1");
            instance.metadata.insert("k", dice.of(&["1", "2"]));
            instance.status = dice.of(&[Status::Up, Status::Starting]);
            node.register_with(instance);
        }
        2 => node.cancel(app, id),
        3 => node.set_status(
            app,
            id,
            dice.of(&[Status::Up, Status::Down, Status::OutOfService]),
        ),
        4 => {
            let key = InstanceKey::new(app, id);
            node.registry
                .clear_override(Origin::Client, &key, Some(Status::Up), None);
        }
        _ => {
            let entries = [("k".into(), dice.of(&["1", "2"]).into())];
            node.registry
                .update_metadata(Origin::Client, &InstanceKey::new(app, id), &entries);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_ends_with_what_the_registry_holds() {
    let mut snapshots = 0;
    let mut changes = 0;
    for seed in 0..HISTORIES {
        let reader = history(seed).await;
        snapshots += reader.snapshots.len();
        changes += reader.changes;
    }
    // The histories are of any use.
    assert!(snapshots > 2_000, "{snapshots}");
    assert!(changes > 5_000, "{changes}");
}

async fn history(seed: u64) -> Reader {
    let mut dice = Dice(seed);
    let mut nodes = [node(&mut dice), node(&mut dice)];
    let mut at = 0;
    let mut reader = Reader::start(&nodes[at], "", dice.of(&FILTERS)).await.unwrap();
    for _ in 0..STEPS {
        match dice.below(20) {
            0..8 => {
                let written = dice.of(&[0, 1]);
                write(&mut dice, &nodes[written]);
            }
            8..11 => (0..dice.below(30)).for_each(|_| write(&mut dice, &nodes[at])),
            11..15 => reader.take(usize::try_from(dice.below(6)).unwrap()).await,
            15 => assert!(reader.drain().await.is_none()),
            16 => tokio::time::advance(Duration::from_secs(dice.below(20))).await,
            17 => reader.reconnect(&nodes[at]).await.unwrap(),
            18 => {
                at = 1 - at;
                reader.reconnect(&nodes[at]).await.unwrap();
            }
            _ => {
                // It starts again, with whatever comes back before the reader does.
                nodes[at] = node(&mut dice);
                (0..dice.below(10)).for_each(|_| write(&mut dice, &nodes[at]));
                reader.reconnect(&nodes[at]).await.unwrap();
            }
        }
    }
    assert!(reader.drain().await.is_none(), "seed {seed}");
    assert_eq!(reader.view, reader.expected(&nodes[at]), "seed {seed}");
    reader
}
