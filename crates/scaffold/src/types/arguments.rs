//! Arguments of `#[opkit(...)]` for the keywords of a schema.

use serde_json::{Number, Value};

use super::model::Ty;
use super::schema::Schema;

/// Returns a Rust string literal. A text with backslashes is a raw literal.
pub(super) fn literal(text: &str) -> String {
    let is_raw = text.contains('\\') && !text.chars().any(char::is_control);
    match (is_raw, text.contains('"')) {
        (false, _) => format!("{text:?}"),
        (true, false) => format!("r\"{text}\""),
        (true, true) if !text.contains("\"#") => format!("r#\"{text}\"#"),
        (true, true) => format!("{text:?}"),
    }
}

/// Adds the arguments for limits of numbers, strings, lists and maps.
pub(super) fn limits(schema: Schema<'_>, ty: &Ty, arguments: &mut Vec<String>) {
    let is_integer = matches!(ty, Ty::Integer { .. });
    for (keyword, exclusive, name) in [
        ("minimum", "exclusiveMinimum", "min"),
        ("maximum", "exclusiveMaximum", "max"),
    ] {
        let Some(Value::Number(limit)) = schema.get(keyword) else {
            continue;
        };
        let name = match schema.is(exclusive) {
            true => format!("exclusive_{name}"),
            false => name.to_owned(),
        };
        arguments.push(format!("{name} = {}", number(limit, is_integer)));
    }
    if let Some(Value::Number(divisor)) = schema.get("multipleOf") {
        arguments.push(format!("multiple_of = {}", number(divisor, is_integer)));
    }
    for (keyword, name) in [
        ("minLength", "min_length"),
        ("maxLength", "max_length"),
        ("minItems", "min_items"),
        ("maxItems", "max_items"),
        ("minProperties", "min_properties"),
        ("maxProperties", "max_properties"),
    ] {
        if let Some(limit) = schema.get(keyword).and_then(Value::as_u64) {
            arguments.push(format!("{name} = {limit}"));
        }
    }
    if let Some(pattern) = schema.text("pattern") {
        arguments.push(format!("pattern = {}", literal(pattern)));
    }
}

/// Returns a number as a Rust literal.
pub(super) fn number(number: &Number, is_integer: bool) -> String {
    match (number.as_i64(), number.as_f64()) {
        (Some(integer), _) => integer.to_string(),
        (None, Some(float)) if is_integer && float.fract() == 0.0 => format!("{float:.0}"),
        (None, Some(float)) => format!("{float:?}"),
        (None, None) => number.to_string(),
    }
}

/// Adds the values of an enum that is not an enum of strings.
pub(super) fn values(schema: Schema<'_>, arguments: &mut Vec<String>) {
    let values = schema.list("enum").iter().filter_map(|value| match value {
        Value::Number(value) => Some(number(value, schema.type_() == Some("integer"))),
        Value::String(value) => Some(literal(value)),
        _ => None,
    });
    let values: Vec<String> = values.collect();
    if !values.is_empty() {
        arguments.push(format!("enum({})", values.join(", ")));
    }
}

/// Returns the argument for a CEL rule, or the reason why there is none.
pub(super) fn rule(name: &str, rule: &Value) -> Result<String, &'static str> {
    let text = |key: &str| rule.get(key).and_then(Value::as_str);
    let Some(expression) = text("rule") else {
        return Err("a CEL rule without an expression");
    };
    let mut parts = vec![literal(expression)];
    if let Some(message) = text("message") {
        if message.trim().is_empty() || message.contains(['\n', '\r']) {
            return Err("a CEL rule whose message is not one line");
        }
        parts.push(format!("message = {}", literal(message)));
    } else if expression.contains('\n') {
        return Err("a CEL rule of several lines without a message");
    }
    if let Some(message) = text("messageExpression") {
        parts.push(format!("message_expression = {}", literal(message)));
    }
    if let Some(reason) = text("reason") {
        parts.push(format!("reason = {reason}"));
    }
    if let Some(path) = text("fieldPath") {
        if !path.starts_with('.') {
            return Err("a CEL rule whose fieldPath does not start with a dot");
        }
        parts.push(format!("field = {}", literal(path)));
    }
    if rule.get("optionalOldSelf").and_then(Value::as_bool) == Some(true) {
        parts.push("optional_old_self".to_owned());
    }
    Ok(format!("{name}({})", parts.join(", ")))
}

/// Adds the arguments that describe a field: title, example and external documentation.
pub(super) fn described(schema: Schema<'_>, arguments: &mut Vec<String>) {
    if let Some(title) = schema.text("title") {
        arguments.push(format!("title = {}", literal(title)));
    }
    match schema.get("example") {
        Some(Value::String(example)) => arguments.push(format!("example = {}", literal(example))),
        Some(Value::Number(example)) => {
            arguments.push(format!("example = {}", number(example, false)));
        }
        Some(Value::Bool(example)) => arguments.push(format!("example = {example}")),
        _ => {}
    }
    if let Some(docs) = schema.get("externalDocs").map(Schema)
        && let Some(url) = docs.text("url")
    {
        let description = docs.text("description");
        let description = description.map(|it| format!(", description = {}", literal(it)));
        let description = description.unwrap_or_default();
        arguments.push(format!(
            "external_docs(url = {}{description})",
            literal(url)
        ));
    }
}
