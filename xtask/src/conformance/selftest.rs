//! Does the kit see what it should? A proxy before the server plants one fault at a time; the check made for it must
//! name it, and no other may.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::faulty::{Faulty, edit, instance_lists};
use super::http::{Request, Response};
use super::report::{Outcome, Report};
use super::target::Target;
use super::wire;

/// Enough for a server that has just answered without a fault in less.
const PATIENCE: Duration = Duration::from_secs(8);
/// As many runs at a time; each runs all checks at once.
const JOBS: usize = 3;

/// A fault and the check that must name it.
struct Fault {
    name: &'static str,
    caught_by: &'static str,
    plant: fn(&Context, &Request, &mut Response),
}

const FAULTS: &[Fault] = &[
    Fault {
        name: "200 for a registration",
        caught_by: "register-204",
        plant: registered_200,
    },
    Fault {
        name: "a body on a heartbeat",
        caught_by: "heartbeat-empty",
        plant: heartbeat_body,
    },
    Fault {
        name: "a body on a heartbeat's 404",
        caught_by: "heartbeat-404-empty",
        plant: heartbeat_404_body,
    },
    Fault {
        name: "a wrong hash",
        caught_by: "hash",
        plant: wrong_hash,
    },
    Fault {
        name: "a delta without DELETED",
        caught_by: "delta-deleted",
        plant: no_deleted,
    },
    Fault {
        name: "one object for a list",
        caught_by: "lists-are-arrays",
        plant: single_objects,
    },
    Fault {
        name: "an extra field in an instance",
        caught_by: "instance-fields",
        plant: extra_field,
    },
    Fault {
        name: "gzip unasked",
        caught_by: "gzip-only-when-asked",
        plant: gzip_unasked,
    },
    Fault {
        name: "a stale delta",
        caught_by: "delta-current",
        plant: stale_delta,
    },
    Fault {
        name: "a lost override",
        caught_by: "override-kept",
        plant: lost_override,
    },
    Fault {
        name: "an early eviction",
        caught_by: "lease-lasts",
        plant: early_eviction,
    },
];

/// Plants every fault before `target` and reports whether the kit named it.
pub(crate) fn run(target: &Target, run_name: &str, report: &Report) {
    let honest = match named(target, &format!("{run_name}-0"), None) {
        Ok(named) => named,
        Err(why) => return report.step("self-test", "without a fault", &Outcome::Failed(why)),
    };
    let without = match honest.is_empty() {
        true => "nothing is named".to_owned(),
        false => format!("the server itself: {}", said(&honest)),
    };
    report.step("self-test", "without a fault", &Outcome::Passed(without));
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..JOBS {
            scope.spawn(|| {
                while let Some((at, fault)) = take(&next) {
                    let outcome = judged(
                        fault,
                        &honest,
                        named(target, &format!("{run_name}-{}", at + 1), Some(fault)),
                    );
                    report.step("self-test", fault.name, &outcome);
                }
            });
        }
    });
}

fn take(next: &AtomicUsize) -> Option<(usize, &'static Fault)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    FAULTS.get(at).map(|fault| (at, fault))
}

/// The checks that failed, each with what it said.
type Named = BTreeMap<&'static str, String>;

/// Which checks fail with this fault planted.
fn named(target: &Target, run_name: &str, fault: Option<&'static Fault>) -> Result<Named, String> {
    let context = Context {
        target: target.clone(),
        frozen: Mutex::default(),
        overridden: Mutex::default(),
    };
    let proxy = Faulty::start(move |request| {
        let mut response = context.target.send(&request).ok()?;
        if let Some(fault) = fault {
            (fault.plant)(&context, &request, &mut response);
        }
        Some(response)
    });
    let proxy = proxy.map_err(|error| format!("the proxy does not start: {error}"))?;
    let outcomes = wire::run(&target.behind(proxy.address.as_str()), run_name, PATIENCE);
    let failed = outcomes.into_iter().filter_map(|(name, outcome)| match outcome {
        Outcome::Failed(why) => Some((name, why)),
        Outcome::Passed(_) | Outcome::Skipped(_) => None,
    });
    Ok(failed.collect())
}

fn judged(fault: &Fault, honest: &Named, named: Result<Named, String>) -> Outcome {
    let mut named = match named {
        Ok(named) => named,
        Err(why) => return Outcome::Failed(why),
    };
    if honest.contains_key(fault.caught_by) {
        return Outcome::Skipped(format!("the server itself has it ({})", fault.caught_by));
    }
    named.retain(|name, _| !honest.contains_key(name));
    let by_its_check = named.remove(fault.caught_by).is_some();
    match (by_its_check, named.is_empty()) {
        (true, true) => Outcome::Passed(format!("named by {}", fault.caught_by)),
        (false, true) => Outcome::Failed("nothing named it".to_owned()),
        (_, false) => Outcome::Failed(format!(
            "named by others than {}: {}",
            fault.caught_by,
            said(&named)
        )),
    }
}

/// Whether a fault was named first by the step of a client's life that is made for it; without a fault nothing may be.
pub(super) fn judge(caught_by: Option<&str>, named: Result<Option<(&str, String)>, String>) -> Outcome {
    match (caught_by, named) {
        (_, Err(why)) => Outcome::Failed(why),
        (None, Ok(None)) => Outcome::Passed("nothing is named".to_owned()),
        (None, Ok(Some((step, why)))) => {
            Outcome::Failed(format!("the server itself: `{step}` failed: {why}"))
        }
        (Some(_), Ok(None)) => Outcome::Failed("nothing named it".to_owned()),
        (Some(own), Ok(Some((step, _)))) if step == own => Outcome::Passed(format!("named by `{step}`")),
        (Some(own), Ok(Some((step, why)))) => {
            Outcome::Failed(format!("named by `{step}` and not by `{own}`: {why}"))
        }
    }
}

fn said(named: &Named) -> String {
    let each = named.iter().map(|(name, why)| format!("{name} ({why})"));
    each.collect::<Vec<_>>().join(", ")
}

/// What a fault remembers.
struct Context {
    target: Target,
    frozen: Mutex<HashMap<String, Response>>,
    overridden: Mutex<Vec<String>>,
}

fn registered_200(_: &Context, request: &Request, response: &mut Response) {
    if request.method == "POST" && response.status == 204 {
        response.status = 200;
    }
}

fn heartbeat_body(_: &Context, request: &Request, response: &mut Response) {
    if is_heartbeat(request) && response.status == 200 {
        json_body(response, &json!({"status": "renewed"}));
    }
}

fn heartbeat_404_body(_: &Context, request: &Request, response: &mut Response) {
    if is_heartbeat(request) && response.status == 404 {
        json_body(response, &json!({"status": 404, "error": "Not Found"}));
    }
}

fn is_heartbeat(request: &Request) -> bool {
    let path = request.target.split('?').next().unwrap_or_default();
    request.method == "PUT" && !path.ends_with("/status") && !path.ends_with("/metadata")
}

fn wrong_hash(_: &Context, _: &Request, response: &mut Response) {
    edit(response, |document| {
        if let Some(hash) = document.pointer_mut("/applications/apps__hashcode") {
            *hash = json!("UP_4711_");
        }
    });
}

fn no_deleted(_: &Context, request: &Request, response: &mut Response) {
    if !request.target.contains("/apps/delta") {
        return;
    }
    edit(response, |document| {
        for list in instance_lists(document) {
            list.retain(|instance| instance["actionType"] != "DELETED");
        }
    });
}

fn single_objects(_: &Context, _: &Request, response: &mut Response) {
    edit(response, |document| {
        for pointer in ["/application/instance", "/applications/application"] {
            if let Some(list) = document.pointer_mut(pointer) {
                unwrap_single(list);
            }
        }
        if let Some(Value::Array(list)) = document.pointer_mut("/applications/application") {
            list.iter_mut()
                .for_each(|application| unwrap_single(&mut application["instance"]));
        }
    });
}

fn unwrap_single(list: &mut Value) {
    if let Value::Array(items) = list
        && items.len() == 1
    {
        *list = items.remove(0);
    }
}

fn extra_field(_: &Context, _: &Request, response: &mut Response) {
    edit(response, |document| {
        if let Some(instance) = document.get_mut("instance") {
            instance["leaseAge"] = json!(5);
        }
        for list in instance_lists(document) {
            list.iter_mut()
                .for_each(|instance| instance["leaseAge"] = json!(5));
        }
    });
}

fn gzip_unasked(_: &Context, request: &Request, response: &mut Response) {
    let plain = response.header("content-encoding").is_none() && !response.body.is_empty();
    if request.method != "GET" || response.status != 200 || !plain {
        return;
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing into memory does not fail.
    if encoder.write_all(&response.body).is_ok()
        && let Ok(body) = encoder.finish()
    {
        response.body = body;
        response
            .headers
            .push(("Content-Encoding".to_owned(), "gzip".to_owned()));
    }
}

fn stale_delta(context: &Context, request: &Request, response: &mut Response) {
    if request.method == "GET" && request.target.contains("/apps/delta") && response.status == 200 {
        let accept = request
            .headers
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("accept"));
        let key = accept.map(|(_, value)| value.clone()).unwrap_or_default();
        let mut frozen = context.frozen.lock();
        *response = frozen.entry(key).or_insert_with(|| response.clone()).clone();
    }
}

fn lost_override(context: &Context, request: &Request, _: &mut Response) {
    let mut overridden = context.overridden.lock();
    let (path, _) = request.target.split_once('?').unwrap_or((&request.target, ""));
    if request.method == "PUT" && path.ends_with("/status") {
        overridden.push(path.to_owned());
    }
    if request.method == "POST" {
        for status in overridden
            .iter()
            .filter(|status| status.starts_with(&format!("{path}/")))
        {
            // A fault that cannot be planted is not named, and so found.
            let _ = context
                .target
                .send(&Request::new("DELETE", format!("{status}?value=UP")));
        }
    }
}

fn early_eviction(context: &Context, request: &Request, _: &mut Response) {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let lease = body["instance"]["leaseInfo"]["durationInSecs"]
        .as_u64()
        .unwrap_or(90);
    if request.method == "POST" && lease < 10 {
        let id = body["instance"]["instanceId"].as_str().unwrap_or_default();
        let cancel = Request::new("DELETE", format!("{}/{id}", request.target));
        let target = context.target.clone();
        thread::spawn(move || {
            thread::sleep(Duration::from_secs(1));
            let _ = target.send(&target.authorized(cancel));
        });
    }
}

fn json_body(response: &mut Response, body: &Value) {
    response
        .headers
        .push(("Content-Type".to_owned(), "application/json".to_owned()));
    response.body = body.to_string().into_bytes();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_fault_has_a_check_of_its_own() {
        let names: BTreeSet<_> = wire::CHECKS.iter().map(|check| check.name).collect();
        let caught: BTreeSet<_> = FAULTS.iter().map(|fault| fault.caught_by).collect();
        assert_eq!(caught.len(), FAULTS.len());
        assert!(caught.is_subset(&names), "{caught:?}");
    }

    #[test]
    fn a_fault_must_be_named_by_its_check_and_by_no_other() {
        let set = |names: &[&'static str]| {
            names
                .iter()
                .map(|name| (*name, "why".to_owned()))
                .collect::<Named>()
        };
        let fault = &FAULTS[0];
        let honest = set(&["xml"]);
        let by = |named: &[&'static str]| judged(fault, &honest, Ok(set(named)));
        assert!(matches!(by(&["register-204", "xml"]), Outcome::Passed(_)));
        assert!(matches!(by(&["xml"]), Outcome::Failed(_)));
        for other in ["hash", "vip"] {
            assert!(matches!(by(&["register-204", other]), Outcome::Failed(_)));
            assert!(matches!(by(&[other]), Outcome::Failed(_)));
        }
        assert!(matches!(
            judged(fault, &set(&["register-204"]), Ok(set(&[]))),
            Outcome::Skipped(_)
        ));
    }

    #[test]
    fn a_fault_must_be_named_first_by_its_step() {
        let named = |step: &'static str| Ok(Some((step, String::new())));
        assert!(matches!(
            judge(Some("leaves"), named("leaves")),
            Outcome::Passed(_)
        ));
        assert!(matches!(
            judge(Some("leaves"), named("renews")),
            Outcome::Failed(_)
        ));
        assert!(matches!(judge(Some("leaves"), Ok(None)), Outcome::Failed(_)));
        assert!(matches!(judge(None, Ok(None)), Outcome::Passed(_)));
        assert!(matches!(judge(None, named("leaves")), Outcome::Failed(_)));
    }

    #[test]
    fn lists_of_one_become_objects_and_longer_ones_stay() {
        let mut response = Response::default();
        json_body(
            &mut response,
            &json!({"applications": {"application": [{"instance": [1]}, {"instance": [1, 2]}]}}),
        );
        let context = Context {
            target: Target::parse("http://h/e").unwrap(),
            frozen: Mutex::default(),
            overridden: Mutex::default(),
        };
        single_objects(&context, &Request::new("GET", "/e/apps"), &mut response);
        let expected = json!({"applications": {"application": [{"instance": 1}, {"instance": [1, 2]}]}});
        assert_eq!(response.json().unwrap(), expected);
    }
}
