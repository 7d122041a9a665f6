//! Controller of namespaces: creates the ServiceAccount `default` and the ConfigMap with the
//! certificate authority of a namespace, and deletes the objects in a namespace that is being
//! deleted.

use serde_json::Value;

use super::{MANAGER, garbage};
use crate::object;
use crate::registry::{Registry, Write};
use crate::status::ApiResult;
use crate::store::Key;
use crate::target::Target;

pub(super) async fn step(registry: &Registry, key: &Key) -> ApiResult<()> {
    let Some(namespace) = registry.store.get("namespaces", key) else {
        return Ok(());
    };
    if object::is_deleting(&namespace) {
        empty(registry, &key.name).await
    } else {
        registry.create_default_account(&key.name).await?;
        registry.write_root_ca(&key.name).await
    }
}

/// Deletes all objects in a namespace, and then removes the finalizer of the namespace.
async fn empty(registry: &Registry, namespace: &str) -> ApiResult<()> {
    let mut left = false;
    for resource in registry.store.resources_in(namespace) {
        let (objects, _) = registry.store.list(&resource, Some(namespace));
        for object in objects {
            left = true;
            let Some(target) = garbage::target(registry, &resource, &Key::of(&object)) else {
                continue;
            };
            if !object::is_deleting(&object) {
                garbage::delete(registry, &target, &object, "Background").await?;
            }
        }
    }
    if left && !registry.store.resources_in(namespace).is_empty() {
        // The event of the last deletion leads to another step.
        return Ok(());
    }
    let kind = registry.builtin("", "namespaces")?;
    let target = Target::new(&kind, "", namespace).subresource("finalize");
    registry
        .modify(&target, &mut Write::by(MANAGER), |live| {
            let mut new = live.clone();
            object::set(&mut new, &["spec", "finalizers"], Value::Null);
            Ok(new)
        })
        .await?;
    Ok(())
}
