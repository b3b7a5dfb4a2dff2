//! A snapshot on its way to a reader, a message at a time.

use std::sync::Arc;

use eureka_registry_core::{CachedPages, Filter, InstanceKey};
use prost::Message as _;

use super::pages::{self, MESSAGE_BYTES, Messages};
use crate::convert;
use crate::encoded::Encoded;

/// Instances that are looked at in one step for a reader with a filter, whether it selects them or not.
const LOOKED_AT: usize = 1_000;

/// The registry as it was when the walk began, kept until its last message is out.
#[derive(Debug)]
pub(crate) struct Walk {
    pages: Arc<CachedPages<Messages>>,
    place: Place,
    told: u64,
}

/// How far a walk is.
#[derive(Debug)]
enum Place {
    /// For a reader who is told everything: what is left of a page, and the number of the next.
    Page(std::vec::IntoIter<Encoded>, usize),
    /// For a reader with a filter: the last instance that was looked at.
    Behind(Option<InstanceKey>),
}

/// What a step of a walk gave.
#[derive(Debug)]
pub(crate) struct Step {
    /// Instances for the reader, unless the filter selects none of those looked at.
    pub(crate) page: Option<Encoded>,
    /// Nothing is left.
    pub(crate) complete: bool,
}

impl Walk {
    /// Begins with the first instance.
    pub(crate) fn new(pages: Arc<CachedPages<Messages>>, filtered: bool) -> Self {
        Self {
            pages,
            place: if filtered {
                Place::Behind(None)
            } else {
                Place::Page(Vec::new().into_iter(), 0)
            },
            told: 0,
        }
    }

    /// The version of the registry that it shows.
    pub(crate) fn version(&self) -> u64 {
        self.pages.snapshot().version()
    }

    /// Instances in the messages so far.
    pub(crate) fn told(&self) -> u64 {
        self.told
    }

    /// The next message, of a bounded number of instances and bytes, for a bounded amount of work.
    pub(crate) fn step(&mut self, filter: Option<&Filter>) -> Step {
        match &mut self.place {
            Place::Page(messages, next) => {
                let pages = self.pages.pages();
                if messages.len() == 0
                    && let Some(page) = pages.get(*next)
                {
                    *messages = pages::messages(page).to_vec().into_iter();
                    *next += 1;
                    self.told += page.page.instance_count() as u64;
                }
                Step {
                    page: messages.next(),
                    complete: messages.len() == 0 && *next >= pages.len(),
                }
            }
            Place::Behind(after) => {
                let mut rest = self.pages.snapshot().instances_after(after.as_ref()).peekable();
                let mut instances = Vec::new();
                let (mut bytes, mut looked_at) = (0, 0);
                let mut last = None;
                while bytes < MESSAGE_BYTES && looked_at < LOOKED_AT {
                    let Some(view) = rest.next() else { break };
                    looked_at += 1;
                    last = Some(view);
                    if filter.is_none_or(|filter| filter.matches(&view.instance)) {
                        let instance = convert::instance(&view.instance);
                        bytes += instance.encoded_len();
                        instances.push(instance);
                    }
                }
                let complete = rest.peek().is_none();
                if let Some(last) = last {
                    *after = Some(last.key());
                }
                self.told += instances.len() as u64;
                let page = (!instances.is_empty()).then(|| pages::message(instances));
                Step { page, complete }
            }
        }
    }
}
