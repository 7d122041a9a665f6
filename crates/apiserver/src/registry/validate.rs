//! Validation of objects: unknown fields, schemas, names, immutable fields.

use opkit_apimachinery::identity::segment_flaw;
use opkit_apimachinery::names;
use opkit_apimachinery::structural::{self, FieldError, FieldErrorKind};
use serde_json::Value;

use super::{FieldValidation, Registry, Write, metadata, rbac, rules};
use crate::kinds::Kind;
use crate::status::{ApiError, ApiResult};
use crate::target::Target;
use crate::{crd, object};

impl Registry {
    /// Refuses a body with fields that `kind` does not have, or warns about these fields, as the
    /// parameter `fieldValidation` requests.
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

    /// Validates an object by its schema and by the rules of its kind.
    pub(super) fn validate(&self, kind: &Kind, object: &Value) -> ApiResult<()> {
        let schema = self.schemas.of(kind)?;
        let mut errors = check_name(kind, object);
        errors.extend(metadata::check(object));
        errors.extend(rules::bad_keys(kind, object));
        errors.extend(rules::missing_keys(kind, object));
        let mut by_schema = structural::validate(object, &self.schemas.typed(&schema));
        if rbac::is_rbac(kind) {
            // Kubernetes has its own messages for the fields that the schema requires.
            by_schema.retain(|error| error.kind == FieldErrorKind::TypeInvalid);
            errors.extend(rbac::validate(kind, object));
        }
        errors.extend(by_schema);
        errors.extend(rules::negative_replicas(kind, object));
        errors.extend(rules::bad_bounds(kind, object));
        errors.extend(rules::mismatched_selector(kind, object));
        if rules::is_crd(kind) {
            errors.extend(crd::validate(object));
        }
        // Kubernetes decodes built-in objects into Go types, so a field of the wrong type is an
        // error of decoding.
        let misshapen = errors
            .iter()
            .find(|e| e.kind == FieldErrorKind::TypeInvalid);
        if let Some(error) = misshapen.filter(|_| !kind.is_custom()) {
            return Err(ApiError::undecodable(kind, &error.to_string()));
        }
        if errors.is_empty() {
            Ok(())
        } else {
            Err(ApiError::invalid(kind, object::name(object), &errors))
        }
    }

    /// Validates an object that is to be stored in place of `live`.
    pub(super) fn validate_update(
        &self,
        target: &Target,
        live: &Value,
        new: &Value,
    ) -> ApiResult<()> {
        self.validate(&target.kind, new)?;
        let mut errors = rules::immutable_changes(&target.kind, live, new);
        errors.extend(rbac::check_change(&target.kind, live, new));
        if object::is_deleting(live) {
            let before = object::finalizers(live);
            let added: Vec<_> = object::finalizers(new)
                .into_iter()
                .filter(|f| !before.contains(f))
                .collect();
            if !added.is_empty() {
                let detail = format!(
                    "no new finalizers can be added if the object is being deleted, \
                     found new finalizers []string{{{}}}",
                    added
                        .iter()
                        .map(|f| format!("{f:?}"))
                        .collect::<Vec<_>>()
                        .join(", ")
                );
                // Kubernetes validates twice, and lists the cause twice.
                let error = FieldError::forbidden("metadata.finalizers", detail);
                errors.extend([error.clone(), error]);
            }
        }
        if errors.is_empty() {
            Ok(())
        } else {
            Err(ApiError::invalid(&target.kind, &target.name, &errors))
        }
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
        // Kubernetes counts bytes in both cases; only the messages differ.
        Err(_) if name.len() > limit && !kind.is_custom() => {
            invalid(&format!("must be no more than {limit} characters"))
        }
        Err(_) if name.len() <= limit && is_label_kind && name.contains('.') => {
            invalid("must not contain dots")
        }
        Err(detail) => invalid(&detail),
    }
}
