//! Types that occur several times in a CRD, such as references to Secrets.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::schema::Schema;
use super::union;

/// How often each type occurs.
#[derive(Clone, Debug, Default)]
pub(super) struct Census {
    types: BTreeMap<String, Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    count: usize,
    description: Option<String>,
    /// Whether all descriptions are equal.
    is_same: bool,
}

impl Census {
    /// Counts the types of a schema and below it.
    pub(super) fn add(&mut self, schema: Schema<'_>, is_element: bool) {
        if let Some(key) = key(schema, is_element) {
            let description = schema.description();
            let entry = self.types.entry(key).or_insert_with(|| Entry {
                count: 0,
                description: description.clone(),
                is_same: true,
            });
            entry.count = entry.count.saturating_add(1);
            entry.is_same &= entry.description == description;
        }
        for property in schema.properties().into_iter().flat_map(Map::values) {
            self.add(Schema(property), false);
        }
        for element in [schema.items(), schema.values()].into_iter().flatten() {
            self.add(element, true);
        }
    }

    /// Reports whether a type occurs more than once.
    pub(super) fn is_shared(&self, key: &str) -> bool {
        self.types.get(key).is_some_and(|entry| entry.count > 1)
    }

    /// Returns the description of a type, unless it depends on the place.
    pub(super) fn description(&self, key: &str) -> Option<String> {
        let entry = self.types.get(key).filter(|entry| entry.is_same)?;
        entry.description.clone()
    }
}

/// Returns the identity of the type that a schema needs: schemas with the same key can have the
/// same type. Returns `None` if the schema needs no type of its own.
///
/// The description of a field and the arguments on it belong to the field. An element of a list or
/// map has no field, so its type has them.
pub(super) fn key(schema: Schema<'_>, is_element: bool) -> Option<String> {
    let mut key = if let Some(values) = schema.enum_values() {
        json!({"enum": values})
    } else if is_struct(schema) {
        let rules = union::find(schema).map(|_| schema.get("x-kubernetes-validations"));
        json!({
            "properties": schema.get("properties"),
            "required": schema.get("required"),
            "rules": rules,
            "oneOf": schema.get("oneOf"),
        })
    } else {
        return None;
    };
    if let Some(fields) = key.as_object_mut() {
        let description = schema.description();
        let description = match is_element {
            true => json!(description),
            false => json!(description.is_some()),
        };
        fields.insert("description".to_owned(), description);
        if is_element {
            for keyword in ["x-kubernetes-map-type", "minProperties", "maxProperties"] {
                let value = schema.get(keyword).cloned().unwrap_or(Value::Null);
                fields.insert(keyword.to_owned(), value);
            }
        }
    }
    Some(key.to_string())
}

/// Reports whether a schema is an object with known fields.
pub(super) fn is_struct(schema: Schema<'_>) -> bool {
    let is_map = schema.values().is_some() || schema.has_any_values();
    schema.type_() == Some("object")
        && !schema.is_int_or_string()
        && !schema.preserves_unknown()
        && !schema.is("x-kubernetes-embedded-resource")
        && (schema.properties().is_some_and(|it| !it.is_empty()) || !is_map)
}

/// Reports whether the type of a schema is a union.
pub(super) fn is_union(schema: Schema<'_>) -> bool {
    is_struct(schema) && union::find(schema).is_some()
}
