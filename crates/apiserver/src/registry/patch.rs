//! Patch: JSON patch, JSON merge patch, strategic merge patch and server-side apply.

use opkit_apimachinery::patch;
use opkit_apimachinery::structural::FieldError;
use serde_json::Value;

use super::scale::ScaleChange;
use super::{Registry, Write};
use crate::status::{ApiError, ApiResult};
use crate::store::Committed;
use crate::target::Target;

/// Maximum number of operations in a JSON patch, as in Kubernetes.
const OPERATIONS_MAX: usize = 10_000;

/// The format of a patch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PatchType {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchType {
    /// Returns the format that a content type names.
    pub(crate) fn parse(content_type: &str) -> Option<Self> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/json-patch+json" => Some(Self::Json),
            "application/merge-patch+json" => Some(Self::Merge),
            "application/strategic-merge-patch+json" => Some(Self::Strategic),
            "application/apply-patch+yaml" => Some(Self::Apply),
            _ => None,
        }
    }
}

/// A patch and its format.
#[derive(Clone, Debug)]
pub(crate) struct Patch {
    pub(crate) type_: PatchType,
    pub(crate) body: Value,
}

impl Registry {
    /// Patches the object, and returns the stored object and whether the object was created. Only
    /// server-side apply creates an object that does not exist.
    pub(crate) async fn patch(
        &self,
        target: &Target,
        patch: &Patch,
        write: &mut Write,
    ) -> ApiResult<(Committed, bool)> {
        if patch.type_ == PatchType::Apply {
            return self.apply(target, &patch.body, write).await;
        }
        if write.force {
            let error = FieldError::forbidden("force", "may not be specified for non-apply patch");
            return Err(ApiError::invalid_options("PatchOptions", &[error]));
        }
        let operations = patch.body.as_array().map_or(0, Vec::len);
        if patch.type_ == PatchType::Json && operations > OPERATIONS_MAX {
            return Err(ApiError::too_large(format!(
                "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {operations}"
            )));
        }
        if patch.type_ == PatchType::Strategic && target.kind.is_custom() {
            let accepted = [
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/apply-patch+yaml",
            ];
            return Err(ApiError::unsupported_media_type(&accepted));
        }
        if target.subresource == "scale" {
            let change = |scale: &Value| {
                let mut scale = scale.clone();
                match patch.type_ {
                    PatchType::Json => patch::json_patch(&mut scale, &patch.body)
                        .map_err(|_| ApiError::patch_refused())?,
                    _ => patch::merge_patch(&mut scale, &patch.body),
                }
                self.check_patched_scale(patch, &scale)?;
                Ok(scale)
            };
            let object = self
                .update_scale(target, write, &ScaleChange::Update(&change))
                .await?;
            return Ok((object, false));
        }
        // Unknown fields are reported for the patched object, and only once: the change below may
        // run several times.
        let live = self.get(target).await?;
        let patched = self.patched(target, patch, &live)?;
        self.check_patched(target, patch, &live, &patched, write)?;
        let object = self
            .modify(target, write, |live| self.patched(target, patch, live))
            .await?;
        Ok((object, false))
    }
}
