//! The conditions in the status of a CRD.

use serde_json::{Value, json};

use crate::object;

/// A condition of a CRD.
#[derive(Clone, Debug)]
pub(super) struct Condition<'a> {
    pub(super) type_: &'static str,
    pub(super) status: &'static str,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
}

/// Returns the condition of this type.
pub(super) fn find<'a>(crd: &'a Value, type_: &str) -> Option<&'a Value> {
    let mut conditions = object::items(crd, &["status", "conditions"]).iter();
    conditions.find(|condition| object::text(condition, &["type"]) == type_)
}

/// Reports whether the condition of this type is true.
pub(crate) fn is_true(crd: &Value, type_: &str) -> bool {
    find(crd, type_).is_some_and(|condition| object::text(condition, &["status"]) == "True")
}

/// Reports whether a CRD has a condition with the status, the reason and the message of
/// `condition`.
pub(super) fn has(crd: &Value, condition: &Condition<'_>) -> bool {
    find(crd, condition.type_).is_some_and(|found| {
        let is = |field: &str, value: &str| object::text(found, &[field]) == value;
        is("status", condition.status)
            && is("reason", condition.reason)
            && is("message", condition.message)
    })
}

/// Sets a condition. The time of the last transition changes with the status only.
pub(super) fn set(crd: &mut Value, condition: &Condition<'_>, now: &str) {
    let mut conditions = object::items(crd, &["status", "conditions"]).to_vec();
    let is_wanted = |found: &&mut Value| object::text(found, &["type"]) == condition.type_;
    match conditions.iter_mut().find(is_wanted) {
        Some(found) => {
            if object::text(found, &["status"]) != condition.status {
                object::set_field(found, "lastTransitionTime", json!(now));
            }
            object::set_field(found, "status", json!(condition.status));
            object::set_field(found, "reason", json!(condition.reason));
            object::set_field(found, "message", json!(condition.message));
        }
        None => conditions.push(json!({
            "type": condition.type_, "status": condition.status, "reason": condition.reason,
            "message": condition.message, "lastTransitionTime": now,
        })),
    }
    object::set(crd, &["status", "conditions"], json!(conditions));
}
