//! What can be wrong with a gRPC server, each fault as a change of messages on their way, and the step that must name it.

use bytes::Bytes;

/// A fault and the step that must name it.
pub(crate) struct Fault {
    pub(super) name: &'static str,
    pub(super) caught_by: &'static str,
    /// Which method it is about; all if empty.
    pub(super) method: &'static str,
    pub(super) plant: Plant,
}

/// What is done to the messages; `None` drops one.
pub(super) enum Plant {
    /// Each message of a request is answered with this one, and reaches nobody.
    Answered(&'static [u8]),
    Requests(fn(&[u8]) -> Option<Bytes>),
    Responses(fn(&[u8]) -> Option<Bytes>),
    /// Errors say no more than their code.
    BareErrors,
}

pub(crate) const ALL: &[Fault] = &[
    Fault {
        name: "a registration that is not kept",
        caught_by: "registers and is seen UP",
        method: "Register",
        plant: Plant::Answered(b""),
    },
    Fault {
        name: "renewals that reach nobody",
        caught_by: "keeps its lease by the stream alone",
        method: "KeepAlive",
        plant: Plant::Answered(ALL_RENEWED),
    },
    Fault {
        name: "a change left out",
        caught_by: "watches: a snapshot, then its own change",
        method: "Watch",
        plant: Plant::Responses(without_changes),
    },
    Fault {
        name: "a status that is not set",
        caught_by: "sets a status and clears it",
        method: "SetStatus",
        plant: Plant::Answered(b""),
    },
    Fault {
        name: "a forgotten cursor",
        caught_by: "goes on where it was",
        method: "Watch",
        plant: Plant::Requests(without_cursor),
    },
    Fault {
        name: "errors without details",
        caught_by: "says what is wrong",
        method: "",
        plant: Plant::BareErrors,
    },
    Fault {
        name: "a lost lease told as renewed",
        caught_by: "registers again when told to",
        method: "KeepAlive",
        plant: Plant::Responses(|_| Some(Bytes::from_static(ALL_RENEWED))),
    },
    Fault {
        name: "a cancel that is not done",
        caught_by: "leaves",
        method: "Cancel",
        plant: Plant::Answered(b""),
    },
];

/// `KeepAliveResponse { results: [RenewalResult { outcome: RENEWED }] }`.
const ALL_RENEWED: &[u8] = &[0x0a, 2, 0x18, 1];

/// Field numbers of the messages of `Watch`.
const REQUEST_CURSOR: u64 = 1;
const RESPONSE_CHANGE: u64 = 5;

fn without_changes(response: &[u8]) -> Option<Bytes> {
    let is_change = fields(response).any(|(number, _)| number == RESPONSE_CHANGE);
    (!is_change).then(|| Bytes::copy_from_slice(response))
}

fn without_cursor(request: &[u8]) -> Option<Bytes> {
    let kept = fields(request).filter(|(number, _)| *number != REQUEST_CURSOR);
    Some(kept.flat_map(|(_, bytes)| bytes.iter().copied()).collect())
}

/// The fields of a message in which all have a length, as those of `Watch` do: number, and bytes with their key.
fn fields(mut message: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    std::iter::from_fn(move || {
        let whole = message;
        let key = varint(&mut message)?;
        let length = usize::try_from(varint(&mut message)?).ok()?;
        message = message.get(length..)?;
        Some((key >> 3, &whole[..whole.len() - message.len()]))
    })
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_and_changes_are_found_in_messages() {
        // cursor "ab", filter "c".
        let request = [0x0a, 2, b'a', b'b', 0x12, 1, b'c'];
        assert_eq!(without_cursor(&request).unwrap()[..], request[4..]);
        // cursor "ab" and a heartbeat; the same and a change of 130 bytes.
        let heartbeat = [0x0a, 2, b'a', b'b', 0x32, 0];
        assert_eq!(without_changes(&heartbeat).unwrap()[..], heartbeat);
        let mut change = vec![0x0a, 2, b'a', b'b', 0x2a, 0x82, 0x01];
        change.extend([0; 130]);
        assert_eq!(without_changes(&change), None);
    }
}
