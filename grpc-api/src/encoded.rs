//! A message that is bytes already: encoded once, sent on many streams.

use bytes::{Buf, BufMut, Bytes};
use prost::encoding::{DecodeContext, WireType, skip_field};
use prost::{DecodeError, Message};

/// An encoded [`WatchResponse`](crate::proto::WatchResponse).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Encoded(Bytes);

impl Encoded {
    /// Encodes a message.
    pub fn new(message: &crate::proto::WatchResponse) -> Self {
        Self(message.encode_to_vec().into())
    }
}

impl Message for Encoded {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        buf.put_slice(&self.0);
    }

    /// Never asked for: it is only sent.
    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        skip_field(wire_type, tag, buf, context)
    }

    fn encoded_len(&self) -> usize {
        self.0.len()
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}
