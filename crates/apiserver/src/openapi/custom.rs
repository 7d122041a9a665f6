//! The published schema of a custom kind: the schema in the CRD, with the fields `apiVersion`,
//! `kind` and `metadata` added.

use serde_json::{Map, Value, json};

use super::document::reference;
use super::put;
use crate::kinds::{Definitions, Kind};

const CONVENTIONS: &str =
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// Returns the published schema of a custom kind; `schema` is the schema in the CRD.
pub(super) fn schema(kind: &Kind, schema: &Value) -> Value {
    let mut published = published(kind, schema, true);
    if let Some(fields) = selectable_fields(kind) {
        put(&mut published, "x-kubernetes-selectable-fields", fields);
    }
    published
}

/// Returns the extension with the selectable fields of a kind, if it has any.
pub(super) fn selectable_fields(kind: &Kind) -> Option<Value> {
    let custom = kind.custom.as_ref()?;
    let fields = custom.selectable_fields.iter();
    let fields: Vec<Value> = fields.map(|path| json!({"fieldPath": path})).collect();
    (!fields.is_empty()).then_some(Value::Array(fields))
}

/// Returns the schema with the fields of a resource. `has_any_of` is whether the document has the
/// keyword `anyOf`, with which values can be integers or strings.
pub(super) fn published(kind: &Kind, schema: &Value, has_any_of: bool) -> Value {
    let mut schema = schema.clone();
    expand(&mut schema, has_any_of);
    add_type_meta(&mut schema);
    if !schema.is_object() {
        schema = json!({"type": "object"});
    }
    let gvk = json!([{"group": kind.group, "kind": kind.kind, "version": kind.version}]);
    put(&mut schema, "x-kubernetes-group-version-kind", gvk);
    schema
}

/// Returns the schema of the list of a kind; `name` is the name of the kind's schema.
pub(super) fn list(kind: &Kind, name: &str) -> Value {
    let (api_version, kind_field) = type_meta();
    let mut list = json!({
        "description": format!("{0}List is a list of {0}", kind.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": api_version,
            "items": {
                "description": format!("List of {}. More info: {CONVENTIONS}", kind.plural),
                "type": "array",
                "items": reference(name),
            },
            "kind": kind_field,
            "metadata": {
                "description": format!("Standard list metadata. More info: {CONVENTIONS}#types-kinds"),
                "allOf": [reference(&format!("{META}ListMeta"))],
            },
        },
        "x-kubernetes-group-version-kind":
            [{"group": kind.group, "kind": kind.list_kind(), "version": kind.version}],
    });
    if let Some(fields) = selectable_fields(kind) {
        put(&mut list, "x-kubernetes-selectable-fields", fields);
    }
    list
}

/// Adds the plain OpenAPI equivalents of two extensions of Kubernetes: `x-kubernetes-int-or-string`
/// and `x-kubernetes-embedded-resource`.
fn expand(schema: &mut Value, has_any_of: bool) {
    let Some(fields) = schema.as_object_mut() else {
        return;
    };
    let is = |fields: &Map<String, Value>, mark: &str| fields.get(mark) == Some(&Value::Bool(true));
    if has_any_of && is(fields, "x-kubernetes-int-or-string") && !fields.contains_key("anyOf") {
        fields.insert(
            "anyOf".to_owned(),
            json!([{"type": "integer"}, {"type": "string"}]),
        );
    }
    let embedded = is(fields, "x-kubernetes-embedded-resource");
    let preserves = is(fields, "x-kubernetes-preserve-unknown-fields");
    for below in ["properties", "patternProperties"] {
        let properties = fields.get_mut(below).and_then(Value::as_object_mut);
        properties
            .into_iter()
            .flat_map(Map::values_mut)
            .for_each(|part| expand(part, has_any_of));
    }
    for below in ["items", "additionalProperties"] {
        if let Some(schema) = fields.get_mut(below) {
            expand(schema, has_any_of);
        }
    }
    // kubectl would refuse the unknown fields of a resource with properties.
    if embedded && (has_any_of || !preserves) {
        add_embedded_type_meta(schema);
    }
}

/// Adds the fields `apiVersion`, `kind` and `metadata` to the schema of a resource in a resource.
fn add_embedded_type_meta(schema: &mut Value) {
    add_type_meta(schema);
    let texts = [
        (
            "apiVersion",
            "apiVersion defines the versioned schema of this representation of an object.",
            "resources",
        ),
        (
            "kind",
            "kind is a string value representing the type of this object. In CamelCase.",
            "types-kinds",
        ),
    ];
    for (name, text, anchor) in texts {
        let description = format!("{text} More info: {CONVENTIONS}#{anchor}");
        if let Some(field) = schema.pointer_mut(&format!("/properties/{name}")) {
            put(field, "description", json!(description));
        }
    }
    let required = schema.get("required").and_then(Value::as_array);
    let mut required = required.cloned().unwrap_or_default();
    for name in ["kind", "apiVersion"] {
        if !required.iter().any(|known| known == name) {
            required.push(json!(name));
        }
    }
    put(schema, "required", Value::Array(required));
}

/// Adds the fields `apiVersion`, `kind` and `metadata`, which the schema in a CRD does not have.
fn add_type_meta(schema: &mut Value) {
    let (api_version, kind) = type_meta();
    let Some(schema) = schema.as_object_mut() else {
        return;
    };
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    let Some(properties) = properties.as_object_mut() else {
        return;
    };
    properties.insert("apiVersion".to_owned(), api_version);
    properties.insert("kind".to_owned(), kind);
    properties.insert(
        "metadata".to_owned(),
        json!({
            "description": "Standard object's metadata. More info: https://git.k8s.io/community/\
                            contributors/devel/sig-architecture/api-conventions.md#metadata",
            "allOf": [reference(&format!("{META}ObjectMeta"))],
        }),
    );
}

/// Returns the schemas that `apiVersion` and `kind` have in built-in kinds.
fn type_meta() -> (Value, Value) {
    let status = Definitions::builtin().value(&format!("{META}Status"));
    let property = |name: &str| {
        let property = status.as_ref()?.pointer(&format!("/properties/{name}"))?;
        Some(property.clone())
    };
    let text = || json!({"type": "string"});
    (
        property("apiVersion").unwrap_or_else(text),
        property("kind").unwrap_or_else(text),
    )
}
