//! Samples: objects in the YAML files and the Markdown pages of a project.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use super::crds::Version;

/// Fields that all objects have.
pub(super) const STANDARD: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Object of a project.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// Its file.
    pub(super) origin: String,
    pub(super) object: Value,
}

impl Sample {
    pub(super) fn is_of(&self, version: &Version) -> bool {
        let text = |key: &str| self.object.get(key).and_then(Value::as_str);
        text("apiVersion") == Some(&version.api_version()) && text("kind") == Some(version.kind())
    }
}

/// Returns the objects in the files below some folders. Texts that are not YAML, such as templates
/// of charts, have none.
pub(super) fn find(folders: &[PathBuf]) -> Result<Vec<Sample>> {
    let mut found = Vec::new();
    for folder in folders {
        let mut waiting = vec![folder.clone()];
        while let Some(path) = waiting.pop() {
            let fail = || format!("cannot read {}", path.display());
            if path.is_dir() {
                for entry in fs::read_dir(&path).with_context(fail)? {
                    waiting.push(entry.with_context(fail)?.path());
                }
                waiting.sort_by(|left, right| right.cmp(left));
                continue;
            }
            let origin = path.strip_prefix(folder).unwrap_or(&path);
            for text in texts(&path).with_context(fail)? {
                found.extend(objects(&text).into_iter().map(|object| Sample {
                    origin: origin.display().to_string(),
                    object,
                }));
            }
        }
    }
    Ok(found)
}

/// Returns the YAML texts of a file.
fn texts(path: &Path) -> std::io::Result<Vec<String>> {
    let extension = path.extension().and_then(|it| it.to_str());
    match extension {
        Some("yaml" | "yml") => Ok(vec![fs::read_to_string(path)?]),
        Some("md") => Ok(blocks(&fs::read_to_string(path)?)),
        _ => Ok(Vec::new()),
    }
}

/// Returns the blocks of YAML in a Markdown page.
pub(super) fn blocks(page: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for line in page.lines() {
        let inner = line.trim_start();
        let indent = line.len().saturating_sub(inner.len());
        match &mut open {
            Some(_) if inner.starts_with("```") => {
                blocks.extend(open.take().map(|(_, text)| text));
            }
            Some((indent, text)) => {
                text.push_str(line.get(*indent..).unwrap_or_default());
                text.push('\n');
            }
            None if inner.starts_with("```yaml") || inner.starts_with("```yml") => {
                open = Some((indent, String::new()));
            }
            None => {}
        }
    }
    blocks
}

fn objects(text: &str) -> Vec<Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap_or_default();
    let items = documents.into_iter().flat_map(|mut document| {
        let is_list = document.get("kind").and_then(Value::as_str) == Some("List");
        match document
            .get_mut("items")
            .filter(|_| is_list)
            .map(Value::take)
        {
            Some(Value::Array(items)) => items,
            _ => vec![document],
        }
    });
    items.collect()
}

/// Returns the reason why a schema does not accept a value: a wrong type, a required field that is
/// missing, a value that is not in an enum, or a text that is not in base64 in spite of its format.
pub(super) fn problem(schema: &Value, value: &Value) -> Option<String> {
    walk_problem("", schema, value)
}

fn walk_problem(path: &str, schema: &Value, value: &Value) -> Option<String> {
    let is = |keyword: &str| schema.get(keyword) == Some(&Value::Bool(true));
    // A default replaces `null`.
    if value.is_null() && (is("nullable") || schema.get("default").is_some()) {
        return None;
    }
    let is_type = match schema.get("type").and_then(Value::as_str) {
        _ if is("x-kubernetes-int-or-string") => {
            value.is_i64() || value.is_u64() || value.is_string()
        }
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => true,
    };
    if !is_type {
        return Some(format!("{path} has another type"));
    }
    let values = schema.get("enum").and_then(Value::as_array);
    if values.is_some_and(|values| !values.contains(value)) {
        return Some(format!("{path} is not one of the values"));
    }
    let is_bytes = schema.get("format") == Some(&Value::from("byte"));
    match value {
        Value::String(text) if is_bytes && !is_base64(text) => {
            Some(format!("{path} is not in base64"))
        }
        Value::Object(fields) => {
            let required = schema.get("required").and_then(Value::as_array);
            let required = required.into_iter().flatten().filter_map(Value::as_str);
            let is_absent = |name: &&str| {
                let default = schema.pointer(&format!("/properties/{name}/default"));
                fields.get(*name).is_none_or(Value::is_null) && default.is_none()
            };
            if let Some(name) = required.into_iter().find(is_absent) {
                return Some(format!("{path}.{name} is missing"));
            }
            let mut below = fields.iter();
            below.find_map(|(name, value)| {
                walk_problem(&format!("{path}.{name}"), field(schema, name)?, value)
            })
        }
        Value::Array(items) => {
            let schema = schema.get("items")?;
            let mut items = items.iter().enumerate();
            items.find_map(|(at, item)| walk_problem(&format!("{path}[{at}]"), schema, item))
        }
        _ => None,
    }
}

fn is_base64(text: &str) -> bool {
    let text = text.trim_end_matches('=');
    let is_symbol = |symbol: char| symbol.is_ascii_alphanumeric() || "+/".contains(symbol);
    text.chars().all(is_symbol)
}

fn field<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let own = schema.get("properties").and_then(|it| it.get(name));
    own.or_else(|| {
        schema
            .get("additionalProperties")
            .filter(|it| it.is_object())
    })
}

/// Returns an object as a server stores it, without fields that mean the same as absent ones:
/// `null`, and lists and maps that are empty.
pub(super) fn normal(schema: &Value, object: &Value) -> Value {
    let mut object = object.clone();
    prune(schema, &mut object, true);
    complete(schema, &mut object);
    shorten(schema, &mut object);
    // With `optional_spec`, an object without a spec has the default one.
    if let Value::Object(fields) = &mut object
        && fields.get("spec") == Some(&Value::Object(Map::new()))
    {
        fields.remove("spec");
    }
    object
}

/// Removes fields that the schema does not have, as API servers do.
fn prune(schema: &Value, value: &mut Value, is_object: bool) {
    let is = |keyword: &str| schema.get(keyword) == Some(&Value::Bool(true));
    match value {
        Value::Object(fields) => {
            let is_kept = is("x-kubernetes-preserve-unknown-fields") || is("additionalProperties");
            let is_standard = |name: &str| {
                STANDARD.contains(&name) && (is_object || is("x-kubernetes-embedded-resource"))
            };
            fields.retain(|name, _| is_kept || is_standard(name) || field(schema, name).is_some());
            for (name, value) in fields.iter_mut() {
                if let Some(schema) = field(schema, name).filter(|_| !is_standard(name)) {
                    prune(schema, value, false);
                }
            }
        }
        Value::Array(items) => {
            let schema = schema.get("items").unwrap_or(&Value::Null);
            items.iter_mut().for_each(|item| prune(schema, item, false));
        }
        _ => {}
    }
}

/// Adds the defaults of a schema, as API servers do.
pub(super) fn complete(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            for (name, schema) in properties.into_iter().flatten() {
                let default = schema.get("default").filter(|it| !it.is_null());
                let is_absent = fields.get(name).is_none_or(Value::is_null);
                if let Some(default) = default.filter(|_| is_absent) {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in fields.iter_mut() {
                if let Some(schema) = field(schema, name) {
                    complete(schema, value);
                }
            }
        }
        Value::Array(items) => {
            let schema = schema.get("items").unwrap_or(&Value::Null);
            items.iter_mut().for_each(|item| complete(schema, item));
        }
        _ => {}
    }
}

/// Removes fields that mean the same as absent ones.
fn shorten(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let is_absent = |name: &str, value: &Value| {
                let schema = field(schema, name);
                let is_map = schema.is_some_and(|it| it.get("additionalProperties").is_some());
                let is_metadata = name == "metadata";
                match value {
                    Value::Null => true,
                    Value::Array(items) => items.is_empty(),
                    Value::Object(fields) => fields.is_empty() && (is_map || is_metadata),
                    _ => false,
                }
            };
            for (name, value) in fields.iter_mut() {
                shorten(field(schema, name).unwrap_or(&Value::Null), value);
            }
            fields.retain(|name, value| !is_absent(name, value));
        }
        Value::Array(items) => {
            let schema = schema.get("items").unwrap_or(&Value::Null);
            items.iter_mut().for_each(|item| shorten(schema, item));
        }
        _ => {}
    }
}

/// Reports whether a schema is that of a list of `metav1.Condition`.
pub(super) fn is_conditions(schema: &Value) -> bool {
    const FIELDS: [&str; 6] = [
        "lastTransitionTime",
        "message",
        "observedGeneration",
        "reason",
        "status",
        "type",
    ];
    let properties = schema
        .pointer("/items/properties")
        .and_then(Value::as_object);
    properties.is_some_and(|it: &Map<String, Value>| it.keys().eq(FIELDS))
}
