//! The CEL environments of match conditions and policies.

use std::sync::LazyLock;

use opkit_apimachinery::schema::Schema;
use opkit_cel::{Environment, Type};
use serde_json::{Value, json};

use super::policy::PolicyType;

/// Returns the environment of match conditions.
pub(crate) fn match_conditions() -> Environment {
    static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| {
        request(
            Environment::new()
                .variable("object", Type::Dyn)
                .variable("oldObject", Type::Dyn),
        )
    });
    ENVIRONMENT.clone()
}

/// Returns the environment of the expressions of a policy, without the variables that the policy
/// composes.
pub(crate) fn policy(type_: PolicyType, has_params: bool) -> Environment {
    let environment = conditions_of_policy(has_params);
    let environment = match Schema::parse(&namespace_schema()) {
        Ok(schema) => environment.object("namespaceObject", "kubernetes.Namespace", &schema),
        Err(_) => environment.variable("namespaceObject", Type::Dyn),
    };
    match type_ {
        PolicyType::Validating => environment,
        PolicyType::Mutating => environment.mutation(),
    }
}

/// Returns the environment of the match conditions of a policy.
pub(crate) fn conditions_of_policy(has_params: bool) -> Environment {
    match has_params {
        true => match_conditions().variable("params", Type::Dyn),
        false => match_conditions(),
    }
}

/// Returns the schema of the fields of a Namespace that expressions can use.
fn namespace_schema() -> Value {
    let text = json!({"type": "string"});
    let number = json!({"type": "integer"});
    let texts = json!({"type": "array", "items": text});
    let map = json!({"type": "object", "additionalProperties": text});
    let time = json!({"type": "string", "format": "date-time"});
    json!({"type": "object", "properties": {
        "metadata": {"type": "object", "properties": {
            "name": text, "generateName": text, "namespace": text, "labels": map,
            "annotations": map, "UID": text, "creationTimestamp": time,
            "deletionGracePeriodSeconds": number, "deletionTimestamp": time,
            "generation": number, "resourceVersion": text, "finalizers": texts,
        }},
        "spec": {"type": "object", "properties": {"finalizers": texts}},
        "status": {"type": "object", "properties": {
            "phase": text,
            "conditions": {"type": "array", "items": {"type": "object", "properties": {
                "status": text, "type": text, "lastTransitionTime": time, "message": text,
                "reason": text,
            }}},
        }},
    }})
}

/// Adds the variables that every expression of admission has: the request, and the permissions of
/// its user.
pub(crate) fn request(environment: Environment) -> Environment {
    const REQUEST: &str = "kubernetes.AdmissionRequest";
    let environment = match Schema::parse(&request_schema()) {
        Ok(schema) => environment
            .object("request", REQUEST, &schema)
            // The options of the operations have different fields.
            .field(REQUEST, "options", Type::Dyn),
        Err(_) => environment.variable("request", Type::Dyn),
    };
    environment
        .variable("authorizer", Type::authorizer())
        .variable("authorizer.requestResource", Type::resource_check())
}

/// Returns the schema of an AdmissionRequest without its objects.
fn request_schema() -> Value {
    let text = json!({"type": "string"});
    let texts = json!({"type": "array", "items": text});
    let object = |fields: &[(&str, Value)]| {
        let properties: serde_json::Map<String, Value> = fields
            .iter()
            .map(|(name, schema)| ((*name).to_owned(), schema.clone()))
            .collect();
        json!({"type": "object", "properties": properties})
    };
    let field = |name: &'static str| (name, text.clone());
    let kind = object(&[field("group"), field("version"), field("kind")]);
    let resource = object(&[field("group"), field("version"), field("resource")]);
    let user = object(&[
        field("username"),
        field("uid"),
        ("groups", texts.clone()),
        (
            "extra",
            json!({"type": "object", "additionalProperties": texts}),
        ),
    ]);
    object(&[
        ("kind", kind.clone()),
        ("resource", resource.clone()),
        field("subResource"),
        ("requestKind", kind),
        ("requestResource", resource),
        field("requestSubResource"),
        field("name"),
        field("namespace"),
        field("operation"),
        ("userInfo", user),
        ("dryRun", json!({"type": "boolean"})),
    ])
}
