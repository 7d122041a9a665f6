//! Controller of Pods: schedules each Pod to the only node, marks the Pod as running immediately,
//! and removes a Pod as soon as it is deleted.

use serde_json::{Value, json};

use super::{EventContent, record_event, set_status};
use crate::object;
use crate::registry::{Binding, DeleteOptions, Registry, Write};
use crate::status::ApiResult;
use crate::store::Key;
use crate::target::Target;

/// The name of the node on which every pod runs.
pub(crate) const NODE: &str = "opkit-node";
const HOST_IP: &str = "127.0.0.1";

pub(crate) async fn step(registry: &Registry, key: &Key) -> ApiResult<()> {
    let Some(pod) = registry.store.get("pods", key) else {
        return Ok(());
    };
    let kind = registry.builtin("", "pods")?;
    let target = Target::new(&kind, &key.namespace, &key.name);
    if object::is_deleting(&pod) {
        if object::finalizers(&pod).is_empty()
            || object::int(&pod, &["metadata", "deletionGracePeriodSeconds"]) > 0
        {
            let options = DeleteOptions {
                grace_period_seconds: Some(0),
                ..DeleteOptions::default()
            };
            registry
                .delete(&target, &options, &Write::by("kubelet"))
                .await?;
        }
        return Ok(());
    }
    if !object::items(&pod, &["spec", "schedulingGates"]).is_empty() {
        return Ok(());
    }
    if object::text(&pod, &["spec", "nodeName"]).is_empty() {
        return schedule(registry, &target, &pod).await;
    }
    if object::text(&pod, &["status", "phase"]) == "Pending" {
        let address = registry.random.next();
        let status = running(&pod, &registry.clock.now_rfc3339(), address);
        set_status(registry, "", "pods", key, "kubelet", &status).await?;
        for container in object::items(&pod, &["spec", "containers"]) {
            let name = object::text(container, &["name"]);
            let image = object::text(container, &["image"]);
            let say = async |reason, message| {
                record_event(
                    registry,
                    &pod,
                    &EventContent {
                        component: "kubelet",
                        reason,
                        message,
                    },
                )
                .await;
            };
            say(
                "Pulled",
                format!("Container image {image:?} already present on machine"),
            )
            .await;
            say("Created", format!("Container created: {name}")).await;
            say("Started", format!("Container started: {name}")).await;
        }
    } else if object::text(&pod, &["status", "phase"]) == "Running" {
        let status = followed(&pod, &registry.clock.now_rfc3339());
        let is_current = status
            .as_object()
            .into_iter()
            .flatten()
            .all(|(field, value)| object::at(&pod, &["status", field]) == value);
        if !is_current {
            set_status(registry, "", "pods", key, "kubelet", &status).await?;
        }
    }
    Ok(())
}

/// Returns the fields of a running pod's status that follow its spec: the resources of containers
/// after a resize, and ephemeral containers.
fn followed(pod: &Value, now: &str) -> Value {
    let mut statuses = object::items(pod, &["status", "containerStatuses"]).to_vec();
    for status in &mut statuses {
        let containers = object::items(pod, &["spec", "containers"]).iter();
        let mut own = containers.filter(|container| container.get("name") == status.get("name"));
        if let Some(container) = own.next() {
            let resources = object::at(container, &["resources"]).clone();
            object::set(status, &["resources"], resources);
        }
    }
    let mut status = json!({});
    if !statuses.is_empty() {
        object::set_field(&mut status, "containerStatuses", json!(statuses));
    }
    let ephemeral = object::items(pod, &["spec", "ephemeralContainers"]);
    if !ephemeral.is_empty() {
        let known = object::items(pod, &["status", "ephemeralContainerStatuses"]);
        let statuses = ephemeral.iter().map(|container| {
            let mut known = known.iter();
            let own = known.find(|status| status.get("name") == container.get("name"));
            own.cloned().unwrap_or_else(|| {
                let mut status = container_status(pod, container, now);
                object::set_field(&mut status, "ready", json!(false));
                object::set(&mut status, &["started"], Value::Null);
                status
            })
        });
        let statuses: Vec<Value> = statuses.collect();
        object::set_field(&mut status, "ephemeralContainerStatuses", json!(statuses));
    }
    status
}

/// Returns the status of a container that runs.
fn container_status(pod: &Value, container: &Value, now: &str) -> Value {
    let image = object::text(container, &["image"]);
    let mut status = json!({
        "name": object::text(container, &["name"]), "image": image, "imageID": image,
        "containerID": format!("opkit://{}", object::uid(pod)),
        "ready": true, "started": true, "restartCount": 0, "lastState": {},
        "state": {"running": {"startedAt": now}},
    });
    let resources = object::at(container, &["resources"]).clone();
    object::set(&mut status, &["resources"], resources);
    status
}

async fn schedule(registry: &Registry, target: &Target, pod: &Value) -> ApiResult<()> {
    registry.bind(target, &Binding::to(NODE), false).await?;
    let message = format!(
        "Successfully assigned {}/{} to {NODE}",
        object::namespace(pod),
        object::name(pod)
    );
    let component = "default-scheduler";
    record_event(
        registry,
        pod,
        &EventContent {
            component,
            reason: "Scheduled",
            message,
        },
    )
    .await;
    Ok(())
}

/// Returns the status of a pod whose containers all run.
fn running(pod: &Value, now: &str, address: u64) -> Value {
    let ip = format!(
        "10.244.{}.{}",
        (address >> 8) & 0xff,
        (address & 0xff).clamp(2, 254)
    );
    let statuses: Vec<Value> = object::items(pod, &["spec", "containers"])
        .iter()
        .map(|container| container_status(pod, container, now))
        .collect();
    let conditions: Vec<Value> = [
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    ]
    .map(|type_| condition(type_, now))
    .to_vec();
    json!({
        "phase": "Running", "startTime": now, "podIP": ip, "podIPs": [{"ip": ip}],
        "hostIP": HOST_IP, "hostIPs": [{"ip": HOST_IP}],
        "observedGeneration": object::int(pod, &["metadata", "generation"]),
        "conditions": conditions, "containerStatuses": statuses,
    })
}

fn condition(type_: &str, now: &str) -> Value {
    json!({"type": type_, "status": "True", "lastProbeTime": null, "lastTransitionTime": now})
}
