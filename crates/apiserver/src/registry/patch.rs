//! Patch: JSON patch, JSON merge patch, strategic merge patch and server-side apply.

use std::sync::Arc;

use opkit_apimachinery::{
    managedfields::{self, ApplyError, Manager},
    patch,
    structural::FieldError,
};
use serde_json::{Value, json};

use super::{Registry, Target, Write, prepare::By, rules, update::wrong_name};
use crate::{
    kinds::Kind,
    object,
    status::{ApiError, ApiResult},
};

/// How many operations a JSON patch may have.
const OPERATIONS_MAX: usize = 10_000;

/// How a patch is to be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PatchType {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchType {
    /// From the content type of the request.
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

/// A patch and how to read it.
#[derive(Clone, Debug)]
pub(crate) struct Patch {
    pub(crate) type_: PatchType,
    pub(crate) body: Value,
}

impl Registry {
    /// Changes the object by a patch. Server-side apply also creates it. Returns whether it did.
    pub(crate) fn patch(
        &self,
        target: &Target,
        patch: &Patch,
        write: &mut Write,
    ) -> ApiResult<(Arc<Value>, bool)> {
        if patch.type_ == PatchType::Apply {
            return self.apply(target, &patch.body, write);
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
        if patch.type_ == PatchType::Strategic && rules::is_custom(&target.kind) {
            let accepted = [
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/apply-patch+yaml",
            ];
            return Err(ApiError::unsupported_media_type(&accepted));
        }
        if target.subresource == "scale" {
            let object = self.update_scale(target, write, |scale| {
                let mut scale = scale.clone();
                match patch.type_ {
                    PatchType::Json => patch::json_patch(&mut scale, &patch.body)
                        .map_err(|_| ApiError::patch_refused())?,
                    _ => patch::merge_patch(&mut scale, &patch.body),
                }
                Ok(scale)
            })?;
            return Ok((object, false));
        }
        // What the patch adds is checked on the patched object, once.
        let live = self.get(target)?;
        let patched = self.patched(target, patch, &live)?;
        check_identity(target, &live, &patched)?;
        self.check_unknown_fields(&target.kind, &patched, write)?;
        let object = self.modify(target, write, |live| self.patched(target, patch, live))?;
        Ok((object, false))
    }

    fn patched(&self, target: &Target, patch: &Patch, live: &Value) -> ApiResult<Value> {
        let mut new = live.clone();
        match patch.type_ {
            PatchType::Json => {
                patch::json_patch(&mut new, &patch.body).map_err(|_| ApiError::patch_refused())?
            }
            PatchType::Strategic => {
                let schema = self.schemas.of(&target.kind)?;
                let typed = self.schemas.typed(&schema);
                patch::strategic_merge(&mut new, &patch.body, &typed)
                    .map_err(|_| ApiError::patch_refused())?;
            }
            PatchType::Merge | PatchType::Apply => patch::merge_patch(&mut new, &patch.body),
        }
        Ok(new)
    }

    fn apply(
        &self,
        target: &Target,
        config: &Value,
        write: &mut Write,
    ) -> ApiResult<(Arc<Value>, bool)> {
        let kind = &target.kind;
        let mut config = config.clone();
        check_type(kind, &target.subresource, &config)?;
        let named = object::name(&config);
        if !named.is_empty() && named != target.name {
            return Err(wrong_name(target, named));
        }
        object::set_meta(&mut config, "name", json!(target.name));
        // The namespace is checked, but errors name the object as it was sent.
        self.enter_namespace(target, &mut config.clone())?;
        if kind.subresource("status").is_some() && target.subresource.is_empty() {
            object::set(&mut config, &["status"], Value::Null);
        }
        if target.subresource == "status" {
            object::set(&mut config, &["spec"], Value::Null);
        }

        let schema = self.schemas.of(kind)?;
        let api_version = kind.api_version();
        let merge = |live: Option<&Value>, force: bool, manager: &str| {
            let manager = Manager {
                name: manager,
                api_version: &api_version,
                subresource: &target.subresource,
            };
            let time = self.clock.now_rfc3339();
            let typed = self.schemas.typed(&schema);
            managedfields::apply(live, &config, &typed, &manager, force, &time)
                .map_err(apply_refused)
        };
        let (force, manager) = (write.force, write.manager.clone());
        if target.subresource.is_empty() && self.stored(target).is_err() {
            if !object::uid(&config).is_empty() {
                let why = format!(
                    "uid mismatch: the provided object specified uid {}, and no existing object was found",
                    object::uid(&config)
                );
                return Err(ApiError::conflict(kind, &target.name, &why));
            }
            let new = merge(None, force, &manager)?;
            match self.create_by(By::Apply, target, new, write) {
                Ok(created) => return Ok((created, true)),
                // Somebody else was faster: apply to theirs.
                Err(error) if error.code == 409 => {}
                Err(error) => return Err(error),
            }
        }
        let change = |live: &Value| {
            let uid = object::uid(&config);
            if !uid.is_empty() && uid != object::uid(live) {
                return Err(uid_changed(target, uid));
            }
            merge(Some(live), force, &manager)
        };
        let object = self.modify_by(By::Apply, target, write, change)?;
        Ok((object, false))
    }
}

/// A patch does not make another object of the one it is sent to.
fn check_identity(target: &Target, live: &Value, patched: &Value) -> ApiResult<()> {
    let (name, uid) = (object::name(patched), object::uid(patched));
    if !name.is_empty() && name != target.name {
        return Err(wrong_name(target, name));
    }
    if !uid.is_empty() && uid != object::uid(live) {
        return Err(uid_changed(target, uid));
    }
    let is_same = |field: &str| object::at(live, &[field]) == object::at(patched, &[field]);
    let is_of_kind = is_same("kind") && is_same("apiVersion");
    if !is_of_kind && !rules::is_custom(&target.kind) {
        return Err(ApiError::patch_refused());
    }
    Ok(())
}

fn uid_changed(target: &Target, uid: &str) -> ApiError {
    let error = FieldError::invalid("metadata.uid", &json!(uid), "field is immutable");
    // Kubernetes looks twice, and lists the cause twice.
    ApiError::invalid(&target.kind, &target.name, &[error.clone(), error])
}

/// A configuration says what it is.
fn check_type(kind: &Kind, subresource: &str, config: &Value) -> ApiResult<()> {
    let (version, name) = (
        object::text(config, &["apiVersion"]),
        object::text(config, &["kind"]),
    );
    if subresource == "scale" || (version == kind.api_version() && name == kind.kind) {
        return Ok(());
    }
    let version = if version.contains('/') {
        version.to_owned()
    } else {
        format!("/{version}")
    };
    let message = format!("invalid object type: {version}, Kind={name}");
    Err(ApiError::bad_request(message))
}

fn apply_refused(error: ApplyError) -> ApiError {
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
