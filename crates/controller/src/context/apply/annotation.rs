//! The marks that applied children carry: the annotation `opkit.dev/applied`, and, on children
//! without an owner reference, `opkit.dev/owner`.
//!
//! The value of `opkit.dev/owner` is `<namespace>/<name>:<uid>` of the owner; the owner of a
//! cluster-scoped kind has no namespace in it. It leads from a child to its owner. Alone it proves
//! nothing: every client that may write an object can write it.
//!
//! The value of `opkit.dev/applied` is `<field manager>:<hash>`. The field manager identifies the
//! controller that applied the child: `Context::prune` deletes only children of its own controller.
//! The hash covers the fields that were applied: a process that has just started compares it to
//! find out whether the last application had the same fields (together with
//! `FieldSetRef::is_as_applied`, which compares the values).
//!
//! The hash covers the names of the fields and no values. A hash of values would have to be kept
//! from whoever reads annotations, in a log, a metric or a dashboard: the password in a Secret, or
//! in a Deployment's environment, may be short enough to be found by trying, and there is no key
//! that all replicas of an operator have and others do not. The values need no hash: they are on
//! the child.

use opkit_cache::Meta;
use opkit_client::ObjectKey;
use serde_json::{Map, Value, json};

use crate::context::apply::hash::shape_of;
use crate::object::owner::Owner;

/// The annotation.
pub(crate) const APPLIED: &str = "opkit.dev/applied";
/// The annotation that names the owner of a child without an owner reference.
pub(crate) const OWNER: &str = "opkit.dev/owner";

/// Puts the mark on `content`, in place of one that it has.
pub(crate) fn add_mark(content: &mut Value, manager: &str) {
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
        // Its own name counts as a field, its value does not.
        annotations.insert(APPLIED.into(), json!(""));
    }
    let mark = format!("{manager}:{:016x}", shape_of(content));
    if let Some(place) = content.pointer_mut("/metadata/annotations/opkit.dev~1applied") {
        *place = mark.into();
    }
}

/// Whether a mark is of this field manager.
pub(crate) fn is_of(mark: &str, manager: &str) -> bool {
    mark.rsplit_once(':').is_some_and(|(of, _)| of == manager)
}

/// The mark of the children of `owner` that have no owner reference.
pub(crate) fn owner_mark(owner: &Owner) -> String {
    format!("{}:{}", owner.key.key(), owner.uid())
}

/// The key and the UID of the owner that a mark names.
pub(crate) fn read_owner_mark(mark: &str) -> Option<(ObjectKey, &str)> {
    let (key, uid) = mark.rsplit_once(':')?;
    let key = match key.split_once('/') {
        Some(key) => ObjectKey::from(key),
        None => ObjectKey::from(key),
    };
    (!uid.is_empty() && !key.name.is_empty()).then_some((key, uid))
}

/// Whether `child` carries the marks of `owner` and of this field manager.
pub(crate) fn is_marked(child: &Meta<'_>, owner: &Owner, manager: &str) -> bool {
    let applied = child.annotation(APPLIED);
    let is_of_owner = |mark: &str| mark == owner_mark(owner);
    applied.is_some_and(|mark| is_of(&mark, manager))
        && child.annotation(OWNER).as_deref().is_some_and(is_of_owner)
        && !owner.uid().is_empty()
}

#[cfg(test)]
mod tests;
