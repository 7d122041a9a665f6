//! The EndpointSlices of a Service.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{HEADLESS, MANAGED_BY, SERVICE_NAME, SLICE_CONTROLLER, TRIGGER_TIME};
use crate::controllers::MANAGER;
use crate::object;
use crate::registry::Registry;
use crate::status::ApiResult;
use crate::store::Key;
use crate::workloads;

/// Maximum number of endpoints in an EndpointSlice, as in Kubernetes.
const ENDPOINTS_MAX: usize = 100;
const GROUP: &str = "discovery.k8s.io";
const PLURAL: &str = "endpointslices";

/// The changes of the EndpointSlices of one Service.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) create: Vec<Value>,
    pub(super) update: Vec<Value>,
    pub(super) delete: Vec<Arc<Value>>,
}

/// Endpoints with the same IP family and ports.
#[derive(Debug)]
struct Group {
    family: String,
    ports: Vec<Value>,
    endpoints: Vec<Value>,
}

/// Returns the EndpointSlices of a Service that this controller writes.
pub(super) fn of_service(registry: &Registry, key: &Key) -> Vec<Arc<Value>> {
    let resource = format!("{PLURAL}.{GROUP}");
    let (mut slices, _) = registry.store.list(&resource, Some(&key.namespace));
    slices.retain(|slice| {
        let label = |name: &str| object::labels(slice).and_then(|labels| labels.get(name));
        label(SERVICE_NAME).is_some_and(|name| name == key.name.as_str())
            && label(MANAGED_BY).is_some_and(|name| name == SLICE_CONTROLLER)
    });
    slices
}

pub(super) async fn write(
    registry: &Registry,
    service: &Value,
    pods: &[Arc<Value>],
    existing: Vec<Arc<Value>>,
) -> ApiResult<()> {
    let plan = plan(service, pods, existing);
    let now = json!(registry.clock.now_rfc3339());
    for mut slice in plan.create {
        object::set(
            &mut slice,
            &["metadata", "annotations", TRIGGER_TIME],
            now.clone(),
        );
        super::create(registry, GROUP, PLURAL, slice).await?;
    }
    for mut slice in plan.update {
        object::set(
            &mut slice,
            &["metadata", "annotations", TRIGGER_TIME],
            now.clone(),
        );
        registry.overwrite(GROUP, PLURAL, &slice, MANAGER).await?;
    }
    for slice in plan.delete {
        super::delete(registry, GROUP, PLURAL, &slice).await?;
    }
    Ok(())
}

/// Plans the changes of the EndpointSlices `existing` of a Service that selects `pods`.
pub(super) fn plan(service: &Value, pods: &[Arc<Value>], existing: Vec<Arc<Value>>) -> Plan {
    let mut plan = Plan::default();
    let (mut own, foreign): (Vec<_>, Vec<_>) = existing
        .into_iter()
        .partition(|slice| is_owned(slice, service));
    plan.delete.extend(foreign);
    for group in groups(service, pods) {
        let mut waiting = group.endpoints;
        let mut kept: Vec<Value> = Vec::new();
        // An endpoint stays in its EndpointSlice, so that other EndpointSlices need not change.
        let (same, rest): (Vec<_>, Vec<_>) = own
            .into_iter()
            .partition(|slice| has_group(slice, &group.family, &group.ports));
        own = rest;
        let has_slice = !same.is_empty();
        for slice in &same {
            let mut new = slice_of(service, &group.family, &group.ports);
            object::set_meta(&mut new, "name", json!(object::name(slice)));
            let mut endpoints = Vec::new();
            for endpoint in object::items(slice, &["endpoints"]) {
                let place = waiting
                    .iter()
                    .position(|other| is_same_pod(endpoint, other));
                endpoints.extend(place.map(|place| waiting.remove(place)));
            }
            object::set_field(&mut new, "endpoints", json!(endpoints));
            kept.push(new);
        }
        for new in &mut kept {
            let mut endpoints = object::items(new, &["endpoints"]).to_vec();
            let room = ENDPOINTS_MAX.saturating_sub(endpoints.len());
            endpoints.extend(waiting.drain(..room.min(waiting.len())));
            object::set_field(new, "endpoints", json!(endpoints));
        }
        for (new, slice) in kept.into_iter().zip(same) {
            let is_empty = object::items(&new, &["endpoints"]).is_empty();
            // The last EndpointSlice of a Service without Pods stays, with no endpoints.
            if is_empty && !group.ports.is_empty() {
                plan.delete.push(slice);
            } else if !is_equal(&slice, &new) {
                plan.update.push(new);
            }
        }
        let is_placeholder = group.ports.is_empty() && waiting.is_empty();
        if is_placeholder && !has_slice {
            plan.create.push(slice_of(service, &group.family, &[]));
        }
        while !waiting.is_empty() {
            let chunk: Vec<Value> = waiting.drain(..ENDPOINTS_MAX.min(waiting.len())).collect();
            let mut new = slice_of(service, &group.family, &group.ports);
            object::set_field(&mut new, "endpoints", json!(chunk));
            plan.create.push(new);
        }
    }
    plan.delete.extend(own);
    reuse(&mut plan, service);
    plan
}

/// Returns the endpoints of a Service by IP family and ports. A family without endpoints has one
/// group without ports, whose EndpointSlice is a placeholder.
fn groups(service: &Value, pods: &[Arc<Value>]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let families = object::items(service, &["spec", "ipFamilies"]).iter();
    for family in families.filter_map(Value::as_str) {
        let start = groups.len();
        for pod in pods {
            let addresses = super::addresses(pod, family);
            if addresses.is_empty() {
                continue;
            }
            let ports = ports(service, pod);
            let endpoint = endpoint(service, pod, addresses);
            let mut own = groups.iter_mut().skip(start);
            match own.find(|group| group.ports == ports) {
                Some(group) => group.endpoints.push(endpoint),
                None => groups.push(Group {
                    family: family.to_owned(),
                    ports,
                    endpoints: vec![endpoint],
                }),
            }
        }
        if groups.len() == start {
            groups.push(Group {
                family: family.to_owned(),
                ports: Vec::new(),
                endpoints: Vec::new(),
            });
        }
    }
    groups
}

/// Turns creations into updates of EndpointSlices that would be deleted.
fn reuse(plan: &mut Plan, service: &Value) {
    let mut kept = Vec::new();
    for slice in plan.delete.drain(..) {
        let family = object::text(&slice, &["addressType"]);
        let place = plan
            .create
            .iter()
            .position(|new| object::text(new, &["addressType"]) == family);
        match place {
            Some(place) if is_owned(&slice, service) => {
                let mut new = plan.create.remove(place);
                object::set_meta(&mut new, "name", json!(object::name(&slice)));
                plan.update.push(new);
            }
            _ => kept.push(slice),
        }
    }
    plan.delete = kept;
}

fn endpoint(service: &Value, pod: &Value, addresses: Vec<String>) -> Value {
    let (is_serving, is_terminating) = (super::is_ready(pod), object::is_deleting(pod));
    let is_ready = super::publishes_all(service) || (is_serving && !is_terminating);
    let mut endpoint = json!({
        "addresses": addresses,
        "conditions": {
            "ready": is_ready, "serving": is_serving, "terminating": is_terminating,
        },
        "targetRef": super::target_ref(pod),
    });
    let node = object::text(pod, &["spec", "nodeName"]);
    if !node.is_empty() {
        object::set_field(&mut endpoint, "nodeName", json!(node));
    }
    if let Some(hostname) = super::hostname(service, pod) {
        object::set_field(&mut endpoint, "hostname", json!(hostname));
    }
    endpoint
}

fn ports(service: &Value, pod: &Value) -> Vec<Value> {
    let mut ports = Vec::new();
    for port in object::items(service, &["spec", "ports"]) {
        let Some(number) = super::target_port(pod, port) else {
            continue;
        };
        let mut new = json!({
            "name": object::text(port, &["name"]), "port": number,
            "protocol": object::text(port, &["protocol"]),
        });
        let app = object::at(port, &["appProtocol"]);
        if !app.is_null() {
            object::set_field(&mut new, "appProtocol", app.clone());
        }
        ports.push(new);
    }
    ports
}

/// Returns a new EndpointSlice without endpoints.
fn slice_of(service: &Value, family: &str, ports: &[Value]) -> Value {
    let mut labels = super::service_labels(service);
    labels.remove(HEADLESS);
    if super::is_headless(service) {
        labels.insert(HEADLESS.to_owned(), json!(""));
    }
    labels.insert(SERVICE_NAME.to_owned(), json!(object::name(service)));
    labels.insert(MANAGED_BY.to_owned(), json!(SLICE_CONTROLLER));
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "generateName": format!("{}-", object::name(service)),
            "namespace": object::namespace(service), "labels": labels,
            "ownerReferences": [workloads::owned_by(service)],
        },
        "addressType": family, "endpoints": [], "ports": ports,
    })
}

fn is_owned(slice: &Value, service: &Value) -> bool {
    let owners = object::items(slice, &["metadata", "ownerReferences"]);
    owners
        .iter()
        .any(|owner| object::text(owner, &["uid"]) == object::uid(service))
}

fn has_group(slice: &Value, family: &str, ports: &[Value]) -> bool {
    object::text(slice, &["addressType"]) == family && object::items(slice, &["ports"]) == ports
}

fn is_same_pod(one: &Value, other: &Value) -> bool {
    let uid = |endpoint: &Value| object::text(endpoint, &["targetRef", "uid"]).to_owned();
    uid(one) == uid(other)
}

/// Reports whether the stored EndpointSlice has the endpoints and labels of `new`.
fn is_equal(stored: &Value, new: &Value) -> bool {
    object::items(stored, &["endpoints"]) == object::items(new, &["endpoints"])
        && object::labels(stored) == object::labels(new)
}
