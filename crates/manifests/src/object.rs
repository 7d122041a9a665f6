//! The fields that every manifest has.

use serde_json::{Value, json};

/// Label with the name of the operator.
pub(crate) const NAME_LABEL: &str = "app.kubernetes.io/name";
/// Label with the name of the tool that writes the object.
pub(crate) const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";

/// Returns an object of an operator with `apiVersion`, `kind`, name, namespace and labels.
pub(crate) fn document(
    operator: &str,
    api_version: &str,
    kind: &str,
    name: &str,
    namespace: Option<&str>,
) -> Value {
    let mut metadata = json!({
        "name": name,
        "labels": {NAME_LABEL: operator, MANAGED_BY_LABEL: "opkit"},
    });
    if let (Some(namespace), Some(fields)) = (namespace, metadata.as_object_mut()) {
        fields.insert("namespace".to_owned(), json!(namespace));
    }
    json!({"apiVersion": api_version, "kind": kind, "metadata": metadata})
}

/// Returns the text at a JSON pointer, or an empty text.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}
