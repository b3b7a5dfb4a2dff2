//! How the lease of an instance stands at one server.

use eureka_registry_core::{InstanceKey, LeaseView};

use crate::cli::doctor::observation::Answers;

/// A copy that is younger than this may still be on its way to the others.
pub(super) const SETTLED: i64 = 3_000;

/// A lease at one server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing<'a> {
    /// The instance there.
    pub(super) view: &'a LeaseView,
    /// When it was last heard of, by the clock here.
    pub(super) heard: i64,
    /// How long ago that was.
    pub(super) age: i64,
    /// Whether the lease has run out by that server's own rule.
    pub(super) run_out: bool,
}

impl<'a> Standing<'a> {
    /// The lease of an instance as a look at `at` (by the clock here) showed it.
    pub(super) fn of(answers: &Answers, view: &'a LeaseView, at: i64) -> Self {
        let time = |wall: u64| i64::try_from(wall).unwrap_or(i64::MAX);
        let lease = &view.lease;
        let duration = i64::from(lease.terms.duration_secs) * 1000;
        let (registered, renewed) = (time(lease.registered.0), time(lease.renewed.0));
        let was_renewed = renewed > registered;
        // Java stores one duration ahead of a renewal, and not of a registration.
        let ahead = if answers.renewals_ahead && was_renewed {
            duration
        } else {
            0
        };
        let heard = (renewed - ahead).max(registered) - answers.clock_offset;
        let age = (at - heard).max(0);
        Self {
            view,
            heard,
            age,
            run_out: age > duration + ahead,
        }
    }

    /// The last look at an instance, or what the list shows of it where leases that ran out are hidden from single looks.
    pub(super) fn last(answers: &'a Answers, key: &InstanceKey) -> Option<Self> {
        let look = answers.look(key)?;
        if let Some(view) = &look.seen {
            return Some(Self::of(answers, view, look.at));
        }
        let listed = Self::of(answers, answers.listed(key)?, look.at);
        listed.run_out.then_some(listed)
    }

    /// What the first look showed, to see what moved since.
    pub(super) fn first(answers: &'a Answers, key: &InstanceKey) -> Option<Self> {
        let look = answers.looks.get(key)?.first()?;
        Some(Self::of(answers, look.seen.as_ref()?, look.at))
    }

    /// Milliseconds between two renewals.
    pub(super) fn interval(&self) -> i64 {
        i64::from(self.view.lease.terms.renewal_interval_secs) * 1000
    }

    /// Whether no heartbeat is overdue.
    pub(super) fn is_fresh(&self) -> bool {
        self.age <= self.allowance()
    }

    /// One heartbeat may come late, and takes a while to be replicated.
    pub(super) fn allowance(&self) -> i64 {
        self.interval() + self.interval() / 2 + SETTLED
    }
}
