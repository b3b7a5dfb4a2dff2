//! A snapshot on its way to a reader, a page at a time.

use eureka_registry_core::{Filter, InstanceKey, Snapshot};
use prost::Message as _;

use crate::convert;
use crate::encoded::Encoded;
use crate::proto;
use crate::proto::watch_response::Event;

/// Instances of a page at most.
const PAGE: usize = 100;
/// A page is full when it has this many bytes.
const PAGE_BYTES: usize = 64 * 1024;
/// Instances that are looked at in one step, whether the filter selects them or not.
const LOOKED_AT: usize = 1_000;

/// The registry as it was when the walk began, kept until its last page is out.
#[derive(Debug)]
pub(crate) struct Walk {
    snapshot: Snapshot,
    /// The last instance that was looked at.
    after: Option<InstanceKey>,
    told: u64,
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
    pub(crate) fn new(snapshot: Snapshot) -> Self {
        Self {
            snapshot,
            after: None,
            told: 0,
        }
    }

    /// The version of the registry that it shows.
    pub(crate) fn version(&self) -> u64 {
        self.snapshot.version()
    }

    /// Instances on the pages so far.
    pub(crate) fn told(&self) -> u64 {
        self.told
    }

    /// The next page, of a bounded number of instances and bytes, for a bounded amount of work.
    pub(crate) fn step(&mut self, filter: Option<&Filter>) -> Step {
        let mut rest = self.snapshot.instances_after(self.after.as_ref()).peekable();
        let mut page = proto::SnapshotPage::default();
        let (mut bytes, mut looked_at) = (0, 0);
        let mut last = None;
        while page.instances.len() < PAGE && bytes < PAGE_BYTES && looked_at < LOOKED_AT {
            let Some(view) = rest.next() else { break };
            looked_at += 1;
            last = Some(view);
            if filter.is_none_or(|filter| filter.matches(&view.instance)) {
                let instance = convert::instance(&view.instance);
                bytes += instance.encoded_len();
                page.instances.push(instance);
            }
        }
        let complete = rest.peek().is_none();
        if let Some(last) = last {
            self.after = Some(last.key());
        }
        self.told += page.instances.len() as u64;
        let page = (!page.instances.is_empty()).then(|| {
            Encoded::new(&proto::WatchResponse {
                cursor: String::new(),
                event: Some(Event::SnapshotPage(page)),
            })
        });
        Step { page, complete }
    }
}
