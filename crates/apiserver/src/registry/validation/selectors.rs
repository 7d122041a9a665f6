//! Validation of labels, annotations and label selectors.

use opkit_apimachinery::selector::LabelSelector;
use opkit_apimachinery::structural::FieldError;
use serde_json::json;

use super::field::{Errors, Field};
use super::format;

/// Maximum total length of the annotations of an object in bytes.
const ANNOTATIONS_MAX: usize = 256 * 1024;

/// Adds the errors in a map of labels.
pub(super) fn labels(labels: &Field<'_>, errors: &mut Errors) {
    for (key, value) in labels.entries() {
        for rule in format::qualified_name(key) {
            errors.invalid_value(&labels.path, json!(key), &rule);
        }
        for rule in format::label_value(value.text()) {
            errors.invalid_value(&labels.path, json!(value.text()), &rule);
        }
    }
}

/// Adds the errors in a map of annotations.
pub(super) fn annotations(annotations: &Field<'_>, errors: &mut Errors) {
    let mut size = 0;
    for (key, value) in annotations.entries() {
        for rule in format::qualified_name(&key.to_lowercase()) {
            errors.invalid_value(&annotations.path, json!(key), &rule);
        }
        size += key.len() + value.text().len();
    }
    if size > ANNOTATIONS_MAX {
        let max = u64::try_from(ANNOTATIONS_MAX).unwrap_or(u64::MAX);
        errors.0.push(FieldError::too_long(&annotations.path, max));
    }
}

/// Adds the errors in a label selector. A missing selector has none.
pub(super) fn selector(selector: &Field<'_>, errors: &mut Errors) {
    labels(&selector.get("matchLabels"), errors);
    for requirement in selector.get("matchExpressions").items() {
        let (values, operator) = (requirement.get("values"), requirement.get("operator"));
        match operator.text() {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.required(&values, detail);
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.forbidden(&values, detail);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => errors.invalid_text(&operator, "not a valid selector operator"),
        }
        let key = requirement.get("key");
        errors.rules(&key, format::qualified_name(key.text()));
        for value in values.items() {
            errors.rules(&value, format::label_value(value.text()));
        }
    }
}

/// Reports whether a label selector selects every object.
pub(super) fn is_empty(selector: &Field<'_>) -> bool {
    selector.get("matchLabels").is_empty() && selector.get("matchExpressions").is_empty()
}

/// Reports whether a label selector matches a map of labels. Returns `None` if the selector is
/// malformed.
pub(super) fn matches(selector: &Field<'_>, labels: &Field<'_>) -> Option<bool> {
    let parsed = LabelSelector::from_object(selector.value).ok()?;
    Some(parsed.matches(labels.value.as_object()))
}
