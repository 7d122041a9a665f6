//! Defaults in the schema of a custom resource, including empty ones.

use opkit::client::{DynamicClient, GroupVersionResource, Kind, Unstructured};
use serde_json::Value;

use super::*;

/// Returns a CRD whose properties have these defaults.
fn definition(group: &str, defaults: &Value) -> opkit::Result<CustomResourceDefinition> {
    let list = json!({"type": "array", "items": {"type": "string"}});
    let mut spec = json!({"type": "object", "default": {}, "properties": {
        "list": list, "items": list,
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "number": {"type": "integer"}, "text": {"type": "string"}, "flag": {"type": "boolean"},
        "nested": {"type": "object", "properties": {"list": list}},
    }});
    for (name, default) in defaults.as_object().into_iter().flatten() {
        spec["properties"][name]["default"] = default.clone();
    }
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    Ok(serde_json::from_value(json!({
        "metadata": {"name": format!("gizmos.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "gizmos", "singular": "gizmo", "kind": "Gizmo", "listKind": "GizmoList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}}],
        },
    }))?)
}

#[opkit::test]
async fn an_empty_default_is_a_default(plane: ControlPlane) -> opkit::Result {
    let client = client(&plane);
    let group = format!("{}.defaults.opkit.dev", plane.namespace());
    let defaults = json!({
        "list": [], "map": {}, "number": 0, "text": "", "flag": false, "items": ["a"],
        "nested": {"list": []},
    });
    let crd = definition(&group, &defaults)?;
    client.apply(&crd).await?;
    // The status is written in the background; applying the same content again does not change the
    // object.
    eventually(async || {
        let before = client.get::<CustomResourceDefinition>(format!("gizmos.{group}"));
        let before = before.await?.metadata.resource_version;
        let after = client.apply(&crd).await?.metadata.resource_version;
        Ok((before == after).then_some(()))
    })
    .await?;

    let kind = Kind {
        kind: "Gizmo".to_owned(),
        ..Kind::at(&GroupVersionResource::new(&group, "v1", "gizmos"), true)
    };
    let gizmos = DynamicClient::new(plane.client()).resource(kind.clone());
    let gizmo = Unstructured::new(&kind, "one");
    let created = eventually(async || match gizmos.create(&gizmo).await {
        Ok(created) => Ok(Some(created)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    })
    .await?;
    assert_eq!(created.get(&["spec"]), Some(&defaults));
    let name = format!("gizmos.{group}");
    client
        .delete_with::<CustomResourceDefinition>(name, &DeleteOptions::default())
        .await?;
    Ok(())
}
