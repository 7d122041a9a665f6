//! Validation of CRDs beyond the OpenAPI schema of the kind CustomResourceDefinition.

use std::collections::HashSet;

use opkit_apimachinery::schema::Schema;
use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use crate::kinds::Catalog;
use crate::object;

/// The annotation that a CRD in one of Kubernetes' own groups needs.
const APPROVAL: &str = "api-approved.kubernetes.io";

/// Returns the validation errors of a CRD.
pub(crate) fn validate(crd: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = object::at(crd, &["spec"]);
    let group = object::text(spec, &["group"]);
    let plural = object::text(spec, &["names", "plural"]);
    if object::name(crd) != format!("{plural}.{group}") {
        let name = json!(object::name(crd));
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", &name, detail));
    }
    if !group.contains('.') {
        let detail = "should be a domain with at least one dot";
        errors.push(FieldError::invalid("spec.group", &json!(group), detail));
    }
    errors.extend(protected(crd, group, plural));
    let scope = object::at(spec, &["scope"]);
    if !scope.is_null() && scope != "Cluster" && scope != "Namespaced" {
        let supported = ["Cluster", "Namespaced"];
        errors.push(FieldError::not_supported("spec.scope", scope, &supported));
    }
    errors.extend(validate_versions(spec));
    errors
}

/// Returns an error for a CRD that defines a built-in kind, or that defines a kind in a group of
/// Kubernetes without the approval annotation.
fn protected(crd: &Value, group: &str, plural: &str) -> Option<FieldError> {
    let is_ours = group.ends_with(".k8s.io") || group.ends_with(".kubernetes.io");
    let approval = object::text(crd, &["metadata", "annotations", APPROVAL]);
    if is_ours && approval.is_empty() {
        let field = format!("metadata.annotations[{APPROVAL}]");
        let detail = format!(
            "protected groups must have approval annotation \"{APPROVAL}\", \
             see https://github.com/kubernetes/enhancements/pull/1111"
        );
        return Some(FieldError::required(field, detail));
    }
    Catalog::is_builtin(group, plural).then(|| {
        let detail = "the embedded control plane serves this resource itself";
        FieldError::forbidden("spec.names.plural", detail)
    })
}

fn validate_versions(spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let versions = object::items(spec, &["versions"]);
    let mut names = HashSet::new();
    if !versions
        .iter()
        .all(|version| names.insert(object::text(version, &["name"])))
    {
        let listed = object::at(spec, &["versions"]);
        let detail = "must contain unique version names";
        errors.push(FieldError::invalid("spec.versions", listed, detail));
    }
    let is_storage = |version: &&Value| object::at(version, &["storage"]) == &json!(true);
    if versions.iter().filter(is_storage).count() != 1 {
        let listed = object::at(spec, &["versions"]);
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid("spec.versions", listed, detail));
    }
    let schema_of = |version| object::at(version, &["schema", "openAPIV3Schema"]);
    let mut schemas: Vec<&Value> = versions.iter().map(schema_of).collect();
    schemas.dedup();
    for (index, version) in versions.iter().enumerate() {
        let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
        let schema = schema_of(version);
        if schema.is_null() {
            errors.push(FieldError::required(field, "schemas are required"));
        } else if object::text(schema, &["type"]) != "object" {
            let found = json!(object::text(schema, &["type"]));
            let detail = "must be object at the root";
            errors.push(FieldError::invalid(format!("{field}.type"), &found, detail));
        } else if let Err(error) = Schema::parse(schema) {
            errors.push(FieldError::invalid(field, &Value::Null, error.to_string()));
        } else if schemas.len() > 1 {
            check_schema(schema, &field, &mut errors);
        } else if index == 0 {
            // The real server stores a schema that all versions share under its former name, and
            // reports errors there.
            check_schema(schema, "spec.validation.openAPIV3Schema", &mut errors);
        }
    }
    errors
}

/// Checks the structure of a schema and, if it is valid, the CEL rules in it.
fn check_schema(schema: &Value, field: &str, errors: &mut Vec<FieldError>) {
    let before = errors.len();
    check_structure(schema, field, errors);
    if errors.len() == before
        && let Ok(schema) = Schema::parse(schema)
    {
        errors.extend(opkit_cel::check_rules(&schema, field));
    }
}

/// Checks that each part of a structural schema has a type, and that each list has a schema of its
/// items.
fn check_structure(schema: &Value, field: &str, errors: &mut Vec<FieldError>) {
    if !object::at(schema, &["$ref"]).is_null() {
        let field = format!("{field}.$ref");
        errors.push(FieldError::forbidden(field, "$ref is not supported"));
        return;
    }
    let flag = |name: &str| object::at(schema, &[name]) == &json!(true);
    let is_open =
        flag("x-kubernetes-int-or-string") || flag("x-kubernetes-preserve-unknown-fields");
    if object::text(schema, &["type"]).is_empty() && !is_open {
        let detail = "must not be empty for specified object fields";
        errors.push(FieldError::required(format!("{field}.type"), detail));
    }
    let items = object::at(schema, &["items"]);
    if object::text(schema, &["type"]) == "array" && items.is_null() {
        errors.push(FieldError::required(
            format!("{field}.items"),
            "must be specified",
        ));
    }
    let properties = object::at(schema, &["properties"])
        .as_object()
        .into_iter()
        .flatten();
    for (name, property) in properties {
        check_structure(property, &format!("{field}.properties[{name}]"), errors);
    }
    if items.is_object() {
        check_structure(items, &format!("{field}.items"), errors);
    }
    let rest = object::at(schema, &["additionalProperties"]);
    if rest.is_object() {
        check_structure(rest, &format!("{field}.additionalProperties"), errors);
    }
}
