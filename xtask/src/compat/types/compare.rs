//! Compares the CRD of a type with the original.
//!
//! Both are first written in one form: without what a CRD of one version cannot have, and without
//! values that mean the same as an absent field.

use std::collections::BTreeSet;
use std::fmt;

use opkit_apimachinery::schema::{NoDefinitions, Schema, Typed};
use opkit_apimachinery::structural;
use serde_json::{Map, Number, Value, json};

use super::samples;

/// Fields of a schema whose text may have another form in Rust.
const DESCRIPTION: &str = "description";

/// Difference at a place of a CRD.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// Path in the object, such as `.spec.issuerRef`; empty for the object and the CRD.
    pub(super) path: String,
    /// Keyword of the schema, or field of the CRD.
    pub(super) keyword: String,
    original: Value,
    ours: Value,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |value: &Value| {
            let text = value.to_string();
            match text.char_indices().nth(160) {
                Some((end, _)) => format!("{}..", text.get(..end).unwrap_or_default()),
                None => text,
            }
        };
        write!(
            f,
            "{} {}: the original has {}, the type {}",
            self.path,
            self.keyword,
            short(&self.original),
            short(&self.ours)
        )
    }
}

/// Returns a CRD of one version in the form in which CRDs are compared.
pub(super) fn normal(crd: &Value) -> Value {
    let mut crd = json!({ "metadata": crd.get("metadata"), "spec": crd.get("spec") });
    if let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) {
        // A type has one version, which is the stored one.
        for key in ["conversion", "preserveUnknownFields"] {
            spec.remove(key);
        }
    }
    if let Some(names) = crd
        .pointer_mut("/spec/names")
        .and_then(Value::as_object_mut)
    {
        let kind = names
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        names
            .entry("listKind")
            .or_insert(json!(format!("{kind}List")));
        names
            .entry("singular")
            .or_insert(json!(kind.to_lowercase()));
    }
    if let Some(version) = crd.pointer_mut("/spec/versions/0") {
        version["storage"] = json!(true);
        if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
            same_meaning(schema);
            complete_defaults(schema);
            without_standard(schema);
        }
    }
    if let Some(metadata) = crd.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, _| ["annotations", "labels", "name"].contains(&name.as_str()));
        if let Some(annotations) = metadata
            .get_mut("annotations")
            .and_then(Value::as_object_mut)
        {
            // Annotations of the tool that wrote the CRD.
            annotations.retain(|key, _| !key.starts_with("controller-gen.kubebuilder.io/"));
        }
    }
    tidy(&mut crd);
    crd
}

/// Removes the fields of all objects from the schema of an object: a server has its own for them.
fn without_standard(schema: &mut Value) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.retain(|name, _| !samples::STANDARD.contains(&name.as_str()));
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| !samples::STANDARD.iter().any(|it| name == it));
    }
}

/// Removes parts of a schema without a meaning: `anyOf` of a value that
/// `x-kubernetes-int-or-string` describes.
fn same_meaning(schema: &mut Value) {
    if let Value::Object(fields) = schema {
        if fields.contains_key("x-kubernetes-int-or-string") {
            fields.remove("anyOf");
        }
        fields.values_mut().for_each(same_meaning);
    } else if let Value::Array(items) = schema {
        items.iter_mut().for_each(same_meaning);
    }
}

/// Adds the defaults of fields to the defaults of the objects that have them, as API servers do.
fn complete_defaults(schema: &mut Value) {
    let copy = schema.clone();
    let Value::Object(fields) = schema else {
        return;
    };
    if let Some(default) = fields.get_mut("default")
        && let Ok(schema) = Schema::parse(&copy)
    {
        structural::fill_defaults(default, &Typed::new(&schema, &NoDefinitions));
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(complete_defaults);
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(below) = fields.get_mut(keyword) {
            complete_defaults(below);
        }
    }
}

/// Writes numbers and absent values in one form.
fn tidy(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(whole) = whole(number) {
                *value = json!(whole);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Object(fields) => {
            let is_default = |name: &str, value: &Value| {
                *value == json!(false)
                    && (name.starts_with("x-kubernetes") || BOOLEANS.contains(&name))
                    || *value == json!([]) && name != "default"
                    || *value == json!({}) && EMPTY.contains(&name)
                    || *value == json!("") && ["description", "format"].contains(&name)
                    || *value == json!(0) && name == "priority"
            };
            fields.retain(|name, value| !value.is_null() && !is_default(name, value));
            fields.values_mut().for_each(tidy);
            let rules = fields.get_mut("x-kubernetes-validations");
            if let Some(Value::Array(rules)) = rules {
                // Servers check all of them.
                rules.sort_by_key(ToString::to_string);
            }
        }
        _ => {}
    }
}

const BOOLEANS: [&str; 6] = [
    "deprecated",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "nullable",
    "optionalOldSelf",
    "uniqueItems",
];

/// Objects without a meaning if they are empty.
const EMPTY: [&str; 3] = ["annotations", "labels", "subresources"];

fn whole(number: &Number) -> Option<i64> {
    let float = number.as_f64().filter(|_| number.is_f64())?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the number is whole and small"
    )]
    (float.fract() == 0.0 && float.abs() < 1e15).then_some(float as i64)
}

/// Returns the differences between two normal CRDs.
pub(super) fn differences(original: &Value, ours: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    let schema = "/spec/versions/0/schema/openAPIV3Schema";
    let mut pair = [original.clone(), ours.clone()];
    let schemas = pair.each_mut().map(|crd| {
        let schema = crd.pointer_mut(schema);
        schema.map(Value::take).unwrap_or_default()
    });
    let [original, ours] = &pair;
    fields("", "", original, ours, &mut found);
    let [original, ours] = &schemas;
    schema_differences("", original, ours, &mut found);
    found
}

/// Compares the parts of CRDs besides their schemas.
fn fields(path: &str, name: &str, original: &Value, ours: &Value, found: &mut Vec<Difference>) {
    let (Value::Object(one), Value::Object(other)) = (original, ours) else {
        if name == "versions" {
            let first = |value: &Value| value.pointer("/0").cloned().unwrap_or_default();
            return fields(path, "", &first(original), &first(ours), found);
        }
        return push(path, name, original, ours, found);
    };
    for name in names(one, other) {
        let (one, other) = (value(one, name), value(other, name));
        fields(path, name, one, other, found);
    }
}

fn schema_differences(path: &str, original: &Value, ours: &Value, found: &mut Vec<Difference>) {
    let (Value::Object(one), Value::Object(other)) = (original, ours) else {
        return push(path, "schema", original, ours, found);
    };
    let is_conditions = samples::is_conditions(original);
    for name in names(one, other) {
        let (one, other) = (value(one, name), value(other, name));
        match name {
            "properties" => properties(path, one, other, found),
            "items" | "additionalProperties" if one.is_object() && other.is_object() => {
                let start = found.len();
                schema_differences(&format!("{path}[*]"), one, other, found);
                if is_conditions {
                    // The items of `Conditions` have the descriptions of the Go type.
                    let below = found.split_off(start);
                    found.extend(below.into_iter().filter(|it| it.keyword != DESCRIPTION));
                }
            }
            "required" => {
                let set = |value: &Value| -> BTreeSet<String> {
                    let names = value.as_array().into_iter().flatten();
                    names
                        .filter_map(|it| it.as_str().map(str::to_owned))
                        .collect()
                };
                let (one, other) = (set(one), set(other));
                for field in one.symmetric_difference(&other) {
                    let path = format!("{path}.{field}");
                    let (one, other) = (one.contains(field), other.contains(field));
                    push(&path, "required", &json!(one), &json!(other), found);
                }
            }
            DESCRIPTION => {
                // The fences of code get a language that rustdoc does not compile, and an end.
                let words = |value: &Value| -> Vec<String> {
                    let words = value.as_str().unwrap_or_default().split_whitespace();
                    let words = words.filter(|word| !word.starts_with("```"));
                    words.map(str::to_owned).collect()
                };
                if words(one) != words(other) {
                    push(path, name, one, other, found);
                }
            }
            _ => push(path, name, one, other, found),
        }
    }
}

fn properties(path: &str, original: &Value, ours: &Value, found: &mut Vec<Difference>) {
    let empty = Map::new();
    let one = original.as_object().unwrap_or(&empty);
    let other = ours.as_object().unwrap_or(&empty);
    for name in names(one, other) {
        let (one, other) = (value(one, name), value(other, name));
        schema_differences(&format!("{path}.{name}"), one, other, found);
    }
}

fn names<'a>(one: &'a Map<String, Value>, other: &'a Map<String, Value>) -> BTreeSet<&'a str> {
    one.keys().chain(other.keys()).map(String::as_str).collect()
}

fn value<'a>(fields: &'a Map<String, Value>, name: &str) -> &'a Value {
    fields.get(name).unwrap_or(&Value::Null)
}

fn push(path: &str, keyword: &str, original: &Value, ours: &Value, found: &mut Vec<Difference>) {
    if original != ours {
        found.push(Difference {
            path: path.to_owned(),
            keyword: keyword.to_owned(),
            original: original.clone(),
            ours: ours.clone(),
        });
    }
}

/// Returns the first difference between two objects as a sentence.
pub(super) fn first_difference(original: &Value, encoded: &Value) -> Option<String> {
    fn walk(path: &str, one: &Value, other: &Value) -> Option<String> {
        match (one, other) {
            (Value::Object(one), Value::Object(other)) => {
                names(one, other).into_iter().find_map(|name| {
                    walk(
                        &format!("{path}.{name}"),
                        value(one, name),
                        value(other, name),
                    )
                })
            }
            (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
                let mut pairs = one.iter().zip(other).enumerate();
                pairs.find_map(|(at, (one, other))| walk(&format!("{path}[{at}]"), one, other))
            }
            _ if one == other => None,
            _ => Some(format!(
                "{path} was {one}, and is {other} after a round trip"
            )),
        }
    }
    walk("", original, encoded)
}
