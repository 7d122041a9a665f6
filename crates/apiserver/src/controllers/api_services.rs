//! The APIServices of the group versions that this server serves itself.
//!
//! Those of built-in groups are created at the start, and then left to the clients, as in
//! Kubernetes. Those of CRDs are created and deleted with the CRDs, and a change that a client
//! makes to one of them is reverted.

use serde_json::{Value, json};

use super::{MANAGED, garbage};
use crate::aggregator::API_SERVICES;
use crate::kinds::Catalog;
use crate::object;
use crate::registry::Registry;
use crate::status::ApiResult;
use crate::store::{Event, Key};

/// The field manager of these APIServices.
const MANAGER: &str = "kube-apiserver";
const GROUP: &str = "apiregistration.k8s.io";
/// The value of the label [`MANAGED`] of the APIServices of CRDs.
const OF_CRDS: &str = "true";

/// Returns the APIServices of the group versions that a CRD serves now or served before.
pub(super) fn of_definition(event: &Event) -> Vec<Key> {
    let mut keys: Vec<Key> = Vec::new();
    for crd in event.versions() {
        let group = object::text(&crd, &["spec", "group"]);
        for version in object::items(&crd, &["spec", "versions"]) {
            let name = object::text(version, &["name"]);
            keys.push(Key::new("", format!("{name}.{group}")));
        }
    }
    keys.sort();
    keys.dedup();
    keys
}

/// Creates, reverts or deletes the APIService of a group version of CRDs. An APIService that a
/// client has created, or that belongs to a built-in group, is left alone.
pub(super) async fn step(registry: &Registry, key: &Key) -> ApiResult<()> {
    let Some((version, group)) = key.name.split_once('.') else {
        return Ok(());
    };
    let served = registry
        .catalog
        .find(|kind| kind.is_custom() && kind.group == group && kind.version == version);
    let desired = served.map(|_| desired(group, version, OF_CRDS));
    let Some(live) = registry.store.get(API_SERVICES, key) else {
        return match desired {
            Some(desired) => {
                registry
                    .ensure(GROUP, "apiservices", &desired, MANAGER)
                    .await
            }
            None => Ok(()),
        };
    };
    let managed = object::labels(&live).and_then(|labels| labels.get(MANAGED));
    if managed.and_then(Value::as_str) != Some(OF_CRDS) {
        return Ok(());
    }
    match desired {
        Some(desired) if object::at(&live, &["spec"]) == object::at(&desired, &["spec"]) => Ok(()),
        Some(desired) => {
            registry
                .overwrite(GROUP, "apiservices", &desired, MANAGER)
                .await
        }
        None => match garbage::target(registry, API_SERVICES, key) {
            Some(target) => garbage::delete(registry, &target, &live, "Background").await,
            None => Ok(()),
        },
    }
}

/// Returns the APIService of a group version that this server serves itself. `managed` is the
/// value of its label: `onstart` for built-in groups, `true` for CRDs.
pub(crate) fn desired(group: &str, version: &str, managed: &str) -> Value {
    let (group_priority, version_priority) = Catalog::priorities(group, version);
    let mut spec = json!({
        "version": version,
        "groupPriorityMinimum": group_priority,
        "versionPriority": version_priority,
    });
    if !group.is_empty() {
        object::set_field(&mut spec, "group", json!(group));
    }
    json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": format!("{version}.{group}"), "labels": {MANAGED: managed}},
        "spec": spec,
    })
}
