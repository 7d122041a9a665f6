//! Controllers of EndpointSlices and Endpoints: keep the addresses of the Pods that the selector of
//! a Service selects.

mod slices;
mod subsets;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Change, Event, garbage};
use crate::object;
use crate::registry::{Registry, Write};
use crate::status::ApiResult;
use crate::store::Key;
use crate::target::Target;

/// The label of an EndpointSlice with the name of its Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// The label of an EndpointSlice with the controller that writes the EndpointSlice.
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const SLICE_CONTROLLER: &str = "endpointslice-controller.k8s.io";
/// The label of the endpoints of a headless Service.
const HEADLESS: &str = "service.kubernetes.io/headless";
/// The annotation with the time of the change that led to the present endpoints.
const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// Returns the keys of the Services whose endpoints may change with a Pod.
pub(super) fn services_of_pod(registry: &Registry, event: &Event) -> Vec<Key> {
    let namespace = event.object.namespace();
    let (services, _) = registry.store.list("services", Some(namespace));
    if services.is_empty() {
        return Vec::new();
    }
    let versions = event.versions();
    let is_selected = |service: &Value| versions.iter().any(|pod| selects(service, pod));
    let selecting = services.iter().filter(|service| is_selected(service));
    selecting.map(|service| Key::of(service)).collect()
}

/// Returns the key of the Service whose EndpointSlice has changed, if this controller writes the
/// EndpointSlice.
pub(super) fn service_of_slice(event: &Event) -> Option<Key> {
    let slice = match event.change {
        Change::Deleted => event.previous.as_ref().unwrap_or(&event.object),
        _ => &event.object,
    };
    let labels = slice.labels()?;
    let label = |name: &str| labels.get(name)?.as_str();
    (label(MANAGED_BY) == Some(SLICE_CONTROLLER)).then_some(())?;
    Some(Key::new(slice.namespace(), label(SERVICE_NAME)?))
}

/// Writes the EndpointSlices and the Endpoints of a Service.
pub(super) async fn step(registry: &Registry, key: &Key) -> ApiResult<()> {
    let service = registry.store.get("services", key);
    let existing = slices::of_service(registry, key);
    let Some(service) = service else {
        // A Service and its EndpointSlices are deleted together, even if the garbage collector has
        // not seen the deletion yet.
        for slice in existing {
            delete(registry, "discovery.k8s.io", "endpointslices", &slice).await?;
        }
        return Ok(());
    };
    let is_external = object::text(&service, &["spec", "type"]) == "ExternalName";
    if selector(&service).is_none() || is_external || object::is_deleting(&service) {
        return Ok(());
    }
    let (pods, _) = registry.store.list("pods", Some(&key.namespace));
    let pods: Vec<Arc<Value>> = pods
        .into_iter()
        .filter(|pod| selects(&service, pod) && has_address(pod))
        .collect();
    slices::write(registry, &service, &pods, existing).await?;
    subsets::write(registry, &service, &pods).await
}

fn selector(service: &Value) -> Option<&Map<String, Value>> {
    object::at(service, &["spec", "selector"]).as_object()
}

/// Reports whether the Service selects the Pod. A Service without a selector selects no Pod.
fn selects(service: &Value, pod: &Value) -> bool {
    let labels = object::labels(pod);
    let has = |(key, value): (&String, &Value)| {
        labels.is_some_and(|labels| labels.get(key) == Some(value))
    };
    selector(service).is_some_and(|selector| selector.iter().all(has))
}

/// Reports whether a Pod has an address and has not finished.
fn has_address(pod: &Value) -> bool {
    let phase = object::text(pod, &["status", "phase"]);
    !matches!(phase, "Failed" | "Succeeded")
        && !object::items(pod, &["status", "podIPs"]).is_empty()
}

fn is_ready(pod: &Value) -> bool {
    object::items(pod, &["status", "conditions"])
        .iter()
        .any(|condition| {
            object::text(condition, &["type"]) == "Ready"
                && object::text(condition, &["status"]) == "True"
        })
}

fn publishes_all(service: &Value) -> bool {
    object::at(service, &["spec", "publishNotReadyAddresses"]) == &Value::Bool(true)
}

/// Returns the hostname of a Pod, if the Pod has one in the domain of the Service.
fn hostname<'a>(service: &Value, pod: &'a Value) -> Option<&'a str> {
    let text = |field: &str| object::text(pod, &["spec", field]);
    let is_in_domain = text("subdomain") == object::name(service);
    Some(text("hostname")).filter(|name| !name.is_empty() && is_in_domain)
}

/// Returns the addresses of a Pod in an IP family, such as `IPv4`.
fn addresses(pod: &Value, family: &str) -> Vec<String> {
    let all = object::items(pod, &["status", "podIPs"]).iter();
    all.filter_map(|entry| object::text(entry, &["ip"]).parse::<IpAddr>().ok())
        .filter(|address| address.is_ipv4() == (family == "IPv4"))
        .map(|address| address.to_string())
        .collect()
}

fn target_ref(pod: &Value) -> Value {
    json!({
        "kind": "Pod", "namespace": object::namespace(pod), "name": object::name(pod),
        "uid": object::uid(pod),
    })
}

/// Returns the number of the port of a Pod to which a port of a Service leads, or `None` if the
/// Pod has no such port.
fn target_port(pod: &Value, port: &Value) -> Option<i64> {
    let name = match object::at(port, &["targetPort"]) {
        Value::String(name) => name.as_str(),
        number => return number.as_i64(),
    };
    let protocol = object::text(port, &["protocol"]);
    // Init containers that restart, which are sidecars, have ports too.
    let sidecars = object::items(pod, &["spec", "initContainers"])
        .iter()
        .filter(|container| object::text(container, &["restartPolicy"]) == "Always");
    let containers = object::items(pod, &["spec", "containers"]).iter();
    containers
        .chain(sidecars)
        .flat_map(|container| object::items(container, &["ports"]))
        .find(|port| {
            object::text(port, &["name"]) == name && object::text(port, &["protocol"]) == protocol
        })
        .map(|port| object::int(port, &["containerPort"]))
}

fn service_labels(service: &Value) -> Map<String, Value> {
    object::labels(service).cloned().unwrap_or_default()
}

/// Reports whether a Service has no cluster IP.
fn is_headless(service: &Value) -> bool {
    matches!(object::text(service, &["spec", "clusterIP"]), "" | "None")
}

/// Creates an object in the namespace of `service`. A namespace that is being deleted gets no
/// objects.
async fn create(registry: &Registry, group: &str, plural: &str, object: Value) -> ApiResult<()> {
    let kind = registry.builtin(group, plural)?;
    let target = Target::new(&kind, object::namespace(&object), "");
    match registry
        .create(&target, object, &mut Write::by(super::MANAGER))
        .await
    {
        Err(error) if error.code == 403 => Ok(()),
        created => created.map(|_| ()),
    }
}

async fn delete(registry: &Registry, group: &str, plural: &str, object: &Value) -> ApiResult<()> {
    let kind = registry.builtin(group, plural)?;
    let target = Target::new(&kind, object::namespace(object), object::name(object));
    match garbage::delete(registry, &target, object, "Background").await {
        Err(error) if error.is_not_found() => Ok(()),
        deleted => deleted,
    }
}
