//! A sorted sequence in pages that old copies keep sharing: what a snapshot is made of.
//!
//! A copy of the whole costs one reference count. A change copies the path to one page (at most the list of blocks, one
//! block and one page, of each one leaf), and only as far as an older copy still shares it; otherwise it happens in place.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;

use crate::leaves::{Leaves, half, small_pair};
use crate::snapshot::LeaseView;
use crate::sorted::{Sorted, Sought};

/// At most this many instances are in a page.
pub(crate) const FULL_PAGE: usize = 320;

/// Up to 320 consecutive instances in the order of their keys, at least one. Never changes: a change makes a new page with a
/// new number.
#[derive(Debug)]
pub struct Page<T = Arc<LeaseView>> {
    number: u64,
    entries: Leaves<T>,
}

impl Page {
    /// Unique among all pages of this registry: encoded copies can be kept by it.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// How many instances there are.
    pub fn instance_count(&self) -> usize {
        self.entries.len()
    }

    /// The instances.
    pub fn instances(&self) -> impl DoubleEndedIterator<Item = &Arc<LeaseView>> {
        self.entries.iter()
    }

    /// The same, as runs of up to 32.
    pub fn runs(&self) -> impl DoubleEndedIterator<Item = &[Arc<LeaseView>]> {
        self.entries.slices()
    }

    /// One of them.
    pub fn instance(&self, at: usize) -> Option<&Arc<LeaseView>> {
        self.entries.get(at)
    }
}

/// Numbers pages, and counts those that had to be copied because an older copy shared them.
#[derive(Debug, Default)]
pub(crate) struct Edits {
    number: u64,
    copies: usize,
}

/// A place in a sequence.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Place {
    block: usize,
    page: usize,
    entry: usize,
}

/// The sequence, with at most `WIDTH` entries in a page and pages in a block, and at most `LEAF` of them in a leaf.
#[derive(Debug)]
pub(crate) struct Pages<T, const WIDTH: usize = FULL_PAGE, const LEAF: usize = 32> {
    blocks: Arc<Leaves<Arc<Block<T>>>>,
    len: usize,
}

#[derive(Clone, Debug)]
struct Block<T> {
    pages: Leaves<Arc<Page<T>>>,
}

/// A page stands where its first entry does.
impl<T: Sorted> Sorted for Arc<Page<T>> {
    fn texts(&self) -> [&str; 3] {
        let first = self.entries.first();
        first.expect("no page is empty").texts()
    }
}

/// And so does a block.
impl<T: Sorted> Sorted for Arc<Block<T>> {
    fn texts(&self) -> [&str; 3] {
        let first = self.pages.first();
        first.expect("no block is empty").texts()
    }
}

impl Place {
    /// Before everything.
    pub(crate) const FIRST: Self = Self {
        block: 0,
        page: 0,
        entry: 0,
    };
}

impl Edits {
    /// Pages copied so far.
    pub(crate) fn copies(&self) -> usize {
        self.copies
    }

    fn number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }
}

impl<T, const WIDTH: usize, const LEAF: usize> Clone for Pages<T, WIDTH, LEAF> {
    fn clone(&self) -> Self {
        Self {
            blocks: Arc::clone(&self.blocks),
            len: self.len,
        }
    }
}

impl<T: Clone + Sorted, const WIDTH: usize, const LEAF: usize> Pages<T, WIDTH, LEAF> {
    /// Nothing.
    pub(crate) fn new() -> Self {
        Self {
            blocks: Arc::new(Leaves::empty()),
            len: 0,
        }
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// How many pages there are.
    pub(crate) fn page_count(&self) -> usize {
        self.blocks.iter().map(|block| block.pages.len()).sum()
    }

    /// All pages, in order.
    pub(crate) fn pages(&self) -> impl Iterator<Item = &Arc<Page<T>>> {
        let blocks = self.blocks.iter();
        blocks.flat_map(|block| block.pages.iter())
    }

    /// The entry at a place that [`seek`](Self::seek) gave.
    pub(crate) fn entry(&self, place: Place) -> Option<&T> {
        self.page(place)?.entries.get(place.entry)
    }

    /// The page of a place.
    pub(crate) fn page(&self, place: Place) -> Option<&Arc<Page<T>>> {
        self.blocks.get(place.block)?.pages.get(place.page)
    }

    /// The entries from a place on.
    pub(crate) fn iter_from(&self, place: Place) -> impl Iterator<Item = &T> {
        let blocks = self.blocks.iter_from(place.block);
        let pages = blocks.enumerate().flat_map(move |(index, block)| {
            let skipped = if index == 0 { place.page } else { 0 };
            block.pages.iter_from(skipped)
        });
        pages.enumerate().flat_map(move |(index, page)| {
            let skipped = if index == 0 { place.entry } else { 0 };
            page.entries.iter_from(skipped)
        })
    }

    /// How many entries lie between two places, the second not included.
    pub(crate) fn between(&self, from: Place, to: Place) -> usize {
        if (from.block, from.page) == (to.block, to.page) {
            return to.entry.saturating_sub(from.entry);
        }
        let mut count = to.entry;
        let mut place = Place { entry: 0, ..from };
        while (place.block, place.page) != (to.block, to.page) {
            let Some(page) = self.page(place) else { break };
            count += page.entries.len();
            place = self.next_page(place);
        }
        count - from.entry
    }

    /// The start of the page behind the one of `place`.
    pub(crate) fn next_page(&self, place: Place) -> Place {
        let block = self.blocks.get(place.block);
        let pages = block.map_or(0, |block| block.pages.len());
        let (block, page) = if place.page + 1 < pages {
            (place.block, place.page + 1)
        } else {
            (place.block + 1, 0)
        };
        Place {
            block,
            page,
            entry: 0,
        }
    }

    /// The place behind `place`.
    pub(crate) fn step(&self, place: Place) -> Place {
        let entry = place.entry + 1;
        match self.page(place) {
            Some(page) if entry < page.entries.len() => Place { entry, ..place },
            Some(_) | None => self.next_page(place),
        }
    }

    /// Where the first entry is that is not less than what is looked for, and whether it is that.
    pub(crate) fn seek(&self, sought: &Sought<'_>) -> (Place, bool) {
        let (place, found) = self.locate(sought);
        let past_page = self
            .page(place)
            .is_some_and(|page| place.entry == page.entries.len());
        if past_page {
            let next = self.next_page(place);
            let equal = self.entry(next).is_some_and(|entry| sought.order(entry).is_eq());
            (next, equal)
        } else {
            (place, found)
        }
    }

    /// Puts an entry in its place, replacing one of the same key, which is returned.
    pub(crate) fn put(&mut self, edits: &mut Edits, entry: T) -> Option<T> {
        let (place, found) = self.locate(&Sought::exactly(entry.texts()));
        if self.blocks.len() == 0 {
            let page = Page {
                number: edits.number(),
                entries: Leaves::of(entry),
            };
            let pages = Leaves::of(Arc::new(page));
            self.blocks = Arc::new(Leaves::of(Arc::new(Block { pages })));
            self.len = 1;
            return None;
        }
        let blocks = Arc::make_mut(&mut self.blocks);
        let block = Arc::make_mut(blocks.item_mut(place.block));
        let page = page_mut(block.pages.item_mut(place.page), edits);
        if found {
            return Some(mem::replace(page.entries.item_mut(place.entry), entry));
        }
        self.len += 1;
        page.entries.insert(place.entry, entry, LEAF);
        let rest = (page.entries.len() > WIDTH).then(|| split(&mut page.entries, place.entry));
        if let Some(entries) = rest {
            let number = edits.number();
            let rest = Arc::new(Page { number, entries });
            block.pages.insert(place.page + 1, rest, LEAF);
        }
        let rest = (block.pages.len() > WIDTH).then(|| split(&mut block.pages, place.page + 1));
        let is_first = place.entry == 0;
        if is_first {
            block.pages.renamed(place.page);
        }
        if let Some(pages) = rest {
            blocks.insert(place.block + 1, Arc::new(Block { pages }), LEAF);
        }
        if is_first && place.page == 0 {
            blocks.renamed(place.block);
        }
        None
    }

    /// Takes out the entry of a key.
    pub(crate) fn remove(&mut self, edits: &mut Edits, sought: &Sought<'_>) -> Option<T> {
        let (place, found) = self.locate(sought);
        if !found {
            return None;
        }
        self.len -= 1;
        let blocks = Arc::make_mut(&mut self.blocks);
        let block = Arc::make_mut(blocks.item_mut(place.block));
        let page = page_mut(block.pages.item_mut(place.page), edits);
        let removed = page.entries.remove(place.entry, LEAF);
        if page.entries.len() == 0 {
            block.pages.remove(place.page, LEAF);
        } else {
            if place.entry == 0 {
                block.pages.renamed(place.page);
            }
            Self::join_pages(&mut block.pages, place.page, edits);
        }
        if block.pages.len() == 0 {
            blocks.remove(place.block, LEAF);
        } else {
            if (place.page, place.entry) == (0, 0) {
                blocks.renamed(place.block);
            }
            Self::join_blocks(blocks, place.block);
        }
        Some(removed)
    }

    /// Replaces the entries of the page at `place` for which `renewed` gives another.
    pub(crate) fn rewrite(
        &mut self,
        edits: &mut Edits,
        place: Place,
        mut renewed: impl FnMut(&T) -> Option<T>,
    ) -> bool {
        let Some(page) = self.page(place) else {
            return false;
        };
        let changes: Vec<(usize, T)> = page
            .entries
            .iter()
            .enumerate()
            .filter_map(|(index, entry)| Some((index, renewed(entry)?)))
            .collect();
        if changes.is_empty() {
            return false;
        }
        let blocks = Arc::make_mut(&mut self.blocks);
        let block = Arc::make_mut(blocks.item_mut(place.block));
        let page = page_mut(block.pages.item_mut(place.page), edits);
        for (index, entry) in changes {
            *page.entries.item_mut(index) = entry;
        }
        true
    }

    /// Takes apart what nobody else shares, for as long as there is effort left: one for letting go of something shared,
    /// two for dropping an entry. True when nothing is left.
    pub(crate) fn dispose(&mut self, effort: &mut usize) -> bool {
        let Some(blocks) = Arc::get_mut(&mut self.blocks) else {
            *self = Self::new();
            return true;
        };
        while *effort > 0 {
            let Some(last) = blocks.last_own() else { break };
            match Arc::get_mut(last).and_then(|block| block.pages.pop_own()) {
                Some(page) => {
                    let is_own = Arc::strong_count(&page) == 1;
                    let cost = if is_own { page.entries.weight() } else { 1 };
                    *effort = effort.saturating_sub(cost);
                }
                None => {
                    blocks.pop_own();
                    *effort -= 1;
                }
            }
        }
        let is_done = blocks.last_own().is_none();
        if is_done {
            *self = Self::new();
        }
        is_done
    }

    /// The page and the place in it where an entry is or belongs.
    fn locate(&self, sought: &Sought<'_>) -> (Place, bool) {
        let block = self.blocks.partition(sought).saturating_sub(1);
        let pages = self.blocks.get(block).map(|block| &block.pages);
        let page = pages.map_or(0, |pages| pages.partition(sought).saturating_sub(1));
        let entries = pages.and_then(|pages| pages.get(page));
        let found = entries.map_or(Err(0), |page| page.entries.search(sought));
        let (Ok(entry) | Err(entry)) = found;
        (Place { block, page, entry }, found.is_ok())
    }

    /// Joins a page that has become small with its neighbour, if that is small too.
    fn join_pages(pages: &mut Leaves<Arc<Page<T>>>, at: usize, edits: &mut Edits) {
        let len = |page| Some(pages.get(page)?.entries.len());
        if let Some(first) = small_pair(at, WIDTH / 2, len) {
            let next = pages.remove(first + 1, LEAF);
            let page = page_mut(pages.item_mut(first), edits);
            page.entries.append(&next.entries, LEAF);
        }
    }

    /// The same for blocks.
    fn join_blocks(blocks: &mut Leaves<Arc<Block<T>>>, at: usize) {
        let len = |block| Some(blocks.get(block)?.pages.len());
        if let Some(first) = small_pair(at, WIDTH / 2, len) {
            let next = blocks.remove(first + 1, LEAF);
            let block = Arc::make_mut(blocks.item_mut(first));
            block.pages.append(&next.pages, LEAF);
        }
    }
}

/// A page to change, under a new number; copied if somebody else has it.
fn page_mut<'a, T: Clone>(page: &'a mut Arc<Page<T>>, edits: &mut Edits) -> &'a mut Page<T> {
    let number = edits.number();
    if Arc::get_mut(page).is_none() {
        edits.copies += 1;
        let entries = page.entries.clone();
        *page = Arc::new(Page { number, entries });
    }
    let page = Arc::get_mut(page).expect("nobody else has a page just made");
    page.number = number;
    page
}

/// What is cut off a list that is too long since an entry was put there.
fn split<E: Clone + Sorted>(entries: &mut Leaves<E>, inserted: usize) -> Leaves<E> {
    entries.split_off(half(entries.len(), inserted))
}

#[cfg(test)]
mod tests;
