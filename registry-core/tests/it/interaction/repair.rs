//! Repair between two nodes of a transcript, step by step.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{
    Learned, Offer, Origin, PeerId, RepairAnswer, RepairRequest, Stamp, Stamped, Status, Step, Wall,
};

use super::arguments::Arguments;
use super::world::{World, instance};

/// More steps than any repair takes.
const STEPS: usize = 20;

impl World {
    /// The first node asks the second; each step is printed with what was learned from it.
    pub(super) fn repair(&mut self, arguments: &Arguments<'_>) -> Result<String, String> {
        let asking = arguments.node;
        let word = arguments.next().ok_or("with whom?")?;
        let other: usize = word.trim_start_matches('n').parse().map_err(|_| "with whom?")?;
        let copy = arguments.next() == Some("copy");
        let slow = arguments.duration("slow")?.unwrap_or_default();
        let steps = arguments.number("steps")?.unwrap_or(STEPS);
        let mut step = if copy {
            Step::Copy { after: None }
        } else {
            Step::Compare
        };
        let mut text = String::new();
        for _ in 0..steps {
            let learned = self.take_step(asking, other - 1, &step, slow, &mut text);
            text += &describe(&learned);
            let next = match learned {
                Learned::Differ { buckets } => Some(Step::List { buckets }),
                Learned::Plan { pull, push, .. } if !(pull.is_empty() && push.is_empty()) => {
                    Some(Step::Exchange { pull, push })
                }
                Learned::Copied { next: Some(key), .. } => Some(Step::Copy { after: Some(key) }),
                _ => None,
            };
            match next {
                Some(next) => step = next,
                None => break,
            }
        }
        Ok(text)
    }

    fn take_step(
        &mut self,
        asking: usize,
        other: usize,
        step: &Step,
        slow: Duration,
        text: &mut String,
    ) -> Learned {
        let now = self.now();
        let asked = now.mono;
        let request = self.registry(asking).repair_request(now, step);
        if let RepairRequest::Compare { late, .. } = &request
            && !late.is_empty()
        {
            writeln!(text, "asks about {}", names(late)).expect("a string takes all");
        }
        let answer = self.registry(other).repair_answer(now, origin(asking), request);
        *text += &self.drain(other);
        if let RepairAnswer::Compare { ages, .. } = &answer {
            for (key, age) in ages {
                writeln!(text, "{key} is {age:?} old").expect("a string takes all");
            }
        }
        self.pass(slow);
        let now = self.now();
        let learned = self
            .registry(asking)
            .learn(now, origin(other), asked, step, answer);
        *text += &self.drain(asking);
        learned
    }
}

/// `APP/id [instance options] [age=D] [stamped=STATUS|none at=N]` or `APP/id gone [dirty=N] [ago=D]`.
pub(super) fn offer(arguments: &Arguments<'_>) -> Result<Offer, String> {
    let key = arguments.key()?;
    if arguments.next() == Some("gone") {
        return Ok(Offer::Gone {
            key,
            dirty: arguments.number("dirty")?.unwrap_or(0),
            ago: arguments.duration("ago")?.unwrap_or_default(),
        });
    }
    let status = arguments.text("stamped");
    let at = arguments.number("at")?.unwrap_or(0);
    Ok(Offer::Copy {
        age: arguments.duration("age")?.unwrap_or_default(),
        overridden: status.map(|status| Stamped {
            status: Status::parse(status),
            stamp: Stamp {
                at: Wall(at),
                node: 9,
            },
        }),
        instance: Arc::new(instance(key.app(), key.id(), arguments)?),
    })
}

fn origin(node: usize) -> Origin {
    Origin::Peer(PeerId(Arc::from(format!("n{}", node + 1))))
}

fn describe(learned: &Learned) -> String {
    match learned {
        Learned::Equal => String::from("equal\n"),
        Learned::Differ { buckets } => format!("{} buckets differ\n", buckets.len()),
        Learned::Plan { pull, push, .. } => format!("pull {}, push {}\n", names(pull), names(push)),
        Learned::Exchanged {
            adopted,
            received,
            sent,
        } => format!("received {received}, of which {adopted} changed something; sent {sent}\n"),
        Learned::Copied {
            received,
            next,
            total,
            held,
        } => {
            let more = if next.is_some() { ", more follows" } else { "" };
            let held = if *held { ", its lists are held" } else { "" };
            format!("copied {received} of {total}{more}{held}\n")
        }
        Learned::Nonsense => String::from("nonsense\n"),
    }
}

fn names(keys: &[eureka_registry_core::InstanceKey]) -> String {
    if keys.is_empty() {
        return String::from("nothing");
    }
    keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
