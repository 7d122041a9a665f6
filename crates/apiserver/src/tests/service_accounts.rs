//! ServiceAccounts of namespaces and Pods.

use super::*;
use crate::AdmissionPlugin;

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const PODS: &str = "/api/v1/namespaces/default/pods";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

fn pod(name: &str, spec: Value) -> Value {
    let mut spec = spec;
    spec["containers"] = json!([{"name": "main", "image": "nginx:1"}]);
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
}

#[tokio::test]
async fn a_pod_gets_the_default_account_and_its_token() {
    let api = Api::start();
    let (code, created) = api.post(PODS, pod("a", json!({}))).await;
    assert_eq!(code, 201, "{created}");
    let spec = &created["spec"];
    assert_eq!(spec["serviceAccountName"], "default");
    assert_eq!(spec["serviceAccount"], "default");
    let volume = &spec["volumes"][0];
    let name = volume["name"].as_str().unwrap();
    assert!(
        name.starts_with("kube-api-access-") && name.len() == 21,
        "{name}"
    );
    let projected = &volume["projected"];
    assert_eq!(projected["defaultMode"], 420);
    let token = &projected["sources"][0]["serviceAccountToken"];
    assert_eq!(*token, json!({"expirationSeconds": 3607, "path": "token"}));
    assert_eq!(
        spec["containers"][0]["volumeMounts"],
        json!([{"mountPath": MOUNT_PATH, "name": name, "readOnly": true}])
    );
    let managers = created["metadata"]["managedFields"].to_string();
    for field in ["serviceAccount", "volumes", "tolerations", "priority"] {
        assert!(!managers.contains(field), "{field}: {managers}");
    }
    let running = |pod: &Value| pod["status"]["phase"] == "Running";
    api.until(&format!("{PODS}/a"), running).await;
}

#[tokio::test]
async fn a_missing_account_is_an_error() {
    let api = Api::start();
    let wanted = json!({"serviceAccountName": "robot"});
    let response = api.post(PODS, pod("a", wanted.clone())).await;
    assert_eq!(response.0, 403);
    assert_eq!(
        message(&response),
        "pods \"a\" is forbidden: error looking up service account default/robot: \
         serviceaccount \"robot\" not found"
    );
    let account = json!({
        "metadata": {"name": "robot"}, "automountServiceAccountToken": false,
        "imagePullSecrets": [{"name": "registry"}],
    });
    api.post(ACCOUNTS, account).await;
    let (code, created) = api.post(PODS, pod("a", wanted)).await;
    assert_eq!(code, 201, "{created}");
    assert!(created["spec"]["volumes"].is_null(), "{created}");
    let secrets = &created["spec"]["imagePullSecrets"];
    assert_eq!(*secrets, json!([{"name": "registry"}]));
}

#[tokio::test]
async fn the_default_account_comes_back() {
    let api = Api::start();
    let path = format!("{ACCOUNTS}/default");
    let first = api.until(&path, |account| !account.is_null()).await;
    api.delete(&path, Value::Null).await;
    let second = api.until(&path, |account| !account.is_null()).await;
    assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"]);
}

#[tokio::test]
async fn a_pod_of_a_new_namespace_does_not_wait_for_the_controller() {
    let api = Api::start();
    api.post("/api/v1/namespaces", json!({"metadata": {"name": "new"}}))
        .await;
    let (code, created) = api
        .post("/api/v1/namespaces/new/pods", pod("a", json!({})))
        .await;
    assert_eq!(code, 201, "{created}");
}

#[tokio::test]
async fn mirror_pods_use_no_account() {
    let api = Api::start();
    let mut mirror = pod("a", json!({}));
    mirror["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
    mirror["spec"]["nodeName"] = json!("n");
    let (code, created) = api.post(PODS, mirror.clone()).await;
    assert_eq!(code, 201, "{created}");
    assert!(created["spec"]["serviceAccountName"].is_null());
    mirror["metadata"]["name"] = json!("b");
    mirror["spec"]["serviceAccountName"] = json!("default");
    let response = api.post(PODS, mirror).await;
    assert!(message(&response).ends_with("a mirror pod may not reference service accounts"));
}

#[tokio::test]
async fn the_plugin_can_be_disabled() {
    let mut plugins = AdmissionPlugin::ALL.to_vec();
    plugins.retain(|plugin| *plugin != AdmissionPlugin::ServiceAccount);
    let api = Api::with(Options {
        admission_plugins: plugins,
        ..Options::default()
    });
    let (_, created) = api.post(PODS, pod("a", json!({}))).await;
    assert!(created["spec"]["serviceAccountName"].is_null(), "{created}");
    assert_eq!(created["spec"]["priority"], 0);
}

#[tokio::test]
async fn a_priority_comes_from_its_class() {
    let api = Api::start();
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let high = json!({"metadata": {"name": "high"}, "value": 1000});
    assert_eq!(api.post(classes, high).await.0, 201);
    let (_, created) = api
        .post(PODS, pod("a", json!({"priorityClassName": "high"})))
        .await;
    assert_eq!(created["spec"]["priority"], 1000);
    let response = api
        .post(PODS, pod("b", json!({"priorityClassName": "none"})))
        .await;
    assert_eq!(
        message(&response),
        "pods \"b\" is forbidden: no PriorityClass with name none was found"
    );
}
