//! The rules of a status update, on JSON: no I/O.

use serde_json::{Map, Value};

/// Completes the conditions of a new status: `lastTransitionTime` is `now` on a transition and
/// otherwise what it was; `observedGeneration` is `generation`. Conditions that are exactly as
/// they were are left alone.
pub(crate) fn stamp_conditions(previous: &Value, status: &mut Value, now: &str, generation: i64) {
    let before = previous.get("conditions").and_then(Value::as_array);
    let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) else {
        return;
    };
    for condition in conditions.iter_mut().filter_map(Value::as_object_mut) {
        let kind = condition.get("type");
        let old = before
            .into_iter()
            .flatten()
            .find(|old| old.get("type") == kind);
        if old.and_then(Value::as_object) == Some(condition) {
            // Somebody else's, or ours and not set by this run.
            continue;
        }
        let same_status = old.is_some_and(|old| old.get("status") == condition.get("status"));
        let time = old
            .filter(|_| same_status)
            .and_then(|old| old.get("lastTransitionTime"))
            .filter(|time| !time.is_null())
            .cloned();
        condition.insert(
            "lastTransitionTime".into(),
            time.unwrap_or_else(|| now.into()),
        );
        condition.insert("observedGeneration".into(), generation.into());
    }
}

/// The RFC 7386 merge patch that makes `new` of `old`; `None` if they are equal.
pub(crate) fn merge_patch(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let (Some(before), Some(after)) = (old.as_object(), new.as_object()) else {
        return Some(new.clone());
    };
    let mut patch = Map::new();
    for (key, value) in after {
        match before.get(key) {
            Some(old) => {
                if let Some(difference) = merge_patch(old, value) {
                    patch.insert(key.clone(), difference);
                }
            }
            None => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    Some(Value::Object(patch))
}

/// The value without the null fields of its objects.
pub(crate) fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (key, without_nulls(value)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        value => value,
    }
}

#[cfg(test)]
mod tests;
