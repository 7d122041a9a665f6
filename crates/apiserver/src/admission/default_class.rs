//! The plugins `DefaultStorageClass` and `DefaultIngressClass`: set the class of claims and
//! Ingresses that name none.

use std::cmp::Reverse;
use std::sync::Arc;

use serde_json::{Value, json};

use super::resource_quota::has_storage_class;
use crate::object;

/// The resource name of StorageClasses.
pub(super) const STORAGE_CLASSES: &str = "storageclasses.storage.k8s.io";
/// The resource name of IngressClasses.
pub(super) const INGRESS_CLASSES: &str = "ingressclasses.networking.k8s.io";

/// The annotations that mark a StorageClass as the default.
const DEFAULT_STORAGE: &[&str] = &[
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];
/// The annotation that marks an IngressClass as the default.
const DEFAULT_INGRESS: &[&str] = &["ingressclass.kubernetes.io/is-default-class"];
/// The annotation with which an Ingress can name its class.
const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";

/// Sets the storage class of a claim that names none.
pub(super) fn set_storage_class(claim: &mut Value, classes: impl FnOnce() -> Vec<Arc<Value>>) {
    if has_storage_class(claim) {
        return;
    }
    if let Some(class) = default_of(&classes(), DEFAULT_STORAGE) {
        object::set(claim, &["spec", "storageClassName"], json!(class));
    }
}

/// Sets the class of an Ingress that names none.
pub(super) fn set_ingress_class(ingress: &mut Value, classes: impl FnOnce() -> Vec<Arc<Value>>) {
    let annotation = object::at(ingress, &["metadata", "annotations", INGRESS_CLASS]);
    let path = ["spec", "ingressClassName"];
    if !annotation.is_null() || !object::at(ingress, &path).is_null() {
        return;
    }
    if let Some(class) = default_of(&classes(), DEFAULT_INGRESS) {
        object::set(ingress, &path, json!(class));
    }
}

/// Returns the name of the class with one of these annotations. Of several classes, the newest is
/// the default, and of several that were created in the same second, the first by name.
fn default_of<'a>(classes: &'a [Arc<Value>], annotations: &[&str]) -> Option<&'a str> {
    let is_default = |class: &Value| {
        let mut annotations = annotations.iter();
        annotations.any(|key| object::text(class, &["metadata", "annotations", key]) == "true")
    };
    let defaults = classes.iter().filter(|class| is_default(class));
    let newest = defaults.min_by_key(|class| {
        let created = object::meta(class, "creationTimestamp");
        (Reverse(created), object::name(class))
    });
    newest.map(|class| object::name(class))
}

#[cfg(test)]
mod tests;
