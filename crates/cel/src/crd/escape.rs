//! Names of fields in expressions. Names that are not identifiers are escaped, such as
//! `a__dash__b` for `a-b`.

use opkit_syntax::cel::RESERVED;

fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name) || matches!(name, "true" | "false" | "null" | "in")
}

/// Returns the name of a field in expressions, or `None` if expressions cannot refer to the field.
pub(crate) fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if is_reserved(name) {
        return Some(format!("__{name}__"));
    }
    let mut escaped = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        let (text, length) = match c {
            '_' if rest.starts_with("__") => ("__underscores__", 2),
            '.' => ("__dot__", 1),
            '-' => ("__dash__", 1),
            '/' => ("__slash__", 1),
            c if c.is_ascii_alphanumeric() || c == '_' => (rest.get(..1)?, 1),
            _ => return None,
        };
        escaped.push_str(text);
        rest = rest.get(length..)?;
    }
    Some(escaped)
}

/// Returns the name of a field from its name in expressions, or `None` if the escapes are not
/// valid.
pub(crate) fn unescape(escaped: &str) -> Option<String> {
    if !escaped.contains("__") {
        return Some(escaped.to_owned());
    }
    let mut name = String::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some((before, after)) = rest.split_once("__") {
        let word = after
            .split_once("__")
            .filter(|(word, _)| !word.is_empty() && !word.contains('_'));
        let Some((word, behind)) = word else {
            // Not an escape: an underscore is a part of the name.
            name.push_str(before);
            name.push('_');
            rest = rest.get(before.len() + 1..)?;
            continue;
        };
        name.push_str(before);
        match word {
            "underscores" => name.push_str("__"),
            "dot" => name.push('.'),
            "dash" => name.push('-'),
            "slash" => name.push('/'),
            word if is_reserved(word) && word.len() + 4 == escaped.len() => name.push_str(word),
            _ => return None,
        }
        rest = behind;
    }
    name.push_str(rest);
    Some(name)
}
