//! The errors of a patch whose result is not an object of its kind.

use opkit_apimachinery::schema::Definitions;
use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use super::patch::{Patch, PatchType};
use super::{FieldValidation, Registry, Write, decoding, merge};
use crate::status::{ApiError, ApiResult};
use crate::target::Target;
use crate::{gotext, object};

impl Registry {
    /// Checks the result of a patch: its type, the types of its fields, its identity, and unknown
    /// fields.
    pub(super) fn check_patched(
        &self,
        target: &Target,
        patch: &Patch,
        live: &Value,
        patched: &Value,
        write: &mut Write,
    ) -> ApiResult<()> {
        let kind = &target.kind;
        if !kind.is_custom() {
            if let Some(error) = self.foreign_error(live, patched) {
                return Err(refuse(patch, patched, &error));
            }
            let schema = self.schemas.of(kind)?;
            let error = decoding::error(patched, &self.schemas.typed(&schema), &kind.kind);
            if let Some(error) = error {
                return Err(refuse(patch, patched, &error));
            }
        }
        merge::check_patched(target, live, patched)?;
        let strict = self.strict_errors(kind, patched, write)?;
        match strict.filter(|_| write.field_validation == FieldValidation::Strict) {
            None => Ok(()),
            Some(error) if kind.is_custom() => Err(ApiError::undecodable(kind, &error)),
            Some(error) => Err(refuse(patch, patched, &error)),
        }
    }

    /// Returns the error for a patched object of another type.
    fn foreign_error(&self, live: &Value, patched: &Value) -> Option<String> {
        let type_ = |object: &Value| {
            let text = |field: &str| object::text(object, &[field]).to_owned();
            (text("apiVersion"), text("kind"))
        };
        let (version, name) = type_(patched);
        if type_(live) == (version.clone(), name.clone()) {
            return None;
        }
        let known = self
            .catalog
            .find(|kind| !kind.is_custom() && kind.api_version() == version && kind.kind == name);
        match known {
            None => Some(format!(
                "no kind {name:?} is registered for version {version:?} in scheme \
                 \"pkg/runtime/scheme.go:111\""
            )),
            Some(kind) => {
                let schema = self.schemas.of(&kind).ok()?;
                decoding::error(patched, &self.schemas.typed(&schema), &kind.kind)
            }
        }
    }

    /// Returns the error of Go's decoder for the options of a delete.
    pub(crate) fn delete_options_error(&self, options: &Value) -> Option<String> {
        let name = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
        let schema = self.schemas.definition(name)?;
        decoding::error(options, &self.schemas.typed(&schema), "DeleteOptions")
    }

    /// Refuses a patch whose result is not a Scale.
    pub(super) fn check_patched_scale(&self, patch: &Patch, scale: &Value) -> ApiResult<()> {
        let schema = self.schemas.definition("io.k8s.api.autoscaling.v1.Scale");
        let error =
            schema.and_then(|schema| decoding::error(scale, &self.schemas.typed(&schema), "Scale"));
        match error {
            None => Ok(()),
            Some(error) => Err(refuse(patch, scale, &error)),
        }
    }
}

/// Returns the error for a patch with this result. As in Kubernetes, the error quotes a strategic
/// merge patch, and the result of any other patch.
fn refuse(patch: &Patch, patched: &Value, error: &str) -> ApiError {
    let (quoted, error) = match patch.type_ {
        PatchType::Strategic => (gotext::plain(&patch.body), conversion_error(error)),
        _ => (printed(patched), error.to_owned()),
    };
    ApiError::invalid_patch(FieldError::invalid("patch", &json!(quoted), error))
}

/// Returns the error of the conversion to Go types that Kubernetes uses instead of its decoder
/// after a strategic merge patch.
fn conversion_error(error: &str) -> String {
    match error.rsplit_once(" of type ") {
        Some((_, type_ @ ("int32" | "int64" | "bool"))) => format!("unrecognized type: {type_}"),
        _ => error.to_owned(),
    }
}

/// Prints an object with its top-level fields in alphabetical order, and the fields of its metadata
/// in the order of Go.
fn printed(object: &Value) -> String {
    let fields = object.as_object().into_iter().flatten();
    let texts: Vec<String> = fields
        .map(|(name, value)| match name.as_str() {
            "metadata" => format!("\"metadata\":{}", gotext::metadata(value)),
            name => format!("{name:?}:{value}"),
        })
        .collect();
    format!("{{{}}}", texts.join(","))
}
