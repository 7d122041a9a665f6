use super::*;

#[test]
fn durations_print_and_parse_as_in_go() {
    for (nanoseconds, text) in [
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
        assert_eq!(duration_text(nanoseconds), text);
        assert_eq!(parse_duration(text), Some(nanoseconds), "{text}");
    }
    assert_eq!(parse_duration("1.5h"), Some(5_400_000_000_000));
    assert_eq!(parse_duration("+.5s"), Some(500_000_000));
    for wrong in ["", "-", "1", "s", ".s", "1x", "1s2", "9223372036854775807h"] {
        assert_eq!(parse_duration(wrong), None, "{wrong:?}");
    }
}

fn check_time(bytes: &[u8], precision: Precision, expected: Option<&str>) {
    let text = time(bytes, precision).unwrap();
    assert_eq!(text.as_ref().map(TimeText::as_str), expected);
}

#[test]
fn times() {
    check_time(&[], Precision::Seconds, None);
    check_time(
        &[8, 0, 16, 0],
        Precision::Seconds,
        Some("1970-01-01T00:00:00Z"),
    );
    // JSON has no fraction of a second, and Go does not parse one.
    check_time(
        &[8, 1, 16, 0x90, 0x4e],
        Precision::Seconds,
        Some("1970-01-01T00:00:01Z"),
    );
    check_time(
        &[8, 1, 16, 0],
        Precision::Microseconds,
        Some("1970-01-01T00:00:01.000000Z"),
    );
    check_time(
        &[8, 1, 16, 0x90, 0x4e],
        Precision::Microseconds,
        Some("1970-01-01T00:00:01.000010Z"),
    );
    let endless = [8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    let expected = format!("is not a time: {} seconds, 0 nanoseconds", i64::MAX);
    assert_eq!(time(&endless, Precision::Seconds).unwrap_err(), expected);
}

#[test]
fn times_are_those_of_jiff() {
    // A prime step, so that every second, month and leap year comes up.
    let mut seconds = YEARS.start;
    while seconds < YEARS.end {
        let text = time_text(seconds, 123_456, Precision::Microseconds);
        // The last hours of the year 9999 are out of range for jiff.
        if let Ok(time) = Timestamp::new(seconds, 123_456_000) {
            assert_eq!(
                text.as_str(),
                time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
            );
            assert_eq!(
                parse_time(text.as_str(), Precision::Microseconds),
                Some((seconds, 123_456_000))
            );
        }
        seconds += 31_337_003;
    }
    let last = time_text(YEARS.end - 1, 0, Precision::Seconds);
    assert_eq!(last.as_str(), "9999-12-31T23:59:59Z");
}

#[test]
fn times_parse_with_offsets() {
    assert_eq!(
        parse_time("2024-02-29T12:00:00.1234567+02:00", Precision::Seconds),
        Some((1_709_200_800, 0))
    );
    assert_eq!(
        parse_time("1969-12-31T23:59:59.5Z", Precision::Microseconds),
        Some((-1, 500_000_000))
    );
    assert_eq!(parse_time("yesterday", Precision::Seconds), None);
}

#[test]
fn ints_or_strings() {
    assert_eq!(
        int_or_string(&[8, 0, 16, 80, 26, 0]),
        Ok(IntOrString::Int(80))
    );
    assert_eq!(
        int_or_string(&[8, 1, 16, 0, 26, 3, b'5', b'0', b'%']),
        Ok(IntOrString::String("50%"))
    );
    assert_eq!(int_or_string(&[]), Ok(IntOrString::Int(0)));
    assert!(int_or_string(&[10, 0]).is_err());
}

#[test]
fn quantities_are_never_empty() {
    assert_eq!(quantity(&[10, 2, b'1', b'm']), Ok("1m"));
    assert_eq!(quantity(&[]), Ok("0"));
}

#[test]
fn whole_doubles_are_integers() {
    assert_eq!(whole(10.0), Some(10));
    assert_eq!(whole(-0.5), None);
    assert_eq!(whole(1e300), None);
    assert_eq!(whole(f64::NAN), None);
}
