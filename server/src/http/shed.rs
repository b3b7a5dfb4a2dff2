//! What is refused because there is too much to do.

use eureka_http_api::Class;

use super::Front;
use super::refusal::Refusal;
use super::work::Work;

/// Why a request is refused, if it is. The usual one pays for two looks at numbers.
///
/// See [`Pressure::sheds`](super::Pressure::sheds) for the order. Who wants to stay is refused besides when there are too
/// many of those, unless it is to renew leases.
pub(super) fn refusal(front: &Front, work: Work) -> Option<Refusal> {
    let (pressure, meters) = (&front.pressure, &front.meters);
    if !pressure.is_high() && !pressure.is_crowded() {
        return None;
    }
    // A stream of renewals that is refused for the sake of readers would cost leases.
    if work.stays && work.class != Class::Renewal && pressure.is_crowded() {
        meters.watchers_refused.increment(1);
        return Some(Refusal::Watchers);
    }
    pressure.sheds(work.class).then(|| {
        meters.shed(work.class);
        Refusal::Overloaded
    })
}
