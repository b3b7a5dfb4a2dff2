//! How much of the calls stays in the own zone.

use std::sync::Arc;

/// Prefers instances of the own zone, as far as they carry it.
///
/// The own zone is preferred while at least [`minimum`](Self::minimum) of its instances can be picked (UP, callable, not left
/// out); before that, zones do not matter. Then it gets all calls as long as its instances, if callers are spread over
/// the zones evenly, get at most [`overload`](Self::overload) times the calls of the average instance; of what is beyond
/// that, the other zones' instances get their part. So with `overload` 2 and two zones, 10 instances there and 5 here keep
/// all calls (here are 5, the average zone has 7.5), with 2 here it is 4 of 6, and there is no step between.
///
/// The zone of an instance is Amazon's `availability-zone`, else its metadata key `zone`, as Java has it; instances
/// without one are a zone of their own.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Zones {
    /// The own zone; without one, zones do not matter.
    pub own: Option<Arc<str>>,
    /// Fewer instances than this are no zone to prefer. 0 is the same as 1.
    pub minimum: usize,
    /// See above; 2 if it is not above zero.
    pub overload: f64,
}

/// What `overload` is unless it is set.
const OVERLOAD: f64 = 2.0;

impl Zones {
    /// Which part of the calls stays: with `here` of `all` instances in the own zone, where `all` are in so many zones.
    /// `None` if the own zone is not preferred.
    pub(crate) fn share(&self, here: usize, all: usize, zones: usize) -> Option<f64> {
        if here < self.minimum.max(1) {
            return None;
        }
        let overload = if self.overload > 0.0 {
            self.overload
        } else {
            OVERLOAD
        };
        let average = all as f64 / zones as f64;
        Some((overload * here as f64 / average).min(1.0))
    }
}
