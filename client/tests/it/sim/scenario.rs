//! What is drawn from a seed before a run begins: who takes part, and what may happen to them.

use std::time::Duration;

use super::server::Kind;

/// The wall clock of everybody at the start.
pub(super) const BEGIN: u64 = 1_700_000_000_000;
pub(super) const SECOND: u64 = 1_000;
pub(super) const MINUTE: u64 = 60 * SECOND;
pub(super) const HOUR: u64 = 60 * MINUTE;
/// What consumers of one virtual address ask for.
pub(super) const VIP: &str = "pay";

/// How long it goes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Length {
    /// So often a rough time and a calm one.
    pub(super) epochs: u64,
    pub(super) rough: u64,
    pub(super) calm: u64,
}

impl Length {
    /// Two hours.
    pub(super) const SHORT: Self = Self {
        epochs: 1,
        rough: 80 * MINUTE,
        calm: 40 * MINUTE,
    };
    /// One.
    pub(super) const DAY: Self = Self {
        epochs: 4,
        rough: 5 * HOUR,
        calm: HOUR,
    };
    /// Seven days.
    pub(super) const WEEK: Self = Self {
        epochs: 28,
        rough: 5 * HOUR,
        calm: HOUR,
    };
}

#[derive(Debug)]
pub(super) struct Scenario {
    pub(super) seed: u64,
    pub(super) length: Length,
    pub(super) servers: Vec<Kind>,
    pub(super) clients: Vec<Plan>,
}

/// What a client is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) provide: Option<Provider>,
    pub(super) consume: Option<Consumer>,
    pub(super) request_timeout: Duration,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Provider {
    pub(super) app: &'static str,
    /// Seconds between renewals, and how long a lease lasts.
    pub(super) lease: (u32, u32),
    /// Whether the consumers of the virtual address see it.
    pub(super) chosen: bool,
    /// Asks its owner for its health.
    pub(super) hook: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Consumer {
    /// All there is, or one virtual address.
    pub(super) all: bool,
    pub(super) feed: bool,
    pub(super) delta: bool,
    /// In seconds.
    pub(super) interval: u64,
}

impl Scenario {
    pub(super) fn draw(seed: u64, length: Length) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut servers: Vec<_> = (0..rng.usize(2..4)).map(|_| Kind::Ours).collect();
        for kind in &mut servers {
            *kind = match rng.u32(0..10) {
                0..2 => Kind::Java,
                2 => Kind::Remote,
                _ => Kind::Ours,
            };
        }
        let mut clients: Vec<_> = (0..rng.usize(3..6)).map(|_| provider(&mut rng)).collect();
        // Each way to read at least once.
        for (all, feed, delta) in [
            (true, true, true),
            (true, false, true),
            (false, true, true),
            (rng.bool(), false, rng.bool()),
        ] {
            let interval = [30, 30, 10, 5][rng.usize(0..4)];
            let consume = Consumer {
                all,
                feed,
                delta,
                interval,
            };
            // Some are both.
            let mut plan = provider(&mut rng);
            plan.provide = plan.provide.filter(|_| rng.u32(0..3) == 0);
            plan.consume = Some(consume);
            clients.push(plan);
        }
        Self {
            seed,
            length,
            servers,
            clients,
        }
    }
}

fn provider(rng: &mut fastrand::Rng) -> Plan {
    let lease = [(30, 90), (30, 90), (10, 30), (5, 15)][rng.usize(0..4)];
    Plan {
        provide: Some(Provider {
            app: ["ORDERS", "PAYMENTS"][rng.usize(0..2)],
            lease,
            chosen: rng.bool(),
            hook: rng.u32(0..3) == 0,
        }),
        consume: None,
        // Three servers are to be asked before a lease ends.
        request_timeout: Duration::from_secs(if lease.1 == 15 { 1 } else { 5 }),
    }
}

/// What may happen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fault {
    Server(ServerFault),
    Link(LinkFault),
    Client(ClientFault),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ServerFault {
    Crash,
    Pause,
    /// Answers 503 for a while.
    Busy,
    Clock,
    /// Does not reach another server.
    Cut,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum LinkFault {
    /// Between one client and one server, one way or both.
    Cut,
    /// One client reaches nobody.
    Alone,
    Loss,
    Slow,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ClientFault {
    Clock,
    Pause,
    /// Is told other servers.
    List,
    Crash,
    Leave,
    /// Something that its owner does.
    Act,
}

impl Fault {
    /// All of them, with how many there are in ten hours.
    pub(super) const ALL: [(Self, u64); 15] = [
        (Self::Server(ServerFault::Crash), 8),
        (Self::Server(ServerFault::Pause), 8),
        (Self::Server(ServerFault::Busy), 6),
        (Self::Server(ServerFault::Clock), 8),
        (Self::Server(ServerFault::Cut), 10),
        (Self::Link(LinkFault::Cut), 30),
        (Self::Link(LinkFault::Alone), 8),
        (Self::Link(LinkFault::Loss), 10),
        (Self::Link(LinkFault::Slow), 12),
        (Self::Client(ClientFault::Clock), 12),
        (Self::Client(ClientFault::Pause), 12),
        (Self::Client(ClientFault::List), 12),
        (Self::Client(ClientFault::Crash), 12),
        (Self::Client(ClientFault::Leave), 10),
        (Self::Client(ClientFault::Act), 150),
    ];
}
