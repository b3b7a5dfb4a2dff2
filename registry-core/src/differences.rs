//! In what two snapshots differ: pages that both share are passed over.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;

use crate::model::InstanceKey;
use crate::pages::Page;
use crate::snapshot::{LeaseView, Snapshot};

/// One instance in which two snapshots differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Which one.
    pub key: InstanceKey,
    /// How the earlier snapshot has it; `None` if it has not.
    pub before: Option<Arc<LeaseView>>,
    /// How the later one has it; `None` if it has not.
    pub after: Option<Arc<LeaseView>>,
}

impl Snapshot {
    /// In which instances this one differs from `before`, in the order of their keys. The cost goes with the pages that the
    /// two do not share: between snapshots of one registry that is what changed, between strangers it is everything.
    pub fn differences(&self, before: &Self) -> Vec<Difference> {
        between(before.pages(), self.pages()).0
    }

    /// The same for the delta.
    pub fn delta_differences(&self, before: &Self) -> Vec<Difference> {
        between(before.delta_pages(), self.delta_pages()).0
    }
}

/// Also how many pages could not be passed over: the cost.
fn between<'a>(
    before: impl Iterator<Item = &'a Arc<Page>>,
    after: impl Iterator<Item = &'a Arc<Page>>,
) -> (Vec<Difference>, usize) {
    let (mut before, mut after) = (Walk::new(before), Walk::new(after));
    let mut found = Vec::new();
    loop {
        if let (Some(old), Some(new)) = (before.at_start(), after.at_start())
            && Arc::ptr_eq(old, new)
        {
            before.pass();
            after.pass();
            continue;
        }
        let order = match (before.view(), after.view()) {
            (None, None) => return (found, before.opened + after.opened),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) => compare(old, new),
        };
        let old = before.view().filter(|_| order.is_le()).cloned();
        let new = after.view().filter(|_| order.is_ge()).cloned();
        if order.is_le() {
            before.step();
        }
        if order.is_ge() {
            after.step();
        }
        if let (Some(old), Some(new)) = (&old, &new)
            && (Arc::ptr_eq(old, new) || old == new)
        {
            continue;
        }
        if let Some(view) = new.as_ref().or(old.as_ref()) {
            found.push(Difference {
                key: view.key(),
                before: old,
                after: new,
            });
        }
    }
}

fn compare(one: &LeaseView, other: &LeaseView) -> Ordering {
    let (one, other) = (&one.instance, &other.instance);
    one.app.cmp(&other.app).then_with(|| one.id().cmp(other.id()))
}

/// A place in a run of pages; no page is empty.
struct Walk<'a, I> {
    pages: I,
    page: Option<&'a Arc<Page>>,
    passed: usize,
    /// Pages that were looked into.
    opened: usize,
}

impl<'a, I: Iterator<Item = &'a Arc<Page>>> Walk<'a, I> {
    fn new(mut pages: I) -> Self {
        let page = pages.next();
        Self {
            pages,
            page,
            passed: 0,
            opened: 0,
        }
    }

    /// The page, if nothing of it has been passed.
    fn at_start(&self) -> Option<&'a Arc<Page>> {
        self.page.filter(|_| self.passed == 0)
    }

    fn view(&self) -> Option<&'a Arc<LeaseView>> {
        self.page?.instance(self.passed)
    }

    fn step(&mut self) {
        self.opened += usize::from(self.passed == 0);
        self.passed += 1;
        if self.page.is_some_and(|page| self.passed >= page.instance_count()) {
            self.pass();
        }
    }

    fn pass(&mut self) {
        self.page = self.pages.next();
        self.passed = 0;
    }
}

#[cfg(test)]
mod tests;
