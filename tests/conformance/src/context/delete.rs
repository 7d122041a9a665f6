//! `cx.delete`: deletes only the version that was read.

use k8s_openapi::api::core::v1::Secret;
use opkit::controller::WriteError;
use opkit::prelude::*;
use serde_json::{Value, json};

use super::{Rig, merge, secret, seen};

#[opkit::test]
async fn the_uid_and_the_version_that_were_read_are_sent(plane: ControlPlane) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (_, cx) = rig.run().await?;
    let child = cx.apply(secret("child", &[])).await?;
    rig.writes();
    cx.delete(&child).await?;
    assert!(
        cx.get::<Secret>("child")?.is_none(),
        "the deletion is read immediately"
    );
    let exchanges = rig.seam.exchanges();
    let delete = exchanges
        .iter()
        .find(|exchange| exchange.info.verb == "delete");
    let body: Value = serde_json::from_slice(&delete.unwrap().body.bytes)?;
    assert_eq!(
        body["preconditions"],
        json!({"uid": child.metadata.uid, "resourceVersion": child.metadata.resource_version})
    );
    plane.eventually_gone::<Secret>("child").await?;
    // An object that is already deleted is not an error.
    cx.delete(&child).await?;
    rig.stop().await
}

#[opkit::test]
async fn an_object_that_changed_or_was_replaced_stays(plane: ControlPlane) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (_, cx) = rig.run().await?;
    let child = cx.apply(secret("child", &[])).await?;
    let changed = merge::<Secret>(&plane, "child", json!({"metadata": {"labels": {"a": "b"}}}));
    let changed = changed.await?;
    let error = Error::from(cx.delete(&child).await.unwrap_err());
    assert!(error.is_conflict(), "{error}");
    assert!(plane.get::<Secret>("child").await?.is_some());

    plane.delete::<Secret>("child").await?;
    let anew = plane.apply(secret("child", &[])).await?;
    let error = Error::from(cx.delete(&Arc::new(changed)).await.unwrap_err());
    assert!(error.is_conflict(), "{error}");
    let stays = plane.get::<Secret>("child").await?.unwrap();
    assert_eq!(stays.metadata.uid, anew.metadata.uid);
    seen(&cx, &stays).await?;
    rig.stop().await
}

#[opkit::test]
async fn an_object_that_was_not_read_is_refused(plane: ControlPlane) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (_, cx) = rig.run().await?;
    cx.apply(secret("child", &[])).await?;
    rig.writes();
    let error = cx
        .delete(&Arc::new(secret("child", &[])))
        .await
        .unwrap_err();
    assert!(matches!(error, WriteError::NotRead { .. }), "{error}");
    assert_eq!(rig.writes(), [""; 0]);
    rig.stop().await
}
