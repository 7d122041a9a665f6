use serde_json::json;

use super::*;

#[test]
fn durations_print_as_in_go() {
    for (nanoseconds, expected) in [
        (0, "0s"),
        (1, "1ns"),
        (1_100, "1.1µs"),
        (2_000_000, "2ms"),
        (1_500_000_000, "1.5s"),
        (1_000_000_001, "1.000000001s"),
        (1_111_000_000, "1.111s"),
        (60_000_000_000, "1m0s"),
        (-3_600_000_000_000, "-1h0m0s"),
        (i64::MIN, "-2562047h47m16.854775808s"),
    ] {
        assert_eq!(duration_text(nanoseconds), expected);
    }
}

#[test]
fn times() {
    let seconds = "%Y-%m-%dT%H:%M:%SZ";
    assert_eq!(time(&[], seconds), Ok(Value::Null));
    assert_eq!(
        time(&[8, 0, 16, 0], seconds),
        Ok(json!("1970-01-01T00:00:00Z"))
    );
    let micros = "%Y-%m-%dT%H:%M:%S%.6fZ";
    assert_eq!(
        time(&[8, 1, 16, 0], micros),
        Ok(json!("1970-01-01T00:00:01.000000Z"))
    );
    assert_eq!(
        time(&[8, 1, 16, 0x90, 0x4e], micros),
        Ok(json!("1970-01-01T00:00:01.000010Z"))
    );
    let endless = [8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    let expected = format!("is not a time: {} seconds, 0 nanoseconds", i64::MAX);
    assert_eq!(time(&endless, seconds), Err(expected));
}

#[test]
fn ints_or_strings() {
    assert_eq!(int_or_string(&[8, 0, 16, 80, 26, 0]), Ok(json!(80)));
    assert_eq!(
        int_or_string(&[8, 1, 16, 0, 26, 3, b'5', b'0', b'%']),
        Ok(json!("50%"))
    );
    assert_eq!(int_or_string(&[]), Ok(json!(0)));
    assert!(int_or_string(&[10, 0]).is_err());
}

#[test]
fn quantities_are_never_empty() {
    assert_eq!(quantity(&[10, 2, b'1', b'm']), Ok(json!("1m")));
    assert_eq!(quantity(&[]), Ok(json!("0")));
}

#[test]
fn whole_doubles_are_integers() {
    assert_eq!(double(10.0), Ok(json!(10)));
    assert_eq!(double(-0.5), Ok(json!(-0.5)));
    assert_eq!(double(1e300), Ok(json!(1e300)));
    assert_eq!(
        double(f64::NAN),
        Err("is NaN, which JSON has not".to_owned())
    );
}

#[test]
fn base64_has_padding() {
    for (bytes, expected) in [("", ""), ("a", "YQ=="), ("ab", "YWI="), ("abc", "YWJj")] {
        assert_eq!(base64(bytes.as_bytes()), expected);
    }
    assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
}
