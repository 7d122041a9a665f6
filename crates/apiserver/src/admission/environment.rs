//! The CEL environments of match conditions and policies.

use std::sync::LazyLock;

use opkit_apimachinery::schema::Schema;
use opkit_cel::{Environment, Type};
use serde_json::{Value, json};

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

/// Adds the variables that every expression of admission has: the request, and the permissions of
/// its user.
pub(crate) fn request(environment: Environment) -> Environment {
    let environment = match Schema::parse(&request_schema()) {
        Ok(schema) => environment.object("request", "kubernetes.AdmissionRequest", &schema),
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
        (
            "options",
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        ),
    ])
}
