//! The whole list, encoded page by page. A page is encoded once per codec for all readers and all versions of the
//! registry in which it stands, so after a change only what changed is encoded and compressed again.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use crc32fast::Hasher;
use eureka_registry_core::wire::{self, Boundary, Codec};
use eureka_registry_core::{Page, Snapshot, Status};
use parking_lot::RwLock;

use crate::figures::Figures;
use crate::gzip::{self, Compressors, Segment};

/// What lists are made with and where their bytes are counted.
#[derive(Debug)]
pub(crate) struct Encoder {
    pub(crate) compressors: Compressors,
    pub(crate) figures: Figures,
    kept: AtomicUsize,
    limit: usize,
}

impl Encoder {
    pub(crate) fn new(level: u32, limit: usize) -> Self {
        Self {
            compressors: Compressors::new(level),
            figures: Figures::new(),
            kept: AtomicUsize::new(0),
            limit,
        }
    }

    /// Bytes of encoded answers that are kept.
    pub(crate) fn kept(&self) -> usize {
        self.kept.load(Ordering::Relaxed)
    }

    /// Whether `len` more bytes may be kept; if so they count until [`release`](Self::release).
    pub(crate) fn reserve(&self, len: usize) -> bool {
        if self.kept.fetch_add(len, Ordering::Relaxed) + len > self.limit {
            self.kept.fetch_sub(len, Ordering::Relaxed);
            self.figures.answers_not_kept.increment(1);
            return false;
        }
        self.figures.encoded_bytes.increment(len as f64);
        true
    }

    pub(crate) fn release(&self, len: usize) {
        self.kept.fetch_sub(len, Ordering::Relaxed);
        self.figures.encoded_bytes.decrement(len as f64);
    }
}

/// The list of the newest snapshot that anybody asked for.
#[derive(Debug)]
pub(crate) struct Pages {
    encoder: Arc<Encoder>,
    current: RwLock<Option<Arc<Listing>>>,
}

impl Pages {
    pub(crate) fn new(encoder: Arc<Encoder>) -> Self {
        Self {
            encoder,
            current: RwLock::new(None),
        }
    }

    /// The list of `snapshot`, with every encoded page of the list before it that still stands.
    pub(crate) fn listing(&self, snapshot: &Snapshot) -> Arc<Listing> {
        if let Some(listing) = &*self.current.read()
            && listing.shows(snapshot)
        {
            return Arc::clone(listing);
        }
        let mut current = self.current.write();
        match &*current {
            Some(listing) if listing.shows(snapshot) => Arc::clone(listing),
            before => {
                let listing = Arc::new(Listing::new(&self.encoder, snapshot, before.as_deref()));
                *current = Some(Arc::clone(&listing));
                listing
            }
        }
    }
}

/// One snapshot as a list, in every codec that was asked for.
#[derive(Debug)]
pub(crate) struct Listing {
    encoder: Arc<Encoder>,
    snapshot: Snapshot,
    hash: String,
    pages: Box<[Arc<EncodedPage>]>,
    plain: [OnceLock<Ends>; 4],
    packed: [OnceLock<Ends>; 4],
    deltas: [OnceLock<Encoded>; 4],
    overrides: OnceLock<Encoded>,
}

/// What stands before and behind the pages.
#[derive(Clone, Debug)]
struct Ends {
    head: Bytes,
    tail: Bytes,
}

impl Listing {
    fn new(encoder: &Arc<Encoder>, snapshot: &Snapshot, before: Option<&Self>) -> Self {
        let mut known: HashMap<(u64, Boundary), &Arc<EncodedPage>> = before
            .iter()
            .flat_map(|listing| &listing.pages)
            .map(|page| ((page.page.number(), page.boundary), page))
            .collect();
        let mut last_app = None;
        let pages = snapshot
            .pages()
            .filter(|page| !page.instances().is_empty())
            .map(|page| {
                let boundary = boundary(last_app, page);
                last_app = page.instances().last().map(|view| &*view.instance.app);
                match known.remove(&(page.number(), boundary)) {
                    Some(known) => Arc::clone(known),
                    None => Arc::new(EncodedPage::new(encoder, page, boundary)),
                }
            })
            .collect();
        Self {
            encoder: Arc::clone(encoder),
            snapshot: snapshot.clone(),
            hash: snapshot.hash(),
            pages,
            plain: Default::default(),
            packed: Default::default(),
            deltas: Default::default(),
            overrides: OnceLock::new(),
        }
    }

    /// Whether this is the list of that very snapshot: lists can differ in lease times within one version.
    fn shows(&self, snapshot: &Snapshot) -> bool {
        self.snapshot.edition() == snapshot.edition()
    }

    /// The snapshot it shows.
    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The whole list as the body of an answer.
    pub(crate) fn body(self: &Arc<Self>, codec: Codec, gzip: bool) -> ListBody {
        let mut left = self.encoded_len(codec, gzip);
        if gzip && self.packed[codec as usize].get().is_none() {
            // The trailer needs every checksum; only its length is known.
            left = left.map(|len| len + self.packed_tail_len(codec));
        }
        ListBody {
            left,
            listing: Arc::clone(self),
            codec,
            gzip,
            next: Piece::Head,
            encoded_before: false,
            sum: Hasher::new(),
            len: 0,
        }
    }

    /// The delta that belongs to the list, encoded once; `version` gives its number then.
    pub(crate) fn delta(&self, codec: Codec, version: impl FnOnce() -> u64) -> &Encoded {
        self.deltas[codec as usize].get_or_init(|| {
            let version = version().to_string();
            let text = wire::write_list(codec, &self.frame(&version), &self.snapshot.delta());
            Encoded::new(&self.encoder, text)
        })
    }

    /// Instance ids with the override that applies to them, as JSON; encoded once.
    pub(crate) fn overrides(&self) -> Bytes {
        let encoded = self.overrides.get_or_init(|| {
            let overridden = self.snapshot.instances().map(|view| &view.instance);
            let overridden = overridden.filter(|instance| instance.overridden_status != Status::Unknown);
            let by_id: BTreeMap<&str, &str> = overridden
                .map(|instance| (instance.id(), instance.overridden_status.as_str()))
                .collect();
            let text = serde_json::to_vec(&by_id).expect("a map of texts is JSON");
            Encoded::new(&self.encoder, text)
        });
        encoded.bytes(false)
    }

    /// Length of the whole body but for a packed tail that is not known yet; `None` while a page is missing.
    fn encoded_len(&self, codec: Codec, gzip: bool) -> Option<u64> {
        let pages: Option<usize> = self.pages.iter().map(|page| page.len(codec, gzip)).sum();
        let ends = match (gzip, self.packed[codec as usize].get()) {
            (true, Some(ends)) => ends.head.len() + ends.tail.len(),
            (true, None) => gzip::HEADER.len() + STORED_HEADER + self.plain_ends(codec).head.len(),
            (false, _) => {
                let ends = self.plain_ends(codec);
                ends.head.len() + ends.tail.len()
            }
        };
        Some((pages? + ends) as u64)
    }

    fn packed_tail_len(&self, codec: Codec) -> u64 {
        (STORED_HEADER + self.plain_ends(codec).tail.len() + gzip::END_LEN) as u64
    }

    fn frame<'a>(&'a self, version: &'a str) -> wire::ListFrame<'a> {
        wire::ListFrame {
            version,
            hash: &self.hash,
            tell_empty: false,
        }
    }

    fn plain_ends(&self, codec: Codec) -> &Ends {
        self.plain[codec as usize].get_or_init(|| {
            let (mut head, mut tail) = (Vec::new(), Vec::new());
            let frame = self.frame(FULL_VERSION);
            wire::write_list_head(codec, &frame, &mut head);
            wire::write_list_tail(codec, &frame, self.pages.is_empty(), &mut tail);
            Ends {
                head: head.into(),
                tail: tail.into(),
            }
        })
    }

    fn packed_head(&self, codec: Codec) -> Bytes {
        if let Some(ends) = self.packed[codec as usize].get() {
            return ends.head.clone();
        }
        let mut head = gzip::HEADER.to_vec();
        gzip::write_stored(&self.plain_ends(codec).head, &mut head);
        head.into()
    }

    /// The tail behind pages whose text has this checksum and length.
    fn packed_tail(&self, codec: Codec, pages: &Hasher, pages_len: u64) -> Bytes {
        let packed = &self.packed[codec as usize];
        let ends = packed.get_or_init(|| {
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

/// `versions__delta` of every full list, as in Java.
const FULL_VERSION: &str = "1";

/// Bytes that `gzip::write_stored` puts before a short text.
const STORED_HEADER: usize = 5;

fn boundary(last_app: Option<&str>, page: &Page) -> Boundary {
    let first = page.instances().first().map(|view| &*view.instance.app);
    match last_app {
        None => Boundary::First,
        Some(_) if last_app == first => Boundary::SameApplication,
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
    fn len(&self, codec: Codec, gzip: bool) -> Option<usize> {
        if gzip {
            self.packed[codec as usize]
                .get()
                .map(|(segment, _)| segment.bytes.len())
        } else {
            self.plain[codec as usize].get().map(Bytes::len)
        }
    }

    fn plain(&self, codec: Codec) -> Bytes {
        let cell = &self.plain[codec as usize];
        if let Some(bytes) = cell.get() {
            return bytes.clone();
        }
        let bytes = Bytes::from(self.encode(codec));
        self.keep(cell, bytes.clone(), bytes.len());
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
        self.keep(cell, packed.clone(), packed.0.bytes.len());
        packed
    }

    fn encode(&self, codec: Codec) -> Vec<u8> {
        self.encoder.figures.pages_encoded.increment(1);
        let mut text = Vec::new();
        wire::write_list_piece(codec, self.boundary, self.page.instances(), &mut text);
        text.shrink_to_fit();
        text
    }

    /// Keeps an encoded form if there is room, and if nobody else kept it in the meantime.
    fn keep<T>(&self, cell: &OnceLock<T>, form: T, len: usize) {
        if self.encoder.reserve(len) && cell.set(form).is_err() {
            self.encoder.release(len);
        }
    }
}

impl Drop for EncodedPage {
    fn drop(&mut self) {
        let lens = Codec::ALL
            .into_iter()
            .flat_map(|codec| [false, true].map(|gzip| self.len(codec, gzip).unwrap_or_default()));
        self.encoder.release(lens.sum());
    }
}

/// A short answer and, once somebody asked for it, its compressed form.
#[derive(Debug)]
pub(crate) struct Encoded {
    encoder: Arc<Encoder>,
    text: Bytes,
    packed: OnceLock<Bytes>,
    kept: AtomicUsize,
}

impl Encoded {
    pub(crate) fn new(encoder: &Arc<Encoder>, text: Vec<u8>) -> Self {
        encoder.figures.answers_encoded.increment(1);
        let kept = if encoder.reserve(text.len()) {
            text.len()
        } else {
            0
        };
        Self {
            encoder: Arc::clone(encoder),
            text: text.into(),
            packed: OnceLock::new(),
            kept: AtomicUsize::new(kept),
        }
    }

    pub(crate) fn bytes(&self, gzip: bool) -> Bytes {
        if !gzip {
            return self.text.clone();
        }
        let pack = || {
            let packed = self.encoder.compressors.member(&self.text);
            if self.encoder.reserve(packed.len()) {
                self.kept.fetch_add(packed.len(), Ordering::Relaxed);
            }
            packed
        };
        self.packed.get_or_init(pack).clone()
    }
}

impl Drop for Encoded {
    fn drop(&mut self) {
        self.encoder.release(*self.kept.get_mut());
    }
}

/// The whole list on its way to one reader.
#[derive(Debug)]
pub(crate) struct ListBody {
    listing: Arc<Listing>,
    codec: Codec,
    gzip: bool,
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
            && let Some(page) = self.listing.pages.get(position)
        {
            let missing = page.len(self.codec, self.gzip).is_none();
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

    fn take(&mut self) -> Option<Bytes> {
        let listing = &self.listing;
        match self.next {
            Piece::Head => {
                self.next = Piece::Page(0);
                Some(if self.gzip {
                    listing.packed_head(self.codec)
                } else {
                    listing.plain_ends(self.codec).head.clone()
                })
            }
            Piece::Page(position) => match listing.pages.get(position) {
                Some(page) => {
                    self.next = Piece::Page(position + 1);
                    if !self.gzip {
                        return Some(page.plain(self.codec));
                    }
                    let (segment, len) = page.packed(self.codec);
                    if listing.packed[self.codec as usize].get().is_none() {
                        self.sum.combine(&segment.sum);
                        self.len += len as u64;
                    }
                    Some(segment.bytes)
                }
                None => {
                    self.next = Piece::Done;
                    Some(if self.gzip {
                        listing.packed_tail(self.codec, &self.sum, self.len)
                    } else {
                        listing.plain_ends(self.codec).tail.clone()
                    })
                }
            },
            Piece::Done => None,
        }
    }
}
