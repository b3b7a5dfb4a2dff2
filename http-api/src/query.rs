//! The query of a request: form-encoded pairs, the first of equal keys counts.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// The query as it came, without the question mark.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Query<'a>(&'a str);

/// A key or value that is not UTF-8 when decoded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct NotUtf8;

impl<'a> Query<'a> {
    pub(crate) fn new(query: Option<&'a str>) -> Self {
        Self(query.unwrap_or_default())
    }

    /// All pairs, decoded; a key without `=` has an empty value.
    pub(crate) fn pairs(self) -> impl Iterator<Item = Result<(Cow<'a, str>, Cow<'a, str>), NotUtf8>> {
        let mut rest = self.0;
        let pairs = std::iter::from_fn(move || {
            let (pair, others) = cut(rest, b'&');
            let is_end = rest.is_empty();
            rest = others;
            (!is_end).then_some(pair)
        });
        pairs.filter(|pair| !pair.is_empty()).map(|pair| {
            let (key, value) = cut(pair, b'=');
            Ok((decode(key)?, decode(value)?))
        })
    }

    /// The first value of `key`.
    pub(crate) fn get(self, key: &str) -> Result<Option<Cow<'a, str>>, NotUtf8> {
        for pair in self.pairs() {
            let (name, value) = pair?;
            if name == key {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }
}

/// What is before the first such byte, and behind it. By bytes, for a query is short, and the search of `str` is made for long texts.
fn cut(text: &str, at: u8) -> (&str, &str) {
    match text.bytes().position(|byte| byte == at) {
        Some(end) => (&text[..end], &text[end + 1..]),
        None => (text, ""),
    }
}

fn decode(text: &str) -> Result<Cow<'_, str>, NotUtf8> {
    if !text.bytes().any(|byte| matches!(byte, b'+' | b'%')) {
        return Ok(Cow::Borrowed(text));
    }
    let spaced = text.replace('+', " ");
    let decoded = percent_decode_str(&spaced).decode_utf8().map_err(|_| NotUtf8)?;
    Ok(Cow::Owned(decoded.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_decoded_as_forms_are() {
        let query = Query::new(Some("a=1&b=x+y&c=%E2%82%AC%2B&flag&a=2&&e="));
        let pairs: Vec<_> = query.pairs().map(Result::unwrap).collect();
        let expected = [
            ("a", "1"),
            ("b", "x y"),
            ("c", "€+"),
            ("flag", ""),
            ("a", "2"),
            ("e", ""),
        ];
        assert_eq!(pairs.len(), expected.len());
        for ((key, value), (wanted_key, wanted)) in pairs.iter().zip(expected) {
            assert_eq!((&**key, &**value), (wanted_key, wanted));
        }
        assert_eq!(query.get("a"), Ok(Some("1".into())));
        assert_eq!(query.get("z"), Ok(None));
        assert_eq!(Query::new(None).get("a"), Ok(None));
        assert_eq!(Query::new(Some("k=%ff")).get("k"), Err(NotUtf8));
    }
}
