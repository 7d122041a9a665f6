//! The mark that each applied child carries: the annotation `opkit.dev/applied`.
//!
//! Its value is `<field manager>:<hash>`. The field manager says which controller applied the child,
//! which `Context::prune` goes by; the hash is that of the fields that were applied, by which a
//! process that has just started sees whether the last application had the same (together with what
//! [`crate::as_applied`] looks at).
//!
//! The hash covers the names of the fields and no values. A hash of values would have to be kept from
//! whoever reads annotations, in a log, a metric or a dashboard: the password in a Secret, or in a
//! Deployment's environment, may be short enough to be found by trying, and there is no key that all
//! replicas of an operator have and others do not. The values need no hash: they are on the child.

use serde_json::{Map, Value, json};

use crate::hash::shape_of;

/// The annotation.
pub(crate) const APPLIED: &str = "opkit.dev/applied";

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

#[cfg(test)]
mod tests;
