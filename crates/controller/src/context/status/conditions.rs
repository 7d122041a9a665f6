//! The rules of a status update, on JSON values. This module does no I/O.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use opkit_apimachinery::managedfields::FieldSetRef;
use serde_json::{Map, Value};

/// Returns the present time as text, in whole seconds as in `metav1.Time`.
pub(crate) fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Completes the conditions of a new status. Sets `lastTransitionTime` to `now` if the condition's
/// status changed, else to the previous time. Sets `observedGeneration` to `generation`. Conditions
/// that are equal to the previous ones are not changed.
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
            // A condition of another manager, or one that this reconcile did not set.
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

/// Puts the conditions of `status` in the order of `previous`, with new conditions last. Adds the
/// conditions of `previous` that are missing in `status` and belong to another manager, because a
/// manager that replaces the whole status must not remove them. Does nothing if a condition has no
/// type.
pub(crate) fn keep_conditions(previous: &Value, status: &mut Value, own: &OwnConditions) {
    let before = previous.get("conditions").and_then(Value::as_array);
    let Some(before) = before.filter(|before| !before.is_empty()) else {
        return;
    };
    let Some(fields) = status.as_object_mut() else {
        return;
    };
    let mut after = match fields.get("conditions") {
        None => Vec::new(),
        Some(Value::Array(after)) => after.clone(),
        Some(_) => return,
    };
    let type_of = |condition: &Value| Some(condition.get("type")?.as_str()?.to_owned());
    if before
        .iter()
        .chain(&after)
        .any(|condition| type_of(condition).is_none())
    {
        return;
    }
    let mut kept = Vec::with_capacity(before.len());
    for old in before {
        let type_ = type_of(old);
        match after
            .iter()
            .position(|condition| type_of(condition) == type_)
        {
            Some(n) => kept.push(after.remove(n)),
            None if type_.is_some_and(|type_| own.has(&type_)) => {}
            None => kept.push(old.clone()),
        }
    }
    kept.append(&mut after);
    // A type that always writes its list has an empty one already.
    if !kept.is_empty() {
        fields.insert("conditions".into(), kept.into());
    }
}

/// The conditions of a status that a field manager owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OwnConditions {
    /// The conditions of the listed types.
    Types(Vec<String>),
    /// All conditions. The server does not track the conditions separately, and this manager was
    /// the last to write the list.
    All,
}

impl OwnConditions {
    /// Returns the conditions that `manager` owns according to `managedFields`.
    pub(crate) fn of(meta: &ObjectMeta, manager: &str) -> Self {
        let entries = meta.managed_fields.iter().flatten();
        let own = entries.filter(|entry| {
            entry.manager.as_deref() == Some(manager)
                && entry.subresource.as_deref() == Some("status")
        });
        let mut types = Vec::new();
        for fields in own.filter_map(|entry| entry.fields_v1.as_ref()) {
            let conditions = FieldSetRef::new(&fields.0)
                .and_then(|fields| fields.field("status"))
                .and_then(|status| status.field("conditions"));
            let Some(conditions) = conditions else {
                continue;
            };
            if conditions.is_empty() {
                return Self::All;
            }
            let keys = conditions.item_keys();
            types.extend(keys.filter_map(|key| Some(key.get("type")?.as_str()?.to_owned())));
        }
        Self::Types(types)
    }

    fn has(&self, type_: &str) -> bool {
        match self {
            Self::All => true,
            Self::Types(types) => types.iter().any(|own| own == type_),
        }
    }
}

/// Returns the RFC 7386 merge patch from `old` to `new`; `None` if they are equal.
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

/// Returns `value` without fields that are null.
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
