//! A pull reader over one XML document: no DTD, no entities beyond the five, bounded depth.

use std::borrow::Cow;

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use crate::wire::{DecodeError, Dialect};

/// Elements inside each other; a list has six.
const DEPTH: u32 = 64;

/// Stands inside an element: behind its start tag, or behind the end of one of its children.
pub(super) struct Cursor<'a> {
    reader: Reader<&'a [u8]>,
    dialect: Dialect,
    depth: u32,
}

/// What a document consists of here.
enum Step<'a> {
    Start(Element<'a>),
    End,
    Text(Cow<'a, str>),
}

/// A start tag.
pub(super) struct Element<'a>(BytesStart<'a>);

impl Element<'_> {
    pub(super) fn name(&self) -> &str {
        self.0.name().0
    }

    /// The value of an attribute.
    pub(super) fn attribute(&self, name: &str) -> Result<Option<String>, DecodeError> {
        let mut attributes = self.0.attributes();
        attributes.with_checks(false);
        for attribute in attributes {
            let attribute = attribute.map_err(|error| malformed(&error))?;
            if attribute.key.0 == name {
                let value = attribute
                    .normalized_value(XmlVersion::Implicit1_0)
                    .map_err(|error| malformed(&error))?;
                return Ok(Some(value.into_owned()));
            }
        }
        Ok(None)
    }
}

impl<'a> Cursor<'a> {
    pub(super) fn new(body: &'a [u8], dialect: Dialect) -> Result<Self, DecodeError> {
        let text = std::str::from_utf8(body).map_err(|error| malformed(&error))?;
        if dialect == Dialect::Java && !text.chars().all(is_allowed) {
            return Err(DecodeError::Malformed(
                "not XML: a character that it does not allow".into(),
            ));
        }
        let mut reader = Reader::from_str(text.strip_prefix('\u{feff}').unwrap_or(text));
        reader.config_mut().expand_empty_elements = true;
        Ok(Self {
            reader,
            dialect,
            depth: 0,
        })
    }

    pub(super) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Goes into the root element.
    pub(super) fn root(&mut self) -> Result<Element<'a>, DecodeError> {
        loop {
            match self.step()? {
                Step::Start(element) => return Ok(element),
                Step::Text(text) if text.trim().is_empty() => {}
                Step::End | Step::Text(_) => {
                    return Err(DecodeError::Malformed("not XML: text before the root".into()));
                }
            }
        }
    }

    /// Goes into the next child, or out of the element if there is none.
    pub(super) fn next_child(&mut self) -> Result<Option<Element<'a>>, DecodeError> {
        loop {
            match self.step()? {
                Step::Start(element) => return Ok(Some(element)),
                Step::End => return Ok(None),
                Step::Text(_) => {}
            }
        }
    }

    /// Goes out of the element, with its own text.
    pub(super) fn text(&mut self) -> Result<String, DecodeError> {
        let mut content = String::new();
        loop {
            match self.step()? {
                Step::Text(text) => content.push_str(&text),
                Step::Start(_) => self.skip()?,
                Step::End => return Ok(content),
            }
        }
    }

    /// Goes out of the element.
    pub(super) fn skip(&mut self) -> Result<(), DecodeError> {
        let outside = self.depth - 1;
        while self.depth > outside {
            self.step()?;
        }
        Ok(())
    }

    /// The next thing that means something.
    fn step(&mut self) -> Result<Step<'a>, DecodeError> {
        loop {
            match self.reader.read_event().map_err(|error| malformed(&error))? {
                Event::Start(_) if self.depth == DEPTH => return Err(DecodeError::TooComplex),
                Event::Start(start) => {
                    self.depth += 1;
                    return Ok(Step::Start(Element(start)));
                }
                Event::End(_) => {
                    self.depth -= 1;
                    return Ok(Step::End);
                }
                Event::Text(text) => return Ok(Step::Text(text.xml10_content())),
                Event::CData(text) => return Ok(Step::Text(text.xml10_content())),
                Event::GeneralRef(reference) => {
                    let character = self.character(&reference.into_inner())?;
                    return Ok(Step::Text(Cow::Owned(character.into())));
                }
                Event::DocType(_) => {
                    return Err(DecodeError::Unexpected("a DOCTYPE is not allowed".into()));
                }
                Event::Eof => {
                    return Err(DecodeError::Malformed("not XML: it ends too early".into()));
                }
                // The reader makes two events of an empty element.
                Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            }
        }
    }

    /// The character of a reference: one of the five entities, or a number. Numbers that XML does not allow are refused
    /// under Java's rules; Java's own encoder writes them.
    fn character(&self, reference: &str) -> Result<char, DecodeError> {
        let number = match reference {
            "amp" => return Ok('&'),
            "lt" => return Ok('<'),
            "gt" => return Ok('>'),
            "quot" => return Ok('"'),
            "apos" => return Ok('\''),
            _ => match reference.strip_prefix('#') {
                Some(number) => number,
                None => {
                    let text = format!("unknown entity `{reference}`");
                    return Err(DecodeError::Unexpected(text));
                }
            },
        };
        let code = match number.strip_prefix('x') {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => number.parse(),
        };
        match code.ok().and_then(char::from_u32) {
            Some(c) if self.dialect == Dialect::Lenient || is_allowed(c) => Ok(c),
            Some(_) | None => Err(DecodeError::Malformed(format!(
                "not XML: bad reference `{reference}`"
            ))),
        }
    }
}

/// What XML 1.0 allows in a document.
fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..)
}

fn malformed(error: &dyn std::error::Error) -> DecodeError {
    DecodeError::Malformed(format!("not XML: {error}"))
}
