//! Repair with one peer of ours: from a comparison to the exchange of what differs, a portion at a time.

use std::collections::VecDeque;
use std::time::Duration;

use eureka_registry_core::{EXCHANGE_MAX, InstanceKey, Learned, Mono, Step};

/// So many buckets are listed at a time.
const LIST: usize = 64;
/// When the rate allows nothing now, it is asked again after this long; and between two rounds there is as much.
const PACE: Duration = Duration::from_millis(50);

/// The repair with one peer. Who owns it sees to it that one step is under way at most.
#[derive(Debug, Default)]
pub(crate) struct Repair {
    /// A round is to begin.
    wanted: bool,
    round: Option<Round>,
    /// Not before, for the sake of the rate.
    not_before: Mono,
    /// The two have differed since.
    diverged: Option<Mono>,
    /// What the last round pushed first.
    pushed: Option<InstanceKey>,
    /// Rounds begun and answered.
    pub(crate) digests: u64,
    /// Of those, so many differed.
    pub(crate) differing: u64,
    /// Instances that changed hands.
    pub(crate) repaired: u64,
}

/// What a comparison has brought to light and is not done yet.
#[derive(Debug, Default)]
struct Round {
    compared: bool,
    buckets: VecDeque<u16>,
    pull: VecDeque<InstanceKey>,
    push: VecDeque<InstanceKey>,
    /// Something really differed, and was not only on the move.
    differed: bool,
    /// Something was adopted.
    adopted: bool,
    /// What was pushed first.
    pushed: Option<InstanceKey>,
    /// A plan or an exchange was as long as one may be: there is more.
    short: bool,
}

impl Repair {
    /// Compare as soon as possible. If a round is under way, when it is over.
    pub(crate) fn want(&mut self) {
        self.wanted = true;
    }

    /// When the next step may be taken, if there is one.
    pub(crate) fn due(&self) -> Option<Mono> {
        (self.wanted || self.round.is_some()).then_some(self.not_before)
    }

    /// The next step; `allowance` is how many instances the rate allows now.
    pub(crate) fn step(&mut self, now: Mono, allowance: usize) -> Option<Step> {
        if self.round.is_none() && self.wanted {
            self.wanted = false;
            self.round = Some(Round::default());
        }
        let round = self.round.as_mut()?;
        if !round.compared {
            return Some(Step::Compare);
        }
        if round.pull.is_empty() && round.push.is_empty() {
            let portion = round.buckets.len().min(LIST);
            return Some(Step::List {
                buckets: round.buckets.drain(..portion).collect(),
            });
        }
        if allowance == 0 {
            self.not_before = now.after(PACE);
            return None;
        }
        let pull = round.pull.len().min(EXCHANGE_MAX).min(allowance);
        let push = round.push.len().min(EXCHANGE_MAX).min(allowance - pull);
        Some(Step::Exchange {
            pull: round.pull.drain(..pull).collect(),
            push: round.push.drain(..push).collect(),
        })
    }

    /// What came of a step. `false`: the answer does not fit it, and the round is over.
    pub(crate) fn learned(&mut self, now: Mono, step: &Step, learned: Learned) -> bool {
        let Some(round) = self.round.as_mut() else {
            return false;
        };
        match (step, learned) {
            (Step::Compare, Learned::Equal) => {
                round.compared = true;
                self.digests += 1;
            }
            (Step::Compare, Learned::Differ { buckets }) => {
                round.compared = true;
                round.buckets = buckets.into();
                self.digests += 1;
                self.differing += 1;
            }
            (Step::List { .. }, Learned::Plan { pull, push, left }) => {
                for bucket in left.into_iter().rev() {
                    round.buckets.push_front(bucket);
                }
                round.short |= pull.len().max(push.len()) >= EXCHANGE_MAX;
                if !pull.is_empty() || !push.is_empty() {
                    round.differed = true;
                    self.diverged.get_or_insert(now);
                }
                round.pull.extend(pull);
                round.push.extend(push);
            }
            (
                Step::Exchange { pull, push },
                Learned::Exchanged {
                    adopted,
                    received,
                    sent,
                },
            ) => {
                round.adopted |= adopted > 0;
                if round.pushed.is_none() {
                    round.pushed = push.first().cloned();
                }
                round.short |= received < pull.len() || sent < push.len();
                self.repaired += (adopted + sent) as u64;
            }
            _ => {
                self.round = None;
                return false;
            }
        }
        self.conclude(now);
        true
    }

    /// A step failed: the round begins anew as soon as the peer can be asked again.
    pub(crate) fn failed(&mut self) {
        if self.round.take().is_some() {
            self.wanted = true;
        }
    }

    /// The peer does not take a step: the round is over, the next may go better.
    pub(crate) fn refused(&mut self) {
        self.round = None;
    }

    /// There is nobody to repair with any more.
    pub(crate) fn forget(&mut self) {
        self.round = None;
        self.wanted = false;
        self.diverged = None;
    }

    /// Since when the two have differed.
    pub(crate) fn diverged(&self) -> Option<Mono> {
        self.diverged
    }

    fn conclude(&mut self, now: Mono) {
        let over = |round: &mut Round| {
            round.compared && round.buckets.is_empty() && round.pull.is_empty() && round.push.is_empty()
        };
        let Some(round) = self.round.take_if(over) else {
            return;
        };
        if !round.differed {
            self.diverged = None;
        }
        // What did not fit follows soon, as long as that leads on: a peer that gives nothing new, or keeps nothing of what it
        // is given, is asked again at the next comparison.
        let leads_on = round.adopted || (round.pushed.is_some() && round.pushed != self.pushed);
        self.pushed = round.pushed;
        if round.short && leads_on {
            self.wanted = true;
            self.not_before = now.after(PACE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Mono = Mono(1_000);

    fn keys(count: usize) -> Vec<InstanceKey> {
        (0..count)
            .map(|n| InstanceKey::new("APP", &format!("{n:05}")))
            .collect()
    }

    /// A round up to its plan.
    fn planned(pull: usize, push: usize) -> Repair {
        let mut repair = Repair::default();
        repair.want();
        assert_eq!(
            repair.step(NOW, 0),
            Some(Step::Compare),
            "a comparison needs no allowance"
        );
        assert!(repair.learned(NOW, &Step::Compare, Learned::Differ { buckets: vec![3] }));
        let list = Step::List { buckets: vec![3] };
        assert_eq!(repair.step(NOW, 0), Some(list.clone()));
        let plan = Learned::Plan {
            pull: keys(pull),
            push: keys(push),
            left: Vec::new(),
        };
        assert!(repair.learned(NOW, &list, plan));
        repair
    }

    fn exchange(repair: &mut Repair, allowance: usize) -> (usize, usize) {
        let step = repair.step(NOW, allowance);
        let Some(Step::Exchange { pull, push }) = &step else {
            panic!("{step:?} is no exchange");
        };
        let counts = (pull.len(), push.len());
        let exchanged = Learned::Exchanged {
            adopted: counts.0,
            received: counts.0,
            sent: counts.1,
        };
        assert!(repair.learned(NOW, &step.expect("a step"), exchanged));
        counts
    }

    #[test]
    fn equal_peers_cost_one_round_trip() {
        let mut repair = Repair::default();
        assert_eq!((repair.due(), repair.step(NOW, 9)), (None, None));
        repair.want();
        assert_eq!(repair.step(NOW, 9), Some(Step::Compare));
        assert!(repair.learned(NOW, &Step::Compare, Learned::Equal));
        assert_eq!((repair.due(), repair.step(NOW, 9)), (None, None));
        assert_eq!((repair.digests, repair.differing), (1, 0));
    }

    #[test]
    fn buckets_are_listed_in_portions_and_each_is_repaired_before_the_next() {
        let mut repair = Repair::default();
        repair.want();
        assert!(repair.step(NOW, 9).is_some());
        let buckets: Vec<u16> = (0..100).collect();
        assert!(repair.learned(NOW, &Step::Compare, Learned::Differ { buckets }));
        let first = Step::List {
            buckets: (0..64).collect(),
        };
        assert_eq!(repair.step(NOW, 9), Some(first.clone()));
        assert!(repair.learned(
            NOW,
            &first,
            Learned::Plan {
                pull: keys(1),
                push: Vec::new(),
                left: Vec::new()
            }
        ));
        assert_eq!(exchange(&mut repair, 9), (1, 0));
        let second = Step::List {
            buckets: (64..100).collect(),
        };
        assert_eq!(repair.step(NOW, 9), Some(second.clone()));
        assert!(repair.learned(
            NOW,
            &second,
            Learned::Plan {
                pull: Vec::new(),
                push: Vec::new(),
                left: Vec::new()
            }
        ));
        assert_eq!(repair.due(), None);
        assert_eq!((repair.differing, repair.repaired), (1, 1));
    }

    #[test]
    fn exchanges_are_bounded_by_their_size_and_by_the_rate() {
        let mut repair = planned(900, 700);
        assert_eq!(exchange(&mut repair, 600), (600, 0));
        assert_eq!(repair.step(NOW, 0), None, "the rate is used up");
        assert_eq!(repair.due(), Some(NOW.after(PACE)));
        assert_eq!(exchange(&mut repair, 400), (300, 100));
        assert_eq!(exchange(&mut repair, 10_000), (0, 600));
        assert_eq!(repair.due(), None);
        assert_eq!(repair.repaired, 1_600);
        let mut repair = planned(1_500, 0);
        assert_eq!(exchange(&mut repair, 10_000), (1_000, 0));
        assert_eq!(exchange(&mut repair, 10_000), (500, 0));
        assert!(repair.due().is_some(), "a plan that long may have been cut off");
    }

    #[test]
    fn what_is_only_moving_is_no_divergence() {
        let repair = planned(0, 0);
        assert_eq!((repair.diverged(), repair.due()), (None, None));
        let mut repair = planned(1, 0);
        assert_eq!(repair.diverged(), Some(NOW));
        assert_eq!(exchange(&mut repair, 9), (1, 0));
        assert_eq!(repair.diverged(), Some(NOW), "not proven yet");
        repair.want();
        assert!(repair.step(NOW, 9).is_some());
        assert!(repair.learned(NOW, &Step::Compare, Learned::Equal));
        assert_eq!(repair.diverged(), None);
    }

    #[test]
    fn a_failed_step_begins_the_round_anew() {
        let mut repair = planned(5, 5);
        assert!(repair.step(NOW, 9).is_some());
        repair.failed();
        assert!(repair.due().is_some());
        assert_eq!(repair.step(NOW, 9), Some(Step::Compare));
        repair.refused();
        assert_eq!(repair.due(), None, "until it is wanted again");
        repair.failed();
        assert_eq!(repair.due(), None, "nothing was under way");
    }

    #[test]
    fn an_answer_that_does_not_fit_ends_the_round() {
        let mut repair = planned(1, 0);
        let step = repair.step(NOW, 9).expect("an exchange");
        assert!(!repair.learned(NOW, &step, Learned::Equal));
        assert_eq!(repair.due(), None);
        assert!(
            !repair.learned(NOW, &step, Learned::Equal),
            "nothing is under way"
        );
        let mut repair = planned(1, 0);
        assert!(!repair.learned(NOW, &Step::Compare, Learned::Nonsense));
    }

    #[test]
    fn a_short_exchange_is_followed_up_as_long_as_it_leads_on() {
        for (received, again) in [(1, true), (0, false)] {
            let mut repair = planned(3, 0);
            let step = repair.step(NOW, 9).expect("an exchange");
            let exchanged = Learned::Exchanged {
                adopted: received,
                received,
                sent: 0,
            };
            assert!(repair.learned(NOW, &step, exchanged));
            assert_eq!(repair.due().is_some(), again);
        }
    }

    #[test]
    fn a_peer_with_which_nothing_leads_on_waits_for_the_next_comparison() {
        let round = |repair: &mut Repair, (pull, push), adopted| {
            repair.want();
            assert_eq!(repair.step(NOW.after(PACE), 9), Some(Step::Compare));
            assert!(repair.learned(NOW, &Step::Compare, Learned::Differ { buckets: vec![3] }));
            let list = repair.step(NOW.after(PACE), 9).expect("a list");
            let plan = Learned::Plan {
                pull: keys(pull),
                push: keys(push),
                left: Vec::new(),
            };
            assert!(repair.learned(NOW, &list, plan));
            let exchange = repair.step(NOW.after(PACE), 9_999).expect("an exchange");
            let exchanged = Learned::Exchanged {
                adopted,
                received: pull.min(1),
                sent: push.min(1_000),
            };
            assert!(repair.learned(NOW, &exchange, exchanged));
            repair.due()
        };
        let soon = Some(NOW.after(PACE));
        let mut repair = Repair::default();
        assert_eq!(round(&mut repair, (3, 0), 0), None, "what came was known");
        assert_eq!(round(&mut repair, (3, 0), 1), soon);
        let mut repair = Repair::default();
        assert_eq!(round(&mut repair, (0, 1_000), 0), soon);
        assert_eq!(
            round(&mut repair, (0, 1_000), 0),
            None,
            "it lacks what it was just given"
        );
    }

    #[test]
    fn buckets_that_were_not_compared_are_listed_next() {
        let mut repair = Repair::default();
        repair.want();
        assert!(repair.step(NOW, 9).is_some());
        let buckets: Vec<u16> = (0..100).collect();
        assert!(repair.learned(NOW, &Step::Compare, Learned::Differ { buckets }));
        let first = repair.step(NOW, 9).expect("a list");
        let plan = Learned::Plan {
            pull: Vec::new(),
            push: keys(1),
            left: (10..64).collect(),
        };
        assert!(repair.learned(NOW, &first, plan));
        assert_eq!(exchange(&mut repair, 9), (0, 1));
        let next = Step::List {
            buckets: (10..74).collect(),
        };
        assert_eq!(repair.step(NOW, 9), Some(next));
    }

    #[test]
    fn a_wish_during_a_round_is_remembered() {
        let mut repair = planned(1, 0);
        repair.want();
        assert_eq!(exchange(&mut repair, 9), (1, 0));
        assert_eq!(repair.step(NOW, 9), Some(Step::Compare));
    }
}
