//! Preparation of a changed object for the store: sets namespace, defaults, managed fields and
//! generation, and resets the fields that the request may not change.

use opkit_apimachinery::managedfields::{self, Manager};
use opkit_apimachinery::structural;
use serde_json::{Value, json};

use super::{Registry, Write, identity, rules};
use crate::kinds::{self, Kind};
use crate::status::ApiResult;
use crate::target::Target;
use crate::{crd, object};

/// The way in which an object was written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum WrittenBy {
    /// By a create, update or patch. The server compares the objects to find the changed fields for
    /// `managedFields`.
    Update,
    /// By a server-side apply, which has already set `managedFields`. Nulls in the object are not
    /// replaced by defaults, and validation refuses them.
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
    /// Completes and checks `new`, which is to be stored in place of `live`.
    pub(super) fn prepare_update(
        &self,
        by: WrittenBy,
        target: &Target,
        live: &Value,
        mut new: Value,
        write: &Write,
    ) -> ApiResult<Value> {
        identity::check_versions(target, live, &new)?;
        enter_namespace(target, &mut new)?;
        restrict(target, live, &mut new);
        self.normalize(&target.kind, &mut new, by)?;
        if by == WrittenBy::Update {
            if object::at(&new, &["metadata", "managedFields"]).is_null() {
                let managers = object::at(live, &["metadata", "managedFields"]).clone();
                object::set_meta(&mut new, "managedFields", managers);
            }
            self.attribute(target, Some(live), &mut new, write)?;
        }
        set_generation(target, live, &mut new);
        managedfields::keep_times(live, &mut new);
        self.validate_update(target, live, &new)?;
        Ok(new)
    }

    /// Removes unknown fields from an object, and sets its defaults.
    pub(super) fn normalize(
        &self,
        kind: &Kind,
        object: &mut Value,
        by: WrittenBy,
    ) -> ApiResult<()> {
        let schema = self.schemas.of(kind)?;
        let typed = self.schemas.typed(&schema);
        structural::normalize(object, &typed);
        structural::prune(object, &typed);
        if kind.is_custom() {
            match by {
                WrittenBy::Update => structural::apply_defaults(object, &typed),
                WrittenBy::Apply => structural::fill_defaults(object, &typed),
            }
        } else {
            if rules::is_crd(kind) {
                crd::apply_defaults(object);
            }
            // The finalizer of a namespace is a default, and `finalize` removes it: it must not
            // come back.
            if !(rules::is_namespace(kind) && object::is_deleting(object)) {
                kinds::defaults::apply(kind, object);
            }
        }
        Ok(())
    }

    /// Adds the fields that differ between `new` and `live` to the managed fields of the writer.
    pub(super) fn attribute(
        &self,
        target: &Target,
        live: Option<&Value>,
        new: &mut Value,
        write: &Write,
    ) -> ApiResult<()> {
        let kind = &target.kind;
        let schema = self.schemas.of(kind)?;
        let api_version = kind.api_version();
        let manager = Manager {
            name: &write.manager,
            api_version: &api_version,
            subresource: &target.subresource,
        };
        let time = self.clock.now_rfc3339();
        let set_aside = rules::set_aside(target, live, new);
        managedfields::update(live, new, &self.schemas.typed(&schema), &manager, &time);
        for (path, value) in set_aside {
            object::set(new, path, value);
        }
        if target.subresource == "scale" {
            remove_scale_times(new);
        }
        Ok(())
    }
}

/// Sets the namespace of the object to that of the request.
pub(super) fn enter_namespace(target: &Target, object: &mut Value) -> ApiResult<()> {
    identity::check_namespace(target, object)?;
    let namespace = match target.kind.namespaced {
        true => target.namespace.clone().into(),
        false => Value::Null,
    };
    object::set_meta(object, "namespace", namespace);
    Ok(())
}

/// Resets the fields of `new` that the request cannot change: on `/status` all fields except the
/// status, elsewhere the status, and always the fields that only the server writes.
fn restrict(target: &Target, live: &Value, new: &mut Value) {
    let kind = &target.kind;
    if target.subresource == "status" {
        let status = object::at(new, &["status"]).clone();
        let metadata = object::at(new, &["metadata"]).clone();
        new.clone_from(live);
        object::set(new, &["status"], status);
        // `/status` of a built-in kind can also change metadata, such as labels; that of a custom
        // resource cannot.
        if !kind.is_custom() {
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

/// Increments the generation of `new` if a field outside of `metadata` and `status` differs from
/// `live`.
fn set_generation(target: &Target, live: &Value, new: &mut Value) {
    let kind = &target.kind;
    // A binding sets the node of a pod, and does not count as a change of its spec.
    if !rules::has_generation(kind) || target.subresource == "binding" {
        return;
    }
    let has_status = kind.subresource("status").is_some();
    let spec_of = |object: &Value| {
        let mut fields = object.as_object().cloned().unwrap_or_default();
        fields.remove("metadata");
        if has_status {
            fields.remove("status");
        }
        fields
    };
    if spec_of(live) != spec_of(new) {
        let generation = object::int(live, &["metadata", "generation"]) + 1;
        object::set_meta(new, "generation", json!(generation));
    }
}

/// Resets the `metadata` fields that only the server writes to the values in `live`.
fn keep_system_fields(live: &Value, new: &mut Value) {
    for field in SYSTEM_FIELDS {
        object::set_meta(new, field, object::at(live, &["metadata", field]).clone());
    }
}

/// Removes the times from the `managedFields` entries of the subresource `scale`, as Kubernetes
/// does.
fn remove_scale_times(object: &mut Value) {
    let managers = object
        .pointer_mut("/metadata/managedFields")
        .and_then(Value::as_array_mut);
    for manager in managers.into_iter().flatten() {
        if object::text(manager, &["subresource"]) == "scale" {
            object::as_map(manager).remove("time");
        }
    }
}
