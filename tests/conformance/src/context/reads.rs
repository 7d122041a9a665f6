//! `cx.get`, `cx.list` and `cx.live`.

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use opkit::prelude::*;
use serde_json::json;

use super::{Rig, data, merge, secret};

#[opkit::test]
async fn own_writes_are_read_immediately(plane: ControlPlane) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (_, cx) = rig.run().await?;
    for round in 0..20 {
        let name = format!("child-{round}");
        let applied = cx.apply(secret(&name, &[("a", "1")])).await?;
        let read = cx.get::<Secret>(&name)?.unwrap();
        assert_eq!(
            read.metadata.resource_version,
            applied.metadata.resource_version
        );
        cx.apply(secret(&name, &[("a", "2")])).await?;
        let listed = cx.list::<Secret>(())?;
        let listed = listed.iter().find(|secret| secret.name_any() == name);
        assert_eq!(data(listed.unwrap()), [("a", "2")]);
        assert_eq!(cx.children::<Secret>()?.len(), 1);
        let read = cx.get::<Secret>(&name)?.unwrap();
        cx.delete(&read).await?;
        assert!(cx.get::<Secret>(&name)?.is_none());
        assert!(cx.list::<Secret>(())?.is_empty());
    }
    rig.stop().await
}

#[opkit::test]
async fn a_key_is_a_name_or_namespace_and_name(plane: ControlPlane) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (owner, cx) = rig.run().await?;
    let here = plane.namespace();
    let name = |map: Option<Arc<ConfigMap>>| map.map(|map| map.name_any());
    assert_eq!(name(cx.get::<ConfigMap>("owner")?), Some(owner.name_any()));
    assert_eq!(
        name(cx.get::<ConfigMap>((here, "owner"))?),
        Some(owner.name_any())
    );
    assert_eq!(name(cx.get::<ConfigMap>(("elsewhere", "owner"))?), None);
    assert_eq!(name(cx.get::<ConfigMap>("none")?), None);
    let live = cx.live();
    assert_eq!(
        name(live.get::<ConfigMap>("owner").await?),
        Some(owner.name_any())
    );
    assert_eq!(
        name(live.get::<ConfigMap>((here, "owner")).await?),
        Some(owner.name_any())
    );
    assert_eq!(
        name(live.get::<ConfigMap>(("elsewhere", "owner")).await?),
        None
    );
    assert_eq!(name(live.get::<ConfigMap>("none").await?), None);
    rig.stop().await
}

#[opkit::test]
async fn an_undeclared_kind_is_an_error_with_the_declaration_to_add(
    plane: ControlPlane,
) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (_, cx) = rig.run().await?;
    let want = "controller configmap does not cache the kind Pod: declare it with .owns::<Pod>() or .watches::<Pod>(..), or read from the server with .live()";
    assert_eq!(cx.get::<Pod>("one").unwrap_err().to_string(), want);
    assert_eq!(cx.list::<Pod>(()).unwrap_err().to_string(), want);
    assert!(cx.live().get::<Pod>("one").await?.is_none());
    rig.stop().await
}

#[opkit::test]
async fn live_reads_ask_the_server(plane: ControlPlane) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (owner, cx) = rig.run().await?;
    cx.apply(secret("child", &[("a", "1")])).await?;
    let labelled = json!({"metadata": {"labels": {"colour": "red"}}, "data": {"b": "Mg=="}});
    let written = merge::<Secret>(&plane, "child", labelled).await?;
    let live = cx.live().get::<Secret>("child").await?.unwrap();
    assert_eq!(
        live.metadata.resource_version,
        written.metadata.resource_version
    );

    plane.apply(secret("other", &[])).await?;
    let names = |secrets: Vec<Arc<Secret>>| -> Vec<_> {
        secrets.iter().map(|secret| secret.name_any()).collect()
    };
    let red = kube::core::Selector::from_iter([kube::core::Expression::Equal(
        "colour".into(),
        "red".into(),
    )]);
    assert_eq!(
        names(cx.live().list::<Secret>(()).await?),
        ["child", "other"]
    );
    assert_eq!(names(cx.live().list::<Secret>(red).await?), ["child"]);
    let owned = Selection::default().owned_by(owner.metadata.uid.clone().unwrap());
    assert_eq!(names(cx.live().list::<Secret>(owned).await?), ["child"]);
    let elsewhere = Selection::default().namespace("elsewhere");
    assert_eq!(names(cx.live().list::<Secret>(elsewhere).await?), [""; 0]);
    let indexed = Selection::default().by_index("colour", "red");
    let error = cx.live().list::<Secret>(indexed).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot list Secret live by the index \"colour\": the server has no indexes, use labels"
    );
    rig.stop().await
}
