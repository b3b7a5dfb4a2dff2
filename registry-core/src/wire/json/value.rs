//! A reader of JSON that passes over each byte once: what every reader here is made of.
//!
//! A value is looked at only when its name is known, so unknown ones of any shape and depth cost one scan, and numbers
//! keep the digits they came with. Texts are borrowed from the body unless they have escapes.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use super::text::special;
use crate::wire::DecodeError;

/// Where a value of a document begins. Reading it goes to its end; a copy of it can be read later.
#[derive(Clone, Copy, Debug)]
pub(in crate::wire) struct Value<'a> {
    document: &'a str,
    at: usize,
}

/// The first value of a document. A byte order mark before it and anything behind it are ignored, as by Java.
pub(in crate::wire) fn root(body: &[u8]) -> Result<Value<'_>, DecodeError> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    // What is not UTF-8 is no more of a document than what is not there.
    let document = match std::str::from_utf8(body) {
        Ok(document) => document,
        Err(error) => body.get(..error.valid_up_to()).map_or("", |valid| {
            std::str::from_utf8(valid).expect("it is UTF-8 up to there")
        }),
    };
    let mut value = Value { document, at: 0 };
    value.skip_space();
    match value.peek() {
        Some(_) => Ok(value),
        None => Err(value.malformed()),
    }
}

/// The only value of a document, which has no byte order mark.
pub(in crate::wire) fn whole(body: &[u8]) -> Result<Value<'_>, DecodeError> {
    let value = root(body)?;
    let mut behind = value;
    behind.skip()?;
    behind.skip_space();
    if behind.at < body.len() {
        return Err(behind.malformed());
    }
    Ok(value)
}

/// Calls `each` with every member of the object that is called `name`, in order, repeated names too. What `each` does not
/// read is skipped.
pub(in crate::wire) fn members<'a>(
    name: &str,
    value: &mut Value<'a>,
    mut each: impl FnMut(&str, &mut Value<'a>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    pairs(name, value, |name, value| each(&name, value))
}

/// The same for names that are kept.
pub(super) fn pairs<'a>(
    name: &str,
    value: &mut Value<'a>,
    mut each: impl FnMut(Cow<'a, str>, &mut Value<'a>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    if !value.is_object() {
        value.skip()?;
        return Err(DecodeError::Unexpected(format!("{name} must be an object")));
    }
    if !value.enter(b'}') {
        return Ok(());
    }
    loop {
        let name = value.read_name()?;
        value.read_with(|value| each(name, value))?;
        if !value.goes_on(b'}')? {
            return Ok(());
        }
    }
}

/// Calls `each` with every element of an array, or with the value itself if it is none: Java writes arrays always, others
/// drop them around a single element. `null` has no elements. What `each` does not read is skipped.
pub(in crate::wire) fn elements<'a>(
    value: &mut Value<'a>,
    mut each: impl FnMut(&mut Value<'a>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    if value.is_null() {
        return value.skip();
    }
    if !value.is_array() {
        return value.read_with(each);
    }
    if !value.enter(b']') {
        return Ok(());
    }
    loop {
        value.read_with(&mut each)?;
        if !value.goes_on(b']')? {
            return Ok(());
        }
    }
}

/// The text of a scalar: numbers and booleans as they are spelled, `None` for `null`.
pub(in crate::wire) fn text<'a>(
    name: &str,
    value: &mut Value<'a>,
) -> Result<Option<Cow<'a, str>>, DecodeError> {
    match value.peek() {
        Some(b'"') => value.read_string().map(Some),
        Some(b'{' | b'[') => {
            value.skip()?;
            Err(DecodeError::Unexpected(format!("`{name}` must be text")))
        }
        _ => {
            let spelled = spelled(value)?;
            Ok((spelled != "null").then_some(Cow::Borrowed(spelled)))
        }
    }
}

/// A value as it stands in the document.
pub(in crate::wire) fn spelled<'a>(value: &mut Value<'a>) -> Result<&'a str, DecodeError> {
    let start = value.at;
    value.skip()?;
    Ok(&value.document[start..value.at])
}

/// A whole number, as Java takes it: fractions are cut off, text that is no number is 0, `None` for `null`. What does
/// not fit is refused as a number and 0 as a text.
pub(in crate::wire) fn integer(name: &str, value: &mut Value<'_>) -> Result<Option<i64>, DecodeError> {
    let quoted = value.is_string();
    let Some(spelled) = text(name, value)? else {
        return Ok(None);
    };
    if let Some(number) = digits(&spelled) {
        return Ok(Some(number));
    }
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

/// The number that a few digits are, which is what nearly all of them are.
pub(in crate::wire) fn digits(spelled: &str) -> Option<i64> {
    if spelled.is_empty() || spelled.len() > 18 {
        return None;
    }
    spelled.bytes().try_fold(0, |number: i64, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then(|| number * 10 + i64::from(digit))
    })
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

impl<'a> Value<'a> {
    pub(in crate::wire) fn is_null(&self) -> bool {
        self.document.as_bytes()[self.at..].starts_with(b"null")
    }

    pub(in crate::wire) fn is_array(&self) -> bool {
        self.peek() == Some(b'[')
    }

    pub(in crate::wire) fn is_object(&self) -> bool {
        self.peek() == Some(b'{')
    }

    pub(in crate::wire) fn is_string(&self) -> bool {
        self.peek() == Some(b'"')
    }

    pub(in crate::wire) fn is_number(&self) -> bool {
        matches!(self.peek(), Some(b'-' | b'0'..=b'9'))
    }

    /// Goes to the end of the value, whatever it is and however deep: its syntax is checked without a stack.
    pub(in crate::wire) fn skip(&mut self) -> Result<(), DecodeError> {
        // What ends the arrays and objects that were entered.
        let mut ends = Vec::new();
        loop {
            match self.peek() {
                Some(b'"') => self.skip_string()?,
                Some(b'{') => {
                    if self.enter(b'}') {
                        ends.push(b'}');
                        self.skip_name()?;
                        continue;
                    }
                }
                Some(b'[') => {
                    if self.enter(b']') {
                        ends.push(b']');
                        continue;
                    }
                }
                Some(b't') => self.skip_word("true")?,
                Some(b'f') => self.skip_word("false")?,
                Some(b'n') => self.skip_word("null")?,
                _ => self.skip_number()?,
            }
            loop {
                let Some(end) = ends.last().copied() else {
                    return Ok(());
                };
                if self.goes_on(end)? {
                    if end == b'}' {
                        self.skip_name()?;
                    }
                    break;
                }
                ends.pop();
            }
        }
    }

    /// Reads a value with `read`, or leaves it to be skipped if that fails: it may still be in order as JSON.
    pub(in crate::wire) fn attempt<T, E>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut ahead = *self;
        let result = read(&mut ahead);
        if result.is_ok() {
            *self = ahead;
        }
        result
    }

    /// Reads a value with `each`, or skips it if `each` does not read it.
    fn read_with(
        &mut self,
        each: impl FnOnce(&mut Self) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        let start = self.at;
        each(self)?;
        if self.at == start {
            self.skip()?;
        }
        Ok(())
    }

    /// Goes into an array or object, to what stands first in it; or, if nothing does, past its end: false.
    fn enter(&mut self, end: u8) -> bool {
        self.at += 1;
        self.skip_space();
        let ends = self.peek() == Some(end);
        if ends {
            self.at += 1;
        }
        !ends
    }

    /// Behind a value in an array or object: goes to the next one, or, if there is none, past the end: false.
    fn goes_on(&mut self, end: u8) -> Result<bool, DecodeError> {
        self.skip_space();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                self.skip_space();
                Ok(true)
            }
            Some(byte) if byte == end => {
                self.at += 1;
                Ok(false)
            }
            _ => Err(self.malformed()),
        }
    }

    /// Goes to the value of a member, with its name.
    fn read_name(&mut self) -> Result<Cow<'a, str>, DecodeError> {
        if !self.is_string() {
            return Err(self.malformed());
        }
        let name = self.read_string()?;
        self.skip_colon()?;
        Ok(name)
    }

    fn skip_name(&mut self) -> Result<(), DecodeError> {
        if !self.is_string() {
            return Err(self.malformed());
        }
        self.skip_string()?;
        self.skip_colon()
    }

    fn skip_colon(&mut self) -> Result<(), DecodeError> {
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(self.malformed());
        }
        self.at += 1;
        self.skip_space();
        Ok(())
    }

    fn read_string(&mut self) -> Result<Cow<'a, str>, DecodeError> {
        let start = self.at + 1;
        let end = special(self.document.as_bytes(), start);
        if self.document.as_bytes().get(end) != Some(&b'"') {
            return self.read_escaped();
        }
        self.at = end + 1;
        Ok(Cow::Borrowed(&self.document[start..end]))
    }

    #[cold]
    fn read_escaped(&mut self) -> Result<Cow<'a, str>, DecodeError> {
        let start = self.at;
        self.skip_string()?;
        let unescaped: String = serde_json::from_str(&self.document[start..self.at])
            .map_err(|error| DecodeError::Malformed(format!("not JSON at byte {start}: {error}")))?;
        Ok(Cow::Owned(unescaped))
    }

    fn skip_string(&mut self) -> Result<(), DecodeError> {
        self.at += 1;
        loop {
            self.at = special(self.document.as_bytes(), self.at);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.skip_escape()?;
                }
                _ => return Err(self.malformed()),
            }
        }
    }

    /// Goes past what follows a backslash.
    fn skip_escape(&mut self) -> Result<(), DecodeError> {
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                        return Err(self.malformed());
                    }
                    self.at += 1;
                }
            }
            _ => return Err(self.malformed()),
        }
        Ok(())
    }

    fn skip_word(&mut self, word: &str) -> Result<(), DecodeError> {
        if !self.document.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(self.malformed());
        }
        self.at += word.len();
        Ok(())
    }

    fn skip_number(&mut self) -> Result<(), DecodeError> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        // No digit may follow a zero in front.
        if self.peek() == Some(b'0') {
            self.at += 1;
            if self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                return Err(self.malformed());
            }
        } else {
            self.skip_digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.skip_digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.skip_digits()?;
        }
        Ok(())
    }

    /// Goes past digits, of which there must be one.
    fn skip_digits(&mut self) -> Result<(), DecodeError> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.malformed());
        }
        Ok(())
    }

    /// Encoders for machines leave none.
    #[inline]
    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.document.as_bytes().get(self.at).copied()
    }

    #[cold]
    fn malformed(&self) -> DecodeError {
        let at = self.at;
        DecodeError::Malformed(if at < self.document.len() {
            format!("not JSON: unexpected character at byte {at}")
        } else {
            format!("not JSON: it ends, or is not UTF-8, at byte {at}")
        })
    }
}
