//! Watchers of two nodes while the one they watch dies, stops, starts again or holds its lists: nothing is skipped.

mod follower;
mod view;
mod writer;

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use self::follower::{Follower, Interface, Node};
use self::view::View;
use self::writer::Writer;
use super::pipeline::Pipeline;
use super::servers::{Place, Server, Workshop};
use crate::conformance::http::{self, Request, poll};
use crate::conformance::report::{Outcome, Report};
use crate::conformance::target::Instance;
use crate::watchers::{Channel, Ending, Watch};

const INTERFACES: [Interface; 2] = [Interface::Grpc, Interface::Sse];
/// Between two disturbances.
const MEANWHILE: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(30);
/// A node alone opens so long after its start.
const HELD: Duration = Duration::from_secs(3);
/// gRPC's code of that name.
const UNAVAILABLE: u16 = 14;
/// More than the sockets between a server and a reader hold.
const STALLED_CHANGES: u32 = 30_000;

/// Runs the scenario.
pub(super) fn run(workshop: &Workshop, report: &Report) -> Result<()> {
    let check = |step: &str, result: Result<String, String>| {
        report.step("watch", step, &Outcome::from(result));
    };
    let wait = format!("bootstrap.wait-when-empty={}s", HELD.as_secs());
    let settings = [
        &*wait,
        "bootstrap.settle=1s",
        "bootstrap.retry-interval=500ms",
        "replication.digest-interval=1s",
        // Few enough for a reader that stalls to miss some.
        "limits.changes=2000",
    ];
    let places = [
        Site::new("watch-a", "watch-a-grpc")?,
        Site::new("watch-b", "watch-b-grpc")?,
    ];
    let mut servers = [
        places[0].server(workshop, &places[1].http, &settings),
        places[1].server(workshop, &places[0].http, &settings),
    ];
    for server in &mut servers {
        server.spawn()?;
    }
    for server in &mut servers {
        server.ready()?;
    }
    let nodes = [places[0].node(), places[1].node()];
    let writer = Writer::start(&servers.each_ref().map(Server::target));
    let followers = INTERFACES.map(|interface| Follower::start(interface, nodes, writer.log()));
    let cluster = Cluster { writer, followers };

    thread::sleep(MEANWHILE);
    check("both see what the server lists", cluster.agree(&servers, 0));
    fail_over(&mut servers, &cluster, &check)?;
    stop(&mut servers, &cluster, &check)?;
    start_again(&mut servers, &cluster, &check)?;
    check("no change was skipped or out of order", cluster.account());
    drop(cluster);

    check(
        "readers that stall go on with a snapshot",
        stalled(&servers[1], places[1].node()),
    );
    held(workshop, &check)
}

/// Where a node listens.
struct Site {
    http: Place,
    grpc: Place,
}

impl Site {
    fn new(http: &'static str, grpc: &'static str) -> Result<Self> {
        Ok(Self {
            http: Place::new(http, 1)?,
            grpc: Place::new(grpc, 1)?,
        })
    }

    fn node(&self) -> Node {
        Node {
            http: self.http.address,
            grpc: self.grpc.address,
        }
    }

    fn server(&self, workshop: &Workshop, peer: &Place, settings: &[&str]) -> Server {
        let grpc = format!("grpc.listen={}", self.grpc.address);
        let settings = [&[&*grpc], settings].concat();
        workshop.ours(&self.http, &[peer.url(None)], &settings)
    }
}

/// Who writes and who watches.
struct Cluster {
    writer: Writer,
    followers: [Follower; 2],
}

impl Cluster {
    /// Waits until both watch this server and have a whole view of it; says how long that took.
    fn moved(&self, index: usize) -> Result<String, String> {
        let started = Instant::now();
        poll(PATIENCE, || {
            self.followers
                .iter()
                .try_for_each(|follower| follower.look(|view| view.is_synced_with(index)))
        })?;
        Ok(format!("after {:.2} s", started.elapsed().as_secs_f64()))
    }

    /// Holds the writing, and compares what both see with what the server lists.
    fn agree(&self, servers: &[Server; 2], index: usize) -> Result<String, String> {
        self.moved(index)?;
        self.writer.pause(true);
        let agreed = poll(PATIENCE, || {
            let list = servers[index].target().get_json("/apps")?;
            let listed = view::listed(&list);
            self.followers
                .iter()
                .try_for_each(|follower| follower.look(|view| view.equals(index, &listed)))?;
            Ok(format!("{} instances", listed.len()))
        });
        self.writer.pause(false);
        agreed
    }

    /// What both were told, or what was wrong with it.
    fn account(&self) -> Result<String, String> {
        let told = self.followers.each_ref().map(Follower::account);
        let [grpc, sse] = told;
        Ok(format!("{}; {}", grpc?, sse?))
    }
}

type Check<'a> = &'a dyn Fn(&str, Result<String, String>);

/// A is killed and comes back, then B is killed.
fn fail_over(servers: &mut [Server; 2], cluster: &Cluster, check: Check<'_>) -> Result<()> {
    servers[0].kill();
    check("A is killed: both go on at B with a snapshot", cluster.moved(1));
    thread::sleep(MEANWHILE);
    check("both see what B lists", cluster.agree(servers, 1));

    cluster.writer.starts(0);
    servers[0].spawn()?;
    servers[0].ready()?;
    servers[1].kill();
    check("A is back and B is killed: both go on at A", cluster.moved(0));
    thread::sleep(MEANWHILE);
    check("both see what A lists", cluster.agree(servers, 0));

    cluster.writer.starts(1);
    servers[1].spawn()?;
    servers[1].ready()
}

/// A is asked to stop while both watch it.
fn stop(servers: &mut [Server; 2], cluster: &Cluster, check: Check<'_>) -> Result<()> {
    servers[0].signal("TERM")?;
    check("A is asked to stop: both go on at B", cluster.moved(1));
    let ended = if servers[0].stop()? {
        Ok(String::new())
    } else {
        Err("not with 0".to_owned())
    };
    check("A exits with 0", ended);
    let [grpc, _] = &cluster.followers;
    let reason = match grpc.look(|view| Ok(view.ended_with(UNAVAILABLE, "STOPPING"))) {
        Ok(true) => Ok(String::new()),
        Ok(false) | Err(_) => Err(format!("ended: {}", grpc.endings())),
    };
    check("gRPC: UNAVAILABLE, STOPPING", reason);
    thread::sleep(MEANWHILE);
    check("both see what B lists then", cluster.agree(servers, 1));
    Ok(())
}

/// B, alone by now, is killed and started again: it knows nothing, and holds its lists for a while.
fn start_again(servers: &mut [Server; 2], cluster: &Cluster, check: Check<'_>) -> Result<()> {
    let before = cluster.followers.each_ref().map(Follower::snapshots);
    servers[1].kill();
    cluster.writer.starts(1);
    servers[1].spawn()?;
    servers[1].ready()?;
    check("B is started again, with nobody else there", cluster.moved(1));
    thread::sleep(MEANWHILE);
    check("both see what it lists", cluster.agree(servers, 1));
    let after = cluster.followers.each_ref().map(Follower::snapshots);
    let again = if after.iter().zip(&before).all(|(after, before)| after > before) {
        Ok(String::new())
    } else {
        Err(format!("snapshots before {before:?}, after {after:?}"))
    };
    check("both were given a snapshot", again);
    Ok(())
}

/// A reader of each kind that does not read while more changes than the server keeps, and then does.
fn stalled(server: &Server, node: Node) -> Result<String, String> {
    let runtime = follower::runtime().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let told = |ending: Ending| ending.to_string();
        let mut channel = Channel::open(node.grpc, Some(u32::from(u16::MAX)))
            .await
            .map_err(told)?;
        let watches = [
            ("gRPC", channel.watch(None).await.map_err(told)?),
            ("SSE", Watch::over_sse(node.http, None).await.map_err(told)?),
        ];
        flood(node.http).map_err(|error| format!("{error:#}"))?;
        let list = server.target().get_json("/apps")?;
        let listed = view::listed(&list);
        let mut remarks = Vec::new();
        for (name, mut watch) in watches {
            let mut view = View::default();
            while view.equals(0, &listed).is_err() {
                let next = tokio::time::timeout(PATIENCE, watch.next()).await;
                let message = next.map_err(|_| format!("{name}: {:?}", view.equals(0, &listed)))?;
                let message = message.map_err(|ending| format!("{name}: {ending}"))?;
                let told = watch
                    .read(&message)
                    .map_err(|error| format!("{name}: {error:#}"))?;
                view.take(0, told, &writer::Log::default());
            }
            if view.snapshots() < 2 {
                return Err(format!("{name} was given no second snapshot"));
            }
            remarks.push(format!("{name}: {}", view.account()?));
        }
        Ok(remarks.join("; "))
    })
}

fn flood(address: SocketAddr) -> Result<()> {
    let mut pipeline = Pipeline::open(address)?;
    for first in (0..STALLED_CHANGES).step_by(100) {
        for number in first..first + 100 {
            let mut instance = Instance::new("KIT-FLOOD", &format!("i-{}", number % 100));
            instance.dirty += u64::from(number);
            instance.status = if number / 100 % 2 == 0 { "UP" } else { "DOWN" };
            pipeline.register(&instance);
        }
        pipeline.exchange()?;
    }
    Ok(())
}

/// What watchers are told while a node waits for a peer that does not answer.
fn held(workshop: &Workshop, check: Check<'_>) -> Result<()> {
    let site = Site::new("watch-held", "watch-held-grpc")?;
    let nobody = Place::new("nobody", 1)?;
    let mut server = site.server(workshop, &nobody, &[]);
    server.spawn()?;
    server.listening()?;
    let node = site.node();
    let written = server.target().register(&Instance::new("KIT-HELD", "i-1"));
    let written = match written {
        Ok(answer) if answer.status == 204 => Ok(String::new()),
        other => Err(format!("{other:?}")),
    };
    check("lists are held: a registration is taken", written);
    let ending = follower::runtime()?.block_on(async {
        let mut channel = Channel::open(node.grpc, None).await?;
        channel.watch(None).await.map(drop)
    });
    let refused = match ending {
        Err(ending) if ending.status == UNAVAILABLE && ending.reason == "READS_HELD" && ending.retries => {
            Ok(ending.to_string())
        }
        other => Err(format!("{other:?}")),
    };
    check("gRPC: UNAVAILABLE, READS_HELD, and when to try again", refused);
    for (name, accept) in [("SSE", "text/event-stream"), ("long poll", "application/json")] {
        let request = Request::new("GET", "/api/v1/changes").header("Accept", accept);
        let answer = http::exchange(&site.http.address.to_string(), &request, PATIENCE);
        let answer = answer.map_err(|error| anyhow!("{name}: {error}"))?;
        let refused = if answer.status == 503
            && answer.header("retry-after").is_some()
            && !answer.text().trim().is_empty()
        {
            Ok(answer.text().trim().to_owned())
        } else {
            Err(format!("{} {}", answer.status, answer.text()))
        };
        check(&format!("{name}: 503, why, and when to try again"), refused);
    }
    Ok(())
}
