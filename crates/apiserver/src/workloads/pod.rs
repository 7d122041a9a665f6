//! Controller of Pods: schedules each Pod to the only node, marks the Pod as running immediately,
//! and removes a Pod as soon as it is deleted.

use serde_json::{Value, json};

use super::{EventContent, record_event, set_status};
use crate::object;
use crate::registry::{DeleteOptions, Registry, Write};
use crate::status::ApiResult;
use crate::store::Key;
use crate::target::Target;

/// The name of the node on which every pod runs.
pub(crate) const NODE: &str = "opkit-node";
const HOST_IP: &str = "127.0.0.1";

pub(crate) fn step(registry: &Registry, key: &Key) -> ApiResult<()> {
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
            registry.delete(&target, &options, &Write::by("kubelet"))?;
        }
        return Ok(());
    }
    if object::text(&pod, &["spec", "nodeName"]).is_empty() {
        return schedule(registry, &target, &pod);
    }
    if object::text(&pod, &["status", "phase"]) == "Pending" {
        let address = registry.random.next();
        let status = running(&pod, &registry.clock.now_rfc3339(), address);
        set_status(registry, "", "pods", key, "kubelet", &status)?;
        for container in object::items(&pod, &["spec", "containers"]) {
            let name = object::text(container, &["name"]);
            let image = object::text(container, &["image"]);
            let say = |reason, message| {
                record_event(
                    registry,
                    &pod,
                    &EventContent {
                        component: "kubelet",
                        reason,
                        message,
                    },
                );
            };
            say(
                "Pulled",
                format!("Container image {image:?} already present on machine"),
            );
            say("Created", format!("Container created: {name}"));
            say("Started", format!("Container started: {name}"));
        }
    }
    Ok(())
}

fn schedule(registry: &Registry, target: &Target, pod: &Value) -> ApiResult<()> {
    let binding = target.clone().subresource("binding");
    let now = registry.clock.now_rfc3339();
    registry.modify(&binding, &mut Write::by("kube-scheduler"), |live| {
        let mut new = live.clone();
        object::set(&mut new, &["spec", "nodeName"], json!(NODE));
        object::set(
            &mut new,
            &["status"],
            json!({
                "phase": "Pending", "qosClass": qos_class(live),
                "conditions": [condition("PodScheduled", &now)],
            }),
        );
        Ok(new)
    })?;
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
    );
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
        .map(|container| {
            let image = object::text(container, &["image"]);
            json!({
                "name": object::text(container, &["name"]), "image": image, "imageID": image,
                "containerID": format!("opkit://{}", object::uid(pod)),
                "ready": true, "started": true, "restartCount": 0, "lastState": {},
                "state": {"running": {"startedAt": now}},
            })
        })
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

/// Returns the quality of service class of a pod, from the resources of its containers.
fn qos_class(pod: &Value) -> &'static str {
    let containers = object::items(pod, &["spec", "containers"]);
    let amounts = |container: &Value, of: &str| {
        object::at(container, &["resources", of])
            .as_object()
            .cloned()
            .unwrap_or_default()
    };
    let asks = |container: &Value| {
        !amounts(container, "requests").is_empty() || !amounts(container, "limits").is_empty()
    };
    let guaranteed = |container: &Value| {
        let (limits, requests) = (amounts(container, "limits"), amounts(container, "requests"));
        ["cpu", "memory"].iter().all(|resource| {
            let limit = limits.get(*resource);
            limit.is_some()
                && requests
                    .get(*resource)
                    .is_none_or(|request| Some(request) == limit)
        })
    };
    if !containers.iter().any(asks) {
        "BestEffort"
    } else if containers.iter().all(guaranteed) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}
