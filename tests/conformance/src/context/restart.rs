//! `cx.apply` after a restart of the operator, which has lost all state in memory.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, LimitRange, Secret, Service};
use opkit::prelude::*;
use serde_json::{Value, json};

use super::{Rig, data, merge, object, secret};

/// Returns a Deployment with ports, quantities and empty values, which a server completes, rewrites
/// and omits.
fn deployment(replicas: Option<i32>) -> Deployment {
    let labels = json!({"app": "robot"});
    object(json!({
        "metadata": {"name": "child", "labels": labels},
        "spec": {
            "replicas": replicas,
            "paused": false,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "nodeSelector": {},
                    "tolerations": [{"key": "a", "operator": "Exists"}],
                    "volumes": [{"name": "tmp", "emptyDir": {}}],
                    "containers": [{
                        "name": "robot", "image": "nginx:1.27", "command": ["walk", "on"],
                        "env": [{"name": "A", "value": "1000m"}, {"name": "B", "value": ""}],
                        "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}],
                        "resources": {"limits": {"cpu": "1000m", "memory": "0.5Gi"}},
                        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp", "readOnly": false}],
                    }],
                },
            },
        },
    }))
}

fn service() -> Service {
    object(json!({
        "metadata": {"name": "child"},
        "spec": {
            "selector": {"app": "robot"},
            "ports": [
                {"name": "http", "port": 80, "targetPort": "http"},
                {"name": "dns", "port": 53, "protocol": "UDP"},
                {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
            ],
        },
    }))
}

fn limits() -> LimitRange {
    object(json!({
        "metadata": {"name": "child", "finalizers": ["rig.opkit.dev/a", "rig.opkit.dev/b"]},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "1000m", "memory": "1024Mi"}}]},
    }))
}

async fn apply_all(cx: &Context) -> opkit::Result {
    cx.apply(deployment(Some(0))).await?;
    cx.apply(service()).await?;
    cx.apply(limits()).await?;
    cx.apply(secret("child", &[("a", "1"), ("b", "")])).await?;
    Ok(())
}

/// Stops and restarts the operator; returns the context of its next run.
async fn restart(
    rig: Rig<ConfigMap>,
    plane: &ControlPlane,
) -> opkit::Result<(Rig<ConfigMap>, Context)> {
    rig.stop().await?;
    let mut rig = Rig::start(plane).await?;
    let (_, cx) = rig.run().await?;
    rig.writes();
    Ok((rig, cx))
}

#[opkit::test]
async fn a_restart_writes_nothing(plane: ControlPlane) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (_, cx) = rig.run().await?;
    apply_all(&cx).await?;
    drop(cx);
    let (rig, cx) = restart(rig, &plane).await?;
    apply_all(&cx).await?;
    assert_eq!(rig.writes(), [""; 0]);
    // Fields of other managers are ignored.
    drop(cx);
    merge::<Service>(
        &plane,
        "child",
        json!({"metadata": {"labels": {"of": "other"}}}),
    )
    .await?;
    let (rig, cx) = restart(rig, &plane).await?;
    apply_all(&cx).await?;
    assert_eq!(rig.writes(), [""; 0]);
    merge::<LimitRange>(&plane, "child", json!({"metadata": {"finalizers": null}})).await?;
    rig.stop().await
}

#[opkit::test]
async fn drift_while_the_operator_was_stopped_is_corrected(plane: ControlPlane) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (_, cx) = rig.run().await?;
    let expected = || secret("child", &[("a", "1"), ("b", "2")]);
    cx.apply(expected()).await?;
    cx.apply(deployment(Some(0))).await?;
    drop(cx);
    for drift in [
        json!({"data": {"a": "OQ=="}}),
        json!({"data": {"a": null}}),
        json!({"metadata": {"annotations": {super::APPLIED_ANNOTATION: null}}}),
        // A client that changes a field and restores the value becomes its owner.
        json!({"metadata": {"managedFields": [{}]}}),
    ] {
        merge::<Secret>(&plane, "child", drift.clone()).await?;
        let (next, cx) = restart(rig, &plane).await?;
        let child = cx.apply(expected()).await?;
        assert_eq!(data(&child), [("a", "1"), ("b", "2")], "{drift}");
        assert_eq!(next.writes(), ["patch secrets child"], "{drift}");
        rig = next;
    }
    let ports = json!([{"op": "remove", "path": "/spec/template/spec/containers/0/ports/0"}]);
    let api: kube::Api<Deployment> = kube::Api::default_namespaced(plane.client());
    let patch = kube::api::Patch::<Value>::Json(serde_json::from_value(ports)?);
    api.patch("child", &Default::default(), &patch).await?;
    let (rig, cx) = restart(rig, &plane).await?;
    let child = cx.apply(deployment(Some(0))).await?;
    let pod = child.spec.as_ref().unwrap().template.spec.as_ref().unwrap();
    assert_eq!(pod.containers[0].ports.as_ref().unwrap().len(), 2);
    assert_eq!(rig.writes(), ["patch deployments child"]);
    rig.stop().await
}

#[opkit::test]
async fn new_content_after_a_restart_is_applied(plane: ControlPlane) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (_, cx) = rig.run().await?;
    cx.apply(secret("child", &[("a", "1"), ("b", "2")])).await?;
    drop(cx);
    // A changed value.
    let (rig, cx) = restart(rig, &plane).await?;
    let child = cx.apply(secret("child", &[("a", "1"), ("b", "3")])).await?;
    assert_eq!(data(&child), [("a", "1"), ("b", "3")]);
    assert_eq!(rig.writes(), ["patch secrets child"]);
    drop(cx);
    // A removed field: all other fields are equal.
    let (rig, cx) = restart(rig, &plane).await?;
    let child = cx.apply(secret("child", &[("b", "3")])).await?;
    assert_eq!(data(&child), [("b", "3")]);
    assert_eq!(rig.writes(), ["patch secrets child"]);
    drop(cx);
    // An added field that another client has already set to the same value.
    merge::<Secret>(&plane, "child", json!({"data": {"c": "NA=="}})).await?;
    let (rig, cx) = restart(rig, &plane).await?;
    cx.apply(secret("child", &[("b", "3"), ("c", "4")])).await?;
    assert_eq!(rig.writes(), ["patch secrets child"]);
    rig.stop().await
}

/// A new release of the operator sets the version 1.1 instead of 1.10: as quantities they are
/// equal.
#[opkit::test]
async fn text_that_parses_as_a_quantity_is_applied_after_a_restart(
    plane: ControlPlane,
) -> opkit::Result {
    let labelled = |version: &str| {
        let mut secret = secret("child", &[("cpu", version)]);
        secret.metadata.labels = Some([("version".into(), version.into())].into());
        secret
    };
    let environment = |version: &str| -> Deployment {
        let mut child = deployment(Some(0));
        let pod = child.spec.as_mut().and_then(|it| it.template.spec.as_mut());
        let robot = &mut pod.unwrap().containers[0];
        robot.env.as_mut().unwrap()[0].value = Some(version.into());
        child
    };
    let mut rig = Rig::start(&plane).await?;
    let (_, cx) = rig.run().await?;
    cx.apply(labelled("1.10")).await?;
    cx.apply(environment("1.10")).await?;
    drop(cx);
    let (rig, cx) = restart(rig, &plane).await?;
    let child = cx.apply(labelled("1.1")).await?;
    assert_eq!(child.labels()["version"], "1.1");
    let child = cx.apply(environment("1.1")).await?;
    let pod = child.spec.as_ref().unwrap().template.spec.as_ref().unwrap();
    let value = &pod.containers[0].env.as_ref().unwrap()[0].value;
    assert_eq!(value.as_deref(), Some("1.1"));
    assert_eq!(
        rig.writes(),
        ["patch secrets child", "patch deployments child"]
    );
    rig.stop().await
}

/// The order of init containers is the order in which they run.
#[opkit::test]
async fn another_order_after_a_restart_is_applied(plane: ControlPlane) -> opkit::Result {
    let ordered = |names: [&str; 2]| -> Deployment {
        let mut child = deployment(Some(0));
        let pod = child.spec.as_mut().and_then(|it| it.template.spec.as_mut());
        let container = |name| object(json!({"name": name, "image": "busybox"}));
        pod.unwrap().init_containers = Some(names.map(container).into());
        child
    };
    let mut rig = Rig::start(&plane).await?;
    let (_, cx) = rig.run().await?;
    cx.apply(ordered(["fetch", "unpack"])).await?;
    drop(cx);
    let (rig, cx) = restart(rig, &plane).await?;
    let child = cx.apply(ordered(["unpack", "fetch"])).await?;
    let pod = child.spec.as_ref().unwrap().template.spec.as_ref().unwrap();
    let names = pod.init_containers.iter().flatten().map(|it| &it.name);
    assert_eq!(names.collect::<Vec<_>>(), ["unpack", "fetch"]);
    assert_eq!(rig.writes(), ["patch deployments child"]);
    drop(cx);
    let (rig, cx) = restart(rig, &plane).await?;
    cx.apply(ordered(["unpack", "fetch"])).await?;
    assert_eq!(rig.writes(), [""; 0]);
    rig.stop().await
}

/// If opkit cannot determine that the content is equal, it sends the request once, and the server
/// finds no change.
#[opkit::test]
async fn an_apply_that_changes_nothing_is_no_write_for_the_server(
    plane: ControlPlane,
) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (_, cx) = rig.run().await?;
    cx.apply(secret("child", &[("a", "1")])).await?;
    let before = plane.get::<Secret>("child").await?.unwrap();
    tokio::time::sleep(Duration::from_millis(1_100)).await; // managedFields has a resolution of one second
    let mut again = secret("child", &[("a", "1")]);
    again.metadata.resource_version = before.metadata.resource_version.clone();
    rig.writes();
    cx.apply(again).await?; // with a version, so it is sent
    assert_eq!(rig.writes(), ["patch secrets child"]);
    assert_eq!(plane.get::<Secret>("child").await?.unwrap(), before);
    rig.stop().await
}
