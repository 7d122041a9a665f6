//! Validation of the defaults in a structural schema.

use std::sync::Arc;

use opkit_apimachinery::schema::{AdditionalProperties, NoDefinitions, Schema, Typed};
use opkit_apimachinery::structural::{self, FieldError};
use opkit_cel::{Budget, RUNTIME_COST_BUDGET, Rules};

use super::props::Props;

/// Returns the errors of the defaults in a schema. `prunes` is whether a default may not have
/// unknown fields.
pub(super) fn validate(schema: &Schema, path: &str, prunes: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut budget = Budget::new(RUNTIME_COST_BUDGET);
    let mut root = schema.clone();
    root.embedded_resource = true;
    check(&root, path, false, prunes, &mut budget, &mut errors);
    errors
}

fn check(
    schema: &Schema,
    path: &str,
    is_in_metadata: bool,
    prunes: bool,
    budget: &mut Budget,
    errors: &mut Vec<FieldError>,
) {
    let is_in_metadata = is_in_metadata && !schema.embedded_resource;
    if let Some(default) = &schema.default {
        let path = format!("{path}.default");
        let typed = Typed::new(schema, &NoDefinitions);
        if prunes && !is_in_metadata && !is_pruned(schema) {
            let detail = "must not have unknown fields";
            errors.push(FieldError::invalid(path.as_str(), default, detail));
        }
        let found = structural::validate_default(default, &typed, &path);
        let is_valid = found.is_empty();
        errors.extend(found);
        if is_valid {
            let rules = Rules::of_part(schema);
            errors.extend(rules.validate_default(&path, default, budget));
        }
    }
    if let Some(items) = &schema.items {
        let path = format!("{path}.items");
        check(items, &path, is_in_metadata, prunes, budget, errors);
    }
    for (name, property) in &schema.properties {
        let is_meta =
            schema.embedded_resource && matches!(name.as_str(), "metadata" | "apiVersion" | "kind");
        let path = format!("{path}.properties[{name}]");
        let is_in_metadata = is_in_metadata || is_meta;
        check(property, &path, is_in_metadata, prunes, budget, errors);
    }
}

/// Reports whether the default of a schema has only fields that the schema declares.
fn is_pruned(schema: &Schema) -> bool {
    let Some(default) = &schema.default else {
        return true;
    };
    let typed = Typed::new(schema, &NoDefinitions);
    structural::unknown_fields_of_part(default, &typed).is_empty()
}

/// Reports whether a schema has a default with fields that the schema does not declare.
pub(super) fn has_unpruned_defaults(schema: Props<'_>) -> bool {
    Schema::parse(schema.0).is_ok_and(|schema| has_unpruned(&schema))
}

fn has_unpruned(schema: &Schema) -> bool {
    let additional = match &schema.additional_properties {
        Some(AdditionalProperties::Schema(values)) => Some(values),
        _ => None,
    };
    let properties = schema.properties.values();
    let mut parts = properties.chain(&schema.items).chain(additional);
    !is_pruned(schema) || parts.any(|part: &Arc<Schema>| has_unpruned(part))
}
