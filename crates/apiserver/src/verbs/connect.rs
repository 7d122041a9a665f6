//! Subresources that Kubernetes forwards to a kubelet or to a Pod: logs, exec, attach, port forward
//! and proxy. No containers run here, so the response is the error of an API server that cannot
//! reach them.

use serde_json::{Value, json};

use crate::audit::RequestAudit;
use crate::object;
use crate::registry::{Registry, Write};
use crate::request::Request;
use crate::response::Response;
use crate::status::{ApiError, ApiResult};
use crate::store::Key;
use crate::target::Target;

/// The port of kubelets.
const KUBELET_PORT: u16 = 10_250;

/// Reports whether Kubernetes forwards requests for this subresource.
pub(super) fn is_forwarded(subresource: &str) -> bool {
    matches!(
        subresource,
        "log" | "exec" | "attach" | "portforward" | "proxy"
    )
}

/// Runs admission on a request for a forwarded subresource. Its object are the options in the
/// query, such as `PodExecOptions`. Logs are read without admission.
pub(super) async fn admit(
    registry: &Registry,
    target: &Target,
    request: &Request<'_>,
    audit: &RequestAudit,
) -> ApiResult<()> {
    let subresource = target.kind.subresource(&target.subresource);
    let Some((_, version, kind)) = subresource.and_then(|it| it.response.as_ref()) else {
        return Ok(());
    };
    let mut options = json!({"kind": kind, "apiVersion": version});
    for name in ["stdin", "stdout", "stderr", "tty"] {
        if request.query.flag(name) {
            object::set_field(&mut options, name, json!(true));
        }
    }
    for name in ["container", "path"] {
        if let Some(value) = request.query.get(name) {
            object::set_field(&mut options, name, json!(value));
        }
    }
    let command = request.query.all("command");
    if !command.is_empty() {
        object::set_field(&mut options, "command", json!(command));
    }
    let write = Write {
        user: Some(request.identity.clone()),
        ..Write::default()
    };
    let admitted = registry.admit_connect(target, options, &write).await;
    audit.annotate(&write.notes);
    admitted.map_err(|mut error| {
        error.warnings.extend(write.notes.warnings());
        error
    })
}

/// Returns the response to a request for a forwarded subresource.
pub(super) fn respond(
    registry: &Registry,
    target: &Target,
    request: &Request<'_>,
) -> ApiResult<Response> {
    match (target.kind.plural.as_str(), target.subresource.as_str()) {
        ("pods", "proxy") => pod_proxy(registry, target),
        ("services", _) => service_proxy(registry, target),
        ("nodes", _) => node_proxy(registry, target),
        ("pods", "log") => logs(registry, target, request),
        _ => stream(registry, target, request),
    }
}

/// Returns the response to a request for the logs of a Pod. A Pod without a node has no logs yet.
fn logs(registry: &Registry, target: &Target, request: &Request<'_>) -> ApiResult<Response> {
    let pod = registry.get_builtin(&target.clone().subresource(""))?;
    let container = container(request, &pod)?;
    let node = object::text(&pod, &["spec", "nodeName"]);
    if node.is_empty() {
        return Ok(Response::NoContent);
    }
    let host = kubelet_of_pod(registry, target, node)?;
    let (namespace, name) = (&target.namespace, &target.name);
    let url = format!("https://{host}/containerLogs/{namespace}/{name}/{container}");
    let message = format!("Get {url:?}: {}", unreachable_host(&host));
    Err(ApiError::without_reason(500, message))
}

/// Returns the response to exec, attach and port forward, which need a connection that is upgraded.
fn stream(registry: &Registry, target: &Target, request: &Request<'_>) -> ApiResult<Response> {
    let pod = registry.get_builtin(&target.clone().subresource(""))?;
    if target.subresource != "portforward" {
        container(request, &pod)?;
    }
    let node = object::text(&pod, &["spec", "nodeName"]);
    if node.is_empty() {
        return Err(ApiError::bad_request(format!(
            "pod {} does not have a host assigned",
            target.name
        )));
    }
    let host = kubelet_of_pod(registry, target, node)?;
    if !request.is_upgrade {
        return Err(ApiError::bad_request("Upgrade request required"));
    }
    let message = format!("error dialing backend: {}", unreachable_host(&host));
    Err(ApiError::without_reason(500, message))
}

fn pod_proxy(registry: &Registry, target: &Target) -> ApiResult<Response> {
    let (name, port) = name_and_port(target, "pod")?;
    let pod = registry.get_builtin(&Target::new(&target.kind, &target.namespace, &name))?;
    let ip = object::text(&pod, &["status", "podIP"]);
    if ip.is_empty() {
        return Err(ApiError::bad_request("address not allowed"));
    }
    let first = || {
        let containers = object::items(&pod, &["spec", "containers"]).iter();
        let mut ports = containers.flat_map(|container| object::items(container, &["ports"]));
        ports
            .next()
            .map(|port| object::int(port, &["containerPort"]))
    };
    let port = match port.is_empty() {
        true => first().map_or_else(|| "80".to_owned(), |port| port.to_string()),
        false => port,
    };
    Err(unreachable_service(&format!("{ip}:{port}")))
}

fn service_proxy(registry: &Registry, target: &Target) -> ApiResult<Response> {
    let (name, _) = name_and_port(target, "service")?;
    registry.get_builtin(&Target::new(&target.kind, &target.namespace, &name))?;
    let key = Key::new(target.namespace.as_str(), name.as_str());
    let endpoints = registry.store.get("endpoints", &key);
    let endpoints = endpoints.ok_or_else(|| ApiError::not_found(&target.kind, &name))?;
    let address = Some(&endpoints).and_then(|endpoints| {
        let subset = object::items(endpoints, &["subsets"]).first()?;
        let address = object::items(subset, &["addresses"]).first()?;
        let port = object::items(subset, &["ports"]).first()?;
        let number = object::int(port, &["port"]);
        Some(format!("{}:{number}", object::text(address, &["ip"])))
    });
    match address {
        Some(address) => Err(unreachable_service(&address)),
        None => {
            let message = format!("no endpoints available for service {name:?}");
            Err(ApiError::service_unavailable(message))
        }
    }
}

fn node_proxy(registry: &Registry, target: &Target) -> ApiResult<Response> {
    let (name, _) = name_and_port(target, "node")?;
    let host = kubelet(registry, &name)?;
    Err(ApiError::service_unavailable(format!(
        "error trying to reach service: {}",
        unreachable_host(&host)
    )))
}

/// Splits the name in a proxy request, which is `NAME`, `NAME:PORT` or `SCHEME:NAME:PORT`.
fn name_and_port(target: &Target, kind: &str) -> ApiResult<(String, String)> {
    let parts: Vec<&str> = target.name.split(':').collect();
    let (name, port) = match parts.as_slice() {
        [name] => (*name, ""),
        [name, port] => (*name, *port),
        ["http" | "https" | "", name, port] => (*name, *port),
        _ => ("", ""),
    };
    match name {
        "" => Err(ApiError::bad_request(format!(
            "invalid {kind} request {:?}",
            target.name
        ))),
        name => Ok((name.to_owned(), port.to_owned())),
    }
}

/// Returns the container that a request names, or the only container of the Pod.
fn container(request: &Request<'_>, pod: &Value) -> ApiResult<String> {
    let names = |field: &str| -> Vec<&str> {
        let containers = object::items(pod, &["spec", field]).iter();
        containers
            .map(|container| object::text(container, &["name"]))
            .collect()
    };
    let all = [
        names("initContainers"),
        names("containers"),
        names("ephemeralContainers"),
    ]
    .concat();
    let pod = object::name(pod);
    match request.query.get("container").unwrap_or_default() {
        "" => match names("containers").as_slice() {
            [one] => Ok((*one).to_owned()),
            _ => Err(ApiError::bad_request(format!(
                "a container name must be specified for pod {pod}, choose one of: [{}]",
                all.join(" ")
            ))),
        },
        name if all.contains(&name) => Ok(name.to_owned()),
        name => Err(ApiError::bad_request(format!(
            "container {name} is not valid for pod {pod}"
        ))),
    }
}

/// Returns the address of the kubelet of a Pod's node. As in Kubernetes, the error for a node that
/// does not exist is about a Pod.
fn kubelet_of_pod(registry: &Registry, pod: &Target, node: &str) -> ApiResult<String> {
    kubelet(registry, node).map_err(|error| match error.is_not_found() {
        true => ApiError::not_found(&pod.kind, node),
        false => error,
    })
}

/// Returns the address of the kubelet of a node, with its port.
fn kubelet(registry: &Registry, node: &str) -> ApiResult<String> {
    let kind = registry.builtin("", "nodes")?;
    let node = registry.get_builtin(&Target::new(&kind, "", node))?;
    let addresses = object::items(&node, &["status", "addresses"]);
    let of_type = |type_: &&str| {
        let mut addresses = addresses.iter();
        addresses.find(|address| object::text(address, &["type"]) == *type_)
    };
    let preferred = [
        "Hostname",
        "InternalDNS",
        "InternalIP",
        "ExternalDNS",
        "ExternalIP",
    ];
    match preferred.iter().find_map(of_type) {
        Some(address) => {
            let host = object::text(address, &["address"]);
            let port = object::at(
                &node,
                &["status", "daemonEndpoints", "kubeletEndpoint", "Port"],
            );
            let port = port.as_i64().unwrap_or_else(|| KUBELET_PORT.into());
            Ok(format!("{host}:{port}"))
        }
        None => Err(ApiError::without_reason(
            500,
            "no preferred addresses found; known addresses: []",
        )),
    }
}

/// Returns the error of Go for a host that does not exist.
fn unreachable_host(host: &str) -> String {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    format!("dial tcp: lookup {name}: no such host")
}

fn unreachable_service(address: &str) -> ApiError {
    ApiError::service_unavailable(format!(
        "error trying to reach service: dial tcp {address}: connect: no route to host"
    ))
}
