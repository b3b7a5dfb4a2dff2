//! Set-ups of nodes of ours alone.

use anyhow::Result;

use super::{APP, Doctor, await_instance, instance, name, register, start};
use crate::cluster::relay::Relay;
use crate::cluster::servers::{Place, Server, Workshop};
use crate::conformance::target::Instance;

const QUICK: [&str; 3] = [
    "replication.digest-interval=1s",
    "bootstrap.settle=1s",
    "bootstrap.wait-when-empty=3s",
];

fn settings<'a>(more: &[&'a str]) -> Vec<&'a str> {
    QUICK.iter().chain(more).copied().collect()
}

fn ready(servers: &mut [Server]) -> Result<()> {
    start(servers)?;
    for server in servers {
        server.ready()?;
    }
    Ok(())
}

/// Two nodes, with a relay on each way.
pub(super) fn links(workshop: &Workshop, doctor: &Doctor<'_>) -> Result<()> {
    let places = [Place::new("doctor-a", 1)?, Place::new("doctor-b", 2)?];
    let [to_b, to_a] = [Relay::new(places[1].address)?, Relay::new(places[0].address)?];
    let urls = places.each_ref().map(|place| name(&place.url(None)));
    let both = urls.each_ref().map(String::as_str);
    let mut servers = [
        workshop.ours(&places[0], &[to_b.url()], &settings(&[])),
        workshop.ours(&places[1], &[to_a.url()], &settings(&[])),
    ];
    ready(&mut servers)?;
    let orders = instance("orders-1");
    register(&servers[0], &orders)?;
    await_instance(&servers[1], &orders, true)?;
    doctor.of(&both, &orders, "two healthy nodes", None);
    to_b.cut();
    doctor.compared(
        &both,
        "the way from one to the other is cut",
        Some(("one-way-link", &both)),
    );
    to_a.cut();
    doctor.compared(&both, "both ways are cut", Some(("peer-silent", &both)));
    to_b.mend();
    to_a.mend();
    doctor.compared(&both, "both ways are mended", None);
    let nobody = "http://127.0.0.1:1/eureka";
    let three = [both[0], both[1], nobody];
    doctor.compared(
        &three,
        "a third server that is down",
        Some(("server-unreachable", &[nobody])),
    );
    clients(doctor, &servers, &both)
}

fn clients(doctor: &Doctor<'_>, servers: &[Server; 2], both: &[&str; 2]) -> Result<()> {
    let [one, two] = [instance("twice"), Instance::new("KIT-DOCTOR-2", "twice")];
    for instance in [&one, &two] {
        register(&servers[0], instance)?;
        await_instance(&servers[1], instance, true)?;
    }
    doctor.of(
        both,
        &one,
        "an id of two applications",
        Some(("id-in-two-apps", both)),
    );
    servers[0].target().cancel(APP, &one.id)?;
    servers[0].target().cancel(&two.app, &two.id)?;
    doctor.of(
        both,
        &instance("never"),
        "a client that never registered",
        Some(("not-registered", both)),
    );
    // It renews every four seconds, but nowhere here.
    let elsewhere = Instance {
        lease_seconds: 30,
        ..instance("elsewhere")
    };
    register(&servers[0], &elsewhere)?;
    await_instance(&servers[1], &elsewhere, true)?;
    doctor.of(
        both,
        &elsewhere,
        "the client uses another server",
        Some(("client-elsewhere", both)),
    );
    Ok(())
}

/// Peer addresses that lead elsewhere than their owners believe.
pub(super) fn addresses(workshop: &Workshop, doctor: &Doctor<'_>) -> Result<()> {
    let places = [Place::new("doctor-c", 1)?, Place::new("doctor-d", 2)?];
    let urls = places.each_ref().map(|place| place.url(None));
    let names = urls.each_ref().map(|url| name(url));
    let both = names.each_ref().map(String::as_str);
    let shared = Relay::balancing(places.iter().map(|place| place.address).collect())?;
    let alias = Relay::new(places[0].address)?;
    let check = |what: &str, peers: [&[String]; 2], found: &str, about: &[&str]| -> Result<()> {
        let mut servers = [
            workshop.ours(&places[0], peers[0], &settings(&[])),
            workshop.ours(&places[1], peers[1], &settings(&[])),
        ];
        ready(&mut servers)?;
        doctor.compared(&both, what, Some((found, about)));
        Ok(())
    };
    let [shared, alias] = [shared.url(), alias.url()].map(|url| [url]);
    let [first, second] = urls.map(|url| [url]);
    check(
        "a load balancer as the peer address",
        [&shared, &shared],
        "shared-address",
        &both,
    )?;
    check(
        "a node that is its own peer",
        [&alias, &first],
        "self-loop",
        &both[..1],
    )?;
    check(
        "a node without peers",
        [&second, &[]],
        "not-a-peer",
        &[both[1], both[0]],
    )
}

/// Lists that are held back, and lists that lag.
pub(super) fn reads(workshop: &Workshop, doctor: &Doctor<'_>) -> Result<()> {
    let places = [Place::new("doctor-e", 1)?, Place::new("doctor-f", 2)?];
    let urls = places.each_ref().map(|place| place.url(None));
    let names = urls.each_ref().map(|url| name(url));
    let both = names.each_ref().map(String::as_str);
    let held = [
        "bootstrap.settle=1h",
        "bootstrap.wait-when-empty=2h",
        // It would open as soon as it has copied something.
        "bootstrap.retry-interval=1h",
        "replication.digest-interval=1s",
    ];
    let mut servers = [
        workshop.ours(&places[0], &[urls[1].clone()], &settings(&[])),
        workshop.ours(&places[1], &[urls[0].clone()], &held),
    ];
    // The second asks once for the first, which must be there by then.
    let (first, second) = servers.split_at_mut(1);
    ready(first)?;
    start(second)?;
    // The first did not reach the other at once, and says so for a while.
    doctor.compared(
        &both,
        "the servers as wholes while one holds its lists",
        Some(("reads-held", &both[1..])),
    );
    let orders = instance("orders-1");
    register(&servers[0], &orders)?;
    await_instance(&servers[1], &orders, true)?;
    doctor.of(
        &both,
        &orders,
        "a node that holds its lists after the start",
        Some(("reads-held", &both[1..])),
    );
    let [first, mut second] = servers;
    second.kill();
    let lagging = settings(&["responses.update-interval=1h"]);
    let mut second = workshop.ours(&places[1], &[urls[0].clone()], &lagging);
    ready(std::slice::from_mut(&mut second))?;
    // Its list is made now, and not again.
    second.target().get("/apps")?;
    let late = instance("orders-2");
    register(&first, &late)?;
    await_instance(&second, &late, true)?;
    doctor.of(
        &both,
        &late,
        "a node with Java's read cache",
        Some(("read-cache", &both[1..])),
    );
    Ok(())
}

/// Nodes that judge leases differently.
pub(super) fn leases(workshop: &Workshop, doctor: &Doctor<'_>) -> Result<()> {
    let places = [Place::new("doctor-g", 1)?, Place::new("doctor-h", 2)?];
    let urls = places.each_ref().map(|place| place.url(None));
    let names = urls.each_ref().map(|url| name(url));
    let both = names.each_ref().map(String::as_str);
    let evicts = settings(&["preservation.enabled=false", "registry.eviction-interval=1s"]);
    let mut servers = [
        workshop.ours(&places[0], &[urls[1].clone()], &settings(&[])),
        workshop.ours(&places[1], &[urls[0].clone()], &evicts),
    ];
    ready(&mut servers)?;
    let dead: Vec<Instance> = (0..10)
        .map(|index| Instance {
            lease_seconds: 3,
            ..instance(&format!("dead-{index}"))
        })
        .collect();
    for instance in &dead {
        register(&servers[0], instance)?;
    }
    await_instance(&servers[1], &dead[0], true)?;
    doctor.compared(
        &both,
        "one node preserves, the other evicts",
        Some(("preservation-on-one-side", &both)),
    );
    let [first, mut second] = servers;
    for instance in &dead {
        first.target().cancel(APP, &instance.id)?;
    }
    second.kill();
    let other_rules = settings(&["registry.lease-expiry=doubled"]);
    let mut second = workshop.ours(&places[1], &[urls[0].clone()], &other_rules);
    ready(std::slice::from_mut(&mut second))?;
    doctor.compared(
        &both,
        "nodes with different lease rules",
        Some(("different-rules", &both)),
    );
    Ok(())
}
