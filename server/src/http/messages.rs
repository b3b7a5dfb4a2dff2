//! Where the messages of a call begin and end in its body.

use std::mem;

/// Every message comes after a byte that tells whether it is compressed and four that tell its length.
const HEAD: usize = 5;
/// Up to this many bytes a message is short.
const SHORT: usize = 16 * 1024;

/// How far the messages of a call have come.
///
/// gRPC makes room for a message as soon as its length is known, and forgets it when it was dealt with. So that is what a
/// call takes of `limits.bodies`, and not all that it ever receives: the stream of a client that keeps its leases alive may go on for
/// months.
#[derive(Debug)]
pub(super) struct Messages {
    /// A longer message is refused by its length alone.
    longest: usize,
    head: [u8; HEAD],
    head_len: usize,
    /// Bytes of the message under way that have not come.
    left: usize,
    /// What the message under way takes, and what those take that have come whole since the last [`taken`](Self::taken).
    under_way: usize,
    whole: usize,
    /// The longest message so far.
    longest_yet: usize,
}

impl Messages {
    /// Nothing has come; `longest` is the length of the longest message that is not refused.
    pub(super) fn new(longest: usize) -> Self {
        Self {
            longest,
            head: [0; HEAD],
            head_len: 0,
            left: 0,
            under_way: 0,
            whole: 0,
            longest_yet: 0,
        }
    }

    /// These bytes came: how many more the messages take.
    pub(super) fn came(&mut self, mut bytes: &[u8]) -> usize {
        let mut more = 0;
        while !bytes.is_empty() {
            if self.head_len < HEAD {
                let part = bytes.len().min(HEAD - self.head_len);
                self.head[self.head_len..self.head_len + part].copy_from_slice(&bytes[..part]);
                self.head_len += part;
                bytes = &bytes[part..];
                if self.head_len == HEAD {
                    more += self.begin();
                }
            } else {
                let part = bytes.len().min(self.left);
                self.left -= part;
                bytes = &bytes[part..];
            }
            if self.head_len == HEAD && self.left == 0 {
                self.head_len = 0;
                self.whole += mem::take(&mut self.under_way);
            }
        }
        more
    }

    fn begin(&mut self) -> usize {
        let [_, a, b, c, d] = self.head;
        self.left = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
        if self.left <= self.longest {
            self.under_way = HEAD + self.left;
            self.longest_yet = self.longest_yet.max(self.under_way);
        }
        self.under_way
    }

    /// What a stream keeps until it ends: room for its longest message, and for the answer to it. Short messages count nothing; as
    /// much has every stream in any case.
    pub(super) fn kept(&self) -> usize {
        if self.longest_yet > SHORT {
            2 * self.longest_yet
        } else {
            0
        }
    }

    /// Whoever reads has dealt with the messages that came whole: how many bytes they took.
    pub(super) fn taken(&mut self) -> usize {
        mem::take(&mut self.whole)
    }

    /// Whether a message has come whole since the last [`taken`](Self::taken).
    pub(super) fn has_whole(&self) -> bool {
        self.whole > 0
    }

    /// Whether a part of a message has come and another has not.
    pub(super) fn is_midway(&self) -> bool {
        self.head_len > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(length: u32) -> Vec<u8> {
        let mut bytes = vec![0];
        bytes.extend(length.to_be_bytes());
        bytes.resize(HEAD + length as usize, 7);
        bytes
    }

    #[test]
    fn a_message_counts_from_its_length_to_its_end() {
        let mut messages = Messages::new(100);
        let bytes = message(100);
        assert_eq!(messages.came(&bytes[..4]), 0);
        assert!(messages.is_midway());
        assert_eq!(
            messages.came(&bytes[4..6]),
            105,
            "all of it, as soon as it is announced"
        );
        assert_eq!(messages.taken(), 0, "it is not whole yet");
        assert_eq!(messages.came(&bytes[6..]), 0);
        assert!(!messages.is_midway());
        assert_eq!((messages.taken(), messages.taken()), (105, 0));
    }

    #[test]
    fn pieces_need_not_end_where_messages_do() {
        let stream: Vec<u8> = [3, 0, 0, 20, 1].into_iter().flat_map(message).collect();
        for piece in 1..=stream.len() {
            let mut messages = Messages::new(100);
            let (mut came, mut taken) = (0, 0);
            for bytes in stream.chunks(piece) {
                came += messages.came(bytes);
                taken += messages.taken();
            }
            assert_eq!((came, taken), (5 * HEAD + 24, 5 * HEAD + 24), "pieces of {piece}");
            assert!(!messages.is_midway(), "pieces of {piece}");
        }
    }

    #[test]
    fn a_stream_keeps_room_for_its_longest_message() {
        let mut messages = Messages::new(100_000);
        let short = u32::try_from(SHORT - HEAD).expect("it is small");
        messages.came(&message(short));
        assert_eq!(messages.kept(), 0);
        messages.came(&message(50_000)[..HEAD]);
        assert_eq!(messages.kept(), 2 * 50_005, "as soon as it is announced");
        messages.came(&message(50_000)[HEAD..]);
        messages.came(&message(20_000));
        assert_eq!(messages.kept(), 2 * 50_005);
        messages.came(&message(100_001));
        assert_eq!(messages.kept(), 2 * 50_005, "that one is refused");
    }

    #[test]
    fn no_room_is_made_for_what_is_too_long() {
        let mut messages = Messages::new(100);
        assert_eq!(messages.came(&[0, 0xff, 0xff, 0xff, 0xff]), 0);
        assert_eq!(messages.came(&[0; 1000]), 0);
        assert!(messages.is_midway());
    }
}
