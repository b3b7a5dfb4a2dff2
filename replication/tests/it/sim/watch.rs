//! What is true, as opposed to what servers believe: who was heard where, what was cancelled, who was paused. Oracles
//! compare the two.

use eureka_registry_core::PeerId;
use eureka_replication::Action;

use super::scenario::Scenario;

/// Everything that is known from above.
#[derive(Debug)]
pub(super) struct Watch {
    /// What went wrong first.
    pub(super) violation: Option<String>,
    /// Nothing more is to be seen.
    pub(super) finished: bool,
    /// How long after the heal all nodes of ours were equal, in milliseconds.
    pub(super) converged: Option<u64>,
    /// From when on nothing but renewals may be sent.
    pub(super) silent_from: Option<u64>,
    pub(super) clients: Vec<Truth>,
    pub(super) nodes: Vec<Seen>,
}

/// What is true of an instance. Times are of the run; zero is never.
#[derive(Clone, Debug)]
pub(super) struct Truth {
    /// In milliseconds.
    pub(super) duration: u64,
    /// By node: when it last accepted a heartbeat or a registration, and has not forgotten it since.
    pub(super) accepted: Vec<u64>,
    /// Since when it has been live without a gap.
    pub(super) since: u64,
    /// The last thing that may have refreshed its lease anywhere.
    pub(super) touched: u64,
    /// When and where it was cancelled, if it has not been back.
    pub(super) cancelled: Option<(u64, usize)>,
    /// How often it was cancelled.
    pub(super) cancels: u64,
    /// Whether an operator ever did something to it.
    pub(super) operated: bool,
}

/// What was seen of a server.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) booted: u64,
    pub(super) opened: bool,
    pub(super) preserving: bool,
    /// When it last preserved.
    pub(super) preserved: u64,
    pub(super) pauses: Vec<(u64, u64)>,
    /// By client.
    pub(super) leases: Vec<Known>,
}

/// What a server did with an instance.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// When it last heard of it, and through whom; `None` if that cannot be told.
    pub(super) heard: Option<(u64, Option<PeerId>)>,
    /// When another server's cancel took it away although it was back.
    pub(super) buried: u64,
    /// Of so many cancels is that the last.
    pub(super) cancels: u64,
    /// For how long it has listed it although it should not, in milliseconds.
    pub(super) ghost: u64,
    /// When it was last told first-hand, by [`Action`].
    pub(super) first_hand: [u64; 5],
}

impl Watch {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let count = scenario.nodes.len();
        let clients = scenario.clients.iter().map(|plan| Truth {
            duration: plan.duration * 1_000,
            accepted: vec![0; count],
            since: 0,
            touched: 0,
            cancelled: None,
            cancels: 0,
            operated: false,
        });
        let nodes = scenario.nodes.iter().map(|plan| Seen {
            booted: plan.boots,
            opened: false,
            preserving: false,
            preserved: 0,
            pauses: Vec::new(),
            leases: vec![Known::default(); scenario.clients.len()],
        });
        Self {
            violation: None,
            finished: false,
            converged: None,
            silent_from: None,
            clients: clients.collect(),
            nodes: nodes.collect(),
        }
    }

    /// Notes what went wrong; the first counts.
    pub(super) fn fail(&mut self, oracle: &str, text: impl FnOnce() -> String) {
        if self.violation.is_none() {
            self.violation = Some(format!("{oracle}: {}", text()));
        }
    }

    /// A server took a heartbeat or a registration of an instance.
    pub(super) fn accepted(&mut self, at: u64, client: usize, node: usize) {
        let truth = &mut self.clients[client];
        // Whoever was late may have run out elsewhere before anybody there could hear of this heartbeat.
        let last = truth.accepted.iter().max().copied().unwrap_or(0);
        if truth.cancelled.take().is_some() || last + truth.duration * 2 / 3 < at {
            truth.since = at;
        }
        truth.accepted[node] = at;
        truth.touched = at;
    }

    /// An instance was cancelled, and the server said so.
    pub(super) fn cancelled(&mut self, at: u64, client: usize, node: usize) {
        let truth = &mut self.clients[client];
        truth.cancelled = Some((at, node));
        truth.cancels += 1;
        truth.accepted.fill(0);
        truth.touched = at;
    }

    /// An old cancel came to a server when the instance was back already: it may be gone everywhere until its next
    /// heartbeat, which begins its life anew.
    pub(super) fn struck(&mut self, client: usize) {
        self.clients[client].accepted.fill(0);
    }

    /// A server has cancelled an instance because another one told it. If it is back since, that may take it away once for
    /// each cancel.
    pub(super) fn buried(&mut self, at: u64, client: usize, node: usize) {
        let truth = &self.clients[client];
        let known = &mut self.nodes[node].leases[client];
        if truth.cancelled.is_none() && known.cancels < truth.cancels {
            known.cancels = truth.cancels;
            known.buried = at;
        }
    }

    /// An operator changed something.
    pub(super) fn operated(&mut self, at: u64, client: usize) {
        let truth = &mut self.clients[client];
        truth.touched = at;
        truth.operated = true;
        // Whoever changes an instance says that it is there.
        truth.cancelled = None;
    }

    /// A server stands still.
    pub(super) fn paused(&mut self, node: usize, from: u64, until: u64) {
        self.nodes[node].pauses.push((from, until));
    }

    /// A server has forgotten everything and is back at `booted`.
    pub(super) fn restarted(&mut self, node: usize, booted: u64) {
        for truth in &mut self.clients {
            truth.accepted[node] = 0;
        }
        let seen = &mut self.nodes[node];
        let leases = vec![Known::default(); seen.leases.len()];
        *seen = Seen {
            booted,
            opened: false,
            preserving: false,
            preserved: 0,
            pauses: Vec::new(),
            leases,
        };
    }
}

impl Truth {
    /// Whether some server took a heartbeat within its lease duration.
    pub(super) fn is_live(&self, at: u64) -> bool {
        self.accepted.iter().any(|accepted| self.is_fresh(at, *accepted))
    }

    /// Whether a heartbeat taken then still counts.
    pub(super) fn is_fresh(&self, at: u64, accepted: u64) -> bool {
        accepted > 0 && accepted + self.duration > at
    }
}

impl Seen {
    /// How much of the time since `from` this server was awake, and how often it was not.
    pub(super) fn watched(&self, at: u64, from: u64) -> (u64, u64) {
        let asleep = self.pauses.iter().map(|(start, end)| {
            let (start, end) = ((*start).max(from), (*end).min(at));
            end.saturating_sub(start)
        });
        let times = self
            .pauses
            .iter()
            .filter(|(start, end)| *end > from && *start < at)
            .count();
        (at - from - asleep.sum::<u64>(), times as u64)
    }
}

/// The place of an action in [`Known::first_hand`].
pub(super) const fn place(action: Action) -> usize {
    match action {
        Action::Register => 0,
        Action::Renew => 1,
        Action::Cancel => 2,
        Action::Override => 3,
        Action::ClearOverride => 4,
    }
}
