//! The reader against `serde_json`, over what is JSON and what is not.

use serde::Deserialize as _;
use serde_json::value::RawValue;

use super::*;

/// Numbers that are the same in every run: a linear congruential sequence.
struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: usize) -> usize {
        let Self(state) = self;
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) as usize % bound
    }
}

/// The text of the first value, if `serde_json` takes it.
fn reference(body: &[u8]) -> Option<&str> {
    let mut document = serde_json::Deserializer::from_slice(body);
    let raw = <&RawValue>::deserialize(&mut document).ok()?;
    Some(raw.get())
}

fn ours(body: &[u8]) -> Option<&str> {
    spelled(&mut root(body).ok()?).ok()
}

#[test]
fn the_syntax_is_that_of_json() {
    for text in [
        "",
        " ",
        "null",
        "nul",
        "true",
        "tru",
        "false",
        "0",
        "-0",
        "-",
        "01",
        "-01",
        "1.",
        "1.5",
        ".5",
        "1e",
        "1e5",
        "1E+5",
        "1e-",
        "1.e5",
        "\"\"",
        "\"a",
        "\"a\\\"",
        "\"\\u00e9\"",
        "\"\\u00g9\"",
        "\"\\x\"",
        "\"\u{1}\"",
        "\"\u{7f}é\"",
        "\"long enough for a word\\n\"",
        "[]",
        "[ ]",
        "[1]",
        "[1,]",
        "[,]",
        "[1 2]",
        "[1",
        "[1}",
        "{}",
        "{ }",
        "{\"a\":1}",
        "{\"a\":1,}",
        "{\"a\"}",
        "{\"a\" : [ {} , [ ] ] , \"b\":null}",
        "{a:1}",
        "{\"a\":}",
        "{1:2}",
        "[[[1]]",
        "[nullx]",
        "\t\r\n{\"a\\u0000\":\"\\ud800\"}",
        "+1",
        "NaN",
        "'a'",
        "[tru,1]",
    ] {
        assert_eq!(ours(text.as_bytes()), reference(text.as_bytes()), "{text:?}");
    }
}

/// The same value, read by the functions above.
fn rebuilt(value: &mut Value<'_>) -> Result<serde_json::Value, DecodeError> {
    if value.is_object() {
        let mut map = serde_json::Map::new();
        members("it", value, |name, value| {
            map.insert(name.to_owned(), rebuilt(value)?);
            Ok(())
        })?;
        return Ok(map.into());
    }
    if value.is_array() {
        let mut list = Vec::new();
        elements(value, |value| {
            list.push(rebuilt(value)?);
            Ok(())
        })?;
        return Ok(list.into());
    }
    if value.is_string() {
        return Ok(text("it", value)?.into());
    }
    let spelled = spelled(value)?;
    serde_json::from_str(spelled).map_err(|error| DecodeError::Malformed(error.to_string()))
}

/// Some JSON, not more than a few values inside each other.
fn generated(rng: &mut Rng, depth: usize, out: &mut String) {
    const SCALARS: [&str; 24] = [
        "null",
        "true",
        "false",
        "0",
        "-0",
        "1.5",
        "-12e-3",
        "1E+9",
        "9223372036854775807",
        "18446744073709551616",
        "\"\"",
        "\"a\"",
        "\"plain and long enough for words\"",
        "\"é€😀\"",
        "\"\\u00e9\\n\"",
        "\"\\ud83d\\ude00\"",
        "\"\\\"quoted\\\"\"",
        "\"\\\\\\/\\b\\f\\r\\t\"",
        "\"1234567\"",
        "\"12345678\"",
        "\"\u{7f}\"",
        "\"1700000000000\"",
        "\"\\ud800\"",
        "\"ends in eight\\\\\"",
    ];
    let scalar = |rng: &mut Rng| SCALARS[rng.below(24)];
    let space = |rng: &mut Rng, out: &mut String| out.push_str(["", "", "", " ", "\r\n", "\t"][rng.below(6)]);
    let kind = if depth == 0 { 0 } else { rng.below(3) };
    if kind == 0 {
        return out.push_str(scalar(rng));
    }
    out.push(if kind == 1 { '[' } else { '{' });
    for index in 0..rng.below(4) {
        if index > 0 {
            out.push(',');
        }
        space(rng, out);
        if kind == 2 {
            // Names come twice now and then; the last one counts.
            out.push_str(["\"a\"", "\"bcdefghij\"", "\"\\u0061\"", "\"\""][rng.below(4)]);
            space(rng, out);
            out.push(':');
            space(rng, out);
        }
        generated(rng, depth - 1, out);
        space(rng, out);
    }
    out.push(if kind == 1 { ']' } else { '}' });
}

#[test]
fn any_text_is_read_as_serde_json_reads_it() {
    const NOISE: &[u8] = b"\"\\{}[]:,.-+eEu019 \n\x00\x1f\x7f\xc3\xff\xefatfn";
    let mut rng = Rng(7);
    let mut valid = 0;
    let mut refused = 0;
    for round in 0..40_000_u64 {
        let mut document = String::new();
        generated(&mut rng, 4, &mut document);
        let mut bytes = document.into_bytes();
        // Half of them are then damaged in a place or two.
        for _ in 0..(round % 4).saturating_sub(1) {
            let at = rng.below(bytes.len());
            let noise = NOISE[rng.below(NOISE.len())];
            match rng.below(4) {
                0 => bytes[at] = noise,
                1 => bytes.insert(at, noise),
                2 => bytes.truncate(at + 1),
                _ => {
                    bytes.remove(at);
                }
            }
            if bytes.is_empty() {
                bytes.push(b' ');
            }
        }
        let told = String::from_utf8_lossy(&bytes);
        let theirs = reference(&bytes);
        assert_eq!(ours(&bytes), theirs, "{told}");
        let exact = serde_json::from_slice::<&RawValue>(&bytes).is_ok();
        assert_eq!(whole(&bytes).is_ok(), exact, "{told}");
        match theirs {
            Some(spelled) => {
                let read = root(&bytes).and_then(|mut value| rebuilt(&mut value));
                let parsed: Option<serde_json::Value> = serde_json::from_str(spelled).ok();
                assert_eq!(read.ok(), parsed, "{told}");
                valid += 1;
            }
            None => refused += 1,
        }
    }
    assert!(valid > 10_000 && refused > 5_000, "{valid} and {refused}");
}

#[test]
fn numbers_are_those_of_the_standard_library() {
    for spelled in [
        "0",
        "7",
        "007",
        "-1",
        "",
        "+5",
        "1700000000000",
        "999999999999999999",
        "9223372036854775807",
    ] {
        let expected = spelled.parse::<i64>().ok();
        assert!(
            digits(spelled).is_none() || digits(spelled) == expected,
            "{spelled}"
        );
        assert_eq!(number(spelled), expected, "{spelled}");
    }
    assert_eq!(digits("999999999999999999"), Some(999_999_999_999_999_999));
}

#[test]
fn what_is_not_utf_8_ends_the_document() {
    assert!(root(b"\xff").is_err());
    let mut value = root(b"[\"a\xff\"]").expect("it begins well");
    assert!(value.skip().is_err());
    let mut value = root(b"[1] \xff").expect("it begins well");
    assert_eq!(value.skip(), Ok(()), "what is behind the first value is ignored");
    assert!(whole(b"[1] \xff").is_err());
    assert!(whole(b" [1] ").is_ok());
    assert!(whole(b"\xef\xbb\xbf[1]").is_err());
    assert!(whole(b"[1] 2").is_err());
}
