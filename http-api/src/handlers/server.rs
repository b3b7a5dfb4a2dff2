//! What Eureka tells about the server itself.

use std::collections::BTreeMap;

use eureka_registry_core::Status;
use eureka_registry_core::wire::{Route, StatusPage};
use http::StatusCode;
use http::header::ALLOW;

use crate::Answer;
use crate::call::{Call, Part};
use crate::config::{Allow, Facts};
use crate::outcome::{self, Refusal};

/// Overrides taken from the registry at once.
const OVERRIDES_PAGE: usize = 1000;

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

/// GET `serverinfo/statusoverrides`: instance ids with their overrides, those of absent instances, too.
pub(crate) fn overrides(call: &Call<'_>) -> Result<Answer, Refusal> {
    if !call.config().status_overrides {
        return Err(Refusal::NotFound);
    }
    let mut by_id = BTreeMap::new();
    let mut after = None;
    // Page by page, since each page holds the lock of the registry.
    loop {
        let page = call.registry().overrides(after.as_ref(), OVERRIDES_PAGE);
        let complete = page.len() < OVERRIDES_PAGE;
        after = page.last().map(|(key, _)| key.clone());
        by_id.extend(
            page.into_iter()
                .map(|(key, status)| (key.id().to_string(), status.as_str())),
        );
        if complete {
            break;
        }
    }
    let text = serde_json::to_vec(&by_id).expect("a map of texts is JSON");
    call.short("application/json", text, Part::Other)
}

/// GET `healthcheck`: the status of the node's own instance as a status of HTTP, as Netflix has it; 200 for a node that
/// does not register itself.
pub(crate) fn healthcheck(call: &Call<'_>) -> Result<Answer, Refusal> {
    let own = call
        .config()
        .own
        .as_ref()
        .and_then(|own| call.registry().find(own));
    let status = own.map_or(Status::Up, |view| view.instance.status);
    Ok(outcome::empty(match status {
        Status::Up => StatusCode::OK,
        Status::Starting => StatusCode::NO_CONTENT,
        Status::OutOfService => StatusCode::SERVICE_UNAVAILABLE,
        Status::Down | Status::Unknown => StatusCode::INTERNAL_SERVER_ERROR,
    }))
}

/// OPTIONS of anything.
pub(crate) fn options(call: &Call<'_>, route: &Route<'_>) -> Answer {
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
