//! Merging of a patch or an apply configuration into the live object.

use opkit_apimachinery::managedfields::{self, ApplyError, Manager};
use opkit_apimachinery::patch;
use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use super::patch::{Patch, PatchType};
use super::{Registry, identity};
use crate::object;
use crate::status::{ApiError, ApiResult};
use crate::target::Target;

/// The checked body of a server-side apply.
#[derive(Debug)]
pub(super) struct Configuration<'a> {
    pub(super) target: &'a Target,
    pub(super) body: Value,
    /// The field manager.
    pub(super) manager: &'a str,
    /// Whether to take over fields that other managers own.
    pub(super) force: bool,
}

impl Registry {
    /// Returns a copy of the live object with the patch applied. The patch is of any type except
    /// server-side apply.
    pub(super) fn patched(&self, target: &Target, patch: &Patch, live: &Value) -> ApiResult<Value> {
        let mut new = live.clone();
        match patch.type_ {
            PatchType::Json => {
                patch::json_patch(&mut new, &patch.body).map_err(|_| ApiError::patch_refused())?;
            }
            PatchType::Strategic => {
                let schema = self.schemas.of(&target.kind)?;
                let typed = self.schemas.typed(&schema);
                patch::strategic_merge(&mut new, &patch.body, &typed)
                    .map_err(|error| ApiError::without_reason(500, error.to_string()))?;
            }
            PatchType::Merge | PatchType::Apply => patch::merge_patch(&mut new, &patch.body),
        }
        Ok(new)
    }

    /// Merges an apply configuration into the live object. Without a live object, returns the
    /// object to create. The `managedFields` of the result are up to date.
    pub(super) fn merge(
        &self,
        config: &Configuration<'_>,
        live: Option<&Value>,
    ) -> ApiResult<Value> {
        let target = config.target;
        if let Some(live) = live {
            check_uid_unchanged(target, object::uid(&config.body), live)?;
        }
        let schema = self.schemas.of(&target.kind)?;
        let typed = self.schemas.typed(&schema);
        let manager = Manager {
            name: config.manager,
            api_version: &target.kind.api_version(),
            subresource: &target.subresource,
        };
        let time = self.clock.now_rfc3339();
        let merged =
            managedfields::apply(live, &config.body, &typed, &manager, config.force, &time);
        let merged = merged.map_err(apply_error)?;
        if let Some(live) = live {
            self.check_last_applied(&target.kind, live, &merged, config.manager)?;
        }
        Ok(merged)
    }
}

/// Checks that a patch has not changed the identity of the object, such as its name or UID.
pub(super) fn check_patched(target: &Target, live: &Value, patched: &Value) -> ApiResult<()> {
    identity::check_name(target, patched)?;
    check_uid_unchanged(target, object::uid(patched), live)?;
    let is_same = |field: &str| object::at(live, &[field]) == object::at(patched, &[field]);
    let is_of_kind = is_same("kind") && is_same("apiVersion");
    if !is_of_kind && !target.kind.is_custom() {
        return Err(ApiError::patch_refused());
    }
    Ok(())
}

/// Checks that `uid`, the UID in a patch or apply configuration, is empty or the UID of the live
/// object.
fn check_uid_unchanged(target: &Target, uid: &str, live: &Value) -> ApiResult<()> {
    if uid.is_empty() || uid == object::uid(live) {
        return Ok(());
    }
    let error = FieldError::invalid("metadata.uid", &json!(uid), "field is immutable");
    // Kubernetes validates twice, and lists the cause twice.
    let errors = [error.clone(), error];
    Err(ApiError::invalid(&target.kind, &target.name, &errors))
}

pub(super) fn apply_error(error: ApplyError) -> ApiError {
    let message = error.to_string();
    let conflicts = match error {
        ApplyError::Conflicts(conflicts) => conflicts,
        ApplyError::Schema(_) => return ApiError::without_reason(500, message),
        _ => return ApiError::bad_request(message),
    };
    let causes = conflicts
        .iter()
        .map(|conflict| {
            let message = conflict.message();
            json!({"reason": "FieldManagerConflict", "message": message, "field": conflict.field})
        })
        .collect();
    ApiError::apply_conflict(message, causes)
}
