//! Garbage collection: deletes dependents whose owners are all gone, and lets owners wait for the
//! deletion of their dependents.

use serde_json::{Value, json};

use super::MANAGER;
use crate::object;
use crate::registry::{DeleteOptions, FOREGROUND, ORPHAN, Preconditions, Registry, Write};
use crate::status::ApiResult;
use crate::store::Key;
use crate::target::Target;

/// Deletes an object whose owners are all gone. If only some owners are gone, removes the
/// references to these owners.
pub(super) async fn check_dependent(
    registry: &Registry,
    resource: &str,
    key: &Key,
) -> ApiResult<()> {
    let Some(object) = registry.store.get(resource, key) else {
        return Ok(());
    };
    let owners = object::items(&object, &["metadata", "ownerReferences"]);
    if owners.is_empty() || object::is_deleting(&object) {
        return Ok(());
    }
    let states: Vec<Owner> = owners
        .iter()
        .map(|owner| look_up(registry, owner, key))
        .collect();
    let Some(target) = target(registry, resource, key) else {
        return Ok(());
    };
    if states.contains(&Owner::Present) {
        if states.iter().all(|state| *state == Owner::Present) {
            return Ok(());
        }
        return retain_owners(registry, &target, |owner| {
            look_up(registry, owner, key) == Owner::Present
        })
        .await;
    }
    let waiting = states.contains(&Owner::Waiting);
    let has_dependents = !registry.store.dependents(object::uid(&object)).is_empty();
    let policy = match () {
        () if object::finalizers(&object).contains(&ORPHAN) => "Orphan",
        () if waiting && has_dependents => "Foreground",
        () => "Background",
    };
    delete(registry, &target, &object, policy).await
}

/// Removes the finalizers `foregroundDeletion` and `orphan` from an object once its blocking
/// dependents have been deleted or its dependents have been orphaned.
pub(super) async fn release_owner(registry: &Registry, resource: &str, key: &Key) -> ApiResult<()> {
    let Some(object) = registry.store.get(resource, key) else {
        return Ok(());
    };
    let Some(target) = target(registry, resource, key) else {
        return Ok(());
    };
    if !object::is_deleting(&object) {
        return Ok(());
    }
    let uid = object::uid(&object);
    let finalizers = object::finalizers(&object);
    let dependents = registry.store.dependents(uid);
    if finalizers.contains(&ORPHAN) {
        for (resource, dependent) in &dependents {
            if let Some(target) = self::target(registry, resource, &Key::of(dependent)) {
                retain_owners(registry, &target, |owner| {
                    object::text(owner, &["uid"]) != uid
                })
                .await?;
            }
        }
        return remove_finalizer(registry, &target, ORPHAN).await;
    }
    if finalizers.contains(&FOREGROUND) {
        for (resource, dependent) in &dependents {
            check_dependent(registry, resource, &Key::of(dependent)).await?;
        }
        let owns_object = |dependent: &Value| {
            object::items(&object, &["metadata", "ownerReferences"])
                .iter()
                .any(|owner| object::text(owner, &["uid"]) == object::uid(dependent))
        };
        let blocks = |dependent: &Value| {
            // Two objects that wait for each other would never be deleted.
            if owns_object(dependent) && object::finalizers(dependent).contains(&FOREGROUND) {
                return false;
            }
            object::items(dependent, &["metadata", "ownerReferences"])
                .iter()
                .any(|owner| {
                    object::text(owner, &["uid"]) == uid
                        && object::at(owner, &["blockOwnerDeletion"]) == &json!(true)
                })
        };
        let blocked = registry
            .store
            .dependents(uid)
            .iter()
            .any(|(_, object)| blocks(object));
        if !blocked {
            return remove_finalizer(registry, &target, FOREGROUND).await;
        }
    }
    Ok(())
}

/// Removes one finalizer from an object.
pub(super) async fn remove_finalizer(
    registry: &Registry,
    target: &Target,
    finalizer: &str,
) -> ApiResult<()> {
    registry
        .modify(target, &mut Write::by(MANAGER), |live| {
            let mut new = live.clone();
            let kept: Vec<&str> = object::finalizers(live)
                .into_iter()
                .filter(|f| *f != finalizer)
                .collect();
            object::set_meta(&mut new, "finalizers", json!(kept));
            Ok(new)
        })
        .await?;
    Ok(())
}

/// Deletes the object with this UID. A newer object with the same name is not deleted.
pub(super) async fn delete(
    registry: &Registry,
    target: &Target,
    object: &Value,
    policy: &str,
) -> ApiResult<()> {
    let options = DeleteOptions {
        propagation_policy: Some(policy.to_owned()),
        preconditions: Some(Preconditions {
            uid: Some(object::uid(object).to_owned()),
            resource_version: None,
        }),
        ..DeleteOptions::default()
    };
    registry
        .delete(target, &options, &Write::by(MANAGER))
        .await
        .map(|_| ())
}

/// Returns a request target for a stored object, in any API version in which its kind is served.
pub(super) fn target(registry: &Registry, resource: &str, key: &Key) -> Option<Target> {
    let kind = registry.kind_stored(resource)?;
    Some(Target::new(&kind, &key.namespace, &key.name))
}

/// The state of an owner.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Owner {
    Present,
    Absent,
    /// The owner is being deleted in the foreground, and waits for its dependents.
    Waiting,
}

/// Returns the state of the object to which the owner reference `owner` points. An object in
/// another namespace, or with another name than the reference has, counts as absent. As in
/// Kubernetes, a namespaced owner of a cluster-scoped object counts as present, because such a
/// reference cannot be checked.
fn look_up(registry: &Registry, owner: &Value, dependent: &Key) -> Owner {
    let Some((_, found)) = registry.store.by_uid(object::text(owner, &["uid"])) else {
        return Owner::Absent;
    };
    let namespace = object::namespace(&found);
    if !namespace.is_empty() && dependent.namespace.is_empty() {
        return Owner::Present;
    }
    let elsewhere = !namespace.is_empty() && namespace != dependent.namespace;
    if elsewhere || object::name(&found) != object::text(owner, &["name"]) {
        return Owner::Absent;
    }
    if object::is_deleting(&found) && object::finalizers(&found).contains(&FOREGROUND) {
        return Owner::Waiting;
    }
    Owner::Present
}

/// Removes from an object the owner references for which `keep` returns false.
async fn retain_owners(
    registry: &Registry,
    target: &Target,
    keep: impl Fn(&Value) -> bool + Sync,
) -> ApiResult<()> {
    registry
        .modify(target, &mut Write::by(MANAGER), |live| {
            let owners = object::items(live, &["metadata", "ownerReferences"]).iter();
            let kept: Vec<&Value> = owners.filter(|owner| keep(owner)).collect();
            let mut new = live.clone();
            let kept = if kept.is_empty() {
                Value::Null
            } else {
                json!(kept)
            };
            object::set_meta(&mut new, "ownerReferences", kept);
            Ok(new)
        })
        .await?;
    Ok(())
}
