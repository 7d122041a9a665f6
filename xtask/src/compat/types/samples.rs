//! Samples: objects in the YAML files and the Markdown pages of a project.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use opkit_apimachinery::schema::{NoDefinitions, Schema, Typed};
use opkit_apimachinery::structural;
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

/// Removes the nulls that the API server removes from an object, and returns its first error about
/// the object, if there is one.
pub(super) fn admit(schema: &Value, object: &mut Value) -> Result<Option<String>> {
    let schema = Schema::parse(schema)?;
    let schema = Typed::new(&schema, &NoDefinitions);
    structural::drop_nulls(object, &schema);
    let mut complete = object.clone();
    structural::fill_defaults(&mut complete, &schema);
    let errors = structural::validate(&complete, &schema);
    Ok(errors.first().map(ToString::to_string))
}

/// Returns an object as a server stores it, without fields that mean the same as absent ones:
/// `null`, and lists and maps that are empty.
pub(super) fn normal(schema: &Value, object: &Value) -> Result<Value> {
    let parsed = Schema::parse(schema)?;
    let typed = Typed::new(&parsed, &NoDefinitions);
    let mut object = object.clone();
    structural::prune(&mut object, &typed);
    structural::apply_defaults(&mut object, &typed);
    shorten(schema, &mut object);
    // With `optional_spec`, an object without a spec has the default one.
    if let Value::Object(fields) = &mut object
        && fields.get("spec") == Some(&Value::Object(Map::new()))
    {
        fields.remove("spec");
    }
    Ok(object)
}

fn field<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let own = schema.get("properties").and_then(|it| it.get(name));
    own.or_else(|| {
        schema
            .get("additionalProperties")
            .filter(|it| it.is_object())
    })
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
