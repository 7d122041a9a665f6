//! Deletes the objects of a CRD that is being deleted.

use super::garbage;
use crate::object;
use crate::registry::{CRD_CLEANUP, Registry};
use crate::status::ApiResult;
use crate::store::Key;

pub(super) async fn step(registry: &Registry, key: &Key) -> ApiResult<()> {
    let Some(crd) = registry.store.get(super::CRDS, key) else {
        return Ok(());
    };
    if !object::is_deleting(&crd) || !object::finalizers(&crd).contains(&CRD_CLEANUP) {
        return Ok(());
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
    match garbage::target(registry, super::CRDS, key) {
        Some(target) => garbage::remove_finalizer(registry, &target, CRD_CLEANUP).await,
        None => Ok(()),
    }
}
