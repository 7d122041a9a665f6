//! Between the version an object is stored in and the version a request speaks.
//!
//! Custom resources convert by their `apiVersion` alone (conversion strategy `None`). Events are
//! one store behind two APIs that name the fields differently. Kinds whose versions differ in more
//! are served in one version only.

use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::object;

/// `events.k8s.io` name, core name.
const EVENT_FIELDS: &[(&[&str], &[&str])] = &[
    (&["regarding"], &["involvedObject"]),
    (&["note"], &["message"]),
    (&["reportingController"], &["reportingComponent"]),
    (&["deprecatedSource"], &["source"]),
    (&["deprecatedFirstTimestamp"], &["firstTimestamp"]),
    (&["deprecatedLastTimestamp"], &["lastTimestamp"]),
    (&["deprecatedCount"], &["count"]),
];

/// The name that objects of `kind` are filed under, whatever version and group they are read in.
pub(crate) fn storage_name(kind: &Kind) -> String {
    if is_new_event(kind) {
        "events".to_owned()
    } else {
        kind.group_resource()
    }
}

/// Turns an object of a request into the form it is stored in.
pub(crate) fn to_storage(kind: &Kind, object: &mut Value) {
    if is_new_event(kind) {
        rename(object, |(new, core)| (new, core));
        object::set_field(object, "apiVersion", json!("v1"));
    }
}

/// Turns a stored object into the form that `kind` speaks.
pub(crate) fn from_storage(kind: &Kind, object: &Value) -> Value {
    let mut object = object.clone();
    if is_new_event(kind) {
        rename(&mut object, |(new, core)| (core, new));
    }
    object::set_field(&mut object, "apiVersion", json!(kind.api_version()));
    object
}

fn is_new_event(kind: &Kind) -> bool {
    kind.group == "events.k8s.io" && kind.plural == "events"
}

type Pair = (&'static [&'static str], &'static [&'static str]);

fn rename(object: &mut Value, direction: impl Fn(Pair) -> Pair) {
    for pair in EVENT_FIELDS {
        let (from, to) = direction(*pair);
        let value = object::at(object, from).clone();
        if !value.is_null() {
            object::set(object, from, Value::Null);
            object::set(object, to, value);
        }
    }
}
