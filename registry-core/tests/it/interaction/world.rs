//! The nodes of a transcript and the commands that move them.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{
    Changed, Command, Config, Filter, Instance, LeaseExpiry, Measure, Mono, Now, PeerId, Port, Registered,
    Registry, Renewed, RepairRequest, Reply, Settle, Status, Step, Wall,
};

use super::arguments::{Arguments, duration};
use super::{repair, show};

/// What the wall clock shows when a transcript begins.
pub(crate) const START: Wall = Wall(1_700_000_000_000);

/// All nodes under one clock.
pub(crate) struct World {
    now: Now,
    nodes: Vec<Node>,
}

struct Node {
    registry: Registry,
    verbose: bool,
    /// When `handle_timeout` was called last.
    called: Mono,
}

impl Default for World {
    fn default() -> Self {
        Self {
            now: Now {
                mono: Mono(0),
                wall: START,
            },
            nodes: Vec::new(),
        }
    }
}

impl World {
    /// Runs one line and tells what came of it:
    ///
    /// ```text
    /// nodes N [preset=NAME] [SETTING=VALUE]...   N nodes with these settings, at time zero
    /// open [synced=N] [settle=D [quiet=D] [at-most=D]]  opens reads, starts meter and eviction
    /// register APP/id [...] [from=ORIGIN]        also `adopt`; options: see `instance`
    /// renew APP/id [dirty=N] [overridden=STATUS] [from=ORIGIN]
    /// cancel APP/id [from=ORIGIN]
    /// override APP/id STATUS [dirty=N] [from=ORIGIN]
    /// clear APP/id [STATUS] [dirty=N] [from=ORIGIN]
    /// metadata APP/id KEY=VALUE...
    /// accept                                     the operator accepts the losses
    /// repair n1 n2 [slow=D] [steps=N] [copy]     n1 compares with n2 and exchanges until nothing is left to do; each request
    ///                                            takes that long; `copy`: n1 copies everything
    /// offer APP/id [...] [age=D] [stamped=STATUS|none at=N]  another node's copy, in an exchange
    /// offer APP/id gone [dirty=N] [ago=D]        its cancel
    /// refuse APP/id dirty=N                      a peer's registration was refused for what it was
    /// digest                                     how many leases count, and whether all nodes have the same sums
    /// reachable PEER yes|no                      whether a peer can be reached
    /// advance D                                  time passes, and what is due is done when it is due
    /// pause D                                    time passes, and nothing is done
    /// wall D | wall -D                           the wall clock alone steps
    /// timeout                                    `handle_timeout` once; `next` tells when it is due
    /// show [APP/id]                              leases as single look-ups of them show, run out or not
    /// get APP/id | get id                        as readers of one instance see it
    /// apps | app APP | vip NAME | svip NAME | delta | hash | filter EXPRESSION
    /// explain | stats | recent | next | events on|off
    /// ```
    pub(crate) fn run(&mut self, line: &str) -> Result<String, String> {
        let arguments = Arguments::parse(line);
        let answer = match arguments.name {
            "nodes" => self.nodes(&arguments)?,
            "advance" => self.advance(&arguments)?,
            "pause" => self.pause(&arguments)?,
            "wall" => self.step_wall(&arguments)?,
            "repair" => self.repair(&arguments)?,
            "digest" => self.digest(),
            _ => {
                let now = self.now;
                let count = self.nodes.len();
                let node = self
                    .nodes
                    .get_mut(arguments.node)
                    .ok_or_else(|| format!("there are {count} nodes"))?;
                let answer = node.run(now, &arguments)?;
                answer + &node.drain(now)
            }
        };
        arguments.finish()?;
        Ok(answer)
    }

    fn nodes(&mut self, arguments: &Arguments<'_>) -> Result<String, String> {
        let count: usize = arguments
            .next()
            .and_then(|text| text.parse().ok())
            .ok_or("how many?")?;
        let config = config(arguments)?;
        *self = Self::default();
        let node = |number| Node {
            registry: Registry::new(
                self.now,
                Config {
                    node: number,
                    ..config.clone()
                },
            ),
            verbose: false,
            called: self.now.mono,
        };
        self.nodes = (1..).take(count).map(node).collect();
        Ok(String::new())
    }

    /// Every node does what is due at the moment it is due; the earliest first, of several the first node.
    fn advance(&mut self, arguments: &Arguments<'_>) -> Result<String, String> {
        let by = arguments.next().and_then(duration).ok_or("how long?")?;
        let end = self.now.mono.after(by);
        let mut text = String::new();
        loop {
            let due = self.nodes.iter().enumerate().filter_map(|(index, node)| {
                let due = node.registry.poll_timeout().map(|(due, _)| due);
                let every = node.registry.config().called_every;
                let call = every.map(|every| node.called.after(every));
                Some((due.into_iter().chain(call).min()?, index))
            });
            let Some((due, index)) = due.min().filter(|(due, _)| *due <= end) else {
                break;
            };
            self.pass(due.since(self.now.mono));
            let node = &mut self.nodes[index];
            node.registry.handle_timeout(self.now);
            node.called = self.now.mono;
            text += &node.drain(self.now);
        }
        self.pass(end.since(self.now.mono));
        Ok(text)
    }

    fn pause(&mut self, arguments: &Arguments<'_>) -> Result<String, String> {
        self.pass(arguments.next().and_then(duration).ok_or("how long?")?);
        Ok(String::new())
    }

    fn step_wall(&mut self, arguments: &Arguments<'_>) -> Result<String, String> {
        let text = arguments.next().ok_or("how far?")?;
        let wall = self.now.wall.0;
        let stepped = match text.strip_prefix('-') {
            Some(back) => duration(back).map(|back| wall - millis(back)),
            None => duration(text).map(|ahead| wall + millis(ahead)),
        };
        self.now.wall = Wall(stepped.ok_or("how far?")?);
        Ok(String::new())
    }

    pub(super) fn now(&self) -> Now {
        self.now
    }

    pub(super) fn registry(&mut self, node: usize) -> &mut Registry {
        &mut self.nodes[node].registry
    }

    /// What happened at a node.
    pub(super) fn drain(&mut self, node: usize) -> String {
        let happened = self.nodes[node].drain(self.now);
        happened.lines().fold(String::new(), |text, line| {
            format!("{text}{line} at n{}\n", node + 1)
        })
    }

    fn digest(&mut self) -> String {
        let now = self.now;
        let mut roots = Vec::new();
        let mut text = String::new();
        for (number, node) in (1..).zip(&mut self.nodes) {
            roots.push(node.registry.repair_request(now, &Step::Compare));
            let stats = node.registry.stats();
            let (entries, moving) = (stats.digest, stats.moving);
            writeln!(
                text,
                "n{number} entries={entries} moving={moving} late={}",
                stats.late
            )
            .expect("a string takes all");
        }
        let root = |request: &RepairRequest| match request {
            RepairRequest::Compare { root, .. } => *root,
            other => panic!("{other:?}"),
        };
        let same = roots.iter().all(|request| root(request) == root(&roots[0]));
        text + if same { "equal\n" } else { "different\n" }
    }

    pub(super) fn pass(&mut self, by: Duration) {
        self.now.mono = self.now.mono.after(by);
        self.now.wall = Wall(self.now.wall.0 + millis(by));
    }
}

impl Node {
    fn run(&mut self, now: Now, arguments: &Arguments<'_>) -> Result<String, String> {
        match arguments.name {
            "open" => {
                let synced = arguments.number("synced")?.unwrap_or(0);
                let at_least = arguments.duration("settle")?;
                let settle = at_least.map(|at_least| {
                    Ok::<_, String>(Settle {
                        at_least,
                        quiet: arguments.duration("quiet")?.unwrap_or_default(),
                        at_most: arguments.duration("at-most")?.unwrap_or(at_least),
                    })
                });
                self.registry.open(now, synced, settle.transpose()?);
                Ok(String::new())
            }
            "register" | "adopt" | "renew" | "cancel" | "override" | "clear" | "metadata" => {
                let origin = arguments.origin()?;
                let command = command(arguments)?;
                Ok(reply(&self.registry.apply(now, origin, command)))
            }
            "offer" => {
                let origin = PeerId(Arc::from("p"));
                let request = RepairRequest::Exchange {
                    pull: Vec::new(),
                    push: vec![repair::offer(arguments)?],
                };
                self.registry
                    .repair_answer(now, eureka_registry_core::Origin::Peer(origin), request);
                Ok(String::new())
            }
            "refuse" => {
                let dirty = arguments.number("dirty")?.ok_or("dirty?")?;
                self.registry.refuse(now, &arguments.key()?, dirty);
                Ok(String::new())
            }
            "accept" => {
                self.registry.accept_losses(now);
                Ok(String::new())
            }
            "reachable" => {
                let peer = PeerId(Arc::from(arguments.next().ok_or("which peer?")?));
                let reachable = arguments.next() == Some("yes");
                self.registry.peer_reachable(now, &peer, reachable);
                Ok(String::new())
            }
            "timeout" => {
                self.registry.handle_timeout(now);
                self.called = now.mono;
                Ok(String::new())
            }
            "events" => {
                self.verbose = arguments.next() == Some("on");
                Ok(String::new())
            }
            _ => self.read(now, arguments),
        }
    }

    fn read(&mut self, now: Now, arguments: &Arguments<'_>) -> Result<String, String> {
        let missing = || String::from("missing\n");
        Ok(match arguments.name {
            "show" => self.show(now, arguments)?,
            "get" => {
                let name = arguments.next().ok_or("whom?")?;
                let found = match name.split_once('/') {
                    Some((app, id)) => self
                        .registry
                        .find(now, &eureka_registry_core::InstanceKey::new(app, id)),
                    None => self.registry.find_by_id(now, name),
                };
                found.map_or_else(missing, |view| show::lease(&view))
            }
            "apps" => show::snapshot(&self.registry.snapshot(now)),
            "app" => {
                let snapshot = self.registry.snapshot(now);
                let application = snapshot.application(arguments.next().ok_or("which?")?);
                application.map_or_else(missing, |application| {
                    application.instances().map(|view| show::listed(view)).collect()
                })
            }
            "vip" => show::delta(
                &self
                    .registry
                    .snapshot(now)
                    .by_vip(arguments.next().ok_or("which?")?),
            ),
            "svip" => show::delta(
                &self
                    .registry
                    .snapshot(now)
                    .by_secure_vip(arguments.next().ok_or("which?")?),
            ),
            "delta" => show::delta(&self.registry.snapshot(now).delta()),
            "hash" => format!("hash {:?}\n", self.registry.snapshot(now).hash()),
            "filter" => self.filter(now, arguments),
            "explain" => show::preservation(&self.registry.explain(now)),
            "stats" => show::stats(&self.registry.stats()),
            "recent" => {
                show::recent("registered", &self.registry.recent_registrations(now))
                    + &show::recent("cancelled", &self.registry.recent_cancels(now))
            }
            "next" => match self.registry.poll_timeout() {
                Some((due, reason)) => format!("in {:?}: {reason:?}\n", due.since(now.mono)),
                None => String::from("never\n"),
            },
            name => return Err(format!("there is no command `{name}`")),
        })
    }

    /// One lease, or all of them in the order of the snapshot.
    fn show(&mut self, now: Now, arguments: &Arguments<'_>) -> Result<String, String> {
        let keys: Vec<_> = if arguments.rest.contains('/') {
            vec![arguments.key()?]
        } else {
            let snapshot = self.registry.snapshot(now);
            snapshot.instances().map(|view| view.key()).collect()
        };
        let views = keys.iter().map(|key| self.registry.lease(now, key));
        let lines: String = views
            .map(|view| view.map_or_else(|| String::from("missing\n"), |view| show::lease(&view)))
            .collect();
        Ok(if lines.is_empty() {
            String::from("nothing\n")
        } else {
            lines
        })
    }

    /// Takes the rest of the line as it stands.
    fn filter(&mut self, now: Now, arguments: &Arguments<'_>) -> String {
        while arguments.next().is_some() {}
        arguments.take_rest();
        match Filter::parse(arguments.rest) {
            Ok(filter) => {
                let snapshot = self.registry.snapshot(now);
                let selected = snapshot.instances().filter(|view| filter.matches(&view.instance));
                selected.map(|view| show::listed(view)).collect()
            }
            Err(error) => format!("{error}\n"),
        }
    }

    fn drain(&mut self, now: Now) -> String {
        let mut text = String::new();
        while let Some(event) = self.registry.poll_event() {
            if let Some(line) = show::event(&event, self.verbose) {
                writeln!(text, "  {} {line}", show::offset(now.wall)).expect("a string takes all");
            }
        }
        text
    }
}

fn command(arguments: &Arguments<'_>) -> Result<Command, String> {
    let key = arguments.key()?;
    Ok(match arguments.name {
        "register" | "adopt" => {
            let age = arguments.duration("age")?.unwrap_or_default();
            let instance = Arc::new(instance(key.app(), key.id(), arguments)?);
            match arguments.name {
                "register" => Command::Register { instance, age },
                _ => Command::Adopt { instance, age },
            }
        }
        "renew" => Command::Renew {
            key,
            last_dirty: arguments.number("dirty")?,
            overridden: arguments.status_option("overridden")?,
        },
        "cancel" => Command::Cancel { key },
        "override" => Command::Override {
            key,
            status: arguments.next().and_then(Status::parse).ok_or("which status?")?,
            last_dirty: arguments.number("dirty")?,
        },
        "clear" => Command::ClearOverride {
            key,
            status: arguments.next().and_then(Status::parse),
            last_dirty: arguments.number("dirty")?,
        },
        _ => Command::Metadata {
            key,
            entries: arguments
                .take_rest()
                .into_iter()
                .map(|(key, value)| (Arc::from(key), Arc::from(value)))
                .collect(),
        },
    })
}

/// `status= overridden= dirty= duration= interval= host= port= vip= svip= zone= meta=KEY:VALUE`.
pub(super) fn instance(app: &str, id: &str, arguments: &Arguments<'_>) -> Result<Instance, String> {
    let mut instance = Instance::new(app, id, arguments.text("host").unwrap_or("host"), "10.0.0.1");
    instance.status = arguments.status_option("status")?.unwrap_or(Status::Up);
    instance.overridden_status = arguments.status_option("overridden")?.unwrap_or(Status::Unknown);
    instance.last_dirty = arguments.number("dirty")?;
    if let Some(duration) = arguments.duration("duration")? {
        instance.lease.duration_secs = u32::try_from(duration.as_secs()).expect("short");
    }
    if let Some(interval) = arguments.duration("interval")? {
        instance.lease.renewal_interval_secs = u32::try_from(interval.as_secs()).expect("short");
    }
    if let Some(number) = arguments.number("port")? {
        instance.port = Port {
            number,
            enabled: true,
        };
    }
    instance.vip_address = arguments.text("vip").map(Arc::from);
    instance.secure_vip_address = arguments.text("svip").map(Arc::from);
    if let Some(zone) = arguments.text("zone") {
        instance.metadata.insert("zone", zone);
    }
    if let Some((key, value)) = arguments.text("meta").and_then(|text| text.split_once(':')) {
        instance.metadata.insert(key, value);
    }
    Ok(instance)
}

fn reply(reply: &Reply) -> String {
    let name = match reply {
        Reply::Registered(Registered::Accepted) => "accepted",
        Reply::Registered(Registered::KeptNewer) => "kept newer",
        Reply::Registered(Registered::Refused) => "refused",
        Reply::Renewed(Renewed::Ok) | Reply::Changed(Changed::Ok) => "ok",
        Reply::Renewed(Renewed::Missing) | Reply::Changed(Changed::Missing) => "missing",
        Reply::Renewed(Renewed::Ahead) => "ahead",
        Reply::Renewed(Renewed::Behind(view)) => return format!("behind {}", show::lease(view)),
        other => return format!("{other:?}\n"),
    };
    format!("{name}\n")
}

fn config(arguments: &Arguments<'_>) -> Result<Config, String> {
    let mut config = match arguments.text("preset") {
        None | Some("eureka") => Config::default(),
        Some("eureka-java") => Config::eureka_java(),
        Some("eureka-netflix") => Config::eureka_netflix(),
        Some(other) => return Err(format!("there is no preset `{other}`")),
    };
    config.seed = [arguments.number("seed")?.unwrap_or(1), 2];
    config.own_id = arguments.text("own-id").map(Arc::from);
    if let Some(expiry) = arguments.parsed("expiry", |text| match text {
        "exact" => Some(LeaseExpiry::Exact),
        "doubled" => Some(LeaseExpiry::Doubled),
        _ => None,
    })? {
        config.lease_expiry = expiry;
    }
    let preservation = &mut config.preservation;
    if let Some(measure) = arguments.parsed("measure", |text| match text {
        "leases" => Some(Measure::LeasesOnTime),
        "heartbeats" => Some(Measure::Heartbeats),
        _ => None,
    })? {
        preservation.measure = measure;
    }
    set(&mut preservation.enabled, arguments.number("preservation")?);
    set(&mut preservation.threshold, arguments.number("threshold")?);
    set(&mut preservation.tolerated_losses, arguments.number("tolerated")?);
    set(
        &mut preservation.update_interval,
        arguments.duration("update-interval")?,
    );
    config.called_every = arguments.duration("called-every")?;
    set(&mut config.silent_peer_hold, arguments.number("hold")?);
    set(
        &mut config.eviction_interval,
        arguments.duration("eviction-interval")?,
    );
    set(
        &mut config.delta_retention,
        arguments.duration("delta-retention")?,
    );
    set(
        &mut config.override_retention,
        arguments.duration("override-retention")?,
    );
    set(&mut config.override_limit, arguments.number("override-limit")?);
    set(
        &mut config.tombstone_retention,
        arguments.duration("tombstone-retention")?,
    );
    set(&mut config.tombstone_limit, arguments.number("tombstone-limit")?);
    let compat = &mut config.compat;
    for (name, switch) in [
        ("renewal-shown-ahead", &mut compat.renewal_shown_ahead),
        ("override-by-id", &mut compat.override_by_id),
        ("override-equal-ignored", &mut compat.override_equal_ignored),
        ("override-lost-on-eviction", &mut compat.override_lost_on_eviction),
        ("metadata-keeps-dirty", &mut compat.metadata_keeps_dirty),
        ("rule-flips-hidden", &mut compat.rule_flips_hidden),
        ("no-tombstones", &mut compat.no_tombstones),
        ("failed-cancels-listed", &mut compat.failed_cancels_listed),
    ] {
        set(switch, arguments.number(name)?);
    }
    Ok(config)
}

fn set<T>(setting: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *setting = value;
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).expect("short")
}
