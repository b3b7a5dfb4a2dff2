//! Which status readers see: the chain of rules of Java, first match wins.

use crate::model::Status;

/// The effective status of an instance.
///
/// `reported` is what it says of itself, `overridden` what an operator set, `holder` the effective status of the lease
/// that is there already. Eureka's rules, in order: an instance that reports neither UP nor OUT_OF_SERVICE is what it
/// reports; an override wins over the rest; and, unless a peer says so, a client cannot move itself between UP and
/// OUT_OF_SERVICE (an operator may have put it there). The rule on auto-scaling groups exists on AWS alone and is absent.
pub(crate) fn effective(
    reported: Status,
    overridden: Option<Status>,
    holder: Option<Status>,
    from_peer: bool,
) -> Status {
    if !in_or_out(reported) {
        return reported;
    }
    if let Some(status) = overridden {
        return status;
    }
    match holder {
        Some(status) if !from_peer && in_or_out(status) => status,
        Some(_) | None => reported,
    }
}

/// Whether rules and overrides decide on it: in or out of traffic.
pub(crate) const fn in_or_out(status: Status) -> bool {
    matches!(status, Status::OutOfService | Status::Up)
}

#[cfg(test)]
mod tests {
    use super::effective;
    use crate::model::Status::{Down, OutOfService, Starting, Unknown, Up};

    #[test]
    fn rules_match_in_javas_order() {
        for reported in [Down, Starting, Unknown] {
            assert_eq!(effective(reported, Some(OutOfService), Some(Up), false), reported);
        }
        assert_eq!(effective(Up, Some(OutOfService), Some(Up), false), OutOfService);
        assert_eq!(effective(Up, Some(Down), Some(OutOfService), true), Down);
        assert_eq!(effective(OutOfService, None, Some(Up), false), Up);
        assert_eq!(effective(Up, None, Some(OutOfService), false), OutOfService);
        assert_eq!(effective(Up, None, Some(OutOfService), true), Up);
        assert_eq!(effective(OutOfService, None, Some(Down), false), OutOfService);
        assert_eq!(effective(OutOfService, None, None, false), OutOfService);
    }
}
