//! Texts in which nothing has to be escaped: almost all are, so they are found out at once and copied whole.

/// So many bytes are looked at together.
const BLOCK: usize = 16;

/// Whether `special` holds for any of the bytes. It must be a condition that can be computed without branches: then a
/// block takes a few vector instructions.
#[inline(always)]
pub(super) fn has(bytes: &[u8], special: impl Fn(u8) -> bool + Copy) -> bool {
    let Some(last) = bytes.last_chunk::<BLOCK>() else {
        return short_has(bytes, special);
    };
    // What is behind the last whole block is in this one, with some bytes twice.
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    blocks.iter().any(|block| block_has(block, special)) || block_has(last, special)
}

/// The same for less than a block: as two halves that overlap.
#[inline(always)]
fn short_has(bytes: &[u8], special: impl Fn(u8) -> bool + Copy) -> bool {
    if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        block_has(first, special) | block_has(last, special)
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        block_has(first, special) | block_has(last, special)
    } else {
        bytes.iter().any(|&byte| special(byte))
    }
}

#[inline(always)]
fn block_has<const N: usize>(block: &[u8; N], special: impl Fn(u8) -> bool) -> bool {
    block.iter().fold(false, |found, &byte| found | special(byte))
}

#[cfg(test)]
mod tests {
    use super::has;

    #[test]
    fn a_special_byte_is_found_wherever_it_stands() {
        for len in 0..70 {
            let mut bytes = vec![b'a'; len];
            assert!(!has(&bytes, |byte| byte == b'"'), "{len}");
            for place in 0..len {
                bytes[place] = b'"';
                assert!(has(&bytes, |byte| byte == b'"'), "{place} of {len}");
                bytes[place] = b'a';
            }
        }
    }
}
