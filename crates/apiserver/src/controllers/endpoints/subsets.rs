//! The Endpoints object of a Service, with the same name as the Service.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{HEADLESS, TRIGGER_TIME};
use crate::controllers::MANAGER;
use crate::object;
use crate::registry::Registry;
use crate::status::ApiResult;
use crate::store::Key;

const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const CONTROLLER: &str = "endpoint-controller";

pub(super) async fn write(
    registry: &Registry,
    service: &Value,
    pods: &[Arc<Value>],
) -> ApiResult<()> {
    let mut labels = super::service_labels(service);
    labels.remove(HEADLESS);
    if super::is_headless(service) {
        labels.insert(HEADLESS.to_owned(), json!(""));
    }
    labels.insert(MANAGED_BY.to_owned(), json!(CONTROLLER));
    let subsets = subsets(service, pods);
    let mut desired = json!({
        "apiVersion": "v1", "kind": "Endpoints",
        "metadata": {
            "name": object::name(service), "namespace": object::namespace(service),
            "labels": labels,
            "annotations": {TRIGGER_TIME: registry.clock.now_rfc3339()},
        },
    });
    if !subsets.is_empty() {
        object::set_field(&mut desired, "subsets", json!(subsets));
    }
    match registry.store.get("endpoints", &Key::of(service)) {
        None => super::create(registry, "", "endpoints", desired).await,
        Some(stored) => {
            let is_same = object::items(&stored, &["subsets"]) == subsets
                && object::labels(&stored) == object::labels(&desired);
            if is_same {
                return Ok(());
            }
            if subsets.is_empty() {
                object::set_field(&mut desired, "subsets", Value::Null);
            }
            registry.overwrite("", "endpoints", &desired, MANAGER).await
        }
    }
}

/// Addresses of Pods with the same ports.
#[derive(Debug, Default)]
struct Subset {
    ready: Vec<Value>,
    not_ready: Vec<Value>,
}

/// Returns the subsets of an Endpoints object. Ports with the same Pods are in one subset.
pub(super) fn subsets(service: &Value, pods: &[Arc<Value>]) -> Vec<Value> {
    let publishes_all = super::publishes_all(service);
    let families = object::items(service, &["spec", "ipFamilies"]);
    let family = families.first().and_then(Value::as_str).unwrap_or("IPv4");
    let mut by_ports: BTreeMap<String, (Vec<Value>, Subset)> = BTreeMap::new();
    for pod in pods {
        if object::is_deleting(pod) && !publishes_all {
            continue;
        }
        let addresses = super::addresses(pod, family);
        let Some(ip) = addresses.first() else {
            continue;
        };
        let ports = ports(service, pod);
        let is_portless = object::items(service, &["spec", "ports"]).is_empty();
        if ports.is_empty() && !(is_portless && super::is_headless(service)) {
            continue;
        }
        let mut address = json!({"ip": ip, "targetRef": super::target_ref(pod)});
        let node = object::text(pod, &["spec", "nodeName"]);
        if !node.is_empty() {
            object::set_field(&mut address, "nodeName", json!(node));
        }
        if let Some(hostname) = super::hostname(service, pod) {
            object::set_field(&mut address, "hostname", json!(hostname));
        }
        let key = json!(ports).to_string();
        let (_, subset) = by_ports
            .entry(key)
            .or_insert_with(|| (ports, Subset::default()));
        match publishes_all || super::is_ready(pod) {
            true => subset.ready.push(address),
            false => subset.not_ready.push(address),
        }
    }
    by_ports.into_values().map(subset_object).collect()
}

fn subset_object((ports, mut subset): (Vec<Value>, Subset)) -> Value {
    let mut object = json!({});
    for (field, list) in [
        ("addresses", &mut subset.ready),
        ("notReadyAddresses", &mut subset.not_ready),
    ] {
        list.sort_by(|a, b| object::text(a, &["ip"]).cmp(object::text(b, &["ip"])));
        if !list.is_empty() {
            object::set_field(&mut object, field, json!(list));
        }
    }
    if !ports.is_empty() {
        object::set_field(&mut object, "ports", json!(ports));
    }
    object
}

fn ports(service: &Value, pod: &Value) -> Vec<Value> {
    let mut ports = Vec::new();
    for port in object::items(service, &["spec", "ports"]) {
        let Some(number) = super::target_port(pod, port) else {
            continue;
        };
        let mut new = json!({"port": number, "protocol": object::text(port, &["protocol"])});
        for field in ["name", "appProtocol"] {
            let text = object::text(port, &[field]);
            if !text.is_empty() {
                object::set_field(&mut new, field, json!(text));
            }
        }
        ports.push(new);
    }
    ports
}
