//! Determines from the live object alone whether an apply request would change nothing.
//!
//! A client that has just started does not know which requests it sent before. An apply would
//! change nothing if two conditions hold:
//! - The manager's entry in `managedFields` has the fields of the configuration, and no others. The
//!   server removes a field from a manager's entry when another client changes or removes the
//!   field. So a field that is still in the entry has not changed since it was applied. As the
//!   entry has no other fields, the apply would remove nothing.
//! - The object has the values of the configuration. If it does not, the configuration is new, or
//!   the server has changed a value without changing the owner, as for an admission webhook.
//!
//! The server writes quantities in canonical form, and leaves out empty values of built-in kinds.
//! Such values count as equal. For any other value that the server changes, such as an image that a
//! webhook renames, the result is `false`, and the client sends one unnecessary request.

mod value;

use std::collections::HashSet;

use serde_json::{Map, Value};

use self::value::{Place, is_equivalent};
use super::set_ref::{FieldSetRef, Step, has_key};

impl<'a> FieldSetRef<'a> {
    /// Reports whether an apply of `config` by the manager that owns this set would change nothing.
    /// This is the case if the set has exactly the fields of `config`, and `live` has the values of
    /// `config`.
    ///
    /// # Examples
    ///
    /// ```
    /// use opkit_apimachinery::managedfields::FieldSetRef;
    /// use serde_json::json;
    ///
    /// let config = json!({
    ///     "apiVersion": "apps/v1", "kind": "Deployment",
    ///     "metadata": {"name": "web"}, "spec": {"replicas": 2},
    /// });
    /// let fields = json!({"f:spec": {"f:replicas": {}}});
    /// let owned = FieldSetRef::new(&fields).unwrap();
    /// assert!(owned.is_as_applied(&config, &json!({"spec": {"replicas": 2, "paused": true}})));
    /// assert!(!owned.is_as_applied(&config, &json!({"spec": {"replicas": 3}})));
    /// ```
    pub fn is_as_applied(self, config: &Value, live: &Value) -> bool {
        let Some(values) = config.as_object() else {
            return false;
        };
        let api_version = config.get("apiVersion").and_then(Value::as_str);
        let root = Place::root(api_version.unwrap_or_default());
        fields_as_applied(values, self, Some(live), &root)
    }
}

/// Reports whether `fields` has exactly the fields of `value`, and `live` has the values of these
/// fields.
fn is_as_applied(
    value: &Value,
    fields: Option<FieldSetRef<'_>>,
    live: Option<&Value>,
    place: &Place<'_>,
) -> bool {
    let Some(fields) = fields else {
        return match value {
            Value::Object(values) => {
                place.is_metadata() && values.keys().all(|name| place.is_unowned(name))
            }
            // Of a list with keys the server tracks the items: of an empty list, nothing.
            Value::Array(items) => {
                let is_empty = |live: &Value| live.as_array().is_some_and(Vec::is_empty);
                items.is_empty() && live.map_or(place.omits_empty(), is_empty)
            }
            _ => false,
        };
    };
    match value {
        // Owned as a whole, such as a list without keys.
        _ if fields.is_empty() => is_equivalent(value, live, place),
        Value::Object(values) => fields_as_applied(values, fields, live, place),
        Value::Array(items) => items_as_applied(items, fields, live, place),
        // A scalar has no fields.
        _ => false,
    }
}

/// Reports whether `fields` has exactly the fields of the object `values`, and `live` has the
/// values of these fields.
fn fields_as_applied(
    values: &Map<String, Value>,
    fields: FieldSetRef<'_>,
    live: Option<&Value>,
    place: &Place<'_>,
) -> bool {
    let mut owned = values.iter().filter(|(name, _)| !place.is_unowned(name));
    fields.field_names().all(|name| values.contains_key(name))
        && owned.all(|(name, value)| {
            let live = live.and_then(|live| live.get(name));
            is_as_applied(value, fields.field(name), live, &place.field(name))
        })
}

/// Reports whether `fields` has exactly the items of the list `items`, and `live` has the values of
/// these items. `fields` identifies an item by key, such as `k:{"name":"a"}`, or by value, such as
/// `v:"a"`.
fn items_as_applied(
    items: &[Value],
    fields: FieldSetRef<'_>,
    live: Option<&Value>,
    place: &Place<'_>,
) -> bool {
    let Some(live) = live.and_then(Value::as_array) else {
        return items.is_empty();
    };
    let mut keyed: Vec<(Map<String, Value>, Option<FieldSetRef<'_>>)> = Vec::new();
    let mut members: Vec<Value> = Vec::new();
    for (_, step, below) in fields.steps() {
        match step {
            Step::Key(key) => keyed.push((key, below)),
            Step::Value(member) => members.push(member),
            Step::Invalid => return false,
            Step::Field(_) | Step::Index(_) | Step::Itself => {}
        }
    }
    let (objects, scalars): (Vec<_>, Vec<_>) =
        (items.iter().enumerate()).partition(|(_, item)| item.is_object());
    // The server completes keys, such as the protocol of a port. Items with all fields of the key
    // come first, so that an item without one of them does not take their step.
    let names: HashSet<String> = (keyed.iter())
        .flat_map(|(key, _)| key.keys().cloned())
        .collect();
    let (complete, partial): (Vec<_>, Vec<_>) = (objects.into_iter())
        .partition(|(_, item)| names.iter().all(|name| item.get(name).is_some()));
    let mut order: Vec<(usize, usize)> = Vec::new();
    let objects_hold = complete.into_iter().chain(partial).all(|(nth, item)| {
        let agrees = |(key, _): &(Map<String, Value>, _)| {
            key.iter().all(|(k, v)| item.get(k).is_none_or(|i| i == v))
        };
        let Some(n) = keyed.iter().position(agrees) else {
            return false;
        };
        let (key, below) = keyed.swap_remove(n);
        let found = live.iter().position(|found| has_key(found, &key));
        order.extend(found.map(|found| (nth, found)));
        let found = found.and_then(|found| live.get(found));
        below.is_some() && is_as_applied(item, below, found, place)
    });
    // Init containers run in their order. Items of other managers may be between them.
    order.sort_unstable();
    objects_hold
        && order.is_sorted_by_key(|(_, found)| *found)
        && keyed.is_empty()
        && (members.iter()).all(|member| scalars.iter().any(|(_, scalar)| *scalar == member))
        && (scalars.into_iter())
            .all(|(_, scalar)| members.contains(scalar) && live.contains(scalar))
}

#[cfg(test)]
mod tests;
