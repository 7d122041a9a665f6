//! Conversion between the version of stored objects and the version of a request.
//!
//! For custom resources only `apiVersion` changes (conversion strategy `None`). Events of both API
//! groups, whose field names differ, are stored in the form of one group. Kinds with other
//! differences between versions are served in one version only.

use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::object;

/// Fields of events with two names: the name in `events.k8s.io`, and the name in the core group.
const EVENT_FIELDS: &[(&str, &str)] = &[
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// Returns the resource name under which the store keeps the objects of `kind`. The name is the
/// same for all versions of a kind, and for both API groups of events.
pub(crate) fn storage_name(kind: &Kind) -> String {
    if is_new_event(kind) {
        "events".to_owned()
    } else {
        kind.group_resource()
    }
}

/// Converts an object from the version of `kind` to the stored version.
pub(crate) fn to_storage(kind: &Kind, object: &mut Value) {
    if is_new_event(kind) {
        rename(object, |(new, core)| (new, core));
        object::set_field(object, "apiVersion", json!("v1"));
    }
    if storage_name(kind) == "events" {
        // Go prints a time that is not set as null.
        for field in ["eventTime", "firstTimestamp", "lastTimestamp"] {
            if object::at(object, &[field]).is_null() {
                object::set_field(object, field, Value::Null);
            }
        }
    }
}

/// Reports whether objects in the version of `kind` differ from stored objects only in
/// `apiVersion`.
pub(crate) fn is_stored_form(kind: &Kind) -> bool {
    !is_new_event(kind)
}

/// Converts a stored object to the version of `kind`.
pub(crate) fn from_storage(kind: &Kind, mut object: Value) -> Value {
    if is_new_event(kind) {
        rename(&mut object, |(new, core)| (core, new));
        // Unlike in the core group, these fields are left out if they are empty.
        for field in ["reportingController", "reportingInstance"] {
            if object::text(&object, &[field]).is_empty() {
                object::set(&mut object, &[field], Value::Null);
            }
        }
    }
    object::set_field(&mut object, "apiVersion", json!(kind.api_version()));
    object
}

fn is_new_event(kind: &Kind) -> bool {
    kind.group == "events.k8s.io" && kind.plural == "events"
}

type Pair = (&'static str, &'static str);

fn rename(object: &mut Value, direction: impl Fn(Pair) -> Pair) {
    for pair in EVENT_FIELDS {
        let (from, to) = direction(*pair);
        let fields = object::as_map(object);
        if let Some(value) = fields.remove(from) {
            fields.insert(to.to_owned(), value);
        }
    }
}
