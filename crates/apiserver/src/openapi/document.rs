//! The OpenAPI document of one group version: its paths, and all schemas that the paths refer to.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{custom, paths, put};
use crate::kinds::{Definitions, Kind, SchemaSource};

pub(super) const REF: &str = "#/components/schemas/";
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
const GROUP_VERSION_KIND: &str = "x-kubernetes-group-version-kind";

/// Returns a reference to a schema of the document.
pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("{REF}{name}")})
}

/// Builds the document of a group version from all its kinds.
pub(super) fn build(group: &str, version: &str, kinds: &[Arc<Kind>]) -> Value {
    let mut schemas = Map::new();
    let mut all_paths = Map::new();
    for kind in kinds {
        if let SchemaSource::Custom(schema) = &kind.schema {
            let name = schema_name(kind);
            let list = custom::list(kind, &name);
            schemas.insert(name.clone(), custom::schema(kind, schema));
            schemas.insert(format!("{name}List"), list);
        }
        paths::add(kind, &mut all_paths);
    }
    let mut document = json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "1.36"},
        "paths": all_paths,
    });
    close(&document, &mut schemas);
    for kind in ["DeleteOptions", "WatchEvent"] {
        if let Some(schema) = schemas.get_mut(&format!("{META}{kind}")) {
            put(
                schema,
                GROUP_VERSION_KIND,
                of_every_group(group, version, kind),
            );
        }
    }
    let components = json!({
        "schemas": schemas,
        "securitySchemes": {"BearerToken": {
            "type": "apiKey",
            "description": "Bearer Token authentication",
            "name": "authorization",
            "in": "header",
        }},
    });
    put(&mut document, "components", components);
    document
}

/// Returns the name of a kind's schema. The name for a custom kind starts with the reversed group,
/// such as `com.example.v1.Robot`.
pub(super) fn schema_name(kind: &Kind) -> String {
    match &kind.schema {
        SchemaSource::Definition(name) => name.clone(),
        SchemaSource::Custom(_) => {
            let group: Vec<&str> = kind.group.rsplit('.').collect();
            format!("{}.{}.{}", group.join("."), kind.version, kind.kind)
        }
    }
}

/// Returns `x-kubernetes-group-version-kind` of a type that exists in every group, such as
/// `DeleteOptions`: an entry for the core group, and one for `group`.
fn of_every_group(group: &str, version: &str, kind: &str) -> Value {
    let mut groups = vec![json!({"group": "", "kind": kind, "version": "v1"})];
    if !group.is_empty() {
        groups.push(json!({"group": group, "kind": kind, "version": version}));
    }
    Value::Array(groups)
}

/// Adds to `schemas` all built-in definitions to which `document` or one of the `schemas` refers.
fn close(document: &Value, schemas: &mut Map<String, Value>) {
    let mut wanted = Vec::new();
    references(document, &mut wanted);
    schemas
        .values()
        .for_each(|schema| references(schema, &mut wanted));
    while let Some(name) = wanted.pop() {
        if schemas.contains_key(&name) {
            continue;
        }
        if let Some(definition) = Definitions::builtin().value(&name) {
            references(&definition, &mut wanted);
            schemas.insert(name, definition);
        }
    }
}

/// Adds to `found` the names of all schemas to which `value` refers.
pub(super) fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(name) = fields.get("$ref").and_then(Value::as_str) {
                found.extend(name.strip_prefix(REF).map(str::to_owned));
            }
            fields.values().for_each(|field| references(field, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}
