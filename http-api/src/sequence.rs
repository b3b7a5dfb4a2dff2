//! A list as a sequence of pages between a head and a tail. A page is encoded once per codec for all readers and all
//! versions of the registry in which it stands, so after a change only what changed is encoded and compressed again.
//!
//! A list that is asked for again before it changes is put together in one piece, if it is not very long: what is written at
//! once costs half of what the same bytes cost in a hundred pieces.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use crc32fast::Hasher;
use eureka_registry_core::wire::{self, Boundary, Codec};
use eureka_registry_core::{LeaseView, Page};

use crate::body::Body;
use crate::encoder::{Encoder, Form, Room};
use crate::gzip::{self, Segment};

/// One list, in every codec that was asked for.
#[derive(Debug)]
pub(crate) struct Sequence {
    encoder: Arc<Encoder>,
    hash: Arc<str>,
    version: Version,
    pages: Box<[Arc<EncodedPage>]>,
    whole: [Whole; Form::COUNT],
}

/// What is known of all pages together, in one form.
#[derive(Debug, Default)]
struct Whole {
    ends: OnceLock<Ends>,
    /// Length of the whole, once every page is encoded.
    len: OnceLock<u64>,
    /// Whether somebody asked for it already.
    asked: AtomicBool,
    /// All of it in one piece.
    bytes: OnceLock<Bytes>,
}

/// What `versions__delta` says.
#[derive(Clone, Debug)]
pub(crate) enum Version {
    /// Always the same.
    Fixed(&'static str),
    /// How many were made so far, over all codecs, as Java counts deltas.
    Counted(Arc<AtomicU64>),
}

/// What stands before and behind the pages.
#[derive(Clone, Debug)]
struct Ends {
    head: Bytes,
    tail: Bytes,
}

/// A list of so many bytes is put together for its first reader.
const SHORT: u64 = 64 << 10;
/// A longer one for its second reader; copying takes no longer than encoding a page. Still longer ones stay in pages.
const WHOLE_MAX: u64 = 8 << 20;

/// Bytes that `gzip::write_stored` puts before a short text.
const STORED_HEADER: usize = 5;

impl Sequence {
    /// The list of these pages, taking over what is encoded of the list before it, but not in `unused` forms.
    pub(crate) fn new<'a>(
        encoder: &Arc<Encoder>,
        version: Version,
        hash: &Arc<str>,
        pages: impl Iterator<Item = &'a Arc<Page>>,
        before: Option<&Self>,
        unused: &[Form],
    ) -> Self {
        let mut known = Known {
            rest: before.map_or(&[], |list| &list.pages),
        };
        let mut last: Option<&Page> = None;
        let mut is_next = true;
        let pages = pages
            .map(|page| {
                let (passed, known) = known.find(page);
                is_next &= passed == 0;
                let boundary = match known {
                    // Both stand as they stood.
                    Some(known) if is_next => known.boundary,
                    _ => {
                        let before = last.and_then(|page| page.instances().next_back());
                        boundary(app(before), app(page.instances().next()))
                    }
                };
                is_next = known.is_some();
                last = Some(page);
                match known.filter(|known| known.boundary == boundary) {
                    Some(known) if known.has_any(unused) => Arc::new(known.without(unused)),
                    Some(known) => Arc::clone(known),
                    None => Arc::new(EncodedPage::new(encoder, page, boundary)),
                }
            })
            .collect();
        Self {
            encoder: Arc::clone(encoder),
            hash: Arc::clone(hash),
            version,
            pages,
            whole: Default::default(),
        }
    }

    /// How many pages stand between head and tail.
    pub(crate) fn page_count(&self) -> usize {
        self.pages.len()
    }

    /// The whole list as the body of an answer.
    pub(crate) fn body(self: &Arc<Self>, form: Form) -> Body {
        let whole = self.whole(form);
        if let Some(bytes) = whole.bytes.get() {
            return bytes.clone().into();
        }
        let len = self.encoded_len(form);
        let asked = whole.asked.swap(true, Ordering::Relaxed);
        let pages = ListBody {
            left: len,
            list: Arc::clone(self),
            form,
            next: Piece::Head,
            encoded_before: false,
            sum: Hasher::new(),
            len: 0,
        };
        let most = if asked { WHOLE_MAX } else { SHORT };
        let room = len
            .filter(|len| *len <= most)
            .and_then(|len| self.encoder.room(usize::try_from(len).ok()?));
        match room {
            Some(room) => whole.bytes.get_or_init(|| pages.joined(room)).clone().into(),
            None => Body::list(pages),
        }
    }

    fn whole(&self, form: Form) -> &Whole {
        &self.whole[form.index()]
    }

    /// Length of the whole body, `None` while pages are missing. One page may be encoded for it: after a small change nothing
    /// is missing then.
    fn encoded_len(&self, form: Form) -> Option<u64> {
        let whole = self.whole(form);
        if let Some(len) = whole.len.get() {
            return Some(*len);
        }
        let mut pages = 0;
        let mut missing = None;
        for page in &self.pages {
            match page.len(form) {
                Some(len) => pages += len,
                None if missing.is_some() => return None,
                None => missing = Some(page),
            }
        }
        if let Some(page) = missing {
            page.encode_as(form);
            pages += page.len(form)?;
        }
        let plain = self.plain_ends(form.codec);
        let mut ends = plain.head.len() + plain.tail.len();
        if form.gzip {
            ends += gzip::HEADER.len() + 2 * STORED_HEADER + gzip::END_LEN;
        }
        let len = (pages + ends) as u64;
        Some(*whole.len.get_or_init(|| len))
    }

    fn plain_ends(&self, codec: Codec) -> &Ends {
        self.whole(Form { codec, gzip: false }).ends.get_or_init(|| {
            let (mut head, mut tail) = (Vec::new(), Vec::new());
            let counted;
            let version = match &self.version {
                Version::Fixed(version) => version,
                Version::Counted(counter) => {
                    counted = (counter.fetch_add(1, Ordering::Relaxed) + 1).to_string();
                    &*counted
                }
            };
            let frame = self.encoder.frame(version, &self.hash);
            wire::write_list_head(codec, &frame, &mut head);
            wire::write_list_tail(codec, &frame, self.pages.is_empty(), &mut tail);
            Ends {
                head: head.into(),
                tail: tail.into(),
            }
        })
    }

    fn packed_ends(&self, codec: Codec) -> &OnceLock<Ends> {
        &self.whole(Form { codec, gzip: true }).ends
    }

    fn packed_head(&self, codec: Codec) -> Bytes {
        if let Some(ends) = self.packed_ends(codec).get() {
            return ends.head.clone();
        }
        let mut head = gzip::HEADER.to_vec();
        gzip::write_stored(&self.plain_ends(codec).head, &mut head);
        head.into()
    }

    /// The tail behind pages whose text has this checksum and length.
    fn packed_tail(&self, codec: Codec, pages: &Hasher, pages_len: u64) -> Bytes {
        let ends = self.packed_ends(codec).get_or_init(|| {
            let plain = self.plain_ends(codec);
            let mut sum = gzip::sum(&plain.head);
            sum.combine(pages);
            sum.update(&plain.tail);
            let mut tail = Vec::new();
            gzip::write_stored(&plain.tail, &mut tail);
            let len = (plain.head.len() + plain.tail.len()) as u64 + pages_len;
            gzip::write_end(sum, len, &mut tail);
            Ends {
                head: self.packed_head(codec),
                tail: tail.into(),
            }
        });
        ends.tail.clone()
    }
}

/// The pages of a list that were not passed yet.
struct Known<'a> {
    rest: &'a [Arc<EncodedPage>],
}

impl<'a> Known<'a> {
    /// Passes what is before a page, and the page itself if it is there. How many were passed before it, and it.
    ///
    /// Both lists are in the order of the instances: pages that did not change follow each other in both, and nothing but
    /// pointers is compared until one comes that did.
    fn find(&mut self, page: &Arc<Page>) -> (usize, Option<&'a Arc<EncodedPage>>) {
        let is_it = |known: &&Arc<EncodedPage>| Arc::ptr_eq(&known.page, page);
        let is_passed = |known: &&Arc<EncodedPage>| !is_it(known) && start(&known.page) <= start(page);
        let passed = self.rest.iter().take_while(is_passed).count();
        self.rest = &self.rest[passed..];
        let found = self.rest.first().filter(is_it);
        self.rest = &self.rest[usize::from(found.is_some())..];
        (passed, found)
    }
}

/// Where a page begins.
fn start(page: &Page) -> Option<(&str, &str)> {
    let first = &page.instances().next()?.instance;
    Some((&first.app, first.id()))
}

fn app(view: Option<&Arc<LeaseView>>) -> Option<&str> {
    view.map(|view| &*view.instance.app)
}

/// How a run of instances joins what is before it.
fn boundary(last_app: Option<&str>, first_app: Option<&str>) -> Boundary {
    match last_app {
        None => Boundary::First,
        Some(_) if last_app == first_app => Boundary::SameApplication,
        Some(_) => Boundary::NewApplication,
    }
}

/// A page of the registry and its encoded forms.
#[derive(Debug)]
struct EncodedPage {
    encoder: Arc<Encoder>,
    page: Arc<Page>,
    boundary: Boundary,
    plain: [OnceLock<Bytes>; 4],
    packed: [OnceLock<(Segment, usize)>; 4],
}

impl EncodedPage {
    fn new(encoder: &Arc<Encoder>, page: &Arc<Page>, boundary: Boundary) -> Self {
        Self {
            encoder: Arc::clone(encoder),
            page: Arc::clone(page),
            boundary,
            plain: Default::default(),
            packed: Default::default(),
        }
    }

    /// Encoded length, if it is encoded.
    fn len(&self, form: Form) -> Option<usize> {
        if form.gzip {
            self.packed[form.codec as usize]
                .get()
                .map(|(segment, _)| segment.bytes.len())
        } else {
            self.plain[form.codec as usize].get().map(Bytes::len)
        }
    }

    fn encode_as(&self, form: Form) {
        if form.gzip {
            self.packed(form.codec);
        } else {
            self.plain(form.codec);
        }
    }

    fn has_any(&self, forms: &[Form]) -> bool {
        forms.iter().any(|form| self.len(*form).is_some())
    }

    /// The same page, encoded in the other forms only.
    fn without(&self, forms: &[Form]) -> Self {
        let page = Self::new(&self.encoder, &self.page, self.boundary);
        let others = Form::all().filter(|form| !forms.contains(form));
        for form in others {
            let index = form.codec as usize;
            let taken_over = if form.gzip {
                let packed = self.packed[index].get();
                packed.is_some_and(|packed| page.packed[index].set(packed.clone()).is_ok())
            } else {
                let plain = self.plain[index].get();
                plain.is_some_and(|plain| page.plain[index].set(plain.clone()).is_ok())
            };
            if taken_over && let Some(len) = page.len(form) {
                self.encoder.take_over(len);
            }
        }
        page
    }

    fn plain(&self, codec: Codec) -> Bytes {
        let cell = &self.plain[codec as usize];
        if let Some(bytes) = cell.get() {
            return bytes.clone();
        }
        let bytes = Bytes::from(self.encode(codec));
        if self.encoder.reserve_plain(bytes.len()) {
            self.keep(cell, bytes.clone(), bytes.len());
        }
        bytes
    }

    /// The page compressed, and the length of its text.
    fn packed(&self, codec: Codec) -> (Segment, usize) {
        let cell = &self.packed[codec as usize];
        if let Some(packed) = cell.get() {
            return packed.clone();
        }
        let segment_of = |text: &[u8]| (self.encoder.compressors.segment(text), text.len());
        let packed = match self.plain[codec as usize].get() {
            Some(text) => segment_of(text),
            None => segment_of(&self.encode(codec)),
        };
        if self.encoder.reserve(packed.0.bytes.len()) {
            self.keep(cell, packed.clone(), packed.0.bytes.len());
        }
        packed
    }

    fn encode(&self, codec: Codec) -> Vec<u8> {
        self.encoder.figures.pages_encoded.increment(1);
        let mut text = Vec::new();
        let mut last_app = None;
        for run in self.page.runs() {
            let boundary = match last_app {
                None => self.boundary,
                Some(_) => boundary(last_app, app(run.first())),
            };
            wire::write_list_piece(codec, boundary, run, &mut text);
            last_app = app(run.last());
        }
        text.shrink_to_fit();
        text
    }

    /// Keeps an encoded form for which there is room, if nobody else kept it in the meantime.
    fn keep<T>(&self, cell: &OnceLock<T>, form: T, len: usize) {
        if cell.set(form).is_err() {
            self.encoder.release(len);
        }
    }
}

impl Drop for EncodedPage {
    fn drop(&mut self) {
        let lens = Form::all().filter_map(|form| self.len(form));
        self.encoder.release(lens.sum());
    }
}

/// The whole list on its way to one reader.
#[derive(Debug)]
pub(crate) struct ListBody {
    list: Arc<Sequence>,
    form: Form,
    next: Piece,
    /// Bytes still to come, if every page was encoded at the start.
    left: Option<u64>,
    /// Whether the piece before had to be encoded.
    encoded_before: bool,
    /// Checksum and length of the pages so far, while nobody knows those of all.
    sum: Hasher,
    len: u64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Piece {
    Head,
    Page(usize),
    Done,
}

impl ListBody {
    /// The next piece. At most one missing page is encoded before other tasks get their turn.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Piece::Page(position) = self.next
            && let Some(page) = self.list.pages.get(position)
        {
            let missing = page.len(self.form).is_none();
            if missing && self.encoded_before {
                self.encoded_before = false;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.encoded_before = missing;
        }
        let piece = self.take();
        if let (Some(left), Some(piece)) = (&mut self.left, &piece) {
            *left -= piece.len() as u64;
        }
        Poll::Ready(piece)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.next == Piece::Done
    }

    /// Bytes still to come, if they are known.
    pub(crate) fn left(&self) -> Option<u64> {
        self.left
    }

    /// All of it in one piece, as soon as every page is encoded.
    fn joined(mut self, room: Room) -> Bytes {
        let mut whole = Vec::with_capacity(room.len());
        while let Some(piece) = self.take() {
            whole.extend_from_slice(&piece);
        }
        room.holding(whole)
    }

    fn take(&mut self) -> Option<Bytes> {
        let (list, Form { codec, gzip }) = (&self.list, self.form);
        match self.next {
            Piece::Head => {
                self.next = Piece::Page(0);
                Some(if gzip {
                    list.packed_head(codec)
                } else {
                    list.plain_ends(codec).head.clone()
                })
            }
            Piece::Page(position) => match list.pages.get(position) {
                Some(page) => {
                    self.next = Piece::Page(position + 1);
                    if !gzip {
                        return Some(page.plain(codec));
                    }
                    let (segment, len) = page.packed(codec);
                    if list.packed_ends(codec).get().is_none() {
                        self.sum.combine(&segment.sum);
                        self.len += len as u64;
                    }
                    Some(segment.bytes)
                }
                None => {
                    self.next = Piece::Done;
                    Some(if gzip {
                        list.packed_tail(codec, &self.sum, self.len)
                    } else {
                        list.plain_ends(codec).tail.clone()
                    })
                }
            },
            Piece::Done => None,
        }
    }
}
