//! The calls of the built-in plugins: each plugin with the kinds, subresources and operations that
//! it handles.

use std::sync::Arc;

use serde_json::Value;

use super::default_class::{INGRESS_CLASSES, STORAGE_CLASSES};
use super::runtime_class::RUNTIME_CLASSES;
use super::{
    AdmissionPlugin, Attributes, Operation, always_pull_images, certificates, claim_resize,
    default_class, default_toleration_seconds, limit_ranger, namespace_lifecycle, owner_references,
    pod_security, priority, resource_quota, runtime_class, service_account, storage_object_in_use,
    taint_nodes,
};
use crate::object;
use crate::registry::Registry;
use crate::status::{ApiError, ApiResult};
use crate::store::Key;

/// Group and resource of a request.
fn resource<'a>(attributes: &Attributes<'a>) -> (&'a str, &'a str) {
    let kind = attributes.kind();
    (kind.group.as_str(), kind.plural.as_str())
}

/// Runs the mutating phase of a plugin.
pub(super) async fn mutate(
    plugin: AdmissionPlugin,
    registry: &Registry,
    attributes: &Attributes<'_>,
    object: &mut Value,
) -> ApiResult<()> {
    if plugin == AdmissionPlugin::NamespaceLifecycle {
        return namespace_lifecycle::admit(registry, attributes);
    }
    let is_create = attributes.operation == Operation::Create;
    let is_update = attributes.operation == Operation::Update;
    let subresource = attributes.target.subresource.as_str();
    if plugin == AdmissionPlugin::LimitRanger {
        if limits_pod(attributes) {
            let ranges = limit_ranges(registry, attributes);
            limit_ranger::set_defaults(&ranges, object);
        }
        return Ok(());
    }
    if !subresource.is_empty() || !(is_create || is_update) {
        return Ok(());
    }
    match (plugin, resource(attributes)) {
        (AdmissionPlugin::ServiceAccount, ("", "pods")) if is_create => {
            service_account::admit(registry, attributes, object).await?;
        }
        (AdmissionPlugin::TaintNodesByCondition, ("", "nodes")) if is_create => {
            taint_nodes::admit(object);
        }
        (AdmissionPlugin::AlwaysPullImages, ("", "pods"))
            if !always_pull_images::is_ignored(object, attributes.old) =>
        {
            always_pull_images::admit(object);
        }
        (AdmissionPlugin::Priority, ("", "pods")) => match attributes.old {
            None => priority::admit(registry, attributes, object)?,
            Some(old) => priority::keep(old, object),
        },
        (AdmissionPlugin::DefaultTolerationSeconds, ("", "pods")) => {
            default_toleration_seconds::admit(object);
        }
        (AdmissionPlugin::DefaultStorageClass, ("", "persistentvolumeclaims")) if is_create => {
            let classes = || registry.store.list(STORAGE_CLASSES, None).0;
            default_class::set_storage_class(object, classes);
        }
        (AdmissionPlugin::StorageObjectInUseProtection, _) if is_create => {
            storage_object_in_use::admit(attributes.kind(), object);
        }
        (AdmissionPlugin::RuntimeClass, ("", "pods")) if is_create => {
            if let Some(class) = runtime_class_of(registry, attributes, object)? {
                let admitted = runtime_class::admit(&class, object);
                admitted.map_err(|why| attributes.forbid(why))?;
            }
        }
        (AdmissionPlugin::DefaultIngressClass, ("networking.k8s.io", "ingresses")) if is_create => {
            let classes = || registry.store.list(INGRESS_CLASSES, None).0;
            default_class::set_ingress_class(object, classes);
        }
        _ => {}
    }
    Ok(())
}

/// Runs the validating phase of a plugin.
pub(super) async fn validate(
    plugin: AdmissionPlugin,
    registry: &Registry,
    attributes: &Attributes<'_>,
    object: &Value,
) -> ApiResult<()> {
    let is_create = attributes.operation == Operation::Create;
    let is_whole = attributes.target.subresource.is_empty();
    let resource = resource(attributes);
    let forbid = |why: &str| attributes.forbid(why);
    match (plugin, resource) {
        (AdmissionPlugin::LimitRanger, ("", "pods")) if limits_pod(attributes) => {
            let ranges = limit_ranges(registry, attributes);
            limit_ranger::check_pod(&ranges, object).map_err(|why| forbid(&why))
        }
        (AdmissionPlugin::LimitRanger, ("", "persistentvolumeclaims")) if is_whole => {
            if attributes.old.is_some_and(object::is_deleting) {
                return Ok(());
            }
            let ranges = limit_ranges(registry, attributes);
            limit_ranger::check_claim(&ranges, object).map_err(|why| forbid(&why))
        }
        (AdmissionPlugin::AlwaysPullImages, ("", "pods")) if is_whole => {
            if always_pull_images::is_ignored(object, attributes.old) {
                return Ok(());
            }
            let errors = always_pull_images::errors(object);
            let refused = |error: &_| forbid(&format!("{error}")).message();
            let errors: Vec<String> = errors.iter().map(refused).collect();
            match errors.is_empty() {
                true => Ok(()),
                false => Err(ApiError::without_reason(500, super::aggregate(&errors))),
            }
        }
        (AdmissionPlugin::PodSecurity, resource) => {
            check_pod_security(registry, attributes, object, resource == ("", "namespaces"))
        }
        (AdmissionPlugin::Priority, ("scheduling.k8s.io", "priorityclasses")) if is_whole => {
            priority::check_default(registry, attributes, object)
        }
        (AdmissionPlugin::OwnerReferencesPermissionEnforcement, _) => {
            owner_references::check(registry, attributes, object).await
        }
        (AdmissionPlugin::PersistentVolumeClaimResize, ("", "persistentvolumeclaims"))
            if is_whole =>
        {
            let find = |name: &str| registry.store.get(STORAGE_CLASSES, &Key::new("", name));
            let checked = attributes
                .old
                .map_or(Ok(()), |old| claim_resize::check(old, object, find));
            checked.map_err(forbid)
        }
        (AdmissionPlugin::RuntimeClass, ("", "pods")) if is_create && is_whole => {
            let class = runtime_class_of(registry, attributes, object)?;
            runtime_class::check(class.as_deref(), object).map_err(forbid)
        }
        (
            AdmissionPlugin::CertificateApproval
            | AdmissionPlugin::CertificateSigning
            | AdmissionPlugin::CertificateSubjectRestriction,
            ("certificates.k8s.io", "certificatesigningrequests"),
        ) => certificates::check(plugin, registry, attributes, object).await,
        (AdmissionPlugin::ResourceQuota, _) => {
            resource_quota::check(registry, attributes, object).await
        }
        _ => Ok(()),
    }
}

/// Reports whether LimitRanges apply to the Pod of a request: a new Pod, or a Pod that is resized.
fn limits_pod(attributes: &Attributes<'_>) -> bool {
    let is_pod = resource(attributes) == ("", "pods");
    let subresource = attributes.target.subresource.as_str();
    let is_handled = match attributes.operation {
        Operation::Create => subresource.is_empty(),
        Operation::Update => subresource == "resize",
        _ => false,
    };
    is_pod && is_handled && !attributes.old.is_some_and(object::is_deleting)
}

fn limit_ranges(registry: &Registry, attributes: &Attributes<'_>) -> Vec<Arc<Value>> {
    let namespace = attributes.namespace();
    registry.store.list("limitranges", Some(namespace)).0
}

/// Returns the RuntimeClass of a Pod, if the Pod names one.
fn runtime_class_of(
    registry: &Registry,
    attributes: &Attributes<'_>,
    pod: &Value,
) -> ApiResult<Option<Arc<Value>>> {
    let Some(name) = object::at(pod, &["spec", "runtimeClassName"]).as_str() else {
        return Ok(None);
    };
    let class = registry.store.get(RUNTIME_CLASSES, &Key::new("", name));
    let missing = || format!("pod rejected: RuntimeClass {name:?} not found");
    class.map(Some).ok_or_else(|| attributes.forbid(missing()))
}

fn check_pod_security(
    registry: &Registry,
    attributes: &Attributes<'_>,
    object: &Value,
    is_namespace: bool,
) -> ApiResult<()> {
    let subresource = attributes.target.subresource.as_str();
    let (kind, notes) = (attributes.kind(), &attributes.write.notes);
    let store = &registry.store;
    if is_namespace {
        if !subresource.is_empty() {
            return Ok(());
        }
        let pods = || store.list("pods", Some(attributes.name)).0;
        let checked = pod_security::check_namespace(object, attributes.old, pods);
        let warnings =
            checked.map_err(|errors| ApiError::invalid(kind, attributes.name, &errors))?;
        warnings.into_iter().for_each(|warning| notes.warn(warning));
        return Ok(());
    }
    if !pod_security::applies_to(kind) {
        return Ok(());
    }
    let namespace = store.get("namespaces", &Key::new("", attributes.namespace()));
    let Some(namespace) = namespace else {
        return Ok(());
    };
    let outcome = pod_security::check(kind, subresource, &namespace, object, attributes.old);
    for (key, value) in outcome.annotations {
        notes.annotate(key, value);
    }
    outcome
        .warnings
        .into_iter()
        .for_each(|warning| notes.warn(warning));
    match outcome.forbidden {
        Some(why) => Err(attributes.forbid(why)),
        None => Ok(()),
    }
}
