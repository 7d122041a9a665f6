//! Adds and removes finalizers of an object, only at the version of the object that was read.

use bytes::Bytes;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use opkit_client::{Patch, RequestError, RestClient, WriteOptions};
use serde_json::{Map, Value, json};

use crate::object::owner::{Head, Owner};

/// Largest number of retries if another client changes the object between read and write.
const ATTEMPTS: usize = 10;

/// Result of a change of an object's metadata.
#[derive(Debug)]
pub(crate) enum Changed {
    /// The change was written; contains the response.
    Written(Bytes),
    /// No change was needed.
    Not,
    /// The object does not exist.
    Gone,
}

/// Reports whether the object has the finalizer `name`.
pub(crate) fn has(meta: &ObjectMeta, name: &str) -> bool {
    meta.finalizers
        .iter()
        .flatten()
        .any(|finalizer| finalizer == name)
}

/// Adds the finalizer `name`, unless the object is being deleted.
pub(crate) async fn add(
    client: &RestClient,
    owner: &Owner,
    meta: &ObjectMeta,
    name: &str,
    manager: &str,
) -> Result<Changed, RequestError> {
    change(client, owner, meta, manager, |meta| {
        if meta.deletion_timestamp.is_some() {
            return None;
        }
        let mut finalizers = meta.finalizers.clone().unwrap_or_default();
        finalizers.retain(|finalizer| finalizer != name);
        finalizers.push(name.to_owned());
        Some(patch_of(finalizers))
    })
    .await
}

/// Removes the finalizer `name`.
pub(crate) async fn remove(
    client: &RestClient,
    owner: &Owner,
    meta: &ObjectMeta,
    name: &str,
    manager: &str,
) -> Result<Changed, RequestError> {
    change(client, owner, meta, manager, |meta| {
        let finalizers = meta.finalizers.iter().flatten();
        has(meta, name).then(|| patch_of(finalizers.filter(|f| *f != name).cloned().collect()))
    })
    .await
}

fn patch_of(finalizers: Vec<String>) -> Map<String, Value> {
    Map::from_iter([("finalizers".to_owned(), json!(finalizers))])
}

/// Calls `next` with the metadata of the object, and writes the metadata fields that `next`
/// returns. If another client changed the object meanwhile, reads the object and calls `next`
/// again.
pub(crate) async fn change(
    client: &RestClient,
    owner: &Owner,
    meta: &ObjectMeta,
    manager: &str,
    mut next: impl FnMut(&ObjectMeta) -> Option<Map<String, Value>>,
) -> Result<Changed, RequestError> {
    let mut meta = meta.clone();
    let mut attempts = 0;
    loop {
        let Some(mut patch) = next(&meta) else {
            return Ok(Changed::Not);
        };
        patch.insert("resourceVersion".into(), json!(meta.resource_version));
        patch.insert("uid".into(), json!(owner.uid()));
        let patch = json!({"metadata": patch});
        let options = WriteOptions::for_manager(manager);
        match client
            .patch(
                &owner.kind,
                &owner.key,
                None,
                Patch::Merge(&patch),
                &options,
            )
            .await
        {
            Ok(response) => return Ok(Changed::Written(response)),
            Err(error) if error.is_not_found() => return Ok(Changed::Gone),
            Err(error) if error.is_conflict() && attempts < ATTEMPTS => attempts += 1,
            Err(error) => return Err(error),
        }
        let live = match client.get(&owner.kind, &owner.key).await {
            Err(error) if error.is_not_found() => return Ok(Changed::Gone),
            live => live?,
        };
        meta = serde_json::from_slice::<Head>(&live)
            .unwrap_or_default()
            .metadata;
        if meta.uid.as_deref() != Some(&*owner.uid()) {
            return Ok(Changed::Gone);
        }
    }
}
