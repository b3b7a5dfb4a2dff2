//! HTML that is put together piece by piece. Text of strangers goes through [`Html::text`], which escapes it.

use std::fmt::{Display, Write as _};

/// A page in the making.
#[derive(Debug, Default)]
pub(super) struct Html(String);

impl Html {
    /// Appends markup of ours.
    pub(super) fn raw(&mut self, markup: &'static str) {
        self.0.push_str(markup);
    }

    /// Appends anybody's text, escaped for elements and for attributes in double quotes.
    pub(super) fn text(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                // Control characters and marks that turn the direction of text could make one name look like another.
                c if c.is_control()
                    || ('\u{202a}'..='\u{202e}').contains(&c)
                    || ('\u{2066}'..='\u{2069}').contains(&c) =>
                {
                    self.0.push('\u{fffd}');
                }
                c => self.0.push(c),
            }
        }
    }

    /// Appends a number.
    pub(super) fn number(&mut self, number: impl Display + Copy + Into<u64>) {
        write!(self.0, "{number}").expect("writing to a string cannot fail");
    }

    /// Appends a link if the address is one of the web; otherwise the label alone.
    pub(super) fn link(&mut self, address: Option<&str>, label: &str) {
        let address = address.filter(|address| {
            let start = address.get(..8).unwrap_or(address).to_ascii_lowercase();
            start.starts_with("http://") || start.starts_with("https://")
        });
        let Some(address) = address else {
            return self.text(label);
        };
        self.raw("<a rel=\"noopener noreferrer nofollow\" href=\"");
        self.text(address);
        self.raw("\">");
        self.text(label);
        self.raw("</a>");
    }

    /// Appends a table row of a name and a value.
    pub(super) fn pair(&mut self, name: &'static str, value: &str) {
        self.raw("<tr><th>");
        self.raw(name);
        self.raw("</th><td>");
        self.text(value);
        self.raw("</td></tr>\n");
    }

    /// The page.
    pub(super) fn finish(self) -> String {
        self.0
    }
}
