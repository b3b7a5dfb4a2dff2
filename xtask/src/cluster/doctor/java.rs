//! Set-ups of Java servers alone.

use anyhow::Result;

use super::skewed::Skewed;
use super::{APP, Doctor, await_instance, instance, name, register, register_as_peer, start};
use crate::cluster::relay::Relay;
use crate::cluster::servers::{Java, Place, Server, Workshop};
use crate::conformance::target::{Instance, instance_path, now_millis};

/// What makes a Java server quick enough, and keep its own instance out of it.
pub(super) fn settings(more: &[&str]) -> Vec<String> {
    let common = [
        "eureka.client.register-with-eureka=false",
        "eureka.client.fetch-registry=true",
        "eureka.server.useReadOnlyResponseCache=false",
        "eureka.server.peerNodeReadTimeoutMs=2000",
        "eureka.server.peerNodeConnectTimeoutMs=1000",
    ];
    common
        .iter()
        .chain(more)
        .map(|setting| (*setting).to_owned())
        .collect()
}

/// Two Spring servers, with a relay on each way.
pub(super) fn links(workshop: &Workshop, doctor: &Doctor<'_>) -> Result<()> {
    workshop.build(Java::Spring)?;
    let places = [Place::new("doctor-java-a", 11)?, Place::new("doctor-java-b", 12)?];
    let [to_b, to_a] = [Relay::new(places[1].address)?, Relay::new(places[0].address)?];
    let evicts = [
        "eureka.server.enable-self-preservation=false",
        "eureka.server.evictionIntervalTimerInMs=1000",
    ];
    let mut servers = [
        workshop.java(Java::Spring, &places[0], &[to_b.url()], &settings(&[])),
        workshop.java(Java::Spring, &places[1], &[to_a.url()], &settings(&evicts)),
    ];
    start(&mut servers)?;
    for server in &mut servers {
        server.ready()?;
    }
    let urls = places
        .each_ref()
        .map(|place| name(&place.url(Some(Java::Spring))));
    let both = urls.each_ref().map(String::as_str);
    doctor.compared(&both, "two healthy Spring servers", None);
    cut(doctor, &servers, &both, [&to_b, &to_a])?;
    contents(doctor, &servers, &both)?;
    clients(doctor, &servers, &both)?;
    clocks(doctor, &servers, &both)?;
    preservation(doctor, &servers, &both)
}

fn cut(doctor: &Doctor<'_>, servers: &[Server; 2], both: &[&str; 2], ways: [&Relay; 2]) -> Result<()> {
    let [first, second] = [instance("cut-1"), instance("cut-2")];
    ways[0].cut();
    register(&servers[0], &first)?;
    doctor.of(
        both,
        &first,
        "the way from one to the other is cut",
        Some(("one-way-link", both)),
    );
    doctor.compared(
        both,
        "the same, the servers as wholes",
        Some(("one-way-link", both)),
    );
    ways[1].cut();
    register(&servers[1], &second)?;
    doctor.compared(both, "both ways are cut", Some(("peer-silent", both)));
    for way in ways {
        way.mend();
    }
    // The next heartbeat brings what is missing.
    servers[0].target().renew(APP, &first.id)?;
    servers[1].target().renew(APP, &second.id)?;
    await_instance(&servers[1], &first, true)?;
    await_instance(&servers[0], &second, true)?;
    doctor.compared(both, "both ways are mended", None);
    cancel(servers, &[first, second])
}

fn contents(doctor: &Doctor<'_>, servers: &[Server; 2], both: &[&str; 2]) -> Result<()> {
    let [taken_out, changed, moved] = [instance("override"), instance("content"), instance("machine")];
    for instance in [&taken_out, &changed, &moved] {
        register(&servers[0], instance)?;
        await_instance(&servers[1], instance, true)?;
    }
    let target = servers[1].target();
    let status = format!(
        "{}/status?value=OUT_OF_SERVICE",
        instance_path(APP, &taken_out.id)
    );
    let request = target
        .request("PUT", &status)
        .header("x-netflix-discovery-replication", "true");
    anyhow::ensure!(
        target.send(&request)?.status == 200,
        "an override as a peer sends it"
    );
    doctor.of(
        both,
        &taken_out,
        "an override at one server, at equal versions",
        Some(("override-differs", both)),
    );
    let mut other = changed.to_json();
    other["instance"]["metadata"]["kit"] = "changed".into();
    register_as_peer(&servers[1], &other)?;
    doctor.of(
        both,
        &changed,
        "other metadata at one server, at equal versions",
        Some(("differing-content", both)),
    );
    let mut other = moved.to_json();
    other["instance"]["hostName"] = "copy.kit.test".into();
    register_as_peer(&servers[1], &other)?;
    doctor.of(
        both,
        &moved,
        "two machines of one id",
        Some(("id-of-two-hosts", both)),
    );
    cancel(servers, &[taken_out, changed, moved])
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
    cancel(servers, &[one, two])?;
    // Its interval is a second, and nobody renews it here.
    let gone = Instance {
        lease_seconds: 3,
        ..instance("elsewhere")
    };
    let mut long = gone.to_json();
    long["instance"]["leaseInfo"]["durationInSecs"] = 900.into();
    for server in servers {
        register_as_peer(server, &long)?;
    }
    doctor.of(
        both,
        &gone,
        "the client uses another server",
        Some(("client-elsewhere", both)),
    );
    let never = instance("never");
    doctor.of(
        both,
        &never,
        "a client that never registered",
        Some(("not-registered", both)),
    );
    let down = Instance {
        status: "DOWN",
        ..instance("down")
    };
    register(&servers[0], &down)?;
    await_instance(&servers[1], &down, true)?;
    doctor.of(
        both,
        &down,
        "a client that says it is down",
        Some(("not-up", both)),
    );
    cancel(servers, &[gone, down])
}

fn clocks(doctor: &Doctor<'_>, servers: &[Server; 2], both: &[&str; 2]) -> Result<()> {
    let skewed = Skewed::before(servers[1].address)?;
    let through = skewed.url("/eureka");
    doctor.compared(
        &[both[0], &through],
        "a server with a wrong clock",
        Some(("clock-skew", &[&through, both[0]])),
    );
    let ahead = Instance {
        dirty: now_millis() + 3_600_000,
        ..instance("ahead")
    };
    register(&servers[0], &ahead)?;
    await_instance(&servers[1], &ahead, true)?;
    doctor.of(
        both,
        &ahead,
        "a client from the future",
        Some(("client-clock-ahead", &both[..1])),
    );
    cancel(servers, &[ahead])
}

/// The second server evicts, the first does not.
fn preservation(doctor: &Doctor<'_>, servers: &[Server; 2], both: &[&str; 2]) -> Result<()> {
    let dead = Instance {
        lease_seconds: 3,
        ..instance("dead")
    };
    register(&servers[0], &dead)?;
    await_instance(&servers[1], &dead, true)?;
    await_instance(&servers[1], &dead, false)?;
    doctor.of(
        both,
        &dead,
        "one server preserves, the other evicts",
        Some(("preservation-on-one-side", both)),
    );
    let nobody = "http://127.0.0.1:1/eureka";
    cancel(servers, &[dead])?;
    doctor.compared(
        &[both[0], both[1], nobody],
        "a third server that is down",
        Some(("server-unreachable", &[nobody])),
    );
    Ok(())
}

/// Gone everywhere, whether it was everywhere or not.
fn cancel(servers: &[Server; 2], instances: &[Instance]) -> Result<()> {
    for instance in instances {
        for server in servers {
            server.target().cancel(&instance.app, &instance.id)?;
        }
        for server in servers {
            await_instance(server, instance, false)?;
        }
    }
    Ok(())
}

/// Peer addresses that lead elsewhere than their owners believe.
pub(super) fn addresses(workshop: &Workshop, doctor: &Doctor<'_>) -> Result<()> {
    let orders = instance("orders-1");
    {
        // The same host in both URLs: each leaves the other out.
        let places = [Place::new("doctor-java-c", 1)?, Place::new("doctor-java-d", 1)?];
        let urls = places.each_ref().map(|place| place.url(Some(Java::Spring)));
        let mut servers = [
            workshop.java(Java::Spring, &places[0], &[urls[1].clone()], &settings(&[])),
            workshop.java(Java::Spring, &places[1], &[urls[0].clone()], &settings(&[])),
        ];
        start(&mut servers)?;
        for server in &mut servers {
            server.ready()?;
        }
        register(&servers[0], &orders)?;
        let urls = urls.each_ref().map(|url| name(url));
        let both = urls.each_ref().map(String::as_str);
        doctor.of(
            &both,
            &orders,
            "two servers of one host name",
            Some(("taken-for-itself", &both)),
        );
    }
    let places = [Place::new("doctor-java-e", 13)?, Place::new("doctor-java-f", 14)?];
    let urls = places.each_ref().map(|place| place.url(Some(Java::Spring)));
    let shared = Relay::balancing(places.iter().map(|place| place.address).collect())?;
    let alias = Relay::new(places[0].address)?;
    let mut first = workshop.java(Java::Spring, &places[0], &[shared.url()], &settings(&[]));
    let mut second = workshop.java(Java::Spring, &places[1], &[shared.url()], &settings(&[]));
    start(std::slice::from_mut(&mut first))?;
    start(std::slice::from_mut(&mut second))?;
    first.ready()?;
    second.ready()?;
    let names = urls.each_ref().map(|url| name(url));
    let both = names.each_ref().map(String::as_str);
    doctor.compared(
        &both,
        "a load balancer as the peer address",
        Some(("shared-address", &both)),
    );
    first.kill();
    second.kill();
    let mut first = workshop.java(Java::Spring, &places[0], &[alias.url()], &settings(&[]));
    let mut second = workshop.java(Java::Spring, &places[1], &[urls[0].clone()], &settings(&[]));
    start(std::slice::from_mut(&mut first))?;
    start(std::slice::from_mut(&mut second))?;
    first.ready()?;
    second.ready()?;
    register(&first, &orders)?;
    doctor.of(
        &both,
        &orders,
        "a server that is its own peer",
        Some(("self-loop", &both[..1])),
    );
    Ok(())
}

/// A server that starts with nothing and waits, and lists from a cache after that.
pub(super) fn reads(workshop: &Workshop, doctor: &Doctor<'_>) -> Result<()> {
    let places = [Place::new("doctor-java-g", 15)?, Place::new("doctor-java-h", 16)?];
    let urls = places.each_ref().map(|place| place.url(Some(Java::Spring)));
    let late = [
        "eureka.server.useReadOnlyResponseCache=true",
        "eureka.instance.registry.default-open-for-traffic-count=0",
        "eureka.server.waitTimeInMsWhenSyncEmpty=60000",
        // Longer than this takes on a busy machine.
        "eureka.server.responseCacheUpdateIntervalMs=300000",
    ];
    let mut servers = [
        workshop.java(Java::Spring, &places[0], &[urls[1].clone()], &settings(&[])),
        workshop.java(
            Java::Spring,
            &places[1],
            &[urls[0].clone()],
            &only_last(settings(&late)),
        ),
    ];
    start(&mut servers)?;
    servers[0].ready()?;
    let names = urls.each_ref().map(|url| name(url));
    let both = names.each_ref().map(String::as_str);
    let [early, fresh] = [instance("early"), instance("fresh")];
    register(&servers[0], &early)?;
    await_instance(&servers[1], &early, true)?;
    doctor.of(
        &both,
        &early,
        "a server that holds its lists after the start",
        Some(("reads-held", &both[1..])),
    );
    servers[1].ready()?;
    register(&servers[0], &fresh)?;
    await_instance(&servers[1], &fresh, true)?;
    doctor.of(
        &both,
        &fresh,
        "a list from the read-only cache",
        Some(("read-cache", &both[1..])),
    );
    Ok(())
}

/// Spring joins what is given twice by a comma: the last one counts here.
fn only_last(settings: Vec<String>) -> Vec<String> {
    let key = |setting: &str| setting.split('=').next().unwrap_or_default().to_owned();
    let kept = settings.iter().enumerate().filter(|(index, setting)| {
        !settings[index + 1..]
            .iter()
            .any(|later| key(later) == key(setting))
    });
    kept.map(|(_, setting)| setting.clone()).collect()
}

/// The classic server. It calls itself by the machine's name, so that its own address in the list of its peers is a trap.
pub(super) fn netflix(workshop: &Workshop, doctor: &Doctor<'_>) -> Result<()> {
    workshop.build(Java::Netflix)?;
    let places = [
        Place::new("doctor-netflix", 17)?,
        Place::new("doctor-spring", 18)?,
    ];
    let urls = [
        places[0].url(Some(Java::Netflix)),
        places[1].url(Some(Java::Spring)),
    ];
    let settings_of_netflix: Vec<String> = [
        "eureka.region=default",
        "eureka.name=eureka-server",
        "eureka.vipAddress=eureka-server",
        "eureka.preferSameZone=false",
        "eureka.shouldUseDns=false",
        "eureka.registration.enabled=false",
        "eureka.shouldFetchRegistry=true",
        "eureka.shouldUseReadOnlyResponseCache=false",
        "eureka.waitTimeInMsWhenSyncEmpty=0",
        "eureka.numberRegistrySyncRetries=1",
    ]
    .map(str::to_owned)
    .to_vec();
    // Its list of peers has only itself.
    let mut servers = [
        workshop.java(
            Java::Netflix,
            &places[0],
            &[urls[0].clone()],
            &settings_of_netflix,
        ),
        workshop.java(Java::Spring, &places[1], &[urls[0].clone()], &settings(&[])),
    ];
    start(&mut servers)?;
    for server in &mut servers {
        server.ready()?;
    }
    let orders = instance("orders-1");
    register(&servers[0], &orders)?;
    let names = urls.each_ref().map(|url| name(url));
    let both = names.each_ref().map(String::as_str);
    doctor.of(
        &both,
        &orders,
        "Netflix' server that is its own peer",
        Some(("self-loop", &both[..1])),
    );
    // Found although the path is one segment deeper than what was named.
    let short = names[0].trim_end_matches("/v2");
    doctor.of(
        &[short],
        &orders,
        "the same by the usual path",
        Some(("self-loop", &[short])),
    );
    Ok(())
}
