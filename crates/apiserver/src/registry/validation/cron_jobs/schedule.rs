//! Schedules of CronJobs in the format of cron, with the messages of the parser that Kubernetes
//! uses.

use super::is_time_zone;

/// The range of a field of a schedule, and names for its numbers.
struct Bounds {
    min: u64,
    max: u64,
    /// Names of the numbers from `min` on.
    names: &'static [&'static str],
}

const MONTHS: &[&str] = &[
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// The fields of a schedule: minute, hour, day of the month, month, and day of the week.
const FIELDS: [Bounds; 5] = [
    Bounds {
        min: 0,
        max: 59,
        names: &[],
    },
    Bounds {
        min: 0,
        max: 23,
        names: &[],
    },
    Bounds {
        min: 1,
        max: 31,
        names: &[],
    },
    Bounds {
        min: 1,
        max: 12,
        names: MONTHS,
    },
    Bounds {
        min: 0,
        max: 6,
        names: DAYS,
    },
];

/// Checks a schedule. Returns the message of the parser if the schedule is malformed.
pub(super) fn check(text: &str) -> Result<(), String> {
    let mut text = text;
    if text.starts_with("TZ=") || text.starts_with("CRON_TZ=") {
        let (zone, rest) = text
            .split_once(' ')
            .ok_or_else(|| "runtime error: slice bounds out of range [:-1]".to_owned())?;
        let zone = zone.split_once('=').map_or("", |(_, zone)| zone);
        if !zone.is_empty() && !is_time_zone(zone) {
            return Err(format!(
                "provided bad location {zone}: unknown time zone {zone}"
            ));
        }
        text = rest.trim();
    }
    if text.starts_with('@') {
        return check_descriptor(text);
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!(
            "expected exactly 5 fields, found {}: [{}]",
            fields.len(),
            fields.join(" ")
        ));
    }
    for (field, bounds) in fields.iter().zip(&FIELDS) {
        for part in field.split(',').filter(|part| !part.is_empty()) {
            check_range(part, bounds)?;
        }
    }
    Ok(())
}

fn check_descriptor(text: &str) -> Result<(), String> {
    const KNOWN: &[&str] = &[
        "@yearly",
        "@annually",
        "@monthly",
        "@weekly",
        "@daily",
        "@midnight",
        "@hourly",
    ];
    if KNOWN.contains(&text) {
        return Ok(());
    }
    match text.strip_prefix("@every ") {
        None => Err(format!("unrecognized descriptor: {text}")),
        Some(duration) => check_duration(duration)
            .map_err(|error| format!("failed to parse duration {text}: {error}")),
    }
}

/// Checks a duration in the format of Go, such as `1h30m`.
fn check_duration(text: &str) -> Result<(), String> {
    let invalid = || format!("time: invalid duration {text:?}");
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(());
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    while !rest.is_empty() {
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        let number = rest.find(|c: char| !is_number(c)).unwrap_or(rest.len());
        let (digits, after) = rest.split_at_checked(number).unwrap_or((rest, ""));
        if !digits.contains(|c: char| c.is_ascii_digit()) || digits.matches('.').count() > 1 {
            return Err(invalid());
        }
        let unit = after.find(is_number).unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(unit).unwrap_or((after, ""));
        match unit {
            "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h" => {}
            "" => return Err(format!("time: missing unit in duration {text:?}")),
            _ => return Err(format!("time: unknown unit {unit:?} in duration {text:?}")),
        }
        rest = after;
    }
    Ok(())
}

/// Checks a part of a field: a number, a range, or either with a step.
fn check_range(part: &str, bounds: &Bounds) -> Result<(), String> {
    let mut slashes = part.split('/');
    let (range, step) = (slashes.next().unwrap_or_default(), slashes.next());
    let mut hyphens = range.split('-');
    let (low, high) = (hyphens.next().unwrap_or_default(), hyphens.next());
    let (start, mut end) = match low {
        "*" | "?" => (bounds.min, bounds.max),
        _ => {
            let start = number_or_name(low, bounds)?;
            let end = match high {
                None => start,
                Some(_) if hyphens.next().is_some() => {
                    return Err(format!("too many hyphens: {part}"));
                }
                Some(high) => number_or_name(high, bounds)?,
            };
            (start, end)
        }
    };
    let step = match step {
        None => 1,
        Some(_) if slashes.next().is_some() => return Err(format!("too many slashes: {part}")),
        Some(step) => {
            if high.is_none() {
                end = bounds.max;
            }
            number(step)?
        }
    };
    let (min, max) = (bounds.min, bounds.max);
    if start < min {
        return Err(format!(
            "beginning of range ({start}) below minimum ({min}): {part}"
        ));
    }
    if end > max {
        return Err(format!(
            "end of range ({end}) above maximum ({max}): {part}"
        ));
    }
    if start > end {
        return Err(format!(
            "beginning of range ({start}) beyond end of range ({end}): {part}"
        ));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {part}"));
    }
    Ok(())
}

fn number_or_name(text: &str, bounds: &Bounds) -> Result<u64, String> {
    let lower = text.to_lowercase();
    let position = bounds.names.iter().position(|name| *name == lower);
    match position.and_then(|position| u64::try_from(position).ok()) {
        Some(position) => Ok(bounds.min + position),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
    let problem = match (is_number, text.parse::<i64>()) {
        (false, _) => "invalid syntax",
        (true, Err(_)) => "value out of range",
        (true, Ok(number)) => {
            return u64::try_from(number)
                .map_err(|_| format!("negative number ({number}) not allowed: {text}"));
        }
    };
    Err(format!(
        "failed to parse int from {text}: strconv.Atoi: parsing {text:?}: {problem}"
    ))
}
