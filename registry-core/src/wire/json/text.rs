//! Strings and numbers, as Jackson writes them.

use crate::wire::plain;

/// Appends a string with its quotes.
pub(in crate::wire) fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    write_text(text, out);
}

/// Appends `start`, which ends in a member's name, colon and quote, and the rest of the string. In line, so that the
/// compiler knows how long `start` is: to append that takes a few instructions then.
#[inline(always)]
pub(in crate::wire) fn write_member(start: &str, text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(start.as_bytes());
    write_text(text, out);
}

/// The same for a text that we chose, and in which nothing has to be escaped.
#[inline(always)]
pub(super) fn write_word(start: &str, word: &'static str, out: &mut Vec<u8>) {
    out.extend_from_slice(start.as_bytes());
    out.extend_from_slice(word.as_bytes());
    out.push(b'"');
}

/// Appends a text with the quote behind it. Everything but quotes, backslashes and control characters stands for itself.
fn write_text(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    if plain::has(bytes, |byte| (byte < b' ') | (byte == b'"') | (byte == b'\\')) {
        write_escaped(bytes, out);
    } else {
        out.extend_from_slice(bytes);
    }
    out.push(b'"');
}

#[cold]
#[inline(never)]
fn write_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    let mut clean = 0;
    loop {
        let index = special(bytes, clean);
        out.extend_from_slice(&bytes[clean..index]);
        let Some(&byte) = bytes.get(index) else { break };
        let escape = ESCAPES[usize::from(byte)];
        if escape == b'u' {
            let [high, low] = [byte >> 4, byte & 0xf].map(|digit| HEX[usize::from(digit)]);
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
        } else {
            out.extend_from_slice(&[b'\\', escape]);
        }
        clean = index + 1;
    }
}

/// Where the first quote, backslash or control character stands at `from` or behind, or the end: eight bytes at a time.
pub(super) fn special(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        let found = specials(u64::from_le_bytes(*word));
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while bytes.get(at).is_some_and(|&byte| ESCAPES[usize::from(byte)] == 0) {
        at += 1;
    }
    at
}

/// The highest bit of each byte that is a quote, a backslash or a control character. Only the lowest one is to be relied on.
const fn specials(word: u64) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let quote = word ^ (ONES * b'"' as u64);
    let backslash = word ^ (ONES * b'\\' as u64);
    let below_space = word.wrapping_sub(ONES * 0x20) & !word;
    let is_quote = quote.wrapping_sub(ONES) & !quote;
    let is_backslash = backslash.wrapping_sub(ONES) & !backslash;
    (below_space | is_quote | is_backslash) & (ONES << 7)
}

/// Appends a whole number.
pub(in crate::wire) fn write_integer(number: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// What follows the backslash for each byte, 0 for bytes that stand for themselves.
const ESCAPES: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = b'u';
        byte += 1;
    }
    table[0x08] = b'b';
    table[0x09] = b't';
    table[0x0a] = b'n';
    table[0x0c] = b'f';
    table[0x0d] = b'r';
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table
};
