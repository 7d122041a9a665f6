//! The API server without the controllers of a cluster, as under envtest.

use super::*;

/// Lets the controllers that run, if any, handle all events.
async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn nothing_acts_on_workloads_and_namespaces() {
    let api = Api::alone();
    api.post(DEPLOYMENTS, deployment("web", 1, "nginx:1")).await;
    let namespace = json!({"metadata": {"name": "temporary"}});
    api.post("/api/v1/namespaces", namespace).await;
    api.delete("/api/v1/namespaces/temporary", Value::Null)
        .await;
    settle().await;
    let (_, pods) = api.get("/api/v1/pods").await;
    assert_eq!(pods["items"], json!([]));
    let (_, namespace) = api.get("/api/v1/namespaces/temporary").await;
    assert_eq!(namespace["status"]["phase"], "Terminating");
    let (_, accounts) = api.get("/api/v1/serviceaccounts").await;
    assert_eq!(accounts["items"], json!([]));
    let (_, nodes) = api.get("/api/v1/nodes").await;
    assert_eq!(nodes["items"], json!([]));
}

#[tokio::test]
async fn owners_do_not_take_their_dependents_along() {
    let api = Api::alone();
    let (_, owner) = api.post(CONFIG_MAPS, config_map("owner")).await;
    let mut dependent = config_map("dependent");
    dependent["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"],
    }]);
    api.post(CONFIG_MAPS, dependent).await;
    api.delete(&format!("{CONFIG_MAPS}/owner"), Value::Null)
        .await;
    settle().await;
    let (code, _) = api.get(&format!("{CONFIG_MAPS}/dependent")).await;
    assert_eq!(code, 200);
}

#[tokio::test]
async fn the_work_of_the_api_server_itself_is_done() {
    let api = Api::alone();
    let (_, service) = api
        .get("/api/v1/namespaces/default/services/kubernetes")
        .await;
    assert_eq!(service["spec"]["clusterIP"], "10.96.0.1");
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    api.post(crds, robot_crd()).await;
    assert_eq!(api.post(ROBOTS, robot("one")).await.0, 201);
    let crd = format!("{crds}/robots.robot.opkit.dev");
    api.delete(&crd, Value::Null).await;
    api.until(&crd, Value::is_null).await;
}
