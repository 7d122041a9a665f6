//! The embedded control plane, in process: time to the first response, and speed of writes and
//! lists. Writes are also measured as a ServiceAccount with a Role, by RBAC and without
//! authorization, without admission plugins, and with a validating webhook.
//!
//! A real kube-apiserver is the peer; it is measured here once the tests can start one.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use opkit_apiserver::{AuthorizationMode, Options, Server, Service};
use opkit_benches::Measurements;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::ServiceExt;

const RUNS: usize = 11;
const OBJECTS: usize = 2_000;
const PATH: &str = "/api/v1/namespaces/default/configmaps";

async fn send(server: &Server, method: &str, path: &str, body: String) -> Bytes {
    send_as(server.service(), method, path, body).await
}

async fn send_as(service: Service, method: &str, path: &str, body: String) -> Bytes {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body)))
        .expect("a request");
    let Ok(response) = service.oneshot(request).await;
    assert!(
        response.status().is_success(),
        "{method} {path}: {}",
        response.status()
    );
    let body = response.into_body().collect().await;
    body.expect("a body").to_bytes()
}

fn print(what: &str, measurements: &Measurements, each: usize) {
    let (least, most) = measurements.spread();
    let each = u32::try_from(each).unwrap_or(1);
    println!(
        "{what:<40} median {:>10.1?}   {:.1?} .. {:.1?}",
        measurements.median() / each,
        least / each,
        most / each
    );
}

fn config_map(number: usize) -> String {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": format!("map-{number}"), "labels": {"app": "bench"}},
        "data": {"text": "a value of some length, as settings have it"},
    });
    object.to_string()
}

async fn create_all(service: &Service) {
    for number in 0..OBJECTS {
        send_as(service.clone(), "POST", PATH, config_map(number)).await;
    }
}

/// Returns the time in which a ServiceAccount with a Role of an operator creates all objects.
/// `is_gated` is whether the admission plugins of a cluster run.
async fn create_as_service_account(mode: AuthorizationMode, is_gated: bool) -> Duration {
    let mut options = Options::default();
    options.authorization = vec![mode];
    if !is_gated {
        options.admission_plugins = Vec::new();
    }
    let server = Server::start(options).expect("a control plane");
    let group = "rbac.authorization.k8s.io";
    let all = json!([
        "create", "delete", "get", "list", "patch", "update", "watch"
    ]);
    let rules: Vec<_> = ["pods", "services", "events", "secrets", "configmaps"]
        .map(|resource| json!({"apiGroups": [""], "resources": [resource], "verbs": all}))
        .into();
    let role = json!({"metadata": {"name": "operator"}, "rules": rules});
    let binding = json!({
        "metadata": {"name": "operator"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "operator"},
        "subjects": [{"kind": "ServiceAccount", "name": "operator", "namespace": "default"}],
    });
    for (resource, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let path = format!("/apis/{group}/v1/{resource}");
        send(&server, "POST", &path, object.to_string()).await;
    }
    let service = server.service_as_service_account("default", "operator");
    let began = Instant::now();
    create_all(&service).await;
    let elapsed = began.elapsed();
    server.shutdown().await;
    elapsed
}

/// Returns the median time of a create. With `has_webhook`, a validating webhook in this process
/// allows each of them.
async fn median_create(has_webhook: bool) -> Duration {
    let server = Server::start(Options::default()).expect("a control plane");
    if has_webhook {
        server.serve_service("default", "webhook", Some(Arc::new(allow)));
        let webhook = json!({
            "name": "one.example.com",
            "clientConfig": {"service": {"namespace": "default", "name": "webhook"}},
            "rules": [{
                "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"],
                "resources": ["configmaps"],
            }],
            "sideEffects": "None", "admissionReviewVersions": ["v1"],
        });
        let configuration = json!({"metadata": {"name": "one"}, "webhooks": [webhook]});
        let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
        send(&server, "POST", path, configuration.to_string()).await;
    }
    let service = server.service();
    let mut times = Measurements::default();
    for number in 0..OBJECTS {
        let object = config_map(number);
        let began = Instant::now();
        send_as(service.clone(), "POST", PATH, object).await;
        times.push(began.elapsed());
    }
    server.shutdown().await;
    times.median()
}

/// Allows a request.
fn allow(request: Request<Bytes>) -> BoxFuture<'static, Response<Bytes>> {
    let review: Value = serde_json::from_slice(request.body()).expect("a review");
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": {"uid": review["request"]["uid"], "allowed": true},
    });
    let response = Response::new(Bytes::from(review.to_string()));
    std::future::ready(response).boxed()
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (mut start, mut create, mut list) = (
        Measurements::default(),
        Measurements::default(),
        Measurements::default(),
    );
    let (mut allowed, mut by_rbac) = (Measurements::default(), Measurements::default());
    let mut ungated = Measurements::default();
    let (mut alone, mut by_webhook) = (Measurements::default(), Measurements::default());
    for _ in 0..RUNS {
        let began = Instant::now();
        let server = Server::start(Options::default()).expect("a control plane");
        send(&server, "GET", "/readyz", String::new()).await;
        start.push(began.elapsed());

        let began = Instant::now();
        create_all(&server.service()).await;
        create.push(began.elapsed());

        let began = Instant::now();
        send(&server, "GET", PATH, String::new()).await;
        list.push(began.elapsed());
        server.shutdown().await;
        let (allow, rbac) = (AuthorizationMode::AlwaysAllow, AuthorizationMode::Rbac);
        allowed.push(create_as_service_account(allow.clone(), true).await);
        by_rbac.push(create_as_service_account(rbac, true).await);
        ungated.push(create_as_service_account(allow, false).await);
        alone.push(median_create(false).await);
        by_webhook.push(median_create(true).await);
    }
    print("start to first response", &start, 1);
    print("create a config map", &create, OBJECTS);
    print("create as a ServiceAccount, all allowed", &allowed, OBJECTS);
    print("create as a ServiceAccount, by RBAC", &by_rbac, OBJECTS);
    let ratio = allowed.median().as_secs_f64() / by_rbac.median().as_secs_f64();
    println!("creates/s with RBAC, of those without: {ratio:.2}");
    print("create without any gate", &ungated, OBJECTS);
    let ratio = ungated.median().as_secs_f64() / by_rbac.median().as_secs_f64();
    println!("creates/s with all gates, of those without: {ratio:.2}");
    print("median create", &alone, 1);
    print("median create with a validating webhook", &by_webhook, 1);
    let added = by_webhook.median().saturating_sub(alone.median());
    println!("a validating webhook in the process adds {added:.1?}");
    print(&format!("list {OBJECTS} config maps"), &list, 1);
}
