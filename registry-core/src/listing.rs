//! The registry as readers see it, kept ready to be frozen: a snapshot costs a few reference counts.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::model::{Instance, InstanceKey};
use crate::pages::{Edits, Pages, Place};
use crate::snapshot::{Frozen, LeaseView, Reads, Snapshot};
use crate::sorted::{Sorted, Sought};

/// At most this many virtual addresses of one instance can be asked for; a longer list is shown, but not searched.
const ADDRESSES: usize = 32;
/// Effort per call for taking apart each old snapshot.
const EFFORT: usize = 512;

/// An element of the comma-separated lists of virtual addresses, and who has it.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    pub(crate) name: Arc<str>,
    pub(crate) key: Arc<InstanceKey>,
    pub(crate) lists: Lists,
}

/// In which lists of an instance an address is: mostly in both, so that one index serves both.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Lists {
    pub(crate) plain: bool,
    pub(crate) secure: bool,
}

/// What the next snapshot will be.
#[derive(Debug)]
pub(crate) struct Listing {
    instances: Pages<Arc<LeaseView>>,
    ids: Pages<Arc<InstanceKey>>,
    vips: Pages<Address>,
    delta: Pages<Arc<LeaseView>>,
    counts: [usize; 5],
    edits: Edits,
    edition: u64,
    published: Option<Snapshot>,
    /// Snapshots that nobody else holds, to be taken apart a few pages at a time.
    retired: Vec<Frozen>,
    /// The last page whose lease times were taken again ends with this key.
    refreshed: Option<InstanceKey>,
}

impl Listing {
    /// Nothing.
    pub(crate) fn new() -> Self {
        Self {
            instances: Pages::new(),
            ids: Pages::new(),
            vips: Pages::new(),
            delta: Pages::new(),
            counts: [0; 5],
            edits: Edits::default(),
            edition: 0,
            published: None,
            retired: Vec::new(),
            refreshed: None,
        }
    }

    /// Counts whatever a new snapshot would show differently from the one before.
    pub(crate) fn edition(&self) -> u64 {
        self.edition
    }

    /// Says that a new snapshot would differ.
    pub(crate) fn touch(&mut self) {
        self.edition += 1;
    }

    /// Instances by status.
    pub(crate) fn counts(&self) -> [usize; 5] {
        self.counts
    }

    /// Entries of the delta.
    pub(crate) fn delta_len(&self) -> usize {
        self.delta.len()
    }

    /// Pages that had to be copied so far: the dear part of a change.
    pub(crate) fn copies(&self) -> usize {
        self.edits.copies()
    }

    /// Lists an instance, or its new state; also in the delta if `in_delta`.
    pub(crate) fn put(&mut self, key: &Arc<InstanceKey>, view: LeaseView, in_delta: bool) {
        self.touch();
        let view = Arc::new(view);
        if in_delta {
            self.delta.put(&mut self.edits, Arc::clone(&view));
        }
        let instance = Arc::clone(&view.instance);
        self.counts[instance.status as usize] += 1;
        let before = self.instances.put(&mut self.edits, view);
        let before = before.as_ref().map(|view| &*view.instance);
        match before {
            Some(before) => self.counts[before.status as usize] -= 1,
            None => {
                self.ids.put(&mut self.edits, Arc::clone(key));
            }
        }
        self.index(key, before, Some((key, &instance)));
    }

    /// Lists an instance no more. Its last state goes to the delta if `last` is given.
    pub(crate) fn take(&mut self, key: &InstanceKey, last: Option<LeaseView>) {
        self.touch();
        if let Some(last) = last {
            self.delta.put(&mut self.edits, Arc::new(last));
        }
        if let Some(before) = self.instances.remove(&mut self.edits, &listed(key)) {
            self.counts[before.instance.status as usize] -= 1;
            let by_id = Sought::exactly([key.id(), key.app(), ""]);
            self.ids.remove(&mut self.edits, &by_id);
            self.index(key, Some(&before.instance), None);
        }
    }

    /// Whether an instance is listed.
    pub(crate) fn has(&self, key: &InstanceKey) -> bool {
        self.instances.seek(&listed(key)).1
    }

    /// Puts a state into the delta alone.
    pub(crate) fn note(&mut self, view: LeaseView) {
        self.touch();
        self.delta.put(&mut self.edits, Arc::new(view));
    }

    /// Takes an instance out of the delta.
    pub(crate) fn leave_delta(&mut self, key: &InstanceKey) {
        self.touch();
        self.delta.remove(&mut self.edits, &listed(key));
    }

    /// The instances with this id, in the order of their applications.
    pub(crate) fn with_id(&self, id: &str) -> impl Iterator<Item = &InstanceKey> {
        let (place, _) = self.ids.seek(&Sought::before(id));
        let keys = self.ids.iter_from(place).map(|key| &**key);
        keys.take_while(move |key| **key.id() == *id)
    }

    /// The instances behind `after`, in order.
    pub(crate) fn keys(&self, after: Option<&InstanceKey>) -> impl Iterator<Item = InstanceKey> {
        let place = after.map_or(Place::FIRST, |after| {
            let (place, found) = self.instances.seek(&listed(after));
            if found { self.instances.step(place) } else { place }
        });
        self.instances.iter_from(place).map(|view| view.key())
    }

    /// How many pages the list has.
    pub(crate) fn page_count(&self) -> usize {
        self.instances.page_count()
    }

    /// Takes the lease times of the next page again, in turn: `renewed` gives the current view where it differs.
    pub(crate) fn refresh_page(&mut self, renewed: impl FnMut(&Arc<LeaseView>) -> Option<Arc<LeaseView>>) {
        let place = match &self.refreshed {
            None => Place::FIRST,
            Some(last) => {
                let (place, found) = self.instances.seek(&listed(last));
                if found { self.instances.step(place) } else { place }
            }
        };
        let place = self.instances.page(place).map_or(Place::FIRST, |_| place);
        if self.instances.rewrite(&mut self.edits, place, renewed) {
            self.touch();
        }
        let page = self.instances.page(place);
        self.refreshed = page.and_then(|page| Some(page.instances().next_back()?.key()));
    }

    /// The current snapshot; a new one only if something changed.
    pub(crate) fn snapshot(&mut self, version: u64, applications: usize, reads: Reads) -> Snapshot {
        if let Some(published) = &self.published
            && published.edition() == self.edition
        {
            return published.clone();
        }
        let snapshot = Snapshot::new(Frozen {
            version,
            edition: self.edition,
            reads,
            applications,
            instances: self.instances.clone(),
            ids: self.ids.clone(),
            vips: self.vips.clone(),
            delta: self.delta.clone(),
            counts: self.counts,
        });
        if let Some(frozen) = self
            .published
            .replace(snapshot.clone())
            .and_then(Snapshot::unshared)
        {
            self.retired.push(frozen);
        }
        snapshot
    }

    /// Takes apart a little of what nobody reads any more, for dropping it at once could take long. The more there is, the
    /// more of it, so that it does not pile up.
    pub(crate) fn dispose(&mut self) {
        let mut effort = EFFORT * self.retired.len();
        while effort > 0
            && let Some(last) = self.retired.last_mut()
            && last.dispose(&mut effort)
        {
            self.retired.pop();
        }
    }

    fn index(
        &mut self,
        key: &InstanceKey,
        before: Option<&Instance>,
        after: Option<(&Arc<InstanceKey>, &Instance)>,
    ) {
        if let (Some(before), Some((_, after))) = (before, after)
            && before.vip_address == after.vip_address
            && before.secure_vip_address == after.secure_vip_address
        {
            return;
        }
        for (name, _) in before.map(addresses).unwrap_or_default() {
            let sought = Sought::exactly([&name, key.app(), key.id()]);
            self.vips.remove(&mut self.edits, &sought);
        }
        let Some((key, after)) = after else { return };
        for (name, lists) in addresses(after) {
            let key = Arc::clone(key);
            self.vips.put(&mut self.edits, Address { name, key, lists });
        }
    }
}

/// The addresses that an instance can be asked for by, and in which of its lists they are. Java trims nothing, and neither
/// do we. A list of one is its only element, in the same memory.
fn addresses(instance: &Instance) -> Vec<(Arc<str>, Lists)> {
    let mut addresses: Vec<(Arc<str>, Lists)> = Vec::new();
    let plain = elements(instance.vip_address.as_ref()).map(|name| (name, false));
    let secure = elements(instance.secure_vip_address.as_ref()).map(|name| (name, true));
    for (name, is_secure) in plain.chain(secure) {
        let index = match addresses.iter().position(|(known, _)| *known == name) {
            Some(index) => index,
            None => {
                addresses.push((name, Lists::default()));
                addresses.len() - 1
            }
        };
        let lists = &mut addresses[index].1;
        if is_secure {
            lists.secure = true;
        } else {
            lists.plain = true;
        }
    }
    addresses
}

fn elements(list: Option<&Arc<str>>) -> impl Iterator<Item = Arc<str>> {
    let elements = list.into_iter().flat_map(|list| {
        let element = |element: &str| match element.len() == list.len() {
            true => Arc::clone(list),
            false => Arc::from(element),
        };
        list.split(',').map(element)
    });
    elements.filter(|element| !element.is_empty()).take(ADDRESSES)
}

/// Where an instance is in a list.
pub(crate) fn listed(key: &InstanceKey) -> Sought<'_> {
    Sought::exactly([key.app(), key.id(), ""])
}

/// Instances are listed by their keys.
impl Sorted for Arc<LeaseView> {
    fn texts(&self) -> [&str; 3] {
        [&self.instance.app, self.instance.id(), ""]
    }
}

/// The index of ids.
impl Sorted for Arc<InstanceKey> {
    fn texts(&self) -> [&str; 3] {
        [self.id(), self.app(), ""]
    }
}

/// The index of virtual addresses.
impl Sorted for Address {
    fn texts(&self) -> [&str; 3] {
        [&self.name, self.key.app(), self.key.id()]
    }
}

impl Frozen {
    /// Takes apart what nobody else shares, as far as the effort goes; true when nothing is left.
    fn dispose(&mut self, effort: &mut usize) -> bool {
        self.instances.dispose(effort)
            && self.ids.dispose(effort)
            && self.vips.dispose(effort)
            && self.delta.dispose(effort)
    }
}
