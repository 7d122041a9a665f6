//! The function `format`, and the check of its literal arguments.

use opkit_syntax::cel::{Expr, ExprId, ExprKind};

use crate::checker::Checked;
use crate::library::convert;
use crate::types::Type;
use crate::value::{Fault, List, Outcome, Value};

/// Maximum number of digits behind the decimal point. More digits than this are not meaningful.
const PRECISION_MAX: usize = 1_000;

/// A formatting clause, such as `%.2f`.
#[derive(Clone, Copy)]
enum Clause {
    Text,
    Decimal,
    Fixed(Option<usize>),
    Scientific(Option<usize>),
    Binary,
    Hexadecimal { is_upper: bool },
    Octal,
}

/// Formats the items of a list by a text with clauses.
pub(super) fn format<'a>(text: &str, args: &List<'a>) -> Outcome<'a> {
    let mut formatted = String::new();
    let mut index = 0;
    parse(text, &mut |part| match part {
        Part::Text(text) => {
            formatted.push_str(text);
            Ok(())
        }
        Part::Clause(clause) => {
            let value = match args.get(index) {
                Some(value) => value.map_err(|fault| match fault {
                    Fault::Error(message) => message,
                    Fault::Budget => "no such overload".to_owned(),
                })?,
                None => return Err(format!("index {index} out of range")),
            };
            index += 1;
            let clause = clause.map_err(unparsed)?;
            let text =
                apply(clause, &value).map_err(|m| format!("error during formatting: {m}"))?;
            formatted.push_str(&text);
            Ok(())
        }
        Part::End => match index < args.len() {
            true => Err("unexpected end of string".to_owned()),
            false => Err(format!("index {index} out of range")),
        },
    })
    .map_err(Fault::new)?;
    Ok(Value::text(formatted))
}

/// Checks the clauses of a text against the types of the arguments. Returns the number of clauses.
///
/// # Errors
/// Returns the error, and the node to which it belongs if that is not the call.
pub(crate) fn check(
    text: &str,
    args: &[&Expr],
    checked: &Checked,
) -> Result<usize, (Option<ExprId>, String)> {
    let mut index = 0;
    let mut wrong = None;
    let parsed = parse(text, &mut |part| match part {
        Part::Text(_) => Ok(()),
        Part::Clause(clause) => {
            let Some(arg) = args.get(index) else {
                return Err(format!("index {index} out of range"));
            };
            index += 1;
            let clause = clause.map_err(unparsed)?;
            if let Some((id, found)) = mismatch(clause, arg, checked) {
                wrong = Some(id);
                let found = found.runtime_name();
                return Err(format!(
                    "error during formatting: {}",
                    refused(clause, found)
                ));
            }
            Ok(())
        }
        Part::End => Err("unexpected end of string".to_owned()),
    });
    match parsed {
        Ok(()) => Ok(index),
        Err(message) => Err((wrong, message)),
    }
}

fn unparsed(message: String) -> String {
    format!("could not parse formatting clause: {message}")
}

enum Part<'t> {
    Text(&'t str),
    Clause(Result<Clause, String>),
    /// A percent sign at the end of the text.
    End,
}

/// Splits the text into texts and clauses, and stops at the first error.
fn parse<'t>(
    text: &'t str,
    accept: &mut dyn FnMut(Part<'t>) -> Result<(), String>,
) -> Result<(), String> {
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        accept(Part::Text(before))?;
        if let Some(after) = after.strip_prefix('%') {
            accept(Part::Text("%"))?;
            rest = after;
            continue;
        }
        if after.is_empty() {
            return accept(Part::End);
        }
        match clause(after) {
            Ok((clause, after)) => {
                accept(Part::Clause(Ok(clause)))?;
                rest = after;
            }
            Err(message) => {
                accept(Part::Clause(Err(message)))?;
                return Ok(());
            }
        }
    }
    accept(Part::Text(rest))
}

fn clause(text: &str) -> Result<(Clause, &str), String> {
    let (precision, rest) = match text.strip_prefix('.') {
        Some(rest) => {
            let count = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (digits, rest) = rest.split_at_checked(count).unwrap_or((rest, ""));
            let context = "error while parsing precision: ";
            if rest.is_empty() {
                return Err(format!(
                    "{context}could not find end of precision specifier"
                ));
            }
            let precision: usize = digits.parse().map_err(|_| {
                format!(
                    "{context}error while converting precision to integer: strconv.Atoi: parsing \
                     {digits:?}: invalid syntax"
                )
            })?;
            (Some(precision.min(PRECISION_MAX)), rest)
        }
        None => (None, text),
    };
    let Some(kind) = rest.chars().next() else {
        return Err("unexpected end of string".to_owned());
    };
    let clause = match kind {
        's' => Clause::Text,
        'd' => Clause::Decimal,
        'f' => Clause::Fixed(precision),
        'e' => Clause::Scientific(precision),
        'b' => Clause::Binary,
        'x' | 'X' => Clause::Hexadecimal {
            is_upper: kind == 'X',
        },
        'o' => Clause::Octal,
        other => return Err(format!("unrecognized formatting clause \"{other}\"")),
    };
    Ok((clause, rest.get(kind.len_utf8()..).unwrap_or_default()))
}

fn refused(clause: Clause, found: &str) -> String {
    let rule = match clause {
        Clause::Text => {
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, \
             types, durations, and timestamps"
        }
        Clause::Decimal => "decimal clause can only be used on integers",
        Clause::Fixed(_) => "fixed-point clause can only be used on doubles",
        Clause::Scientific(_) => "scientific clause can only be used on doubles",
        Clause::Binary => "only integers and bools can be formatted as binary",
        Clause::Hexadecimal { .. } => {
            "only integers, byte buffers, and strings can be formatted as hex"
        }
        Clause::Octal => "octal clause can only be used on integers",
    };
    format!("{rule}, was given {found}")
}

/// Returns the first node whose type a clause does not accept.
fn mismatch<'c>(clause: Clause, arg: &Expr, checked: &'c Checked) -> Option<(ExprId, &'c Type)> {
    let found = checked.type_of(arg.id);
    let holds = match (clause, found) {
        (_, Type::Dyn) => true,
        (Clause::Text, _) => !matches!(
            found,
            Type::Object(_) | Type::Opaque(_) | Type::Optional(_) | Type::Error | Type::Param(_)
        ),
        (Clause::Decimal | Clause::Octal, _) => matches!(found, Type::Int | Type::Uint),
        (Clause::Fixed(_) | Clause::Scientific(_), _) => {
            matches!(found, Type::Double | Type::String)
        }
        (Clause::Binary, _) => matches!(found, Type::Int | Type::Uint | Type::Bool),
        (Clause::Hexadecimal { .. }, _) => {
            matches!(found, Type::Int | Type::Uint | Type::String | Type::Bytes)
        }
    };
    if !holds {
        return Some((arg.id, found));
    }
    match (clause, &arg.kind) {
        (Clause::Text, ExprKind::List(elements)) => elements
            .iter()
            .find_map(|element| mismatch(clause, &element.value, checked)),
        (Clause::Text, ExprKind::Map(entries)) => entries.iter().find_map(|entry| {
            mismatch(clause, &entry.key, checked)
                .or_else(|| mismatch(clause, &entry.value, checked))
        }),
        _ => None,
    }
}

fn apply(clause: Clause, value: &Value<'_>) -> Result<String, String> {
    let wrong = || refused(clause, &value.type_name());
    Ok(match (clause, value) {
        (Clause::Text, _) => text(value)?.ok_or_else(wrong)?,
        (Clause::Decimal, Value::Int(value)) => value.to_string(),
        (Clause::Decimal, Value::Uint(value)) => value.to_string(),
        (Clause::Fixed(precision), _) => {
            fixed(number(value).ok_or_else(wrong)?, precision.unwrap_or(6))
        }
        (Clause::Scientific(width), _) => {
            let text = scientific(number(value).ok_or_else(wrong)?);
            // In cel-go, the number behind the point is the width of the text.
            let missing = width.unwrap_or(6).saturating_sub(text.chars().count());
            format!("{}{text}", " ".repeat(missing))
        }
        (Clause::Binary, Value::Int(value)) => signed(*value, |n| format!("{n:b}")),
        (Clause::Binary, Value::Uint(value)) => format!("{value:b}"),
        (Clause::Binary, Value::Bool(value)) => u8::from(*value).to_string(),
        (Clause::Octal, Value::Int(value)) => signed(*value, |n| format!("{n:o}")),
        (Clause::Octal, Value::Uint(value)) => format!("{value:o}"),
        (Clause::Hexadecimal { is_upper }, _) => {
            let text = match value {
                Value::Int(value) => signed(*value, |n| format!("{n:x}")),
                Value::Uint(value) => format!("{value:x}"),
                Value::String(text) => hexadecimal(text.as_bytes()),
                Value::Bytes(bytes) => hexadecimal(bytes),
                _ => return Err(wrong()),
            };
            match is_upper {
                true => text.to_uppercase(),
                false => text,
            }
        }
        _ => return Err(wrong()),
    })
}

fn signed(value: i64, digits: fn(u64) -> String) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", digits(value.unsigned_abs()))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn number(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(value) => Some(*value),
        Value::String(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// Formats a number with a fixed number of digits and separators of thousands.
fn fixed(value: f64, precision: usize) -> String {
    if let Some(text) = special(value) {
        return text;
    }
    let plain = format!("{:.precision$}", value.abs());
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    match fraction {
        "" => format!("{sign}{grouped}"),
        fraction => format!("{sign}{grouped}.{fraction}"),
    }
}

/// Formats a number as a mantissa and a power of ten.
fn scientific(value: f64) -> String {
    if let Some(text) = special(value) {
        return text;
    }
    let plain = format!("{value:.6e}");
    let (mantissa, exponent) = plain.split_once('e').unwrap_or((&plain, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let sign = if exponent < 0 { "\u{207b}" } else { "" };
    let digits = format!("{:02}", exponent.unsigned_abs());
    let raised: String = digits
        .chars()
        .map(|digit| match digit {
            '1' => '\u{b9}',
            '2' => '\u{b2}',
            '3' => '\u{b3}',
            digit => char::from_u32(0x2070 + digit.to_digit(10).unwrap_or_default()).unwrap_or('0'),
        })
        .collect();
    format!("{mantissa}\u{d7}10{sign}{raised}")
}

fn special(value: f64) -> Option<String> {
    if value.is_nan() {
        return Some("NaN".to_owned());
    }
    value
        .is_infinite()
        .then(|| if value > 0.0 { "\u{221e}" } else { "-\u{221e}" }.to_owned())
}

/// Formats a value for `%s`. Returns `None` if its type has no format.
fn text(value: &Value<'_>) -> Result<Option<String>, String> {
    Ok(Some(match value {
        Value::Null => "null".to_owned(),
        Value::List(list) => {
            let mut items = Vec::with_capacity(list.len());
            for item in list.iter() {
                items.push(nested(&item.map_err(message)?)?);
            }
            format!("[{}]", items.join(", "))
        }
        Value::Map(map) => {
            let mut entries = Vec::with_capacity(map.len());
            for key in map.keys() {
                let value = map.find(&key).map_err(message)?;
                let value = value.ok_or_else(|| format!("could not find key: {key}"))?;
                entries.push((nested(&key)?, nested(&value)?));
            }
            entries.sort();
            let entries: Vec<String> = entries
                .into_iter()
                .map(|(key, value)| format!("{key}:{value}"))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Type(found) => found.runtime_name().to_owned(),
        Value::Object(_) => return Ok(None),
        other => match convert::to_text(other) {
            Some(text) => text
                .map_err(message)?
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            None => return Ok(None),
        },
    }))
}

fn message(fault: Fault) -> String {
    match fault {
        Fault::Error(message) => message,
        Fault::Budget => "no such overload".to_owned(),
    }
}

/// Formats a value inside of a list or a map.
fn nested(value: &Value<'_>) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(quote(text)),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(format!("b{}", quote(text))),
            Err(_) => Err("invalid UTF-8 in bytes, cannot convert to string".to_owned()),
        },
        Value::Double(number) if number.is_finite() => Ok(format!("{number:.6}")),
        Value::Double(number) => Ok(quote(&convert::format_double(*number))),
        Value::Timestamp(time) => Ok(format!("timestamp({})", quote(&time.to_string()))),
        Value::Duration(nanos) => Ok(format!(
            "duration({})",
            quote(&super::time::format_duration(*nanos))
        )),
        other => {
            let missing = || format!("no formatting function for {}", other.type_name());
            text(other)?.ok_or_else(missing)
        }
    }
}

/// Quotes a text as Go's `%q` does.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{07}' => quoted.push_str("\\a"),
            '\u{08}' => quoted.push_str("\\b"),
            '\u{0b}' => quoted.push_str("\\v"),
            '\u{0c}' => quoted.push_str("\\f"),
            c if c.is_ascii_control() => quoted.push_str(&format!("\\x{:02x}", c as u32)),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
