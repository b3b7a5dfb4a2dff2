//! Clocks that disagree.

use super::{Case, seconds};
use crate::cli::doctor::report::Finding;

/// Smaller differences do no harm, and `Date` has whole seconds only.
const SKEW: i64 = 5_000;
/// A client's clock this far ahead of every server's is wrong.
const CLIENT_AHEAD: i64 = 60_000;

pub(super) fn check(case: &mut Case<'_>) {
    servers(case);
    clients(case);
}

/// Whoever differs from the middle one; of two, both.
fn servers(case: &mut Case<'_>) {
    let mut clocks: Vec<_> = case
        .healthy
        .iter()
        .map(|(index, _, answers)| (answers.clock_offset, *index))
        .collect();
    clocks.sort_unstable();
    let Some(&(middle, _)) = clocks.get(clocks.len() / 2) else {
        return;
    };
    let (ahead, behind): (Vec<_>, Vec<_>) = clocks
        .iter()
        .copied()
        .filter(|(offset, _)| (offset - middle).abs() > SKEW)
        .partition(|(offset, _)| *offset > middle);
    for (offset, index) in ahead.into_iter().chain(behind) {
        let difference = offset - middle;
        let others: Vec<_> = clocks
            .iter()
            .filter(|(other, _)| (other - middle).abs() <= SKEW)
            .map(|(_, index)| case.name(*index))
            .collect();
        let (name, others) = (case.name(index), super::joined(&others));
        let side = if difference > 0 { "ahead of" } else { "behind" };
        let mut names = vec![name.to_owned()];
        names.extend((clocks.len() == 2).then(|| others.clone()));
        case.find(Finding {
            name: "clock-skew",
            servers: names,
            sentence: format!("The clock of {name} is at least {} {side} that of {others}.", seconds(difference.abs())),
            evidence: vec![format!("told by the times in their answers: {name} differs from the clock here by {}, the other by {}", seconds(offset), seconds(middle))],
            remedy: "Set the clocks by NTP. Lease times of different servers cannot be compared until then, and of two operators' overrides the one set on the faster clock wins.".to_owned(),
        });
    }
}

/// The version of an instance is the time of its client; Java and we only ever compare such times with each other.
fn clients(case: &mut Case<'_>) {
    for key in case.keys() {
        let newest = case
            .healthy
            .iter()
            .filter_map(|(index, _, answers)| {
                let look = answers.look(&key)?;
                let dirty = look.seen.as_ref()?.instance.last_dirty?;
                Some((dirty - look.at - answers.clock_offset, *index))
            })
            .max();
        let Some((ahead, index)) = newest.filter(|(ahead, _)| *ahead > CLIENT_AHEAD) else {
            continue;
        };
        let name = case.name(index).to_owned();
        case.find(Finding {
            name: "client-clock-ahead",
            servers: vec![name.clone()],
            sentence: format!("{key} was registered by a client whose clock is {} ahead: what it registers after its clock was set right is taken for old and ignored.", seconds(ahead)),
            evidence: vec![format!("at {name} its lastDirtyTimestamp is {} later than that server's own time", seconds(ahead))],
            remedy: "Set the client's clock by NTP, then cancel the instance (DELETE apps/APP/ID) so that the next registration counts.".to_owned(),
        });
    }
}
