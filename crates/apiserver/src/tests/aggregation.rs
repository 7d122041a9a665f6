//! Aggregated API servers. The aggregated server of these tests is another embedded server, which
//! accepts the certificate and the headers of the first one's front proxy.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use futures::StreamExt;
use http::{Method, Request};
use http_body_util::{BodyStream, Full};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tower::ServiceExt;

use super::{Api, ROBOTS, message, robot, robot_crd};
use crate::{Options, RequestHeaderOptions, ServiceAddress};

const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const API_SERVICE: &str = "/apis/apiregistration.k8s.io/v1/apiservices/v1.robot.opkit.dev";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A server, and an API server that it aggregates.
struct Pair {
    front: Api,
    backend: Api,
    /// The `caBundle` for the backend.
    bundle: String,
}

/// Starts a backend with the kind Robot, and a server that resolves the Service `default/robots` to
/// the backend.
async fn start() -> Pair {
    let address = {
        let listener = TcpListener::bind(LOOPBACK).await.unwrap();
        listener.local_addr().unwrap()
    };
    let given: ServiceAddress = format!("default/robots={address}").parse().unwrap();
    let front = Api::with(Options {
        service_addresses: vec![given],
        ..Options::default()
    });
    front.server.listen(LOOPBACK).await.unwrap();
    let path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    let (code, trust) = front.get(path).await;
    assert_eq!(code, 200);
    let data = |key: &str| trust["data"][key].as_str().unwrap().to_owned();
    let mut options = Options::default();
    let mut proxies = RequestHeaderOptions::new(data("requestheader-client-ca-file"));
    let names = data("requestheader-allowed-names");
    proxies.allowed_names = serde_json::from_str(&names).unwrap();
    options.authentication.request_header = Some(proxies);
    let backend = Api::with(options);
    let endpoint = backend.server.listen(address).await.unwrap();
    assert_eq!(backend.post(CRDS, robot_crd()).await.0, 201);
    Pair {
        front,
        backend,
        bundle: BASE64_STANDARD.encode(endpoint.certificate_authority()),
    }
}

/// Returns an APIService for the group of Robots, with these fields in its `spec`.
fn api_service(spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1.robot.opkit.dev"},
        "spec": {
            "group": "robot.opkit.dev", "version": "v1", "groupPriorityMinimum": 100,
            "versionPriority": 10, "service": {"namespace": "default", "name": "robots"},
        },
    });
    for (field, value) in spec.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    object
}

/// The certificate of the backend is for its address, and not for the name of the Service.
fn insecure() -> Value {
    json!({"insecureSkipTLSVerify": true})
}

fn service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "robots"},
        "spec": {"ports": [{"port": 443}]},
    })
}

/// Creates the Service and the APIService, and waits until its condition has this reason. Returns
/// the message of the condition.
async fn register(front: &Api, spec: &Value, reason: &str) -> String {
    assert_eq!(front.post(SERVICES, service()).await.0, 201);
    let (code, created) = front.post(API_SERVICES, api_service(spec)).await;
    assert_eq!(code, 201, "{created}");
    condition(front, reason).await
}

/// Waits until the condition of the APIService has this reason, and returns its message.
async fn condition(front: &Api, reason: &str) -> String {
    let path = format!("{API_SERVICES}?watch=true&fieldSelector=metadata.name=v1.robot.opkit.dev");
    let request = Request::get(path).body(Full::new(Bytes::new())).unwrap();
    let response = front.server.service().oneshot(request).await.unwrap();
    let mut frames = BodyStream::new(response.into_body());
    let waited = tokio::time::timeout(Duration::from_secs(20), async {
        while let Some(frame) = frames.next().await {
            let frame = frame.unwrap().into_data().unwrap();
            let event: Value = serde_json::from_slice(&frame).unwrap();
            let condition = &event["object"]["status"]["conditions"][0];
            if condition["reason"] == reason {
                return condition["message"].as_str().unwrap().to_owned();
            }
        }
        panic!("the watch ends");
    });
    waited
        .await
        .unwrap_or_else(|_| panic!("the reason is never {reason}"))
}

#[tokio::test]
async fn requests_for_an_api_service_go_to_its_service() {
    let pair = start().await;
    let (front, backend) = (&pair.front, &pair.backend);
    assert_eq!(front.get(ROBOTS).await.0, 404);
    let message_of_condition = register(front, &insecure(), "Passed").await;
    assert_eq!(message_of_condition, "all checks passed");
    let (code, created) = front.post(ROBOTS, robot("one")).await;
    assert_eq!(code, 201, "{created}");
    let (_, stored) = backend.get(&format!("{ROBOTS}/one")).await;
    assert_eq!(stored["metadata"]["uid"], created["metadata"]["uid"]);
    let (code, list) = front.get(&format!("{ROBOTS}?limit=1")).await;
    assert_eq!((code, &list["kind"]), (200, &json!("RobotList")));
    let missing = front.get(&format!("{ROBOTS}/two")).await;
    assert_eq!(missing.0, 404);
    let expected = "robots.robot.opkit.dev \"two\" not found";
    assert_eq!(message(&missing), expected);
    let frames = front.frames(&format!("{ROBOTS}?watch=true"), 1).await;
    assert_eq!(frames[0]["object"]["metadata"]["name"], "one");
}

#[tokio::test]
async fn the_aggregated_server_knows_the_user() {
    let pair = start().await;
    let (front, backend) = (&pair.front, &pair.backend);
    register(front, &insecure(), "Passed").await;
    // The first server lets alice pass, the second one does not know her.
    let rules = json!([{"apiGroups": ["robot.opkit.dev"], "resources": ["*"], "verbs": ["*"]}]);
    front.grant_to_alice("robots", rules.clone()).await;
    let denied = front.get_as_alice(ROBOTS).await;
    assert_eq!(denied.0, 403);
    assert_eq!(
        message(&denied),
        "robots.robot.opkit.dev is forbidden: User \"alice\" cannot list resource \"robots\" in \
         API group \"robot.opkit.dev\" in the namespace \"default\""
    );
    // The headers of a client are not believed.
    let alice = front.server.service_as("alice", &[]);
    let request = (Method::GET, ROBOTS);
    let (code, _) = front.send_as(alice, request, &FORGED, &Value::Null).await;
    assert_eq!(code, 403);
    backend.grant_to_alice("robots", rules).await;
    assert_eq!(front.get_as_alice(ROBOTS).await.0, 200);
}

const FORGED: [(&str, &str); 2] = [
    ("x-remote-user", "root"),
    ("x-remote-group", "system:masters"),
];

#[tokio::test]
async fn only_a_front_proxy_may_name_a_user() {
    let Pair { backend, .. } = start().await;
    let remote = backend.server.remote_service();
    let request = (Method::GET, "/api/v1/secrets");
    let denied = backend
        .send_as(remote, request, &FORGED, &Value::Null)
        .await;
    assert_eq!(denied.0, 403);
    assert!(message(&denied).contains("User \"system:anonymous\""));
}

#[tokio::test]
async fn discovery_and_openapi_have_the_aggregated_group() {
    let pair = start().await;
    let front = &pair.front;
    register(front, &insecure(), "Passed").await;
    let (_, groups) = front.get("/apis").await;
    let groups = groups["groups"].as_array().unwrap();
    // The lowest priority comes last.
    assert_eq!(groups.last().unwrap()["name"], "robot.opkit.dev");
    let (_, group) = front.get("/apis/robot.opkit.dev").await;
    let preferred = &group["preferredVersion"]["groupVersion"];
    assert_eq!(preferred, "robot.opkit.dev/v1");
    let (_, resources) = front.get("/apis/robot.opkit.dev/v1").await;
    assert_eq!(resources["resources"][0]["name"], "robots");
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let aggregated = front.raw("/apis", &[("accept", accept)]).await;
    let aggregated: Value = serde_json::from_slice(aggregated.body()).unwrap();
    let group = aggregated["items"].as_array().unwrap().last().unwrap();
    assert_eq!(group["metadata"]["name"], "robot.opkit.dev");
    assert_eq!(group["versions"][0]["freshness"], "Current");
    let resource = &group["versions"][0]["resources"][0];
    assert_eq!(resource["resource"], "robots");
    assert_eq!(resource["subresources"][0]["subresource"], "status");
    let (_, index) = front.get("/openapi/v3").await;
    let url = &index["paths"]["apis/robot.opkit.dev/v1"]["serverRelativeURL"];
    let (code, document) = front.get(url.as_str().unwrap()).await;
    assert_eq!(code, 200);
    let schema = &document["components"]["schemas"]["dev.opkit.robot.v1.Robot"];
    assert!(schema.is_object(), "{document}");
}

#[tokio::test]
async fn an_unavailable_api_server_is_503() {
    let pair = start().await;
    let front = &pair.front;
    let (code, created) = front.post(API_SERVICES, api_service(&json!({}))).await;
    assert_eq!((code, &created["status"]), (201, &json!({})));
    let why = condition(front, "ServiceNotFound").await;
    assert_eq!(why, "service/robots in \"default\" is not present");
    let unavailable = (503, json!("service unavailable\n"));
    assert_eq!(front.get(ROBOTS).await, unavailable);
    assert_eq!(front.get("/apis/robot.opkit.dev/v1").await, unavailable);
    let (_, group) = front.get("/apis/robot.opkit.dev").await;
    assert_eq!(group["name"], "robot.opkit.dev");

    assert_eq!(front.post(SERVICES, service()).await.0, 201);
    let why = condition(front, "FailedDiscoveryCheck").await;
    let expected = "failing or missing response from https://127.0.0.1:";
    assert!(
        why.starts_with(expected) && why.contains("UnknownIssuer"),
        "{why}"
    );

    let (code, _) = front.merge(API_SERVICE, json!({"spec": insecure()})).await;
    assert_eq!(code, 200);
    condition(front, "Passed").await;
    assert_eq!(front.get(ROBOTS).await.0, 200);

    assert_eq!(front.delete(API_SERVICE, Value::Null).await.0, 200);
    front.until(ROBOTS, Value::is_null).await;
}

#[tokio::test]
async fn an_api_server_that_stops_becomes_unavailable() {
    let pair = start().await;
    let (front, backend) = (&pair.front, &pair.backend);
    register(front, &insecure(), "Passed").await;
    backend.server.shutdown().await;
    let (code, text) = front.get(ROBOTS).await;
    assert_eq!(code, 503);
    let text = text.as_str().unwrap();
    assert!(
        text.starts_with("error trying to reach service: "),
        "{text}"
    );
    // Any change of a Service repeats the check.
    let labels = json!({"metadata": {"labels": {"checked": "again"}}});
    assert_eq!(
        front.merge(&format!("{SERVICES}/robots"), labels).await.0,
        200
    );
    condition(front, "FailedDiscoveryCheck").await;
}

#[tokio::test]
async fn the_certificate_is_verified_for_the_name_of_the_service() {
    let pair = start().await;
    let front = &pair.front;
    let spec = json!({"caBundle": pair.bundle});
    let why = register(front, &spec, "FailedDiscoveryCheck").await;
    assert!(why.contains("robots.default.svc"), "{why}");
}

#[tokio::test]
async fn a_service_without_endpoints_is_not_available() {
    let front = Api::alone();
    let why = register(&front, &json!({}), "EndpointsNotFound").await;
    let expected = "cannot find endpointslices for service/robots in \"default\"";
    assert_eq!(why, expected);
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "robots-1", "labels": {"kubernetes.io/service-name": "robots"}},
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": false}}],
        "ports": [{"name": "", "port": 443}],
    });
    assert_eq!(front.post(slices, slice).await.0, 201);
    let why = condition(&front, "MissingEndpoints").await;
    let expected =
        "endpointslices for service/robots in \"default\" have no addresses with port name \"\"";
    assert_eq!(why, expected);
    let ready = json!({"endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": true}}]});
    assert_eq!(
        front.merge(&format!("{slices}/robots-1"), ready).await.0,
        200
    );
    let why = condition(&front, "FailedDiscoveryCheck").await;
    let expected = "--service-address default/robots=HOST:PORT";
    assert!(why.contains(expected), "{why}");
    let port = json!({"spec": {"service": {"port": 8443}}});
    assert_eq!(front.merge(API_SERVICE, port).await.0, 200);
    let why = condition(&front, "ServicePortError").await;
    let expected = "service/robots in \"default\" is not listening on port 8443";
    assert_eq!(why, expected);
}

#[tokio::test]
async fn local_api_services_follow_the_crds() {
    let api = Api::alone();
    let (_, apps) = api.get(&format!("{API_SERVICES}/v1.apps")).await;
    assert_eq!(apps["spec"]["groupPriorityMinimum"], 17_800);
    assert_eq!(apps["status"]["conditions"][0]["reason"], "Local");
    assert_eq!(api.post(CRDS, robot_crd()).await.0, 201);
    let created = api.until(API_SERVICE, Value::is_object).await;
    let labels = json!({"kube-aggregator.kubernetes.io/automanaged": "true"});
    assert_eq!(created["metadata"]["labels"], labels);
    assert_eq!(created["spec"]["groupPriorityMinimum"], 1000);
    // A change of the server's own APIServices is reverted.
    let change = json!({"spec": {"groupPriorityMinimum": 2000}});
    assert_eq!(api.merge(API_SERVICE, change).await.0, 200);
    let is_reverted = |object: &Value| object["spec"]["groupPriorityMinimum"] == 1000;
    api.until(API_SERVICE, is_reverted).await;
    let crd = format!("{CRDS}/robots.robot.opkit.dev");
    assert_eq!(api.delete(&crd, Value::Null).await.0, 200);
    api.until(API_SERVICE, Value::is_null).await;
}

#[tokio::test]
async fn a_wrong_api_service_is_refused() {
    let api = Api::alone();
    for (spec, field, detail) in [
        (
            json!({"versionPriority": 0}),
            "spec.versionPriority",
            "must be positive and less than 1000",
        ),
        (
            json!({"groupPriorityMinimum": 20_001}),
            "spec.groupPriorityMinimum",
            "must be positive and less than 20000",
        ),
        (
            json!({"insecureSkipTLSVerify": true, "caBundle": "YQ=="}),
            "spec.insecureSkipTLSVerify",
            "may not be true if caBundle is present",
        ),
        (
            json!({"service": {"name": "", "namespace": "a"}}),
            "spec.service.name",
            "Required value",
        ),
        (
            json!({"service": null, "caBundle": "YQ=="}),
            "spec.caBundle: Invalid value: \"1 bytes\"",
            "local APIServices may not have a caBundle",
        ),
        (
            json!({"version": "v2"}),
            "metadata.name",
            "must be `spec.version+\".\"+spec.group`: \"v2.robot.opkit.dev\"",
        ),
    ] {
        let refused = api.post(API_SERVICES, api_service(&spec)).await;
        assert_eq!(refused.0, 422, "{}", refused.1);
        let text = message(&refused);
        assert!(text.contains(field) && text.contains(detail), "{text}");
    }
}
