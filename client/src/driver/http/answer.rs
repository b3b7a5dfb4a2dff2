//! An answer of HTTP as what came of a call.

use std::io::Read as _;
use std::time::Duration;

use bytes::Bytes;
use eureka_registry_core::wire::{Format, read_applications};
use flate2::read::MultiGzDecoder;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;

use super::{clipped, feed, reason};
use crate::call::{Answer, Call};
use crate::driver::clock;

/// Longer answers are unpacked and read by a thread that may block.
const HEAVY: usize = 256 << 10;

pub(super) async fn of(call: &Call, response: Response<Incoming>, longest: usize) -> Answer {
    let (head, body) = response.into_parts();
    let status = head.status;
    let reads = matches!(
        call,
        Call::Fetch { .. } | Call::Delta { .. } | Call::Changes { .. }
    );
    match status {
        status if status.is_success() && reads => {}
        status if status.is_success() => {
            // Nothing is needed of the body; read to its end, the connection can be used again.
            let read = Limited::new(body, HEAVY).collect().await;
            drop(read);
            return Answer::Done;
        }
        StatusCode::NOT_MODIFIED if matches!(call, Call::Fetch { .. }) => return Answer::Unchanged,
        StatusCode::GONE if matches!(call, Call::Changes { .. }) => return Answer::Gone,
        StatusCode::NOT_FOUND => {
            drop(Limited::new(body, HEAVY).collect().await);
            return Answer::NotFound;
        }
        status => {
            return Answer::Refused {
                status: status.as_u16(),
                retry_after: retry_after(&head.headers),
            };
        }
    }
    let bytes = match Limited::new(body, longest).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return Answer::Unreachable(reason(&*error)),
    };
    let call = call.clone();
    if bytes.len() < HEAVY {
        return read(&call, &head.headers, &bytes, longest);
    }
    let read = tokio::task::spawn_blocking(move || read(&call, &head.headers, &bytes, longest));
    read.await
        .unwrap_or_else(|error| Answer::Garbage(clipped(&format!("the answer could not be read: {error}"))))
}

fn read(call: &Call, headers: &HeaderMap, bytes: &Bytes, longest: usize) -> Answer {
    let unpacked;
    let bytes = match headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes) {
        None | Some(b"" | b"identity") => &bytes[..],
        Some(b"gzip" | b"x-gzip") => match gunzip(bytes, longest) {
            Ok(text) => {
                unpacked = text;
                &unpacked[..]
            }
            Err(why) => return Answer::Garbage(clipped(&why)),
        },
        Some(_) => return Answer::Garbage("the answer is compressed in a way that was not asked for".into()),
    };
    if matches!(call, Call::Changes { .. }) {
        return match feed::read(bytes) {
            Ok(answer) => answer,
            Err(error) => Answer::Garbage(clipped(&format!("no answer of a change feed: {error}"))),
        };
    }
    let format = match headers.get(CONTENT_TYPE).and_then(|text| text.to_str().ok()) {
        Some(text) if text.contains("xml") => Format::Xml,
        Some(_) | None => Format::Json,
    };
    match read_applications(format, bytes) {
        Ok(applications) => Answer::List {
            applications,
            tag: tag(headers),
        },
        Err(error) => Answer::Garbage(clipped(&format!("no list of applications: {error}"))),
    }
}

fn gunzip(packed: &[u8], longest: usize) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    let most = u64::try_from(longest).unwrap_or(u64::MAX);
    MultiGzDecoder::new(packed)
        .take(most.saturating_add(1))
        .read_to_end(&mut text)
        .map_err(|error| format!("the answer cannot be unpacked: {error}"))?;
    if text.len() > longest {
        return Err(format!("the answer is longer than {longest} bytes"));
    }
    Ok(text)
}

fn tag(headers: &HeaderMap) -> Option<std::sync::Arc<str>> {
    let text = headers.get(ETAG)?.to_str().ok()?;
    (!text.is_empty()).then(|| text.into())
}

/// Seconds, or a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u32>() {
        return Some(Duration::from_secs(seconds.into()));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    let at = date.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(at.saturating_sub(clock::since_epoch()))
}
