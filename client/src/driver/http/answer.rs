//! An answer of HTTP as what came of a call.

use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use eureka_registry_core::wire::{Format, read_applications};
use flate2::read::MultiGzDecoder;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::{clipped, feed, reason};
use crate::call::{Answer, Call};
use crate::driver::clock;

/// Longer answers are read by a thread that may block, and packed ones from a sixteenth of it.
const HEAVY: usize = 256 << 10;
/// A longer tag is not sent back: it would fill the head of each request, and who gave it may be the first to refuse that.
const TAG_MAX: usize = 1_024;
/// Of a body that is not needed, so much is read.
const REST_MAX: usize = 64 << 10;
/// For so long.
const REST_WITHIN: Duration = Duration::from_millis(100);

pub(super) async fn of(call: &Call, response: Response<Incoming>, longest: usize) -> Answer {
    let (head, body) = response.into_parts();
    let reads = call.is_read();
    let answer = match head.status {
        StatusCode::OK if reads => return take(call, head.headers, body, longest).await,
        status if status.is_success() && !reads => match is_page(&head.headers) && !body.is_end_stream() {
            true => Answer::Garbage("a page of HTML, which confirms nothing".into()),
            false => Answer::Done,
        },
        // Nothing was held that could be current if none was named.
        StatusCode::NOT_MODIFIED if matches!(call, Call::Fetch { held: Some(_), .. }) => Answer::Unchanged,
        StatusCode::GONE if matches!(call, Call::Changes { .. }) => Answer::Gone,
        StatusCode::NOT_FOUND => Answer::NotFound,
        status => Answer::Refused {
            status: status.as_u16(),
            retry_after: retry_after(&head.headers),
        },
    };
    // The status has said it all. Read to its end, the connection can be used again; but that is not worth waiting for.
    let rest = Limited::new(body, REST_MAX).collect();
    drop(timeout(REST_WITHIN, rest).await);
    answer
}

async fn take(call: &Call, headers: HeaderMap, body: Incoming, longest: usize) -> Answer {
    let most = u64::try_from(longest).unwrap_or(u64::MAX);
    if body.size_hint().lower() > most {
        return too_long(longest);
    }
    let bytes = match Limited::new(body, longest).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return too_long(longest),
        Err(error) => return Answer::Unreachable(reason(&*error)),
    };
    let packed = headers.contains_key(CONTENT_ENCODING);
    if bytes.len() < if packed { HEAVY / 16 } else { HEAVY } {
        return read(call, &headers, &bytes, longest);
    }
    let call = call.clone();
    let read = spawn_blocking(move || read(&call, &headers, &bytes, longest));
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
            Err(answer) => return answer,
        },
        Some(_) => return Answer::Garbage("the answer is compressed in a way that was not asked for".into()),
    };
    if matches!(call, Call::Changes { .. }) {
        return match feed::read(bytes) {
            Ok(answer) => answer,
            Err(error) => Answer::Garbage(clipped(&format!("no answer of a change feed: {error}"))),
        };
    }
    let Some(format) = format(headers, bytes) else {
        return Answer::Garbage("a page of HTML and no list of applications".into());
    };
    match read_applications(format, bytes) {
        Ok(applications) => Answer::List {
            applications,
            tag: tag(headers),
        },
        Err(error) => Answer::Garbage(clipped(&format!("no list of applications: {error}"))),
    }
}

/// What a body is, by what is said of it or else by its first character; `None` for a page that is for eyes.
fn format(headers: &HeaderMap, bytes: &[u8]) -> Option<Format> {
    if is_page(headers) {
        return None;
    }
    let said = said(headers);
    let begins = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    match (begins, &*said) {
        (_, said) if said.contains("json") => Some(Format::Json),
        (_, said) if said.contains("xml") => Some(Format::Xml),
        (Some(b'<'), _) => Some(Format::Xml),
        (Some(_) | None, _) => Some(Format::Json),
    }
}

/// What somebody answers who is no registry: a gateway's front page, a log-in, at a URL that is not quite right.
fn is_page(headers: &HeaderMap) -> bool {
    said(headers).contains("html")
}

fn said(headers: &HeaderMap) -> String {
    let text = headers.get(CONTENT_TYPE).and_then(|text| text.to_str().ok());
    text.unwrap_or_default().to_ascii_lowercase()
}

fn gunzip(packed: &[u8], longest: usize) -> Result<Vec<u8>, Answer> {
    let mut text = Vec::new();
    let most = u64::try_from(longest).unwrap_or(u64::MAX);
    MultiGzDecoder::new(packed)
        .take(most.saturating_add(1))
        .read_to_end(&mut text)
        .map_err(|error| Answer::Garbage(clipped(&format!("the answer cannot be unpacked: {error}"))))?;
    if text.len() > longest {
        return Err(too_long(longest));
    }
    Ok(text)
}

fn too_long(longest: usize) -> Answer {
    Answer::Garbage(format!("the answer is longer than {longest} bytes"))
}

fn tag(headers: &HeaderMap) -> Option<Arc<str>> {
    let text = headers.get(ETAG)?.to_str().ok()?;
    (1..=TAG_MAX).contains(&text.len()).then(|| text.into())
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
