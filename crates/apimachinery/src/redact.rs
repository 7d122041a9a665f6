//! What is never shown of an object: the values of Secrets, and copies of whole objects.

use serde_json::Value;

/// The annotation in which `kubectl apply` keeps the whole of what was applied, the data of a
/// Secret included.
pub const LAST_APPLIED_CONFIGURATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What stands for a value that is not shown.
pub const REDACTED: &str = "REDACTED";

/// Whether the values of a kind are secret.
pub fn is_secret(kind: &str) -> bool {
    kind == "Secret"
}

/// Replaces what must not be shown of an object, or of a list of objects: the values in `data` and
/// `stringData` of Secrets, and the value of [`LAST_APPLIED_CONFIGURATION`] wherever it is. `kind`
/// is the kind of the object.
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

/// Replaces every leaf, so that the names of the keys still show.
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
