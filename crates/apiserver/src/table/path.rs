//! Kubernetes' JSONPath: fields, indexes, slices, wildcards, filters and recursive descent.
//!
//! A path that is not valid finds nothing. Validation refuses CRDs with invalid paths.

use serde_json::Value;

/// One part of a JSONPath, such as a field name or an index.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    /// `[from:to]`. Both indexes may be negative or missing.
    Slice(Option<i64>, Option<i64>),
    Wildcard,
    /// `..`: the current value and all values nested in it.
    Descend,
    /// `[?(@.path OP literal)]`. Without an operator and literal, the filter checks that the path
    /// exists.
    Filter {
        path: Vec<Self>,
        comparison: Option<(Operator, Value)>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Returns all values that `path` finds in `object`, in order. The path starts with `$`, a dot or a
/// bracket, and may be in braces. Examples are `.spec.replicas`, `{.spec.replicas}` and
/// `.status.conditions[?(@.type=="Ready")].status`.
pub(crate) fn jsonpath<'a>(object: &'a Value, path: &str) -> Vec<&'a Value> {
    let path = path.trim();
    let path = path
        .strip_prefix('{')
        .and_then(|path| path.strip_suffix('}'))
        .unwrap_or(path);
    parse(path.trim().trim_start_matches('$')).map_or_else(Vec::new, |steps| walk(object, &steps))
}

fn walk<'a>(object: &'a Value, steps: &[Step]) -> Vec<&'a Value> {
    let mut found = vec![object];
    for step in steps {
        found = found
            .into_iter()
            .flat_map(|value| apply(value, step))
            .collect();
    }
    found
}

fn apply<'a>(value: &'a Value, step: &Step) -> Vec<&'a Value> {
    match (step, value) {
        (Step::Field(name), Value::Object(fields)) => fields.get(name).into_iter().collect(),
        (Step::Index(index), Value::Array(items)) => absolute(*index, items.len())
            .and_then(|index| items.get(index))
            .into_iter()
            .collect(),
        (Step::Slice(from, to), Value::Array(items)) => {
            let bound = |bound: Option<i64>, open| match bound {
                Some(bound) => absolute(bound, items.len()).unwrap_or(0).min(items.len()),
                None => open,
            };
            let range = bound(*from, 0)..bound(*to, items.len());
            items.get(range).unwrap_or_default().iter().collect()
        }
        (Step::Wildcard, Value::Array(items)) => items.iter().collect(),
        (Step::Wildcard, Value::Object(fields)) => fields.values().collect(),
        (Step::Filter { path, comparison }, Value::Array(items)) => items
            .iter()
            .filter(|item| matches(item, path, comparison.as_ref()))
            .collect(),
        (Step::Descend, _) => {
            let mut all = vec![value];
            match value {
                Value::Array(items) => all.extend(items.iter().flat_map(|item| apply(item, step))),
                Value::Object(fields) => {
                    all.extend(fields.values().flat_map(|field| apply(field, step)));
                }
                _ => {}
            }
            all
        }
        _ => Vec::new(),
    }
}

/// Converts an index to an index from the start. A negative `index` counts from the end of the
/// list.
fn absolute(index: i64, length: usize) -> Option<usize> {
    match usize::try_from(index) {
        Ok(index) => Some(index),
        Err(_) => length.checked_sub(usize::try_from(index.unsigned_abs()).ok()?),
    }
}

fn matches(item: &Value, path: &[Step], comparison: Option<&(Operator, Value)>) -> bool {
    let found = walk(item, path);
    let Some((operator, literal)) = comparison else {
        return !found.is_empty();
    };
    let Some(left) = found.first() else {
        return false;
    };
    let order = match (left, literal) {
        (Value::String(left), Value::String(right)) => left.partial_cmp(right),
        (Value::Number(left), Value::Number(right)) => left.as_f64().partial_cmp(&right.as_f64()),
        (Value::Bool(left), Value::Bool(right)) => left.partial_cmp(right),
        _ => None,
    };
    match operator {
        Operator::Equal => order.is_some_and(|order| order.is_eq()),
        Operator::NotEqual => order.is_none_or(|order| order.is_ne()),
        Operator::Less => order.is_some_and(|order| order.is_lt()),
        Operator::LessOrEqual => order.is_some_and(|order| order.is_le()),
        Operator::Greater => order.is_some_and(|order| order.is_gt()),
        Operator::GreaterOrEqual => order.is_some_and(|order| order.is_ge()),
    }
}

/// Parses a JSONPath into its parts. Returns `None` if the path is not valid.
fn parse(path: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("..") {
            steps.push(Step::Descend);
            // The next name follows without another dot.
            rest = after;
            if !rest.starts_with('[') {
                rest = field(rest, &mut steps)?;
            }
        } else if let Some(after) = rest.strip_prefix('.') {
            // A single dot is the object itself; a dot before a bracket has no meaning.
            rest = after;
            if !rest.is_empty() && !rest.starts_with('[') {
                rest = field(rest, &mut steps)?;
            }
        } else if let Some(after) = rest.strip_prefix('[') {
            let end = closing_bracket(after)?;
            steps.push(bracket(after.get(..end)?.trim())?);
            rest = after.get(end + 1..)?;
        } else if steps.is_empty() {
            rest = field(rest, &mut steps)?;
        } else {
            return None;
        }
    }
    Some(steps)
}

/// Parses a field name up to the next dot or bracket, adds it to `steps`, and returns the rest of
/// the text. A backslash escapes the next character.
fn field<'a>(text: &'a str, steps: &mut Vec<Step>) -> Option<&'a str> {
    let mut name = String::new();
    let mut characters = text.char_indices();
    let mut end = text.len();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => name.push(characters.next()?.1),
            '.' | '[' => {
                end = at;
                break;
            }
            _ => name.push(character),
        }
    }
    if name.is_empty() {
        return None;
    }
    steps.push(if name == "*" {
        Step::Wildcard
    } else {
        Step::Field(name)
    });
    text.get(end..)
}

/// Returns the position of the closing bracket; quotes and nested brackets are skipped.
fn closing_bracket(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quote = None;
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(character),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']') => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Parses the text between the brackets of a JSONPath: an index, a slice, a wildcard, a name or a
/// filter.
fn bracket(text: &str) -> Option<Step> {
    if let Some(filter) = text
        .strip_prefix("?(")
        .and_then(|text| text.strip_suffix(')'))
    {
        return filter_step(filter.trim());
    }
    if text == "*" {
        return Some(Step::Wildcard);
    }
    if let Some(name) = unquote(text) {
        return Some(Step::Field(name.to_owned()));
    }
    if let Some((from, to)) = text.split_once(':') {
        let bound = |bound: &str| match bound.trim() {
            "" => Some(None),
            bound => bound.parse().ok().map(Some),
        };
        return Some(Step::Slice(bound(from)?, bound(to)?));
    }
    text.parse().ok().map(Step::Index)
}

fn filter_step(text: &str) -> Option<Step> {
    const OPERATORS: [(&str, Operator); 6] = [
        ("==", Operator::Equal),
        ("!=", Operator::NotEqual),
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ];
    let split = OPERATORS.iter().find_map(|(sign, operator)| {
        text.split_once(sign)
            .map(|(left, right)| (left, *operator, right))
    });
    let (left, comparison) = match split {
        Some((left, operator, right)) => (left, Some((operator, literal(right.trim())?))),
        None => (text, None),
    };
    let path = parse(left.trim().strip_prefix('@')?)?;
    Some(Step::Filter { path, comparison })
}

fn literal(text: &str) -> Option<Value> {
    match unquote(text) {
        Some(text) => Some(Value::from(text)),
        None => serde_json::from_str(text).ok(),
    }
}

fn unquote(text: &str) -> Option<&str> {
    ['\'', '"']
        .into_iter()
        .find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
}
