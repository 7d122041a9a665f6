//! Controller of namespaces: creates the service account `default` of a namespace, and deletes the
//! objects in a namespace that is being deleted.

use serde_json::{Value, json};

use super::{MANAGER, garbage};
use crate::object;
use crate::registry::{Registry, Write};
use crate::status::ApiResult;
use crate::store::Key;
use crate::target::Target;

pub(super) fn step(registry: &Registry, key: &Key) -> ApiResult<()> {
    let Some(namespace) = registry.store.get("namespaces", key) else {
        return Ok(());
    };
    if object::is_deleting(&namespace) {
        empty(registry, &key.name)
    } else {
        create_service_account(registry, &key.name)
    }
}

/// Creates the service account `default` in a namespace.
fn create_service_account(registry: &Registry, namespace: &str) -> ApiResult<()> {
    let kind = registry.builtin("", "serviceaccounts")?;
    if registry
        .store
        .get("serviceaccounts", &Key::new(namespace, "default"))
        .is_some()
    {
        return Ok(());
    }
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    let target = Target::new(&kind, namespace, "");
    registry.create(&target, account, &mut Write::by(MANAGER))?;
    Ok(())
}

/// Deletes all objects in a namespace, and then removes the finalizer of the namespace.
fn empty(registry: &Registry, namespace: &str) -> ApiResult<()> {
    let mut left = false;
    for resource in registry.store.resources_in(namespace) {
        let (objects, _) = registry.store.list(&resource, Some(namespace));
        for object in objects {
            left = true;
            let Some(target) = garbage::target(registry, &resource, &Key::of(&object)) else {
                continue;
            };
            if !object::is_deleting(&object) {
                garbage::delete(registry, &target, &object, "Background")?;
            }
        }
    }
    if left && !registry.store.resources_in(namespace).is_empty() {
        // The event of the last deletion leads to another step.
        return Ok(());
    }
    let kind = registry.builtin("", "namespaces")?;
    let target = Target::new(&kind, "", namespace).subresource("finalize");
    registry.modify(&target, &mut Write::by(MANAGER), |live| {
        let mut new = live.clone();
        object::set(&mut new, &["spec", "finalizers"], Value::Null);
        Ok(new)
    })?;
    Ok(())
}
