//! Validation of the fields of a custom resource that its `scale` subresource contains.

use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use crate::gotext;
use crate::kinds::Kind;

/// Returns the errors of the fields that the `scale` subresource of a custom resource contains. A
/// write of the status cannot change the number of wanted replicas, so the number is not checked.
pub(super) fn errors(kind: &Kind, object: &Value, is_status: bool) -> Vec<FieldError> {
    let scale = kind.subresource("scale").filter(|_| kind.is_custom());
    let Some(paths) = scale.and_then(|scale| scale.scale.as_ref()) else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    if !is_status {
        errors.extend(replicas_error(object, &paths.spec_replicas));
    }
    errors.extend(replicas_error(object, &paths.status_replicas));
    let selector = paths.label_selector.as_deref().unwrap_or_default();
    if !selector.is_empty()
        && let Err(error) = nested(object, selector, "string")
    {
        errors.push(FieldError::invalid(selector, &json!(""), error));
    }
    errors
}

fn replicas_error(object: &Value, path: &str) -> Option<FieldError> {
    let found = match nested(object, path, "int64") {
        Err(error) => return Some(FieldError::invalid(path, &json!(0), error)),
        Ok(found) => found?,
    };
    let detail = match found.as_i64()? {
        replicas if replicas < 0 => "should be a non-negative integer".to_owned(),
        replicas if replicas > i64::from(i32::MAX) => {
            format!("should be less than or equal to {}", i32::MAX)
        }
        _ => return None,
    };
    Some(FieldError::invalid(path, found, detail))
}

/// Returns the value at a path, or `None` if a field is missing.
///
/// # Errors
/// If the value is not of the Go type `wanted`, or if a field on the path is not an object.
fn nested<'a>(object: &'a Value, path: &str, wanted: &str) -> Result<Option<&'a Value>, String> {
    let shown = path.strip_prefix('.').unwrap_or(path);
    let refuse = |at: &str, value: &Value, wanted: &str| {
        let (value, found) = (gotext::plain(value), gotext::type_name(value));
        Err(format!(
            "{at} accessor error: {value} is of the type {found}, expected {wanted}"
        ))
    };
    let mut current = object;
    let mut walked = String::new();
    for step in shown.split('.') {
        walked.push('.');
        walked.push_str(step);
        let fields = match current {
            Value::Null => return Ok(None),
            Value::Object(fields) => fields,
            other => return refuse(&walked, other, "map[string]interface{}"),
        };
        let Some(next) = fields.get(step) else {
            return Ok(None);
        };
        current = next;
    }
    match gotext::type_name(current) == wanted {
        true => Ok(Some(current)),
        false => refuse(&walked, current, wanted),
    }
}
