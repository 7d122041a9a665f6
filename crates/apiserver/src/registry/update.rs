//! Update, of an object or of one of its subresources.

use std::sync::Arc;

use opkit_apimachinery::{managedfields, structural::FieldError};
use serde_json::{Value, json};

use super::{
    Registry, Target, Write, convert,
    prepare::{By, keep_system_fields},
    rules,
};
use crate::{
    kinds::Kind,
    object,
    status::{ApiError, ApiResult},
    store::{CommitError, Expected},
};

/// How often a write that names no version starts again because somebody else was faster.
const TRIES: usize = 5;

impl Registry {
    /// Replaces the object by `body`. Some kinds are created where there is nothing to replace:
    /// returns whether this one was.
    pub(crate) fn update(
        &self,
        target: &Target,
        body: Value,
        write: &mut Write,
    ) -> ApiResult<(Arc<Value>, bool)> {
        if target.subresource != "scale" {
            self.check_unknown_fields(&target.kind, &body, write)?;
        }
        let named = object::name(&body);
        if !named.is_empty() && named != target.name {
            return Err(wrong_name(target, named));
        }
        if named.is_empty() {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({} based on URL) was undeterminable: name must be provided",
                target.name
            )));
        }
        if rules::is_created_by_update(&target.kind)
            && target.subresource.is_empty()
            && self.stored(target).is_err()
        {
            return Ok((self.create_by(By::Update, target, body, write)?, true));
        }
        if target.subresource == "scale" {
            let stored = self.update_scale(target, write, |_| Ok(body.clone()))?;
            return Ok((stored, false));
        }
        if object::meta(&body, "resourceVersion").is_empty() && rules::is_custom(&target.kind) {
            return Err(ApiError::no_version(&target.kind, &target.name));
        }
        Ok((self.modify(target, write, |_| Ok(body.clone()))?, false))
    }

    /// Changes an object: `change` makes the new one from the live one, and runs again when
    /// somebody else was faster.
    pub(crate) fn modify(
        &self,
        target: &Target,
        write: &mut Write,
        change: impl Fn(&Value) -> ApiResult<Value>,
    ) -> ApiResult<Arc<Value>> {
        self.modify_by(By::Update, target, write, change)
    }

    /// [`Self::modify`]; an apply has written the new object's `managedFields` itself.
    pub(super) fn modify_by(
        &self,
        by: By,
        target: &Target,
        write: &mut Write,
        change: impl Fn(&Value) -> ApiResult<Value>,
    ) -> ApiResult<Arc<Value>> {
        for _ in 0..TRIES {
            let stored = self.stored(target)?;
            let live = convert::from_storage(&target.kind, &stored);
            let mut new = change(&live)?;
            self.check_versions(target, &live, &new)?;
            self.enter_namespace(target, &mut new)?;
            restrict(target, &live, &mut new);
            self.normalize(&target.kind, &mut new, by)?;
            if by == By::Update {
                if object::at(&new, &["metadata", "managedFields"]).is_null() {
                    let managers = object::at(&live, &["metadata", "managedFields"]).clone();
                    object::set_meta(&mut new, "managedFields", managers);
                }
                self.attribute(target, Some(&live), &mut new, write)?;
            }
            count_generation(target, &live, &mut new);
            managedfields::keep_times(&live, &mut new);
            self.check_changes(target, &live, &new)?;
            if new == live {
                return Ok(stored);
            }
            if !write.dry_run {
                self.check_size(&target.kind, &new)?;
            }
            match self.replace(target, &stored, new, write) {
                Err(CommitError::Moved) => {}
                Err(CommitError::Missing | CommitError::Exists) => return Err(target.not_found()),
                Ok(stored) => return Ok(stored),
            }
        }
        Err(ApiError::modified(&target.kind, &target.name))
    }

    fn replace(
        &self,
        target: &Target,
        stored: &Value,
        mut new: Value,
        write: &Write,
    ) -> Result<Arc<Value>, CommitError> {
        let revision = object::revision(stored);
        convert::to_storage(&target.kind, &mut new);
        if write.dry_run {
            return Ok(Arc::new(new));
        }
        if is_finished(&target.kind, &new) {
            let removed = self
                .store
                .remove(&target.storage(), &target.key(), revision)?;
            self.after_delete(&target.kind, &removed);
            // The answer keeps the version that was read; only the watch event has that of the
            // deletion.
            return Ok(Arc::new(new));
        }
        let stored = self
            .store
            .put(&target.storage(), Expected::Revision(revision), new)?;
        Ok(self.after_write(&target.kind, stored))
    }

    /// The version and the uid that the client read must be the present ones.
    fn check_versions(&self, target: &Target, live: &Value, new: &Value) -> ApiResult<()> {
        let read = object::meta(new, "resourceVersion");
        if !read.is_empty() && read.parse::<u64>().is_err() {
            let message = format!("strconv.ParseUint: parsing {read:?}: invalid syntax");
            return Err(ApiError::without_reason(500, message));
        }
        if !read.is_empty() && read != object::meta(live, "resourceVersion") {
            return Err(ApiError::modified(&target.kind, &target.name));
        }
        let (wanted, found) = (object::uid(new), object::uid(live));
        if !wanted.is_empty() && wanted != found {
            return Err(uid_mismatch(target, wanted, found));
        }
        Ok(())
    }

    fn check_changes(&self, target: &Target, live: &Value, new: &Value) -> ApiResult<()> {
        self.validate(&target.kind, new)?;
        let mut errors = rules::immutable_changes(&target.kind, live, new);
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
                // Kubernetes looks twice, and lists the cause twice.
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

/// The body names another object than the path.
pub(super) fn wrong_name(target: &Target, named: &str) -> ApiError {
    ApiError::bad_request(format!(
        "the name of the object ({named}) does not match the name on the URL ({})",
        target.name
    ))
}

fn uid_mismatch(target: &Target, wanted: &str, found: &str) -> ApiError {
    let why =
        format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}");
    ApiError::conflict(&target.kind, &target.name, &why)
}

/// Leaves of `new` only what the target may change: the main endpoint not the status, `/status`
/// nothing else, and neither what only the server writes.
fn restrict(target: &Target, live: &Value, new: &mut Value) {
    let kind = &target.kind;
    if target.subresource == "status" {
        let status = object::at(new, &["status"]).clone();
        let metadata = object::at(new, &["metadata"]).clone();
        new.clone_from(live);
        object::set(new, &["status"], status);
        // Of a custom resource, `/status` takes nothing else; of a built-in kind, also labels and
        // the like.
        if !rules::is_custom(kind) {
            object::set(new, &["metadata"], metadata);
        } else if let Some(managers) = metadata.get("managedFields").filter(|m| !m.is_null()) {
            object::set_meta(new, "managedFields", managers.clone());
        }
    } else if kind.subresource("status").is_some() && target.subresource != "binding" {
        object::set(new, &["status"], object::at(live, &["status"]).clone());
    }
    if rules::is_namespace(kind) && target.subresource != "finalize" {
        let finalizers = object::at(live, &["spec", "finalizers"]).clone();
        object::set(new, &["spec", "finalizers"], finalizers);
    }
    object::set_field(new, "apiVersion", json!(kind.api_version()));
    object::set_field(new, "kind", json!(kind.kind));
    object::set_meta(new, "name", json!(target.name));
    let version = object::at(live, &["metadata", "resourceVersion"]).clone();
    object::set_meta(new, "resourceVersion", version);
    keep_system_fields(live, new);
}

/// The generation rises with every change of what the kind is asked for.
fn count_generation(target: &Target, live: &Value, new: &mut Value) {
    let kind = &target.kind;
    // To be bound to a node is no change of what a pod is asked for.
    if !rules::has_generation(kind) || target.subresource == "binding" {
        return;
    }
    let has_status = kind.subresource("status").is_some();
    let asked = |object: &Value| {
        let mut fields = object.as_object().cloned().unwrap_or_default();
        fields.remove("metadata");
        if has_status {
            fields.remove("status");
        }
        fields
    };
    if asked(live) != asked(new) {
        let generation = object::int(live, &["metadata", "generation"]) + 1;
        object::set_meta(new, "generation", json!(generation));
    }
}

/// Whether nothing holds back an object that is being deleted.
pub(super) fn is_finished(kind: &Kind, object: &Value) -> bool {
    object::is_deleting(object)
        && object::finalizers(object).is_empty()
        && object::int(object, &["metadata", "deletionGracePeriodSeconds"]) == 0
        && (!rules::is_namespace(kind) || object::items(object, &["spec", "finalizers"]).is_empty())
}
