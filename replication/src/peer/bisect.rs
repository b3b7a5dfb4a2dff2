//! The search for the item that makes a peer refuse whole batches.
//!
//! After a refusal one item goes alone. If that is refused too, it is not the items: the peer is misconfigured, or we are. If it
//! passes, the refused batch is halved until the culprit is alone.

use eureka_registry_core::InstanceKey;

use super::queue::Slot;

/// Requests that one search may cost. A batch of 4,000 items needs 13.
const EXTRA_MAX: u32 = 16;

/// What may be in a batch that is refused.
pub(super) type Suspect = (InstanceKey, Slot);

/// The search. Suspects are bounded by the batch that was refused.
#[derive(Debug)]
pub(super) struct Bisect {
    stage: Stage,
    extra: u32,
}

#[derive(Debug)]
enum Stage {
    /// Nobody is suspected.
    Off,
    /// One item goes alone: the first of the instance with `turn` others before it, so that the culprit itself is not tried for ever.
    Alone { suspects: Vec<Suspect>, turn: usize },
    /// Half of the suspects go.
    Halving { suspects: Vec<Suspect>, tried: usize },
}

/// What is to be sent next.
#[derive(Debug)]
pub(super) enum Plan {
    /// Whatever is due.
    Ordinary,
    /// One item.
    Alone(usize),
    /// These, where they still wait.
    These(Vec<Suspect>),
    /// The search took too long.
    GiveUp,
}

/// What a refusal means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    /// Not known yet.
    Search,
    /// The only item of the batch is the culprit.
    Culprit,
    /// It is not the items.
    Everything,
}

impl Bisect {
    pub(super) fn new() -> Self {
        Self {
            stage: Stage::Off,
            extra: EXTRA_MAX,
        }
    }

    pub(super) fn is_on(&self) -> bool {
        !matches!(self.stage, Stage::Off)
    }

    /// What is to be sent next, if there is room for so many items.
    pub(super) fn plan(&mut self, room: usize) -> Plan {
        match &self.stage {
            Stage::Off => Plan::Ordinary,
            Stage::Alone { turn, .. } => Plan::Alone(*turn),
            Stage::Halving { .. } if self.extra == 0 => {
                *self = Self::new();
                Plan::GiveUp
            }
            Stage::Halving { suspects, .. } => {
                let half = suspects.len().div_ceil(2).min(room);
                Plan::These(suspects[..half].to_vec())
            }
        }
    }

    /// So many of the planned ones were looked at; some of them, not all, were still there and are on their way.
    pub(super) fn trying(&mut self, looked_at: usize) {
        if let Stage::Halving { tried, .. } = &mut self.stage {
            *tried = looked_at;
        }
    }

    /// Of those looked at, none was still there, or all were accepted.
    pub(super) fn clear(&mut self) {
        if let Stage::Halving { suspects, tried } = &mut self.stage {
            suspects.drain(..*tried);
            if suspects.is_empty() {
                self.stage = Stage::Off;
            }
        }
    }

    /// A batch passed. `proven`: the peer has really seen something of it.
    pub(super) fn passed(&mut self, batch: &[Suspect], proven: bool) {
        match &mut self.stage {
            Stage::Off => self.extra = EXTRA_MAX,
            Stage::Alone { .. } if !proven => {}
            Stage::Alone { suspects, .. } => {
                let mut suspects = std::mem::take(suspects);
                suspects.retain(|suspect| !batch.contains(suspect));
                self.stage = if suspects.is_empty() {
                    Stage::Off
                } else {
                    Stage::Halving { suspects, tried: 0 }
                };
            }
            Stage::Halving { .. } => {
                self.extra = self.extra.saturating_sub(1);
                self.clear();
            }
        }
    }

    /// A batch was refused.
    pub(super) fn refused(&mut self, batch: Vec<Suspect>) -> Verdict {
        match &mut self.stage {
            Stage::Off => {
                // If it was a single item, another one is tried first.
                let turn = usize::from(batch.len() == 1);
                self.stage = Stage::Alone {
                    suspects: batch,
                    turn,
                };
                Verdict::Search
            }
            Stage::Alone { turn, .. } => {
                *turn += 1;
                Verdict::Everything
            }
            Stage::Halving { suspects, .. } => {
                self.extra = self.extra.saturating_sub(1);
                if batch.len() > 1 {
                    *suspects = batch;
                    return Verdict::Search;
                }
                self.stage = Stage::Off;
                Verdict::Culprit
            }
        }
    }

    /// It is not the items: the search ends.
    pub(super) fn stop(&mut self) {
        *self = Self::new();
    }
}
