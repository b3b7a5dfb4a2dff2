//! A sorted sequence in pages that old copies keep sharing: what a snapshot is made of.
//!
//! A copy of the whole costs one reference count. A change copies the path to one page (at most the list of blocks, one
//! block and one page), and only as far as an older copy still shares it; otherwise it happens in place.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;

use crate::snapshot::LeaseView;

/// At most this many pages are in a block.
const BLOCK: usize = 64;
/// Dropping a page of entries costs as much as letting go of this many that somebody else holds too.
const PAGE_EFFORT: usize = 256;

/// Up to 128 consecutive instances in the order of their keys. Never changes: a change makes a new page with a new number.
#[derive(Debug)]
pub struct Page<T = Arc<LeaseView>> {
    number: u64,
    entries: Vec<T>,
}

impl Page {
    /// Unique among all pages of this registry: encoded copies can be kept by it.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The instances.
    pub fn instances(&self) -> &[Arc<LeaseView>] {
        &self.entries
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

/// The sequence, with at most `WIDTH` entries in a page.
#[derive(Debug)]
pub(crate) struct Pages<T, const WIDTH: usize = 128> {
    blocks: Arc<Vec<Arc<Block<T>>>>,
    len: usize,
}

#[derive(Debug)]
struct Block<T> {
    pages: Vec<Arc<Page<T>>>,
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

impl<T, const WIDTH: usize> Clone for Pages<T, WIDTH> {
    fn clone(&self) -> Self {
        Self {
            blocks: Arc::clone(&self.blocks),
            len: self.len,
        }
    }
}

impl<T> Clone for Block<T> {
    fn clone(&self) -> Self {
        let mut pages = Vec::with_capacity(self.pages.len() + 1);
        pages.extend_from_slice(&self.pages);
        Self { pages }
    }
}

impl<T> Block<T> {
    fn first(&self) -> &T {
        &self.pages[0].entries[0]
    }
}

impl<T, const WIDTH: usize> Pages<T, WIDTH> {
    /// Nothing.
    pub(crate) fn new() -> Self {
        Self {
            blocks: Arc::new(Vec::new()),
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
        self.blocks.iter().flat_map(|block| &block.pages)
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
        let pages = self.blocks[place.block.min(self.blocks.len())..]
            .iter()
            .enumerate()
            .flat_map(move |(index, block)| {
                let skipped = if index == 0 { place.page } else { 0 };
                block.pages.get(skipped..).unwrap_or_default()
            });
        pages.enumerate().flat_map(move |(index, page)| {
            let skipped = if index == 0 { place.entry } else { 0 };
            page.entries.get(skipped..).unwrap_or_default()
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
        let pages = self.blocks.get(place.block).map_or(0, |block| block.pages.len());
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

    /// Where the first entry is that is not less than what is looked for, and whether it is equal. `order` tells how an
    /// entry compares with that.
    pub(crate) fn seek(&self, order: impl Fn(&T) -> Ordering) -> (Place, bool) {
        let (place, found) = self.locate(&order);
        let past_page = self
            .page(place)
            .is_some_and(|page| place.entry == page.entries.len());
        if past_page {
            let next = self.next_page(place);
            let equal = self.entry(next).is_some_and(|entry| order(entry).is_eq());
            (next, equal)
        } else {
            (place, found)
        }
    }

    /// Puts an entry where `order` says, replacing an equal one, which is returned.
    pub(crate) fn put(&mut self, edits: &mut Edits, order: impl Fn(&T) -> Ordering, entry: T) -> Option<T>
    where
        T: Clone,
    {
        let (place, found) = self.locate(&order);
        if self.blocks.is_empty() {
            let page = Page {
                number: edits.number(),
                entries: alloc::vec![entry],
            };
            let pages = alloc::vec![Arc::new(page)];
            self.blocks = Arc::new(alloc::vec![Arc::new(Block { pages })]);
            self.len = 1;
            return None;
        }
        let blocks = Arc::make_mut(&mut self.blocks);
        let block = Arc::make_mut(&mut blocks[place.block]);
        let page = page_mut(&mut block.pages[place.page], edits);
        if found {
            return Some(core::mem::replace(&mut page.entries[place.entry], entry));
        }
        self.len += 1;
        if page.entries.len() < WIDTH {
            grow(&mut page.entries, WIDTH);
            page.entries.insert(place.entry, entry);
        } else {
            page.entries.insert(place.entry, entry);
            let entries = split(&mut page.entries, place.entry);
            page.entries.shrink_to_fit();
            let number = edits.number();
            block
                .pages
                .insert(place.page + 1, Arc::new(Page { number, entries }));
            if block.pages.len() > BLOCK {
                let pages = split(&mut block.pages, place.page + 1);
                blocks.insert(place.block + 1, Arc::new(Block { pages }));
            }
        }
        None
    }

    /// Takes out the entry that is equal by `order`.
    pub(crate) fn remove(&mut self, edits: &mut Edits, order: impl Fn(&T) -> Ordering) -> Option<T>
    where
        T: Clone,
    {
        let (place, found) = self.locate(&order);
        if !found {
            return None;
        }
        self.len -= 1;
        let blocks = Arc::make_mut(&mut self.blocks);
        let block = Arc::make_mut(&mut blocks[place.block]);
        let page = page_mut(&mut block.pages[place.page], edits);
        let removed = page.entries.remove(place.entry);
        if page.entries.is_empty() {
            block.pages.remove(place.page);
        } else {
            join_pages(&mut block.pages, place.page, WIDTH / 2, edits);
        }
        if block.pages.is_empty() {
            blocks.remove(place.block);
        } else {
            join_blocks(blocks, place.block);
        }
        Some(removed)
    }

    /// Replaces the entries of the page at `place` for which `renewed` gives another.
    pub(crate) fn rewrite(
        &mut self,
        edits: &mut Edits,
        place: Place,
        mut renewed: impl FnMut(&T) -> Option<T>,
    ) -> bool
    where
        T: Clone,
    {
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
        let block = Arc::make_mut(&mut blocks[place.block]);
        let page = page_mut(&mut block.pages[place.page], edits);
        for (index, entry) in changes {
            page.entries[index] = entry;
        }
        true
    }

    /// Takes apart what nobody else shares, for as long as there is effort left: one for letting go of something shared,
    /// [`PAGE_EFFORT`] for dropping a page. True when nothing is left.
    pub(crate) fn dispose(&mut self, effort: &mut usize) -> bool {
        let Some(blocks) = Arc::get_mut(&mut self.blocks) else {
            *self = Self::new();
            return true;
        };
        while *effort > 0 {
            let Some(last) = blocks.last_mut() else {
                return true;
            };
            match Arc::get_mut(last).and_then(|block| block.pages.pop()) {
                Some(page) => {
                    let cost = if Arc::strong_count(&page) == 1 {
                        PAGE_EFFORT
                    } else {
                        1
                    };
                    *effort = effort.saturating_sub(cost);
                }
                None => {
                    blocks.pop();
                    *effort -= 1;
                }
            }
        }
        blocks.is_empty()
    }

    /// The page and the place in it where an entry is or belongs.
    fn locate(&self, order: &impl Fn(&T) -> Ordering) -> (Place, bool) {
        let block = last_not_greater(&self.blocks, |block| order(block.first()));
        let pages = self.blocks.get(block).map_or(&[][..], |block| &block.pages);
        let page = last_not_greater(pages, |page| order(&page.entries[0]));
        let entries = pages.get(page).map_or(&[][..], |page| &page.entries);
        let (entry, found) = match entries.binary_search_by(order) {
            Ok(entry) => (entry, true),
            Err(entry) => (entry, false),
        };
        (Place { block, page, entry }, found)
    }
}

/// The last of `parts` that does not begin behind what is looked for, or the first.
fn last_not_greater<P>(parts: &[P], order: impl Fn(&P) -> Ordering) -> usize {
    parts
        .partition_point(|part| order(part).is_le())
        .saturating_sub(1)
}

/// A page to change, under a new number; copied if somebody else has it.
fn page_mut<'a, T: Clone>(page: &'a mut Arc<Page<T>>, edits: &mut Edits) -> &'a mut Page<T> {
    let number = edits.number();
    if Arc::get_mut(page).is_none() {
        edits.copies += 1;
        let mut entries = Vec::with_capacity(page.entries.len() + 1);
        entries.extend_from_slice(&page.entries);
        *page = Arc::new(Page { number, entries });
    }
    let page = Arc::get_mut(page).expect("nobody else has a page just made");
    page.number = number;
    page
}

/// Makes room for one more, and for a few, but not for twice as many: there are many pages.
fn grow<T>(entries: &mut Vec<T>, most: usize) {
    if entries.len() == entries.capacity() {
        entries.reserve_exact((entries.len() / 8).max(4).min(most - entries.len()));
    }
}

/// The half behind; but only what lies behind `inserted` when it came last, as it does when keys come in order.
fn split<E>(entries: &mut Vec<E>, inserted: usize) -> Vec<E> {
    let at = if inserted + 1 == entries.len() {
        inserted
    } else {
        entries.len() / 2
    };
    entries.split_off(at)
}

/// Joins a page that has become small with its neighbour, if that is small too.
fn join_pages<T: Clone>(pages: &mut Vec<Arc<Page<T>>>, at: usize, most: usize, edits: &mut Edits) {
    let small = |first: usize| {
        let next = pages.get(first + 1)?;
        (pages[first].entries.len() + next.entries.len() <= most).then_some(first)
    };
    let Some(first) = small(at).or_else(|| small(at.checked_sub(1)?)) else {
        return;
    };
    let next = pages.remove(first + 1);
    page_mut(&mut pages[first], edits)
        .entries
        .extend_from_slice(&next.entries);
}

/// The same for blocks.
fn join_blocks<T>(blocks: &mut Vec<Arc<Block<T>>>, at: usize) {
    let small = |first: usize| {
        let next = blocks.get(first + 1)?;
        (blocks[first].pages.len() + next.pages.len() <= BLOCK / 2).then_some(first)
    };
    let Some(first) = small(at).or_else(|| small(at.checked_sub(1)?)) else {
        return;
    };
    let next = blocks.remove(first + 1);
    Arc::make_mut(&mut blocks[first])
        .pages
        .extend_from_slice(&next.pages);
}

#[cfg(test)]
mod tests;
