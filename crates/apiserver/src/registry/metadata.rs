//! Validation of the metadata of any object: labels, annotations, owners, finalizers.

use opkit_apimachinery::selector;
use opkit_apimachinery::structural::FieldError;
use serde_json::Value;

use super::{FOREGROUND, ORPHAN};
use crate::{gotext, object};

/// Finalizers of Kubernetes, which are valid although their names have no domain.
const STANDARD: &[&str] = &[FOREGROUND, ORPHAN, "kubernetes"];

const UNQUALIFIED: &str = "name is neither a standard finalizer name nor is it fully qualified";

/// Maximum total length of the annotations of an object in bytes, as in Kubernetes.
const ANNOTATIONS_MAX: usize = 256 * 1024;

/// Returns the errors in the metadata of `object`. Finalizers without a domain are errors in the
/// kinds of Kubernetes itself, for which `needs_domains` is set.
pub(super) fn check(object: &Value, needs_domains: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in object::labels(object).into_iter().flatten() {
        let invalid = |value: &str, detail: String| {
            FieldError::invalid("metadata.labels", &Value::from(value), detail)
        };
        let key_rules = selector::label_key_errors(key).into_iter();
        errors.extend(key_rules.map(|detail| invalid(key, detail)));
        let value = value.as_str().unwrap_or_default();
        let value_rules = selector::label_value_errors(value).into_iter();
        errors.extend(value_rules.map(|detail| invalid(value, detail)));
    }
    let annotations = object::at(object, &["metadata", "annotations"]).as_object();
    let size = |(key, value): (&String, &Value)| key.len() + value.as_str().map_or(0, str::len);
    if annotations.into_iter().flatten().map(size).sum::<usize>() > ANNOTATIONS_MAX {
        let max = u64::try_from(ANNOTATIONS_MAX).unwrap_or(u64::MAX);
        errors.push(FieldError::too_long("metadata.annotations", max));
    }
    for key in annotations.into_iter().flatten().map(|(key, _)| key) {
        // Keys of annotations may have upper case letters.
        let wrong = selector::label_key_errors(&key.to_lowercase()).into_iter();
        errors.extend(wrong.map(|detail| {
            FieldError::invalid("metadata.annotations", &Value::from(key.as_str()), detail)
        }));
    }
    let generation = object::at(object, &["metadata", "generation"]);
    if generation.as_i64().is_some_and(|generation| generation < 0) {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(
            "metadata.generation",
            generation,
            detail,
        ));
    }
    errors.extend(owners(object));
    errors.extend(finalizers(object, needs_domains));
    errors
}

/// Removes owner references that are in the list twice, and returns the warning about them.
pub(super) fn dedup_owners(object: &mut Value) -> Option<String> {
    let owners = object::items(object, &["metadata", "ownerReferences"]);
    let (mut kept, mut uids): (Vec<Value>, Vec<&str>) = (Vec::new(), Vec::new());
    for owner in owners {
        match kept.contains(owner) {
            true => uids.push(object::text(owner, &["uid"])),
            false => kept.push(owner.clone()),
        }
    }
    if uids.is_empty() {
        return None;
    }
    let warning = format!(
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references \
         in 1.20+, and may reject such requests as early as 1.24; please fix your requests; \
         duplicate UID(s) observed: {}",
        uids.join(", ")
    );
    object::set_meta(object, "ownerReferences", Value::from(kept));
    Some(warning)
}

fn owners(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let owners = object::items(object, &["metadata", "ownerReferences"]);
    for owner in owners {
        let rules = [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ];
        for (field, detail) in rules {
            if object::text(owner, &[field]).is_empty() {
                let at = format!("metadata.ownerReferences.{field}");
                errors.push(FieldError::invalid(at, &Value::from(""), detail));
            }
        }
        let (version, kind) = (
            object::text(owner, &["apiVersion"]),
            object::text(owner, &["kind"]),
        );
        if (version, kind) == ("v1", "Event") {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(FieldError::invalid(
                "metadata.ownerReferences",
                owner,
                detail,
            ));
        }
    }
    let is_controller = |owner: &&Value| object::at(owner, &["controller"]) == &Value::Bool(true);
    let mut controllers = owners.iter().filter(is_controller);
    if let (Some(one), Some(two)) = (controllers.next(), controllers.next()) {
        let called = |owner: &Value| {
            let (kind, name) = (
                object::text(owner, &["kind"]),
                object::text(owner, &["name"]),
            );
            format!("{kind}/{name}")
        };
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for \
             {} and {}",
            called(one),
            called(two)
        );
        let mut error = FieldError::invalid("metadata.ownerReferences", &Value::Null, "");
        let printed = gotext::owner_references(owners);
        error.detail = format!("Invalid value: {printed}: {detail}");
        errors.push(error);
    }
    errors
}

/// Returns the errors in the finalizers of a namespace's spec, which is the list `field`.
pub(super) fn finalizer_errors(field: &str, finalizers: &[Value]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, value) in finalizers.iter().enumerate() {
        let name = value.as_str().unwrap_or_default();
        let at = format!("{field}[{index}]");
        let wrong = selector::label_key_errors(name).into_iter();
        errors.extend(wrong.map(|detail| FieldError::invalid(at.as_str(), value, detail)));
        if !name.contains('/') && !STANDARD.contains(&name) {
            errors.push(FieldError::invalid(at, value, UNQUALIFIED));
        }
    }
    errors
}

fn finalizers(object: &Value, needs_domains: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let finalizers = object::finalizers(object);
    for finalizer in &finalizers {
        let wrong = selector::label_key_errors(finalizer).into_iter();
        errors.extend(wrong.map(|detail| {
            FieldError::invalid("metadata.finalizers", &Value::from(*finalizer), detail)
        }));
    }
    for (index, finalizer) in finalizers.iter().enumerate() {
        if needs_domains && !finalizer.contains('/') && !STANDARD.contains(finalizer) {
            let at = format!("metadata.finalizers[{index}]");
            let value = Value::from(*finalizer);
            errors.push(FieldError::invalid(at, &value, UNQUALIFIED));
        }
    }
    if finalizers.contains(&ORPHAN) && finalizers.contains(&FOREGROUND) {
        let all = object::at(object, &["metadata", "finalizers"]);
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid("metadata.finalizers", all, detail));
    }
    errors
}

/// Returns warnings about the finalizers of a custom resource that have no domain, and that the
/// object before the update does not have.
pub(super) fn finalizer_warnings(object: &Value, before: Option<&Value>) -> Vec<String> {
    let known = before.map(object::finalizers).unwrap_or_default();
    let mut added = object::finalizers(object);
    added.retain(|finalizer| !known.contains(finalizer));
    added.sort_unstable();
    added.dedup();
    let mut warnings = Vec::new();
    for finalizer in added {
        let mut warn = |detail: &str| {
            warnings.push(format!("metadata.finalizers: {finalizer:?}: {detail}"));
        };
        for detail in selector::label_key_errors(finalizer) {
            warn(&detail);
        }
        if finalizer.contains('/') || STANDARD.contains(&finalizer) {
            continue;
        }
        warn(match finalizer.contains('.') {
            true => {
                "prefer a domain-qualified finalizer name including a path (/) to avoid accidental \
                 conflicts with other finalizer writers"
            }
            false => {
                "prefer a domain-qualified finalizer name to avoid accidental conflicts with other \
                 finalizer writers"
            }
        });
    }
    warnings
}

/// Fields of `metadata` that no update can change.
const IMMUTABLE: [&str; 6] = [
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// Returns an error for each field of `metadata` that differs between `live` and `new` although no
/// update can change it.
pub(super) fn immutable_errors(live: &Value, new: &Value) -> Vec<FieldError> {
    let differs = |field: &&str| {
        let path = ["metadata", *field];
        object::at(live, &path) != object::at(new, &path)
    };
    let error = |field: &str| {
        let value = object::at(new, &["metadata", field]);
        FieldError::invalid(format!("metadata.{field}"), value, "field is immutable")
    };
    IMMUTABLE.into_iter().filter(differs).map(error).collect()
}
