//! Validation of CRDs, with the rules, the messages and the order of Kubernetes.
//!
//! Kubernetes validates its internal type, in which fields that are the same in all versions are
//! fields of the spec (see [`internal`]). An update does not have to correct errors that the stored
//! CRD already has (see [`options`]).

mod conversion;
mod defaults;
mod internal;
mod names;
mod openapi;
mod options;
mod props;
mod schema;
mod selectable;
mod spec;
mod structural;
#[cfg(test)]
mod tests;

use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use super::approval::{self, Approval};
use crate::object;
use options::Options;

pub(crate) use conversion::is_valid_ca_bundle;
pub(crate) use schema::unrecognized_formats;

/// Returns the error if the name of a CRD is not that of its resource.
pub(crate) fn name_error(crd: &Value) -> Option<FieldError> {
    let group = object::text(crd, &["spec", "group"]);
    let plural = object::text(crd, &["spec", "names", "plural"]);
    let name = object::name(crd);
    (name != format!("{plural}.{group}")).then(|| {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        FieldError::invalid("metadata.name", &json!(name), detail)
    })
}

/// Returns the errors of a new CRD, except those of its metadata.
pub(crate) fn validate(crd: &Value) -> Vec<FieldError> {
    let mut errors = spec::validate(crd, &Options::for_create());
    errors.extend(validate_status(crd));
    errors.extend(stored_version_errors(crd));
    errors.extend(approval_error(crd, None));
    errors.extend(preserve_unknown_fields_error(crd, None));
    errors
}

/// Returns the errors of a CRD that is to replace `old`, except those of its metadata.
pub(crate) fn validate_update(old: &Value, crd: &Value) -> Vec<FieldError> {
    let options = Options::for_update(old, crd);
    let mut errors = spec::validate(crd, &options);
    let mut immutable = |path: &[&str]| {
        let (new, old) = (object::at(crd, path), object::at(old, path));
        if new != old {
            let field = path.join(".");
            errors.push(FieldError::invalid(field, new, "field is immutable"));
        }
    };
    if options.requires_immutable_names {
        immutable(&["spec", "scope"]);
        immutable(&["spec", "names", "kind"]);
    }
    immutable(&["spec", "group"]);
    immutable(&["spec", "names", "plural"]);
    errors.extend(validate_status(crd));
    errors.extend(stored_version_errors(crd));
    errors.extend(approval_error(crd, Some(old)));
    errors.extend(preserve_unknown_fields_error(crd, Some(old)));
    errors
}

/// Returns the errors of the status of a CRD.
pub(crate) fn validate_status(crd: &Value) -> Vec<FieldError> {
    let accepted = object::at(crd, &["status", "acceptedNames"]);
    names::validate(accepted, "status.acceptedNames")
}

/// Checks that each stored version is a version of the CRD, and that the storage version is among
/// the stored versions.
fn stored_version_errors(crd: &Value) -> Vec<FieldError> {
    let field = "status.storedVersions";
    let stored = object::items(crd, &["status", "storedVersions"]);
    if stored.is_empty() {
        let detail = "must have at least one stored version";
        return vec![FieldError::invalid(field, &Value::Null, detail)];
    }
    let versions = object::items(crd, &["spec", "versions"]);
    let mut errors = Vec::new();
    for version in versions {
        let name = object::at(version, &["name"]);
        if object::at(version, &["storage"]) == &json!(true) && !stored.contains(name) {
            let name = name.as_str().unwrap_or_default();
            let detail = format!("must have the storage version {name}");
            errors.push(FieldError::invalid(field, &json!(stored), detail));
        }
    }
    for (index, name) in stored.iter().enumerate() {
        let is_version = |version: &Value| object::at(version, &["name"]) == name;
        if versions.iter().any(is_version) {
            continue;
        }
        let version = name.as_str().unwrap_or_default();
        let detail = format!(
            "missing from spec.versions; {version} was previously a storage version, and must \
             remain in spec.versions until a storage migration ensures no data remains persisted \
             in {version} and removes {version} from status.storedVersions"
        );
        errors.push(FieldError::invalid(
            format!("{field}[{index}]"),
            name,
            detail,
        ));
    }
    errors
}

/// Returns the error for a CRD of a group of Kubernetes without a valid approval. The approval of
/// an update that does not change its state is not checked.
fn approval_error(crd: &Value, old: Option<&Value>) -> Option<FieldError> {
    let (state, reason) = approval::of(crd)?;
    if old.is_some_and(|old| approval::state(old) == state) {
        return None;
    }
    let field = format!("metadata.annotations[{}]", approval::ANNOTATION);
    match state {
        Approval::Missing => Some(FieldError::required(field, reason)),
        Approval::Invalid => {
            let value = json!(approval::annotation(crd));
            Some(FieldError::invalid(field, &value, reason))
        }
        Approval::Approved | Approval::Bypassed => None,
    }
}

fn preserve_unknown_fields_error(crd: &Value, old: Option<&Value>) -> Option<FieldError> {
    let preserves =
        |crd: &Value| object::at(crd, &["spec", "preserveUnknownFields"]) == &json!(true);
    if old.is_some_and(preserves) || !preserves(crd) {
        return None;
    }
    let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                  spec.versions[*].schema instead";
    Some(FieldError::invalid(
        "spec.preserveUnknownFields",
        &json!(true),
        detail,
    ))
}
