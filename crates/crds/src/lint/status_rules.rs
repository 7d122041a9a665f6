//! Rules about the status.

use serde_json::Value;

use super::Findings;
use crate::fields::{Field, Version, text, texts};

const CONDITIONS: &str = ".status.conditions";

pub(super) fn check(version: &Version<'_>, fields: &[Field<'_>], findings: &mut Findings) {
    let find = |path: &str| fields.iter().find(|field| field.path == path);
    let Some(status) = find(".status") else {
        return;
    };
    if version.document.pointer("/subresources/status").is_none() {
        findings.report(
            "status-subresource",
            ".status",
            "the status is not a subresource",
        );
    }
    let required = texts(status.schema, "required");
    if !required.is_empty() {
        let message = format!("the status requires {}", required.join(", "));
        findings.report("status-optional", ".status", message);
    }
    if find(".status.phase").is_some() {
        findings.report("no-phase", ".status.phase", "the status has a phase");
    }
    match find(CONDITIONS) {
        Some(conditions) => check_conditions(conditions, findings),
        None => findings.report(
            "status-conditions",
            ".status",
            "the status has no conditions",
        ),
    }
}

fn check_conditions(conditions: &Field<'_>, findings: &mut Findings) {
    let schema = conditions.schema;
    let mut problems = Vec::new();
    if conditions.type_() != "array" {
        problems.push("the type is not array".to_owned());
    }
    if text(schema, "x-kubernetes-list-type") != "map" {
        problems.push("x-kubernetes-list-type is not map".to_owned());
    }
    if texts(schema, "x-kubernetes-list-map-keys") != ["type"] {
        problems.push("x-kubernetes-list-map-keys is not [type]".to_owned());
    }
    let item = schema.get("items").unwrap_or(&Value::Null);
    let required = texts(item, "required");
    for field in ["type", "status"] {
        if !required.contains(&field) {
            problems.push(format!("{field} of an item is not required"));
        }
    }
    if !problems.is_empty() {
        findings.report("conditions", CONDITIONS, problems.join(", "));
    }
}
