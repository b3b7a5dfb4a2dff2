//! Bodies in a normal form that can be compared: one line for each value, with what is volatile levelled out.
//!
//! JSON and XML keep the order of their fields. What has no order in Eureka is sorted: applications, instances and
//! metadata. Times near the moment of the answer become `(now)`, the counter of the delta `(count)`, and the figures of
//! the status page `(figure)`; a page for people is `(an HTML page)`. Anything else is one line of text.

use std::fmt;

use quick_xml::Reader;
use quick_xml::events::{BytesRef, BytesStart, Event};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// How far from the moment of the answer a time still counts as "now": leases shift some of them by their length.
const NOW_MILLIS: u64 = 3_600_000;

/// The lines of a body that was answered at `wall` (Unix milliseconds).
pub(crate) fn lines(body: &str, wall: u64) -> Vec<String> {
    let mut lines = Vec::new();
    if body.is_empty() {
        return lines;
    }
    if let Ok(Node::Object(fields)) = serde_json::from_str::<Node>(body) {
        flatten("", Node::Object(fields), wall, &mut lines);
    } else if body
        .get(..9)
        .is_some_and(|start| start.eq_ignore_ascii_case("<!doctype"))
    {
        // A page for people.
        lines.push("(an HTML page)".to_owned());
    } else if let Some(root) = body
        .starts_with('<')
        .then(|| read_xml(body, lenient))
        .and_then(Result::ok)
    {
        let layout = if body.contains('\n') {
            "indented"
        } else {
            "one line"
        };
        lines.push(format!("layout = {layout}"));
        flatten("", root, wall, &mut lines);
    } else if body.starts_with("{\"generalStats\"") {
        // Netflix's server breaks its status page off before the last brace.
        lines.push("text = (figures, broken off)".to_owned());
    } else {
        lines.push(format!("text = {body}"));
    }
    lines
}

/// Whether a text is one well-formed XML element.
pub(crate) fn xml_well_formed(text: &str) -> Result<(), String> {
    read_xml(text, resolve)
        .map(drop)
        .map_err(|why| format!("the XML is not well-formed: {why}"))
}

/// The first few lines in which two bodies differ, `-` for what was expected and `+` for what came.
pub(crate) fn difference(expected: &[String], got: &[String]) -> Vec<String> {
    let missing = expected
        .iter()
        .filter(|line| !got.contains(line))
        .map(|line| format!("- {line}"));
    let added = got
        .iter()
        .filter(|line| !expected.contains(line))
        .map(|line| format!("+ {line}"));
    let mut lines: Vec<_> = missing.take(6).chain(added.take(6)).collect();
    if lines.is_empty() {
        let moved = expected.iter().zip(got).find(|(expected, got)| expected != got);
        lines.extend(moved.map(|(expected, got)| format!("order: {got} where {expected} was expected")));
        lines.extend((expected.len() != got.len()).then(|| "a line is repeated".to_owned()));
    }
    lines
}

/// A value of either format.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    /// As written in JSON: strings with their quotes.
    Scalar(String),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
}

fn flatten(path: &str, node: Node, wall: u64, lines: &mut Vec<String>) {
    match node {
        Node::Scalar(value) => lines.push(format!("{path} = {}", levelled(path, value, wall))),
        Node::Object(fields) if fields.is_empty() => lines.push(format!("{path} = {{}}")),
        Node::List(items) if items.is_empty() => lines.push(format!("{path} = []")),
        Node::List(items) => {
            let sorted = matches!(last(path), "application" | "instance");
            for (label, item) in labelled(items, sorted, wall) {
                flatten(&format!("{path}[{label}]"), item, wall, lines);
            }
        }
        Node::Object(mut fields) => {
            if last(path) == "metadata" {
                fields.sort_by(|a, b| a.0.cmp(&b.0));
            }
            flatten_fields(path, fields, wall, lines);
        }
    }
}

/// Writes the fields of an object; repeated elements of XML are sorted as lists are.
fn flatten_fields(path: &str, fields: Vec<(String, Node)>, wall: u64, lines: &mut Vec<String>) {
    let mut fields = fields.into_iter().peekable();
    while let Some((name, node)) = fields.next() {
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        let repeats = matches!(name.as_str(), "application" | "instance") && !matches!(node, Node::List(_));
        if !repeats {
            flatten(&path, node, wall, lines);
            continue;
        }
        let mut run = vec![node];
        while let Some((_, next)) = fields.next_if(|(next, _)| *next == name) {
            run.push(next);
        }
        for (label, item) in labelled(run, true, wall) {
            flatten(&format!("{path}({label})"), item, wall, lines);
        }
    }
}

/// Items with what tells them apart: their name or id where they have one, else their place.
fn labelled(items: Vec<Node>, sorted: bool, wall: u64) -> Vec<(String, Node)> {
    if !sorted {
        return items
            .into_iter()
            .enumerate()
            .map(|(at, item)| (at.to_string(), item))
            .collect();
    }
    let mut named: Vec<_> = items
        .into_iter()
        .map(|item| {
            let label = ["name", "instanceId", "hostName"]
                .iter()
                .find_map(|key| item.text(key))
                .unwrap_or_default();
            let mut rest = Vec::new();
            flatten("", item.clone(), wall, &mut rest);
            (label, rest, item)
        })
        .collect();
    named.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    named.into_iter().map(|(label, _, item)| (label, item)).collect()
}

fn levelled(path: &str, value: String, wall: u64) -> String {
    let name = last(path);
    let digits = value.trim_matches('"').parse::<u64>().ok();
    let marked = |mark: &str| {
        if value.starts_with('"') {
            format!("\"({mark})\"")
        } else {
            format!("({mark})")
        }
    };
    if name.ends_with("Timestamp") && digits.is_some_and(|time| time.abs_diff(wall) < NOW_MILLIS) {
        return marked("now");
    }
    if name == "versions__delta" && digits.is_some() {
        return marked("count");
    }
    let figures = path.contains("StatusInfo")
        || path.starts_with("generalStats")
        || path.starts_with("applicationStats");
    if figures { marked("figure") } else { value }
}

fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

impl Node {
    fn text(&self, key: &str) -> Option<String> {
        let Self::Object(fields) = self else { return None };
        fields.iter().find_map(|(name, node)| match node {
            Self::Scalar(value) if name == key => Some(value.trim_matches('"').to_owned()),
            Self::Scalar(_) | Self::List(_) | Self::Object(_) => None,
        })
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar("null".to_owned()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Scalar(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Scalar(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Scalar(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Scalar(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(quoted(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Node, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = object.next_entry()? {
            fields.push(field);
        }
        Ok(Node::Object(fields))
    }
}

fn quoted(text: &str) -> Node {
    Node::Scalar(format!("\"{text}\""))
}

/// An element under construction.
#[derive(Default)]
struct Element {
    name: String,
    fields: Vec<(String, Node)>,
    text: String,
}

impl Element {
    fn open(start: &BytesStart<'_>) -> Result<Self, String> {
        let mut element = Self {
            name: start.name().as_ref().to_owned(),
            ..Self::default()
        };
        for attribute in start.attributes() {
            let attribute = attribute.map_err(|error| error.to_string())?;
            let value = attribute
                .normalized_value(quick_xml::XmlVersion::Explicit1_0)
                .map_err(|error| error.to_string())?;
            element
                .fields
                .push((format!("@{}", attribute.key.as_ref()), quoted(&value)));
        }
        Ok(element)
    }

    fn close(mut self) -> (String, Node) {
        let has_elements = self.fields.iter().any(|(name, _)| !name.starts_with('@'));
        let blank = self.text.trim().is_empty();
        let node = if self.fields.is_empty() {
            quoted(&self.text)
        } else {
            if !blank || !has_elements {
                self.fields.push(("text".to_owned(), quoted(&self.text)));
            }
            Node::Object(self.fields)
        };
        (self.name, node)
    }
}

/// Reads one element; `resolve` says what a reference such as `&amp;` stands for.
fn read_xml(text: &str, resolve: fn(&BytesRef<'_>) -> Option<String>) -> Result<Node, String> {
    let mut reader = Reader::from_str(text);
    let mut open = vec![Element::default()];
    loop {
        let event = reader.read_event().map_err(|error| error.to_string())?;
        match event {
            Event::Start(start) => open.push(Element::open(&start)?),
            Event::Empty(start) => {
                let element = Element::open(&start)?;
                top(&mut open)?.fields.push(element.close());
            }
            Event::End(_) => {
                let element = open.pop().ok_or("too many ends")?;
                top(&mut open)?.fields.push(element.close());
            }
            Event::Text(part) => top(&mut open)?.text += &part.xml10_content(),
            Event::CData(part) => top(&mut open)?.text += &part.xml10_content(),
            Event::GeneralRef(reference) => {
                let resolved =
                    resolve(&reference).ok_or_else(|| format!("unknown entity &{};", &*reference))?;
                top(&mut open)?.text += &resolved;
            }
            Event::Eof => break,
            Event::Decl(_) | Event::PI(_) | Event::DocType(_) | Event::Comment(_) => {}
        }
    }
    let [document] = open.as_mut_slice() else {
        return Err("an element is not closed".to_owned());
    };
    if document.fields.len() != 1 || !document.text.trim().is_empty() {
        return Err("not exactly one root element".to_owned());
    }
    Ok(Node::Object(std::mem::take(&mut document.fields)))
}

fn top(open: &mut [Element]) -> Result<&mut Element, String> {
    open.last_mut().ok_or_else(|| "too many ends".to_owned())
}

fn resolve(reference: &BytesRef<'_>) -> Option<String> {
    if let Ok(Some(character)) = reference.resolve_char_ref() {
        return Some(character.to_string());
    }
    let resolved = match &**reference {
        "amp" => "&",
        "lt" => "<",
        "gt" => ">",
        "quot" => "\"",
        "apos" => "'",
        _ => return None,
    };
    Some(resolved.to_owned())
}

/// Keeps what cannot be resolved: Java writes references to characters that XML does not have.
fn lenient(reference: &BytesRef<'_>) -> Option<String> {
    Some(resolve(reference).unwrap_or_else(|| format!("&{};", &**reference)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALL: u64 = 1_795_978_795_000;

    fn same(a: &str, b: &str) -> bool {
        difference(&lines(a, WALL), &lines(b, WALL)).is_empty()
    }

    #[test]
    fn the_order_of_applications_instances_and_metadata_is_levelled() {
        let a = r#"{"applications":{"application":[{"name":"B","instance":[{"instanceId":"2","metadata":{"x":"1","y":"2"}},{"instanceId":"1"}]},{"name":"A","instance":[]}]}}"#;
        let b = r#"{"applications":{"application":[{"name":"A","instance":[]},{"name":"B","instance":[{"instanceId":"1"},{"instanceId":"2","metadata":{"y":"2","x":"1"}}]}]}}"#;
        assert!(same(a, b));
        let a = "<applications><application><name>B</name></application><application><name>A</name></application></applications>";
        let b = "<applications><application><name>A</name></application><application><name>B</name></application></applications>";
        assert!(same(a, b));
    }

    #[test]
    fn the_order_of_fields_and_of_batch_answers_is_not() {
        assert!(!same(r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#));
        let first = r#"{"responseList":[{"statusCode":200},{"statusCode":404}]}"#;
        let second = r#"{"responseList":[{"statusCode":404},{"statusCode":200}]}"#;
        assert!(!same(first, second));
        assert!(!same("<a><b>1</b><c>2</c></a>", "<a><c>2</c><b>1</b></a>"));
    }

    #[test]
    fn types_and_shapes_matter() {
        assert!(!same(r#"{"port":{"$":"80"}}"#, r#"{"port":{"$":80}}"#));
        assert!(!same(
            r#"{"application":[{"name":"A"}]}"#,
            r#"{"application":{"name":"A"}}"#
        ));
        assert!(!same(r#"{"a":[]}"#, r#"{"a":{}}"#));
        assert!(!same(r#"<port enabled="true">80</port>"#, "<port>80</port>"));
        assert!(!same("<a>\n  <b>1</b>\n</a>", "<a><b>1</b></a>"));
        assert!(same("<a><b></b></a>", "<a><b/></a>"));
    }

    #[test]
    fn only_times_near_the_answer_are_levelled() {
        let text = |value: &str| lines(&format!(r#"{{"lastUpdatedTimestamp":{value}}}"#), WALL);
        assert_eq!(text("1795978796123"), ["lastUpdatedTimestamp = (now)"]);
        assert_eq!(text("\"1795978796123\""), ["lastUpdatedTimestamp = \"(now)\""]);
        assert_eq!(text("1700000000000"), ["lastUpdatedTimestamp = 1700000000000"]);
        assert_eq!(text("0"), ["lastUpdatedTimestamp = 0"]);
    }

    #[test]
    fn broken_xml_is_named() {
        assert!(xml_well_formed("<a><b>x &amp; y</b></a>").is_ok());
        for broken in ["<a><b></a>", "<a>&nope;</a>", "<a/><b/>", "", "<a x=1/>", "<a"] {
            assert!(xml_well_formed(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn a_difference_names_the_lines() {
        let shown = difference(&lines(r#"{"a":1,"b":2}"#, WALL), &lines(r#"{"a":1,"b":3}"#, WALL));
        assert_eq!(shown, ["- b = 2", "+ b = 3"]);
    }
}
