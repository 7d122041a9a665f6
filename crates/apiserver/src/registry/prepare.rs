//! Preparation of a changed object for the store: sets namespace, defaults, managed fields and
//! generation, and resets the fields that the request may not change.

use opkit_apimachinery::managedfields::{self, Manager};
use opkit_apimachinery::structural;
use serde_json::{Value, json};

use super::services::{self, Allocation};
use super::{Registry, Write, certificates, decoding, identity, metadata, pods, rules, zeros};
use crate::admission::{self, Attributes, Operation};
use crate::kinds::{self, Kind};
use crate::status::{ApiError, ApiResult};
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
    /// By the API server itself, below the field managers: `managedFields` stays as it is.
    Storage,
}

/// An object that is ready to be stored.
pub(super) struct Prepared<'a> {
    pub(super) object: Value,
    /// Addresses and ports that the object has reserved. The caller must commit them after the
    /// object is stored.
    pub(super) allocation: Allocation<'a>,
    /// Warnings for the client.
    pub(super) warnings: Vec<String>,
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
    pub(super) async fn prepare_update(
        &self,
        by: WrittenBy,
        target: &Target,
        live: &Value,
        mut new: Value,
        write: &Write,
    ) -> ApiResult<Prepared<'_>> {
        identity::check_versions(target, live, &new)?;
        enter_namespace(target, &mut new)?;
        restrict(target, live, &mut new);
        if certificates::is_signing_request(&target.kind) {
            self.restrict_signing_request(target, live, &mut new);
        }
        self.normalize(&target.kind, &mut new, by)?;
        if rules::is_crd(&target.kind) && target.subresource == "status" {
            crd::set_default_stored_versions(&mut new);
        }
        if by == WrittenBy::Update {
            if object::at(&new, &["metadata", "managedFields"]).is_null() {
                let managers = object::at(live, &["metadata", "managedFields"]).clone();
                object::set_meta(&mut new, "managedFields", managers);
            }
            self.attribute(target, Some(live), &mut new, write)?;
        }
        zeros::add(&target.kind, &mut new);
        // As in Kubernetes, the manager owns also the fields that these subresources reset.
        match target.subresource.as_str() {
            "ephemeralcontainers" => pods::restrict_to_ephemeral_containers(live, &mut new),
            "resize" => pods::restrict_to_resources(live, &mut new),
            _ => {}
        }
        if rules::is_namespace(&target.kind) && target.subresource != "finalize" {
            let finalizers = object::at(live, &["spec", "finalizers"]).clone();
            object::set(&mut new, &["spec", "finalizers"], finalizers);
        }
        if rules::is_crd(&target.kind) && target.subresource.is_empty() {
            crd::add_stored_version(&mut new);
        }
        rules::count_template_changes(&target.kind, live, &mut new);
        let attributes = Attributes {
            operation: Operation::Update,
            target,
            name: &target.name,
            name_in_errors: &target.name,
            old: Some(live),
            write,
        };
        match target.subresource.as_str() {
            "scale" => self.mutate_scale(&attributes, &mut new).await?,
            _ => admission::mutate(self, &attributes, &mut new).await?,
        }
        let is_whole = target.subresource.is_empty();
        let allocation = match is_whole {
            true => self.allocate_update(&target.kind, live, &mut new, write.dry_run)?,
            false => Allocation::new(self, write.dry_run),
        };
        if is_whole && services::is_service(&target.kind) {
            services::drop_type_dependent_fields(live, &mut new);
        }
        set_generation(target, live, &mut new);
        managedfields::keep_times(live, &mut new);
        let warnings = self.validate_update(target, live, &new)?;
        match target.subresource.as_str() {
            "scale" => self.validate_scale(&attributes, &new).await?,
            _ => admission::validate(self, &attributes, Some(&new)).await?,
        }
        Ok(Prepared {
            object: new,
            allocation,
            warnings,
        })
    }

    /// Removes unknown fields from an object that a webhook or policy has changed, and sets its
    /// defaults.
    pub(crate) fn default_mutated(
        &self,
        attributes: &Attributes<'_>,
        object: &mut Value,
    ) -> ApiResult<()> {
        let kind = attributes.kind();
        if !matches!(attributes.target.subresource.as_str(), "" | "status") {
            return Ok(());
        }
        if !kind.is_custom() {
            let schema = self.schemas.of(kind)?;
            let error = decoding::error(object, &self.schemas.typed(&schema), &kind.kind);
            if let Some(error) = error {
                return Err(ApiError::internal_occurred(error));
            }
        }
        self.normalize(kind, object, WrittenBy::Update)
    }

    /// Checks an object after webhooks and policies have changed it, and resets the fields that
    /// they cannot change.
    pub(crate) fn complete_mutated(
        &self,
        attributes: &Attributes<'_>,
        object: &mut Value,
    ) -> ApiResult<()> {
        let target = attributes.target;
        if !matches!(target.subresource.as_str(), "" | "status") {
            return Ok(());
        }
        match (attributes.operation, attributes.old) {
            (Operation::Create, _) => {
                identity::check_namespace(target, object)?;
                drop_unset_on_create(&target.kind, object);
                self.default_mutated(attributes, object)?;
            }
            (Operation::Update, Some(live)) => {
                let errors = metadata::immutable_errors(live, object);
                if !errors.is_empty() {
                    return Err(ApiError::invalid(&target.kind, &target.name, &errors));
                }
                restrict(target, live, object);
            }
            _ => {}
        }
        Ok(())
    }

    /// Resets the fields of a CertificateSigningRequest that the request cannot change.
    fn restrict_signing_request(&self, target: &Target, live: &Value, new: &mut Value) {
        let now = self.clock.now_rfc3339();
        match target.subresource.as_str() {
            "approval" => certificates::restrict_to_approval(live, new, &now),
            "status" => certificates::keep_approval(live, new, &now),
            _ => {}
        }
    }

    /// Removes unknown fields from the object of a create or update, and sets its defaults.
    pub(crate) fn set_defaults(&self, kind: &Kind, object: &mut Value) -> ApiResult<()> {
        self.normalize(kind, object, WrittenBy::Update)
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
                WrittenBy::Update | WrittenBy::Storage => {
                    structural::apply_defaults(object, &typed);
                }
                WrittenBy::Apply => structural::fill_defaults(object, &typed),
            }
        } else {
            if rules::is_crd(kind) {
                crd::apply_defaults(object);
            }
            kinds::defaults::apply(kind, object);
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
        if !rules::has_managed_fields(kind) {
            object::set_meta(new, "managedFields", Value::Null);
            return Ok(());
        }
        if live.is_some_and(|live| self.loses_managers(kind, live, new)) {
            object::set_meta(new, "managedFields", Value::Null);
            return Ok(());
        }
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
        Ok(())
    }
}

/// Removes the fields from a new object that a client cannot set.
pub(super) fn drop_unset_on_create(kind: &Kind, object: &mut Value) {
    if kind.subresource("status").is_some() && !rules::is_namespace(kind) {
        object::set(object, &["status"], Value::Null);
    }
    for field in [
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
    ] {
        object::set_meta(object, field, Value::Null);
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
    } else if kind.subresource("status").is_some()
        && !matches!(target.subresource.as_str(), "binding" | "approval")
    {
        object::set(new, &["status"], object::at(live, &["status"]).clone());
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
    // A binding sets the node of a pod, and does not count as a change of its spec. The generation
    // of a PriorityClass is always 1.
    let is_fixed = target.subresource == "binding" || kind.plural == "priorityclasses";
    if !rules::has_generation(kind) || is_fixed {
        return;
    }
    let has_status = kind.subresource("status").is_some();
    let is_counted = |field: &str| field != "metadata" && !(has_status && field == "status");
    let counted = |object: &Value| {
        let fields = object.as_object().into_iter().flatten();
        fields.filter(|(field, _)| is_counted(field)).count()
    };
    let mut fields = new.as_object().into_iter().flatten();
    let is_unchanged = counted(live) == counted(new)
        && fields.all(|(field, value)| !is_counted(field) || live.get(field) == Some(value));
    if !is_unchanged {
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
