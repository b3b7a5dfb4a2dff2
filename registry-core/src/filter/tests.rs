//! Examples by hand, then random filters against an evaluator that shares nothing with the parser.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use super::{Filter, FilterError, MAX_LEN, Pattern};
use crate::model::{DataCenter, Instance, Metadata, Status};
use crate::rng::Rng;

fn orders() -> Instance {
    let mut instance = Instance::new("orders", "host-1:orders:8080", "host-1", "10.0.0.1");
    instance.vip_address = Some("orders,orders-v2".into());
    instance.secure_vip_address = Some("orders.tls".into());
    instance.app_group = Some("SHOP".into());
    instance.asg_name = Some("asg 1".into());
    instance.metadata = Metadata::from_iter([
        ("zone", "eu-1a"),
        ("version", "2.1.0"),
        ("odd key", "say \"hi\""),
        ("empty", ""),
    ]);
    instance
}

fn selects(filter: &str) -> bool {
    Filter::parse(filter).expect(filter).matches(&orders())
}

#[test]
fn each_field_is_compared() {
    for (field, value) in [
        ("app", "orders"),
        ("app", "ORDERS"),
        ("id", "host-1:orders:8080"),
        ("host", "host-1"),
        ("ip", "10.0.0.1"),
        ("status", "UP"),
        ("override", "UNKNOWN"),
        ("zone", "eu-1a"),
        ("vip", "orders"),
        ("vip", "orders-v2"),
        ("secure-vip", "orders.tls"),
        ("group", "SHOP"),
        ("asg", "\"asg 1\""),
        ("data-center", "MyOwn"),
        ("metadata.version", "2.1.0"),
        ("metadata.\"odd key\"", r#""say \"hi\"""#),
        ("metadata.empty", r#""""#),
    ] {
        assert!(selects(&format!("{field} == {value}")), "{field} == {value}");
        assert!(!selects(&format!("{field} != {value}")), "{field} != {value}");
        let other = if matches!(field, "status" | "override") {
            "DOWN"
        } else {
            "x"
        };
        assert!(selects(&format!("{field} in ({other}, {value})")), "{field} in");
        assert!(!selects(&format!("{field} == {other}")), "{field} == {other}");
        assert!(selects(&format!("{field} ~ *")), "{field} ~ *");
    }
}

#[test]
fn values_mind_case_except_the_application() {
    assert!(!selects("host == HOST-1"));
    assert!(selects("app ~ ord*"));
}

#[test]
fn the_whole_vip_list_is_no_element() {
    assert!(!selects("vip == \"orders,orders-v2\""));
    assert!(selects("vip != other"));
    assert!(!selects("vip != orders"));
}

#[test]
fn what_is_absent_equals_nothing() {
    assert!(!selects("metadata.canary == \"\""));
    assert!(!selects("metadata.canary in (\"\", a)"));
    assert!(!selects("metadata.canary ~ *"));
    assert!(selects("metadata.canary != \"\""));
    assert!(selects("!metadata.canary ~ *"));
}

#[test]
fn amazon_names_the_zone() {
    let mut instance = orders();
    instance.data_center = DataCenter::Amazon(Metadata::from_iter([("availability-zone", "us-east-1c")]));
    let filter = Filter::parse("zone == us-east-1c && data-center == Amazon").expect("parses");
    assert!(filter.matches(&instance));
}

#[test]
fn and_binds_closer_than_or_and_not_closest() {
    assert!(selects("status == UP || status == DOWN && app == x"));
    assert!(!selects("(status == UP || status == DOWN) && app == x"));
    assert!(selects("!app == x && status == UP"));
    assert!(!selects("!(app == orders || app == x)"));
    assert!(selects("!!app==orders"));
    assert!(selects("app==orders&&!(host==b)||ip~1*"));
}

#[test]
fn errors_name_the_place_and_what_belongs_there() {
    for (filter, message) in [
        ("", "at byte 0: expected a field, `!` or `(`, found the end"),
        (
            "app",
            "at byte 3: expected `==`, `!=`, `~` or `in`, found the end",
        ),
        (
            "app = x",
            "at byte 4: expected `==`, `!=`, `~` or `in`, found `=`",
        ),
        ("app == ", "at byte 7: expected a value, found the end"),
        ("app == ) ", "at byte 7: expected a value, found `)`"),
        ("aqq == x", "at byte 0: there is no field `aqq`"),
        ("metadata == x", "at byte 0: there is no field `metadata`"),
        (
            "metadata. == x",
            "at byte 10: expected a metadata key, found `==`",
        ),
        (
            "status == up",
            "at byte 10: `up` is none of DOWN OUT_OF_SERVICE STARTING UNKNOWN UP",
        ),
        (
            "override in (UP, x)",
            "at byte 17: `x` is none of DOWN OUT_OF_SERVICE STARTING UNKNOWN UP",
        ),
        (
            "app == x y",
            "at byte 9: expected `&&`, `||` or the end, found `y`",
        ),
        (
            "(app == x",
            "at byte 9: expected `&&`, `||` or `)`, found the end",
        ),
        ("app in x", "at byte 7: expected `(`, found `x`"),
        ("app in ()", "at byte 8: expected a value, found `)`"),
        ("app in (x y)", "at byte 10: expected `,` or `)`, found `y`"),
        (
            "app == x &",
            "at byte 9: expected `&&`, `||` or the end, found `&`",
        ),
        (
            "\"app\" == x",
            "at byte 0: expected a field, `!` or `(`, found `\"app\"`",
        ),
        ("app == \"x", "at byte 7: the quoted text does not end"),
        ("app == \"x\\\"", "at byte 7: the quoted text does not end"),
        ("app == \"é\\n\"", "at byte 10: only \\\" and \\\\ may be escaped"),
    ] {
        let error = Filter::parse(filter).expect_err(filter);
        assert_eq!(error.to_string(), message, "{filter}");
    }
}

#[test]
fn length_and_depth_are_bounded() {
    let long = format!("app == {}", "x".repeat(MAX_LEN - 7));
    assert!(Filter::parse(&long).is_ok());
    let error = Filter::parse(&(long + "x")).expect_err("one byte too long");
    assert_eq!(error, FilterError::TooLong { len: 4097 });

    let nested = |depth| format!("{}app == x{}", "(".repeat(depth), ")".repeat(depth));
    assert!(Filter::parse(&nested(32)).is_ok());
    assert_eq!(Filter::parse(&nested(33)), Err(FilterError::TooDeep { at: 32 }));
    let negated = |depth| "!".repeat(depth) + "app == x";
    assert!(Filter::parse(&negated(32)).is_ok());
    assert_eq!(
        Filter::parse(&negated(4000)),
        Err(FilterError::TooDeep { at: 32 })
    );
    assert!(
        Filter::parse(&("(app==x)&&".repeat(400) + "app==x")).is_ok(),
        "side by side is not deep"
    );
}

#[test]
fn patterns_match_as_the_obvious_definition_does() {
    fn obvious(pattern: &[u8], text: &[u8]) -> bool {
        match pattern {
            [] => text.is_empty(),
            [b'*', rest @ ..] => (0..=text.len()).any(|skip| obvious(rest, &text[skip..])),
            [c, rest @ ..] => text.first() == Some(c) && obvious(rest, &text[1..]),
        }
    }
    let words = |letters: &str, len: u32| {
        let letters = letters.as_bytes().to_vec();
        (0..letters.len().pow(len)).map(move |mut number| {
            let mut word = String::new();
            for _ in 0..len {
                word.push(char::from(letters[number % letters.len()]));
                number /= letters.len();
            }
            word
        })
    };
    for pattern in (0..=5).flat_map(|len| words("ab*", len)) {
        let parsed = Pattern::new(&pattern);
        for text in (0..=5).flat_map(|len| words("ab", len)) {
            let expected = obvious(pattern.as_bytes(), text.as_bytes());
            assert_eq!(parsed.matches(&text), expected, "{text} ~ {pattern}");
        }
    }
}

#[test]
fn random_filters_select_what_they_say() {
    for seed in 0..3_000 {
        let mut rng = Rng::new(seed);
        let mut instance = orders();
        instance.status = Status::ALL[rng.below(5)];
        instance.metadata.insert("zone", ["a", "b", "c"][rng.below(3)]);
        let (text, expected) = random_filter(&mut rng, &instance, 4);
        let filter = Filter::parse(&text).unwrap_or_else(|error| panic!("seed {seed}: {text}: {error}"));
        assert_eq!(filter.matches(&instance), expected, "seed {seed}: {text}");
    }
}

/// A filter, fully parenthesised or not as its operators need, and what it says of `instance`.
fn random_filter(rng: &mut Rng, instance: &Instance, depth: usize) -> (String, bool) {
    let white = ["", " ", "\t\n"][rng.below(3)].to_owned();
    if depth == 0 || rng.below(4) == 0 {
        let status = Status::ALL[rng.below(5)];
        let zone = ["a", "b", "c"][rng.below(3)];
        let is_zone = instance.zone() == Some(zone);
        return match rng.below(5) {
            0 => (
                format!("status{white}=={white}{status}"),
                instance.status == status,
            ),
            1 => (format!("status!={white}\"{status}\""), instance.status != status),
            2 => (format!("zone in({white}x,{zone}{white})"), is_zone),
            3 => (format!("metadata.zone{white}~ \"*{zone}\""), is_zone),
            _ => (format!("metadata.\"zone\" != {zone}"), !is_zone),
        };
    }
    let (left, left_holds) = random_filter(rng, instance, depth - 1);
    let (right, right_holds) = random_filter(rng, instance, depth - 1);
    match rng.below(3) {
        0 => (format!("!{white}({left})"), !left_holds),
        1 => (
            format!("({left}){white}&&{white}({right})"),
            left_holds && right_holds,
        ),
        _ => (
            format!("({left}) ||{white}({right}{white})"),
            left_holds || right_holds,
        ),
    }
}

#[test]
fn no_text_makes_the_parser_panic_or_point_outside() {
    let pieces = [
        "app",
        "metadata.",
        "metadata.x",
        "==",
        "!=",
        "=",
        "!",
        "~",
        "in",
        "(",
        ")",
        ",",
        "&&",
        "&",
        "||",
        "\"",
        "\\",
        "é",
        "\u{2003}",
        " ",
        "UP",
        "status",
        "*",
        "\u{0}",
    ];
    let mut refused = 0;
    for seed in 0..20_000 {
        let mut rng = Rng::new(seed);
        let text: String = (0..rng.below(12))
            .map(|_| pieces[rng.below(pieces.len())])
            .collect();
        let Err(error) = Filter::parse(&text) else {
            continue;
        };
        refused += 1;
        let at = match error {
            FilterError::TooLong { .. } => 0,
            FilterError::TooDeep { at }
            | FilterError::Unexpected { at, .. }
            | FilterError::UnknownField { at, .. }
            | FilterError::UnknownStatus { at, .. }
            | FilterError::OpenText { at }
            | FilterError::BadEscape { at } => at,
        };
        assert!(text.is_char_boundary(at), "seed {seed}: {text:?} at {at}");
    }
    let accepted: Vec<_> = ["app==\"é\"", "metadata.x~*"].map(Filter::parse).into();
    assert!(accepted.iter().all(Result::is_ok) && refused > 19_000);
}
