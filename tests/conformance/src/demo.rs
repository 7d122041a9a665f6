//! The demo operator: a config map whose name may change or be taken, and a finalizer.

use demo_operator::{Demo, DemoSpec, operator};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use opkit::prelude::*;
use serde_json::json;

fn demo(config_map_name: &str) -> Demo {
    let spec = DemoSpec {
        size: 3,
        type_: "small".into(),
        config_map_name: config_map_name.into(),
    };
    Demo::new("demo-one", spec)
}

fn data<'a>(map: &'a ConfigMap, key: &str) -> Option<&'a str> {
    map.data.as_ref()?.get(key).map(String::as_str)
}

/// Returns status and reason of the condition `Ready`, once it belongs to the current spec.
fn ready(demo: &Demo) -> Option<(bool, String)> {
    let status = demo
        .status
        .as_ref()
        .filter(|s| s.observed_generation == demo.metadata.generation)?;
    let condition = status.conditions.get("Ready")?;
    Some((status.conditions.is_true("Ready"), condition.reason.clone()))
}

async fn rename(plane: &ControlPlane, name: &str) -> opkit::Result {
    let api: Api<Demo> = Api::default_namespaced(plane.client());
    let patch = Patch::Merge(json!({"spec": {"configMapName": name}}));
    api.patch("demo-one", &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

#[opkit::test]
async fn the_config_map_follows_the_spec(plane: ControlPlane) -> opkit::Result {
    plane.start(operator()).await?;
    plane.apply(demo("settings")).await?;
    plane
        .eventually("settings", |map: &ConfigMap| data(map, "size") == Some("3"))
        .await?;
    let mut bigger = demo("settings");
    bigger.spec.size = 4;
    plane.apply(bigger).await?;
    plane
        .eventually("settings", |map: &ConfigMap| data(map, "size") == Some("4"))
        .await?;
    Ok(())
}

#[opkit::test]
async fn a_new_name_deletes_the_old_config_map(plane: ControlPlane) -> opkit::Result {
    plane.start(operator()).await?;
    plane.apply(demo("settings")).await?;
    plane.eventually("settings", |_: &ConfigMap| true).await?;
    rename(&plane, "renamed").await?;
    plane
        .eventually("renamed", |map: &ConfigMap| data(map, "size") == Some("3"))
        .await?;
    plane.eventually_gone::<ConfigMap>("settings").await
}

#[opkit::test]
async fn a_taken_name_is_refused_and_used_once_it_is_free(plane: ControlPlane) -> opkit::Result {
    plane.start(operator()).await?;
    let foreign: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": "taken"}, "data": {"a": "b"}}))?;
    let foreign = plane.apply(foreign).await?;
    plane.apply(demo("settings")).await?;
    plane.eventually("settings", |_: &ConfigMap| true).await?;

    rename(&plane, "taken").await?;
    plane
        .eventually("demo-one", |demo: &Demo| {
            ready(demo) == Some((false, "NameTaken".into()))
        })
        .await?;
    let same = plane.get::<ConfigMap>("taken").await?.unwrap();
    assert_eq!(
        same.metadata.resource_version,
        foreign.metadata.resource_version
    );

    plane.delete::<ConfigMap>("taken").await?;
    plane
        .eventually("taken", |map: &ConfigMap| data(map, "size") == Some("3"))
        .await?;
    plane.eventually_gone::<ConfigMap>("settings").await
}

#[opkit::test]
async fn the_finalizer_is_added_before_the_first_child_and_cleans_up(
    plane: ControlPlane,
) -> opkit::Result {
    plane.start(operator()).await?;
    plane.apply(demo("settings")).await?;
    let demo = plane
        .eventually("demo-one", |demo: &Demo| ready(demo).is_some())
        .await?;
    assert_eq!(demo.finalizers(), ["demo.opkit.dev/cleanup"]);
    plane.delete::<Demo>("demo-one").await?;
    plane.eventually_gone::<Demo>("demo-one").await?;
    plane.eventually_gone::<ConfigMap>("settings").await
}
