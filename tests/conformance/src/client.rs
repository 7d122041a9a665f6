//! Clients, discovery, the HTTP stack and the seam.

mod connections;
mod defaults;
mod discovery;
mod dynamic;
mod lists;
mod metadata;
mod paths;
mod seam;
mod sizes;
mod transport;
mod typed;
mod websocket;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use opkit::client::{Client, DeleteOptions, ListOptions};
use opkit::prelude::*;
use serde_json::json;

/// Returns a config map with some data and a label.
fn map(name: &str) -> ConfigMap {
    let map = json!({"metadata": {"name": name, "labels": {"of": name}}, "data": {"n": "0"}});
    serde_json::from_value(map).unwrap()
}

fn client(plane: &ControlPlane) -> Client {
    Client::new(plane.client()).field_manager("conformance")
}

/// Returns list options for the namespace of the test.
fn here(plane: &ControlPlane) -> ListOptions {
    ListOptions::new().in_namespace(plane.namespace())
}

/// Installs a kind in a group that no other test uses, and returns the group. The kind may not be
/// served yet.
async fn install_gadgets(plane: &ControlPlane) -> opkit::Result<String> {
    let group = format!("{}.conformance.opkit.dev", plane.namespace());
    let crd: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": {"name": format!("gadgets.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList",
                "shortNames": [short_name(plane)], "categories": [format!("{}-things", plane.namespace())]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
                    "status": {"type": "object", "properties": {"size": {"type": "integer"},
                        "conditions": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}},
                }}},
            }],
        },
    }))?;
    client(plane).create(&crd).await?;
    Ok(group)
}

fn short_name(plane: &ControlPlane) -> String {
    format!("gd{}", plane.namespace().replace('-', ""))
}

/// Deletes the kind, because a shared control plane only deletes the namespace of the test.
async fn remove_gadgets(plane: &ControlPlane, group: &str) -> opkit::Result {
    let name = format!("gadgets.{group}");
    let client = client(plane);
    client
        .delete_with::<CustomResourceDefinition>(name, &DeleteOptions::default())
        .await?;
    Ok(())
}

/// Calls `look` at intervals until it returns a value: background work of a real server takes time.
async fn eventually<T>(
    mut look: impl AsyncFnMut() -> opkit::Result<Option<T>>,
) -> opkit::Result<T> {
    for _ in 0..400 {
        if let Some(found) = look().await? {
            return Ok(found);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the value does not appear in time");
}
