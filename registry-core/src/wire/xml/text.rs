//! Text, elements and indentation, as `XStream` writes them.

use crate::wire::plain;

/// Appends text. Markup and both quotes become entities, a carriage return a reference (a parser would drop it), and
/// what XML 1.0 does not allow at all becomes U+FFFD: Java writes a reference there that no parser takes.
pub(super) fn write_text(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    // Of what is below `(`, quotes, `&` and control characters are special; texts with a blank or one of `!#$%` are looked at
    // again for nothing. To ask for the special ones alone takes half as long again.
    if plain::has(bytes, |byte| {
        (byte < b'(') | (byte == b'<') | (byte == b'>') | (byte == 0xef)
    }) {
        write_escaped(bytes, out);
    } else {
        out.extend_from_slice(bytes);
    }
}

#[cold]
#[inline(never)]
fn write_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    let mut clean = 0;
    let mut index = 0;
    while index < bytes.len() {
        if !SPECIAL[usize::from(bytes[index])] {
            index += 1;
            continue;
        }
        let (replacement, width): (&[u8], usize) = match &bytes[index..] {
            [b'&', ..] => (b"&amp;", 1),
            [b'<', ..] => (b"&lt;", 1),
            [b'>', ..] => (b"&gt;", 1),
            [b'"', ..] => (b"&quot;", 1),
            [b'\'', ..] => (b"&apos;", 1),
            [b'\r', ..] => (b"&#xd;", 1),
            [0xef, 0xbf, 0xbe | 0xbf, ..] => (REPLACEMENT, 3),
            [0xef, ..] => {
                index += 1;
                continue;
            }
            _ => (REPLACEMENT, 1),
        };
        out.extend_from_slice(&bytes[clean..index]);
        out.extend_from_slice(replacement);
        index += width;
        clean = index;
    }
    out.extend_from_slice(&bytes[clean..]);
}

/// The tags of an element as two texts, which the compiler puts together: see [`tag!`].
#[derive(Clone, Copy)]
pub(in crate::wire) struct Tag {
    pub(in crate::wire) start: &'static str,
    pub(in crate::wire) end: &'static str,
}

/// The tags of an element by its name.
macro_rules! tag {
    ($name:literal) => {
        $crate::wire::xml::Tag {
            start: concat!("<", $name, ">"),
            end: concat!("</", $name, ">"),
        }
    };
}
pub(in crate::wire) use tag;

/// Appends `<name>text</name>` on a line of its own.
#[inline(always)]
pub(in crate::wire) fn write_element(level: usize, tag: Tag, text: &str, out: &mut Vec<u8>) {
    end_line(level, out);
    write_inline_element(tag, text, out);
}

/// Appends `<name>text</name>`. In line, so that the lengths of the tags are known.
#[inline(always)]
pub(super) fn write_inline_element(tag: Tag, text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(tag.start.as_bytes());
    write_text(text, out);
    out.extend_from_slice(tag.end.as_bytes());
}

/// The same on a line of its own for a text that we chose, and in which nothing has to be escaped.
#[inline(always)]
pub(super) fn write_word(level: usize, tag: Tag, word: &'static str, out: &mut Vec<u8>) {
    end_line(level, out);
    out.extend_from_slice(tag.start.as_bytes());
    out.extend_from_slice(word.as_bytes());
    out.extend_from_slice(tag.end.as_bytes());
}

/// Appends `<name>text</name>` where the name is not known before.
pub(in crate::wire) fn write_named_element(name: &str, text: &str, out: &mut Vec<u8>) {
    write_tag(b"<", name, out);
    write_text(text, out);
    write_tag(b"</", name, out);
}

/// Appends `<name>` or, with `</` before it, its end.
pub(in crate::wire) fn write_tag(start: &[u8], name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(start);
    out.extend_from_slice(name.as_bytes());
    out.push(b'>');
}

/// Appends a line break and two blanks per level, of which there are at most seven.
#[inline(always)]
pub(in crate::wire) fn end_line(level: usize, out: &mut Vec<u8>) {
    // A known number of bytes, of which some are taken back, is quicker than a number that has to be looked at.
    const BREAK: &[u8; 16] = b"\n               ";
    debug_assert!(2 * level < BREAK.len(), "level {level}");
    let start = out.len();
    out.extend_from_slice(BREAK);
    out.truncate(start + 1 + 2 * level);
}

/// U+FFFD
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// Bytes that need a look: markup, quotes, control characters but tab and line feed, and the first byte of U+FFFE.
const SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = true;
        byte += 1;
    }
    table[b'\t' as usize] = false;
    table[b'\n' as usize] = false;
    table[b'&' as usize] = true;
    table[b'<' as usize] = true;
    table[b'>' as usize] = true;
    table[b'"' as usize] = true;
    table[b'\'' as usize] = true;
    table[0xef] = true;
    table
};
