//! Restores the values that were kept while an object was in another version.

use std::collections::HashSet;

use serde_json::Value;

use super::difference::Difference;
use super::{Conversion, Fields};
use crate::schema::{NoDefinitions, Schema, Typed};
use crate::structural::validate;

/// Applies the kept values that are not outdated to converted fields. Returns the fields with these
/// values, and the same fields after `reverse`, the conversion back.
///
/// If the fields with all values do not fit the schema, or cannot be converted back, then each
/// value is tried by itself.
pub(super) fn restore(
    converted: Conversion,
    kept: &[Difference],
    schema: &Schema,
    reverse: impl Fn(&Fields) -> Result<Fields, serde_json::Error>,
) -> (Fields, Fields) {
    let Conversion { fields, reversed } = converted;
    if kept.is_empty() {
        return (fields, reversed);
    }
    let mut restored = fields.clone();
    let mut is_restored = false;
    for difference in kept {
        is_restored |= difference.apply(&mut restored);
    }
    if !is_restored {
        return (fields, reversed);
    }
    let errors_before = errors(&fields, schema);
    let accept = |candidate: &Fields| {
        if !errors(candidate, schema).is_subset(&errors_before) {
            return None;
        }
        reverse(candidate).ok()
    };
    if let Some(reversed) = accept(&restored) {
        return (restored, reversed);
    }
    let mut accepted = (fields, reversed);
    for difference in kept {
        let mut candidate = accepted.0.clone();
        if difference.apply(&mut candidate)
            && let Some(reversed) = accept(&candidate)
        {
            accepted = (candidate, reversed);
        }
    }
    accepted
}

/// Returns the errors of the fields against the schema of the whole object. Metadata and fields
/// that were not converted are not validated.
fn errors(fields: &Fields, schema: &Schema) -> HashSet<String> {
    let typed = Typed::new(schema, &NoDefinitions);
    let mut found = HashSet::new();
    for (name, value) in fields {
        if let (Some(typed), "spec" | "status") = (typed.property(name), name.as_str()) {
            found.extend(errors_of(value, &typed));
        }
    }
    found
}

fn errors_of(value: &Value, schema: &Typed<'_>) -> impl Iterator<Item = String> {
    validate(value, schema).into_iter().map(|e| e.to_string())
}
