//! OpenAPI v2: one document with the schemas and the paths of all kinds, as JSON or protobuf.
//!
//! The document is built from those of OpenAPI v3. Older clients and `kubectl` without OpenAPI v3
//! use it. The schemas of CRDs lose the keywords that OpenAPI v2 does not have, as in Kubernetes.

mod custom;
mod protobuf;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use ring::digest::{SHA512, digest};
use serde_json::{Map, Value, json};

use super::document::{self, REF};
use super::put;
use crate::kinds::{Catalog, Kind};

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// The name of the protobuf media type that older clients send, which is not a valid media type.
const OLD_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
const DEFINITIONS: &str = "#/definitions/";

/// The document in its encodings.
#[derive(Debug)]
pub(crate) struct Document {
    json: Bytes,
    protobuf: Bytes,
    /// The hash of the document, which is its `ETag`.
    pub(crate) etag: String,
}

impl Document {
    /// Returns the media type and the body for the `Accept` header of a request, or `None` if the
    /// client accepts no encoding of the document.
    pub(crate) fn encoded(&self, accept: &str) -> Option<(&'static str, Bytes)> {
        let accepted = accept.split(',').map(|part| {
            let media = part.split(';').next().unwrap_or_default();
            media.trim()
        });
        for media in accepted {
            match media {
                "" | "*/*" | "application/*" | JSON => return Some((JSON, self.json.clone())),
                PROTOBUF | OLD_PROTOBUF => return Some((PROTOBUF, self.protobuf.clone())),
                _ => {}
            }
        }
        None
    }
}

/// The document of the current catalog of kinds.
#[derive(Debug, Default)]
pub(super) struct Cache {
    document: Mutex<Option<(u64, Arc<Document>)>>,
}

impl Cache {
    /// Returns the document, and builds it if the catalog has changed since the last call.
    pub(super) fn document(&self, catalog: &Catalog) -> Arc<Document> {
        let generation = catalog.generation();
        let cached = self.document.lock().clone();
        if let Some((_, document)) = cached.filter(|(of, _)| *of == generation) {
            return document;
        }
        let value = build(&catalog.all());
        let json = Bytes::from(value.to_string());
        let hash = digest(&SHA512, &json);
        let digits: Vec<String> = hash
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02X}"))
            .collect();
        let document = Arc::new(Document {
            protobuf: protobuf::encode(&value).into(),
            etag: format!("\"{}\"", digits.concat()),
            json,
        });
        *self.document.lock() = Some((generation, document.clone()));
        document
    }
}

/// Builds the document of all kinds.
fn build(kinds: &[Arc<Kind>]) -> Value {
    let versions: BTreeSet<(&str, &str)> = kinds
        .iter()
        .map(|kind| (kind.group.as_str(), kind.version.as_str()))
        .collect();
    let (mut paths, mut definitions) = (Map::new(), Map::new());
    for (group, version) in versions {
        let is_of_version = |kind: &&Arc<Kind>| kind.group == group && kind.version == version;
        let kinds: Vec<Arc<Kind>> = kinds.iter().filter(is_of_version).cloned().collect();
        let document = document::build(group, version, &kinds);
        let of_every_group = |name: &str| {
            let name = name.rsplit('.').next();
            matches!(name, Some("DeleteOptions" | "WatchEvent"))
        };
        let schemas = document.pointer("/components/schemas");
        for (name, schema) in schemas.and_then(Value::as_object).into_iter().flatten() {
            let mut schema = definition(name, schema);
            if let Some(known) = definitions.get(name).filter(|_| of_every_group(name)) {
                add_kinds(known, &mut schema);
            }
            definitions.insert(name.clone(), schema);
        }
        let items = document.get("paths").and_then(Value::as_object);
        for (path, item) in items.into_iter().flatten() {
            paths.insert(path.clone(), path_item(item));
        }
    }
    for kind in kinds.iter().filter(|kind| kind.is_custom()) {
        let name = document::schema_name(kind);
        definitions.insert(name, custom::definition(kind));
    }
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "1.36"},
        "paths": paths,
        "definitions": definitions,
        "securityDefinitions": {"BearerToken": {
            "description": "Bearer Token authentication",
            "type": "apiKey",
            "name": "authorization",
            "in": "header",
        }},
        "security": [{"BearerToken": []}],
    })
}

/// Adds the kinds of a type that exists in every group to those of the group of `schema`.
fn add_kinds(known: &Value, schema: &mut Value) {
    let field = "x-kubernetes-group-version-kind";
    let items = |schema: &Value| schema.get(field).and_then(Value::as_array).cloned();
    let mut kinds = items(known).unwrap_or_default();
    for kind in items(schema).unwrap_or_default() {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    put(schema, field, Value::Array(kinds));
}

/// Converts a schema of OpenAPI v3 to one of OpenAPI v2.
fn definition(name: &str, schema: &Value) -> Value {
    let mut converted = convert(schema);
    // The types that accept a text or a number are texts.
    if name.ends_with(".api.resource.Quantity") || name.ends_with(".util.intstr.IntOrString") {
        put(&mut converted, "type", json!("string"));
        if let Some(fields) = converted.as_object_mut() {
            fields.remove("oneOf");
        }
    }
    converted
}

/// Converts a schema: references have another form, and there are no defaults.
fn convert(schema: &Value) -> Value {
    let Some(fields) = schema.as_object() else {
        return schema.clone();
    };
    let mut converted = Map::new();
    for (keyword, value) in fields {
        match (keyword.as_str(), value) {
            ("default", _) => {}
            ("$ref", Value::String(target)) => {
                converted.insert("$ref".to_owned(), reference(target));
            }
            ("allOf", Value::Array(parts)) => {
                let only = match parts.as_slice() {
                    [part] => part.get("$ref").and_then(Value::as_str),
                    _ => None,
                };
                match only {
                    Some(target) => converted.insert("$ref".to_owned(), reference(target)),
                    None => converted.insert(keyword.clone(), value.clone()),
                };
            }
            ("properties", Value::Object(properties)) => {
                let properties = properties.iter();
                let properties = properties.map(|(name, part)| (name.clone(), convert(part)));
                converted.insert(keyword.clone(), Value::Object(properties.collect()));
            }
            ("items" | "additionalProperties", part) => {
                converted.insert(keyword.clone(), convert(part));
            }
            (_, value) => {
                converted.insert(keyword.clone(), value.clone());
            }
        }
    }
    Value::Object(converted)
}

fn reference(target: &str) -> Value {
    let name = target.strip_prefix(REF).unwrap_or(target);
    json!(format!("{DEFINITIONS}{name}"))
}

/// Converts the operations at a path.
fn path_item(item: &Value) -> Value {
    let mut converted = Map::new();
    for (method, operation) in item.as_object().into_iter().flatten() {
        let value = match method.as_str() {
            "parameters" => parameters(operation),
            _ => self::operation(operation),
        };
        converted.insert(method.clone(), value);
    }
    Value::Object(converted)
}

fn operation(operation: &Value) -> Value {
    let get = |field: &str| operation.get(field).cloned().unwrap_or_default();
    let mut all = Vec::new();
    let mut consumes = vec![json!("*/*")];
    if let Some(body) = operation.get("requestBody") {
        let content = body.get("content").and_then(Value::as_object);
        let types = content.into_iter().flatten();
        consumes = types.clone().map(|(media, _)| json!(media)).collect();
        let schema = types
            .into_iter()
            .find_map(|(_, content)| content.get("schema"));
        let mut parameter = json!({
            "name": "body", "in": "body", "schema": schema.map(convert).unwrap_or_default(),
        });
        if body.get("required") == Some(&Value::Bool(true)) {
            put(&mut parameter, "required", json!(true));
        }
        all.push(parameter);
    }
    let queries = parameters(&get("parameters"));
    all.extend(queries.as_array().cloned().unwrap_or_default());
    let mut responses = Map::new();
    let mut produces = Vec::new();
    let known = operation.get("responses").and_then(Value::as_object);
    for (code, response) in known.into_iter().flatten() {
        let mut converted = json!({
            "description": response.get("description").cloned().unwrap_or_default(),
        });
        let content = response.get("content").and_then(Value::as_object);
        for (media, content) in content.into_iter().flatten() {
            produces.push(json!(media));
            if let Some(schema) = content.get("schema") {
                put(&mut converted, "schema", convert(schema));
            }
        }
        responses.insert(code.clone(), converted);
    }
    let mut converted = json!({
        "description": get("description"),
        "consumes": consumes,
        "produces": produces,
        "schemes": ["https"],
        "tags": get("tags"),
        "operationId": get("operationId"),
        "parameters": all,
        "responses": responses,
    });
    for field in ["x-kubernetes-action", "x-kubernetes-group-version-kind"] {
        if let Some(value) = operation.get(field) {
            put(&mut converted, field, value.clone());
        }
    }
    converted
}

/// Converts parameters: the type is a field of the parameter, and not of its schema.
fn parameters(parameters: &Value) -> Value {
    let convert = |parameter: &Value| {
        let mut converted = parameter.as_object().cloned().unwrap_or_default();
        let schema = converted.remove("schema");
        for (keyword, value) in schema.iter().filter_map(Value::as_object).flatten() {
            converted.insert(keyword.clone(), value.clone());
        }
        Value::Object(converted)
    };
    let parameters = parameters.as_array().into_iter().flatten();
    Value::Array(parameters.map(convert).collect())
}
