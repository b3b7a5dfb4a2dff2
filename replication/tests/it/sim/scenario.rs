//! What happens in one run, drawn from its seed: who is there, which faults strike when, what clients and operators do.

use eureka_registry_core::Status;

use super::rng::Rng;

/// For so many lease durations faults strike.
const DURATIONS: u64 = 10;
/// How long a request may take before its sender gives up, in milliseconds.
pub(super) const TIMEOUT: u64 = 3_000;

/// One run.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub(super) seed: u64,
    pub(super) nodes: Vec<NodePlan>,
    pub(super) clients: Vec<ClientPlan>,
    pub(super) weather: Weather,
    /// What happens when, in order.
    pub(super) acts: Vec<(u64, Act)>,
    /// From then on nothing goes wrong and nobody changes anything.
    pub(super) heal: u64,
    /// Two nodes of ours that never reach each other; a third reaches both.
    pub(super) severed: Option<(usize, usize)>,
    /// Seconds.
    pub(super) digest_interval: u64,
    pub(super) queue_limit: usize,
    pub(super) max_rate: u32,
}

/// One server.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodePlan {
    pub(super) java: bool,
    /// When it starts.
    pub(super) boots: u64,
    /// By how much its wall clock is ahead, in milliseconds.
    pub(super) skew: i64,
    /// Time between its eviction runs, in seconds.
    pub(super) eviction: u64,
}

/// One instance.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientPlan {
    pub(super) starts: u64,
    pub(super) home: usize,
    /// Seconds; it renews three times as often.
    pub(super) duration: u64,
    /// By how much its clock is ahead, in milliseconds; `None`: its dirty timestamp never changes.
    pub(super) clock: Option<i64>,
    /// Whether each request goes to another server, as through a load balancer.
    pub(super) balanced: bool,
}

/// What befalls every request, in thousandths.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weather {
    /// Requests and answers that get lost.
    pub(super) loss: u64,
    /// Requests that arrive twice.
    pub(super) twice: u64,
    /// Requests that take longer than their sender waits.
    pub(super) straying: u64,
    /// Longest usual delay, in milliseconds.
    pub(super) delay: u64,
}

/// One thing that happens. `until` is a time of the run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    /// Requests from one to the other fail.
    Cut { from: usize, to: usize, until: u64 },
    /// Requests arrive, answers don't.
    Mute { from: usize, to: usize, until: u64 },
    /// Two groups (bits of node numbers) don't reach each other.
    Part { group: u64, until: u64 },
    /// The address of a peer leads back to the sender.
    Loop { from: usize, to: usize, until: u64 },
    /// The process stands still.
    Pause { node: usize, until: u64 },
    /// The process ends, and another one starts empty.
    Restart { node: usize, until: u64 },
    /// The wall clock steps.
    Step { node: usize, by: i64 },
    /// An operator confirms losses.
    Accept { node: usize },
    /// Ends without a cancel.
    Crash { client: usize },
    /// Starts again after a crash or a cancel.
    Start { client: usize },
    /// Cancels at a node, its own or another one.
    Cancel { client: usize, node: Option<usize> },
    /// Cancels and is back at another node at once.
    Return { client: usize, node: usize },
    /// Reaches nobody.
    Silence { client: usize, until: u64 },
    /// Has another home.
    Move { client: usize, node: usize },
    /// Reports another status.
    Report { client: usize, status: Status },
    /// Somebody sets metadata.
    Metadata { client: usize, node: usize },
    /// An operator sets an override.
    Override {
        client: usize,
        node: usize,
        status: Status,
    },
    /// An operator removes it.
    Clear {
        client: usize,
        node: usize,
        status: Option<Status>,
    },
}

impl Scenario {
    /// The run of a seed.
    pub(super) fn draw(seed: u64) -> Self {
        let mut rng = Rng::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5eed);
        let nodes = draw_nodes(&mut rng);
        let duration = rng.pick(&[60, 90, 90]);
        let clients = draw_clients(&mut rng, nodes.len(), duration);
        let heal = duration * 1_000 * DURATIONS;
        let rough = rng.permille(350);
        let weather = Weather {
            loss: if rough { rng.between(0, 60) } else { 0 },
            twice: if rng.permille(300) { rng.between(1, 100) } else { 0 },
            straying: if rough { rng.between(0, 20) } else { 0 },
            delay: rng.pick(&[2, 20, 200]),
        };
        let severed = draw_severed(&mut rng, &nodes);
        let mut scenario = Self {
            seed,
            nodes,
            clients,
            weather,
            acts: Vec::new(),
            heal,
            severed,
            digest_interval: rng.pick(&[5, 10, 10]),
            queue_limit: if rng.permille(100) { 4 } else { 1_000 },
            max_rate: if rng.permille(100) { 20 } else { 20_000 },
        };
        scenario.draw_faults(&mut rng);
        scenario.draw_changes(&mut rng);
        scenario.acts.sort_by_key(|(at, _)| *at);
        scenario
    }

    /// Each kind of fault is there or not: what many at once hide, few show.
    fn draw_faults(&mut self, rng: &mut Rng) {
        let kinds = 8;
        for kind in 0..kinds {
            if !rng.permille(280) {
                continue;
            }
            for _ in 0..rng.between(1, 6) {
                let at = rng.between(20_000, self.heal);
                if let Some(act) = self.draw_fault(rng, kind, at) {
                    self.acts.push((at, act));
                }
            }
        }
        if rng.permille(60) {
            let at = rng.between(100_000, self.heal);
            for node in 0..self.nodes.len() {
                let until = self.until(rng, at, 1_000, 20_000);
                self.acts.push((at, Act::Restart { node, until }));
            }
        }
    }

    fn draw_fault(&self, rng: &mut Rng, kind: usize, at: u64) -> Option<Act> {
        let count = self.nodes.len();
        let node = rng.below(count);
        let other = (node + 1 + rng.below(count - 1)) % count;
        let (from, to) = (node, other);
        Some(match kind {
            0 => Act::Cut {
                from,
                to,
                until: self.until(rng, at, 1_000, 200_000),
            },
            1 => Act::Mute {
                from,
                to,
                until: self.until(rng, at, 1_000, 100_000),
            },
            2 => Act::Part {
                group: rng.between(1, (1 << count) - 1),
                until: self.until(rng, at, 2_000, 300_000),
            },
            3 => Act::Loop {
                from,
                to,
                until: self.until(rng, at, 1_000, 60_000),
            },
            4 => Act::Pause {
                node,
                until: self.until(rng, at, 500, 150_000),
            },
            5 => Act::Restart {
                node,
                until: self.until(rng, at, 100, 120_000),
            },
            6 => {
                let by = rng.between(0, 20_000) as i64 - 10_000;
                Act::Step { node, by }
            }
            7 => Act::Accept { node },
            _ => return None,
        })
    }

    fn draw_changes(&mut self, rng: &mut Rng) {
        let kinds = 9;
        for kind in 0..kinds {
            if !rng.permille(400) {
                continue;
            }
            for client in 0..self.clients.len() {
                if !rng.permille(350) {
                    continue;
                }
                for _ in 0..rng.between(1, 4) {
                    let at = rng.between(self.clients[client].starts + 1_000, self.heal);
                    self.draw_change(rng, kind, client, at);
                }
            }
        }
    }

    fn draw_change(&mut self, rng: &mut Rng, kind: usize, client: usize, at: u64) {
        let node = rng.below(self.nodes.len());
        let back = at + rng.between(50, 150_000);
        let returns = rng.permille(700) && back < self.heal;
        let act = match kind {
            0 => Act::Crash { client },
            1 => Act::Cancel {
                client,
                node: rng.permille(300).then_some(node),
            },
            2 => Act::Return { client, node },
            3 => Act::Silence {
                client,
                until: self.until(rng, at, 1_000, 100_000),
            },
            4 => Act::Move { client, node },
            5 => Act::Report {
                client,
                status: rng.pick(&[Status::Up, Status::Down, Status::Starting, Status::OutOfService]),
            },
            6 => Act::Metadata { client, node },
            7 => Act::Override {
                client,
                node,
                status: rng.pick(&[Status::OutOfService, Status::Down, Status::Up]),
            },
            _ => Act::Clear {
                client,
                node,
                status: rng.pick(&[None, Some(Status::Up)]),
            },
        };
        self.acts.push((at, act));
        if matches!(act, Act::Crash { .. } | Act::Cancel { .. }) && returns {
            self.acts.push((back, Act::Start { client }));
        }
        if matches!(act, Act::Override { .. }) && returns {
            let status = rng.pick(&[None, Some(Status::Up)]);
            let node = rng.below(self.nodes.len());
            self.acts.push((back, Act::Clear { client, node, status }));
        }
    }

    /// The end of a fault, which all have before the heal.
    fn until(&self, rng: &mut Rng, at: u64, least: u64, most: u64) -> u64 {
        // Most are short.
        let most = if rng.permille(500) { most / 5 + least } else { most };
        (at + rng.between(least, most + 1)).min(self.heal)
    }
}

fn draw_nodes(rng: &mut Rng) -> Vec<NodePlan> {
    let count = rng.pick(&[2, 2, 2, 3, 3, 3, 3, 3, 4, 4, 5, 5, 6, 7, 9]);
    let mixed = rng.permille(300);
    let skewed = rng.permille(400);
    let staggered = rng.permille(300);
    (0..count)
        .map(|index| NodePlan {
            java: mixed && index > 0 && rng.permille(if index == 1 { 800 } else { 250 }),
            boots: rng.between(0, if staggered { 60_000 } else { 1_000 }),
            skew: if skewed {
                rng.between(0, 120_000) as i64 - 60_000
            } else {
                0
            },
            eviction: rng.pick(&[5, 20, 60]),
        })
        .collect()
}

fn draw_clients(rng: &mut Rng, nodes: usize, duration: u64) -> Vec<ClientPlan> {
    let constant = rng.pick(&[0, 0, 300, 1_000]);
    let balanced = rng.pick(&[0, 0, 200]);
    (0..rng.between(3, 15))
        .map(|_| ClientPlan {
            starts: rng.between(0, 60_000),
            home: rng.below(nodes),
            duration,
            clock: (!rng.permille(constant)).then(|| rng.between(0, 60_000) as i64 - 30_000),
            balanced: rng.permille(balanced),
        })
        .collect()
}

/// Only among ours, and only if a third one of ours is there.
fn draw_severed(rng: &mut Rng, nodes: &[NodePlan]) -> Option<(usize, usize)> {
    let ours: Vec<_> = (0..nodes.len()).filter(|index| !nodes[*index].java).collect();
    (ours.len() >= 3 && rng.permille(150)).then(|| {
        let first = rng.below(ours.len());
        let second = (first + 1 + rng.below(ours.len() - 1)) % ours.len();
        (ours[first], ours[second])
    })
}
