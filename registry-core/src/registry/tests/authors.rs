//! What the log of changes says of each: by whom, why, and what was there before.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::{Bench, instance, key, peer};
use crate::changes::{Author, Changes};
use crate::command::Origin::{self, Client, Operator, Own};
use crate::config::{Config, PreservationConfig};
use crate::model::{Instance, Status};
use crate::repair::{Offer, RepairRequest, Stamp, Stamped};
use crate::time::Wall;

/// A registry, and up to which version its changes were read.
struct Told {
    bench: Bench,
    version: u64,
}

impl Told {
    fn new(config: Config) -> Self {
        let preservation = PreservationConfig {
            enabled: false,
            ..config.preservation
        };
        let config = Config {
            preservation,
            ..config
        };
        Self {
            bench: Bench::new(config),
            version: 0,
        }
    }

    /// Compares what is new with lines: action, author, cause, before, after.
    fn tells(&mut self, what: &str, expected: &[&str]) {
        let bench = &self.bench;
        let Changes::Since { changes, current } = bench.registry.changes(bench.now, self.version, 99) else {
            panic!("nothing is lost");
        };
        self.version = current;
        let lines: Vec<_> = changes
            .iter()
            .map(|change| {
                assert_eq!(change.at, bench.now.wall, "{what}");
                let author = match &change.author {
                    Author::Peer(name) => format!("Peer {}", name.0),
                    author @ (Author::Client | Author::Operator | Author::Own | Author::Eviction) => {
                        format!("{author:?}")
                    }
                };
                let before = change.before.as_deref().map_or_else(|| String::from("-"), shown);
                let after = shown(&change.instance);
                format!(
                    "{:?} {author} {:?}: {before} to {after}",
                    change.action, change.cause
                )
            })
            .collect();
        assert_eq!(lines, expected, "{what}");
    }

    fn register(&mut self, origin: Origin, dirty: i64) {
        self.bench.register(origin, instance(dirty));
    }

    /// A peer hands something over in an exchange.
    fn offered(&mut self, offer: Offer) {
        let (pull, push) = (Vec::new(), Vec::from([offer]));
        let exchange = RepairRequest::Exchange { pull, push };
        self.bench
            .registry
            .repair_answer(self.bench.now, peer(), exchange);
        self.bench.drain();
    }

    fn overridden(&mut self, origin: Origin, status: Status) {
        let now = self.bench.now;
        self.bench
            .registry
            .set_override(now, origin, &key(), status, None);
        self.bench.drain();
    }
}

/// Status, override if there is one, dirty timestamp.
fn shown(instance: &Instance) -> String {
    let dirty = instance.last_dirty.unwrap_or(-1);
    let status = instance.status;
    if instance.overridden_status == Status::Unknown {
        format!("{status} {dirty}")
    } else {
        format!("{status}/{} {dirty}", instance.overridden_status)
    }
}

fn copy(dirty: i64, overridden: Option<Stamped>) -> Offer {
    Offer::Copy {
        instance: Arc::new(instance(dirty)),
        age: Duration::ZERO,
        overridden,
    }
}

#[test]
fn registrations_cancels_and_evictions_say_who_and_why() {
    let mut told = Told::new(Config::default());
    told.register(Client, 10);
    told.tells("a registration", &["Added Client Registered: - to UP 10"]);
    told.register(peer(), 11);
    told.tells(
        "another, by a peer",
        &["Added Peer http://peer/eureka/ Registered: UP 10 to UP 11"],
    );
    told.register(peer(), 5);
    told.tells(
        "an older one",
        &["Added Peer http://peer/eureka/ Registered: UP 11 to UP 11"],
    );
    told.bench.renew(Client, &key());
    told.tells("a renewal", &[]);
    let entries = [(Arc::from("zone"), Arc::from("a"))];
    let now = told.bench.now;
    told.bench.registry.update_metadata(now, Client, &key(), &entries);
    told.tells("metadata", &["Added Client MetadataChanged: UP 11 to UP 12"]);
    told.bench.registry.cancel(now, Operator, &key());
    told.tells("a cancel", &["Deleted Operator Cancelled: UP 12 to UP 12"]);
    told.bench.registry.cancel(now, Operator, &key());
    told.tells("a cancel of nobody", &[]);
    told.register(Own, 20);
    told.tells("the node itself", &["Added Own Registered: - to UP 20"]);
    told.register(peer(), 21);
    told.tells(
        "its copy",
        &["Added Peer http://peer/eureka/ Registered: UP 20 to UP 21"],
    );
    told.bench.advance(120_000);
    told.tells("silence", &["Deleted Eviction Expired: UP 21 to UP 21"]);
}

#[test]
fn overrides_say_who_and_why() {
    let mut told = Told::new(Config::default());
    told.register(Client, 10);
    told.version = 1;
    told.overridden(Operator, Status::OutOfService);
    told.tells(
        "an override",
        &["Modified Operator Overridden: UP 10 to OUT_OF_SERVICE/OUT_OF_SERVICE 10"],
    );
    told.overridden(Client, Status::OutOfService);
    told.tells("the same again", &[]);
    told.register(Client, 11);
    told.tells(
        "a registration under it",
        &["Added Client Registered: OUT_OF_SERVICE/OUT_OF_SERVICE 10 to \
             OUT_OF_SERVICE/OUT_OF_SERVICE 11"],
    );
    // Unknown is no override but takes it away.
    told.overridden(Client, Status::Unknown);
    told.tells(
        "no override any more",
        &["Modified Client OverrideCleared: OUT_OF_SERVICE/OUT_OF_SERVICE 11 to UNKNOWN 11"],
    );
    told.register(Client, 12);
    told.version += 1;

    // A peer that is ahead tells of its override in a heartbeat; the next one of the client makes it effective.
    let (now, out) = (told.bench.now, Some(Status::OutOfService));
    told.bench.registry.renew(now, peer(), &key(), Some(99), out);
    told.tells(
        "a heartbeat with an override",
        &["Modified Peer http://peer/eureka/ Overridden: UP 12 to UP/OUT_OF_SERVICE 12"],
    );
    told.bench.renew(Client, &key());
    told.tells(
        "a flip by rule",
        &["Modified Client Renewed: UP/OUT_OF_SERVICE 12 to OUT_OF_SERVICE/OUT_OF_SERVICE 12"],
    );
    let up = Some(Status::Up);
    told.bench
        .registry
        .clear_override(now, Operator, &key(), up, None);
    told.tells(
        "a clear",
        &["Modified Operator OverrideCleared: OUT_OF_SERVICE/OUT_OF_SERVICE 12 to UP 12"],
    );
    told.bench
        .registry
        .clear_override(now, Operator, &key(), up, None);
    told.tells("a clear of nothing", &[]);
}

#[test]
fn repair_says_who_and_why() {
    let mut told = Told::new(Config::default());
    told.offered(copy(10, None));
    told.tells("a copy", &["Added Peer http://peer/eureka/ Adopted: - to UP 10"]);
    told.offered(copy(12, None));
    told.tells(
        "a newer one",
        &["Added Peer http://peer/eureka/ Adopted: UP 10 to UP 12"],
    );
    told.offered(copy(11, None));
    told.tells("an older one", &[]);
    let stamped = |status, after| {
        let at = Wall(told.bench.now.wall.0 + after);
        let stamp = Stamp { at, node: 7 };
        Some(Stamped { status, stamp })
    };
    let (set, cleared) = (stamped(Some(Status::Down), 1), stamped(None, 2));
    told.offered(copy(12, set));
    told.tells(
        "an override of another node",
        &["Modified Peer http://peer/eureka/ Overridden: UP 12 to DOWN/DOWN 12"],
    );
    told.offered(copy(12, cleared));
    told.tells(
        "its clear",
        &["Modified Peer http://peer/eureka/ OverrideCleared: DOWN/DOWN 12 to UP 12"],
    );
    told.offered(Offer::Gone {
        key: key(),
        dirty: 13,
        ago: Duration::ZERO,
    });
    told.tells(
        "a cancel at another node",
        &["Deleted Peer http://peer/eureka/ Cancelled: UP 12 to UP 12"],
    );
    // It registers here again, and the other node tells of the cancel before that: the newer dirty timestamp is taken over.
    told.bench.advance(10_000);
    told.register(Client, 5);
    told.tells("a registration", &["Added Client Registered: - to UP 5"]);
    told.offered(Offer::Gone {
        key: key(),
        dirty: 14,
        ago: Duration::from_secs(5),
    });
    told.tells(
        "a cancel that is outdone",
        &["Added Peer http://peer/eureka/ Adopted: UP 5 to UP 14"],
    );
}

#[test]
fn what_java_hides_is_a_modification_by_whoever_renewed() {
    let mut told = Told::new(Config::eureka_java());
    told.register(Client, 10);
    told.version = 1;
    let (now, out) = (told.bench.now, Some(Status::OutOfService));
    told.bench.registry.renew(now, peer(), &key(), Some(11), out);
    told.bench.renew(Own, &key());
    told.tells(
        "both flips",
        &[
            "Modified Peer http://peer/eureka/ Overridden: UP 10 to UP/OUT_OF_SERVICE 10",
            "Modified Own Renewed: UP/OUT_OF_SERVICE 10 to OUT_OF_SERVICE/OUT_OF_SERVICE 10",
        ],
    );
}
