//! Kinds that are known only at run time.

use futures::StreamExt;
use kube::core::WatchEvent;
use opkit::client::{
    DeleteOptions, DynamicClient, GroupVersionResource, Kind, Patch, RestMapper, ScaleClient,
    Unstructured, VersionMatch, WriteOptions,
};
use opkit::prelude::*;
use serde_json::json;

use super::{here, install_gadgets, remove_gadgets};

#[opkit::test]
async fn a_custom_resource_needs_no_type(plane: ControlPlane) -> opkit::Result {
    let group = install_gadgets(&plane).await?;
    let mapper = RestMapper::new(plane.client());
    let resource =
        super::eventually(async || Ok(mapper.kind(&group, "Gadget", None).await.ok())).await?;
    assert!(resource.has_subresource("status"));
    let kind = resource.kind();
    let mut options = WriteOptions::default();
    options.field_manager = Some("conformance".to_owned());
    let gadgets = DynamicClient::new(plane.client())
        .with(options)
        .resource(resource);

    let mut gadget = Unstructured::new(&kind, (plane.namespace(), "one"));
    gadget.set(&["spec", "size"], 3)?;
    gadget.set_label("a", "b");
    // Discovery may list the kind before the server serves it.
    let created = super::eventually(async || match gadgets.create(&gadget).await {
        Err(error) if error.is_not_found() => Ok(None),
        created => Ok(Some(created?)),
    })
    .await?;
    assert!(!created.uid().is_empty());
    assert_eq!(created.generation(), Some(1));

    let list = gadgets.list(&here(&plane).labels("a=b")).await?;
    let from = here(&plane).version(list.resource_version(), VersionMatch::default());
    let mut events = gadgets.watch(&from).await?;
    let status =
        json!({"status": {"size": 3, "conditions": [{"type": "Ready", "status": "True"}]}});
    let ready = gadgets
        .subresource("status")
        .patch("one", Patch::Merge(&status))
        .await?;
    assert_eq!(ready.condition("Ready"), Some("True"));
    assert_eq!(ready.generation(), Some(1));
    let event = tokio::time::timeout(Duration::from_secs(20), events.next()).await?;
    match event.expect("the watch continues")? {
        WatchEvent::Modified(gadget) => assert_eq!(gadget.condition("Ready"), Some("True")),
        other => panic!("{other:?}"),
    }

    let scales = ScaleClient::new(plane.client(), kind.clone());
    let scale = scales.get("one").await?;
    assert_eq!(scale.status.unwrap().replicas, 3);
    scales.set("one", 5).await?;
    let mut bigger = gadgets.get("one").await?;
    assert_eq!(bigger.get_i64(&["spec", "size"]), Some(5));
    bigger.set(&["spec", "size"], 6)?;
    assert_eq!(
        gadgets.update(&bigger).await?.get_i64(&["spec", "size"]),
        Some(6)
    );
    let mut applied = Unstructured::new(&kind, "two");
    applied.set(&["spec", "size"], 1)?;
    gadgets.apply(&applied).await?;
    assert_eq!(
        gadgets.list_all(&here(&plane).limit(1)).await?.items.len(),
        2
    );

    gadgets.delete("one", &DeleteOptions::default()).await?;
    gadgets
        .delete_all(&here(&plane), &DeleteOptions::default())
        .await?;
    assert!(gadgets.list(&here(&plane)).await?.items.is_empty());
    remove_gadgets(&plane, &group).await
}

#[opkit::test]
async fn a_built_in_kind_is_unstructured_as_well(plane: ControlPlane) -> opkit::Result {
    let mapper = RestMapper::new(plane.client());
    let resource = GroupVersionResource::new("", "v1", "configmaps");
    let bare = DynamicClient::new(plane.client()).resource(Kind::at(&resource, true));
    let error = bare.get("one").await.unwrap_err();
    assert!(
        error.is_not_found() && error.to_string().starts_with("cannot get configmaps "),
        "{error}"
    );
    let maps = DynamicClient::new(plane.client()).resource(mapper.resource("cm").await?);
    let created = Unstructured::from(json!({"metadata": {"name": "one"}, "data": {"a": "b"}}));
    maps.create(&created).await?;
    let list = maps.list(&here(&plane).fields("metadata.name=one")).await?;
    let found = list.items.first().expect("the map is listed");
    assert_eq!((found.api_version(), found.kind()), ("v1", "ConfigMap"));
    assert_eq!(found.get_str(&["data", "a"]), Some("b"));
    Ok(())
}
