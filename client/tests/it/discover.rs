//! What tower's balancers are told, and that the real one works with it.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use eureka_client::balance::{Addressing, Endpoint, Target};
use eureka_client::discover::Discover;
use eureka_registry_core::{Instance, Status};
use futures_core::Stream;
use tower::balance::p2c::Balance;
use tower::discover::Change;
use tower::load::{CompleteOnResponse, PendingRequestsDiscover};
use tower::{Service, ServiceExt, service_fn};

use crate::listed::{Listed, instance};

fn shown(_: &Arc<Instance>, endpoint: &Endpoint) -> String {
    endpoint.to_string()
}

/// What is there without waiting: `+a http://a:80` or `-a`.
fn told<F>(discover: &mut Discover<F>) -> Vec<String>
where
    F: FnMut(&Arc<Instance>, &Endpoint) -> String + Unpin,
{
    let mut context = Context::from_waker(Waker::noop());
    let mut told = Vec::new();
    while let Poll::Ready(Some(Ok(change))) = Pin::new(&mut *discover).poll_next(&mut context) {
        told.push(match change {
            Change::Insert(key, service) => format!("+{} {service}", key.id()),
            Change::Remove(key) => format!("-{}", key.id()),
        });
    }
    told
}

#[test]
fn instances_that_can_be_called_come_and_go() {
    let mut starting = instance("orders", "b");
    starting.status = Status::Starting;
    let mut listed = Listed::of([instance("orders", "a"), starting, instance("payments", "x")]);
    let target = Target::app("orders");
    let mut discover = Discover::new(&listed.cache(), &target, Addressing::default(), shown);
    assert_eq!(told(&mut discover), ["+a http://a:80"]);
    assert!(told(&mut discover).is_empty());

    listed.put(instance("orders", "b"));
    let mut portless = instance("orders", "c");
    portless.port.enabled = false;
    listed.put(portless.clone());
    listed.show();
    assert_eq!(told(&mut discover), ["+b http://b:80"]);

    let mut other_metadata = instance("orders", "a");
    other_metadata.metadata.insert("version", "2");
    listed.put(other_metadata);
    listed.show();
    assert!(told(&mut discover).is_empty(), "it is called where it was");

    let mut moved = instance("orders", "a");
    moved.port.number = 81;
    listed.put(moved);
    let mut down = instance("orders", "b");
    down.status = Status::Down;
    listed.put(down);
    portless.port.enabled = true;
    listed.put(portless);
    listed.show();
    assert_eq!(
        told(&mut discover),
        ["-a", "+a http://a:81", "-b", "+c http://c:80"]
    );

    for id in ["a", "b"] {
        listed.remove("orders", id);
    }
    listed.show();
    assert_eq!(told(&mut discover), ["-a"], "b was removed already");
}

#[test]
fn it_ends_when_the_client_does() {
    let listed = Listed::of([instance("orders", "a")]);
    let target = Target::app("orders");
    let mut discover = Discover::new(&listed.cache(), &target, Addressing::default(), shown);
    drop(listed);
    assert_eq!(told(&mut discover), ["+a http://a:80"], "what is known is told");
    let mut context = Context::from_waker(Waker::noop());
    let polled = Pin::new(&mut discover).poll_next(&mut context);
    assert!(matches!(polled, Poll::Ready(None)));
}

#[test]
fn secure_addresses_are_called_at_secure_ports() {
    let mut secure = instance("orders", "a");
    secure.secure_vip_address = Some("orders-v1".into());
    (secure.secure_port.number, secure.secure_port.enabled) = (443, true);
    let listed = Listed::of([secure]);
    let target = Target::secure_vip("orders-v1");
    let mut discover = Discover::new(&listed.cache(), &target, Addressing::default(), shown);
    assert_eq!(told(&mut discover), ["+a https://a:443"]);
}

#[tokio::test]
async fn towers_balancer_calls_whoever_is_there() {
    let mut listed = Listed::of(["a", "b", "c"].map(|id| instance("orders", id)));
    let target = Target::app("orders");
    let make = |instance: &Arc<Instance>, _: &Endpoint| {
        let id = instance.id().to_owned();
        service_fn(move |(): ()| std::future::ready(Ok::<_, Infallible>(id.clone())))
    };
    let discover = Discover::new(&listed.cache(), &target, Addressing::default(), make);
    let discover = PendingRequestsDiscover::new(discover, CompleteOnResponse::default());
    let mut balance = Balance::new(discover);
    let mut called = async |times: usize| {
        let mut seen = BTreeSet::new();
        for _ in 0..times {
            let ready = balance.ready().await.expect("somebody is there");
            seen.insert(ready.call(()).await.expect("it answers"));
        }
        seen.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(called(100).await, ["a", "b", "c"]);
    listed.remove("orders", "b");
    listed.put(instance("orders", "d"));
    listed.show();
    assert_eq!(called(100).await, ["a", "c", "d"]);
}
