//! Simulation of scheduler and kubelet: one node, on which every pod runs immediately and ends when
//! the pod is deleted.
//!
//! The simulation behaves like the embedded control plane, so that a test is the same on both. No
//! container runs.

use std::hash::{DefaultHasher, Hasher};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Binding, Node, Pod};
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::DeleteParams;
use opkit_client::{
    Kind, ListOptions, ObjectKey, Patch, RequestError, ResponseFormat, RestClient, WriteOptions,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

#[cfg(test)]
mod tests;

/// Node that every pod runs on; the embedded control plane uses the same name.
const NODE: &str = "opkit-node";
const ADDRESS: &str = "127.0.0.1";
/// Field manager of the simulated kubelet's writes.
const MANAGER: &str = "kubelet";
/// Duration of one watch request.
const WATCH: Duration = Duration::from_secs(240);
/// Time between a failed request and the next list.
const PAUSE: Duration = Duration::from_millis(200);

/// Next action for a pod.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Step {
    /// Bind the pod to the node.
    Bind,
    /// Set the pod's status to running.
    Run,
    /// Delete the pod: its containers have ended.
    Finish,
}

/// Creates the node.
pub(crate) async fn register(client: &RestClient) -> Result<(), RequestError> {
    let now = now();
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": NODE, "labels": {"kubernetes.io/hostname": NODE, "kubernetes.io/os": "linux"}},
        "status": {
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "pods run immediately",
                "lastHeartbeatTime": now, "lastTransitionTime": now,
            }],
            "capacity": {"cpu": "64", "memory": "256Gi", "pods": "10000"},
            "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "10000"},
            "addresses": [{"type": "InternalIP", "address": ADDRESS}],
        },
    });
    let options = WriteOptions::for_manager(MANAGER);
    client
        .create(&Kind::of::<Node>(), None, &node, &options)
        .await
        .map(drop)
}

/// Binds, runs and finishes the pods of all namespaces until `stop` is cancelled.
pub(crate) async fn run(client: RestClient, stop: CancellationToken) {
    loop {
        let pass = stop.run_until_cancelled(list_and_watch(&client)).await;
        match pass {
            None => return,
            Some(Ok(())) => {}
            // The server is busy or has stopped. The former passes; the watchdog reports the
            // latter.
            Some(Err(_)) => {
                if stop
                    .run_until_cancelled(tokio::time::sleep(PAUSE))
                    .await
                    .is_none()
                {
                    return;
                }
            }
        }
    }
}

/// Lists all pods, then watches them until the watch ends.
async fn list_and_watch(client: &RestClient) -> Result<(), RequestError> {
    let kind = Kind::of::<Pod>();
    let format = ResponseFormat::default();
    let list = client.list(&kind, &ListOptions::new(), format).await?;
    let list: Value = serde_json::from_slice(&list.body).unwrap_or_default();
    let items = list.get("items").and_then(Value::as_array);
    for pod in items.into_iter().flatten() {
        sync_pod(client, pod).await?;
    }
    let mut options = ListOptions::new();
    options.resource_version = text(&list, "/metadata/resourceVersion").to_owned();
    options.watch_timeout = WATCH;
    let mut lines = client.watch(&kind, &options, format).await?;
    while let Some(line) = lines.next().await {
        let event: Value = serde_json::from_slice(&line?).unwrap_or_default();
        match (text(&event, "/type"), event.get("object")) {
            ("ADDED" | "MODIFIED", Some(pod)) => sync_pod(client, pod).await?,
            ("ERROR", _) => return Ok(()),
            _ => {}
        }
    }
    Ok(())
}

async fn sync_pod(client: &RestClient, pod: &Value) -> Result<(), RequestError> {
    let key = ObjectKey::from((
        text(pod, "/metadata/namespace"),
        text(pod, "/metadata/name"),
    ));
    let kind = Kind::of::<Pod>();
    let done = match next_step(pod) {
        None => return Ok(()),
        Some(Step::Bind) => {
            let binding = json!({
                "apiVersion": "v1", "kind": "Binding", "metadata": {"name": key.name},
                "target": {"apiVersion": "v1", "kind": "Node", "name": NODE},
            });
            let bindings = Kind::of::<Binding>();
            let namespace = key.namespace.as_deref();
            let options = WriteOptions::for_manager("kube-scheduler");
            client
                .create(&bindings, namespace, &binding, &options)
                .await
        }
        Some(Step::Run) => {
            let status = json!({"status": running(pod, &now())});
            let patch = Patch::Merge(&status);
            let options = WriteOptions::for_manager(MANAGER);
            client
                .patch(&kind, &key, Some("status"), patch, &options)
                .await
        }
        Some(Step::Finish) => {
            let namespace = key.namespace.clone().unwrap_or_default();
            let pods: Api<Pod> = Api::namespaced(client.kube(), &namespace);
            // Ignores the result: if this fails, the next event or the next list repeats it.
            let now = DeleteParams::default().grace_period(0);
            let _ = pods.delete(&key.name, &now).await;
            return Ok(());
        }
    };
    match done {
        Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
        done => done.map(drop),
    }
}

fn next_step(pod: &Value) -> Option<Step> {
    let node = text(pod, "/spec/nodeName");
    let has = |path: &str| {
        pod.pointer(path)
            .and_then(Value::as_array)
            .is_some_and(|items| !items.is_empty())
    };
    if !node.is_empty() && node != NODE {
        return None;
    }
    if !text(pod, "/metadata/deletionTimestamp").is_empty() {
        let grace = pod.pointer("/metadata/deletionGracePeriodSeconds");
        let ended = grace.and_then(Value::as_i64) == Some(0);
        // A pod that still has finalizers after that waits for other controllers.
        return (!ended || !has("/metadata/finalizers")).then_some(Step::Finish);
    }
    if node.is_empty() {
        return (!has("/spec/schedulingGates")).then_some(Step::Bind);
    }
    matches!(text(pod, "/status/phase"), "" | "Pending").then_some(Step::Run)
}

/// Returns the status of a pod whose containers all run.
fn running(pod: &Value, now: &str) -> Value {
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array);
    let statuses: Vec<Value> = containers
        .into_iter()
        .flatten()
        .map(|container| {
            let image = text(container, "/image");
            json!({
                "name": text(container, "/name"), "image": image, "imageID": image,
                "containerID": format!("opkit://{}", text(pod, "/metadata/uid")),
                "ready": true, "started": true, "restartCount": 0, "lastState": {},
                "state": {"running": {"startedAt": now}},
            })
        })
        .collect();
    let conditions = [
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    ];
    let conditions = conditions.map(|type_| {
        json!({"type": type_, "status": "True", "lastProbeTime": null, "lastTransitionTime": now})
    });
    let ip = address(text(pod, "/metadata/uid"));
    json!({
        "phase": "Running", "startTime": now, "hostIP": ADDRESS, "hostIPs": [{"ip": ADDRESS}],
        "podIP": ip, "podIPs": [{"ip": ip}],
        "conditions": conditions, "containerStatuses": statuses,
    })
}

/// Returns an address for a pod. Loopback addresses are not used, because endpoints must not have
/// them.
fn address(uid: &str) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(uid.as_bytes());
    let number = hasher.finish();
    let last = (number & 0xff).clamp(2, 254);
    format!("10.244.{}.{last}", (number >> 8) & 0xff)
}

fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    value
        .pointer(path)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
