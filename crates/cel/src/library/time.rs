//! Timestamps and durations.
//!
//! Time zones are `UTC` and offsets such as `+02:00`: this crate does no I/O and has no database of
//! named time zones.

use std::cmp::Ordering;
use std::fmt;

use super::{Function, no_overload};
use crate::value::{Fault, Outcome, Value};

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400;
/// First second of the year 1.
const SECONDS_MIN: i64 = -62_135_596_800;
/// Last second of the year 9999.
const SECONDS_MAX: i64 = 253_402_300_799;

/// A point in time, with the offset from UTC in which it is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp {
    seconds: i64,
    nanos: u32,
    offset: i32,
}

/// Parts of a date and time of day.
struct Civil {
    year: i64,
    month: i64,
    day: i64,
    second_of_day: i64,
    day_of_year: i64,
    day_of_week: i64,
}

impl Timestamp {
    pub(crate) fn cmp(&self, other: &Self) -> Ordering {
        (self.seconds, self.nanos).cmp(&(other.seconds, other.nanos))
    }

    pub(crate) fn is_zero(self) -> bool {
        self.seconds == SECONDS_MIN && self.nanos == 0
    }

    pub(crate) fn seconds(self) -> i64 {
        self.seconds
    }

    /// Adds nanoseconds.
    pub(crate) fn add(self, nanos: i128) -> Result<Self, Fault> {
        let total = i128::from(self.seconds) * i128::from(SECOND) + i128::from(self.nanos) + nanos;
        let seconds = i64::try_from(total.div_euclid(i128::from(SECOND)));
        let seconds = seconds.map_err(|_| overflow())?;
        let nanos = u32::try_from(total.rem_euclid(i128::from(SECOND))).unwrap_or_default();
        match (SECONDS_MIN..=SECONDS_MAX).contains(&seconds) {
            true => Ok(Self {
                seconds,
                nanos,
                offset: self.offset,
            }),
            false => Err(overflow()),
        }
    }

    /// Returns the time since another point in time, in nanoseconds.
    pub(crate) fn since(self, other: Self) -> Result<i64, Fault> {
        let seconds = i128::from(self.seconds) - i128::from(other.seconds);
        let nanos = i128::from(self.nanos) - i128::from(other.nanos);
        i64::try_from(seconds * i128::from(SECOND) + nanos)
            .map_err(|_| Fault::new("integer overflow"))
    }

    fn civil(self, offset: i64) -> Civil {
        let local = self.seconds + offset;
        let days = local.div_euclid(DAY);
        // Days since 0000-03-01, so that a leap day is the last day of a year.
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_shifted_year =
            day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_shifted_year + 2) / 153;
        let month = if shifted_month < 10 {
            shifted_month + 3
        } else {
            shifted_month - 9
        };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        Civil {
            year,
            month,
            day: day_of_shifted_year - (153 * shifted_month + 2) / 5 + 1,
            second_of_day: local.rem_euclid(DAY),
            day_of_year: days - days_from_civil(year, 1, 1),
            day_of_week: (days + 4).rem_euclid(7),
        }
    }
}

fn overflow() -> Fault {
    Fault::new("timestamp overflow")
}

/// Returns the number of days since 1970-01-01.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted_month = (month + 9) % 12;
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl fmt::Display for Timestamp {
    /// Writes the time as RFC 3339 with the fewest digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let civil = self.civil(i64::from(self.offset));
        let (hour, rest) = (civil.second_of_day / 3600, civil.second_of_day % 3600);
        write!(
            f,
            "{:04}-{:02}-{:02}T{hour:02}:{:02}:{:02}",
            civil.year,
            civil.month,
            civil.day,
            rest / 60,
            rest % 60
        )?;
        if self.nanos != 0 {
            let digits = format!("{:09}", self.nanos);
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        match self.offset {
            0 => f.write_str("Z"),
            offset => {
                let sign = if offset < 0 { '-' } else { '+' };
                let minutes = offset.unsigned_abs() / 60;
                write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
            }
        }
    }
}

/// Reads fixed parts of a text.
struct Reader<'a>(&'a str);

impl Reader<'_> {
    fn number(&mut self, digits: usize) -> Option<i64> {
        let (number, rest) = self.0.split_at_checked(digits)?;
        if !number.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        self.0 = rest;
        number.parse().ok()
    }

    fn expect(&mut self, text: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(text)?;
        Some(())
    }

    fn date(&mut self) -> Option<i64> {
        let year = self.number(4)?;
        self.expect("-")?;
        let month = self.number(2)?;
        self.expect("-")?;
        let day = self.number(2)?;
        let is_valid = (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
        is_valid.then(|| days_from_civil(year, month, day))
    }

    fn time(&mut self) -> Option<(i64, u32)> {
        let hour = self.number(2)?;
        self.expect(":")?;
        let minute = self.number(2)?;
        self.expect(":")?;
        let second = self.number(2)?;
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let mut nanos = 0;
        if let Some(rest) = self.0.strip_prefix(['.', ',']) {
            let count = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (digits, rest) = rest.split_at_checked(count).filter(|_| count > 0)?;
            let padded: String = digits.chars().chain("000000000".chars()).take(9).collect();
            nanos = padded.parse().ok()?;
            self.0 = rest;
        }
        Some((hour * 3600 + minute * 60 + second, nanos))
    }

    fn zone(&mut self) -> Option<i32> {
        if self.expect("Z").is_some() {
            return Some(0);
        }
        let sign = match self.0.as_bytes().first()? {
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        self.0 = self.0.get(1..)?;
        let hours = self.number(2)?;
        self.expect(":")?;
        let minutes = self.number(2)?;
        if hours > 24 || minutes > 59 {
            return None;
        }
        i32::try_from(sign * (hours * 3600 + minutes * 60)).ok()
    }
}

/// Parses an RFC 3339 time. Returns `Err(true)` if it is out of range.
pub(crate) fn parse_timestamp(text: &str) -> Result<Timestamp, bool> {
    let mut reader = Reader(text);
    let parsed = read_timestamp(&mut reader, false).filter(|_| reader.0.is_empty());
    let time = parsed.ok_or(false)?;
    match (SECONDS_MIN..=SECONDS_MAX).contains(&time.seconds) {
        true => Ok(time),
        false => Err(true),
    }
}

fn read_timestamp(reader: &mut Reader<'_>, is_zone_optional: bool) -> Option<Timestamp> {
    let days = reader.date()?;
    reader.expect("T")?;
    let (second, nanos) = reader.time()?;
    let offset = match reader.0.is_empty() && is_zone_optional {
        true => 0,
        false => reader.zone()?,
    };
    Some(Timestamp {
        seconds: days * DAY + second - i64::from(offset),
        nanos,
        offset,
    })
}

/// Returns the time of a number of seconds since 1970.
pub(crate) fn from_seconds(seconds: i64) -> Result<Timestamp, Fault> {
    match (SECONDS_MIN..=SECONDS_MAX).contains(&seconds) {
        true => Ok(Timestamp {
            seconds,
            nanos: 0,
            offset: 0,
        }),
        false => Err(overflow()),
    }
}

/// Parses a string of the schema format `date`.
pub(crate) fn parse_date(text: &str) -> Option<Timestamp> {
    let mut reader = Reader(text);
    let days = reader.date().filter(|_| reader.0.is_empty())?;
    Some(Timestamp {
        seconds: days * DAY,
        nanos: 0,
        offset: 0,
    })
}

/// Parses a string of the schema format `date-time`.
pub(crate) fn parse_date_time(text: &str) -> Option<Timestamp> {
    let upper = text.to_ascii_uppercase();
    let mut reader = Reader(&upper);
    read_timestamp(&mut reader, true).filter(|_| reader.0.is_empty())
}

/// Reports whether a text has the format `datetime` of Kubernetes, which does not allow lower-case
/// letters but `t` and `z`.
pub(crate) fn is_date_time(text: &str) -> bool {
    let upper = text.to_uppercase();
    let mut reader = Reader(&upper);
    read_timestamp(&mut reader, false).is_some() && reader.0.is_empty()
}

/// Parses a duration in Go's notation, such as `1h30m`. Returns nanoseconds.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    let (is_negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let whole = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, after) = rest.split_at_checked(whole)?;
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => {
                let count = after.bytes().take_while(u8::is_ascii_digit).count();
                after.split_at_checked(count)?
            }
            None => ("", after),
        };
        if digits.is_empty() && fraction.is_empty() {
            return None;
        }
        let end = after
            .find(|c: char| c == '.' || c.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(end)?;
        let unit: i128 = match unit {
            "ns" => 1,
            "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let whole: i128 = match digits {
            "" => 0,
            digits if digits.len() > 20 => return None,
            digits => digits.parse().ok()?,
        };
        let places = fraction.get(..fraction.len().min(18))?;
        let mut part: i128 = match places {
            "" => 0,
            places => places.parse().ok()?,
        };
        part *= unit;
        for _ in 0..places.len() {
            part /= 10;
        }
        total = total.checked_add(whole.checked_mul(unit)?.checked_add(part)?)?;
        if total > i128::from(i64::MAX) + 1 {
            return None;
        }
        rest = after;
    }
    i64::try_from(if is_negative { -total } else { total }).ok()
}

/// Parses a string of the schema format `duration`: Go's notation, or words such as `3 days`.
pub(crate) fn parse_schema_duration(text: &str) -> Option<i64> {
    const UNITS: [(&[&str], i64); 8] = [
        (&["ns", "nano"], 1),
        (&["us", "\u{b5}s", "micro"], 1_000),
        (&["ms", "milli"], 1_000_000),
        (&["s", "sec"], SECOND),
        (&["m", "min"], 60 * SECOND),
        (&["h", "hr", "hour"], 3_600 * SECOND),
        (&["d", "day"], DAY * SECOND),
        (&["w", "wk", "week"], 7 * DAY * SECOND),
    ];
    if let Some(nanos) = parse_duration(text) {
        return Some(nanos);
    }
    let (mut total, mut is_found) = (0_i64, false);
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        rest = rest.get(start..)?;
        let count = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = rest.split_at_checked(count)?;
        let after = after.trim_start();
        let end = after
            .find(|c: char| !c.is_ascii_alphabetic() && c != '\u{b5}')
            .unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(end)?;
        rest = after;
        let (Ok(number), unit) = (number.parse::<i64>(), unit.to_lowercase()) else {
            continue;
        };
        for (names, nanos) in UNITS {
            let (prefix, exact) = names.split_last()?;
            if exact.contains(&unit.as_str()) || unit.starts_with(prefix) {
                is_found = true;
                total = total.wrapping_add(number.wrapping_mul(nanos));
            }
        }
    }
    is_found.then_some(total)
}

/// Formats a duration as seconds.
pub(crate) fn format_duration(nanos: i64) -> String {
    let seconds = (nanos / SECOND) as f64 + (nanos % SECOND) as f64 / SECOND as f64;
    format!("{seconds}s")
}

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "getFullYear" => |args| part(args, "getFullYear", |c, _| c.year, None),
        "getMonth" => |args| part(args, "getMonth", |c, _| c.month - 1, None),
        "getDayOfYear" => |args| part(args, "getDayOfYear", |c, _| c.day_of_year, None),
        "getDayOfMonth" => |args| part(args, "getDayOfMonth", |c, _| c.day - 1, None),
        "getDate" => |args| part(args, "getDate", |c, _| c.day, None),
        "getDayOfWeek" => |args| part(args, "getDayOfWeek", |c, _| c.day_of_week, None),
        "getHours" => |args| {
            let hours = |c: &Civil, _: u32| c.second_of_day / 3600;
            part(args, "getHours", hours, Some(3_600 * SECOND))
        },
        "getMinutes" => |args| {
            let minutes = |c: &Civil, _: u32| c.second_of_day / 60 % 60;
            part(args, "getMinutes", minutes, Some(60 * SECOND))
        },
        "getSeconds" => |args| {
            let seconds = |c: &Civil, _: u32| c.second_of_day % 60;
            part(args, "getSeconds", seconds, Some(SECOND))
        },
        "getMilliseconds" => |args| {
            let milliseconds = |_: &Civil, nanos: u32| i64::from(nanos / 1_000_000);
            part(args, "getMilliseconds", milliseconds, Some(SECOND / 1_000))
        },
        _ => return None,
    })
}

/// Returns a part of a timestamp in a time zone, or a duration in whole units.
fn part<'a>(
    args: &[Value<'a>],
    name: &str,
    of: fn(&Civil, u32) -> i64,
    unit: Option<i64>,
) -> Outcome<'a> {
    let (time, zone) = match (args, unit) {
        ([Value::Timestamp(time)], _) => (time, "UTC"),
        ([Value::Timestamp(time), Value::String(zone)], _) => (time, &**zone),
        ([Value::Duration(nanos)], Some(unit)) => return Ok(Value::Int(nanos / unit)),
        _ => return Err(no_overload(name, args)),
    };
    let civil = time.civil(zone_offset(zone)?);
    Ok(Value::Int(of(&civil, time.nanos)))
}

/// Returns the offset of a time zone in seconds.
fn zone_offset(zone: &str) -> Result<i64, Fault> {
    if matches!(zone, "" | "UTC") {
        return Ok(0);
    }
    let Some((hours, minutes)) = zone.split_once(':') else {
        return Err(Fault::new(format!("unknown time zone {zone}")));
    };
    let number = |text: &str| {
        text.parse::<i32>()
            .map(i64::from)
            .map_err(|_| Fault::new(format!("strconv.Atoi: parsing {text:?}: invalid syntax")))
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    Ok(match zone.starts_with('-') {
        true => (hours * 60 - minutes) * 60,
        false => (hours * 60 + minutes) * 60,
    })
}
