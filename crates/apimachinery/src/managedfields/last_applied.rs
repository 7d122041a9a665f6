//! Takeover of fields from `kubectl`'s client-side apply.
//!
//! Client-side apply stores the applied object in an annotation, and owns the fields of the object
//! with the operation `Update`. Without a takeover, the first server-side apply by `kubectl` would
//! conflict with the fields that `kubectl` itself wrote before. As long as the annotation exists,
//! it must contain the last applied object, because older clients compute their next patch from the
//! annotation.

use std::collections::BTreeSet;

use serde_json::Value;

use super::topology::Node;
use super::{FieldSet, managers, walk};
use crate::golang;
use crate::redact::LAST_APPLIED_CONFIGURATION as ANNOTATION;
use crate::schema::Typed;

const POINTER: &str = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";
/// Maximum size of all annotations of an object, in bytes: the limit of Kubernetes.
const ANNOTATIONS_BYTES_MAX: usize = 256 << 10;

/// Returns the paths of the fields that were applied client-side and have not changed since.
pub(super) fn unchanged_fields(
    live: &Value,
    schema: &Typed<'_>,
    api_version: &str,
) -> BTreeSet<String> {
    let last: Option<Value> = live
        .pointer(POINTER)
        .and_then(Value::as_str)
        .and_then(|text| serde_json::from_str(text).ok());
    let Some(last) = last else {
        return BTreeSet::new();
    };
    if last.get("apiVersion").and_then(Value::as_str) != Some(api_version) {
        return BTreeSet::new();
    }
    let mut live = live.clone();
    managers::strip(&mut live);
    let comparison = walk::compare(&last, &live, &Node::root(schema));
    let changed = comparison.changed().union(&comparison.removed);
    FieldSet::of(&last, schema)
        .difference(&changed)
        .paths()
        .into_iter()
        .collect()
}

/// Stores `config`, the configuration that was just applied, in the annotation of client-side
/// apply, if `new` has this annotation.
pub(super) fn refresh(new: &mut Value, config: &Value) {
    if new
        .pointer(POINTER)
        .and_then(Value::as_str)
        .is_none_or(str::is_empty)
    {
        return;
    }
    let mut applied = config.clone();
    if let Some(Value::Object(annotations)) = applied.pointer_mut("/metadata/annotations") {
        annotations.remove(ANNOTATION);
        if annotations.is_empty()
            && let Some(Value::Object(metadata)) = applied.get_mut("metadata")
        {
            metadata.remove("annotations");
        }
    }
    let Some(Value::Object(annotations)) = new.pointer_mut("/metadata/annotations") else {
        return;
    };
    annotations.insert(
        ANNOTATION.to_owned(),
        Value::from(golang::json(&applied) + "\n"),
    );
    let size = |(name, value): (&String, &Value)| name.len() + value.as_str().map_or(0, str::len);
    if annotations.iter().map(size).sum::<usize>() > ANNOTATIONS_BYTES_MAX {
        annotations.remove(ANNOTATION);
    }
}
