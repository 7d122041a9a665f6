//! Functions of strings. Positions count code points.

use std::sync::Arc;

use super::{Function, format_string, no_overload};
use crate::value::{Fault, List, Outcome, Value};

/// Maximum length of a text that a function creates, in bytes. The cost of `replace` and `join`
/// does not depend on the length of the result, so that cost limits do not limit it.
const LENGTH_MAX: usize = 16 << 20;

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "contains" => |args| test(args, |text, part| text.contains(part)),
        "startsWith" => |args| test(args, |text, part| text.starts_with(part)),
        "endsWith" => |args| test(args, |text, part| text.ends_with(part)),
        "charAt" => char_at,
        "lowerAscii" => |args| map(args, "lowerAscii", |text| text.to_ascii_lowercase()),
        "upperAscii" => |args| map(args, "upperAscii", |text| text.to_ascii_uppercase()),
        "trim" => |args| map(args, "trim", |text| text.trim().to_owned()),
        "strings.quote" => |args| map(args, "strings.quote", quote),
        "replace" => replace,
        "split" => split,
        "substring" => substring,
        "join" => join,
        "format" => |args| match args {
            [Value::String(text), Value::List(list)] => format_string::format(text, list),
            _ => Err(no_overload("format", args)),
        },
        "jsonpatch.escapeKey" => |args| {
            let escape = |text: &str| text.replace('~', "~0").replace('/', "~1");
            map(args, "jsonpatch.escapeKey", escape)
        },
        _ => return None,
    })
}

fn test<'a>(args: &[Value<'a>], holds: fn(&str, &str) -> bool) -> Outcome<'a> {
    match args {
        [Value::String(text), Value::String(part)] => Ok(Value::Bool(holds(text, part))),
        _ => Err(Fault::no_such_overload()),
    }
}

fn map<'a>(args: &[Value<'a>], name: &str, of: fn(&str) -> String) -> Outcome<'a> {
    match args {
        [Value::String(text)] => Ok(Value::text(of(text))),
        _ => Err(no_overload(name, args)),
    }
}

fn out_of_range(index: i64) -> Fault {
    Fault::new(format!("index out of range: {index}"))
}

fn char_at<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::String(text), Value::Int(index)] = args else {
        return Err(no_overload("charAt", args));
    };
    let wanted = usize::try_from(*index).map_err(|_| out_of_range(*index))?;
    match text.chars().nth(wanted) {
        Some(c) => Ok(Value::text(c.to_string())),
        None if wanted == text.chars().count() => Ok(Value::text("")),
        None => Err(out_of_range(*index)),
    }
}

/// Returns the position of a part of a text, from an offset on.
pub(super) fn index_of(text: &str, part: &str, offset: i64) -> Result<i64, Fault> {
    if part.is_empty() {
        return Ok(offset);
    }
    let from = usize::try_from(offset).map_err(|_| out_of_range(offset))?;
    let Some((start, _)) = text.char_indices().nth(from) else {
        return Ok(-1);
    };
    let found = text.get(start..).and_then(|rest| rest.find(part));
    Ok(found.map_or(-1, |at| {
        let before = text.get(..start + at).unwrap_or_default();
        i64::try_from(before.chars().count()).unwrap_or(-1)
    }))
}

/// Returns the last position of a part of a text that is not behind an offset.
pub(super) fn last_index_of(text: &str, part: &str, offset: Option<i64>) -> Result<i64, Fault> {
    let length = text.chars().count();
    if part.is_empty() {
        let length = i64::try_from(length).unwrap_or(i64::MAX);
        return Ok(offset.unwrap_or(length));
    }
    let last = match offset {
        Some(offset) => {
            let last = usize::try_from(offset).map_err(|_| out_of_range(offset))?;
            if last >= length {
                return Ok(-1);
            }
            last
        }
        None => length,
    };
    let end = match text.char_indices().nth(last) {
        Some((start, _)) => (start + part.len()).min(text.len()),
        None => text.len(),
    };
    // The end may be inside of a character; then no match ends there.
    let end = (end..=text.len())
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(text.len());
    let found = text.get(..end).and_then(|head| head.rfind(part));
    Ok(found.map_or(-1, |at| {
        let before = text.get(..at).unwrap_or_default();
        i64::try_from(before.chars().count()).unwrap_or(-1)
    }))
}

fn replace<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (text, old, new, limit) = match args {
        [Value::String(text), Value::String(old), Value::String(new)] => (text, old, new, -1),
        [
            Value::String(text),
            Value::String(old),
            Value::String(new),
            Value::Int(limit),
        ] => (text, old, new, *limit),
        _ => return Err(no_overload("replace", args)),
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let matches = match old.is_empty() {
        true => text.chars().count() + 1,
        false => text.matches(&**old).count(),
    };
    let grown = matches.min(limit).saturating_mul(new.len());
    if grown.saturating_add(text.len()) > LENGTH_MAX {
        return Err(Fault::Budget);
    }
    Ok(Value::text(text.replacen(&**old, new, limit)))
}

fn split<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (text, separator, limit) = match args {
        [Value::String(text), Value::String(separator)] => (text, separator, -1),
        [
            Value::String(text),
            Value::String(separator),
            Value::Int(limit),
        ] => (text, separator, *limit),
        _ => return Err(no_overload("split", args)),
    };
    let limit = match usize::try_from(limit) {
        Ok(0) => return Ok(Value::list(Vec::new())),
        Ok(limit) => limit,
        Err(_) => usize::MAX,
    };
    if !separator.is_empty() {
        return Ok(Value::texts(text.splitn(limit, &**separator)));
    }
    // An empty separator splits into characters.
    let mut parts: Vec<Arc<str>> = Vec::new();
    let mut rest: &str = text;
    while let Some(c) = rest.chars().next() {
        let end = match parts.len() + 1 >= limit {
            true => rest.len(),
            false => c.len_utf8(),
        };
        let (part, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        parts.push(Arc::from(part));
        rest = after;
    }
    Ok(Value::texts(parts))
}

fn substring<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (text, start, end) = match args {
        [Value::String(text), Value::Int(start)] => (text, *start, None),
        [Value::String(text), Value::Int(start), Value::Int(end)] => (text, *start, Some(*end)),
        _ => return Err(no_overload("substring", args)),
    };
    if let Some(end) = end.filter(|end| start > *end) {
        let message = format!("invalid substring range. start: {start}, end: {end}");
        return Err(Fault::new(message));
    }
    let length = text.chars().count();
    let within = |position: i64| {
        let index = usize::try_from(position)
            .ok()
            .filter(|index| *index <= length);
        index.ok_or_else(|| out_of_range(position))
    };
    let from = within(start)?;
    let to = match end {
        Some(end) => within(end)?,
        None => length,
    };
    let part: String = text.chars().skip(from).take(to - from).collect();
    Ok(Value::text(part))
}

fn join<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::List(list)] => join_list(list, ""),
        [Value::List(list), Value::String(separator)] => join_list(list, separator),
        _ => Err(no_overload("join", args)),
    }
}

fn join_list<'a>(list: &List<'a>, separator: &str) -> Outcome<'a> {
    let mut joined = String::new();
    for (index, item) in list.iter().enumerate() {
        if index > 0 {
            joined.push_str(separator);
        }
        match item? {
            Value::String(text) => joined.push_str(&text),
            other => return Err(Fault::new(format!("join: invalid input: {other}"))),
        }
        if joined.len() > LENGTH_MAX {
            return Err(Fault::Budget);
        }
    }
    Ok(Value::text(joined))
}

fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '\u{07}' => quoted.push_str("\\a"),
            '\u{08}' => quoted.push_str("\\b"),
            '\u{0c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{0b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
