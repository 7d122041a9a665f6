//! Times as Go parses them, and its errors.

/// Returns the error of Go for a time that does not have the layout.
pub(super) fn error(text: &str, layout: &str) -> Option<String> {
    let quoted = |text: &str| format!("{text:?}");
    let prefix = format!("parsing time {} as {}", quoted(text), quoted(layout));
    let failure = |rest: &str, element: &str| {
        Some(format!(
            "{prefix}: cannot parse {} as {}",
            quoted(rest),
            quoted(element)
        ))
    };
    let mut rest = text;
    let mut numbers: Vec<u32> = Vec::new();
    let elements = [
        "2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05",
    ];
    for element in elements {
        let after = match element {
            "-" | "T" | ":" => rest.strip_prefix(element),
            _ => rest
                .split_at_checked(element.len())
                .filter(|(digits, _)| digits.chars().all(|c| c.is_ascii_digit()))
                .map(|(digits, after)| {
                    numbers.push(digits.parse().unwrap_or_default());
                    after
                }),
        };
        match after {
            Some(after) => rest = after,
            None => return failure(rest, element),
        }
    }
    let is_digit = |c: char| c.is_ascii_digit();
    let fraction = rest
        .strip_prefix('.')
        .map(|fraction| fraction.trim_start_matches(is_digit))
        .filter(|after| after.len() + 1 < rest.len());
    if layout.contains(".000000") {
        let digits = rest.get(1..7);
        match digits.filter(|digits| rest.starts_with('.') && digits.chars().all(is_digit)) {
            Some(_) => rest = rest.get(7..).unwrap_or_default(),
            None => return failure(rest, ".000000"),
        }
    } else if let Some(after) = fraction {
        rest = after;
    }
    let zone = match rest.strip_prefix('Z') {
        Some(after) => Some(after),
        None => offset(rest),
    };
    match zone {
        None => failure(rest, "Z07:00"),
        Some("") => out_of_range(&numbers)
            .map(|what| format!("parsing time {}: {what} out of range", quoted(text))),
        Some(extra) => Some(format!("{prefix}: extra text: {}", quoted(extra))),
    }
}

/// Returns the text after an offset such as `+02:00`.
fn offset(text: &str) -> Option<&str> {
    let rest = text.strip_prefix(['+', '-'])?;
    let (hours, rest) = rest.split_at_checked(2)?;
    let rest = rest.strip_prefix(':')?;
    let (minutes, rest) = rest.split_at_checked(2)?;
    let mut digits = hours.chars().chain(minutes.chars());
    digits.all(|c| c.is_ascii_digit()).then_some(rest)
}

/// Returns the part of a time that is out of range.
fn out_of_range(numbers: &[u32]) -> Option<&'static str> {
    let [year, month, day, hour, minute, second] = numbers else {
        return None;
    };
    let days = match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    match () {
        () if !(1..=12).contains(month) => Some("month"),
        () if !(1..=days).contains(day) => Some("day"),
        () if *hour > 23 => Some("hour"),
        () if *minute > 59 => Some("minute"),
        () if *second > 59 => Some("second"),
        () => None,
    }
}
