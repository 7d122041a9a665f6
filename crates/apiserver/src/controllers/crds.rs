//! Deletes the objects of a CRD that is being deleted.

use super::garbage;
use crate::kinds::Catalog;
use crate::registry::{CRD_CLEANUP, Registry, Write};
use crate::status::ApiResult;
use crate::store::Key;
use crate::{crd, object};

pub(super) async fn step(registry: &Registry, key: &Key) -> ApiResult<()> {
    let Some(crd) = registry.store.get(super::CRDS, key) else {
        return Ok(());
    };
    if !object::is_deleting(&crd) || !object::finalizers(&crd).contains(&CRD_CLEANUP) {
        return Ok(());
    }
    let group = object::text(&crd, &["spec", "group"]);
    if Catalog::is_builtin(group, object::text(&crd, &["spec", "names", "plural"])) {
        // The objects are those of the server itself, not those of the CRD.
        return finish(registry, key).await;
    }
    if let Some(target) = garbage::target(registry, super::CRDS, key) {
        let now = registry.clock.now_rfc3339();
        let write = &mut Write::by("kube-apiserver");
        let target = target.subresource("status");
        let modified = registry.modify(&target, write, |live| {
            let mut new = live.clone();
            crd::set_instances_being_deleted(&mut new, &now);
            Ok(new)
        });
        modified.await?;
    }
    let (objects, _) = registry.store.list(&key.name, None);
    for object in objects.iter().filter(|object| !object::is_deleting(object)) {
        if let Some(target) = garbage::target(registry, &key.name, &Key::of(object)) {
            garbage::delete(registry, &target, object, "Background").await?;
        }
    }
    if !registry.store.list(&key.name, None).0.is_empty() {
        // The event of the last deletion leads to another step.
        return Ok(());
    }
    finish(registry, key).await
}

/// Removes the finalizer of a CRD without objects.
async fn finish(registry: &Registry, key: &Key) -> ApiResult<()> {
    match garbage::target(registry, super::CRDS, key) {
        Some(target) => garbage::remove_finalizer(registry, &target, CRD_CLEANUP).await,
        None => Ok(()),
    }
}
