//! Messages and scalars whose JSON is not an object of their fields.

use jiff::Timestamp;
use serde_json::Value;

use super::wire::{Datum, Reader};

/// The instant that the year 0 begins with; Go writes no earlier one as JSON.
const YEAR_ZERO: i64 = -62_167_219_200;

/// The `raw` of a RawExtension, a FieldsV1 or a JSON: their only field.
pub(super) fn raw(bytes: &[u8]) -> Result<&[u8], String> {
    let mut raw: &[u8] = &[];
    for item in Reader::new(bytes) {
        if let (1, datum) = item? {
            raw = datum.bytes("bytes")?;
        }
    }
    Ok(raw)
}

/// JSON inside of protobuf. Nothing is null, as in Go.
pub(super) fn json(raw: &[u8]) -> Result<Value, String> {
    if raw.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(raw).map_err(|error| format!("is not JSON: {error}"))
}

/// A quantity: its text.
pub(super) fn quantity(bytes: &[u8]) -> Result<Value, String> {
    let mut text = "";
    for item in Reader::new(bytes) {
        if let (1, datum) = item? {
            text = datum.text()?;
        }
    }
    Ok(Value::from(if text.is_empty() { "0" } else { text }))
}

/// Which of the two it is, then the number, then the text.
pub(super) fn int_or_string(bytes: &[u8]) -> Result<Value, String> {
    let (mut is_text, mut number, mut text) = (false, 0, "");
    for item in Reader::new(bytes) {
        match item? {
            (1, Datum::Varint(kind)) => is_text = kind != 0,
            (2, Datum::Varint(bits)) => number = bits.cast_signed() as i32,
            (3, datum) => text = datum.text()?,
            (1 | 2, datum) => return Err(format!("has {} for a number", datum.name())),
            _ => {}
        }
    }
    Ok(if is_text {
        Value::from(text)
    } else {
        Value::from(number)
    })
}

/// Seconds and nanoseconds since 1970, printed in a format of [`jiff`]. An empty message is the
/// zero time, which is null in JSON.
pub(super) fn time(bytes: &[u8], format: &str) -> Result<Value, String> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let [seconds, nanoseconds] = integers(bytes)?;
    let time = i32::try_from(nanoseconds)
        .ok()
        .filter(|_| seconds >= YEAR_ZERO)
        .and_then(|nanoseconds| Timestamp::new(seconds, nanoseconds).ok())
        .ok_or_else(|| format!("is not a time: {seconds} seconds, {nanoseconds} nanoseconds"))?;
    Ok(Value::from(time.strftime(format).to_string()))
}

/// Nanoseconds, printed as Go prints a duration: `1h0m0.5s`.
pub(super) fn duration(bytes: &[u8]) -> Result<Value, String> {
    let [nanoseconds, _] = integers(bytes)?;
    Ok(Value::from(duration_text(nanoseconds)))
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

/// `value / unit` with as many digits as it takes; `unit` is a power of ten.
fn decimal(value: u64, unit: u64) -> String {
    let (whole, part) = (value / unit, value % unit);
    if part == 0 {
        return whole.to_string();
    }
    // With the unit's one in front, the zeros after the point are printed as well.
    let digits = (unit + part).to_string();
    let digits = digits.strip_prefix('1').unwrap_or(&digits);
    format!("{whole}.{}", digits.trim_end_matches('0'))
}

/// The integers in fields 1 and 2.
fn integers(bytes: &[u8]) -> Result<[i64; 2], String> {
    let (mut first, mut second) = (0, 0);
    for item in Reader::new(bytes) {
        match item? {
            (1, Datum::Varint(bits)) => first = bits.cast_signed(),
            (2, Datum::Varint(bits)) => second = bits.cast_signed(),
            (1 | 2, datum) => return Err(format!("has {} for a number", datum.name())),
            _ => {}
        }
    }
    Ok([first, second])
}

/// A float; a whole one is an integer, as it is in JSON that Go writes.
pub(super) fn double(value: f64) -> Result<Value, String> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT_MAX {
        return Ok(Value::from(value as i64));
    }
    let number = serde_json::Number::from_f64(value);
    number
        .map(Value::Number)
        .ok_or_else(|| format!("is {value}, which JSON has not"))
}

/// Bytes as text, with padding.
pub(super) fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let index = (bits >> (18 - 6 * digit)) & 0x3f;
            let letter = ALPHABET.get(index as usize).copied().unwrap_or(b'=');
            let is_padding = digit as usize > chunk.len();
            text.push(if is_padding { '=' } else { char::from(letter) });
        }
    }
    text
}

#[cfg(test)]
mod tests;
