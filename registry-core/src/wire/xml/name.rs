//! Metadata keys as element names, escaped as `XStream`'s friendly coder does.
//!
//! `_` is `__`, `$` is `_-`, and what a name cannot have is `_.` and the four hexadecimal digits of each UTF-16 unit.
//! More is escaped than `XStream` would: a colon (readers that know name spaces refuse an unknown prefix) and letters
//! that only the fifth edition of XML 1.0 allows in names. `XStream` reads these escapes like any other.

use crate::wire::plain;

/// Appends the element name of a key. The empty key has none.
pub(super) fn write_name(key: &str, out: &mut Vec<u8>) {
    if key.starts_with(|first: char| first.is_ascii_alphabetic()) && !plain::has(key.as_bytes(), needs_escape)
    {
        out.extend_from_slice(key.as_bytes());
    } else {
        write_escaped(key, out);
    }
}

/// Whether a byte behind the first one may have to be escaped.
fn needs_escape(byte: u8) -> bool {
    let letter = (byte | 0x20).wrapping_sub(b'a') < 26;
    let digit = byte.wrapping_sub(b'0') < 10;
    !(letter | digit | (byte == b'-') | (byte == b'.'))
}

fn write_escaped(key: &str, out: &mut Vec<u8>) {
    let mut units = [0; 2];
    for (index, c) in key.chars().enumerate() {
        match c {
            '_' => out.extend_from_slice(b"__"),
            '$' => out.extend_from_slice(b"_-"),
            'a'..='z' | 'A'..='Z' => out.push(c as u8),
            '0'..='9' | '-' | '.' if index > 0 => out.push(c as u8),
            c if is_letter(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            c => {
                for unit in c.encode_utf16(&mut units) {
                    out.extend_from_slice(format!("_.{unit:04x}").as_bytes());
                }
            }
        }
    }
}

/// The key of an element name. An underscore that begins no escape stands for itself.
pub(super) fn read_name(name: &str) -> String {
    if !name.contains('_') {
        return name.to_owned();
    }
    let mut units: Vec<u16> = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        let (unit, width) = match rest.as_bytes() {
            [b'_', b'_', ..] => (u16::from(b'_'), 2),
            [b'_', b'-', ..] => (u16::from(b'$'), 2),
            [b'_', b'.', digits @ ..] if let Some(unit) = hexadecimal(digits) => (unit, 6),
            _ => {
                units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
                rest = &rest[c.len_utf8()..];
                continue;
            }
        };
        units.push(unit);
        rest = &rest[width..];
    }
    String::from_utf16_lossy(&units)
}

fn hexadecimal(digits: &[u8]) -> Option<u16> {
    let digits = digits.get(..4)?;
    let mut unit = 0;
    for &digit in digits {
        let value = char::from(digit).to_digit(16)?;
        unit = unit << 4 | u16::try_from(value).ok()?;
    }
    Some(unit)
}

/// Letters beyond ASCII that every edition of XML 1.0 allows anywhere in a name (not all of them).
fn is_letter(c: char) -> bool {
    matches!(u32::from(c),
        0xc0..=0xd6 | 0xd8..=0xf6 | 0xf8..=0x131 | 0x134..=0x13e | 0x141..=0x148 | 0x14a..=0x17e
        | 0x388..=0x38a | 0x38e..=0x3a1 | 0x3a3..=0x3ce
        | 0x401..=0x40c | 0x40e..=0x44f | 0x451..=0x45c | 0x45e..=0x481
        | 0x5d0..=0x5ea | 0x621..=0x63a | 0x641..=0x64a
        | 0x3041..=0x3094 | 0x30a1..=0x30fa | 0x4e00..=0x9fa5 | 0xac00..=0xd7a3)
}

#[cfg(test)]
mod tests {
    use super::{read_name, write_name};

    fn written(key: &str) -> String {
        let mut out = Vec::new();
        write_name(key, &mut out);
        String::from_utf8(out).expect("names are text")
    }

    #[test]
    fn keys_are_escaped_as_recorded_from_java() {
        for (key, name) in [
            ("management.port", "management.port"),
            ("under_score", "under__score"),
            ("x__y", "x____y"),
            ("b$c", "b_-c"),
            ("@d", "_.0040d"),
            ("a b", "a_.0020b"),
            ("1x", "_.0031x"),
            ("<t>", "_.003ct_.003e"),
            ("ключ", "ключ"),
        ] {
            assert_eq!(written(key), name);
            assert_eq!(read_name(name), key);
        }
    }

    #[test]
    fn what_could_break_a_document_is_escaped() {
        assert_eq!(written("a:b"), "a_.003ab");
        assert_eq!(written("-a"), "_.002da");
        assert_eq!(written("\u{0}"), "_.0000");
        assert_eq!(written("😀"), "_.d83d_.de00");
        assert_eq!(read_name("_.d83d_.de00"), "😀");
        assert_eq!(read_name("_.d83dx"), "\u{fffd}x");
    }

    #[test]
    fn single_underscores_stand_for_themselves() {
        for name in ["c_d", "_", "a_", "_.12", "_.zzzz", "_é"] {
            assert_eq!(read_name(name), name);
        }
    }
}
