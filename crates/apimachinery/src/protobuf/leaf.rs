//! Decodes and encodes messages and scalars whose JSON is not an object, such as times and
//! quantities.

use jiff::Timestamp;

use super::wire::{Datum, Reader, WireError};

/// Range of the times in the years 0 to 9999, in seconds since 1970. Go writes no other years as
/// JSON.
const YEARS: std::ops::Range<i64> = -62_167_219_200..253_402_300_800;

/// Returns the field `raw` of a RawExtension, FieldsV1 or JSON message, which is the only field.
pub(super) fn raw(bytes: &[u8]) -> Result<&[u8], WireError> {
    let mut raw: &[u8] = &[];
    for item in Reader::new(bytes) {
        if let (1, datum) = item? {
            raw = datum.bytes("bytes")?;
        }
    }
    Ok(raw)
}

/// Returns the text of a quantity message; `0` if the message has no text.
pub(super) fn quantity(bytes: &[u8]) -> Result<&str, WireError> {
    let mut text = "";
    for item in Reader::new(bytes) {
        if let (1, datum) = item? {
            text = datum.text()?;
        }
    }
    Ok(if text.is_empty() { "0" } else { text })
}

/// A decoded `intstr.IntOrString`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IntOrString<'a> {
    Int(i32),
    String(&'a str),
}

/// Decodes an IntOrString: field 1 is the type, field 2 the number, field 3 the text.
pub(super) fn int_or_string(bytes: &[u8]) -> Result<IntOrString<'_>, WireError> {
    let (mut is_text, mut number, mut text) = (false, 0, "");
    for item in Reader::new(bytes) {
        match item? {
            (1, Datum::Varint(kind)) => is_text = kind != 0,
            (2, Datum::Varint(bits)) => number = bits.cast_signed() as i32,
            (3, datum) => text = datum.text()?,
            (1 | 2, datum) => return Err(WireError::Type(datum.name(), "a number")),
            _ => {}
        }
    }
    Ok(match is_text {
        true => IntOrString::String(text),
        false => IntOrString::Int(number),
    })
}

/// Precision of a time in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Precision {
    Seconds,
    Microseconds,
}

/// Text of a time in a fixed-size buffer, so that no allocation is needed.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeText {
    digits: [u8; 27],
    precision: Precision,
}

impl TimeText {
    pub(super) fn as_str(&self) -> &str {
        let length = match self.precision {
            Precision::Seconds => 20,
            Precision::Microseconds => 27,
        };
        let digits = self.digits.get(..length).unwrap_or_default();
        std::str::from_utf8(digits).unwrap_or_default()
    }
}

/// Decodes a time message: seconds and nanoseconds since 1970. Returns `None` for an empty message,
/// which is the zero time in Go and null in JSON.
pub(super) fn time(bytes: &[u8], precision: Precision) -> Result<Option<TimeText>, String> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let [seconds, nanoseconds] = integers(bytes)?;
    if !YEARS.contains(&seconds) || !(0..1_000_000_000).contains(&nanoseconds) {
        return Err(format!(
            "is not a time: {seconds} seconds, {nanoseconds} nanoseconds"
        ));
    }
    Ok(Some(time_text(seconds, nanoseconds / 1_000, precision)))
}

/// Formats a time as RFC 3339. The date is computed as in "chrono-compatible low-level date
/// algorithms" by Howard Hinnant: years begin in March, so that the leap day is the last day of its
/// year.
fn time_text(seconds: i64, microseconds: i64, precision: Precision) -> TimeText {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let digit = |value: i64| b'0' + (value % 10) as u8;
    #[rustfmt::skip]
    let mut digits = [
        digit(year / 1_000), digit(year / 100), digit(year / 10), digit(year), b'-',
        digit(month / 10), digit(month), b'-', digit(day / 10), digit(day), b'T',
        digit(hour / 10), digit(hour), b':', digit(minute / 10), digit(minute), b':',
        digit(second / 10), digit(second), b'.',
        digit(microseconds / 100_000), digit(microseconds / 10_000), digit(microseconds / 1_000),
        digit(microseconds / 100), digit(microseconds / 10), digit(microseconds), b'Z',
    ];
    if precision == Precision::Seconds {
        digits[19] = b'Z';
    }
    TimeText { digits, precision }
}

/// Parses a time in RFC 3339 into seconds and nanoseconds since 1970, truncated to the precision.
pub(super) fn parse_time(text: &str, precision: Precision) -> Option<(i64, i64)> {
    let time: Timestamp = text.parse().ok()?;
    let (seconds, nanoseconds) = (time.as_second(), i64::from(time.subsec_nanosecond()));
    // Before 1970, jiff returns negative fractions of a second.
    let (seconds, nanoseconds) = if nanoseconds < 0 {
        (seconds - 1, nanoseconds + 1_000_000_000)
    } else {
        (seconds, nanoseconds)
    };
    Some(match precision {
        Precision::Seconds => (seconds, 0),
        Precision::Microseconds => (seconds, nanoseconds / 1_000 * 1_000),
    })
}

/// Decodes a duration message in nanoseconds, and formats the duration as Go does: `1h0m0.5s`.
pub(super) fn duration(bytes: &[u8]) -> Result<String, WireError> {
    let [nanoseconds, _] = integers(bytes)?;
    Ok(duration_text(nanoseconds))
}

fn duration_text(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let magnitude = nanoseconds.unsigned_abs();
    let small = [
        (1_000, "ns", 1),
        (1_000_000, "µs", 1_000),
        (1_000_000_000, "ms", 1_000_000),
    ];
    if magnitude == 0 {
        return "0s".to_owned();
    }
    for (below, unit, size) in small {
        if magnitude < below {
            return format!("{sign}{}{unit}", decimal(magnitude, size));
        }
    }
    let minutes = magnitude / 60_000_000_000;
    let seconds = decimal(magnitude % 60_000_000_000, 1_000_000_000);
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
        (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}

/// Returns `value / unit` with all significant digits. `unit` is a power of ten.
fn decimal(value: u64, unit: u64) -> String {
    let (whole, part) = (value / unit, value % unit);
    if part == 0 {
        return whole.to_string();
    }
    // The unit adds a leading 1, so that the zeros after the point are printed as well.
    let digits = (unit + part).to_string();
    let digits = digits.strip_prefix('1').unwrap_or(&digits);
    format!("{whole}.{}", digits.trim_end_matches('0'))
}

/// Parses a duration in Go's format into nanoseconds. Returns `None` if Go would reject the text.
pub(super) fn parse_duration(text: &str) -> Option<i64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total: i128 = 0;
    while !rest.is_empty() || total == 0 {
        let is_number = |letter: char| letter.is_ascii_digit() || letter == '.';
        let unit_at = rest.find(|letter| !is_number(letter))?;
        let (number, tail) = rest.split_at_checked(unit_at)?;
        let end = tail.find(is_number).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at_checked(end)?;
        let scale: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && part.is_empty() {
            return None;
        }
        let whole: i128 = if whole.is_empty() {
            0
        } else {
            whole.parse().ok()?
        };
        total = total.checked_add(whole.checked_mul(scale)?)?;
        // Digits below a nanosecond of an hour are truncated, as in Go.
        let part = part.get(..part.len().min(18))?;
        if !part.is_empty() {
            let tenth = 10_i128.checked_pow(u32::try_from(part.len()).ok()?)?;
            total += part.parse::<i128>().ok()? * scale / tenth;
        }
        rest = tail;
        if rest.is_empty() {
            break;
        }
    }
    i64::try_from(sign * total).ok()
}

/// Decodes fields 1 and 2 of a message, which are integers.
fn integers(bytes: &[u8]) -> Result<[i64; 2], WireError> {
    let (mut first, mut second) = (0, 0);
    for item in Reader::new(bytes) {
        match item? {
            (1, Datum::Varint(bits)) => first = bits.cast_signed(),
            (2, Datum::Varint(bits)) => second = bits.cast_signed(),
            (1 | 2, datum) => return Err(WireError::Type(datum.name(), "a number")),
            _ => {}
        }
    }
    Ok([first, second])
}

/// Returns the integer that is equal to a float, because Go writes whole floats as integers in
/// JSON. Returns `None` if the float has a fraction.
pub(super) fn whole(value: f64) -> Option<i64> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    (value.fract() == 0.0 && value.abs() <= EXACT_MAX).then_some(value as i64)
}

#[cfg(test)]
mod tests;
