//! Patches that an API server accepts: JSON patch, JSON merge patch, strategic merge patch.
//!
//! The functions change an object in place, and do not depend on storage, versions or validation.
//! Server-side apply, the fourth kind of patch, is [`crate::managedfields::apply`].

mod json;
mod strategic;

use serde_json::{Map, Value};

pub use crate::error::PatchError;
pub use json::json_patch;
pub use strategic::strategic_merge;

/// Applies an RFC 7386 JSON merge patch: objects are merged, null deletes a field, and any other
/// value replaces the value of the field.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::patch::merge_patch;
/// use serde_json::json;
///
/// let mut object = json!({"spec": {"size": 1, "colour": "red"}});
/// merge_patch(&mut object, &json!({"spec": {"size": 2, "colour": null}}));
/// assert_eq!(object, json!({"spec": {"size": 2}}));
/// ```
pub fn merge_patch(object: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let Value::Object(fields) = object else {
        return;
    };
    for (name, change) in patch {
        if change.is_null() {
            fields.remove(name);
        } else {
            merge_patch(fields.entry(name.clone()).or_insert(Value::Null), change);
        }
    }
}

#[cfg(test)]
mod tests;
