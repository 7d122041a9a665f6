//! States of objects at several times, in which loops are seen.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::value::{items, text};

/// State of the objects of the operator's kinds at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Look {
    /// Objects by UID.
    pub(crate) objects: BTreeMap<String, Seen>,
}

/// State of one object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) resource_version: String,
    /// Field managers by the path of a field that they own.
    pub(crate) owners: BTreeMap<String, Vec<String>>,
}

impl Look {
    /// Reads the states of objects.
    pub fn of(objects: &[Value]) -> Self {
        let objects = objects.iter();
        let seen = objects.map(|object| {
            let seen = Seen {
                resource_version: text(object, "/metadata/resourceVersion").to_owned(),
                owners: owners(object),
            };
            (text(object, "/metadata/uid").to_owned(), seen)
        });
        Self {
            objects: seen.collect(),
        }
    }
}

/// Returns the field managers of each field of an object, except for its metadata.
fn owners(object: &Value) -> BTreeMap<String, Vec<String>> {
    let mut owners: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in items(object, "/metadata/managedFields") {
        let mut paths = Vec::new();
        if let Some(fields) = entry.get("fieldsV1") {
            leaves(fields, String::new(), &mut paths);
        }
        for path in paths {
            if !path.starts_with(".metadata") {
                let managers = owners.entry(path).or_default();
                managers.push(text(entry, "/manager").to_owned());
            }
        }
    }
    for managers in owners.values_mut() {
        managers.sort();
        managers.dedup();
    }
    owners
}

/// Adds the paths of the fields in a `fieldsV1` that contain no other fields.
fn leaves(fields: &Value, path: String, paths: &mut Vec<String>) {
    let children = fields.as_object().into_iter().flatten();
    let mut children = children.filter(|(key, _)| *key != ".").peekable();
    if children.peek().is_none() && !path.is_empty() {
        paths.push(path);
        return;
    }
    for (key, below) in children {
        leaves(below, format!("{path}{}", step(key)), paths);
    }
}

/// Returns a key of a `fieldsV1` as it is written in a path.
fn step(key: &str) -> String {
    match key.split_once(':') {
        Some(("f", name)) => format!(".{name}"),
        Some(("k", keys)) => {
            let keys: Value = serde_json::from_str(keys).unwrap_or_default();
            let values = keys.as_object().into_iter().flatten();
            let values: Vec<_> = values
                .map(|(_, value)| {
                    value
                        .as_str()
                        .map_or_else(|| value.to_string(), str::to_owned)
                })
                .collect();
            format!("[{}]", values.join(","))
        }
        Some((_, value)) => format!("[{value}]"),
        None => key.to_owned(),
    }
}

#[cfg(test)]
mod tests;
