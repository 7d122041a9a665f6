//! Validation of the selectable fields of a CRD.

use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use super::props::Props;
use crate::object;

/// Maximum number of selectable fields of a version.
pub(super) const MAX: usize = 8;

/// Returns the errors of selectable fields. `field` is the field with the list.
pub(super) fn validate(
    fields: &Value,
    schema: &Value,
    field: &str,
    is_excess_allowed: bool,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen: Vec<Vec<&str>> = Vec::new();
    for (index, selectable) in fields.as_array().into_iter().flatten().enumerate() {
        let field = format!("{field}[{index}].jsonPath");
        let path = object::text(selectable, &["jsonPath"]);
        if path.is_empty() {
            errors.push(FieldError::required(field, ""));
            continue;
        }
        let invalid = |detail: &str| FieldError::invalid(field.as_str(), &json!(path), detail);
        let (steps, found) = match resolve(path, schema) {
            Ok(resolved) => resolved,
            Err(error) => {
                errors.push(invalid(&format!("is an invalid path: {error}")));
                continue;
            }
        };
        if steps.first() == Some(&"metadata") {
            errors.push(invalid("must not point to fields in metadata"));
        }
        if !matches!(found.type_(), "string" | "boolean" | "integer") {
            errors.push(invalid(
                "must point to a field of type string, boolean or integer. Enum string fields and \
                 strings with formats are allowed.",
            ));
        }
        if seen.contains(&steps) {
            errors.push(FieldError::duplicate(field, &json!(path)));
        } else {
            seen.push(steps);
        }
    }
    if seen.len() > MAX && !is_excess_allowed {
        errors.push(FieldError::too_many(
            field,
            seen.len(),
            u64::try_from(MAX).unwrap_or(u64::MAX),
        ));
    }
    errors
}

/// Returns the steps of a path and the schema at its end, or the reason why it is not valid.
fn resolve<'a>(path: &'a str, schema: &'a Value) -> Result<(Vec<&'a str>, Props<'a>), String> {
    let mut current = Props(schema);
    let mut steps = Vec::new();
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        match first {
            '.' => {}
            '[' => return Err("array notation is not allowed".to_owned()),
            _ => {
                let end = rest.find(['.', '[', ']']).unwrap_or(rest.len());
                let token = rest.get(..end.max(1)).unwrap_or(rest);
                return Err(format!("expected [ or . but got: {token}"));
            }
        }
        rest = rest.get(1..).unwrap_or_default();
        if rest.is_empty() {
            return Err("unexpected end of JSON path".to_owned());
        }
        let end = match rest.find(['.', '[', ']']) {
            Some(0) => 1,
            Some(end) => end,
            None => rest.len(),
        };
        let (name, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        rest = after;
        let next = match current.map("properties") {
            Some(_) => current.property(name),
            None => current
                .additional()
                .and_then(|additional| additional.schema),
        };
        current = next.ok_or("does not refer to a valid field")?;
        steps.push(name);
    }
    Ok((steps, current))
}
