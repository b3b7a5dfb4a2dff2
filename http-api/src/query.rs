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
        self.raw_pairs().map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(key)?, decode(value)?))
        })
    }

    /// The first value of `key`.
    pub(crate) fn get(self, key: &str) -> Result<Option<Cow<'a, str>>, NotUtf8> {
        if self.is_plain() {
            // What nearly everybody sends: nothing but the names has to be looked at.
            let values = self.raw_pairs().filter_map(|pair| pair.strip_prefix(key));
            let mut values = values.filter_map(|rest| {
                if rest.is_empty() {
                    Some("")
                } else {
                    rest.strip_prefix('=')
                }
            });
            return Ok(values.next().map(Cow::Borrowed));
        }
        for pair in self.pairs() {
            let (name, value) = pair?;
            if name == key {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    fn raw_pairs(self) -> impl Iterator<Item = &'a str> {
        let text = self.0;
        let mut begin = 0;
        let ends = memchr::memchr_iter(b'&', text.as_bytes()).chain([text.len()]);
        let pairs = ends.map(move |end| &text[std::mem::replace(&mut begin, end + 1)..end]);
        pairs.filter(|pair| !pair.is_empty())
    }

    /// Whether nothing in it has to be decoded.
    fn is_plain(self) -> bool {
        memchr::memchr2(b'+', b'%', self.0.as_bytes()).is_none()
    }
}

fn decode(text: &str) -> Result<Cow<'_, str>, NotUtf8> {
    if !text.contains(['+', '%']) {
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
        let plain = Query::new(Some("ab=0&flag&a=1&a=2&&e="));
        for (key, value) in [
            ("a", Some("1")),
            ("flag", Some("")),
            ("e", Some("")),
            ("b", None),
            ("", None),
        ] {
            assert_eq!(plain.get(key), Ok(value.map(Into::into)), "{key}");
        }
        assert_eq!(Query::new(Some("k=%ff")).get("k"), Err(NotUtf8));
    }
}
