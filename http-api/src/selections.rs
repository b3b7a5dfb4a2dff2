//! Encoded parts of the list: one application, or the instances of one virtual address. An encoded selection serves
//! every version of the registry in which exactly the same instances belong to it.

use std::collections::HashMap;
use std::sync::Arc;

use eureka_registry_core::wire::{self, Codec};
use eureka_registry_core::{Application, LeaseView, Snapshot, Status, reconcile_hash};
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
        let application: Application<'_> = snapshot.application(name)?;
        let selection = self.get(
            Kind::Application,
            name,
            codec,
            || application.instances(),
            || {
                let mut text = Vec::new();
                wire::write_application(codec, name, application.instances(), &mut text);
                text
            },
        );
        Some(selection)
    }

    /// The instances of a virtual address; there may be none.
    pub(crate) fn vip(&self, snapshot: &Snapshot, kind: Kind, address: &str, codec: Codec) -> Arc<Selection> {
        let views = if kind == Kind::SecureVip {
            snapshot.by_secure_vip(address)
        } else {
            snapshot.by_vip(address)
        };
        if views.is_empty() {
            // Unknown addresses come from whoever asks: they must not fill the cache.
            let text = wire::write_list(codec, &self.encoder.frame(SELECTION_VERSION, ""), &[]);
            return Arc::new(Selection {
                views: Box::default(),
                encoded: Encoded::new(&self.encoder, text),
            });
        }
        self.get(
            kind,
            address,
            codec,
            || views.iter(),
            || {
                let hash = reconcile_hash(counts(&views));
                wire::write_list(codec, &self.encoder.frame(SELECTION_VERSION, &hash), &views)
            },
        )
    }

    /// The kept selection of exactly these instances, or a new one.
    fn get<'a, I: ExactSizeIterator<Item = &'a Arc<LeaseView>>>(
        &self,
        kind: Kind,
        name: &str,
        codec: Codec,
        views: impl Fn() -> I,
        encode: impl FnOnce() -> Vec<u8>,
    ) -> Arc<Selection> {
        let kept = &self.kept[kind as usize][codec as usize];
        let known = kept.lock().get(name).cloned();
        if let Some(known) = known
            && known.views.len() == views().len()
            && known
                .views
                .iter()
                .zip(views())
                .all(|(old, new)| Arc::ptr_eq(old, new))
        {
            return known;
        }
        let selection = Arc::new(Selection {
            views: views().cloned().collect(),
            encoded: Encoded::new(&self.encoder, encode()),
        });
        let mut kept = kept.lock();
        if kept.len() >= MAX_KEPT && !kept.contains_key(name) {
            kept.clear();
        }
        kept.insert(Box::from(name), Arc::clone(&selection));
        selection
    }
}

fn counts(views: &[Arc<LeaseView>]) -> [usize; 5] {
    Status::ALL.map(|status| {
        let has_it = |view: &&Arc<LeaseView>| view.instance.status == status;
        views.iter().filter(has_it).count()
    })
}
