//! The schema of a custom kind in OpenAPI v2, which does not have all keywords of CRDs.

use serde_json::{Map, Value, json};

use super::{convert, put};
use crate::kinds::{Kind, SchemaSource};
use crate::openapi::custom;

/// Returns the schema of a custom kind.
pub(super) fn definition(kind: &Kind) -> Value {
    let SchemaSource::Custom(schema) = &kind.schema else {
        return Value::Null;
    };
    // kubectl would refuse unknown fields if there were any properties.
    if is(schema, "x-kubernetes-preserve-unknown-fields") {
        let gvk = json!([{"group": kind.group, "kind": kind.kind, "version": kind.version}]);
        let mut open = json!({"type": "object", "x-kubernetes-group-version-kind": gvk});
        add_selectable_fields(kind, &mut open);
        return open;
    }
    let mut schema = (**schema).clone();
    restrict(&mut schema);
    let mut published = custom::published(kind, &schema, false);
    add_selectable_fields(kind, &mut published);
    convert(&published)
}

fn add_selectable_fields(kind: &Kind, schema: &mut Value) {
    if let Some(fields) = custom::selectable_fields(kind) {
        put(schema, "x-kubernetes-selectable-fields", fields);
    }
}

/// Removes the keywords that OpenAPI v2 does not have, and with which kubectl cannot cope.
fn restrict(schema: &mut Value) {
    let is_nullable = |part: &Value| is(part, "nullable");
    let nullable: Vec<String> = schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter(|(_, part)| is_nullable(part))
        .map(|(name, _)| name.clone())
        .collect();
    let has_nullable_values = schema.get("additionalProperties").is_some_and(is_nullable);
    let preserves = is(schema, "x-kubernetes-preserve-unknown-fields");
    let is_null = is_nullable(schema);
    let Some(fields) = schema.as_object_mut() else {
        return;
    };
    for keyword in ["allOf", "oneOf", "anyOf", "not"] {
        fields.remove(keyword);
    }
    if is_null {
        fields.remove("type");
        fields.remove("nullable");
    }
    if is_null || preserves {
        fields.remove("items");
        fields.remove("properties");
    }
    let type_ = fields
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let is_untyped = match type_ {
        "array" => !fields.contains_key("items"),
        "object" => preserves,
        _ => false,
    };
    if is_untyped {
        fields.remove("type");
    }
    restrict_required(fields, &nullable, has_nullable_values);
    let properties = fields.get_mut("properties").and_then(Value::as_object_mut);
    properties
        .into_iter()
        .flat_map(Map::values_mut)
        .for_each(restrict);
    for keyword in ["items", "additionalProperties"] {
        if let Some(part) = fields.get_mut(keyword) {
            restrict(part);
        }
    }
}

/// Removes the names of nullable fields from the required fields.
fn restrict_required(fields: &mut Map<String, Value>, nullable: &[String], has_nullable: bool) {
    let Some(required) = fields.get_mut("required").and_then(Value::as_array_mut) else {
        return;
    };
    let is_nullable = |name: &Value| nullable.iter().any(|nullable| name == nullable);
    required.retain(|name| !has_nullable && !is_nullable(name));
    if required.is_empty() {
        fields.remove("required");
    }
}

fn is(schema: &Value, keyword: &str) -> bool {
    schema.get(keyword) == Some(&Value::Bool(true))
}
