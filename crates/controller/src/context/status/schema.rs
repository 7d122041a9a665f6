//! Checks, when the operator starts, whether the schema of a status has the fields that
//! `Context::update_status` writes.

use http::Method;
use opkit_client::{Kind, RestClient};
use serde_json::Value;
use tracing::{debug, warn};

use crate::object::is_custom;

/// Logs a warning for each custom kind whose status cannot store the fields that
/// `Context::update_status` writes. Uses the OpenAPI schemas that the server publishes, which every
/// account may read. Does not wait for schemas that the server does not have yet.
pub(crate) async fn report_status_gaps(client: &RestClient, kinds: &[Kind]) {
    for kind in kinds.iter().filter(|kind| is_custom(kind)) {
        let path = format!("/openapi/v3/apis/{}", kind.api_version());
        match client.request(Method::GET, &path).typed::<Value>().await {
            Ok(document) => {
                for gap in status_gaps(kind, &document) {
                    warn!(
                        kind = kind.kind,
                        gap, "the status cannot store all fields that are written"
                    );
                }
            }
            Err(error) => debug!(kind = kind.kind, %error, "cannot read the schema"),
        }
    }
}

/// Returns one message for each field that is missing in the status schema of `kind`, or that
/// cannot be written. `document` is the OpenAPI v3 document of the kind's group and version.
/// Returns no message if the kind has no status or the document does not describe the kind.
pub(crate) fn status_gaps(kind: &Kind, document: &Value) -> Vec<String> {
    let mut gaps = Vec::new();
    let Some(schema) = schema_of(kind, document) else {
        return gaps;
    };
    let Some(status) = schema.pointer("/properties/status") else {
        return gaps;
    };
    let has_path = document.get("paths").and_then(Value::as_object);
    if has_path.is_some_and(|paths| !paths.keys().any(|path| is_status_path(kind, path))) {
        gaps.push(format!(
            "{} has status in its schema but no status subresource: its status cannot be updated",
            kind.kind
        ));
    }
    let Some(fields) = status.get("properties") else {
        return gaps;
    };
    if fields.get("observedGeneration").is_none() {
        gaps.push(format!(
            "{} has no status.observedGeneration: clients cannot determine whether its status is up to date",
            kind.kind
        ));
    }
    match fields.get("conditions") {
        None => gaps.push(format!(
            "{} has no status.conditions: it cannot report that it is ready",
            kind.kind
        )),
        Some(conditions) => {
            let list_type = conditions.get("x-kubernetes-list-type");
            if list_type.and_then(Value::as_str) != Some("map") {
                gaps.push(format!(
                    "{} has status.conditions that are not a list of type map with the key type: controllers cannot own conditions separately",
                    kind.kind
                ));
            }
        }
    }
    gaps
}

fn schema_of<'d>(kind: &Kind, document: &'d Value) -> Option<&'d Value> {
    let schemas = document.pointer("/components/schemas")?.as_object()?;
    schemas.values().find(|schema| {
        let kinds = schema.get("x-kubernetes-group-version-kind");
        let kinds = kinds.and_then(Value::as_array).into_iter().flatten();
        kinds.into_iter().any(|known| {
            let is = |field, text: &str| known.get(field).and_then(Value::as_str) == Some(text);
            is("group", &kind.group) && is("version", &kind.version) && is("kind", &kind.kind)
        })
    })
}

fn is_status_path(kind: &Kind, path: &str) -> bool {
    path.ends_with(&format!("/{}/{{name}}/status", kind.plural))
}

#[cfg(test)]
mod tests;
