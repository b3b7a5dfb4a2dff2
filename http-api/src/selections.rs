//! Encoded parts of the list: one application, or the instances of one virtual address. An encoded selection serves
//! every version of the registry in which exactly the same instances belong to it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use eureka_registry_core::wire::{self, Codec};
use eureka_registry_core::{LeaseView, Snapshot, Status, reconcile_hash};
use parking_lot::Mutex;

use crate::encoder::{Encoded, Encoder};

/// `versions__delta` of lists by virtual address, as in Java.
const SELECTION_VERSION: &str = "-1";

/// Selections kept at once, of each kind and codec; when there are more, all of the kind are forgotten.
const MAX_KEPT: usize = 4096;

/// What selects.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Application,
    SecureVip,
    Vip,
}

/// The selections that were asked for.
#[derive(Debug)]
pub(crate) struct Selections {
    encoder: Arc<Encoder>,
    kept: [[Kept; 4]; 3],
}

/// Selections of one kind and codec, by name.
type Kept = Mutex<HashMap<Box<str>, Arc<Selection>>>;

/// The instances of a selection, and their encoded form.
#[derive(Debug)]
pub(crate) struct Selection {
    views: Box<[Arc<LeaseView>]>,
    pub(crate) encoded: Encoded,
    /// The last edition of the registry in which it was seen to stand.
    edition: AtomicU64,
}

impl Selections {
    pub(crate) fn new(encoder: Arc<Encoder>) -> Self {
        Self {
            encoder,
            kept: Default::default(),
        }
    }

    /// An application, `None` if it has no instance. `name` is upper case.
    pub(crate) fn application(
        &self,
        snapshot: &Snapshot,
        name: &str,
        codec: Codec,
    ) -> Option<Arc<Selection>> {
        let kept = &self.kept[Kind::Application as usize][codec as usize];
        let known = known(kept, name);
        if let Some(known) = known.as_ref().filter(|known| known.stands_in(snapshot)) {
            return Some(Arc::clone(known));
        }
        let application = snapshot.application(name)?;
        let views = application.instances().cloned().collect();
        Some(self.selected(kept, known, name, snapshot, views, |views| {
            let mut text = Vec::new();
            wire::write_application(codec, name, views, &mut text);
            text
        }))
    }

    /// The instances of a virtual address; there may be none.
    pub(crate) fn vip(&self, snapshot: &Snapshot, kind: Kind, address: &str, codec: Codec) -> Arc<Selection> {
        let kept = &self.kept[kind as usize][codec as usize];
        let known = known(kept, address);
        if let Some(known) = known.as_ref().filter(|known| known.stands_in(snapshot)) {
            return Arc::clone(known);
        }
        let views = if kind == Kind::SecureVip {
            snapshot.by_secure_vip(address)
        } else {
            snapshot.by_vip(address)
        };
        self.selected(kept, known, address, snapshot, views, |views| {
            let hash = reconcile_hash(counts(views));
            wire::write_list(codec, &self.encoder.frame(SELECTION_VERSION, &hash), views)
        })
    }

    /// The known selection if it has exactly these instances, else a new one.
    fn selected(
        &self,
        kept: &Kept,
        known: Option<Arc<Selection>>,
        name: &str,
        snapshot: &Snapshot,
        views: Vec<Arc<LeaseView>>,
        encode: impl FnOnce(&[Arc<LeaseView>]) -> Vec<u8>,
    ) -> Arc<Selection> {
        if let Some(known) = known
            && known.views.len() == views.len()
            && known
                .views
                .iter()
                .zip(&views)
                .all(|(old, new)| Arc::ptr_eq(old, new))
        {
            known.edition.store(snapshot.edition(), Ordering::Relaxed);
            return known;
        }
        let selection = Arc::new(Selection {
            encoded: Encoded::new(&self.encoder, encode(&views)),
            views: views.into(),
            edition: AtomicU64::new(snapshot.edition()),
        });
        if selection.views.is_empty() {
            // Unknown addresses come from whoever asks: they must not fill the cache.
            return selection;
        }
        let mut kept = kept.lock();
        let full = kept.len() >= MAX_KEPT && !kept.contains_key(name);
        if full || !selection.encoded.is_counted() {
            kept.clear();
        }
        if selection.encoded.is_counted() {
            kept.insert(Box::from(name), Arc::clone(&selection));
        }
        selection
    }
}

impl Selection {
    fn stands_in(&self, snapshot: &Snapshot) -> bool {
        self.edition.load(Ordering::Relaxed) == snapshot.edition()
    }
}

fn known(kept: &Kept, name: &str) -> Option<Arc<Selection>> {
    kept.lock().get(name).cloned()
}

fn counts(views: &[Arc<LeaseView>]) -> [usize; 5] {
    Status::ALL.map(|status| {
        let has_it = |view: &&Arc<LeaseView>| view.instance.status == status;
        views.iter().filter(has_it).count()
    })
}
