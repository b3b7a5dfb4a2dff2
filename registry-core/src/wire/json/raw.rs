//! JSON values as their text: what every reader here is made of.
//!
//! A value is looked at only when its name is known, so unknown ones of any shape and depth cost one scan, and numbers
//! keep the digits they came with.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize as _, Deserializer};
use serde_json::value::RawValue;

use crate::wire::DecodeError;

/// The text of one value, without space around it.
pub(in crate::wire) type Raw<'a> = &'a RawValue;

/// The first value of a document. A byte order mark before it and anything behind it are ignored, as by Java.
pub(in crate::wire) fn root(body: &[u8]) -> Result<Raw<'_>, DecodeError> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let mut document = serde_json::Deserializer::from_slice(body);
    <&RawValue>::deserialize(&mut document).map_err(|error| malformed(&error))
}

/// The only value of a document.
pub(in crate::wire) fn whole(body: &[u8]) -> Result<Raw<'_>, DecodeError> {
    serde_json::from_slice(body).map_err(|error| malformed(&error))
}

/// Calls `each` with every member of the object that is called `name`, in order, repeated names too.
pub(in crate::wire) fn members<'a>(
    name: &str,
    value: Raw<'a>,
    each: impl FnMut(&str, Raw<'a>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    if !value.get().starts_with('{') {
        return Err(DecodeError::Unexpected(format!("{name} must be an object")));
    }
    let mut refused = None;
    let visitor = Members {
        each,
        refused: &mut refused,
    };
    let result = serde_json::Deserializer::from_str(value.get()).deserialize_map(visitor);
    outcome(result, refused)
}

/// Calls `each` with every element of an array, or with the value itself if it is none: Java writes arrays always, others
/// drop them around a single element. `null` has no elements.
pub(in crate::wire) fn elements<'a>(
    value: Raw<'a>,
    mut each: impl FnMut(Raw<'a>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    if is_null(value) {
        return Ok(());
    }
    if !is_array(value) {
        return each(value);
    }
    let mut refused = None;
    let visitor = Elements {
        each,
        refused: &mut refused,
    };
    let result = serde_json::Deserializer::from_str(value.get()).deserialize_seq(visitor);
    outcome(result, refused)
}

pub(in crate::wire) fn is_null(value: Raw<'_>) -> bool {
    value.get() == "null"
}

pub(in crate::wire) fn is_array(value: Raw<'_>) -> bool {
    value.get().starts_with('[')
}

pub(super) fn is_object(value: Raw<'_>) -> bool {
    value.get().starts_with('{')
}

/// The text of a scalar: numbers and booleans as they are spelled, `None` for `null`.
pub(in crate::wire) fn text<'a>(name: &str, value: Raw<'a>) -> Result<Option<Cow<'a, str>>, DecodeError> {
    let spelled = value.get();
    match spelled.as_bytes().first() {
        Some(b'"') => string(spelled).map(Some),
        Some(b'{' | b'[') => Err(DecodeError::Unexpected(format!("`{name}` must be text"))),
        _ if is_null(value) => Ok(None),
        _ => Ok(Some(Cow::Borrowed(spelled))),
    }
}

/// A whole number, as Java takes it: fractions are cut off, text that is no number is 0, `None` for `null`. What does
/// not fit is refused as a number and 0 as a text.
pub(in crate::wire) fn integer(name: &str, value: Raw<'_>) -> Result<Option<i64>, DecodeError> {
    let Some(spelled) = text(name, value)? else {
        return Ok(None);
    };
    let quoted = value.get().starts_with('"');
    let number = match &*spelled {
        "true" => Some(i64::from(!quoted)),
        "false" => Some(0),
        digits => number(digits.trim()),
    };
    match number {
        None if !quoted => Err(DecodeError::Unexpected(format!("`{name}` is out of range"))),
        number => Ok(Some(number.unwrap_or(0))),
    }
}

/// A number that fits 64 bits, its fraction cut off.
fn number(digits: &str) -> Option<i64> {
    if let Ok(number) = digits.parse() {
        return Some(number);
    }
    let float: f64 = digits.parse().ok()?;
    // 2^63: the first number above those that fit.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    (-LIMIT..LIMIT).contains(&float).then_some(float as i64)
}

fn string(spelled: &str) -> Result<Cow<'_, str>, DecodeError> {
    if spelled.contains('\\') {
        let unescaped: String = serde_json::from_str(spelled).map_err(|error| malformed(&error))?;
        return Ok(Cow::Owned(unescaped));
    }
    Ok(Cow::Borrowed(&spelled[1..spelled.len() - 1]))
}

fn malformed(error: &serde_json::Error) -> DecodeError {
    DecodeError::Malformed(format!("not JSON: {error}"))
}

/// What stopped a visit: the reader's own refusal goes before serde's report of it.
fn outcome(result: Result<(), serde_json::Error>, refused: Option<DecodeError>) -> Result<(), DecodeError> {
    match refused {
        Some(error) => Err(error),
        None => result.map_err(|error| malformed(&error)),
    }
}

struct Members<'r, F> {
    each: F,
    refused: &'r mut Option<DecodeError>,
}

impl<'de, F> Visitor<'de> for Members<'_, F>
where
    F: FnMut(&str, Raw<'de>) -> Result<(), DecodeError>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key_seed(Name)? {
            let value = map.next_value()?;
            if let Err(error) = (self.each)(&name, value) {
                *self.refused = Some(error);
                return Err(serde::de::Error::custom("refused"));
            }
        }
        Ok(())
    }
}

struct Elements<'r, F> {
    each: F,
    refused: &'r mut Option<DecodeError>,
}

impl<'de, F> Visitor<'de> for Elements<'_, F>
where
    F: FnMut(Raw<'de>) -> Result<(), DecodeError>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut sequence: A) -> Result<(), A::Error> {
        while let Some(value) = sequence.next_element()? {
            if let Err(error) = (self.each)(value) {
                *self.refused = Some(error);
                return Err(serde::de::Error::custom("refused"));
            }
        }
        Ok(())
    }
}

/// A member's name, borrowed if it has no escapes.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}
