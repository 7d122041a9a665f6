use serde_json::json;

use super::{MICRO_TIME, TIME, base64_error, quantity_error, syntax_error, time};

#[test]
fn quantities_are_checked_by_form_and_suffix() {
    for fine in [
        json!("1"),
        json!(1.5),
        json!("500m"),
        json!("1e3"),
        json!(" 1Gi "),
    ] {
        assert_eq!(quantity_error(&fine), None, "{fine}");
    }
    for broken in [json!("x"), json!(""), json!("1x"), json!(true)] {
        let error = quantity_error(&broken).unwrap();
        assert!(error.starts_with("quantities must match"), "{broken}");
    }
    let error = quantity_error(&json!("1mm"));
    assert_eq!(error.as_deref(), Some("unable to parse quantity's suffix"));
}

#[test]
fn times_have_the_errors_of_go() {
    assert_eq!(time::error("2026-01-01T00:00:05Z", TIME), None);
    assert_eq!(time::error("2026-01-01T00:00:05.25+02:00", TIME), None);
    assert_eq!(time::error("2026-01-01T00:00:05.123456Z", MICRO_TIME), None);
    let check = |text: &str, layout: &str, expected: &str| {
        let error = time::error(text, layout).unwrap();
        assert!(error.ends_with(expected), "{error}");
    };
    check("x", MICRO_TIME, "cannot parse \"x\" as \"2006\"");
    check(
        "2026-01-01T00:00:05Z",
        MICRO_TIME,
        "cannot parse \"Z\" as \".000000\"",
    );
    check(
        "2026-01-01T00:00:05",
        TIME,
        "cannot parse \"\" as \"Z07:00\"",
    );
    check("2026-13-01T00:00:05Z", TIME, ": month out of range");
}

#[test]
fn binary_data_must_be_base64() {
    for fine in ["", "YQ==", "YWJj", "YWJj\nYWJj"] {
        assert_eq!(base64_error(fine), None, "{fine}");
    }
    for (broken, place) in [("*", 0), ("YW*j", 2), ("x", 0), ("YWJjYWJ", 4), ("YQ=", 3)] {
        let expected = format!("illegal base64 data at input byte {place}");
        assert_eq!(base64_error(broken), Some(expected), "{broken}");
    }
}

#[test]
fn syntax_errors_name_the_unexpected_character() {
    let check = |text: &str, expected: &str| assert_eq!(syntax_error(text.as_bytes()), expected);
    check("{", "unexpected end of JSON input");
    check("x", "invalid character 'x' looking for beginning of value");
    check(
        "{bad",
        "invalid character 'b' looking for beginning of object key string",
    );
}

#[test]
fn a_wrong_literal_is_reported_with_the_expected_character() {
    for (text, wanted) in [
        (
            "no",
            "invalid character 'o' in literal null (expecting 'u')",
        ),
        (
            "{\"a\": trie}",
            "invalid character 'i' in literal true (expecting 'u')",
        ),
        (
            "[fals1]",
            "invalid character '1' in literal false (expecting 'e')",
        ),
    ] {
        assert_eq!(super::syntax_error(text.as_bytes()), wanted);
    }
}
