//! Normalizes objects as Kubernetes does when it decodes them into Go structs and encodes them
//! again.

use serde_json::{Map, Value};

use crate::quantity::Quantity;
use crate::schema::{Schema, SchemaType, Typed};

/// Normalizes an object as if it was decoded into Kubernetes' Go types and encoded again. Removes
/// unnecessary nulls, empty lists and empty maps, adds the structs that always exist in Go, and
/// writes quantities in canonical form.
///
/// In a built-in kind, all fields are normalized. In a custom resource, only the metadata is
/// normalized. Call this function on an object that a client sent.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::schema::{NoDefinitions, Schema, Typed};
/// use opkit_apimachinery::structural::normalize;
/// use serde_json::json;
///
/// let schema = Schema::parse(&json!({"type": "object"}))?;
/// let mut object = json!({"metadata": {"name": "a", "labels": {}, "uid": null}, "spec": null});
/// normalize(&mut object, &Typed::new(&schema, &NoDefinitions));
/// assert_eq!(object, json!({"metadata": {"name": "a"}, "spec": null}));
/// # Ok::<(), opkit_apimachinery::schema::SchemaError>(())
/// ```
pub fn normalize(object: &mut Value, schema: &Typed<'_>) {
    if schema
        .property("metadata")
        .is_some_and(|metadata| metadata.is_referenced())
    {
        normalize_value(object, schema);
    } else if let (Some(typed), Some(metadata)) = (
        schema.resource_field("metadata"),
        object.get_mut("metadata"),
    ) {
        normalize_value(metadata, &typed);
    }
}

fn normalize_value(value: &mut Value, typed: &Typed<'_>) {
    let schema = typed.schema();
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            if let Some(property) = typed.property(name) {
                return normalize_field(value, &property, schema.required.contains(name));
            }
            match typed.additional() {
                // A null entry of a map is the zero value, which is an empty string for most maps.
                Some(entry) if value.is_null() => {
                    *value = Value::from("");
                    entry.schema().type_ == Some(SchemaType::String)
                }
                Some(entry) => {
                    normalize_value(value, &entry);
                    true
                }
                None => true,
            }
        }),
        Value::Array(items) => {
            let Some(typed) = typed.items() else { return };
            items
                .iter_mut()
                .for_each(|item| normalize_value(item, &typed));
        }
        Value::String(text) if typed.is_quantity() => {
            if let Some(quantity) = Quantity::parse(text) {
                *text = quantity.to_string();
            }
        }
        Value::Number(number) if typed.is_quantity() => {
            if let Some(quantity) = Quantity::parse(&number.to_string()) {
                *value = quantity.to_string().into();
            }
        }
        _ => {}
    }
}

/// Normalizes a field of a Go struct, and returns whether the field is kept. A field that is a
/// struct, and not a pointer to one, always exists; the published schemas mark such a field by the
/// default `{}`.
fn normalize_field(value: &mut Value, typed: &Typed<'_>, required: bool) -> bool {
    if value.is_null() {
        let empty = Value::Object(Map::new());
        let exists = typed.default() == Some(&empty);
        if exists {
            *value = empty;
        }
        return exists || required;
    }
    normalize_value(value, typed);
    required || !is_empty_collection(value, typed.schema())
}

/// Reports whether the value is an empty list or an empty map, which Go leaves out. An empty struct
/// does not count, nor does a field without a type, which may hold any JSON.
fn is_empty_collection(value: &Value, schema: &Schema) -> bool {
    match value {
        Value::Array(items) => items.is_empty() && schema.type_ == Some(SchemaType::Array),
        Value::Object(fields) => {
            let map = schema.additional_properties.is_some() && schema.properties.is_empty();
            fields.is_empty() && map
        }
        _ => false,
    }
}
