//! What every write goes through before it is stored: names, unknown fields, defaults, validation.

use opkit_apimachinery::{
    identity::segment_flaw,
    names,
    structural::{self, FieldError, FieldErrorKind},
};
use serde_json::Value;

use super::{FieldValidation, Registry, Target, Write, rules};
use crate::{
    kinds::{self, Kind},
    object,
    status::{ApiError, ApiResult},
};

/// How an object came to be written: after an apply, nulls that are left over are for validation to
/// refuse.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum By {
    Update,
    Apply,
}

/// Fields of `metadata` that only the server writes.
const SYSTEM_FIELDS: &[&str] = &[
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
];

impl Registry {
    /// Refuses or reports the fields that `kind` does not have, as the request asked.
    pub(super) fn check_unknown_fields(
        &self,
        kind: &Kind,
        body: &Value,
        write: &mut Write,
    ) -> ApiResult<()> {
        if write.field_validation == FieldValidation::Ignore {
            return Ok(());
        }
        let schema = self.schemas.of(kind)?;
        let unknown = structural::unknown_fields(body, &self.schemas.typed(&schema));
        if unknown.is_empty() {
            return Ok(());
        }
        let texts: Vec<_> = unknown
            .iter()
            .map(|field| format!("unknown field {field:?}"))
            .collect();
        if write.field_validation == FieldValidation::Strict {
            let error = format!("strict decoding error: {}", texts.join(", "));
            return Err(ApiError::undecodable(kind, &error));
        }
        write.warnings.extend(texts);
        Ok(())
    }

    /// Drops what the kind does not know and fills in what it defaults.
    pub(super) fn normalize(&self, kind: &Kind, object: &mut Value, by: By) -> ApiResult<()> {
        let schema = self.schemas.of(kind)?;
        let typed = self.schemas.typed(&schema);
        structural::normalize(object, &typed);
        structural::prune(object, &typed);
        if rules::is_custom(kind) {
            match by {
                By::Update => structural::apply_defaults(object, &typed),
                By::Apply => structural::fill_defaults(object, &typed),
            }
        } else {
            if rules::is_crd(kind) {
                crate::crd::apply_defaults(object);
            }
            // What holds a namespace is given to it once; `finalize` takes it away for good.
            if !(rules::is_namespace(kind) && object::is_deleting(object)) {
                kinds::defaults::apply(kind, object);
            }
        }
        Ok(())
    }

    /// Checks the whole object against the rules of its kind.
    pub(super) fn validate(&self, kind: &Kind, object: &Value) -> ApiResult<()> {
        let schema = self.schemas.of(kind)?;
        let mut errors = check_name(kind, object);
        errors.extend(super::metadata::check(object));
        errors.extend(rules::bad_keys(kind, object));
        errors.extend(rules::missing_keys(kind, object));
        errors.extend(structural::validate(object, &self.schemas.typed(&schema)));
        errors.extend(rules::negative_replicas(kind, object));
        errors.extend(rules::bad_bounds(kind, object));
        errors.extend(rules::foreign_template(kind, object));
        if rules::is_crd(kind) {
            errors.extend(crate::crd::validate(object));
        }
        // A built-in object of the wrong shape fails already when it is decoded.
        let misshapen = errors
            .iter()
            .find(|e| e.kind == FieldErrorKind::TypeInvalid);
        if let Some(error) = misshapen.filter(|_| !rules::is_custom(kind)) {
            return Err(ApiError::undecodable(kind, &error.to_string()));
        }
        if errors.is_empty() {
            Ok(())
        } else {
            Err(ApiError::invalid(kind, object::name(object), &errors))
        }
    }

    /// A namespaced object goes into the namespace of the request, which must be there.
    pub(super) fn enter_namespace(&self, target: &Target, object: &mut Value) -> ApiResult<()> {
        if !target.kind.namespaced {
            object::set_meta(object, "namespace", Value::Null);
            return Ok(());
        }
        let given = object::namespace(object);
        if !given.is_empty() && given != target.namespace {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        object::set_meta(object, "namespace", target.namespace.clone().into());
        Ok(())
    }
}

/// Puts the fields that only the server writes back to what they were.
pub(super) fn keep_system_fields(live: &Value, new: &mut Value) {
    for field in SYSTEM_FIELDS {
        object::set_meta(new, field, object::at(live, &["metadata", field]).clone());
    }
}

fn check_name(kind: &Kind, object: &Value) -> Vec<FieldError> {
    let name = object::name(object);
    if name.is_empty() {
        let detail = "name or generateName is required";
        return vec![FieldError::required("metadata.name", detail)];
    }
    let value = Value::from(name);
    let invalid = |detail: &str| vec![FieldError::invalid("metadata.name", &value, detail)];
    if kind.group == "rbac.authorization.k8s.io" {
        return segment_flaw(name).map(invalid).unwrap_or_default();
    }
    let is_label_kind = rules::is_named_as_label(kind);
    let (limit, checked) = match is_label_kind {
        true => (names::DNS_LABEL_MAX, names::check_dns_label(name)),
        false => (names::DNS_SUBDOMAIN_MAX, names::check_dns_subdomain(name)),
    };
    match checked {
        Ok(()) => Vec::new(),
        // Kubernetes counts bytes; only its messages differ.
        Err(_) if name.len() > limit && !rules::is_custom(kind) => {
            invalid(&format!("must be no more than {limit} characters"))
        }
        Err(_) if name.len() <= limit && is_label_kind && name.contains('.') => {
            invalid("must not contain dots")
        }
        Err(detail) => invalid(&detail),
    }
}
