//! Reads and writes of only the metadata of objects.

use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::core::WatchEvent;
use opkit::client::Kind;
use opkit::client::{DeleteOptions, MetadataClient, Patch, VersionMatch};
use opkit::prelude::*;
use serde_json::json;

use super::{client, here, map};

#[opkit::test]
async fn metadata_is_read_and_changed(plane: ControlPlane) -> opkit::Result {
    let typed = client(&plane);
    let created = typed.create(&map("one")).await?;
    let (kind, metadata) = (Kind::of::<ConfigMap>(), MetadataClient::new(plane.client()));
    let found = metadata.get(&kind, "one").await?;
    assert_eq!(found.kind, "PartialObjectMetadata");
    assert_eq!(found.metadata.uid, created.metadata.uid);
    assert_eq!(found.metadata.labels, created.metadata.labels);
    let list = metadata.list(&kind, &here(&plane).labels("of=one")).await?;
    assert_eq!(list.items.len(), 1);

    let from = here(&plane)
        .labels("of")
        .version(list.resource_version(), VersionMatch::default());
    let mut events = metadata.watch(&kind, &from).await?;
    let patch = json!({"metadata": {"labels": {"more": "yes"}}});
    let patched = metadata.patch(&kind, "one", Patch::Merge(&patch)).await?;
    assert_eq!(patched.metadata.labels.unwrap()["more"], "yes");
    let event = tokio::time::timeout(Duration::from_secs(20), events.next()).await?;
    match event.expect("the watch continues")? {
        WatchEvent::Modified(found) => {
            assert_eq!(found.kind, "PartialObjectMetadata");
            assert_eq!(found.metadata.labels.unwrap()["more"], "yes");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(typed.get::<ConfigMap>("one").await?.data, created.data);
    metadata
        .delete(&kind, "one", &DeleteOptions::default())
        .await?;
    assert!(metadata.get(&kind, "one").await.unwrap_err().is_not_found());
    let namespace = metadata
        .get(&Kind::of::<Namespace>(), plane.namespace())
        .await?;
    assert_eq!(namespace.metadata.name.as_deref(), Some(plane.namespace()));
    Ok(())
}
