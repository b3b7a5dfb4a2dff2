//! What the client accepts: format, compact form, compression; and what it sends.

use eureka_registry_core::wire::{Codec, Format};
use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderName};

/// `X-Eureka-Accept: compact` asks for the reduced field set.
const X_EUREKA_ACCEPT: HeaderName = HeaderName::from_static("x-eureka-accept");

/// The formats a client takes, by its `Accept` lines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Accepted {
    /// Weight of JSON by name (or `application/*`), if it is taken.
    json: Option<u16>,
    /// Weight of XML, by name or wildcard, if it is taken.
    xml: Option<u16>,
    /// Whether a type was named rather than meant by a wildcard.
    json_named: bool,
    xml_named: bool,
}

impl Accepted {
    /// Reads all `Accept` lines; none, or empty ones, take everything. `None`: neither JSON nor XML is taken.
    pub(crate) fn read(headers: &HeaderMap) -> Option<Self> {
        let mut accepted = Self::NOTHING;
        let mut lines = headers.get_all(ACCEPT).iter();
        let Some(first) = lines.next() else {
            return Some(Self::ANYTHING);
        };
        if first == "application/json" && lines.next().is_none() {
            return Some(Self::ONLY_JSON);
        }
        let mut empty = true;
        for line in headers.get_all(ACCEPT) {
            for range in line.to_str().unwrap_or("invalid").split(',') {
                if !range.trim().is_empty() {
                    empty = false;
                    accepted.add(range);
                }
            }
        }
        if empty {
            return Some(Self::ANYTHING);
        }
        (accepted.json.is_some() || accepted.xml.is_some()).then_some(accepted)
    }

    /// The format of lists and applications: JSON if it is named at all, as Java decides on the body; else XML.
    pub(crate) fn for_lists(self) -> Format {
        if self.json_named || self.xml.is_none() {
            Format::Json
        } else {
            Format::Xml
        }
    }

    /// The format of single instances: by weight, the named one first, XML where nothing is named.
    pub(crate) fn for_instances(self) -> Format {
        let json_wins = match (self.json_named, self.xml_named) {
            (true, true) => self.json >= self.xml,
            (named, _) => named,
        };
        if json_wins || self.xml.is_none() {
            Format::Json
        } else {
            Format::Xml
        }
    }

    const NOTHING: Self = Self {
        json: None,
        xml: None,
        json_named: false,
        xml_named: false,
    };
    const ANYTHING: Self = Self {
        json: Some(1000),
        xml: Some(1000),
        ..Self::NOTHING
    };
    const ONLY_JSON: Self = Self {
        json: Some(1000),
        json_named: true,
        ..Self::NOTHING
    };

    fn add(&mut self, range: &str) {
        let mut parts = range.split(';');
        let media_type = parts.next().unwrap_or_default().trim();
        let weight = weight(parts);
        let taken = (weight > 0).then_some(weight);
        if media_type.eq_ignore_ascii_case("application/json") {
            self.json = taken;
            self.json_named = taken.is_some();
        } else if media_type.eq_ignore_ascii_case("application/xml") {
            self.xml = taken;
            self.xml_named = taken.is_some();
        } else if media_type == "*/*" || media_type.eq_ignore_ascii_case("application/*") {
            self.json = self.json.or(taken);
            self.xml = self.xml.or(taken);
        }
    }
}

/// The codec of a list for what is accepted and asked.
pub(crate) fn list_codec(accepted: Accepted, headers: &HeaderMap) -> Codec {
    let compact = headers
        .get(X_EUREKA_ACCEPT)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"compact"));
    Codec::new(accepted.for_lists(), compact)
}

/// Whether the client names `text/event-stream` with a weight above zero.
pub(crate) fn accepts_events(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT).iter();
    let mut ranges = lines.flat_map(|line| line.to_str().unwrap_or_default().split(','));
    ranges.any(|range| {
        let mut parts = range.split(';');
        let media_type = parts.next().unwrap_or_default().trim();
        media_type.eq_ignore_ascii_case("text/event-stream") && weight(parts) > 0
    })
}

/// Whether the client takes gzip: `gzip`, `x-gzip` or `*` with a weight above zero.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let mut any = false;
    for line in headers.get_all(ACCEPT_ENCODING) {
        for coding in line.to_str().unwrap_or_default().split(',') {
            let mut parts = coding.split(';');
            let name = parts.next().unwrap_or_default().trim();
            if name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip") {
                return weight(parts) > 0;
            }
            any |= name == "*" && weight(parts) > 0;
        }
    }
    any
}

/// As Java asks: whether `Accept-Encoding` contains the word. `None` without such a line.
pub(crate) fn mentions_gzip(headers: &HeaderMap) -> Option<bool> {
    let mut lines = headers.get_all(ACCEPT_ENCODING).iter().peekable();
    lines.peek()?;
    Some(lines.any(|line| line.to_str().is_ok_and(|text| text.contains("gzip"))))
}

/// The format of the request's body by its `Content-Type`; `None` is 415.
pub(crate) fn body_format(headers: &HeaderMap) -> Option<Format> {
    let text = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let mut parts = text.split(';');
    let media_type = parts.next().unwrap_or_default().trim();
    let charset_known = parts.all(|parameter| {
        let Some((name, value)) = parameter.split_once('=') else {
            return true;
        };
        let charset = value.trim().trim_matches('"');
        !name.trim().eq_ignore_ascii_case("charset")
            || charset.eq_ignore_ascii_case("utf-8")
            || charset.eq_ignore_ascii_case("iso-8859-1")
    });
    if !charset_known {
        None
    } else if media_type.eq_ignore_ascii_case("application/json") {
        Some(Format::Json)
    } else if media_type.eq_ignore_ascii_case("application/xml") {
        Some(Format::Xml)
    } else {
        None
    }
}

/// The `q` of a range in thousandths; 1000 without one, 0 for one that is no number.
fn weight<'a>(mut parameters: impl Iterator<Item = &'a str>) -> u16 {
    let quality = parameters.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then(|| value.trim())
    });
    let Some(quality) = quality else { return 1000 };
    let (whole, fraction) = quality.split_once('.').unwrap_or((quality, ""));
    let digits = fraction.bytes().chain(*b"000").take(3);
    let mut digits = digits.map(|digit| char::from(digit).to_digit(10));
    let thousandths = digits.try_fold(0, |sum, digit| Some(sum * 10 + u16::try_from(digit?).ok()?));
    match (whole, thousandths) {
        ("0" | "", Some(thousandths)) => thousandths,
        ("1", Some(_)) => 1000,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn accept(lines: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(ACCEPT, HeaderValue::from_str(line).unwrap());
        }
        headers
    }

    fn formats(lines: &[&str]) -> Option<(Format, Format)> {
        let accepted = Accepted::read(&accept(lines))?;
        Some((accepted.for_lists(), accepted.for_instances()))
    }

    #[test]
    fn formats_are_javas() {
        use Format::{Json, Xml};
        assert_eq!(formats(&[]), Some((Xml, Xml)));
        assert_eq!(formats(&[""]), Some((Xml, Xml)));
        assert_eq!(formats(&["*/*"]), Some((Xml, Xml)));
        assert_eq!(
            formats(&["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"]),
            Some((Xml, Xml))
        );
        assert_eq!(
            formats(&["text/html, image/gif, image/jpeg, */*; q=0.2"]),
            Some((Xml, Xml))
        );
        assert_eq!(formats(&["application/json"]), Some((Json, Json)));
        assert_eq!(formats(&["application/json;charset=UTF-8"]), Some((Json, Json)));
        assert_eq!(
            formats(&["application/json, text/plain, */*"]),
            Some((Json, Json))
        );
        assert_eq!(
            formats(&["application/json, application/*+json"]),
            Some((Json, Json))
        );
        assert_eq!(
            formats(&["application/xml", "application/json"]),
            Some((Json, Json))
        );
        assert_eq!(
            formats(&["application/json", "application/xml"]),
            Some((Json, Json))
        );
        assert_eq!(
            formats(&["application/json, application/xml;q=0.5"]),
            Some((Json, Json))
        );
        assert_eq!(
            formats(&["application/xml, application/json;q=0.5"]),
            Some((Json, Xml))
        );
        assert_eq!(
            formats(&["application/json;q=0, application/xml"]),
            Some((Xml, Xml))
        );
    }

    #[test]
    fn other_types_are_not_acceptable() {
        for line in [
            "text/html",
            "text/xml",
            "text/plain",
            "application/*+json",
            "zzz",
            "image/png",
        ] {
            assert_eq!(formats(&[line]), None, "{line}");
        }
        assert_eq!(formats(&["application/json;q=0"]), None);
    }

    #[test]
    fn gzip_only_when_it_is_taken() {
        let takes = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.append(ACCEPT_ENCODING, HeaderValue::from_str(text).unwrap());
            accepts_gzip(&headers)
        };
        assert!(takes("gzip"));
        assert!(takes("deflate, gzip;q=0.1"));
        assert!(takes("GZIP"));
        assert!(takes("gzip, x-gzip, deflate"));
        assert!(takes("*"));
        assert!(!takes("gzip;q=0"));
        assert!(!takes("gzip;q=0.000, *;q=1"));
        assert!(!takes("*;q=0"));
        assert!(!takes("identity"));
        assert!(!takes("deflate, br"));
        assert!(!takes("gzip;q=high"));
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    #[test]
    fn bodies_need_a_type_we_know() {
        let format = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.append(CONTENT_TYPE, HeaderValue::from_str(text).unwrap());
            body_format(&headers)
        };
        assert_eq!(format("application/json"), Some(Format::Json));
        assert_eq!(format("APPLICATION/JSON; charset=utf-8"), Some(Format::Json));
        assert_eq!(format("application/xml;charset=\"UTF-8\""), Some(Format::Xml));
        for text in [
            "text/xml",
            "text/plain",
            "application/json;charset=utf-16",
            "*/*",
            "a+json",
        ] {
            assert_eq!(format(text), None, "{text}");
        }
        assert_eq!(body_format(&HeaderMap::new()), None);
    }
}
