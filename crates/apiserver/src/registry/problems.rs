//! Errors of new built-in objects as text, for objects that are not sent to a server.

use opkit_apimachinery::structural::FieldError;
use serde_json::Value;

use super::validation;
use crate::kinds::Catalog;
use crate::kinds::defaults;

/// Returns the errors for which an API server refuses one of these new objects, one text each.
/// Objects whose kind is not built in are not checked. Of the built-in kinds, the rules are those
/// that the server checks beside types: CEL expressions of webhooks and policies, names, limits.
///
/// # Examples
/// ```
/// use serde_json::json;
///
/// let policy = json!({
///     "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
///     "metadata": {"name": "small-maps"},
///     "spec": {
///         "matchConstraints": {"resourceRules": [{
///             "apiGroups": [""], "apiVersions": ["v1"],
///             "operations": ["CREATE"], "resources": ["configmaps"],
///         }]},
///         "validations": [{"expression": "object.data.size() <"}],
///     },
/// });
/// let problems = opkit_apiserver::object_problems(&[policy]);
/// let start = "ValidatingAdmissionPolicy small-maps: spec.validations[0].expression: ";
/// assert!(problems[0].starts_with(start), "{problems:?}");
/// ```
pub fn object_problems(objects: &[Value]) -> Vec<String> {
    let catalog = Catalog::builtin();
    let problems = objects.iter().flat_map(|object| {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str);
        let type_ = (
            text("/apiVersion").unwrap_or_default(),
            text("/kind").unwrap_or_default(),
        );
        let name = format!("{} {}", type_.1, text("/metadata/name").unwrap_or_default());
        let kind = catalog.find(|kind| (kind.api_version().as_str(), kind.kind.as_str()) == type_);
        let errors = kind.and_then(|kind| {
            let mut object = object.clone();
            defaults::apply(&kind, &mut object);
            validation::errors(&kind, &object, None)
        });
        let errors = errors.unwrap_or_default().into_iter();
        errors.map(move |error| format!("{name}: {}", problem(object, &error)))
    });
    problems.collect()
}

/// Returns an error as text. The error of a webhook in a configuration has the webhook's name.
fn problem(object: &Value, error: &FieldError) -> String {
    let index = error.field.strip_prefix("webhooks[");
    let index = index.and_then(|rest| rest.split_once(']')?.0.parse::<usize>().ok());
    let webhook = index.and_then(|at| object.pointer(&format!("/webhooks/{at}/name"))?.as_str());
    match webhook {
        Some(webhook) => format!("webhook {webhook}: {error}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
