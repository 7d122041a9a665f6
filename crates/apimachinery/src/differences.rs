//! Differences between two states of an object, field by field, to show them to a person.
//!
//! The functions compare JSON without a schema. They are not for patches: see
//! [`patch`](crate::patch).

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::redact::{LAST_APPLIED_CONFIGURATION, is_secret, redact, replace};

/// Largest number of characters of a value in the text of a difference.
const TEXT_MAX: usize = 80;

/// Fields of the metadata that change with every write.
const WRITE_METADATA: [&str; 3] = ["managedFields", "resourceVersion", "generation"];

/// Fields that name the items of a list, the first one first.
const ITEM_NAMES: [&str; 2] = ["name", "type"];

/// Field that differs between two states of an object. Displayed as `.spec.replicas 1 -> 2`,
/// `.spec.paused + true` or `.spec.versions - v1alpha1`.
///
/// # Examples
/// ```
/// use opkit_apimachinery::differences::differences;
/// use serde_json::json;
///
/// let before = json!({"spec": {"replicas": 1, "versions": [{"name": "v1"}]}});
/// let after = json!({"spec": {"replicas": 2, "versions": [{"name": "v1"}, {"name": "v2"}]}});
/// let found = differences(&before, &after);
/// assert_eq!(found[0].to_string(), ".spec.replicas 1 -> 2");
/// assert_eq!(found[1].to_string(), ".spec.versions + v2");
/// assert_eq!(found[1].path, ".spec.versions[v2]");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FieldDifference {
    /// Path of the field, such as `.spec.template.spec.containers[web].image`. The path of an item
    /// of a list whose items have no names ends with `[]`.
    pub path: String,
    /// Value before; `None` if the field was absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// Value after; `None` if the field is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

impl fmt::Display for FieldDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, value) = match (&self.before, &self.after) {
            (Some(before), Some(after)) => {
                return write!(f, "{} {} -> {}", self.path, text(before), text(after));
            }
            (None, Some(after)) => ('+', after),
            (Some(before), None) => ('-', before),
            (None, None) => return f.write_str(&self.path),
        };
        let item = self
            .path
            .strip_suffix(']')
            .and_then(|it| it.rsplit_once('['));
        match item {
            Some((list, "")) => write!(f, "{list} {sign} {}", text(value)),
            Some((list, name)) if value.is_object() => write!(f, "{list} {sign} {name}"),
            _ => write!(f, "{} {sign} {}", self.path, text(value)),
        }
    }
}

/// Returns the fields that differ between two states of an object, without the status and the
/// metadata that changes with every write. Values of Secrets are redacted.
pub fn differences(before: &Value, after: &Value) -> Vec<FieldDifference> {
    let mut found = Vec::new();
    values(String::new(), &content(before), &content(after), &mut found);
    let kind = after.get("kind").or_else(|| before.get("kind"));
    let kind = kind.and_then(Value::as_str).unwrap_or_default();
    for difference in &mut found {
        let path = &difference.path;
        let is_hidden = path.contains(LAST_APPLIED_CONFIGURATION)
            || (is_secret(kind) && (path.starts_with(".data") || path.starts_with(".stringData")));
        for value in difference.before.iter_mut().chain(&mut difference.after) {
            match is_hidden {
                true => replace(value),
                false => redact("", value),
            }
        }
    }
    found
}

/// Returns the object without its status and without the metadata that changes with every write.
fn content(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            for name in WRITE_METADATA {
                metadata.remove(name);
            }
        }
    }
    object
}

fn values(path: String, before: &Value, after: &Value, found: &mut Vec<FieldDifference>) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => maps(&path, before, after, found),
        (Value::Array(before), Value::Array(after)) => lists(path, before, after, found),
        (before, after) if before == after => {}
        (before, after) => found.push(FieldDifference {
            path,
            before: Some(before.clone()),
            after: Some(after.clone()),
        }),
    }
}

fn maps(
    path: &str,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    found: &mut Vec<FieldDifference>,
) {
    let added = after.keys().filter(|name| !before.contains_key(*name));
    for name in before.keys().chain(added) {
        let path = format!("{path}{}", step(name));
        match (before.get(name), after.get(name)) {
            (Some(before), Some(after)) => values(path, before, after, found),
            (before, after) if !is_empty(before) || !is_empty(after) => {
                found.push(FieldDifference {
                    path,
                    before: before.cloned(),
                    after: after.cloned(),
                });
            }
            _ => {}
        }
    }
}

/// Reports whether a field is absent, or has a value that Kubernetes treats as absent.
fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Object(fields)) => fields.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    }
}

fn lists(path: String, before: &[Value], after: &[Value], found: &mut Vec<FieldDifference>) {
    let start = found.len();
    if before == after {
        return;
    }
    if let (Some(old), Some(new)) = (named(before), named(after)) {
        for (name, item) in &old {
            let path = format!("{path}[{name}]");
            match new.iter().find(|(other, _)| other == name) {
                Some((_, after)) => values(path, item, after, found),
                None => found.push(one_sided(path, Some(item), None)),
            }
        }
        for (name, item) in &new {
            if !old.iter().any(|(other, _)| other == name) {
                found.push(one_sided(format!("{path}[{name}]"), None, Some(item)));
            }
        }
    } else if before.len() == after.len() && before.iter().chain(after).all(Value::is_object) {
        for (position, (old, new)) in before.iter().zip(after).enumerate() {
            values(format!("{path}[{position}]"), old, new, found);
        }
    } else {
        let path = format!("{path}[]");
        for item in only_in(before, after) {
            found.push(one_sided(path.clone(), Some(item), None));
        }
        for item in only_in(after, before) {
            found.push(one_sided(path.clone(), None, Some(item)));
        }
    }
    // The items are the same in another order.
    if found.len() == start {
        found.push(FieldDifference {
            path,
            before: Some(before.into()),
            after: Some(after.into()),
        });
    }
}

fn one_sided(path: String, before: Option<&Value>, after: Option<&Value>) -> FieldDifference {
    FieldDifference {
        path,
        before: before.cloned(),
        after: after.cloned(),
    }
}

/// Returns the items of a list with their names, or `None` if not each item has a name of its own.
fn named(items: &[Value]) -> Option<Vec<(&str, &Value)>> {
    let by = |field: &str| {
        let names = items.iter().map(|item| {
            let name = item.get(field).and_then(Value::as_str)?;
            Some((name, item))
        });
        let names: Vec<_> = names.collect::<Option<_>>()?;
        let is_unique = |(at, (name, _)): (usize, &(&str, _))| {
            names.iter().position(|(other, _)| other == name) == Some(at)
        };
        names.iter().enumerate().all(is_unique).then_some(names)
    };
    ITEM_NAMES.into_iter().find_map(by)
}

/// Returns the items that one list has more often than another.
fn only_in<'a>(items: &'a [Value], other: &[Value]) -> Vec<&'a Value> {
    let mut rest: Vec<&Value> = other.iter().collect();
    let is_missing = |item: &&Value| match rest.iter().position(|it| it == item) {
        Some(at) => {
            rest.swap_remove(at);
            false
        }
        None => true,
    };
    items.iter().filter(is_missing).collect()
}

/// Returns the segment of a path. A name that would be ambiguous is quoted.
fn step(name: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "_-$".contains(char);
    match !name.is_empty() && name.chars().all(is_plain) {
        true => format!(".{name}"),
        false => format!("[{name:?}]"),
    }
}

/// Returns a value as JSON on one line, truncated if it is long.
fn text(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(TEXT_MAX) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests;
