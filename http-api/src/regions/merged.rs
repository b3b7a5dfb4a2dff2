//! The lists of the node and of some other regions together. They follow what changes in either: nothing is merged anew.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use eureka_registry_core::{Action, InstanceKey, LeaseView, Mirror, Mono, Snapshot};
use parking_lot::Mutex;

use super::{RemoteRegions, Set};
use crate::encoder::Encoder;
use crate::pages::{Listing, Pages};
use crate::selections::Selections;

/// One set of regions beside the node's own.
#[derive(Debug)]
pub(crate) struct Merged {
    set: Set,
    state: Mutex<State>,
    pages: Pages,
    selections: Selections,
}

#[derive(Debug, Default)]
struct State {
    mirror: Mirror,
    /// What is merged: the node's own, and the regions by name. Empty before the first time. Where several have the same
    /// instance, the first one's is shown.
    sources: Vec<Snapshot>,
}

impl Merged {
    pub(super) fn new(set: Set, encoder: &Arc<Encoder>) -> Self {
        encoder.figures.merged_lists.increment(1);
        Self {
            set,
            state: Mutex::default(),
            pages: Pages::new(Arc::clone(encoder)),
            selections: Selections::new(Arc::clone(encoder)),
        }
    }

    pub(super) fn set(&self) -> Set {
        self.set
    }

    /// Parts of these lists that were asked for.
    pub(crate) fn selections(&self) -> &Selections {
        &self.selections
    }

    /// The lists as they are now. Those who ask while another reader brings them up to date wait for that; readers of the
    /// node's own lists do not.
    pub(crate) fn listing(&self, now: Mono, regions: &RemoteRegions, own: &Snapshot) -> Arc<Listing> {
        let mut state = self.state.lock();
        // Another reader may have come with a newer one.
        let own = match state.sources.first() {
            Some(merged) if merged.edition() > own.edition() => merged.clone(),
            Some(_) | None => own.clone(),
        };
        let mut version = format!("{}.{:x}", own.version(), self.set.0);
        let mut sources = vec![own];
        for region in regions.members(self.set) {
            let shown = region.shown_at(now);
            let _ = write!(version, ".{}", shown.version);
            sources.push(shown.snapshot);
        }
        state.follow(sources);
        let snapshot = state.mirror.snapshot();
        drop(state);
        self.pages.listing(now, &snapshot, || version.into())
    }
}

impl State {
    fn follow(&mut self, sources: Vec<Snapshot>) {
        let before = std::mem::take(&mut self.sources);
        if before.is_empty() {
            self.begin(&sources);
        } else {
            let (mut listed, mut noted) = (BTreeSet::new(), BTreeSet::new());
            for (new, old) in sources.iter().zip(&before) {
                if new.edition() != old.edition() {
                    listed.extend(new.differences(old).into_iter().map(|difference| difference.key));
                    noted.extend(
                        new.delta_differences(old)
                            .into_iter()
                            .map(|difference| difference.key),
                    );
                }
            }
            for key in &listed {
                match first(&sources, key) {
                    Some((_, view)) => self.mirror.put(LeaseView::clone(view)),
                    None => _ = self.mirror.remove(key),
                }
            }
            // Who is shown may be another one now.
            noted.extend(listed);
            self.note(&sources, &noted);
        }
        self.sources = sources;
    }

    fn begin(&mut self, sources: &[Snapshot]) {
        // Backwards: the first one's is put last.
        for view in sources.iter().rev().flat_map(Snapshot::instances) {
            self.mirror.put(LeaseView::clone(view));
        }
        let noted = sources.iter().flat_map(Snapshot::delta);
        self.note(sources, &noted.map(|view| view.key()).collect());
    }

    /// Brings the delta up to date for these.
    fn note(&mut self, sources: &[Snapshot], keys: &BTreeSet<InstanceKey>) {
        for key in keys {
            match changed(sources, key) {
                Some(view) => self.mirror.note(view),
                None => self.mirror.forget(key),
            }
        }
    }
}

/// Whose instance is shown.
fn first<'a>(sources: &'a [Snapshot], key: &InstanceKey) -> Option<(&'a Snapshot, &'a Arc<LeaseView>)> {
    sources
        .iter()
        .find_map(|source| Some((source, source.instance(key)?)))
}

/// What the delta of all says of an instance.
fn changed(sources: &[Snapshot], key: &InstanceKey) -> Option<LeaseView> {
    let noted = sources.iter().find_map(|source| source.delta_instance(key));
    let Some((owner, view)) = first(sources, key) else {
        return noted.map(|view| LeaseView::clone(view));
    };
    match (owner.delta_instance(key), noted) {
        (Some(view), _) => Some(LeaseView::clone(view)),
        // It left one, and is still in another, whose instance is shown from now on.
        (None, Some(_)) => Some(LeaseView {
            action: Action::Modified,
            ..LeaseView::clone(view)
        }),
        (None, None) => None,
    }
}
