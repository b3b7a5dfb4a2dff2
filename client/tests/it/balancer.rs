//! A balancer over a cache: what it picks from, and what it says when there is nobody.

use std::collections::BTreeSet;

use eureka_client::balance::{Absence, BalanceConfig, Balancer, Feedback, Target};
use eureka_registry_core::Status;

use crate::listed::{Listed, instance};

fn balancer(listed: &Listed, target: Target) -> Balancer {
    Balancer::new(listed.cache(), target, BalanceConfig::default())
}

fn picked(balancer: &Balancer, times: usize) -> BTreeSet<String> {
    let ids = (0..times).map(|_| balancer.pick().map(|pick| pick.instance().id().to_owned()));
    ids.collect::<Result<_, _>>().expect("somebody can be picked")
}

fn ids<const N: usize>(ids: [&str; N]) -> BTreeSet<String> {
    ids.map(str::to_owned).into()
}

fn absence(balancer: &Balancer) -> Absence {
    balancer.pick().expect_err("nobody is there").absence
}

#[test]
fn picks_follow_the_cache() {
    let mut listed = Listed::of([instance("orders", "a"), instance("payments", "x")]);
    let orders = balancer(&listed, Target::app("orders"));
    assert_eq!(picked(&orders, 4), ids(["a"]));
    listed.put(instance("orders", "b"));
    assert_eq!(picked(&orders, 4), ids(["a"]), "not shown yet");
    listed.show();
    assert_eq!(picked(&orders, 4), ids(["a", "b"]));
    let mut down = instance("orders", "a");
    down.status = Status::Down;
    listed.put(down);
    listed.show();
    assert_eq!(picked(&orders, 4), ids(["b"]));
    listed.remove("orders", "b");
    listed.show();
    assert_eq!(absence(&orders), Absence::NoneUp { listed: 1 });
}

#[test]
fn targets() {
    let mut virtual_one = instance("orders", "a");
    virtual_one.vip_address = Some("orders-v1,orders.example:80".into());
    let mut secure_one = instance("orders", "b");
    secure_one.secure_vip_address = Some("orders-v1".into());
    (secure_one.secure_port.number, secure_one.secure_port.enabled) = (443, true);
    let mut no_port = instance("orders", "c");
    no_port.secure_vip_address = Some("orders-v1".into());
    let listed = Listed::of([virtual_one, secure_one, no_port]);
    assert_eq!(picked(&balancer(&listed, Target::app("Orders")), 6).len(), 3);
    for vip in ["orders-v1", "orders.example:80"] {
        assert_eq!(picked(&balancer(&listed, Target::vip(vip)), 3), ids(["a"]));
    }
    let secure = balancer(&listed, Target::secure_vip("orders-v1"));
    assert_eq!(picked(&secure, 3), ids(["b"]));
    let pick = secure.pick().expect("b is there");
    assert_eq!(pick.endpoint().to_string(), "https://b:443");
    let counted = secure.figures().listed;
    assert_eq!((counted.all, counted.up, counted.callable), (2, 2, 1));
}

#[test]
fn whoever_finds_nobody_is_told_why() {
    let mut listed = Listed::new();
    let orders = balancer(&listed, Target::app("orders"));
    assert_eq!(absence(&orders), Absence::NothingRead);
    listed.show();
    assert_eq!(absence(&orders), Absence::Unknown);
    let mut portless = instance("orders", "a");
    portless.port.enabled = false;
    listed.put(portless);
    listed.show();
    assert_eq!(absence(&orders), Absence::NoneCallable { up: 1 });
    listed.put(instance("orders", "a"));
    listed.show();
    let pick = orders.pick().expect("a can be called now");
    let tried = [pick.key().clone()];
    let none = orders.pick_besides(&tried).expect_err("there is but one");
    assert_eq!(none.absence, Absence::AllTried { callable: 1 });
    assert_eq!(
        none.to_string(),
        "no instance of application orders: all 1 that can be called have been tried"
    );
}

#[test]
fn feedback_counts_for_all_clones_and_survives_other_changes() {
    let mut listed = Listed::of(["a", "b", "c"].map(|id| instance("orders", id)));
    let orders = balancer(&listed, Target::app("orders"));
    let clone = orders.clone();
    let mut failures = 0;
    while failures < 5 {
        let pick = clone.pick().expect("somebody is there");
        if pick.instance().id() == "a" {
            pick.feedback(Feedback::Failed);
            failures += 1;
        }
    }
    assert_eq!(picked(&orders, 6), ids(["b", "c"]));
    listed.put(instance("payments", "x"));
    listed.put(instance("orders", "d"));
    listed.show();
    assert_eq!(picked(&orders, 6), ids(["b", "c", "d"]));
    assert_eq!(orders.figures().ejected, 1);
    listed.advance(30);
    assert_eq!(picked(&orders, 8), ids(["a", "b", "c", "d"]));
}
