//! Fields of objects as JSON.

use jiff::Timestamp;
use serde_json::{Map, Value};

/// Returns the string at a JSON pointer, or an empty string.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    let text = value.pointer(pointer).and_then(Value::as_str);
    text.unwrap_or_default()
}

/// Returns the items of the list at a JSON pointer, or no items.
pub(crate) fn items<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    let items = value.pointer(pointer).and_then(Value::as_array);
    items.map(Vec::as_slice).unwrap_or_default()
}

/// Returns the strings of the list at a JSON pointer.
pub(crate) fn texts<'a>(value: &'a Value, pointer: &str) -> Vec<&'a str> {
    let items = items(value, pointer).iter();
    items.filter_map(Value::as_str).collect()
}

/// Returns the integer at a JSON pointer, or 0.
pub(crate) fn int(value: &Value, pointer: &str) -> i64 {
    let number = value.pointer(pointer).and_then(Value::as_i64);
    number.unwrap_or_default()
}

pub(crate) fn kind(object: &Value) -> &str {
    text(object, "/kind")
}

pub(crate) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// Returns the namespace, or `None` for a cluster-scoped object.
pub(crate) fn namespace(object: &Value) -> Option<&str> {
    Some(text(object, "/metadata/namespace")).filter(|namespace| !namespace.is_empty())
}

pub(crate) fn labels(object: &Value) -> Option<&Map<String, Value>> {
    object
        .pointer("/metadata/labels")
        .and_then(Value::as_object)
}

/// Returns the condition of a type.
pub(crate) fn condition<'a>(object: &'a Value, type_: &str) -> Option<&'a Value> {
    let mut conditions = items(object, "/status/conditions").iter();
    conditions.find(|condition| text(condition, "/type") == type_)
}

/// Reports whether a condition has a status.
pub(crate) fn has_condition(object: &Value, type_: &str, status: &str) -> bool {
    condition(object, type_).is_some_and(|condition| text(condition, "/status") == status)
}

/// Returns the time at a JSON pointer.
pub(crate) fn time(value: &Value, pointer: &str) -> Option<Timestamp> {
    text(value, pointer).parse().ok()
}

/// Returns the number of seconds from one time to another.
pub(crate) fn seconds(from: Timestamp, to: Timestamp) -> i64 {
    to.as_second().saturating_sub(from.as_second())
}

/// Returns a number of seconds in its largest unit, such as `3 d`.
pub(crate) fn duration(seconds: i64) -> String {
    match seconds {
        ..120 => format!("{} s", seconds.max(0)),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Returns the kind in lower case and the name, such as `robot/robot-one`.
pub(crate) fn reference(object: &Value) -> String {
    format!("{}/{}", kind(object).to_lowercase(), name(object))
}

/// Returns the kind, the name and the namespace, such as `robot/robot-one in fleet`.
pub(crate) fn located(object: &Value) -> String {
    let place = namespace(object).map(|namespace| format!(" in {namespace}"));
    reference(object) + &place.unwrap_or_default()
}

/// Returns a text without line breaks, cut at a length that fits into a sentence.
pub(crate) fn short(message: &str) -> String {
    const MAX: usize = 160;
    let line: Vec<_> = message.split_whitespace().collect();
    let line = line.join(" ");
    match line.char_indices().nth(MAX) {
        Some((end, _)) => format!("{}...", line.get(..end).unwrap_or_default()),
        None => line,
    }
}
