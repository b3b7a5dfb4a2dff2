//! What Eureka tells about the server itself.

use eureka_registry_core::wire::{Route, StatusPage};
use http::StatusCode;
use http::header::ALLOW;

use crate::Answer;
use crate::config::{Allow, Facts};
use crate::outcome::{self, Refusal};
use crate::respond::{Call, Part};

/// GET `status`
pub(crate) fn status(call: &Call<'_>) -> Result<Answer, Refusal> {
    let format = call.accepted()?.for_instances();
    let facts = (call.config().facts)();
    let page = StatusPage {
        general: general(&facts, call.registry().now().mono.0),
        application: [
            ("registered-replicas", &facts.replicas),
            ("available-replicas", &facts.available),
            ("unavailable-replicas", &facts.unavailable),
        ]
        .map(|(name, urls)| (name, joined(urls)))
        .into(),
        instance: call
            .config()
            .own
            .as_ref()
            .and_then(|own| call.registry().find(own)),
        healthy: facts.healthy,
    };
    let mut text = Vec::new();
    page.write(format, &mut text);
    call.short(format.content_type(), text, Part::Other)
}

/// GET `serverinfo/statusoverrides`: instance ids with the override that applies.
pub(crate) fn overrides(call: &Call<'_>) -> Result<Answer, Refusal> {
    if !call.config().status_overrides {
        return Err(Refusal::NotFound);
    }
    let text = call.api.listing_of_all().overrides().to_vec();
    call.short("application/json", text, Part::Other)
}

/// OPTIONS of anything.
pub(crate) fn options(call: &Call<'_>, route: &Route) -> Answer {
    let mut answer = match call.config().allow {
        Allow::Full | Allow::Spring => outcome::done(),
        Allow::Netflix => outcome::empty(StatusCode::NO_CONTENT),
    };
    answer
        .headers_mut()
        .insert(ALLOW, outcome::allow(route.methods(), true));
    answer
}

fn general(facts: &Facts, uptime_millis: u64) -> Vec<(&'static str, String)> {
    let megabytes = |bytes: u64| bytes >> 20;
    let share = facts
        .memory_used
        .saturating_mul(100)
        .checked_div(facts.memory_total);
    let used = format!(
        "{}mb ({}%)",
        megabytes(facts.memory_used),
        share.unwrap_or_default()
    );
    vec![
        ("num-of-cpus", facts.cpus.to_string()),
        (
            "total-avail-memory",
            format!("{}mb", megabytes(facts.memory_total)),
        ),
        ("current-memory-usage", used),
        ("server-uptime", uptime(uptime_millis / 60_000)),
    ]
}

/// `hh:mm`, or `N days hh:mm`, as in Java.
fn uptime(minutes: u64) -> String {
    let (days, hours, minutes) = (minutes / 1440, minutes / 60 % 24, minutes % 60);
    if days == 0 {
        format!("{hours:02}:{minutes:02}")
    } else {
        format!("{days} days {hours:02}:{minutes:02}")
    }
}

/// Java ends each URL with a comma.
fn joined(urls: &[String]) -> String {
    urls.iter().map(|url| format!("{url},")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uptime_is_written_as_in_java() {
        assert_eq!(uptime(0), "00:00");
        assert_eq!(uptime(125), "02:05");
        assert_eq!(uptime(2 * 1440 + 61), "2 days 01:01");
    }

    #[test]
    fn memory_is_written_as_in_java() {
        let facts = Facts {
            cpus: 2,
            memory_total: 114 << 20,
            memory_used: 56 << 20,
            ..Facts::default()
        };
        let general = general(&facts, 0);
        assert_eq!(general[1].1, "114mb");
        assert_eq!(general[2].1, "56mb (49%)");
    }
}
