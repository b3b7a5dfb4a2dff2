//! Encoded answers that are kept for further readers, and how many bytes of them there are.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use eureka_registry_core::Mono;
use eureka_registry_core::wire::{Codec, ListFrame};

use crate::config::Config;
use crate::figures::Figures;
use crate::gzip::Compressors;

/// How long a form of lists is kept that nobody asks for.
const UNUSED: Duration = Duration::from_secs(10 * 60);

/// How a list is encoded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Form {
    pub(crate) codec: Codec,
    pub(crate) gzip: bool,
}

impl Form {
    /// So many there are.
    pub(crate) const COUNT: usize = 2 * Codec::ALL.len();

    /// All of them.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let forms = |codec| [false, true].map(|gzip| Self { codec, gzip });
        Codec::ALL.into_iter().flat_map(forms)
    }

    /// Its place in an array of all.
    pub(crate) const fn index(self) -> usize {
        2 * self.codec as usize + self.gzip as usize
    }
}

/// What lists are made with and where their bytes are counted.
#[derive(Debug)]
pub(crate) struct Encoder {
    pub(crate) compressors: Compressors,
    pub(crate) figures: Figures,
    kept: AtomicUsize,
    limit: usize,
    tell_empty: bool,
    /// By form, the second after that in which it was asked for last, of the registry's clock; 0 for never.
    asked: [AtomicU64; Form::COUNT],
}

impl Encoder {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            compressors: Compressors::new(config.gzip_level),
            figures: Figures::new(),
            kept: AtomicUsize::new(0),
            limit: config.limits.encoded,
            tell_empty: config.tell_empty,
            asked: Default::default(),
        }
    }

    /// Somebody asks for lists in this form.
    pub(crate) fn asked(&self, now: Mono, form: Form) {
        self.asked[form.index()].store(1 + now.0 / 1000, Ordering::Relaxed);
    }

    /// Forms that were asked for once, and not lately.
    pub(crate) fn unused(&self, now: Mono) -> Vec<Form> {
        let is_unused = |form: &Form| {
            let asked = self.asked[form.index()].load(Ordering::Relaxed);
            asked > 0 && (now.0 / 1000).saturating_sub(asked) > UNUSED.as_secs()
        };
        Form::all().filter(is_unused).collect()
    }

    /// What frames a list.
    pub(crate) fn frame<'a>(&self, version: &'a str, hash: &'a str) -> ListFrame<'a> {
        ListFrame {
            version,
            hash,
            tell_empty: self.tell_empty,
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

    /// The same for pages that are not compressed: those that are take a twentieth of their room and much more time to make, and
    /// a quarter of the limit is theirs.
    pub(crate) fn reserve_plain(&self, len: usize) -> bool {
        if !self.leaves(self.limit / 4, len) {
            self.figures.answers_not_kept.increment(1);
            return false;
        }
        self.reserve(len)
    }

    /// Counts bytes that are kept already, in another page.
    pub(crate) fn take_over(&self, len: usize) {
        self.kept.fetch_add(len, Ordering::Relaxed);
        self.figures.encoded_bytes.increment(len as f64);
    }

    /// Whether so much of the limit stays free beside `len` more bytes.
    fn leaves(&self, free: usize, len: usize) -> bool {
        self.kept().saturating_add(len) <= self.limit - free
    }

    /// Room for an answer that is also there in pages: only while half of the limit is free for what is not.
    pub(crate) fn room(self: &Arc<Self>, len: usize) -> Option<Room> {
        let is_free = self.leaves(self.limit - self.limit / 2, len);
        (is_free && self.reserve(len)).then(|| Room {
            encoder: Arc::clone(self),
            len,
        })
    }

    pub(crate) fn release(&self, len: usize) {
        self.kept.fetch_sub(len, Ordering::Relaxed);
        self.figures.encoded_bytes.decrement(len as f64);
    }
}

/// So many bytes that may be kept.
#[derive(Debug)]
pub(crate) struct Room {
    encoder: Arc<Encoder>,
    len: usize,
}

impl Room {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The bytes, which count until the last reader has let go of them.
    pub(crate) fn holding(self, bytes: Vec<u8>) -> Bytes {
        Bytes::from_owner(Holding { bytes, _room: self })
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.encoder.release(self.len);
    }
}

struct Holding {
    bytes: Vec<u8>,
    _room: Room,
}

impl AsRef<[u8]> for Holding {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
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

    /// Whether its bytes are counted: only then may it be kept.
    pub(crate) fn is_counted(&self) -> bool {
        self.kept.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn bytes(&self, gzip: bool) -> Bytes {
        if !gzip {
            return self.text.clone();
        }
        if let Some(packed) = self.packed.get() {
            return packed.clone();
        }
        let packed = self.encoder.compressors.member(&self.text);
        if self.encoder.reserve(packed.len()) {
            match self.packed.set(packed.clone()) {
                Ok(()) => _ = self.kept.fetch_add(packed.len(), Ordering::Relaxed),
                Err(_) => self.encoder.release(packed.len()),
            }
        }
        packed
    }
}

impl Drop for Encoded {
    fn drop(&mut self) {
        self.encoder.release(*self.kept.get_mut());
    }
}
