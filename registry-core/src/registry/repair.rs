//! Repair between nodes of ours: what is asked, what is answered, and what is learned from answers.

use super::Registry;
use crate::command::Origin;
use crate::repair::{Learned, RepairAnswer, RepairRequest, Step};
use crate::time::Now;

impl Registry {
    /// A step, filled in from what is here now. Nothing is changed but that what has settled is summed up.
    pub fn repair_request(&mut self, _now: Now, _step: &Step) -> RepairRequest {
        unimplemented!()
    }

    /// Answers another node's request; of an exchange, takes over what wins.
    pub fn repair_answer(&mut self, _now: Now, _origin: Origin, _request: RepairRequest) -> RepairAnswer {
        unimplemented!()
    }

    /// Learns from the answer to `step`, which was asked at `asked`: ages in the answer are older by the time since then,
    /// which is more than the truth and never less.
    pub fn learn(
        &mut self,
        _now: Now,
        _origin: Origin,
        _asked: crate::time::Mono,
        _step: &Step,
        _answer: RepairAnswer,
    ) -> Learned {
        unimplemented!()
    }
}
