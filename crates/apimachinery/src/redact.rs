//! Redaction of the values of Secrets, and of the annotation that contains the applied object.

use serde_json::Value;

/// Annotation in which `kubectl apply` stores the whole applied object, including the data of a
/// Secret.
pub const LAST_APPLIED_CONFIGURATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Text that replaces a redacted value.
pub const REDACTED: &str = "REDACTED";

/// Reports whether objects of the kind contain secret values.
pub fn is_secret(kind: &str) -> bool {
    kind == "Secret"
}

/// Redacts an object, or a list of objects. Replaces the values in `data` and `stringData` of
/// Secrets, and the value of [`LAST_APPLIED_CONFIGURATION`] in every object. `kind` is the kind of
/// objects without a `kind` field.
///
/// # Examples
/// ```
/// use opkit_apimachinery::redact::redact;
/// use serde_json::json;
///
/// let mut secret = json!({"metadata": {"name": "a"}, "data": {"password": "aHVudGVyMg=="}});
/// redact("Secret", &mut secret);
/// assert_eq!(secret["data"], json!({"password": "REDACTED"}));
/// ```
pub fn redact(kind: &str, object: &mut Value) {
    let Value::Object(fields) = object else {
        if let Value::Array(items) = object {
            items.iter_mut().for_each(|item| redact(kind, item));
        }
        return;
    };
    let own = fields.get("kind").and_then(Value::as_str);
    let kind = own.unwrap_or(kind);
    let holds_secrets = is_secret(kind) || kind == "SecretList";
    let kind = if holds_secrets { "Secret" } else { "" };
    for (name, field) in fields {
        match name.as_str() {
            LAST_APPLIED_CONFIGURATION => replace(field),
            "data" | "stringData" if holds_secrets => replace(field),
            _ => redact(kind, field),
        }
    }
}

/// Replaces every scalar but null in a value with [`REDACTED`]. Field names stay visible.
pub fn replace(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(replace),
        Value::Array(items) => items.iter_mut().for_each(replace),
        Value::Null => {}
        other => *other = REDACTED.into(),
    }
}

#[cfg(test)]
mod tests;
