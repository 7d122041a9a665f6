//! Tests of the whole server through its HTTP service.

mod admission;
mod admission_webhooks;
mod aggregation;
mod alone;
mod apply;
mod audit;
mod authentication;
mod authorization;
mod conversion;
mod crud;
mod custom;
mod deletion;
mod denials;
mod endpoints;
mod front;
mod fuzz;
mod impersonation;
mod lists;
mod negotiation;
mod openapi;
mod paging;
mod protobuf;
mod quotas;
mod reviews;
mod service_accounts;
mod services;
mod sharding;
mod subresources;
mod unmodelled;
mod watching;
mod webhooks;
mod workloads;

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::{Method, Request};
use http_body_util::{BodyExt, BodyStream, Full};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::{Options, Server, Service};

/// Maximum number of requests for an object that a test waits for.
const ATTEMPTS: usize = 10_000;
/// Maximum time between two of these requests.
const PAUSE: Duration = Duration::from_millis(5);

/// A server, with methods that send requests to it.
struct Api {
    server: Server,
}

impl Api {
    fn start() -> Self {
        Self::with(Options {
            seed: Some(7),
            ..Options::default()
        })
    }

    /// Starts a server without controllers, which write objects of their own.
    fn alone() -> Self {
        Self::with(Options {
            controllers: false,
            seed: Some(7),
            ..Options::default()
        })
    }

    fn with(options: Options) -> Self {
        Self {
            server: Server::start(options).unwrap(),
        }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: &Value,
    ) -> (u16, Value) {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        self.send_bytes(method, path, content_type, body).await
    }

    async fn send_bytes(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: impl Into<Bytes>,
    ) -> (u16, Value) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .header("user-agent", "test/1")
            .body(Full::new(body.into()))
            .unwrap();
        let response = self.server.service().oneshot(request).await.unwrap();
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        (
            code,
            serde_json::from_slice(&bytes).unwrap_or(Value::String(text)),
        )
    }

    /// Returns the response to a request that another user sends, with these headers.
    async fn send_as(
        &self,
        service: Service,
        (method, path): (Method, &str),
        headers: &[(&str, &str)],
        body: &Value,
    ) -> (u16, Value) {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let text = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let request = request.body(Full::new(Bytes::from(text))).unwrap();
        let response = service.oneshot(request).await.unwrap();
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::String(text));
        (code, body)
    }

    /// Returns the response to a GET of the user `alice`.
    async fn get_as_alice(&self, path: &str) -> (u16, Value) {
        let alice = self.server.service_as("alice", &[]);
        self.send_as(alice, (Method::GET, path), &[], &Value::Null)
            .await
    }

    /// Creates a ClusterRole with these rules, and binds it to the user `alice`.
    async fn grant_to_alice(&self, name: &str, rules: Value) {
        let role = json!({"metadata": {"name": name}, "rules": rules});
        let (code, response) = self.post(&format!("{RBAC}/clusterroles"), role).await;
        assert_eq!(code, 201, "{response}");
        let (code, response) = self
            .post(
                &format!("{RBAC}/clusterrolebindings"),
                binding(name, "ClusterRole", name),
            )
            .await;
        assert_eq!(code, 201, "{response}");
    }

    /// Returns the response to a GET with these headers.
    async fn raw(&self, path: &str, headers: &[(&str, &str)]) -> http::Response<Bytes> {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::new())).unwrap();
        let response = self.server.service().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        http::Response::from_parts(parts, body)
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.send(Method::GET, path, "", &Value::Null).await
    }

    async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.send(Method::POST, path, "application/json", &body)
            .await
    }

    async fn put(&self, path: &str, body: Value) -> (u16, Value) {
        self.send(Method::PUT, path, "application/json", &body)
            .await
    }

    async fn merge(&self, path: &str, body: Value) -> (u16, Value) {
        self.send(Method::PATCH, path, "application/merge-patch+json", &body)
            .await
    }

    async fn delete(&self, path: &str, options: Value) -> (u16, Value) {
        self.send(Method::DELETE, path, "application/json", &options)
            .await
    }

    /// Waits until `wanted` returns true for the object at `path`; a missing object is null.
    async fn until(&self, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut changed = self.server.shared.registry.store.subscribe();
        for _ in 0..ATTEMPTS {
            changed.mark_unchanged();
            let (code, object) = self.get(path).await;
            let object = if code == 404 { Value::Null } else { object };
            if wanted(&object) {
                return object;
            }
            // Not everything that a response depends on is in the store.
            let _ = tokio::time::timeout(PAUSE, changed.changed()).await;
        }
        panic!(
            "{path} does not become as wanted: {}",
            self.get(path).await.1
        );
    }

    /// Returns the first `count` frames of a watch.
    async fn frames(&self, path: &str, count: usize) -> Vec<Value> {
        let request = Request::get(path).body(Full::new(Bytes::new())).unwrap();
        let response = self.server.service().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        let frames = BodyStream::new(response.into_body()).take(count);
        let parse = |bytes: Bytes| serde_json::from_slice(&bytes).unwrap();
        frames
            .map(|frame| parse(frame.unwrap().into_data().unwrap()))
            .collect()
            .await
    }
}

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const ROBOTS: &str = "/apis/robot.opkit.dev/v1/namespaces/default/robots";

/// Returns a binding of a role to the user `alice`.
fn binding(name: &str, kind: &str, role: &str) -> Value {
    let group = "rbac.authorization.k8s.io";
    json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": kind, "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "alice"}],
    })
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}})
}

fn deployment(name: &str, replicas: i64, image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": image}]},
            },
        },
    })
}

fn robot(name: &str) -> Value {
    json!({
        "apiVersion": "robot.opkit.dev/v1", "kind": "Robot", "metadata": {"name": name},
        "spec": {"image": "nginx"},
    })
}

fn robot_crd() -> Value {
    let schema = json!({
        "type": "object", "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object", "required": ["image"],
                "properties": {
                    "image": {"type": "string"},
                    "replicas": {"type": "integer", "minimum": 0, "maximum": 100, "default": 1},
                },
            },
            "status": {"type": "object", "properties": {"readyReplicas": {"type": "integer"}}},
        },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "robots.robot.opkit.dev"},
        "spec": {
            "group": "robot.opkit.dev", "scope": "Namespaced",
            "names": {"kind": "Robot", "plural": "robots", "shortNames": ["rb"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.readyReplicas",
                    },
                },
            }],
        },
    })
}

async fn with_robots() -> Api {
    let api = Api::start();
    let (code, response) = api
        .post(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            robot_crd(),
        )
        .await;
    assert_eq!(code, 201, "{response}");
    api
}

/// Returns the message of an error response.
fn message(response: &(u16, Value)) -> &str {
    response.1["message"].as_str().unwrap_or_default()
}
