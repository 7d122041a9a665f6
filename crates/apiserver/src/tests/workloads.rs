use super::*;

const PODS: &str = "/api/v1/namespaces/default/pods";

fn ready(deployment: &Value, replicas: i64) -> bool {
    let status = &deployment["status"];
    status["observedGeneration"] == deployment["metadata"]["generation"]
        && status["readyReplicas"] == replicas
        && status["updatedReplicas"] == replicas
        && status["replicas"] == replicas
}

async fn images(api: &Api) -> Vec<String> {
    let (_, pods) = api.get(PODS).await;
    let items = pods["items"].as_array().unwrap().iter();
    items
        .map(|pod| {
            pod["spec"]["containers"][0]["image"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect()
}

#[tokio::test]
async fn a_deployment_becomes_running_pods() {
    let api = Api::start();
    api.post(DEPLOYMENTS, deployment("web", 3, "nginx:1")).await;
    let path = format!("{DEPLOYMENTS}/web");
    let done = api.until(&path, |d| ready(d, 3)).await;
    assert_eq!(
        done["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
        "1"
    );
    let (_, pods) = api.get(PODS).await;
    for pod in pods["items"].as_array().unwrap() {
        assert_eq!(pod["status"]["phase"], "Running");
        assert_eq!(pod["metadata"]["generation"], 1);
        assert_eq!(pod["metadata"]["ownerReferences"][0]["kind"], "ReplicaSet");
    }
}

#[tokio::test]
async fn a_new_template_replaces_the_pods() {
    let api = Api::start();
    api.post(DEPLOYMENTS, deployment("web", 4, "nginx:1")).await;
    let path = format!("{DEPLOYMENTS}/web");
    api.until(&path, |d| ready(d, 4)).await;
    let template = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "nginx:2"}]}}}});
    api.merge(&path, template).await;
    api.until(&path, |d| ready(d, 4)).await;
    assert_eq!(images(&api).await, ["nginx:2"; 4]);
    let (_, sets) = api
        .get("/apis/apps/v1/namespaces/default/replicasets")
        .await;
    assert_eq!(
        sets["items"].as_array().unwrap().len(),
        2,
        "the old one is kept as history"
    );
}

#[tokio::test]
async fn a_deployment_is_scaled_and_deleted_with_its_pods() {
    let api = Api::start();
    api.post(DEPLOYMENTS, deployment("web", 2, "nginx:1")).await;
    let path = format!("{DEPLOYMENTS}/web");
    for replicas in [5, 1] {
        api.merge(
            &format!("{path}/scale"),
            json!({"spec": {"replicas": replicas}}),
        )
        .await;
        api.until(&path, |d| ready(d, replicas)).await;
    }
    api.delete(&path, json!({"propagationPolicy": "Background"}))
        .await;
    api.until(PODS, |pods| pods["items"].as_array().unwrap().is_empty())
        .await;
}

#[tokio::test]
async fn a_deleted_pod_is_replaced() {
    let api = Api::start();
    api.post(DEPLOYMENTS, deployment("web", 1, "nginx:1")).await;
    let path = format!("{DEPLOYMENTS}/web");
    api.until(&path, |d| ready(d, 1)).await;
    let (_, pods) = api.get(PODS).await;
    let name = pods["items"][0]["metadata"]["name"].as_str().unwrap();
    api.delete(&format!("{PODS}/{name}"), Value::Null).await;
    api.until(&format!("{PODS}/{name}"), Value::is_null).await;
    api.until(&path, |d| ready(d, 1)).await;
}

#[tokio::test]
async fn replicas_are_not_negative() {
    let api = Api::start();
    let response = api
        .post(DEPLOYMENTS, deployment("web", -1, "nginx:1"))
        .await;
    assert_eq!(response.0, 422);
    let want = "spec.replicas: Invalid value: -1: must be greater than or equal to 0";
    assert!(message(&response).contains(want), "{}", message(&response));
}

#[tokio::test]
async fn a_selector_must_match_its_own_template() {
    let api = Api::start();
    let mut wrong = deployment("web", 1, "nginx:1");
    wrong["spec"]["selector"]["matchLabels"]["app"] = json!("other");
    let response = api.post(DEPLOYMENTS, wrong).await;
    assert_eq!(response.0, 422);
    assert!(message(&response).contains("spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does not match template `labels`"), "{}", message(&response));
    api.post(DEPLOYMENTS, deployment("web", 1, "nginx:1")).await;
    let change = json!({"spec": {
        "selector": {"matchLabels": {"app": "b"}},
        "template": {"metadata": {"labels": {"app": "b"}}},
    }});
    let response = api.merge(&format!("{DEPLOYMENTS}/web"), change).await;
    assert_eq!(response.0, 422);
    assert!(
        message(&response).contains("field is immutable"),
        "{}",
        message(&response)
    );
}

#[tokio::test]
async fn an_invalid_rolling_update_is_refused_and_others_go_on() {
    let api = Api::start();
    for (surge, unavailable, code) in [
        (json!(i64::MAX), json!(0), 400),
        (json!(-1), json!("-50%"), 422),
    ] {
        let mut wrong = deployment("web", 1, "nginx:1");
        wrong["spec"]["strategy"] =
            json!({"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}});
        assert_eq!(api.post(DEPLOYMENTS, wrong).await.0, code);
    }
    let mut odd = deployment("odd", 1, "nginx:1");
    odd["metadata"]["annotations"] =
        json!({"deployment.kubernetes.io/revision": i64::MAX.to_string()});
    api.post(DEPLOYMENTS, odd).await;
    api.post(DEPLOYMENTS, deployment("web", 2, "nginx:1")).await;
    api.until(&format!("{DEPLOYMENTS}/web"), |d| ready(d, 2))
        .await;
}

#[tokio::test]
async fn orphans_that_match_are_adopted() {
    let api = Api::start();
    api.post(DEPLOYMENTS, deployment("web", 2, "nginx:1")).await;
    let path = format!("{DEPLOYMENTS}/web");
    api.until(&path, |d| ready(d, 2)).await;
    let (_, before) = api.get(PODS).await;
    api.delete(&path, json!({"propagationPolicy": "Orphan"}))
        .await;
    api.until(&path, Value::is_null).await;

    api.post(DEPLOYMENTS, deployment("web", 2, "nginx:1")).await;
    api.until(&path, |d| ready(d, 2)).await;
    let (_, after) = api.get(PODS).await;
    let names = |pods: &Value| -> Vec<String> {
        let items = pods["items"].as_array().unwrap().iter();
        items
            .map(|pod| pod["metadata"]["name"].to_string())
            .collect()
    };
    assert_eq!(names(&after), names(&before), "the same pods serve on");
}

#[tokio::test]
async fn a_pod_that_no_longer_matches_is_released_and_replaced() {
    let api = Api::start();
    api.post(DEPLOYMENTS, deployment("web", 1, "nginx:1")).await;
    let path = format!("{DEPLOYMENTS}/web");
    api.until(&path, |d| ready(d, 1)).await;
    let (_, pods) = api.get(PODS).await;
    let name = pods["items"][0]["metadata"]["name"].as_str().unwrap();
    let pod = format!("{PODS}/{name}");
    api.merge(&pod, json!({"metadata": {"labels": {"app": "other"}}}))
        .await;
    api.until(&pod, |pod| pod["metadata"]["ownerReferences"].is_null())
        .await;
    api.until(PODS, |pods| pods["items"].as_array().unwrap().len() == 2)
        .await;
    api.until(&path, |d| ready(d, 1)).await;
}

#[tokio::test]
async fn a_replica_set_gets_another_name_if_its_name_is_taken() {
    let api = Api::start();
    api.post(DEPLOYMENTS, deployment("web", 1, "nginx:1")).await;
    let path = format!("{DEPLOYMENTS}/web");
    api.until(&path, |d| ready(d, 1)).await;
    // A user edits the template of the ReplicaSet: it is now an old one with the name of the new
    // one.
    let sets = "/apis/apps/v1/namespaces/default/replicasets";
    let (_, list) = api.get(sets).await;
    let name = list["items"][0]["metadata"]["name"].as_str().unwrap();
    let template = json!({"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}});
    api.merge(&format!("{sets}/{name}"), template).await;
    let done = api
        .until(&path, |d| ready(d, 1) && d["status"]["collisionCount"] == 1)
        .await;
    assert_eq!(done["status"]["replicas"], 1);
}
