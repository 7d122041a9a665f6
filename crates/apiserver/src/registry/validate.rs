//! Validation of objects: unknown fields, schemas, names, immutable fields.

use std::net::IpAddr;

use opkit_apimachinery::identity::segment_flaw;
use opkit_apimachinery::names;
use opkit_apimachinery::schema::Definitions;
use opkit_apimachinery::structural::{self, FieldError, FieldErrorKind};
use opkit_cel::{Budget, RUNTIME_COST_BUDGET};
use serde_json::Value;

use super::{
    FieldValidation, Registry, Write, api_services, budgets, certificates, decoding, metadata,
    pods, rbac, rules, scale_paths, services, validation, workloads,
};
use crate::kinds::Kind;
use crate::status::{ApiError, ApiResult};
use crate::target::Target;
use crate::{crd, object};

/// The definition of the metadata of every object.
const METADATA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

impl Registry {
    /// Refuses a body with fields that `kind` does not have or that occur twice, or warns about
    /// these fields, as the parameter `fieldValidation` requests.
    pub(super) fn check_unknown_fields(
        &self,
        kind: &Kind,
        body: &Value,
        write: &mut Write,
    ) -> ApiResult<()> {
        self.check_types(kind, body)?;
        match self.strict_errors(kind, body, write)? {
            None => Ok(()),
            Some(error) => Err(ApiError::undecodable(kind, &error)),
        }
    }

    /// Returns the error about unknown and duplicate fields if `fieldValidation` is `Strict`. Adds
    /// warnings about them if it is `Warn`.
    pub(super) fn strict_errors(
        &self,
        kind: &Kind,
        body: &Value,
        write: &mut Write,
    ) -> ApiResult<Option<String>> {
        if write.field_validation == FieldValidation::Ignore {
            return Ok(None);
        }
        let schema = self.schemas.of(kind)?;
        let mut unknown = structural::unknown_fields(body, &self.schemas.typed(&schema));
        if kind.is_custom() {
            // The metadata of a custom resource is decoded first.
            unknown.sort_by_key(|field| !field.starts_with("metadata."));
        }
        let duplicates = write.duplicate_fields.iter();
        let mut texts: Vec<String> = duplicates
            .map(|field| format!("duplicate field {field:?}"))
            .collect();
        texts.extend(
            unknown
                .iter()
                .map(|field| format!("unknown field {field:?}")),
        );
        if texts.is_empty() {
            return Ok(None);
        }
        if write.field_validation == FieldValidation::Strict {
            let error = format!("strict decoding error: {}", texts.join(", "));
            return Ok(Some(error));
        }
        write.warnings.extend(texts);
        Ok(None)
    }

    /// Refuses a body that Go's decoder cannot decode. Of a custom resource, only the metadata has
    /// a Go type.
    fn check_types(&self, kind: &Kind, body: &Value) -> ApiResult<()> {
        let error = match kind.is_custom() {
            true => self.schemas.definition(METADATA).and_then(|schema| {
                let metadata = object::at(body, &["metadata"]);
                decoding::error(metadata, &self.schemas.typed(&schema), "ObjectMeta")
            }),
            false => {
                let schema = self.schemas.of(kind)?;
                decoding::error(body, &self.schemas.typed(&schema), &kind.kind)
            }
        };
        match error {
            None => Ok(()),
            Some(error) => Err(ApiError::undecodable(kind, &error)),
        }
    }

    /// Validates a new object by its schema and by the rules of its kind. Returns warnings for the
    /// client.
    pub(super) fn validate(&self, kind: &Kind, object: &Value) -> ApiResult<Vec<String>> {
        let mut errors = self.schema_errors(kind, object, None)?;
        self.rule_errors(kind, object, None, &mut errors);
        if rules::is_crd(kind) {
            // The error comes after those of the name.
            let is_name = |error: &&FieldError| error.field == "metadata.name";
            let at = errors.iter().take_while(is_name).count();
            errors.splice(at..at, crd::name_error(object));
            errors.extend(crd::validate(object));
        }
        if services::is_service(kind) {
            errors.extend(services::validate(object, None));
        }
        if pods::is_pod(kind) {
            errors.extend(pods::creation_errors(object));
        }
        refuse(kind, object::name(object), &errors)?;
        Ok(warnings_about(kind, object, None))
    }

    /// Returns the errors in an object by its schema and by the rules that hold for its kind
    /// whether it is created or updated. `before` is the stored object and the subresource of an
    /// update: values of a custom resource that the update does not change are not checked.
    fn schema_errors(
        &self,
        kind: &Kind,
        object: &Value,
        before: Option<(&Value, &str)>,
    ) -> ApiResult<Vec<FieldError>> {
        let mut errors = check_name(kind, object);
        let is_own =
            !kind.is_custom() && !rules::is_crd(kind) && !api_services::is_api_service(kind);
        errors.extend(metadata::check(object, is_own));
        let live = before.map(|(live, _)| live);
        if let Some(own) = validation::errors(kind, object, live) {
            self.check_types(kind, object)?;
            errors.extend(own);
            return Ok(errors);
        }
        let schema = self.schemas.of(kind)?;
        let typed = self.schemas.typed(&schema);
        let mut by_schema = match before.filter(|_| kind.is_custom()) {
            Some((live, "status")) => structural::validate_update(object, live, &typed, "status"),
            Some((live, _)) => structural::validate_update(object, live, &typed, ""),
            None => structural::validate(object, &typed),
        };
        let has_own_rules = rbac::is_rbac(kind)
            || services::is_service(kind)
            || api_services::is_api_service(kind)
            || rules::is_crd(kind);
        if has_own_rules {
            // Kubernetes has its own messages for the fields that the schema requires.
            by_schema.retain(|error| error.kind == FieldErrorKind::TypeInvalid);
        }
        if rbac::is_rbac(kind) {
            errors.extend(rbac::validate(kind, object));
        }
        errors.extend(by_schema);
        let is_status = before.is_some_and(|(_, subresource)| subresource == "status");
        errors.extend(scale_paths::errors(kind, object, is_status));
        errors.extend(budgets::errors(kind, object));
        errors.extend(api_services::errors(kind, object));
        // Kubernetes decodes built-in objects into Go types, so a field of the wrong type is an
        // error of decoding.
        let misshapen = errors
            .iter()
            .find(|e| e.kind == FieldErrorKind::TypeInvalid);
        if let Some(error) = misshapen.filter(|_| !kind.is_custom()) {
            self.check_types(kind, object)?;
            return Err(ApiError::undecodable(kind, &error.to_string()));
        }
        Ok(errors)
    }

    /// Evaluates the CEL rules of a custom kind and adds their errors to `errors`, unless `errors`
    /// has errors after which Kubernetes does not evaluate rules. Returns warnings about values
    /// that violate a rule, but that the update of `live` does not change.
    fn rule_errors(
        &self,
        kind: &Kind,
        new: &Value,
        live: Option<&Value>,
        errors: &mut Vec<FieldError>,
    ) -> Vec<String> {
        let Some(rules) = self.schemas.rules(kind) else {
            return Vec::new();
        };
        let is_blocking = |error: &FieldError| {
            matches!(
                error.kind,
                FieldErrorKind::NotSupported
                    | FieldErrorKind::Required
                    | FieldErrorKind::TooLong
                    | FieldErrorKind::TooMany
                    | FieldErrorKind::TypeInvalid
            )
        };
        if errors.iter().any(is_blocking) {
            let detail = "some validation rules were not checked because the object was invalid; \
                          correct the existing errors to complete validation";
            errors.push(FieldError::invalid("<nil>", &Value::Null, detail));
            return Vec::new();
        }
        let mut budget = Budget::new(RUNTIME_COST_BUDGET);
        let outcome = rules.validate(new, live, &mut budget);
        errors.extend(outcome.errors);
        outcome.warnings.iter().map(ToString::to_string).collect()
    }

    /// Validates an object that is to be stored in place of `live`. Returns warnings for the
    /// client.
    pub(super) fn validate_update(
        &self,
        target: &Target,
        live: &Value,
        new: &Value,
    ) -> ApiResult<Vec<String>> {
        let kind = &target.kind;
        let before = Some((live, target.subresource.as_str()));
        let mut errors = self.schema_errors(kind, new, before)?;
        let mut warnings = self.rule_errors(kind, new, Some(live), &mut errors);
        if rules::is_crd(kind) {
            errors.extend(match target.subresource.as_str() {
                "status" => crd::validate_status(new),
                _ => crd::validate_update(live, new),
            });
        }
        if services::is_service(kind) {
            errors.extend(match target.subresource.as_str() {
                "status" => services::validate_status(new),
                _ => services::validate_update(live, new),
            });
        }
        if target.subresource == "status" {
            errors.extend(workloads::status_errors(kind, new));
            errors.extend(api_services::status_errors(kind, new));
        }
        if pods::is_pod(kind) {
            errors.extend(match target.subresource.as_str() {
                "" => pods::validate_update(live, new),
                "ephemeralcontainers" => pods::ephemeral_container_errors(live, new),
                "resize" => pods::resize_errors(live, new),
                _ => Vec::new(),
            });
        }
        if rules::is_namespace(kind) && target.subresource == "finalize" {
            let finalizers = object::items(new, &["spec", "finalizers"]);
            errors.extend(metadata::finalizer_errors("spec.finalizers", finalizers));
        }
        if certificates::is_signing_request(kind) {
            let subresource = &target.subresource;
            errors.extend(certificates::validate_update(subresource, live, new));
        }
        if target.subresource.is_empty() {
            errors.extend(validation::update_errors(kind, live, new));
        }
        if errors.is_empty() {
            errors.extend(rules::immutable_changes(kind, live, new));
            errors.extend(rbac::check_change(kind, live, new));
        }
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
        match refuse(kind, &target.name, &errors) {
            Ok(()) => {
                if target.subresource.is_empty() {
                    warnings.extend(warnings_about(kind, new, Some(live)));
                }
                Ok(warnings)
            }
            Err(mut error) => {
                error.warnings = warnings;
                Err(error)
            }
        }
    }
}

/// Returns warnings about the finalizers of a custom resource, or about the formats in the schemas
/// of a CRD that Kubernetes does not check. The object before an update has no warnings.
fn warnings_about(kind: &Kind, object: &Value, before: Option<&Value>) -> Vec<String> {
    if kind.is_custom() {
        return metadata::finalizer_warnings(object, before);
    }
    if !rules::is_crd(kind) {
        return Vec::new();
    }
    let known = before.map(crd::unrecognized_formats).unwrap_or_default();
    let formats = crd::unrecognized_formats(object).into_iter();
    formats
        .filter(|format| !known.contains(format))
        .map(|format| format!("unrecognized format {format:?}"))
        .collect()
}

/// Returns the error for an object with these errors, if there are any.
fn refuse(kind: &Kind, name: &str, errors: &[FieldError]) -> ApiResult<()> {
    match errors {
        [] => Ok(()),
        errors => Err(ApiError::invalid(kind, name, errors)),
    }
}

/// Returns the errors in the name of an object, and in the prefix of a generated name.
fn check_name(kind: &Kind, object: &Value) -> Vec<FieldError> {
    let name = object::name(object);
    let prefix = object::meta(object, "generateName");
    let mut errors = Vec::new();
    if !prefix.is_empty() {
        // A prefix may end with a dash, because characters are added to it.
        let mut text = prefix.to_owned();
        if text.ends_with('-') {
            text.push('a');
        }
        let found = name_errors(kind, object, &text);
        let value = Value::from(prefix);
        errors.extend(found.into_iter().map(|mut error| {
            let (shown, printed) = (Value::from(text.as_str()).to_string(), value.to_string());
            error.field = "metadata.generateName".to_owned();
            error.detail = error.detail.replacen(&shown, &printed, 1);
            error
        }));
    }
    if name.is_empty() {
        let detail = "name or generateName is required";
        errors.push(FieldError::required("metadata.name", detail));
        return errors;
    }
    errors.extend(name_errors(kind, object, name));
    errors
}

fn name_errors(kind: &Kind, object: &Value, name: &str) -> Vec<FieldError> {
    let value = Value::from(name);
    let invalid = |detail: &str| vec![FieldError::invalid("metadata.name", &value, detail)];
    if kind.group == "rbac.authorization.k8s.io" {
        return segment_flaw(name).map(invalid).unwrap_or_default();
    }
    if api_services::is_api_service(kind) {
        let flaw = api_services::name_flaw(object);
        return flaw.map(|flaw| invalid(&flaw)).unwrap_or_default();
    }
    if kind.group == "networking.k8s.io" && kind.plural == "ipaddresses" {
        let canonical = name.parse::<IpAddr>().map(|address| address.to_string());
        return match canonical {
            Err(_) => invalid("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
            Ok(text) if text != name => invalid(&format!("must be in canonical form ({text:?})")),
            Ok(_) => Vec::new(),
        };
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
