//! Text as Go formats it, for the messages of Kubernetes.

use serde_json::{Map, Value};

/// Fields of `metadata` in the order in which Go prints them.
const METADATA: &[&str] = &[
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];
/// Fields of an entry of `managedFields` in the order in which Go prints them.
const MANAGER: &[&str] = &[
    "manager",
    "operation",
    "apiVersion",
    "time",
    "fieldsType",
    "fieldsV1",
    "subresource",
];

/// Fields of an owner reference in the order in which Go prints them.
const OWNER: &[&str] = &[
    "apiVersion",
    "kind",
    "name",
    "uid",
    "controller",
    "blockOwnerDeletion",
];

/// Formats the owner references of an object as Go prints their type as JSON.
pub(crate) fn owner_references(owners: &[Value]) -> String {
    let owners = owners.iter().filter_map(Value::as_object);
    let texts: Vec<String> = owners
        .map(|owner| in_order(OWNER, owner, |_, value| value.to_string()))
        .collect();
    format!("[{}]", texts.join(","))
}

/// Formats the metadata of an object as Go prints its type as JSON.
pub(crate) fn metadata(metadata: &Value) -> String {
    let fields = metadata.as_object().cloned().unwrap_or_default();
    in_order(METADATA, &fields, |name, value| {
        match (name, value.as_array()) {
            ("managedFields", Some(managers)) => {
                let managers = managers.iter().filter_map(Value::as_object);
                let texts: Vec<String> = managers
                    .map(|manager| in_order(MANAGER, manager, |_, value| value.to_string()))
                    .collect();
                format!("[{}]", texts.join(","))
            }
            _ => value.to_string(),
        }
    })
}

fn in_order(
    order: &[&str],
    fields: &Map<String, Value>,
    text: impl Fn(&str, &Value) -> String,
) -> String {
    let present = order
        .iter()
        .filter_map(|name| Some((name, fields.get(*name)?)));
    let texts: Vec<String> = present
        .map(|(name, value)| format!("{name:?}:{}", text(name, value)))
        .collect();
    format!("{{{}}}", texts.join(","))
}

/// Formats a list of strings as Go does with `%q`: quoted, with spaces between them.
pub(crate) fn quoted_list(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", quoted.join(" "))
}

/// Formats a value as Go's `%v` does, such as `map[a:1 b:[x y]]`.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let fields = fields.iter();
            let shown: Vec<String> = fields.map(|(k, v)| format!("{k}:{}", plain(v))).collect();
            format!("map[{}]", shown.join(" "))
        }
    }
}

/// Returns the Go type of a value that was decoded from JSON.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
