//! Rules of custom resource definitions: `x-kubernetes-validations`.
//!
//! [`check_rules`] returns the errors that Kubernetes reports when a CRD is created. [`Rules`]
//! evaluates the rules of a CRD for an object.

mod check;
mod correlate;
pub(crate) mod decl;
pub(crate) mod escape;
mod field_path;
mod rule;
mod validate;

use std::sync::Arc;

use opkit_apimachinery::schema::{AdditionalProperties, Schema, SchemaType};

use crate::environment::Environment;
use decl::DeclType;

pub use check::{RuleOptions, check_rules, compile_rules, malformed_level};
pub use validate::{RuleOutcome, Rules};

/// Creates the environment of the rules at one level of a schema. If the level has no type, the
/// variables are not declared.
pub(crate) fn environment(schema: &Schema, is_root: bool, is_optional: bool) -> Environment {
    let schema = Arc::new(value_schema(schema, is_root));
    match DeclType::of(&schema, false) {
        Some(root) => Environment::typed(Arc::new(root), schema, is_optional),
        None => Environment::new(),
    }
}

/// Returns the schema of values: a resource, and the resources inside of the schema, have the
/// fields of a resource.
pub(crate) fn value_schema(schema: &Schema, is_resource: bool) -> Schema {
    let mut extended = match is_resource || schema.embedded_resource {
        true => with_object_meta(schema),
        false => schema.clone(),
    };
    let extend = |child: &mut Arc<Schema>| *child = Arc::new(value_schema(child, false));
    extended.properties.values_mut().for_each(extend);
    extended.items.iter_mut().for_each(extend);
    if let Some(AdditionalProperties::Schema(values)) = &mut extended.additional_properties {
        extend(values);
    }
    extended
}

/// Adds the fields `apiVersion`, `kind` and `metadata` to the schema of a resource. Rules can see
/// the name and the generated name only.
pub(crate) fn with_object_meta(schema: &Schema) -> Schema {
    let has_type = |schema: Option<&Arc<Schema>>, wanted: SchemaType| {
        schema.is_some_and(|schema| schema.type_ == Some(wanted))
    };
    let metadata = schema.properties.get("metadata");
    let has_name = |name: &str| {
        let field = metadata.and_then(|metadata| metadata.properties.get(name));
        has_type(field, SchemaType::String)
    };
    let is_complete = has_type(schema.properties.get("kind"), SchemaType::String)
        && has_type(schema.properties.get("apiVersion"), SchemaType::String)
        && has_type(metadata, SchemaType::Object)
        && has_name("name")
        && has_name("generateName");
    let mut extended = schema.clone();
    if is_complete {
        return extended;
    }
    let mut text = Schema::default();
    text.type_ = Some(SchemaType::String);
    let text = Arc::new(text);
    let mut metadata = Schema::default();
    metadata.type_ = Some(SchemaType::Object);
    for name in ["name", "generateName"] {
        metadata.properties.insert(name.to_owned(), text.clone());
    }
    for name in ["kind", "apiVersion"] {
        extended.properties.insert(name.to_owned(), text.clone());
    }
    extended
        .properties
        .insert("metadata".to_owned(), Arc::new(metadata));
    extended
}

#[cfg(test)]
mod tests;
