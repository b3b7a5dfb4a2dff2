//! What can be wrong with a server that a client lives with, each fault as a change of what goes over the wire, and the
//! step that must name it.

use std::io;
use std::time::Duration;

use serde_json::{Value, json};

use crate::conformance::faulty::{Faulty, edit, instance_lists};
use crate::conformance::http::{self, Request, Response};
use crate::conformance::target::Target;

/// Longer than a long poll.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// The step that a client has no use for if it is told of changes as they happen.
pub(super) const HASH_STEP: &str = "a wrong hash leads to a full fetch";

/// A fault and the step that must name it.
pub(super) struct Fault {
    pub(super) name: &'static str,
    pub(super) caught_by: &'static str,
    plant: Plant,
}

enum Plant {
    /// Requests that fit reach nobody, and are answered with this status.
    Answered(fn(&Request) -> bool, u16),
    /// The registration that a client sends.
    Registration(fn(&mut Value)),
    /// The status of what fits.
    Status(fn(&Request, u16) -> u16),
    /// Each instance of a list or a delta, and each change of the feed; `false` leaves it out.
    Instances(fn(&Told<'_>, &mut Value) -> bool),
    /// A list as a whole.
    List(fn(&mut Value)),
}

/// Where an instance is told, and to whom.
struct Told<'a> {
    request: &'a Request,
    partner: &'a str,
}

pub(super) const ALL: &[Fault] = &[
    Fault {
        name: "a registration that is not kept",
        caught_by: "registers and is seen UP",
        plant: Plant::Answered(|request| request.method == "POST", 204),
    },
    Fault {
        name: "heartbeats of a live instance answered 404",
        caught_by: "renews at least twice",
        plant: Plant::Status(|request, status| if is_heartbeat(request) { 404 } else { status }),
    },
    Fault {
        name: "an instance that is left out everywhere",
        caught_by: "finds another instance",
        plant: Plant::Instances(|told, instance| {
            instance["app"] != told.partner || told.request.target.contains("/vips/")
        }),
    },
    Fault {
        name: "a change that is not told",
        caught_by: "sees a new instance",
        plant: Plant::Instances(|told, instance| !told.of_changes() || !is_later(instance)),
    },
    Fault {
        name: "virtual addresses left out",
        caught_by: "finds it by its virtual address",
        plant: Plant::Instances(|_, instance| {
            if is_later(instance)
                && let Some(fields) = instance.as_object_mut()
            {
                fields.retain(|name, _| !name.to_lowercase().contains("vip"));
            }
            true
        }),
    },
    Fault {
        name: "an overridden status that is not shown",
        caught_by: "sees an overridden status",
        plant: Plant::Instances(|_, instance| {
            if instance["status"] == "OUT_OF_SERVICE" {
                instance["status"] = json!("UP");
            }
            true
        }),
    },
    Fault {
        name: "a departure that is not told",
        caught_by: "sees an instance leave",
        plant: Plant::Instances(|told, instance| {
            let action = if told.of_feed() { "action" } else { "actionType" };
            !told.of_changes() || instance[action] != "DELETED"
        }),
    },
    Fault {
        name: "lists without a hash",
        caught_by: HASH_STEP,
        plant: Plant::List(|list| {
            if let Some(fields) = list["applications"].as_object_mut() {
                fields.remove("apps__hashcode");
            }
        }),
    },
    Fault {
        name: "a virtual address that nobody has",
        caught_by: "follows one virtual address alone",
        plant: Plant::Instances(|told, _| !told.request.target.contains("/vips/")),
    },
    Fault {
        name: "metadata that is not kept",
        caught_by: "changes its metadata",
        plant: Plant::Registration(|instance| {
            if let Some(metadata) = instance["metadata"].as_object_mut() {
                metadata.remove("kit");
            }
        }),
    },
    Fault {
        name: "a status that is not kept",
        caught_by: "changes its status",
        plant: Plant::Registration(|instance| instance["status"] = json!("UP")),
    },
    Fault {
        name: "a lost lease told as renewed",
        caught_by: "registers again after a 404",
        plant: Plant::Status(|request, status| if is_heartbeat(request) { 200 } else { status }),
    },
    Fault {
        name: "a cancel that is refused",
        caught_by: "leaves",
        plant: Plant::Answered(|request| request.method == "DELETE", 500),
    },
    Fault {
        name: "a cancel that is not done",
        caught_by: "is gone",
        plant: Plant::Answered(|request| request.method == "DELETE", 200),
    },
];

/// A proxy before a node with a fault.
pub(super) fn plant(fault: &'static Fault, node: &Target, partner: &str) -> io::Result<Faulty> {
    let (address, partner) = (node.address.clone(), partner.to_owned());
    Faulty::start(move |request| fault.plant.answer(&address, &partner, request))
}

/// A proxy that gives every list a hash that no list has.
pub(super) fn wrong_hash(node: &Target) -> io::Result<Faulty> {
    const WRONG: Plant = Plant::List(|list| {
        if let Some(hash) = list.pointer_mut("/applications/apps__hashcode") {
            *hash = json!("UP_4711_");
        }
    });
    let address = node.address.clone();
    Faulty::start(move |request| WRONG.answer(&address, "", request))
}

impl Plant {
    fn answer(&self, address: &str, partner: &str, mut request: Request) -> Option<Response> {
        match self {
            Self::Answered(fits, status) if fits(&request) => {
                return Some(Response {
                    status: *status,
                    ..Response::default()
                });
            }
            Self::Registration(change) if request.method == "POST" => {
                let mut body: Value = serde_json::from_slice(&request.body).ok()?;
                change(&mut body["instance"]);
                request = request.body(body.to_string().into_bytes());
                let framing = |name: &str| name.eq_ignore_ascii_case("content-length");
                request.headers.retain(|(name, _)| !framing(name));
            }
            Self::Answered(..)
            | Self::Registration(_)
            | Self::Status(_)
            | Self::Instances(_)
            | Self::List(_) => {}
        }
        let mut response = http::exchange(address, &request, ANSWER_WITHIN).ok()?;
        match self {
            Self::Status(change) => response.status = change(&request, response.status),
            Self::Instances(change) => {
                let told = Told {
                    request: &request,
                    partner,
                };
                edit(&mut response, |document| told.each(document, *change));
            }
            Self::List(change) => edit(&mut response, change),
            Self::Answered(..) | Self::Registration(_) => {}
        }
        Some(response)
    }
}

impl Told<'_> {
    fn each(&self, document: &mut Value, keep: fn(&Self, &mut Value) -> bool) {
        for list in instance_lists(document) {
            list.retain_mut(|instance| keep(self, instance));
        }
        let applications = document.pointer_mut("/applications/application");
        if let Some(applications) = applications.and_then(Value::as_array_mut) {
            applications.retain(|application| application["instance"] != json!([]));
        }
        if let Some(changes) = document["changes"].as_array_mut() {
            changes.retain_mut(|change| keep(self, change));
        }
    }

    fn of_feed(&self) -> bool {
        self.request.target.contains("/api/v1/changes")
    }

    /// Whether it is told as something that happened.
    fn of_changes(&self) -> bool {
        self.of_feed() || self.request.target.contains("/apps/delta")
    }
}

fn is_later(instance: &Value) -> bool {
    let app = instance["app"].as_str().unwrap_or_default();
    app.ends_with("-LATER")
}

fn is_heartbeat(request: &Request) -> bool {
    request.method == "PUT" && request.target.contains("lastDirtyTimestamp")
}
