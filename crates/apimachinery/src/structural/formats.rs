//! String formats that Kubernetes checks in custom resources.
//!
//! Names of formats are compared without their dashes (`date-time` and `datetime` are the same). In
//! some places Go's parsers accept more than the standards; this module accepts the same.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use regex::Regex;

use crate::names;

/// Reports whether Kubernetes checks this format. Other formats are ignored.
pub(super) fn is_known(format: &str) -> bool {
    matches(format, "").is_some()
}

/// Reports whether Kubernetes checks this format of values of this type. The type is empty if the
/// schema has none.
pub fn is_known_format(type_: &str, format: &str) -> bool {
    match type_ {
        "" | "string" => is_known(format),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    }
}

/// Reports whether `text` has the format. Returns `None` if Kubernetes does not check the format.
pub(super) fn matches(format: &str, text: &str) -> Option<bool> {
    Some(match format.replace('-', "").as_str() {
        "bsonobjectid" => text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
        "byte" => is_base64(text),
        "cidr" => is_cidr(text),
        "creditcard" => is_credit_card(text),
        "date" => is_date(text),
        "datetime" => is_date_time(text),
        "duration" => is_duration(text),
        "email" => is_email(text),
        "hexcolor" => {
            let digits = text.strip_prefix('#').unwrap_or(text);
            matches!(digits.len(), 3 | 6) && digits.bytes().all(|b| b.is_ascii_hexdigit())
        }
        "hostname" => is_hostname(text),
        "ipv4" => is_ipv4(text),
        "ipv6" => text.contains(':') && text.parse::<Ipv6Addr>().is_ok(),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "k8slongname" => names::check_dns_subdomain(text).is_ok(),
        "k8sshortname" => names::check_dns_label(text).is_ok(),
        "mac" => is_mac(text),
        "password" => true,
        "rgbcolor" => RGB.as_ref().is_some_and(|regex| regex.is_match(text)),
        "ssn" => SSN.as_ref().is_some_and(|regex| regex.is_match(text)),
        "uri" => is_request_uri(text),
        "uuid" => is_uuid(text, None),
        "uuid3" => is_uuid(text, Some('3')),
        "uuid4" => is_uuid(text, Some('4')),
        "uuid5" => is_uuid(text, Some('5')),
        _ => return None,
    })
}

/// Compiles a constant regular expression of this module. Returns `None` if the expression is not
/// valid; the tests make sure that all expressions are valid.
fn constant(pattern: &str) -> Option<Regex> {
    Regex::new(pattern).ok()
}

static RGB: LazyLock<Option<Regex>> = LazyLock::new(|| {
    const BYTE: &str = "(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])";
    constant(&format!(r"^rgb\(\s*{BYTE}\s*,\s*{BYTE}\s*,\s*{BYTE}\s*\)$"))
});

static SSN: LazyLock<Option<Regex>> =
    LazyLock::new(|| constant(r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"));

static TIME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    constant(r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$")
});

static SCALA_DURATION: LazyLock<Option<Regex>> =
    LazyLock::new(|| constant(r"[0-9]+\s*([A-Za-zµ]+)"));

static GO_DURATION: LazyLock<Option<Regex>> =
    LazyLock::new(|| constant(r"^[+-]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"));

fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let padding = text.len() - body.len();
    let alphabet = |b: u8| b.is_ascii_alphanumeric() || b == b'+' || b == b'/';
    !text.is_empty() && text.len().is_multiple_of(4) && padding <= 2 && body.bytes().all(alphabet)
}

fn is_ipv4(text: &str) -> bool {
    // Leading zeros are accepted, as before Go 1.17.
    let parts: Vec<&str> = text.split('.').collect();
    let octet = |part: &&str| {
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_digit())
            && part.parse::<u32>().is_ok_and(|n| n <= 255)
    };
    let mapped = text.contains('.') && text.parse::<Ipv6Addr>().is_ok();
    (parts.len() == 4 && parts.iter().all(octet)) || mapped
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let digits = !bits.is_empty() && bits.bytes().all(|b| b.is_ascii_digit());
    let bits: u32 = if digits {
        bits.parse().unwrap_or(u32::MAX)
    } else {
        u32::MAX
    };
    if address.contains(':') {
        return address.parse::<Ipv6Addr>().is_ok() && bits <= Ipv6Addr::BITS;
    }
    is_ipv4(address) && bits <= Ipv4Addr::BITS
}

fn is_date(text: &str) -> bool {
    let shaped = text.len() == 10
        && text.bytes().enumerate().all(|(index, b)| match index {
            4 | 7 => b == b'-',
            _ => b.is_ascii_digit(),
        });
    // Both Go and jiff accept the year zero.
    shaped && text.parse::<jiff::civil::Date>().is_ok()
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    let Some(captures) = TIME.as_ref().and_then(|regex| regex.captures(time)) else {
        return false;
    };
    let within = |group, max| captures.get(group).is_some_and(|m| m.as_str() <= max);
    is_date(date) && within(1, "23") && within(2, "59") && within(3, "59")
}

fn is_duration(text: &str) -> bool {
    if GO_DURATION
        .as_ref()
        .is_some_and(|regex| regex.is_match(text))
    {
        return true;
    }
    const EXACT: [&str; 11] = ["ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"];
    const PREFIX: [&str; 8] = [
        "nano", "micro", "milli", "sec", "min", "hour", "day", "week",
    ];
    let Some(regex) = SCALA_DURATION.as_ref() else {
        return false;
    };
    regex.captures_iter(text).any(|captures| {
        let unit = captures
            .get(1)
            .map_or("", |unit| unit.as_str())
            .to_lowercase();
        EXACT.contains(&unit.as_str()) || PREFIX.iter().any(|prefix| unit.starts_with(prefix))
    })
}

fn is_email(text: &str) -> bool {
    // Go's mail parser accepts `Name <address>` as an address.
    let address = match text.rsplit_once('<') {
        Some((_, rest)) => rest.strip_suffix('>').unwrap_or(""),
        None => text.trim(),
    };
    let Some((local, domain)) = address.rsplit_once('@') else {
        return false;
    };
    let atom = |part: &str, extra: &str| {
        let dotted = part.split('.').all(|atom| {
            let allowed = |c: char| c.is_alphanumeric() || extra.contains(c) || !c.is_ascii();
            !atom.is_empty() && atom.chars().all(allowed)
        });
        !part.is_empty() && dotted
    };
    let quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
    let literal = domain.starts_with('[') && domain.ends_with(']');
    const EXTRA: &str = "!#$%&'*+-/=?^_`{|}~";
    (quoted || atom(local, EXTRA)) && (literal || atom(domain, EXTRA))
}

fn is_hostname(text: &str) -> bool {
    let letter = |c: char| c.is_alphanumeric() || !c.is_ascii() || "$+<=>^`|~".contains(c);
    let label = |label: &str| {
        let first_last = label.chars().next().is_some_and(letter)
            && label.chars().next_back().is_some_and(letter);
        first_last && label.len() <= 63 && label.chars().all(|c| c == '-' || letter(c))
    };
    let labels: Vec<&str> = text.split('.').collect();
    let top_level = |name: &str| name.chars().count() >= 2 && name.chars().all(char::is_alphabetic);
    let top_holds = labels.len() == 1 || labels.last().is_some_and(|name| top_level(name));
    text.len() <= 255 && labels.iter().all(|name| label(name)) && top_holds
}

fn is_mac(text: &str) -> bool {
    let (separator, width) = match text {
        _ if text.contains('.') => ('.', 4),
        _ if text.contains('-') => ('-', 2),
        _ => (':', 2),
    };
    let parts: Vec<&str> = text.split(separator).collect();
    let holds = |part: &&str| part.len() == width && part.bytes().all(|b| b.is_ascii_hexdigit());
    matches!(parts.len() * width, 12 | 16 | 40) && parts.iter().all(holds)
}

fn is_uuid(text: &str, version: Option<char>) -> bool {
    const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
    let mut digits = String::with_capacity(32);
    let mut rest = text;
    for (index, length) in GROUPS.into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((group, after)) = rest.split_at_checked(length) else {
            return false;
        };
        digits.push_str(group);
        rest = after;
    }
    if !rest.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return false;
    }
    let variant = digits.chars().nth(16).is_some_and(|c| "89abAB".contains(c));
    match version {
        None => true,
        Some('3') => digits.chars().nth(12) == Some('3'),
        Some(version) => digits.chars().nth(12) == Some(version) && variant,
    }
}

fn is_request_uri(text: &str) -> bool {
    if text.bytes().any(|b| b <= b' ' || b == 0x7f) {
        return false;
    }
    if text.starts_with('/') {
        return true;
    }
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let letters = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(letters)
        && !rest.is_empty()
}

fn is_isbn10(text: &str) -> bool {
    let digits: Vec<u32> = isbn_digits(text);
    let weighted = digits
        .iter()
        .zip((1..=10).rev())
        .map(|(digit, weight)| digit * weight);
    digits.len() == 10
        && !digits.iter().take(9).any(|d| *d == 10)
        && weighted.sum::<u32>() % 11 == 0
}

fn is_isbn13(text: &str) -> bool {
    let digits = isbn_digits(text);
    let weighted = digits
        .iter()
        .zip([1, 3].into_iter().cycle())
        .map(|(digit, weight)| digit * weight);
    digits.len() == 13 && !digits.contains(&10) && weighted.sum::<u32>() % 10 == 0
}

/// Returns the digits of an ISBN, with `X` as ten. The result is empty if the text has any other
/// character.
fn isbn_digits(text: &str) -> Vec<u32> {
    let digits = text.chars().filter(|c| !matches!(c, '-' | ' '));
    let value = |c: char| if c == 'X' { Some(10) } else { c.to_digit(10) };
    digits
        .map(value)
        .collect::<Option<Vec<_>>>()
        .unwrap_or_default()
}

fn is_credit_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
    let doubled = digits.iter().rev().enumerate().map(|(index, digit)| {
        let twice = if index % 2 == 1 { digit * 2 } else { *digit };
        if twice > 9 { twice - 9 } else { twice }
    });
    (12..=19).contains(&digits.len()) && doubled.sum::<u32>() % 10 == 0
}

#[cfg(test)]
mod tests;
