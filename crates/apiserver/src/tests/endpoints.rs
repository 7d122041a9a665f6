//! EndpointSlices and Endpoints of Services.

use super::*;

const SERVICES: &str = "/api/v1/namespaces/default/services";
const PODS: &str = "/api/v1/namespaces/default/pods";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints";

fn web(spec: Value) -> Value {
    let mut spec = spec;
    spec["selector"] = json!({"app": "web"});
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "labels": {"tier": "front"}}, "spec": spec,
    })
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{
            "name": "main", "image": "nginx:1", "ports": [{"name": "http", "containerPort": 8080}],
        }]},
    })
}

fn slices(list: &Value) -> Vec<&Value> {
    list["items"].as_array().unwrap().iter().collect()
}

fn endpoint_count(list: &Value) -> usize {
    let slices = slices(list).into_iter();
    slices
        .map(|slice| slice["endpoints"].as_array().map_or(0, Vec::len))
        .sum()
}

#[tokio::test]
async fn a_service_has_the_addresses_of_its_pods() {
    let api = Api::start();
    let ports = json!({"ports": [{"name": "web", "port": 80, "targetPort": "http"}]});
    let (_, service) = api.post(SERVICES, web(ports)).await;
    let list = api.until(SLICES, |list| !slices(list).is_empty()).await;
    assert_eq!(endpoint_count(&list), 0, "a placeholder: {list}");
    for name in ["a", "b"] {
        api.post(PODS, pod(name)).await;
    }
    let list = api.until(SLICES, |list| endpoint_count(list) == 2).await;
    let slice = slices(&list)[0];
    assert_eq!(slices(&list).len(), 1);
    assert_eq!(
        slice["metadata"]["labels"],
        json!({
            "tier": "front", "kubernetes.io/service-name": "web",
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        })
    );
    let owner = &slice["metadata"]["ownerReferences"][0];
    assert_eq!(owner["uid"], service["metadata"]["uid"]);
    assert_eq!(
        slice["ports"],
        json!([{"name": "web", "port": 8080, "protocol": "TCP"}])
    );
    let (_, running) = api.get(&format!("{PODS}/a")).await;
    let endpoint = &slice["endpoints"][0];
    assert_eq!(endpoint["addresses"][0], running["status"]["podIP"]);
    assert_eq!(
        endpoint["conditions"],
        json!({"ready": true, "serving": true, "terminating": false})
    );
    assert_eq!(endpoint["targetRef"]["name"], "a");
    let path = format!("{ENDPOINTS}/web");
    let done = |endpoints: &Value| endpoints["subsets"][0]["addresses"][1].is_object();
    let endpoints = api.until(&path, done).await;
    assert_eq!(endpoints["subsets"][0]["ports"][0]["port"], 8080);

    api.delete(&format!("{PODS}/a"), Value::Null).await;
    api.until(SLICES, |list| endpoint_count(list) == 1).await;
    api.delete(&format!("{SERVICES}/web"), Value::Null).await;
    api.until(SLICES, |list| slices(list).is_empty()).await;
    assert_eq!(api.get(&path).await.0, 404);
}

#[tokio::test]
async fn a_pod_that_is_not_ready_is_published_on_request() {
    let api = Api::start();
    let ports = json!({"ports": [{"port": 80}]});
    api.post(SERVICES, web(ports)).await;
    api.post(PODS, pod("a")).await;
    api.until(SLICES, |list| endpoint_count(list) == 1).await;
    let status = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    let path = format!("{PODS}/a/status");
    api.merge(&path, status).await;
    let ready = |list: &Value| list["items"][0]["endpoints"][0]["conditions"]["ready"].clone();
    api.until(SLICES, |list| ready(list) == false).await;
    let path = format!("{ENDPOINTS}/web");
    let is_not_ready = |e: &Value| e["subsets"][0]["notReadyAddresses"][0].is_object();
    api.until(&path, is_not_ready).await;
    let all = json!({"spec": {"publishNotReadyAddresses": true}});
    api.merge(&format!("{SERVICES}/web"), all).await;
    api.until(SLICES, |list| ready(list) == true).await;
}

#[tokio::test]
async fn a_headless_service_has_a_label() {
    let api = Api::start();
    api.post(SERVICES, web(json!({"clusterIP": "None"}))).await;
    let list = api.until(SLICES, |list| !slices(list).is_empty()).await;
    let labels = &list["items"][0]["metadata"]["labels"];
    assert_eq!(labels["service.kubernetes.io/headless"], "");
    api.post(PODS, pod("a")).await;
    api.until(SLICES, |list| endpoint_count(list) == 1).await;
}

#[tokio::test]
async fn a_deleted_slice_comes_back() {
    let api = Api::start();
    api.post(SERVICES, web(json!({"ports": [{"port": 80}]})))
        .await;
    let list = api.until(SLICES, |list| !slices(list).is_empty()).await;
    let name = list["items"][0]["metadata"]["name"].as_str().unwrap();
    api.delete(&format!("{SLICES}/{name}"), Value::Null).await;
    api.until(SLICES, |list| {
        !slices(list).is_empty() && list["items"][0]["metadata"]["name"] != name
    })
    .await;
}

#[tokio::test]
async fn the_api_server_publishes_its_own_address() {
    let api = Api::start();
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let endpoint = api.server.listen(address).await.unwrap();
    let (_, slice) = api.get(&format!("{SLICES}/kubernetes")).await;
    assert_eq!(slice["endpoints"][0]["addresses"], json!(["127.0.0.1"]));
    assert_eq!(slice["ports"][0]["port"], endpoint.address().port());
    let (_, endpoints) = api.get(&format!("{ENDPOINTS}/kubernetes")).await;
    assert_eq!(endpoints["subsets"][0]["addresses"][0]["ip"], "127.0.0.1");
    let (_, service) = api.get(&format!("{SERVICES}/kubernetes")).await;
    let target = &service["spec"]["ports"][0]["targetPort"];
    assert_eq!(*target, endpoint.address().port());
    let trust = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    let (_, trust) = api.get(trust).await;
    let (_, root) = api.get(&format!("{CONFIG_MAPS}/kube-root-ca.crt")).await;
    assert_eq!(trust["data"]["client-ca-file"], root["data"]["ca.crt"]);
    let pem = root["data"]["ca.crt"].as_str().unwrap();
    assert!(pem.starts_with("-----BEGIN CERTIFICATE-----"), "{pem}");
    api.post("/api/v1/namespaces", json!({"metadata": {"name": "new"}}))
        .await;
    let path = "/api/v1/namespaces/new/configmaps/kube-root-ca.crt";
    api.until(path, |map| map["data"]["ca.crt"] == pem).await;
    api.merge(path, json!({"data": {"ca.crt": "x"}})).await;
    api.until(path, |map| map["data"]["ca.crt"] == pem).await;
    api.delete(path, Value::Null).await;
    api.until(path, |map| map["data"]["ca.crt"] == pem).await;
}
