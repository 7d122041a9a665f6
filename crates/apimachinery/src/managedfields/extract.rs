//! The fields of an object that one manager applied.

use serde_json::{Map, Value};

use super::set_ref::{FieldSetRef, Step, has_key};

/// Returns the fields of an object that a field manager owns by server-side apply, with
/// `apiVersion`, `kind`, name and namespace. A controller that applies the result again changes
/// nothing. `subresource` is empty for the object itself.
///
/// Returns only `apiVersion`, `kind`, name and namespace if the manager did not apply the object.
///
/// # Examples
/// ```
/// use opkit_apimachinery::managedfields::extract;
/// use serde_json::json;
///
/// let robot = json!({
///     "apiVersion": "example.com/v1",
///     "kind": "Robot",
///     "metadata": {"name": "one", "uid": "7", "managedFields": [
///         {"manager": "me", "operation": "Apply", "fieldsV1": {"f:spec": {"f:size": {}}}},
///         {"manager": "you", "operation": "Apply", "fieldsV1": {"f:spec": {"f:color": {}}}},
///     ]},
///     "spec": {"size": 1, "color": "red"},
/// });
/// assert_eq!(extract(&robot, "me", ""), json!({
///     "apiVersion": "example.com/v1",
///     "kind": "Robot",
///     "metadata": {"name": "one"},
///     "spec": {"size": 1},
/// }));
/// ```
pub fn extract(object: &Value, manager: &str, subresource: &str) -> Value {
    let entries = object
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array);
    let text = |entry: &Value, name: &str| {
        let text = entry.get(name).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let entry = entries.into_iter().flatten().find(|entry| {
        text(entry, "manager") == manager
            && text(entry, "operation") == "Apply"
            && text(entry, "subresource") == subresource
    });
    let fields = entry.and_then(|entry| entry.get("fieldsV1"));
    let fields = fields
        .and_then(FieldSetRef::new)
        .filter(|fields| !fields.is_empty());
    let extracted = fields.map(|fields| part(fields, object));
    let mut extracted = match extracted {
        Some(Value::Object(extracted)) => extracted,
        _ => Map::new(),
    };
    for name in ["apiVersion", "kind"] {
        let value = object.get(name).cloned();
        extracted.extend(value.map(|value| (name.to_owned(), value)));
    }
    let metadata = extracted
        .entry("metadata")
        .or_insert_with(|| Value::Object(Map::new()));
    if let Some(metadata) = metadata.as_object_mut() {
        for name in ["name", "namespace"] {
            let value = object.pointer(&format!("/metadata/{name}")).cloned();
            metadata.extend(value.map(|value| (name.to_owned(), value)));
        }
    }
    Value::Object(extracted)
}

/// Returns the part of a value that consists of the fields of a set.
fn part(fields: FieldSetRef<'_>, value: &Value) -> Value {
    if fields.is_empty() {
        return value.clone();
    }
    match value {
        Value::Object(_) => {
            let parts = fields.steps().filter_map(|(_, step, below)| match step {
                Step::Field(name) => Some((name.to_owned(), part(below?, value.get(name)?))),
                _ => None,
            });
            Value::Object(parts.collect())
        }
        Value::Array(items) => {
            // The items keep their order in the object.
            let parts = items.iter().enumerate().filter_map(|(at, item)| {
                fields.steps().find_map(|(_, step, below)| {
                    let is_item = match &step {
                        Step::Key(key) => has_key(item, key),
                        Step::Value(wanted) => item == wanted,
                        Step::Index(index) => *index == at,
                        _ => false,
                    };
                    is_item.then(|| below.map_or_else(|| item.clone(), |below| part(below, item)))
                })
            });
            Value::Array(parts.collect())
        }
        value => value.clone(),
    }
}

#[cfg(test)]
mod tests;
