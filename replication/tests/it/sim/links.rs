//! The ways between servers: what is cut now, and when each way was last bad.

use super::scenario::Scenario;

/// All ways, one for each direction: a request goes one way, its answer belongs to the same.
#[derive(Debug)]
pub(super) struct Links {
    count: usize,
    ways: Vec<Way>,
}

/// Times until which something is so.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    cut: u64,
    /// When the last cut began.
    cut_since: u64,
    mute: u64,
    looped: u64,
    /// When a request last failed or could have failed.
    bad: u64,
}

impl Links {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let count = scenario.nodes.len();
        let mut links = Self {
            count,
            ways: vec![Way::default(); count * count],
        };
        if let Some((one, other)) = scenario.severed {
            links.cut(0, one, other, u64::MAX);
            links.cut(0, other, one, u64::MAX);
        }
        links
    }

    pub(super) fn cut(&mut self, at: u64, from: usize, to: usize, until: u64) {
        let way = self.way(from, to);
        if way.cut <= at {
            way.cut_since = at;
        }
        way.cut = way.cut.max(until);
        way.bad = way.bad.max(until);
    }

    pub(super) fn mute(&mut self, from: usize, to: usize, until: u64) {
        let way = self.way(from, to);
        way.mute = way.mute.max(until);
        way.bad = way.bad.max(until);
    }

    pub(super) fn turn_back(&mut self, from: usize, to: usize, until: u64) {
        let way = self.way(from, to);
        way.looped = way.looped.max(until);
        way.bad = way.bad.max(until);
    }

    /// A request failed on this way at `at`, or could have.
    pub(super) fn spoil(&mut self, from: usize, to: usize, at: u64) {
        let way = self.way(from, to);
        way.bad = way.bad.max(at);
    }

    /// All ways from and to a server are bad until then.
    pub(super) fn isolate(&mut self, node: usize, until: u64) {
        for other in 0..self.count {
            self.spoil(node, other, until);
            self.spoil(other, node, until);
        }
    }

    pub(super) fn is_cut(&self, at: u64, from: usize, to: usize) -> bool {
        self.get(from, to).cut > at
    }

    pub(super) fn is_mute(&self, at: u64, from: usize, to: usize) -> bool {
        self.get(from, to).mute > at
    }

    pub(super) fn is_looped(&self, at: u64, from: usize, to: usize) -> bool {
        self.get(from, to).looped > at
    }

    /// For how long both ways between two have been good, in milliseconds.
    pub(super) fn good_for(&self, at: u64, one: usize, other: usize) -> u64 {
        let bad = self.get(one, other).bad.max(self.get(other, one).bad);
        at.saturating_sub(bad)
    }

    /// For how long the way from one to the other has been cut.
    pub(super) fn cut_for(&self, at: u64, from: usize, to: usize) -> u64 {
        let way = self.get(from, to);
        if way.cut > at {
            at.saturating_sub(way.cut_since)
        } else {
            0
        }
    }

    /// For how long the way from one to the other has been good.
    pub(super) fn open_for(&self, at: u64, from: usize, to: usize) -> u64 {
        at.saturating_sub(self.get(from, to).bad)
    }

    fn get(&self, from: usize, to: usize) -> &Way {
        &self.ways[from * self.count + to]
    }

    fn way(&mut self, from: usize, to: usize) -> &mut Way {
        &mut self.ways[from * self.count + to]
    }
}
