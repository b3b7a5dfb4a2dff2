//! How long a client waits: the header `grpc-timeout`.

use std::time::Duration;

use http::{Extensions, HeaderMap};
use tokio::time::Instant;

use crate::refusal::Refusal;

/// The moment a call has to be over; travels with the request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline(pub(super) Instant);

impl Deadline {
    /// What the headers say: up to eight digits and a unit.
    pub(super) fn of(headers: &HeaderMap) -> Result<Option<Self>, Refusal> {
        let Some(value) = headers.get("grpc-timeout") else {
            return Ok(None);
        };
        let timeout = value.to_str().ok().and_then(parse).ok_or(Refusal::Timeout)?;
        // A moment beyond what the clock can name is never.
        Ok(Instant::now().checked_add(timeout).map(Self))
    }

    /// What travels with a request.
    pub(super) fn in_extensions(extensions: &Extensions) -> Option<Instant> {
        extensions.get::<Self>().map(|deadline| deadline.0)
    }
}

fn parse(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(count * 3_600)),
        "M" => Some(Duration::from_secs(count * 60)),
        "S" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_millis(count)),
        "u" => Some(Duration::from_micros(count)),
        "n" => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_a_number_and_a_unit() {
        for (text, timeout) in [
            ("1H", Duration::from_secs(3_600)),
            ("2M", Duration::from_secs(120)),
            ("99999999S", Duration::from_secs(99_999_999)),
            ("250m", Duration::from_millis(250)),
            ("7u", Duration::from_micros(7)),
            ("0n", Duration::ZERO),
        ] {
            assert_eq!(parse(text), Some(timeout), "{text}");
        }
        for bad in [
            "",
            "1",
            "S",
            "1s",
            "-1S",
            "+1S",
            "1.5S",
            "100000000S",
            "1 S",
            "1é",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
