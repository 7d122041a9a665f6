//! Semantic versions.

use std::cmp::Ordering;
use std::sync::Arc;

use super::format_string::quote;
use super::{Function, no_overload};
use crate::value::{Fault, Object, Value};

/// A semantic version. Build metadata is not compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Semver {
    numbers: [u64; 3],
    prerelease: Vec<Identifier>,
}

/// A part of the prerelease version. Numbers are lower than texts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Text(String),
}

impl Semver {
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| {
            match (self.prerelease.is_empty(), other.prerelease.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => self.prerelease.cmp(&other.prerelease),
            }
        })
    }
}

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "semver" => |args| match parsed(args) {
            Some(Ok(version)) => Ok(Value::Object(Object::Semver(Arc::new(version)))),
            Some(Err(message)) => Err(Fault::new(message)),
            None => Err(no_overload("semver", args)),
        },
        "isSemver" => |args| match parsed(args) {
            Some(parsed) => Ok(Value::Bool(parsed.is_ok())),
            None => Err(no_overload("isSemver", args)),
        },
        "major" => |args| match args {
            [Value::Object(Object::Semver(version))] => Ok(number(version.numbers[0])),
            _ => Err(no_overload("major", args)),
        },
        "minor" => |args| match args {
            [Value::Object(Object::Semver(version))] => Ok(number(version.numbers[1])),
            _ => Err(no_overload("minor", args)),
        },
        "patch" => |args| match args {
            [Value::Object(Object::Semver(version))] => Ok(number(version.numbers[2])),
            _ => Err(no_overload("patch", args)),
        },
        _ => return None,
    })
}

fn number<'a>(number: u64) -> Value<'a> {
    Value::Int(number.cast_signed())
}

fn parsed(args: &[Value<'_>]) -> Option<Result<Semver, String>> {
    match args {
        [Value::String(text)] | [Value::String(text), Value::Bool(false)] => Some(parse(text)),
        [Value::String(text), Value::Bool(true)] => {
            Some(normalize(text).and_then(|text| parse(&text)))
        }
        _ => None,
    }
}

/// Removes a leading `v` and leading zeros, and adds missing numbers.
fn normalize(text: &str) -> Result<String, String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = Vec::new();
    for part in text.splitn(3, '.') {
        let trimmed = part.trim_start_matches('0');
        let starts_with_digit = trimmed.starts_with(|c: char| c.is_ascii_digit());
        parts.push(match part.len() > 1 {
            true if starts_with_digit => trimmed.to_owned(),
            true => format!("0{trimmed}"),
            false => part.to_owned(),
        });
    }
    if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
        return Err("short version cannot contain PreRelease/Build meta data".to_owned());
    }
    while parts.len() < 3 {
        parts.push("0".to_owned());
    }
    Ok(parts.join("."))
}

fn parse(text: &str) -> Result<Semver, String> {
    if text.is_empty() {
        return Err("Version string empty".to_owned());
    }
    let mut parts = text.splitn(3, '.');
    let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("No Major.Minor.Patch elements found".to_owned());
    };
    let major = version_number(major, "Major", "major")?;
    let minor = version_number(minor, "Minor", "minor")?;
    let (rest, build) = match rest.split_once('+') {
        Some((rest, build)) => (rest, Some(build)),
        None => (rest, None),
    };
    let (patch, prerelease) = match rest.split_once('-') {
        Some((patch, prerelease)) => (patch, Some(prerelease)),
        None => (rest, None),
    };
    let patch = version_number(patch, "Patch", "patch")?;
    let prerelease: Result<Vec<Identifier>, String> = prerelease
        .into_iter()
        .flat_map(|text| text.split('.'))
        .map(identifier)
        .collect();
    let prerelease = prerelease?;
    for part in build.into_iter().flat_map(|text| text.split('.')) {
        if part.is_empty() {
            return Err("Build meta data is empty".to_owned());
        }
        if !is_alphanumeric(part) {
            let part = quote(part);
            return Err(format!(
                "Invalid character(s) found in build meta data {part}"
            ));
        }
    }
    Ok(Semver {
        numbers: [major, minor, patch],
        prerelease,
    })
}

fn version_number(text: &str, title: &str, name: &str) -> Result<u64, String> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        if text.is_empty() {
            return Err("strconv.ParseUint: parsing \"\": invalid syntax".to_owned());
        }
        let text = quote(text);
        return Err(format!(
            "Invalid character(s) found in {name} number {text}"
        ));
    }
    if text.len() > 1 && text.starts_with('0') {
        let text = quote(text);
        return Err(format!(
            "{title} number must not contain leading zeroes {text}"
        ));
    }
    text.parse().map_err(|_| {
        format!(
            "strconv.ParseUint: parsing {}: value out of range",
            quote(text)
        )
    })
}

fn identifier(text: &str) -> Result<Identifier, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if text.bytes().all(|b| b.is_ascii_digit()) {
        if text.len() > 1 && text.starts_with('0') {
            let text = quote(text);
            return Err(format!(
                "Numeric PreRelease version must not contain leading zeroes {text}"
            ));
        }
        let number = text.parse().map_err(|_| {
            format!(
                "strconv.ParseUint: parsing {}: value out of range",
                quote(text)
            )
        })?;
        return Ok(Identifier::Number(number));
    }
    match is_alphanumeric(text) {
        true => Ok(Identifier::Text(text.to_owned())),
        false => {
            let text = quote(text);
            Err(format!("Invalid character(s) found in prerelease {text}"))
        }
    }
}

fn is_alphanumeric(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}
