//! Regular expressions: `matches`, `find` and `findAll`.
//!
//! The syntax is that of the crate `regex`, which is RE2's with few differences: `\C` is not
//! supported, `\z` and `\Z` differ, and repetitions may be larger than 1000. The texts of syntax
//! errors are those of this module, in Go's form for the most frequent mistakes.

use regex::{Regex, RegexBuilder};

use super::{Function, no_overload};
use crate::value::{Fault, Outcome, Value};

/// Maximum size of a compiled expression in bytes.
const SIZE_MAX: usize = 1 << 20;

/// Compiles a regular expression.
///
/// # Errors
/// Returns the text of the syntax error.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    let compiled = RegexBuilder::new(pattern).size_limit(SIZE_MAX).build();
    compiled.map_err(|cause| format!("error parsing regexp: {}", reason(pattern, &cause)))
}

fn reason(pattern: &str, cause: &regex::Error) -> String {
    let text = cause.to_string();
    let has = |part: &str| text.contains(part);
    if has("unclosed character class") {
        let start = pattern.rfind('[').unwrap_or_default();
        let rest = pattern.get(start..).unwrap_or_default();
        return format!("missing closing ]: `{rest}`");
    }
    if has("unclosed group") {
        return format!("missing closing ): `{pattern}`");
    }
    if has("unopened group") {
        return format!("unexpected ): `{pattern}`");
    }
    if has("repetition operator missing expression") {
        let operator = pattern.chars().find(|c| "*+?".contains(*c));
        let operator = operator.map(String::from).unwrap_or_default();
        return format!("missing argument to repetition operator: `{operator}`");
    }
    let last = text.lines().last().unwrap_or_default();
    format!("{}: `{pattern}`", last.trim_start_matches("error: "))
}

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "matches" => |args| match args {
            [Value::String(text), Value::String(pattern)] => {
                let regex = compile(pattern).map_err(Fault::new)?;
                Ok(Value::Bool(regex.is_match(text)))
            }
            [Value::String(_), _] => Err(Fault::no_such_overload()),
            _ => Err(Fault::new("no such overload: matches")),
        },
        "find" => |args| search("find", args),
        "findAll" => |args| search("findAll", args),
        _ => return None,
    })
}

fn search<'a>(name: &str, args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::String(_), Value::String(pattern), ..] = args else {
        return Err(no_overload(name, args));
    };
    let illegal = |message| Fault::new(format!("Illegal regex: {message}"));
    apply(name, &compile(pattern).map_err(illegal)?, args)
}

/// Calls one of the functions with a compiled expression.
pub(crate) fn apply<'a>(name: &str, regex: &Regex, args: &[Value<'a>]) -> Outcome<'a> {
    let (text, limit) = match args {
        [Value::String(text), _] => (text, -1),
        [Value::String(text), _, Value::Int(limit)] => (text, *limit),
        [first, ..] if name == "matches" && !matches!(first, Value::String(_)) => {
            return Err(Fault::new("no such overload: matches"));
        }
        _ => return Err(Fault::no_such_overload()),
    };
    Ok(match name {
        "matches" => Value::Bool(regex.is_match(text)),
        "find" => Value::text(regex.find(text).map_or("", |found| found.as_str())),
        _ => {
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            Value::texts(
                regex
                    .find_iter(text)
                    .take(limit)
                    .map(|found| found.as_str()),
            )
        }
    })
}
