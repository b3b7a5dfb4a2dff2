//! Where the next page of a list begins, as clients carry it: opaque to them, and no state here.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use eureka_registry_core::InstanceKey;

use crate::refusal::Refusal;

/// The token of the page after this instance.
pub(crate) fn write(last: &InstanceKey) -> String {
    let (app, id) = (last.app(), last.id());
    // Both may have any character: the length tells where one ends.
    BASE64_URL_SAFE_NO_PAD.encode(format!("{}.{app}{id}", app.len()))
}

/// The instance after which a page begins; `None` for the first page.
pub(crate) fn read(token: &str) -> Result<Option<InstanceKey>, Refusal> {
    if token.is_empty() {
        return Ok(None);
    }
    let key = decode(token).filter(|key| write(key) == token);
    match key {
        Some(key) => Ok(Some(key)),
        None => Err(Refusal::field(
            "page_token",
            "expected the next_page_token of another page",
        )),
    }
}

fn decode(token: &str) -> Option<InstanceKey> {
    let text = BASE64_URL_SAFE_NO_PAD.decode(token).ok()?;
    let text = String::from_utf8(text).ok()?;
    let (len, rest) = text.split_once('.')?;
    let (app, id) = rest.split_at_checked(len.parse().ok()?)?;
    Some(InstanceKey::new(app, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_wrote_and_nothing_else() {
        for (app, id) in [("ORDERS", "host-1:8080"), ("A.B/ü", "1.x\0y"), ("", "")] {
            let key = InstanceKey::new(app, id);
            assert_eq!(read(&write(&key)).unwrap(), Some(key));
        }
        let other = |text: &str| BASE64_URL_SAFE_NO_PAD.encode(text);
        for bad in [
            "x",
            "*",
            &other("2.A"),
            &other("+1.Ab"),
            &other("1.ab"),
            &other("A"),
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
