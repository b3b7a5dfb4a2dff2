//! Strings and numbers, as Jackson writes them.

/// Appends a string with its quotes. Everything but quotes, backslashes and control characters stands for itself.
pub(in crate::wire) fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut clean = 0;
    for (index, &byte) in bytes.iter().enumerate() {
        let escape = ESCAPES[usize::from(byte)];
        if escape == 0 {
            continue;
        }
        out.extend_from_slice(&bytes[clean..index]);
        clean = index + 1;
        if escape == b'u' {
            let [high, low] = [byte >> 4, byte & 0xf].map(|digit| HEX[usize::from(digit)]);
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
        } else {
            out.extend_from_slice(&[b'\\', escape]);
        }
    }
    out.extend_from_slice(&bytes[clean..]);
    out.push(b'"');
}

/// Appends `start`, which ends in a member's name and colon, and the string.
pub(in crate::wire) fn write_member(start: &str, text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(start.as_bytes());
    write_string(text, out);
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
