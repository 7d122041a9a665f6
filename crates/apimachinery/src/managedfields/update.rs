//! Records the fields that a manager writes by create, update or patch.

use std::collections::BTreeSet;

use serde_json::Value;

use super::managers::{self, Entry, Identity, Managers, Operation};
use super::topology::Node;
use super::{Manager, UNOWNED, walk};
use crate::schema::Typed;

/// Records the owner of the written fields after a create, update or patch.
///
/// Fields that changed between `live` (`None` for a create) and `new` become owned by `manager`,
/// with the operation `Update`, in `metadata.managedFields` of `new`; all other managers lose these
/// fields. `time` is in the format of RFC 3339; an entry without new fields keeps its time. As in
/// Kubernetes, an update does not add managers to an object that has none, and `managedFields: []`
/// in `new` removes all managers.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::managedfields::{Manager, update};
/// use opkit_apimachinery::schema::{NoDefinitions, Schema, Typed};
/// use serde_json::json;
///
/// let schema = Schema::parse(&json!({"type": "object", "properties": {
///     "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
/// }}))?;
/// let manager = Manager { name: "cook", api_version: "example.com/v1", subresource: "" };
/// let mut object = json!({"spec": {"size": 1}});
/// update(None, &mut object, &Typed::new(&schema, &NoDefinitions), &manager, "2024-01-01T00:00:00Z");
/// assert_eq!(
///     object.pointer("/metadata/managedFields/0/fieldsV1"),
///     Some(&json!({"f:spec": {".": {}, "f:size": {}}})),
/// );
/// # Ok::<(), opkit_apimachinery::schema::SchemaError>(())
/// ```
pub fn update(
    live: Option<&Value>,
    new: &mut Value,
    schema: &Typed<'_>,
    manager: &Manager<'_>,
    time: &str,
) {
    let mut owners = managers_for_update(live, new, manager);
    managers::strip(new);
    if owners.is_empty() && live.is_some() {
        return;
    }
    record_update(&mut owners, live, new, &Node::root(schema), manager, time);
    owners.cap();
    owners.encode(new);
}

/// Restores the live object's `metadata.managedFields` if the new object differs only in the times
/// of its managed fields.
///
/// A server calls this function last, after defaults and admission, so that a write without changes
/// creates no new version and no event.
pub fn keep_times(live: &Value, new: &mut Value) {
    let Some(live_fields) = live.pointer("/metadata/managedFields") else {
        return;
    };
    let count = |fields: &Value| fields.as_array().map(Vec::len);
    let new_count = new.pointer("/metadata/managedFields").and_then(count);
    if new_count != count(live_fields) {
        // A manager was added or removed.
        return;
    }
    let Some(new_fields) = new.pointer_mut("/metadata/managedFields").map(Value::take) else {
        return;
    };
    let kept = if without_times(live_fields) == without_times(&new_fields) {
        live_fields.clone()
    } else {
        new_fields.clone()
    };
    let put = |new: &mut Value, fields: Value| {
        if let Some(place) = new.pointer_mut("/metadata/managedFields") {
            *place = fields;
        }
    };
    put(new, kept);
    if new != live {
        put(new, new_fields);
    }
}

/// Returns the entries of `managed_fields` as a set of JSON texts, each without its time.
fn without_times(managed_fields: &Value) -> BTreeSet<String> {
    let entries = managed_fields.as_array().map_or(&[][..], Vec::as_slice);
    let text = |entry: &Value| {
        let mut entry = entry.clone();
        if let Some(fields) = entry.as_object_mut() {
            fields.remove("time");
        }
        entry.to_string()
    };
    entries.iter().map(text).collect()
}

/// Returns the managers before an update: those that the client sent in `new`, or else those of the
/// live object. In a request to a subresource, the managers that the client sent are ignored.
fn managers_for_update(live: Option<&Value>, new: &Value, manager: &Manager<'_>) -> Managers {
    let of_live = || {
        live.and_then(|live| Managers::decode(live).ok())
            .unwrap_or_default()
    };
    if !manager.subresource.is_empty() {
        return of_live();
    }
    match new
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
    {
        Some([]) => return Managers::default(),
        Some([Value::Object(only)]) if only.is_empty() => return Managers::default(),
        _ => {}
    }
    match Managers::decode(new) {
        Ok(sent) if !sent.is_empty() => sent,
        _ => of_live(),
    }
}

/// Records `manager` as the owner of the fields that changed between the two objects.
pub(super) fn record_update(
    owners: &mut Managers,
    live: Option<&Value>,
    new: &Value,
    root: &Node<'_>,
    manager: &Manager<'_>,
    time: &str,
) {
    let comparison = match live {
        Some(live) => walk::compare(live, new, root),
        None => walk::compare(&root.skeleton(), new, root),
    };
    let (mut gained, removed) = comparison.into_parts();
    owners.take(&gained, None);
    owners.take(&removed, None);
    gained.remove_all(&UNOWNED);
    if gained.is_empty() {
        return;
    }
    let identity = Identity::new(manager, Operation::Update);
    let kept = owners.entries.remove(&identity).map(|entry| entry.fields);
    let mut fields = kept.unwrap_or_default();
    fields.extend(gained);
    let entry = Entry {
        api_version: manager.api_version.to_owned(),
        fields,
        time: Some(time.to_owned()),
    };
    owners.entries.insert(identity, entry);
}
