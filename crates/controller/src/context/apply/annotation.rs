//! The annotations of applied children: `opkit.dev/applied`, and, on children without an owner
//! reference, `opkit.dev/owner`.
//!
//! The value of `opkit.dev/owner` is `<namespace>/<name>:<uid>` of the owner, without the namespace
//! if the owner is cluster-scoped. It is used to find the owner of a child. It does not prove that
//! the object is a child: every client that may write an object can write the annotation.
//!
//! The value of `opkit.dev/applied` is `<field manager>:<hash>`. The field manager identifies the
//! controller that applied the child: `Context::prune` deletes only children of its own controller.
//! The hash covers the names of the applied fields: a process that has just started compares the
//! hash to determine whether the last apply had the same fields. `FieldSetRef::is_as_applied`
//! compares the values.
//!
//! The hash covers no values, because everyone who can read annotations (in a log, a metric or a
//! dashboard) could use a hash of values to find a value by brute force. The password in a Secret
//! or in a Deployment's environment may be short enough for that. A secret key for the hash does
//! not help either: there is no key that all replicas of an operator share and no other reader has.
//! The values need no hash, because the child contains them.

use opkit_cache::Meta;
use opkit_client::ObjectKey;
use serde_json::{Map, Value, json};

use crate::context::apply::hash::shape_of;
use crate::object::owner::Owner;

/// The annotation with the field manager and the hash of the applied fields.
pub(crate) const APPLIED: &str = "opkit.dev/applied";
/// The annotation that names the owner of a child without an owner reference.
pub(crate) const OWNER: &str = "opkit.dev/owner";

/// Sets the `opkit.dev/applied` annotation of `content`.
pub(crate) fn set_applied(content: &mut Value, manager: &str) {
    let Some(content_meta) = content.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    let annotations = content_meta
        .entry("annotations")
        .or_insert_with(|| Value::Object(Map::new()));
    if !annotations.is_object() {
        *annotations = json!({});
    }
    if let Some(annotations) = annotations.as_object_mut() {
        // The annotation's name counts as a field, its value does not.
        annotations.insert(APPLIED.into(), json!(""));
    }
    let applied = format!("{manager}:{:016x}", shape_of(content));
    if let Some(place) = content.pointer_mut("/metadata/annotations/opkit.dev~1applied") {
        *place = applied.into();
    }
}

/// Reports whether `applied`, the value of an `opkit.dev/applied` annotation, names this field
/// manager.
pub(crate) fn is_applied_by(applied: &str, manager: &str) -> bool {
    let by = applied.rsplit_once(':').map(|(by, _)| by);
    by == Some(manager)
}

/// Returns the value of the `opkit.dev/owner` annotation for children of `owner`.
pub(crate) fn owner_annotation(owner: &Owner) -> String {
    format!("{}:{}", owner.key.key(), owner.uid())
}

/// Parses the value of an `opkit.dev/owner` annotation into the key and the UID of the owner.
pub(crate) fn parse_owner(annotation: &str) -> Option<(ObjectKey, &str)> {
    let (key, uid) = annotation.rsplit_once(':')?;
    let key = match key.split_once('/') {
        Some(key) => ObjectKey::from(key),
        None => ObjectKey::from(key),
    };
    (!uid.is_empty() && !key.name.is_empty()).then_some((key, uid))
}

/// Reports whether `child` has both annotations of a child of `owner` that this field manager
/// applied.
pub(crate) fn has_annotations(child: &Meta<'_>, owner: &Owner, manager: &str) -> bool {
    let applied = child.annotation(APPLIED);
    let is_of_owner = |annotation: &str| annotation == owner_annotation(owner);
    applied.is_some_and(|applied| is_applied_by(&applied, manager))
        && child.annotation(OWNER).as_deref().is_some_and(is_of_owner)
        && !owner.uid().is_empty()
}

#[cfg(test)]
mod tests;
