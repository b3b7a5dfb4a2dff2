//! The answer of a peer, whole and unpacked.

use std::io::{Read as _, Write as _};

use bytes::{Bytes, BytesMut};
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use http::header::{CONTENT_ENCODING, HeaderMap};
use http::{Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use tokio::task::spawn_blocking;

use super::HEAVY;
use super::connection::{Lost, describe};

/// Longest answer, as it comes.
const RECEIVED_MAX: usize = 64 << 20;

/// An answer with all of its body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// Unpacked.
    pub(crate) body: Vec<u8>,
}

/// Collects a body; neither what comes nor what it is unpacked to may be too long.
pub(super) async fn collect(response: Response<Incoming>, longest: usize) -> Result<Answer, Lost> {
    let (head, mut body) = response.into_parts();
    let too_long = || Lost::Broken(format!("the answer is longer than {longest} bytes"));
    let received_max = longest.min(RECEIVED_MAX);
    if body.size_hint().lower() > u64::try_from(received_max).unwrap_or(u64::MAX) {
        return Err(too_long());
    }
    let mut received = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Lost::Broken(describe(&error)))?;
        let Some(data) = frame.data_ref() else { continue };
        if received.len() + data.len() > received_max {
            return Err(too_long());
        }
        received.extend_from_slice(data);
    }
    let body = match head.headers.get(CONTENT_ENCODING).map(|value| value.as_bytes()) {
        None | Some(b"" | b"identity") => received.to_vec(),
        Some(_) if received.is_empty() => Vec::new(),
        // What it becomes is not known before.
        Some(b"gzip" | b"x-gzip") if received.len() > HEAVY / 16 => {
            let unpacking = spawn_blocking(move || gunzip(&received, longest)).await;
            unpacking.map_err(|_| Lost::Broken("unpacking the answer went wrong here".into()))??
        }
        Some(b"gzip" | b"x-gzip") => gunzip(&received, longest)?,
        Some(_) => {
            return Err(Lost::Broken(
                "the answer has an encoding that was not asked for".into(),
            ));
        }
    };
    Ok(Answer {
        status: head.status,
        headers: head.headers,
        body,
    })
}

fn gunzip(packed: &[u8], longest: usize) -> Result<Vec<u8>, Lost> {
    let mut body = Vec::with_capacity(packed.len().saturating_mul(4).min(longest));
    let most = u64::try_from(longest).unwrap_or(u64::MAX);
    match MultiGzDecoder::new(packed)
        .take(most.saturating_add(1))
        .read_to_end(&mut body)
    {
        Ok(_) if body.len() > longest => {
            Err(Lost::Broken(format!("the answer is longer than {longest} bytes")))
        }
        Ok(_) => Ok(body),
        Err(error) => Err(Lost::Broken(format!("the answer cannot be unpacked: {error}"))),
    }
}

/// Compresses a body, rather quickly than well.
pub(super) fn gzip(body: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    encoder.write_all(body).expect("writing to memory cannot fail");
    encoder.finish().expect("writing to memory cannot fail").into()
}
