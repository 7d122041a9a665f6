//! Checks the sizes and the parts of lists and objects.

use serde_json::{Map, Value};

use super::{Outcome, check_update, field, ratchet};
use crate::schema::{AdditionalProperties, Typed};
use crate::structural::FieldError;

pub(super) fn check_items(
    items: &[Value],
    old: Option<&Value>,
    typed: &Typed<'_>,
    path: &str,
    outcome: &mut Outcome,
) {
    if let Some(item_schema) = typed.items() {
        let old = old.and_then(Value::as_array);
        for (index, item) in items.iter().enumerate() {
            let old = old.and_then(|old| ratchet::old_item(typed, old, item));
            let path = format!("{path}[{index}]");
            outcome.merge(check_update(item, old, &item_schema, &path));
        }
    }
    let schema = typed.schema();
    let size = items.len();
    if let Some(min) = schema.min_items.filter(|min| (size as u64) < *min) {
        let detail = format!("{path} in body should have at least {min} items");
        outcome.add(FieldError::invalid(field(path), &Value::from(size), detail));
    }
    if let Some(max) = schema.max_items.filter(|max| (size as u64) > *max) {
        outcome.add(FieldError::too_many(field(path), size, max));
    }
    let repeated = |(index, item): (usize, &Value)| items.iter().take(index).any(|i| i == item);
    if schema.unique_items && items.iter().enumerate().any(repeated) {
        let detail = format!("{path} in body shouldn't contain duplicates");
        outcome.add(FieldError::invalid(field(path), &Value::from(""), detail));
    }
}

pub(super) fn check_object(
    fields: &Map<String, Value>,
    old: Option<&Value>,
    typed: &Typed<'_>,
    path: &str,
    outcome: &mut Outcome,
) {
    let schema = typed.schema();
    // The type of the whole object is not compared: both objects are of the requested version.
    let is_type = |name: &str| path.is_empty() && matches!(name, "apiVersion" | "kind");
    let old = |name: &str| old.and_then(|old| old.get(name)).filter(|_| !is_type(name));
    let size = fields.len();
    if let Some(min) = schema.min_properties.filter(|min| (size as u64) < *min) {
        let detail = format!("{path} in body should have at least {min} properties");
        outcome.add(FieldError::invalid(field(path), &Value::from(size), detail));
    }
    if let Some(max) = schema.max_properties.filter(|max| (size as u64) > *max) {
        outcome.add(FieldError::too_many(field(path), size, max));
    }
    let unnamed = |name: &&String| !schema.properties.contains_key(*name);
    if let Some(AdditionalProperties::Allowed(false)) = schema.additional_properties {
        for name in fields.keys().filter(unnamed) {
            let detail = format!("{path}.{name} in body is a forbidden property");
            outcome.add(FieldError::invalid(
                field(path),
                &Value::from(name.as_str()),
                detail,
            ));
        }
    }
    if let Some(additional) = typed.additional() {
        for (name, value) in fields.iter().filter(|(name, _)| unnamed(name)) {
            let path = format!("{path}.{name}");
            outcome.merge(check_update(value, old(name), &additional, &path));
        }
    }
    for (name, value) in fields {
        if let Some(property) = typed.property(name) {
            let path = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}.{name}")
            };
            outcome.merge(check_update(value, old(name), &property, &path));
        }
    }
    for name in schema
        .required
        .iter()
        .filter(|name| !fields.contains_key(*name))
    {
        outcome.add(FieldError::required(field(&format!("{path}.{name}")), ""));
    }
}
