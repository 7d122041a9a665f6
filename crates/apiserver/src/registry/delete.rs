//! Deletion: preconditions, finalizers, grace period, propagation.

use std::sync::Arc;

use jiff::SignedDuration;
use opkit_apimachinery::structural::FieldError;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::modify::is_finished;
use super::{Registry, Write, rules};
use crate::admission::{self, Attributes, Operation};
use crate::kinds::Kind;
use crate::status::{ApiError, ApiResult};
use crate::store::{CommitError, Expected, Stored};
use crate::target::Target;
use crate::{clock, crd, object};

/// Finalizer of an object that waits until its blocking dependents are deleted.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// Finalizer of an object that waits until its dependents no longer have an owner reference to the
/// object.
pub(crate) const ORPHAN: &str = "orphan";
/// Finalizer of a CRD that waits until its objects are deleted.
pub(crate) const CRD_CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The body of a delete request.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DeleteOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) grace_period_seconds: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) preconditions: Option<Preconditions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) propagation_policy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) orphan_dependents: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dry_run: Option<Vec<String>>,
}

impl DeleteOptions {
    /// Returns the options that are set as a JSON object.
    pub(crate) fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// The UID and the resource version that an object must have to be deleted.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Preconditions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) uid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resource_version: Option<String>,
}

/// The result of a delete request.
#[derive(Clone, Debug)]
pub(crate) enum Deleted {
    /// The object has been removed.
    Gone(Value),
    /// The object waits for a finalizer or for the end of its grace period.
    Pending(Value),
}

impl Registry {
    /// Deletes one object. An object with finalizers or a grace period is only marked as being
    /// deleted.
    pub(crate) async fn delete(
        &self,
        target: &Target,
        options: &DeleteOptions,
        write: &Write,
    ) -> ApiResult<Deleted> {
        // Kubernetes checks the options before it looks for the object.
        set_propagation(options, &mut json!({}))?;
        loop {
            let stored = self.stored(target)?;
            let live = stored.decode();
            self.check_preconditions(target, options, &live)?;
            let mut new = live.clone();
            self.mark_deleted(target, options, &mut new)?;
            if new != live || is_finished(&target.kind, &new) {
                self.admit_delete(target, &live, write).await?;
            }
            let outcome = if is_finished(&target.kind, &new) {
                if write.dry_run {
                    return Ok(Deleted::Gone(live));
                }
                let removed =
                    self.store
                        .remove(&target.storage(), &target.key(), stored.revision());
                match removed {
                    Err(error) => Err(error),
                    Ok(removed) => {
                        self.after_delete(&target.kind, &live).await;
                        let mut last = live;
                        let version = json!(removed.revision().to_string());
                        object::set_meta(&mut last, "resourceVersion", version);
                        Ok(Deleted::Gone(last))
                    }
                }
            } else if write.dry_run || new == live {
                return Ok(Deleted::Pending(live));
            } else {
                let expected = Expected::Revision(stored.revision());
                self.store
                    .put(&target.storage(), expected, new)
                    .map(|marked| Deleted::Pending(marked.into_object()))
            };
            match outcome {
                Ok(deleted) => return Ok(deleted),
                Err(CommitError::Missing) => return Err(target.not_found()),
                Err(CommitError::Moved | CommitError::Exists) => {}
            }
        }
    }

    /// Runs both phases of admission on a delete of the stored object `live`.
    async fn admit_delete(&self, target: &Target, live: &Value, write: &Write) -> ApiResult<()> {
        let old = super::from_storage(&target.kind, live.clone());
        // As in Kubernetes, admission does not know the names of the objects of a collection.
        let (name, name_in_errors) = match write.is_collection {
            true => ("", "Unknown"),
            false => (target.name.as_str(), target.name.as_str()),
        };
        let attributes = Attributes {
            operation: Operation::Delete,
            target,
            name,
            name_in_errors,
            old: Some(&old),
            write,
        };
        admission::mutate(self, &attributes, &mut Value::Null).await?;
        admission::validate(self, &attributes, None).await
    }

    /// Deletes these objects of a kind, and ignores objects that another client has already
    /// deleted.
    pub(crate) async fn delete_all(
        &self,
        kind: &Arc<Kind>,
        objects: &[Arc<Stored>],
        options: &DeleteOptions,
        write: &Write,
    ) -> ApiResult<()> {
        for object in objects {
            let one = Target::new(kind, object.namespace(), object.name());
            match self.delete(&one, options, write).await {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the body of the response to a delete request: the deleted object or a `Status`.
    pub(crate) async fn deleted_body(&self, target: &Target, deleted: Deleted) -> ApiResult<Value> {
        match deleted {
            Deleted::Gone(object) if !rules::returns_deleted_object(&target.kind) => {
                let mut details = json!({
                    "name": object::name(&object), "kind": target.kind.plural, "uid": object::uid(&object),
                });
                if !target.kind.group.is_empty() {
                    object::set_field(&mut details, "group", json!(target.kind.group));
                }
                Ok(json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                    "details": details,
                }))
            }
            Deleted::Gone(object) | Deleted::Pending(object) => {
                self.read_from_storage(&target.kind, object).await
            }
        }
    }

    pub(super) fn check_preconditions(
        &self,
        target: &Target,
        options: &DeleteOptions,
        live: &Value,
    ) -> ApiResult<()> {
        let Some(wanted) = &options.preconditions else {
            return Ok(());
        };
        let refuse = |what: &str, wanted: &str, found: &str, likely: &str| {
            let why = format!(
                "the {what} in the precondition ({wanted}) does not match the {what} in record \
                 ({found}). The object might have been {likely}"
            );
            Err(ApiError::precondition(&target.kind, &target.name, &why))
        };
        let (uid, version) = (object::uid(live), object::meta(live, "resourceVersion"));
        if let Some(wanted) = wanted.uid.as_deref().filter(|wanted| *wanted != uid) {
            return refuse("UID", wanted, uid, "deleted and then recreated");
        }
        let wanted = wanted.resource_version.as_deref();
        if let Some(wanted) = wanted.filter(|wanted| *wanted != version) {
            return refuse("ResourceVersion", wanted, version, "modified");
        }
        Ok(())
    }

    fn mark_deleted(
        &self,
        target: &Target,
        options: &DeleteOptions,
        object: &mut Value,
    ) -> ApiResult<()> {
        let kind = &target.kind;
        set_propagation(options, object)?;
        if rules::is_crd(kind) {
            add_finalizer(object, CRD_CLEANUP);
            crd::set_terminating(object, &self.clock.now_rfc3339());
        }
        if rules::is_namespace(kind) {
            object::set(object, &["status", "phase"], json!("Terminating"));
        }
        let grace = if rules::deletes_gracefully(kind) {
            grace_period(options, object)
        } else {
            0
        };
        let present = object::at(object, &["metadata", "deletionGracePeriodSeconds"]).as_i64();
        if present.is_some_and(|present| present <= grace) {
            return Ok(());
        }
        let slow = rules::is_namespace(kind) || rules::is_crd(kind);
        if slow && object::is_deleting(object) {
            return Ok(());
        }
        let counted = object::int(object, &["metadata", "generation"]) > 0 && !slow;
        if counted && !object::is_deleting(object) {
            let generation = object::int(object, &["metadata", "generation"]) + 1;
            object::set_meta(object, "generation", json!(generation));
        }
        let now = self.clock.now();
        let end = now
            .checked_add(SignedDuration::from_secs(grace))
            .unwrap_or(now);
        object::set_meta(object, "deletionTimestamp", json!(clock::rfc3339(end)));
        // Namespaces and CRDs wait for finalizers of the server, and have no grace period.
        let grace = if slow { Value::Null } else { json!(grace) };
        object::set_meta(object, "deletionGracePeriodSeconds", grace);
        Ok(())
    }
}

/// Returns the grace period of a pod in seconds, from the request or else from the pod's spec. The
/// grace period is 0 if the pod has no node, or if the pod has finished.
fn grace_period(options: &DeleteOptions, pod: &Value) -> i64 {
    let phase = object::text(pod, &["status", "phase"]);
    if object::text(pod, &["spec", "nodeName"]).is_empty()
        || matches!(phase, "Failed" | "Succeeded")
    {
        return 0;
    }
    let own = object::at(pod, &["spec", "terminationGracePeriodSeconds"]).as_i64();
    options.grace_period_seconds.or(own).unwrap_or(30).max(0)
}

fn set_propagation(options: &DeleteOptions, object: &mut Value) -> ApiResult<()> {
    let policy = match (
        options.propagation_policy.as_deref(),
        options.orphan_dependents,
    ) {
        (Some(policy), Some(_)) => {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            let error = FieldError::invalid("propagationPolicy", &json!(policy), detail);
            return Err(ApiError::invalid_options("DeleteOptions", &[error]));
        }
        (Some(policy), None) => policy,
        (None, Some(true)) => "Orphan",
        (None, Some(false)) => "Background",
        (None, None) => return Ok(()),
    };
    let (wanted, other) = match policy {
        "Background" => (None, None),
        "Foreground" => (Some(FOREGROUND), Some(ORPHAN)),
        "Orphan" => (Some(ORPHAN), Some(FOREGROUND)),
        _ => {
            let supported = ["Foreground", "Background", "Orphan", "nil"];
            let error = FieldError::not_supported("propagationPolicy", &json!(policy), &supported);
            return Err(ApiError::invalid_options("DeleteOptions", &[error]));
        }
    };
    let kept: Vec<String> = object::finalizers(object)
        .into_iter()
        .filter(|f| wanted.is_some() || (*f != FOREGROUND && *f != ORPHAN))
        .filter(|f| Some(*f) != other)
        .map(str::to_owned)
        .collect();
    set_finalizers(object, kept);
    if let Some(wanted) = wanted {
        add_finalizer(object, wanted);
    }
    Ok(())
}

fn add_finalizer(object: &mut Value, finalizer: &str) {
    let mut finalizers: Vec<String> = object::finalizers(object)
        .into_iter()
        .map(str::to_owned)
        .collect();
    if !finalizers.iter().any(|f| f == finalizer) {
        finalizers.push(finalizer.to_owned());
        set_finalizers(object, finalizers);
    }
}

/// Sets the finalizers of an object. An empty list removes the field `finalizers`.
pub(crate) fn set_finalizers(object: &mut Value, finalizers: Vec<String>) {
    let value = if finalizers.is_empty() {
        Value::Null
    } else {
        json!(finalizers)
    };
    object::set_meta(object, "finalizers", value);
}
