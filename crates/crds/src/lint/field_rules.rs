//! Rules about one field.

use serde_json::Value;

use super::Findings;
use super::kind_rules::is_camel_case;
use crate::fields::{Field, flag, text, texts};

/// Fields of every object, which Kubernetes describes.
const OF_EVERY_OBJECT: [&str; 3] = [".apiVersion", ".kind", ".metadata"];

pub(super) fn check(field: &Field<'_>, findings: &mut Findings) {
    let is_kubernetes = OF_EVERY_OBJECT.iter().any(|path| field.is_below(path));
    if is_kubernetes || field.is_embedded {
        return;
    }
    if let Some(name) = field.name {
        check_name(name, field, findings);
    }
    check_type(field, findings);
    check_objects(field, findings);
    check_values(field, findings);
    for rule in rules(field.schema) {
        if text(rule, "message").is_empty() && text(rule, "messageExpression").is_empty() {
            let message = format!("the rule {:?} has no message", text(rule, "rule"));
            findings.report("rule-message", &field.path, message);
        }
    }
}

/// Returns the CEL rules of a schema.
pub(super) fn rules(schema: &Value) -> impl Iterator<Item = &Value> {
    let rules = schema.get("x-kubernetes-validations");
    rules.and_then(Value::as_array).into_iter().flatten()
}

fn check_name(name: &str, field: &Field<'_>, findings: &mut Findings) {
    if !is_camel_case(name, false) {
        let message = format!("the name {name:?} is not in camelCase");
        findings.report("field-name", &field.path, message);
    }
    if text(field.schema, "description").trim().is_empty() {
        findings.report("description", &field.path, "there is no description");
    }
    for (end, short) in [("Reference", "Ref"), ("References", "Refs")] {
        if name.to_lowercase() == end.to_lowercase() || name.ends_with(end) {
            let message = format!("the name {name:?} ends with {end}: write {short}");
            findings.report("reference-name", &field.path, message);
        }
    }
    if name == "timestamp" || name.ends_with("Timestamp") || name.ends_with("TimeStamp") {
        let message = format!("the name {name:?} ends with Timestamp: write Time");
        findings.report("timestamp-name", &field.path, message);
    }
}

fn check_type(field: &Field<'_>, findings: &mut Findings) {
    let format = text(field.schema, "format");
    match field.type_() {
        "number" => findings.report("no-floats", &field.path, "the type is number"),
        "integer" if !["int32", "int64"].contains(&format) => {
            let message = match format {
                "" => "the integer has no format: write int32 or int64".to_owned(),
                format => format!("the format is {format:?}: write int32 or int64"),
            };
            findings.report("integer-format", &field.path, message);
        }
        "array" if text(field.schema, "x-kubernetes-list-type").is_empty() => {
            let item = field.schema.get("items").map(|items| text(items, "type"));
            let advice = match item {
                Some("object") => "map with its keys, or atomic",
                _ => "set or atomic",
            };
            let message = format!("the list has no x-kubernetes-list-type: write {advice}");
            findings.report("list-type", &field.path, message);
        }
        _ => {}
    }
}

fn check_objects(field: &Field<'_>, findings: &mut Findings) {
    let schema = field.schema;
    let items = schema.get("items");
    if let Some(items) = items.filter(|items| items.get("properties").is_some())
        && texts(items, "required").is_empty()
        && !has_alternatives(items)
    {
        findings.report(
            "array-of-struct",
            &field.path,
            "no field of an item is required",
        );
    }
    let values = schema.get("additionalProperties");
    if values.is_some_and(|values| values.get("properties").is_some()) {
        findings.report("no-maps", &field.path, "the values of the map are objects");
    }
    if flag(schema, "x-kubernetes-preserve-unknown-fields") && schema.get("properties").is_none() {
        findings.report(
            "preserve-unknown-fields",
            &field.path,
            "any fields are allowed",
        );
    }
    let defaulted = schema.get("properties").and_then(Value::as_object);
    let required = texts(schema, "required");
    for (name, property) in defaulted.into_iter().flatten() {
        if property.get("default").is_some() && required.contains(&name.as_str()) {
            let path = format!("{}.{name}", field.path);
            findings.report(
                "default-or-required",
                &path,
                "the field is required, and has a default",
            );
        }
    }
}

/// Reports whether the schema asks for one of several fields, so that an item is never empty.
fn has_alternatives(schema: &Value) -> bool {
    ["anyOf", "oneOf"].iter().any(|keyword| {
        let alternatives = schema.get(*keyword).and_then(Value::as_array);
        let mut alternatives = alternatives.into_iter().flatten();
        alternatives.any(|it| !texts(it, "required").is_empty())
    })
}

fn check_values(field: &Field<'_>, findings: &mut Findings) {
    if flag(field.schema, "nullable") {
        findings.report("no-nullable", &field.path, "the field may be null");
    }
    let values = texts(field.schema, "enum");
    let wrong: Vec<_> = values
        .iter()
        .filter(|value| !value.is_empty() && !is_camel_case(value, true))
        .map(|value| format!("{value:?}"))
        .collect();
    if !wrong.is_empty() {
        let message = format!("{} is not in CamelCase", wrong.join(", "));
        findings.report("enum-value", &field.path, message);
    }
}
