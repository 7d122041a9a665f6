//! The typed client: every verb, and subresources.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use opkit::client::Kind;
use opkit::client::{DeleteOptions, FieldValidation, Patch, Propagation, retry_on_conflict};
use opkit::prelude::*;
use opkit::testing::Capability;
use serde_json::{Value, json};

use super::{client, map};

#[opkit::test]
async fn an_object_is_created_read_changed_and_deleted(plane: ControlPlane) -> opkit::Result {
    let client = client(&plane);
    assert!(
        client
            .get::<ConfigMap>("one")
            .await
            .unwrap_err()
            .is_not_found()
    );
    assert!(client.get_opt::<ConfigMap>("one").await?.is_none());
    let created = client.create(&map("one")).await?;
    assert_eq!(
        created.metadata.namespace.as_deref(),
        Some(plane.namespace())
    );
    assert!(
        client
            .create(&map("one"))
            .await
            .unwrap_err()
            .is_already_exists()
    );

    let mut newer = created.clone();
    newer.data = Some([("n".to_owned(), "1".to_owned())].into());
    let newer = client.update(&newer).await?;
    assert_ne!(
        newer.metadata.resource_version,
        created.metadata.resource_version
    );
    let error = client.update(&created).await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    assert!(
        error.to_string().starts_with("cannot update ConfigMap "),
        "{error}"
    );

    let found: ConfigMap = client.get("one").await?;
    assert_eq!(found, newer);
    let patch = json!({"data": {"m": "2"}});
    let patched: ConfigMap = client.patch("one", Patch::Merge(&patch)).await?;
    assert_eq!(patched.data.as_ref().unwrap().len(), 2);
    let patch = json!([{"op": "remove", "path": "/data/m"}]);
    let patched: ConfigMap = client.patch("one", Patch::Json(&patch)).await?;
    assert_eq!(patched.data.as_ref().unwrap().len(), 1);

    // An object with the same name and another UID is not deleted.
    let mut other = found.clone();
    other.metadata.uid = Some("00000000-0000-0000-0000-000000000000".to_owned());
    assert!(client.delete(&other).await.unwrap_err().is_conflict());
    client.delete(&found).await?;
    assert!(client.get_opt::<ConfigMap>("one").await?.is_none());
    Ok(())
}

#[opkit::test]
async fn an_apply_owns_its_fields(plane: ControlPlane) -> opkit::Result {
    let client = client(&plane);
    client.apply(&map("one")).await?;
    let mut mine = map("one");
    mine.data = Some([("n".to_owned(), "mine".to_owned())].into());
    let other = client.clone().field_manager("other");
    let error = other.apply(&mine).await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    let taken = other.force().apply(&mine).await?;
    assert_eq!(taken.data.unwrap()["n"], "mine");
    Ok(())
}

#[opkit::test]
async fn a_dry_run_keeps_nothing_and_strict_fields_are_checked(
    plane: ControlPlane,
) -> opkit::Result {
    let client = client(&plane);
    let created = client.clone().dry_run().create(&map("one")).await?;
    assert!(created.metadata.uid.is_some());
    assert!(client.get_opt::<ConfigMap>("one").await?.is_none());

    client.create(&map("one")).await?;
    let patch = json!({"nonsense": 1});
    let strict = client.clone().field_validation(FieldValidation::Strict);
    let refused = strict.patch::<ConfigMap>("one", Patch::Merge(&patch)).await;
    let error = refused.unwrap_err();
    assert!(error.to_string().contains("nonsense"), "{error}");
    Ok(())
}

fn web() -> Deployment {
    serde_json::from_value(json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [
                {"name": "a", "image": "a"}, {"name": "b", "image": "b"}]}}},
    }))
    .unwrap()
}

#[opkit::test]
async fn status_and_scale_are_written_separately(plane: ControlPlane) -> opkit::Result {
    let client = client(&plane);
    client.create(&web()).await?;
    let condition =
        json!({"type": "Tested", "status": "True", "reason": "Conformance", "message": "tested"});
    let patch = json!({"spec": {"replicas": 7}, "status": {"conditions": [condition]}});
    let changed: Deployment = client
        .status()
        .patch("web", Patch::Strategic(&patch))
        .await?;
    let conditions = changed.status.unwrap().conditions.unwrap_or_default();
    assert!(conditions.iter().any(|it| it.type_ == "Tested"));
    assert_eq!(
        changed.spec.unwrap().replicas,
        Some(0),
        "a write of the status does not change the spec"
    );

    let scales = client.scale::<Deployment>();
    let expected = |scale: &Scale| scale.spec.as_ref().and_then(|spec| spec.replicas);
    assert_eq!(expected(&scales.get("web").await?).unwrap_or(0), 0);
    scales.set("web", 2).await?;
    retry_on_conflict(async || {
        let mut scale = scales.get("web").await?;
        assert_eq!(expected(&scale), Some(2));
        scale.spec.as_mut().unwrap().replicas = Some(0);
        scales.update(&scale).await
    })
    .await?;
    let after: Deployment = client.get("web").await?;
    assert_eq!(after.spec.unwrap().replicas, Some(0));
    Ok(())
}

#[opkit::test]
async fn a_strategic_patch_knows_the_keys_of_lists(plane: ControlPlane) -> opkit::Result {
    let client = client(&plane);
    client.create(&web()).await?;
    let patch =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "b", "image": "c"}]}}}});
    let patched: Deployment = client.patch("web", Patch::Strategic(&patch)).await?;
    let pod = patched.spec.unwrap().template.spec.unwrap();
    let images: Vec<_> = pod
        .containers
        .iter()
        .map(|it| it.image.as_deref().unwrap())
        .collect();
    assert_eq!(images.len(), 2);
    assert!(images.contains(&"a") && images.contains(&"c"), "{images:?}");
    let options = DeleteOptions::default();
    client.delete_with::<Deployment>("web", &options).await?;
    Ok(())
}

#[opkit::test]
async fn preconditions_and_propagation_are_sent(plane: ControlPlane) -> opkit::Result {
    let client = client(&plane);
    let created = client.create(&map("one")).await?;
    let mut options = DeleteOptions::default();
    options.resource_version = Some("1".to_owned());
    options.propagation = Some(Propagation::Background);
    let error = client
        .delete_with::<ConfigMap>("one", &options)
        .await
        .unwrap_err();
    assert!(error.is_conflict(), "{error}");
    options.resource_version = created.metadata.resource_version;
    client.delete_with::<ConfigMap>("one", &options).await?;
    Ok(())
}

#[opkit::test]
async fn a_pod_is_evicted(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::Eviction)?;
    // kube-controller-manager creates the service account that a pod needs.
    plane.require(Capability::ControllerManager)?;
    let client = client(&plane);
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "one"},
        "spec": {"containers": [{"name": "a", "image": "a"}]},
    }))?;
    super::eventually(async || match client.create(&pod).await {
        Ok(_) => Ok(Some(())),
        // The service account may not exist yet.
        Err(error) if error.is_forbidden() => Ok(None),
        Err(error) => Err(error.into()),
    })
    .await?;
    let mut options = DeleteOptions::default();
    options.grace_period_seconds = Some(0);
    client.evict("one", &options).await?;
    plane.eventually_gone::<Pod>("one").await?;
    let error = client.evict("one", &options).await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
    Ok(())
}

#[opkit::test]
async fn concurrent_writers_all_succeed(plane: ControlPlane) -> opkit::Result {
    let client = client(&plane);
    client.create(&map("counter")).await?;
    let backoff = opkit::client::Backoff {
        steps: 100,
        jitter: 1.0,
        ..opkit::client::Backoff::DEFAULT_RETRY
    };
    let writer = async || {
        for _ in 0..5 {
            opkit::client::retry_on_conflict_with(backoff, async || {
                let mut counter: ConfigMap = client.get("counter").await?;
                let data = counter.data.get_or_insert_default();
                let count: u32 = data["n"].parse().unwrap_or_default();
                data.insert("n".to_owned(), (count + 1).to_string());
                client.update(&counter).await
            })
            .await?;
        }
        Ok::<_, opkit::Error>(())
    };
    let (a, b, c) = tokio::join!(writer(), writer(), writer());
    a.and(b).and(c)?;
    let counter: ConfigMap = client.get("counter").await?;
    assert_eq!(counter.data.unwrap()["n"], "15");
    Ok(())
}

/// Removes empty objects, which JSON contains if Go has a value and not a pointer.
fn without_empty(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields
                .into_iter()
                .map(|(name, value)| (name, without_empty(value)));
            fields.filter(|(_, value)| *value != json!({})).collect()
        }
        Value::Array(items) => items.into_iter().map(without_empty).collect(),
        other => other,
    }
}

#[opkit::test]
async fn protobuf_and_json_decode_to_the_same_object(plane: ControlPlane) -> opkit::Result {
    let client = client(&plane);
    let created = client.create(&web()).await?;
    let kind = Kind::of::<Deployment>();
    let key = ObjectKey::from((plane.namespace(), "web"));
    // The Deployment's controller may write in between.
    let (compact, plain) = super::eventually(async || {
        let plain = client.rest().get(&kind, &key).await?;
        let plain: Value = serde_json::from_slice(&plain)?;
        let compact: Deployment = client.get(key.clone()).await?;
        let version = plain.pointer("/metadata/resourceVersion");
        let same = version.and_then(Value::as_str) == compact.metadata.resource_version.as_deref();
        Ok(same.then_some((compact, plain)))
    })
    .await?;
    assert_eq!(compact.metadata.uid, created.metadata.uid);
    let compact = serde_json::to_value(&compact)?;
    assert_eq!(without_empty(compact), without_empty(plain));
    Ok(())
}
