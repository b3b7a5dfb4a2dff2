//! A change as readers get it: made once, sent to all of them.

use std::sync::OnceLock;

use eureka_registry_core::{Change, Seen};

use crate::convert;
use crate::encoded::Encoded;
use crate::node::Node;
use crate::proto;
use crate::proto::watch_response::Event;

/// The forms that a change takes, by what the filter of a reader says of it. Each is encoded by the first reader who needs
/// it.
#[derive(Debug, Default)]
pub(crate) struct Forms {
    whole: OnceLock<Encoded>,
    entered: OnceLock<Encoded>,
    left: OnceLock<Encoded>,
}

impl Forms {
    /// The form for a reader who sees so much of the change; `None` if that is nothing.
    pub(crate) fn form(&self, node: &Node, change: &Change, seen: Seen) -> Option<Encoded> {
        let form = match seen {
            Seen::Hidden => return None,
            Seen::Whole => &self.whole,
            Seen::Entered => &self.entered,
            Seen::Left => &self.left,
        };
        let encoded = form.get_or_init(|| {
            node.figures.encodings.increment(1);
            Encoded::new(&proto::WatchResponse {
                cursor: node.registry.cursor(change.version).to_string(),
                event: Some(Event::Change(shown(change, seen))),
            })
        });
        Some(encoded.clone())
    }
}

/// What is said of a change.
fn shown(change: &Change, seen: Seen) -> proto::Change {
    let mut shown = convert::change(change);
    match seen {
        Seen::Entered => {
            shown.set_action(proto::Action::Added);
            shown.set_cause(proto::Cause::Filtered);
        }
        Seen::Left => {
            shown.set_action(proto::Action::Deleted);
            shown.set_cause(proto::Cause::Filtered);
            let before = change.before.as_deref().unwrap_or(&change.instance);
            shown.instance = Some(convert::instance(before));
        }
        Seen::Whole | Seen::Hidden => {}
    }
    shown
}
