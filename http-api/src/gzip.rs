//! gzip members put together from segments that were compressed at different times.
//!
//! A segment is raw deflate without a final block that ends on a byte boundary and refers to nothing before it, so any
//! sequence of segments is a valid stream. Its checksum is joined with the others' without looking at the bytes again.

use std::io::{self, Read as _};

use bytes::Bytes;
use crc32fast::Hasher;
use flate2::read::MultiGzDecoder;
use flate2::{Compress, Compression, FlushCompress};
use parking_lot::Mutex;

/// What a member begins with: deflate, no name, no time, unknown system.
pub(crate) const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// Bytes of the final block and the trailer.
pub(crate) const END_LEN: usize = 10;

/// An empty final block.
const FINAL_BLOCK: [u8; 2] = [0x03, 0x00];

/// Compressors kept for the next page: a few hundred KiB each.
const MAX_IDLE: usize = 8;

/// Text in compressed form.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// Raw deflate.
    pub(crate) bytes: Bytes,
    /// Checksum and length of the text.
    pub(crate) sum: Hasher,
}

/// Makes segments.
#[derive(Debug)]
pub(crate) struct Compressors {
    level: Compression,
    idle: Mutex<Vec<Compress>>,
}

impl Compressors {
    /// Compressors of a level, 0 to 9.
    pub(crate) fn new(level: u32) -> Self {
        Self {
            level: Compression::new(level.min(9)),
            idle: Mutex::default(),
        }
    }

    /// Compresses `text`.
    pub(crate) fn segment(&self, text: &[u8]) -> Segment {
        let mut compress = self
            .idle
            .lock()
            .pop()
            .unwrap_or_else(|| Compress::new(self.level, false));
        let mut out = Vec::with_capacity(text.len() / 4 + 64);
        loop {
            let done = usize::try_from(compress.total_in()).unwrap_or(text.len());
            compress
                .compress_vec(&text[done..], &mut out, FlushCompress::Full)
                .expect("deflate cannot fail on bytes in memory");
            if compress.total_in() == text.len() as u64 && out.len() < out.capacity() {
                break;
            }
            out.reserve(out.capacity().max(256));
        }
        compress.reset();
        let mut idle = self.idle.lock();
        if idle.len() < MAX_IDLE {
            idle.push(compress);
        }
        out.shrink_to_fit();
        Segment {
            bytes: out.into(),
            sum: sum(text),
        }
    }

    /// A whole member.
    pub(crate) fn member(&self, text: &[u8]) -> Bytes {
        let segment = self.segment(text);
        let mut out = Vec::with_capacity(HEADER.len() + segment.bytes.len() + END_LEN);
        out.extend_from_slice(&HEADER);
        out.extend_from_slice(&segment.bytes);
        write_end(segment.sum, text.len() as u64, &mut out);
        out.into()
    }
}

/// Appends `text` (at most 65,535 bytes of it) as a segment that is not compressed.
pub(crate) fn write_stored(text: &[u8], out: &mut Vec<u8>) {
    for chunk in text.chunks(usize::from(u16::MAX)) {
        let len = u16::try_from(chunk.len()).unwrap_or(u16::MAX);
        out.push(0);
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&(!len).to_le_bytes());
        out.extend_from_slice(chunk);
    }
}

/// Appends what a member ends with, `len` being the length of the whole text.
pub(crate) fn write_end(sum: Hasher, len: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&FINAL_BLOCK);
    out.extend_from_slice(&sum.finalize().to_le_bytes());
    // The format wants the length modulo 2^32.
    out.extend_from_slice(&(len as u32).to_le_bytes());
}

/// The checksum of `text`, ready to be combined.
pub(crate) fn sum(text: &[u8]) -> Hasher {
    let mut sum = Hasher::new();
    sum.update(text);
    sum
}

/// Unpacks a request's body; `Ok(None)` if it is longer than `limit`.
pub(crate) fn unpack(packed: &[u8], limit: usize) -> io::Result<Option<Vec<u8>>> {
    let mut text = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    MultiGzDecoder::new(packed).take(most).read_to_end(&mut text)?;
    Ok((text.len() <= limit).then_some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_of_any_origin_join() {
        let long = "registration ".repeat(20_000);
        let texts = ["head{", &long, "", "x", &long[..70_000], "}tail"];
        for level in [0, 1, 4, 9] {
            let compressors = Compressors::new(level);
            let mut member = HEADER.to_vec();
            let mut all = Hasher::new();
            for (position, text) in texts.iter().enumerate() {
                if position == 0 || position == 4 {
                    write_stored(text.as_bytes(), &mut member);
                    all.combine(&sum(text.as_bytes()));
                } else {
                    let segment = compressors.segment(text.as_bytes());
                    member.extend_from_slice(&segment.bytes);
                    all.combine(&segment.sum);
                }
            }
            let text = texts.concat();
            write_end(all, text.len() as u64, &mut member);
            let unpacked = unpack(&member, text.len()).unwrap().expect("within the limit");
            assert_eq!(unpacked, text.as_bytes(), "level {level}");
        }
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        let member = Compressors::new(9).member(&vec![b' '; 4 << 20]);
        assert!(member.len() < 16 << 10);
        assert_eq!(unpack(&member, 1 << 20).unwrap(), None);
        assert_eq!(
            unpack(&member, 4 << 20).unwrap().map(|text| text.len()),
            Some(4 << 20)
        );
    }

    #[test]
    fn damage_is_an_error() {
        let mut member = Compressors::new(4).member(b"some text").to_vec();
        let checksum = member.len() - 6;
        member[checksum] ^= 1;
        assert!(unpack(&member, 100).is_err());
        assert!(unpack(b"not gzip", 100).is_err());
    }
}
