//! The steps from a changed object to one that can be stored: namespace, the fields that the request
//! may change, defaults, managed fields, generation.

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
    /// By a create, update or patch: the server finds out which fields changed.
    Update,
    /// By a server-side apply, which has set `managedFields` itself. Nulls that are left in the
    /// object are not replaced by defaults: validation refuses them.
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
        count_generation(target, live, &mut new);
        managedfields::keep_times(live, &mut new);
        self.validate_update(target, live, &new)?;
        Ok(new)
    }

    /// Drops what the kind does not know and fills in what it defaults.
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
            // What holds a namespace is given to it once; `finalize` takes it away for good.
            if !(rules::is_namespace(kind) && object::is_deleting(object)) {
                kinds::defaults::apply(kind, object);
            }
        }
        Ok(())
    }

    /// Records in `managedFields` what `new` changes against `live`.
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
            forget_scale_times(new);
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

/// Puts the fields that only the server writes back to what they were.
fn keep_system_fields(live: &Value, new: &mut Value) {
    for field in SYSTEM_FIELDS {
        object::set_meta(new, field, object::at(live, &["metadata", field]).clone());
    }
}

/// Kubernetes notes no time for what was written through `scale`.
fn forget_scale_times(object: &mut Value) {
    let managers = object
        .pointer_mut("/metadata/managedFields")
        .and_then(Value::as_array_mut);
    for manager in managers.into_iter().flatten() {
        if object::text(manager, &["subresource"]) == "scale" {
            object::as_map(manager).remove("time");
        }
    }
}
