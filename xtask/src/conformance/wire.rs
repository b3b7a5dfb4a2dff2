//! Direct checks of what goes over the wire: each has a name, and each names one kind of fault.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::Value;

use super::fields;
use super::http::{self, HttpError, Response, excerpt};
use super::report::Outcome;
use super::target::{Instance, Target, find_instance, instance_path, instances};

/// One check.
pub(crate) struct Check {
    pub(crate) name: &'static str,
    /// What must hold.
    pub(crate) what: &'static str,
    run: fn(&Probe<'_>) -> Verdict,
}

/// Every check, in the order of printing.
pub(crate) const CHECKS: &[Check] = &[
    Check {
        name: "register-204",
        what: "a registration is answered 204, without a body",
        run: register_204,
    },
    Check {
        name: "heartbeat-empty",
        what: "a heartbeat is answered 200, without a body",
        run: heartbeat_empty,
    },
    Check {
        name: "heartbeat-404-empty",
        what: "a heartbeat of an unknown instance is answered 404, without a body",
        run: heartbeat_404_empty,
    },
    Check {
        name: "cancel",
        what: "a cancelled instance is gone, and a second cancel is a 404",
        run: cancel,
    },
    Check {
        name: "hash",
        what: "apps__hashcode counts what the list holds, in apps and delta",
        run: hash,
    },
    Check {
        name: "lists-are-arrays",
        what: "one application or instance is an array too",
        run: arrays,
    },
    Check {
        name: "instance-fields",
        what: "instances have Eureka's fields and no other",
        run: exact_fields,
    },
    Check {
        name: "field-types",
        what: "numbers, strings and markers have the types Java has",
        run: field_types,
    },
    Check {
        name: "gzip-only-when-asked",
        what: "without Accept-Encoding the answer is plain",
        run: plain_unasked,
    },
    Check {
        name: "gzip-when-asked",
        what: "with Accept-Encoding: gzip the answer can be read",
        run: gzip_asked,
    },
    Check {
        name: "delta-current",
        what: "the delta shows what was registered just now",
        run: delta_current,
    },
    Check {
        name: "delta-deleted",
        what: "the delta shows a cancelled instance as DELETED",
        run: delta_deleted,
    },
    Check {
        name: "override-kept",
        what: "an override outlives heartbeats and registrations",
        run: override_kept,
    },
    Check {
        name: "lease-lasts",
        what: "an instance stays until its lease is over",
        run: lease_lasts,
    },
    Check {
        name: "own-status",
        what: "an instance that registers DOWN is DOWN",
        run: own_status,
    },
    Check {
        name: "metadata",
        what: "a metadata entry can be put",
        run: metadata,
    },
    Check {
        name: "vip",
        what: "an instance is found by its VIP address",
        run: vip,
    },
    Check {
        name: "content-type",
        what: "JSON and XML are labelled so, without a charset",
        run: content_type,
    },
    Check {
        name: "xml",
        what: "the XML list is well-formed and has the instance",
        run: xml,
    },
];

/// Runs every check at once (each has an application of its own) and returns the outcomes in their order.
pub(crate) fn run(target: &Target, run_name: &str, patience: Duration) -> Vec<(&'static str, Outcome)> {
    thread::scope(|scope| {
        let started: Vec<_> = CHECKS
            .iter()
            .map(|check| scope.spawn(move || check.outcome(target, run_name, patience)))
            .collect();
        let joined = CHECKS.iter().zip(started);
        joined
            .map(|(check, thread)| (check.name, thread.join().unwrap_or_else(panicked)))
            .collect()
    })
}

fn panicked(_: Box<dyn std::any::Any + Send>) -> Outcome {
    Outcome::Failed("the check itself failed".to_owned())
}

impl Check {
    fn outcome(&self, target: &Target, run_name: &str, patience: Duration) -> Outcome {
        let app = format!("{run_name}-{}", self.name).to_uppercase();
        let probe = Probe {
            target,
            app,
            patience,
            registered: Mutex::default(),
        };
        let verdict = (self.run)(&probe);
        probe.clean_up();
        match verdict {
            Ok(()) => Outcome::Passed(self.what.to_owned()),
            Err(Miss::Failed(why)) => Outcome::Failed(why),
            Err(Miss::NotReached(why)) => Outcome::Skipped(why),
        }
    }
}

type Verdict = Result<(), Miss>;

/// Why a check did not pass.
enum Miss {
    /// What it looks at is wrong.
    Failed(String),
    /// Something before it went wrong, which another check names.
    NotReached(String),
}

impl From<HttpError> for Miss {
    fn from(error: HttpError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<String> for Miss {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

fn not_reached(why: impl ToString) -> Miss {
    Miss::NotReached(why.to_string())
}

fn ensure(holds: bool, why: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(Miss::Failed(why())) }
}

/// What a check works with.
struct Probe<'a> {
    target: &'a Target,
    app: String,
    patience: Duration,
    registered: Mutex<Vec<String>>,
}

impl Probe<'_> {
    /// An id that no other application has: Java keeps overrides by id alone.
    fn id(&self, short: &str) -> String {
        format!("{}:{short}", self.app.to_lowercase())
    }

    fn instance(&self, short: &str) -> Instance {
        Instance::new(&self.app, &self.id(short))
    }

    fn register(&self, instance: &Instance) -> Result<Response, HttpError> {
        self.registered.lock().push(instance.id.clone());
        self.target.register(instance)
    }

    /// Registers as a step towards something else: any success will do.
    fn prepare(&self, short: &str) -> Result<Instance, Miss> {
        let instance = self.instance(short);
        let response = self.register(&instance).map_err(not_reached)?;
        if (200..300).contains(&response.status) {
            return Ok(instance);
        }
        Err(not_reached(format!(
            "its registration was answered {}",
            response.status
        )))
    }

    /// Waits until a list of the server shows what is looked for.
    fn wait<T>(&self, path: &str, look: impl Fn(&Value) -> Result<T, String>) -> Result<T, String> {
        http::poll(self.patience, || look(&self.target.get_json(path)?))
    }

    fn wait_listed(&self, path: &str, short: &str) -> Result<Value, String> {
        self.wait(path, |document| {
            let found = find_instance(document, &self.app, &self.id(short)).cloned();
            found.ok_or_else(|| format!("GET {path} does not show the instance"))
        })
    }

    /// Registers, and waits until the delta shows it. The read before that catches a server that never renews its
    /// delta: what it froze cannot hold the new instance.
    fn prepare_in_delta(&self, short: &str) -> Result<Instance, Miss> {
        self.target.get_json("/apps/delta").map_err(not_reached)?;
        let instance = self.prepare(short)?;
        self.wait_listed("/apps/delta", short)
            .map_err(|_| not_reached("the delta is not current"))?;
        Ok(instance)
    }

    fn status_shown(&self, short: &str) -> Result<String, String> {
        let instance = self.target.instance(&self.app, &self.id(short))?;
        let status = instance.as_ref().and_then(|instance| instance["status"].as_str());
        status
            .map(str::to_owned)
            .ok_or_else(|| "the instance is gone".to_owned())
    }

    fn clean_up(&self) {
        for id in self.registered.lock().iter() {
            // What is gone already needs no cleaning.
            let _ = self.target.cancel(&self.app, id);
        }
    }
}

fn register_204(probe: &Probe<'_>) -> Verdict {
    let response = probe.register(&probe.instance("one"))?;
    ensure(response.status == 204, || format!("answered {}", response.status))?;
    ensure(response.body.is_empty(), || {
        format!("with a body: {}", excerpt(&response.text()))
    })
}

fn heartbeat_empty(probe: &Probe<'_>) -> Verdict {
    let instance = probe.prepare("one")?;
    let path = instance_path(&instance.app, &instance.id);
    let java = format!("{path}?status=UP&lastDirtyTimestamp={}", instance.dirty);
    for path in [path, java] {
        let request = probe
            .target
            .request("PUT", &path)
            .header("Accept", "application/json");
        let response = probe.target.send(&request.header("Accept-Encoding", "gzip"))?;
        ensure(response.status == 200, || format!("answered {}", response.status))?;
        ensure(response.body.is_empty(), || {
            format!("with a body: {}", excerpt(&response.text()))
        })?;
    }
    Ok(())
}

fn heartbeat_404_empty(probe: &Probe<'_>) -> Verdict {
    let path = instance_path(&probe.app, "nobody");
    let response = probe.target.send(
        &probe
            .target
            .request("PUT", &path)
            .header("Accept", "application/json"),
    )?;
    ensure(response.status == 404, || format!("answered {}", response.status))?;
    ensure(response.body.is_empty(), || {
        format!(
            "with a body, which keeps Jersey clients from registering again: {}",
            excerpt(&response.text())
        )
    })
}

fn cancel(probe: &Probe<'_>) -> Verdict {
    let instance = probe.prepare("one")?;
    let response = probe.target.cancel(&instance.app, &instance.id)?;
    ensure(response.status == 200, || {
        format!("the cancel was answered {}", response.status)
    })?;
    let left = probe.target.instance(&instance.app, &instance.id)?;
    ensure(left.is_none(), || "the instance is still there".to_owned())?;
    let again = probe.target.cancel(&instance.app, &instance.id)?;
    ensure(again.status == 404, || {
        format!("a second cancel was answered {}", again.status)
    })
}

fn hash(probe: &Probe<'_>) -> Verdict {
    probe.prepare("zero")?;
    // Java counts and writes at two moments: while others change things, agreeing once is enough.
    probe.wait("/apps", |full| {
        agrees("GET /apps", &shown_hash(full), &counted_hash(full))
    })?;
    probe.prepare_in_delta("one")?;
    Ok(probe.wait("/apps/delta", |delta| {
        let counted = counted_hash(&probe.target.get_json("/apps")?);
        agrees("GET /apps/delta", &shown_hash(delta), &counted)
    })?)
}

fn agrees(path: &str, shown: &str, counted: &str) -> Result<(), String> {
    if shown == counted {
        return Ok(());
    }
    Err(format!(
        "{path} says {shown:?}, the instances listed make {counted:?}"
    ))
}

fn shown_hash(document: &Value) -> String {
    document["applications"]["apps__hashcode"]
        .as_str()
        .unwrap_or("(none)")
        .to_owned()
}

/// `STATUS_count_` for each status, in alphabetical order.
fn counted_hash(document: &Value) -> String {
    let mut counts = BTreeMap::new();
    for instance in instances(document) {
        *counts
            .entry(instance["status"].as_str().unwrap_or("(none)").to_owned())
            .or_insert(0) += 1;
    }
    counts
        .iter()
        .map(|(status, count)| format!("{status}_{count}_"))
        .collect()
}

fn arrays(probe: &Probe<'_>) -> Verdict {
    probe.prepare("one")?;
    let app_path = format!("/apps/{}", probe.app);
    let application = probe.wait(&app_path, |document| Ok(document["application"].clone()));
    let application = application.map_err(not_reached)?;
    ensure(application["instance"].is_array(), || {
        format!("GET {app_path}: instance is no array")
    })?;
    probe.wait_listed("/apps", "one").map_err(not_reached)?;
    for path in ["/apps", "/apps/delta"] {
        let document = probe.target.get_json(path)?;
        let applications = &document["applications"]["application"];
        ensure(applications.is_array(), || {
            format!("GET {path}: application is no array")
        })?;
        let lists = applications
            .as_array()
            .is_some_and(|list| list.iter().all(|app| app["instance"].is_array()));
        ensure(lists, || format!("GET {path}: instance is no array"))?;
    }
    Ok(())
}

fn exact_fields(probe: &Probe<'_>) -> Verdict {
    let mut shown = vec![shown_alone(probe)?];
    shown.push(probe.wait_listed("/apps", "one").map_err(not_reached)?);
    // A delta that does not show the instance is another check's matter.
    shown.extend(probe.wait_listed("/apps/delta", "one"));
    for instance in shown {
        fields::exact(&instance)?;
    }
    Ok(())
}

fn field_types(probe: &Probe<'_>) -> Verdict {
    Ok(fields::types(&shown_alone(probe)?)?)
}

fn shown_alone(probe: &Probe<'_>) -> Result<Value, Miss> {
    probe.prepare("one")?;
    let shown = probe
        .target
        .instance(&probe.app, &probe.id("one"))
        .map_err(not_reached)?;
    shown.ok_or_else(|| not_reached("the instance is not there"))
}

fn plain_unasked(probe: &Probe<'_>) -> Verdict {
    probe.prepare("one")?;
    probe.wait_listed("/apps", "one").map_err(not_reached)?;
    for path in ["/apps", "/apps/delta", &format!("/apps/{}", probe.app)] {
        let response = probe.target.get(path)?;
        let encoding = response.header("content-encoding");
        ensure(encoding.is_none(), || {
            format!("GET {path}: Content-Encoding {encoding:?} although nobody asked")
        })?;
    }
    Ok(())
}

fn gzip_asked(probe: &Probe<'_>) -> Verdict {
    probe.prepare("one")?;
    probe.wait_listed("/apps", "one").map_err(not_reached)?;
    let request = probe
        .target
        .request("GET", "/apps")
        .header("Accept", "application/json");
    let response = probe.target.send(&request.header("Accept-Encoding", "gzip"))?;
    let document = response.json()?;
    ensure(
        find_instance(&document, &probe.app, &probe.id("one")).is_some(),
        || "the list lacks the instance".to_owned(),
    )
}

fn delta_current(probe: &Probe<'_>) -> Verdict {
    probe.target.get_json("/apps/delta")?;
    for id in ["one", "two"] {
        probe.prepare(id)?;
        let shown = probe.wait_listed("/apps/delta", id)?;
        ensure(shown["actionType"] == "ADDED", || {
            format!("shown as {}", shown["actionType"])
        })?;
    }
    Ok(())
}

fn delta_deleted(probe: &Probe<'_>) -> Verdict {
    let instance = probe.prepare_in_delta("one")?;
    probe.target.cancel(&instance.app, &instance.id)?;
    Ok(probe.wait("/apps/delta", |delta| {
        let shown =
            find_instance(delta, &probe.app, &probe.id("one")).map(|instance| &instance["actionType"]);
        match shown {
            Some(action) if action == "DELETED" => Ok(()),
            Some(action) => Err(format!("the delta shows it as {action}")),
            None => Err("the delta does not show it".to_owned()),
        }
    })?)
}

fn override_kept(probe: &Probe<'_>) -> Verdict {
    let mut instance = probe.prepare("one")?;
    let path = format!("{}/status", instance_path(&instance.app, &instance.id));
    let put = format!("{path}?value=OUT_OF_SERVICE");
    let response = probe.target.send(&probe.target.request("PUT", &put))?;
    ensure(response.status == 200, || {
        format!("the override was answered {}", response.status)
    })?;
    let overridden = |after: &str| {
        let status = probe.status_shown("one")?;
        ensure(status == "OUT_OF_SERVICE", || {
            format!("after {after} the status is {status}")
        })
    };
    overridden("the override")?;
    probe.target.renew(&instance.app, &instance.id)?;
    overridden("a heartbeat")?;
    instance.dirty += 1000;
    probe.register(&instance)?;
    overridden("a registration")?;
    let delete = format!("{path}?value=UP");
    let response = probe.target.send(&probe.target.request("DELETE", &delete))?;
    ensure(response.status == 200, || {
        format!("its removal was answered {}", response.status)
    })?;
    let status = probe.status_shown("one")?;
    ensure(status == "UP", || {
        format!("after its removal the status is {status}")
    })
}

fn lease_lasts(probe: &Probe<'_>) -> Verdict {
    const LEASE: u32 = 6;
    let instance = Instance {
        lease_seconds: LEASE,
        ..probe.instance("one")
    };
    let start = Instant::now();
    probe.register(&instance).map_err(not_reached)?;
    while start.elapsed() < Duration::from_millis(u64::from(LEASE) * 750) {
        let shown = probe.target.instance(&instance.app, &instance.id)?;
        let age = start.elapsed().as_secs_f32();
        ensure(shown.is_some(), || {
            format!("gone after {age:.1} s of a lease of {LEASE} s")
        })?;
        thread::sleep(Duration::from_millis(100));
    }
    let response = probe.target.renew(&instance.app, &instance.id)?;
    ensure(response.status == 200, || {
        format!("a heartbeat in time was answered {}", response.status)
    })
}

fn own_status(probe: &Probe<'_>) -> Verdict {
    let mut instance = probe.prepare("one")?;
    for status in ["DOWN", "UP"] {
        instance.status = status;
        instance.dirty += 1000;
        probe.register(&instance)?;
        let shown = probe.status_shown("one")?;
        ensure(shown == status, || format!("registered {status}, shown {shown}"))?;
    }
    Ok(())
}

fn metadata(probe: &Probe<'_>) -> Verdict {
    let instance = probe.prepare("one")?;
    let path = format!(
        "{}/metadata?zone=blue%20one&zone=red",
        instance_path(&instance.app, &instance.id)
    );
    let response = probe.target.send(&probe.target.request("PUT", &path))?;
    ensure(response.status == 200, || format!("answered {}", response.status))?;
    let shown = probe
        .target
        .instance(&instance.app, &instance.id)?
        .unwrap_or_default();
    let metadata = &shown["metadata"];
    let right = metadata["zone"] == "blue one" && metadata["kit"] == "conformance";
    ensure(right, || format!("the metadata is {metadata}"))
}

fn vip(probe: &Probe<'_>) -> Verdict {
    probe.prepare("one")?;
    for kind in ["vips", "svips"] {
        probe.wait_listed(&format!("/{kind}/{}", probe.app.to_lowercase()), "one")?;
    }
    Ok(())
}

fn content_type(probe: &Probe<'_>) -> Verdict {
    let instance = probe.prepare("one")?;
    let alone = instance_path(&instance.app, &instance.id);
    for (accept, label) in [
        (Some("application/json"), "application/json"),
        (Some("application/xml"), "application/xml"),
        (None, "application/xml"),
    ] {
        for path in ["/apps", "/apps/delta", &alone] {
            let mut request = probe.target.request("GET", path);
            if let Some(accept) = accept {
                request = request.header("Accept", accept);
            }
            let response = probe.target.send(&request)?;
            let got = response.header("content-type").unwrap_or("(none)");
            ensure(got == label, || {
                format!("GET {path} with Accept {accept:?} is labelled {got}")
            })?;
        }
    }
    Ok(())
}

fn xml(probe: &Probe<'_>) -> Verdict {
    probe.prepare("one")?;
    Ok(http::poll(probe.patience, || {
        let request = probe
            .target
            .request("GET", "/apps")
            .header("Accept", "application/xml");
        let text = probe
            .target
            .send(&request)
            .map_err(|error| error.to_string())?
            .text();
        super::normal::xml_well_formed(&text)?;
        let named = format!("<name>{}</name>", probe.app);
        if text.contains(&named) {
            Ok(())
        } else {
            Err(format!("the list lacks {named}"))
        }
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_hash_counts_statuses_in_alphabetical_order() {
        let document = json!({"applications": {"application": [
            {"instance": [{"status": "UP"}, {"status": "DOWN"}]},
            {"instance": {"status": "UP"}},
        ]}});
        assert_eq!(counted_hash(&document), "DOWN_1_UP_2_");
        assert_eq!(counted_hash(&json!({"applications": {"application": []}})), "");
    }
}
