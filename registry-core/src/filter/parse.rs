//! Text to expression, by recursive descent.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use super::{Expression, Field, FilterError, MAX_DEPTH, MAX_LEN, Pattern, Test};
use crate::model::{Status, upper};

pub(super) fn parse(text: &str) -> Result<Expression, FilterError> {
    if text.len() > MAX_LEN {
        return Err(FilterError::TooLong { len: text.len() });
    }
    let mut parser = Parser {
        text,
        at: 0,
        depth: 0,
    };
    let expression = parser.any()?;
    match parser.peek()? {
        None => Ok(expression),
        Some(token) => Err(parser.unexpected(&token, "`&&`, `||` or the end")),
    }
}

struct Parser<'a> {
    text: &'a str,
    /// Where the next token or white space begins.
    at: usize,
    depth: usize,
}

struct Token<'a> {
    kind: Kind<'a>,
    begin: usize,
    end: usize,
}

#[derive(PartialEq)]
enum Kind<'a> {
    Word(&'a str),
    Text(Cow<'a, str>),
    /// An operator or parenthesis.
    Mark(&'a str),
}

impl<'a> Parser<'a> {
    fn any(&mut self) -> Result<Expression, FilterError> {
        let mut terms = vec![self.all()?];
        while self.take("||")? {
            terms.push(self.all()?);
        }
        Ok(combine(terms, Expression::Any))
    }

    fn all(&mut self) -> Result<Expression, FilterError> {
        let mut terms = vec![self.term()?];
        while self.take("&&")? {
            terms.push(self.term()?);
        }
        Ok(combine(terms, Expression::All))
    }

    fn term(&mut self) -> Result<Expression, FilterError> {
        let begin = self.begin();
        if self.take("!")? {
            self.nested(begin, |parser| {
                parser.term().map(|term| Expression::Not(Box::new(term)))
            })
        } else if self.take("(")? {
            self.nested(begin, |parser| {
                let expression = parser.any()?;
                parser.want(")", "`&&`, `||` or `)`")?;
                Ok(expression)
            })
        } else {
            self.comparison()
        }
    }

    fn nested(
        &mut self,
        at: usize,
        inner: impl FnOnce(&mut Self) -> Result<Expression, FilterError>,
    ) -> Result<Expression, FilterError> {
        if self.depth == MAX_DEPTH {
            return Err(FilterError::TooDeep { at });
        }
        self.depth += 1;
        let expression = inner(self);
        self.depth -= 1;
        expression
    }

    fn comparison(&mut self) -> Result<Expression, FilterError> {
        const OPERATORS: &str = "`==`, `!=`, `~` or `in`";
        let field = self.field()?;
        let operator = self.next(OPERATORS)?;
        let test = match operator.kind {
            Kind::Mark("==") => Test::In(vec![self.value(&field)?]),
            Kind::Mark("!=") => Test::NotIn(vec![self.value(&field)?]),
            Kind::Mark("~") => Test::Like(Pattern::new(&self.pattern(&field)?)),
            Kind::Word("in") => Test::In(self.values(&field)?),
            Kind::Mark(_) | Kind::Word(_) | Kind::Text(_) => {
                return Err(self.unexpected(&operator, OPERATORS));
            }
        };
        Ok(Expression::Compare(field, test))
    }

    fn field(&mut self) -> Result<Field, FilterError> {
        const EXPECTED: &str = "a field, `!` or `(`";
        let token = self.next(EXPECTED)?;
        let Kind::Word(name) = token.kind else {
            return Err(self.unexpected(&token, EXPECTED));
        };
        if let Some(field) = Field::named(name) {
            return Ok(field);
        }
        match name.strip_prefix("metadata.") {
            Some("") => self.quoted_key(),
            Some(key) => Ok(Field::Metadata(Arc::from(key))),
            None => Err(FilterError::UnknownField {
                at: token.begin,
                name: String::from(name),
            }),
        }
    }

    /// The key after `metadata.`, which only quotes can hold.
    fn quoted_key(&mut self) -> Result<Field, FilterError> {
        const EXPECTED: &str = "a metadata key";
        let token = self.next(EXPECTED)?;
        match token.kind {
            Kind::Text(key) => Ok(Field::Metadata(Arc::from(key))),
            Kind::Word(_) | Kind::Mark(_) => Err(self.unexpected(&token, EXPECTED)),
        }
    }

    fn values(&mut self, field: &Field) -> Result<Vec<Arc<str>>, FilterError> {
        self.want("(", "`(`")?;
        let mut values = vec![self.value(field)?];
        while self.take(",")? {
            values.push(self.value(field)?);
        }
        self.want(")", "`,` or `)`")?;
        Ok(values)
    }

    fn value(&mut self, field: &Field) -> Result<Arc<str>, FilterError> {
        let at = self.begin();
        let value = self.pattern(field)?;
        let is_status = matches!(field, Field::Status | Field::Override);
        if is_status && Status::parse(&value).is_none() {
            let name = String::from(&*value);
            return Err(FilterError::UnknownStatus { at, name });
        }
        Ok(value)
    }

    fn pattern(&mut self, field: &Field) -> Result<Arc<str>, FilterError> {
        const EXPECTED: &str = "a value";
        let token = self.next(EXPECTED)?;
        let value: &str = match &token.kind {
            Kind::Word(word) => word,
            Kind::Text(text) => text,
            Kind::Mark(_) => return Err(self.unexpected(&token, EXPECTED)),
        };
        Ok(if *field == Field::App {
            upper(value)
        } else {
            Arc::from(value)
        })
    }

    fn take(&mut self, mark: &str) -> Result<bool, FilterError> {
        let Some(token) = self.peek()? else {
            return Ok(false);
        };
        let found = token.kind == Kind::Mark(mark);
        if found {
            self.at = token.end;
        }
        Ok(found)
    }

    fn want(&mut self, mark: &str, expected: &'static str) -> Result<(), FilterError> {
        let token = self.next(expected)?;
        if token.kind == Kind::Mark(mark) {
            Ok(())
        } else {
            Err(self.unexpected(&token, expected))
        }
    }

    fn next(&mut self, expected: &'static str) -> Result<Token<'a>, FilterError> {
        let Some(token) = self.peek()? else {
            return Err(FilterError::Unexpected {
                at: self.text.len(),
                expected,
                found: String::new(),
            });
        };
        self.at = token.end;
        Ok(token)
    }

    fn unexpected(&self, token: &Token<'_>, expected: &'static str) -> FilterError {
        FilterError::Unexpected {
            at: token.begin,
            expected,
            found: String::from(&self.text[token.begin..token.end]),
        }
    }

    fn begin(&mut self) -> usize {
        self.skip_white();
        self.at
    }

    fn skip_white(&mut self) {
        self.at = self.text.len() - self.text[self.at..].trim_start().len();
    }

    /// The next token, left in place.
    fn peek(&mut self) -> Result<Option<Token<'a>>, FilterError> {
        self.skip_white();
        let begin = self.at;
        let rest = &self.text[begin..];
        let Some(first) = rest.chars().next() else {
            return Ok(None);
        };
        if first == '"' {
            return self.text_token(begin).map(Some);
        }
        let len = if is_mark(first) {
            let two = ["==", "!=", "&&", "||"].iter().any(|mark| rest.starts_with(mark));
            1 + usize::from(two)
        } else {
            let end = rest.find(|c: char| c.is_whitespace() || c == '"' || is_mark(c));
            end.unwrap_or(rest.len())
        };
        let token = &rest[..len];
        let kind = if is_mark(first) {
            Kind::Mark(token)
        } else {
            Kind::Word(token)
        };
        Ok(Some(Token {
            kind,
            begin,
            end: begin + len,
        }))
    }

    fn text_token(&self, begin: usize) -> Result<Token<'a>, FilterError> {
        let inside = &self.text[begin + 1..];
        let mut plain = Cow::Borrowed("");
        let mut copied = 0;
        let mut chars = inside.char_indices();
        while let Some((index, c)) = chars.next() {
            match c {
                '"' => {
                    plain += &inside[copied..index];
                    let end = begin + 1 + index + 1;
                    let kind = Kind::Text(plain);
                    return Ok(Token { kind, begin, end });
                }
                '\\' => {
                    plain += &inside[copied..index];
                    copied = index + 1;
                    if !matches!(chars.next(), Some((_, '"' | '\\'))) {
                        return Err(FilterError::BadEscape {
                            at: begin + 1 + index,
                        });
                    }
                }
                _ => {}
            }
        }
        Err(FilterError::OpenText { at: begin })
    }
}

/// One term stands for itself.
fn combine(mut terms: Vec<Expression>, many: fn(Vec<Expression>) -> Expression) -> Expression {
    if terms.len() == 1 {
        terms.swap_remove(0)
    } else {
        many(terms)
    }
}

/// What neither words nor texts begin with.
fn is_mark(c: char) -> bool {
    matches!(c, '(' | ')' | '!' | '=' | '&' | '|' | '~' | ',')
}
