//! Type checking of the expressions of validating policies against the schemas of the kinds that
//! they select, for the status of the policies.

use std::collections::BTreeSet;
use std::sync::Arc;

use opkit_apimachinery::schema::Schema;
use opkit_cel::{Environment, Type};
use serde_json::{Value, json};

use crate::admission::environment;
use crate::kinds::{Definitions, Kind, SchemaSource};
use crate::object;
use crate::registry::Registry;

/// Maximum number of kinds against which a policy is checked, as in Kubernetes.
const KINDS_MAX: usize = 10;
/// Maximum depth of the definitions that a schema refers to. Deeper fields are not checked.
const DEPTH_MAX: usize = 16;

/// Returns the warnings about the expressions of a policy, in the form of the field
/// `status.typeChecking.expressionWarnings`.
pub(crate) fn warnings(registry: &Registry, policy: &Value) -> Vec<Value> {
    let spec = object::at(policy, &["spec"]);
    let kinds = kinds_of(registry, spec);
    let environments: Vec<(&Kind, Environment)> = kinds
        .iter()
        .filter_map(|kind| Some((&**kind, environment_of(registry, spec, kind)?)))
        .collect();
    let mut warnings = Vec::new();
    for (index, validation) in object::items(spec, &["validations"]).iter().enumerate() {
        for field in ["expression", "messageExpression"] {
            let expression = object::text(validation, &[field]);
            if expression.is_empty() {
                continue;
            }
            let issues = environments.iter().filter_map(|(kind, environment)| {
                let error = environment.compile(expression).err()?;
                let (group, version, kind) = (&kind.group, &kind.version, &kind.kind);
                Some(format!("{group}/{version}, Kind={kind}: {error}\n"))
            });
            let issues: Vec<String> = issues.collect();
            if !issues.is_empty() {
                warnings.push(json!({
                    "fieldRef": format!("spec.validations[{index}].{field}"),
                    "warning": issues.join("\n"),
                }));
            }
        }
    }
    warnings
}

/// Returns the kinds that the rules of a policy name without wildcards.
fn kinds_of(registry: &Registry, spec: &Value) -> Vec<Arc<Kind>> {
    let mut names = BTreeSet::new();
    for rule in object::items(spec, &["matchConstraints", "resourceRules"]) {
        let texts = |field: &str| -> Vec<&str> {
            let items = object::items(rule, &[field])
                .iter()
                .filter_map(Value::as_str);
            let mut texts: Vec<&str> = items.filter(|text| !text.contains(['*', '/'])).collect();
            texts.sort_unstable();
            texts
        };
        for group in texts("apiGroups") {
            for version in texts("apiVersions") {
                for resource in texts("resources") {
                    names.insert((group, version, resource));
                }
            }
        }
    }
    let kinds = names
        .into_iter()
        .filter_map(|(group, version, resource)| registry.catalog.get(group, version, resource));
    kinds.take(KINDS_MAX).collect()
}

/// Returns the environment in which `object` has the type of `kind`, or `None` if the kind has no
/// schema.
fn environment_of(registry: &Registry, spec: &Value, kind: &Kind) -> Option<Environment> {
    let typed = |environment: Environment, name: &str, kind: &Kind| {
        let schema = schema_of(kind)?;
        Some(environment.typed_object(name, &kind.kind, &schema))
    };
    let param_kind = object::at(spec, &["paramKind"]);
    let mut environment = environment::policy(super::PolicyType::Validating, !param_kind.is_null());
    environment = typed(environment, "object", kind)?;
    environment = typed(environment, "oldObject", kind)?;
    let api_version = object::text(param_kind, &["apiVersion"]);
    let param_kind = object::text(param_kind, &["kind"]);
    let params = registry
        .catalog
        .find(|kind| kind.kind == param_kind && kind.api_version() == api_version);
    if let Some(params) = params {
        environment = typed(environment.clone(), "params", &params).unwrap_or(environment);
    }
    for variable in object::items(spec, &["variables"]) {
        let expression = object::text(variable, &["expression"]);
        let compiled = environment.compile(expression);
        let type_ = compiled.map_or(Type::Dyn, |program| program.result_type().clone());
        environment = environment.composed(object::text(variable, &["name"]), type_);
    }
    Some(environment)
}

/// Returns the schema of a kind with the definitions that it refers to.
fn schema_of(kind: &Kind) -> Option<Schema> {
    let schema = match &kind.schema {
        SchemaSource::Definition(name) => expand(&Definitions::builtin().structure(name)?, 0),
        SchemaSource::Custom(schema) => (**schema).clone(),
    };
    Schema::parse(&schema).ok()
}

/// Replaces the references in a schema by the definitions.
fn expand(schema: &Value, depth: usize) -> Value {
    let reference = object::text(schema, &["$ref"]);
    let only = object::items(schema, &["allOf"]).first();
    let reference = match (reference, only) {
        ("", Some(only)) => object::text(only, &["$ref"]),
        (reference, _) => reference,
    };
    if !reference.is_empty() {
        let name = reference.rsplit('/').next().unwrap_or_default();
        let definition = Definitions::builtin().structure(name);
        return match definition.filter(|_| depth < DEPTH_MAX) {
            Some(definition) => expand(&definition, depth + 1),
            None => json!({"x-kubernetes-preserve-unknown-fields": true}),
        };
    }
    match schema {
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields = fields.map(|(name, value)| (name.clone(), expand(value, depth)));
            Value::Object(fields.collect())
        }
        Value::Array(items) => items.iter().map(|item| expand(item, depth)).collect(),
        other => other.clone(),
    }
}
