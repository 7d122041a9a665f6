//! Controllers that let deleted PersistentVolumeClaims and PersistentVolumes go once they are no
//! longer in use.

use serde_json::Value;

use super::garbage;
use crate::admission::{CLAIM_PROTECTION, VOLUME_PROTECTION};
use crate::object;
use crate::registry::Registry;
use crate::status::ApiResult;
use crate::store::Key;

/// The resource names of claims and volumes in the store.
pub(super) const CLAIMS: &str = "persistentvolumeclaims";
pub(super) const VOLUMES: &str = "persistentvolumes";

/// Returns the keys of the claims that a Pod uses.
pub(super) fn claims_of_pod(pod: &Value) -> Vec<Key> {
    let volumes = object::items(pod, &["spec", "volumes"]).iter();
    volumes
        .map(|volume| object::text(volume, &["persistentVolumeClaim", "claimName"]))
        .filter(|name| !name.is_empty())
        .map(|name| Key::new(object::namespace(pod), name))
        .collect()
}

/// Removes the finalizer of a deleted claim that no Pod uses.
pub(super) async fn release_claim(registry: &Registry, key: &Key) -> ApiResult<()> {
    release(registry, CLAIMS, key, CLAIM_PROTECTION, |_| {
        let (pods, _) = registry.store.list("pods", Some(&key.namespace));
        pods.iter().any(|pod| claims_of_pod(pod).contains(key))
    })
    .await
}

/// Removes the finalizer of a deleted volume that is not bound.
pub(super) async fn release_volume(registry: &Registry, key: &Key) -> ApiResult<()> {
    release(registry, VOLUMES, key, VOLUME_PROTECTION, |volume| {
        object::text(volume, &["status", "phase"]) == "Bound"
    })
    .await
}

async fn release(
    registry: &Registry,
    resource: &str,
    key: &Key,
    finalizer: &str,
    is_used: impl Fn(&Value) -> bool,
) -> ApiResult<()> {
    let Some(object) = registry.store.get(resource, key) else {
        return Ok(());
    };
    let is_protected = object::finalizers(&object).contains(&finalizer);
    if !object::is_deleting(&object) || !is_protected || is_used(&object) {
        return Ok(());
    }
    match garbage::target(registry, resource, key) {
        Some(target) => garbage::remove_finalizer(registry, &target, finalizer).await,
        None => Ok(()),
    }
}
