//! Quotas: charged by admission, measured by their controller.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{Api, CONFIG_MAPS, config_map, deployment, message};
use crate::Options;

const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// Creates a quota, and waits until its status has its limits.
async fn create_quota(api: &Api, name: &str, spec: Value) -> Value {
    let quota = json!({"metadata": {"name": name}, "spec": spec});
    let (code, response) = api.post(QUOTAS, quota).await;
    assert_eq!(code, 201, "{response}");
    let path = format!("{QUOTAS}/{name}");
    let is_ready = |quota: &Value| quota["status"]["used"].is_object();
    api.until(&path, is_ready).await
}

/// Waits until a quota has this use.
async fn used(api: &Api, name: &str, expected: Value) {
    let path = format!("{QUOTAS}/{name}");
    let is_used = |quota: &Value| quota["status"]["used"] == expected;
    api.until(&path, is_used).await;
}

fn pod(name: &str, cpu: &str) -> Value {
    let resources = json!({"requests": {"cpu": cpu}});
    let containers = json!([{"name": "c", "image": "x", "resources": resources}]);
    json!({"metadata": {"name": name}, "spec": {"containers": containers}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_clients_never_exceed_a_quota() {
    let api = Arc::new(Api::start());
    let quota = create_quota(&api, "q", json!({"hard": {"count/configmaps": "101"}})).await;
    // The ConfigMap with the certificate of the server is one of them.
    let present = quota["status"]["used"]["count/configmaps"]
        .as_str()
        .unwrap();
    let left: usize = 101 - present.parse::<usize>().unwrap();
    let mut clients = JoinSet::new();
    for client in 0..32 {
        let api = api.clone();
        clients.spawn(async move {
            let mut created = 0;
            for number in 0..10 {
                let name = format!("m-{client}-{number}");
                let response = api.post(CONFIG_MAPS, config_map(&name)).await;
                match response.0 {
                    201 => created += 1,
                    403 => assert!(
                        message(&response).contains("exceeded quota: q"),
                        "{response:?}"
                    ),
                    _ => panic!("{response:?}"),
                }
            }
            created
        });
    }
    let created: Vec<usize> = clients.join_all().await;
    assert_eq!(created.iter().sum::<usize>(), left);
    used(&api, "q", json!({"count/configmaps": "101"})).await;
    let (_, list) = api.get(CONFIG_MAPS).await;
    assert_eq!(list["items"].as_array().unwrap().len(), 101);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_use_is_exact_while_objects_come_and_go() {
    let api = Arc::new(Api::start());
    create_quota(&api, "q", json!({"hard": {"secrets": "10"}})).await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let mut clients = JoinSet::new();
    for client in 0..8 {
        let api = api.clone();
        clients.spawn(async move {
            for number in 0..20 {
                let name = format!("s-{client}-{number}");
                let secret = json!({"metadata": {"name": name}});
                if api.post(secrets, secret).await.0 == 201 {
                    let (_, list) = api.get(secrets).await;
                    assert!(list["items"].as_array().unwrap().len() <= 10, "{list}");
                    let path = format!("{secrets}/{name}");
                    assert_eq!(api.delete(&path, Value::Null).await.0, 200);
                }
            }
        });
    }
    clients.join_all().await;
    used(&api, "q", json!({"secrets": "0"})).await;
}

#[tokio::test]
async fn the_controller_measures_what_is_there() {
    let api = Api::start();
    assert_eq!(api.post(PODS, pod("a", "500m")).await.0, 201);
    let quota = create_quota(
        &api,
        "q",
        json!({"hard": {"requests.cpu": "1", "pods": "5"}}),
    )
    .await;
    assert_eq!(
        quota["status"]["hard"],
        json!({"requests.cpu": "1", "pods": "5"})
    );
    used(&api, "q", json!({"requests.cpu": "500m", "pods": "1"})).await;
    let response = api.post(PODS, pod("b", "600m")).await;
    assert!(message(&response).contains("exceeded quota: q, requested: requests.cpu=600m"));
    let deleted = api
        .delete(&format!("{PODS}/a"), json!({"gracePeriodSeconds": 0}))
        .await;
    assert_eq!(deleted.0, 200);
    used(&api, "q", json!({"requests.cpu": "0", "pods": "0"})).await;
    assert_eq!(api.post(PODS, pod("b", "600m")).await.0, 201);
    let path = format!("{QUOTAS}/q");
    let more = json!({"spec": {"hard": {"pods": null, "requests.cpu": "3", "count/pods": "9"}}});
    assert_eq!(api.merge(&path, more).await.0, 200);
    used(
        &api,
        "q",
        json!({"requests.cpu": "600m", "count/pods": "1"}),
    )
    .await;
    // A pod that has ended uses no more CPU.
    let ended = json!({"status": {"phase": "Succeeded"}});
    assert_eq!(api.merge(&format!("{PODS}/b/status"), ended).await.0, 200);
    used(&api, "q", json!({"requests.cpu": "0", "count/pods": "1"})).await;
}

#[tokio::test]
async fn a_charge_for_an_object_that_is_not_stored_is_taken_back() {
    let api = Api::start();
    assert_eq!(api.post(CONFIG_MAPS, config_map("a")).await.0, 201);
    let quota = create_quota(&api, "q", json!({"hard": {"configmaps": "9"}})).await;
    let before = quota["status"]["used"].clone();
    let version = quota["metadata"]["resourceVersion"].clone();
    assert_eq!(api.post(CONFIG_MAPS, config_map("a")).await.0, 409);
    // The quota was charged, and is corrected.
    let path = format!("{QUOTAS}/q");
    let is_corrected = |quota: &Value| {
        quota["metadata"]["resourceVersion"] != version && quota["status"]["used"] == before
    };
    api.until(&path, is_corrected).await;
}

#[tokio::test]
async fn without_controllers_a_quota_has_no_status() {
    let api = Api::alone();
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "0"}}});
    assert_eq!(api.post(QUOTAS, quota).await.0, 201);
    assert_eq!(api.post(CONFIG_MAPS, config_map("a")).await.0, 201);
    let status = json!({"status": {"hard": {"configmaps": "2"}, "used": {"configmaps": "1"}}});
    assert_eq!(
        api.merge(&format!("{QUOTAS}/q/status"), status).await.0,
        200
    );
    assert_eq!(api.post(CONFIG_MAPS, config_map("a")).await.0, 409);
    // As in Kubernetes, nothing takes the charge of the refused object back.
    let (_, quota) = api.get(&format!("{QUOTAS}/q")).await;
    assert_eq!(quota["status"]["used"], json!({"configmaps": "2"}));
    assert_eq!(api.post(CONFIG_MAPS, config_map("b")).await.0, 403);
}

#[tokio::test]
async fn a_deployment_gets_the_pods_that_its_quota_allows() {
    let api = Api::start();
    create_quota(&api, "q", json!({"hard": {"pods": "2"}})).await;
    let deployments = super::DEPLOYMENTS;
    assert_eq!(api.post(deployments, deployment("d", 3, "x")).await.0, 201);
    let path = format!("{deployments}/d");
    api.until(&path, |deployment| deployment["status"]["replicas"] == 2)
        .await;
    used(&api, "q", json!({"pods": "2"})).await;
    let failed = |deployment: &Value| deployment["status"]["conditions"][2].is_object();
    let deployment = api.until(&path, failed).await;
    let condition = &deployment["status"]["conditions"][2];
    assert_eq!(condition["type"], "ReplicaFailure");
    assert_eq!(condition["reason"], "FailedCreate");
    let sets = "/apis/apps/v1/namespaces/default/replicasets";
    let failed = |list: &Value| list["items"][0]["status"]["conditions"][0].is_object();
    let list = api.until(sets, failed).await;
    let condition = &list["items"][0]["status"]["conditions"][0];
    assert_eq!(condition["type"], "ReplicaFailure");
    let message = condition["message"].as_str().unwrap();
    let expected = "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2";
    assert!(message.ends_with(expected), "{message}");
}

#[tokio::test]
async fn custom_resources_are_counted() {
    let api = super::with_robots().await;
    create_quota(
        &api,
        "q",
        json!({"hard": {"count/robots.robot.opkit.dev": "1"}}),
    )
    .await;
    assert_eq!(api.post(super::ROBOTS, super::robot("a")).await.0, 201);
    let response = api.post(super::ROBOTS, super::robot("b")).await;
    assert!(
        message(&response).contains("exceeded quota: q"),
        "{response:?}"
    );
    assert_eq!(
        api.delete(&format!("{}/a", super::ROBOTS), Value::Null)
            .await
            .0,
        200
    );
    used(&api, "q", json!({"count/robots.robot.opkit.dev": "0"})).await;
}

#[tokio::test]
async fn the_plugin_can_be_disabled() {
    let mut options = Options::default();
    options
        .admission_plugins
        .retain(|plugin| plugin.as_str() != "ResourceQuota");
    let api = Api::with(options);
    create_quota(&api, "q", json!({"hard": {"secrets": "0"}})).await;
    let secret = json!({"metadata": {"name": "s"}});
    assert_eq!(
        api.post("/api/v1/namespaces/default/secrets", secret)
            .await
            .0,
        201
    );
}
