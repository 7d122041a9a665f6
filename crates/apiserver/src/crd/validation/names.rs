//! Validation of the names of a CRD.

use opkit_apimachinery::names::check_rfc_1035_label;
use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use crate::object;

/// The names that the spec must have. They are optional in the status.
const REQUIRED: [&str; 4] = ["plural", "singular", "kind", "listKind"];

/// Returns an error for each required name that is missing.
pub(super) fn missing(names: &Value) -> impl Iterator<Item = FieldError> {
    let missing = REQUIRED
        .iter()
        .filter(|name| object::text(names, &[name]).is_empty());
    missing.map(|name| FieldError::required(format!("spec.names.{name}"), ""))
}

/// Returns the errors of names. `path` is the field with the names.
pub(super) fn validate(names: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for name in ["plural", "singular"] {
        let text = object::text(names, &[name]);
        if !text.is_empty()
            && let Err(detail) = check_rfc_1035_label(text)
        {
            let field = format!("{path}.{name}");
            errors.push(FieldError::invalid(field, &json!(text), detail));
        }
    }
    for name in ["kind", "listKind"] {
        let text = object::text(names, &[name]);
        if !text.is_empty()
            && let Err(detail) = check_rfc_1035_label(&text.to_lowercase())
        {
            let detail = format!("may have mixed case, but should otherwise match: {detail}");
            let field = format!("{path}.{name}");
            errors.push(FieldError::invalid(field, &json!(text), detail));
        }
    }
    errors.extend(labels(names, "shortNames", path));
    let (kind, list) = (
        object::text(names, &["kind"]),
        object::text(names, &["listKind"]),
    );
    if !kind.is_empty() && kind == list {
        let detail = "kind and listKind may not be the same";
        let field = format!("{path}.listKind");
        errors.push(FieldError::invalid(field, &json!(list), detail));
    }
    errors.extend(labels(names, "categories", path));
    errors
}

/// Returns the errors of a list of DNS labels.
fn labels(names: &Value, list: &str, path: &str) -> Vec<FieldError> {
    let items = object::items(names, &[list]).iter().enumerate();
    items
        .filter_map(|(index, item)| {
            let detail = check_rfc_1035_label(item.as_str().unwrap_or_default()).err()?;
            let field = format!("{path}.{list}[{index}]");
            Some(FieldError::invalid(field, item, detail))
        })
        .collect()
}
