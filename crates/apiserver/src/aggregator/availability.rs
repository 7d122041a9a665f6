//! The condition `Available` of an APIService whose API server is a Service.

use std::time::Duration;

use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::{Route, proxy};
use crate::authentication::{Identity, SYSTEM_MASTERS};
use crate::object;
use crate::registry::{Registry, Write};
use crate::status::ApiResult;
use crate::store::Key;
use crate::target::Target;

/// Time limit for the request that shows whether the API server responds.
const TIMEOUT: Duration = Duration::from_secs(5);
const SLICES: &str = "endpointslices.discovery.k8s.io";

/// The status of an API server.
#[derive(Debug)]
pub(super) struct Condition {
    is_true: bool,
    reason: &'static str,
    message: String,
}

impl Condition {
    fn failed(reason: &'static str, message: String) -> Self {
        Self {
            is_true: false,
            reason,
            message,
        }
    }

    pub(super) fn is_true(&self) -> bool {
        self.is_true
    }
}

/// Reports whether an APIService has the condition `Available`.
pub(super) fn is_available(api_service: &Value) -> bool {
    let mut conditions = object::items(api_service, &["status", "conditions"]).iter();
    conditions.any(|condition| {
        object::text(condition, &["type"]) == "Available"
            && object::text(condition, &["status"]) == "True"
    })
}

/// Returns the user of the requests that the API server itself sends to an aggregated one.
pub(super) fn aggregator_user() -> Identity {
    Identity {
        user: "system:kube-aggregator".to_owned(),
        groups: vec![SYSTEM_MASTERS.to_owned()],
        ..Identity::default()
    }
}

/// Checks the Service of an APIService and sends a request to it.
pub(super) async fn check(registry: &Registry, route: &Route) -> Condition {
    let reference = &route.service;
    let (namespace, name) = (reference.namespace.as_str(), reference.name.as_str());
    let key = Key::new(namespace, name);
    let Some(service) = registry.store.get("services", &key) else {
        let message = format!("service/{name} in {namespace:?} is not present");
        return Condition::failed("ServiceNotFound", message);
    };
    // A program at a given address serves in place of the Pods, so there need not be any Pods.
    let is_given = registry
        .resolver
        .given(namespace, name, reference.port)
        .is_some();
    if object::text(&service, &["spec", "type"]) == "ClusterIP" && !is_given {
        let flaw = endpoint_flaw(registry, route, &service);
        if let Some((reason, message)) = flaw {
            return Condition::failed(reason, message);
        }
    }
    let path = route.path();
    let user = aggregator_user();
    let sent = async {
        let accept = "application/json";
        let response = proxy::get(registry, route, &path, accept, &user).await?;
        let status = response.status();
        // The connection can serve the next request only after the whole body is read.
        let _ = response.into_body().collect().await;
        Ok(status)
    };
    let result: Result<_, String> = match tokio::time::timeout(TIMEOUT, sent).await {
        Ok(result) => result,
        Err(_) => Err("context deadline exceeded".to_owned()),
    };
    let resolver = &registry.resolver;
    let address = resolver.resolve(&registry.store, namespace, name, reference.port);
    let url = match &address {
        Ok(address) => format!("https://{address}{path}"),
        Err(_) => format!("https://{name}.{namespace}.svc:{}{path}", reference.port),
    };
    let failure = match result {
        Ok(status) if status.is_success() => {
            return Condition {
                is_true: true,
                reason: "Passed",
                message: "all checks passed".to_owned(),
            };
        }
        Ok(status) => format!("bad status from {url}: {}", status.as_u16()),
        Err(error) => format!("Get {url:?}: {error}"),
    };
    let message = format!("failing or missing response from {url}: {failure}");
    Condition::failed("FailedDiscoveryCheck", message)
}

/// Returns reason and message if a Service with a cluster IP has no port or no ready endpoint for
/// the requests of an APIService.
fn endpoint_flaw(
    registry: &Registry,
    route: &Route,
    service: &Value,
) -> Option<(&'static str, String)> {
    let reference = &route.service;
    let (namespace, name, port) = (&reference.namespace, &reference.name, reference.port);
    let mut ports = object::items(service, &["spec", "ports"]).iter();
    let Some(found) = ports.find(|found| object::int(found, &["port"]) == i64::from(port)) else {
        let message = format!("service/{name} in {namespace:?} is not listening on port {port}");
        return Some(("ServicePortError", message));
    };
    let port_name = object::text(found, &["name"]);
    let (slices, _) = registry.store.list(SLICES, Some(namespace));
    let is_own = |slice: &Value| {
        let label = object::text(slice, &["metadata", "labels", "kubernetes.io/service-name"]);
        label == name
    };
    let slices: Vec<_> = slices.iter().filter(|slice| is_own(slice)).collect();
    if slices.is_empty() {
        let message = format!("cannot find endpointslices for service/{name} in {namespace:?}");
        return Some(("EndpointsNotFound", message));
    }
    let is_active = slices.iter().any(|slice| {
        let mut endpoints = object::items(slice, &["endpoints"]).iter();
        let mut ports = object::items(slice, &["ports"]).iter();
        let is_ready =
            |endpoint: &Value| object::at(endpoint, &["conditions", "ready"]) != &json!(false);
        endpoints.any(is_ready)
            && ports.any(|port| {
                object::text(port, &["name"]) == port_name && !object::at(port, &["port"]).is_null()
            })
    });
    (!is_active).then(|| {
        let message = format!(
            "endpointslices for service/{name} in {namespace:?} have no addresses with port name \
             {port_name:?}"
        );
        ("MissingEndpoints", message)
    })
}

/// Writes the condition `Available` of an APIService, unless it is the same already. Does nothing
/// if the APIService is gone.
pub(super) async fn write(registry: &Registry, name: &str, condition: &Condition) -> ApiResult<()> {
    let kind = registry.builtin("apiregistration.k8s.io", "apiservices")?;
    let target = Target::new(&kind, "", name).subresource("status");
    let status = if condition.is_true { "True" } else { "False" };
    let now = registry.clock.now_rfc3339();
    let written = registry
        .modify(&target, &mut Write::by("kube-apiserver"), |live| {
            let mut conditions = object::items(live, &["status", "conditions"]).to_vec();
            let mut new = json!({
                "type": "Available", "status": status, "lastTransitionTime": now,
                "reason": condition.reason, "message": condition.message,
            });
            let is_same_type = |old: &Value| object::text(old, &["type"]) == "Available";
            match conditions.iter_mut().find(|old| is_same_type(old)) {
                Some(old) => {
                    if object::text(old, &["status"]) == status {
                        let time = object::at(old, &["lastTransitionTime"]).clone();
                        object::set_field(&mut new, "lastTransitionTime", time);
                    }
                    *old = new;
                }
                None => conditions.push(new),
            }
            let mut changed = live.clone();
            object::set(&mut changed, &["status", "conditions"], json!(conditions));
            Ok(changed)
        })
        .await;
    match written {
        Err(error) if error.is_not_found() => Ok(()),
        written => written.map(|_| ()),
    }
}
