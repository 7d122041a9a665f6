//! Subresources of built-in kinds.

use super::*;

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{
            "name": "main", "image": "nginx:1", "resources": {"requests": {"cpu": "1"}},
        }]},
    })
}

fn budget(name: &str, min_available: i64) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
        "spec": {"minAvailable": min_available, "selector": {"matchLabels": {"app": "web"}}},
    })
}

fn eviction(name: &str) -> Value {
    json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}})
}

fn alone() -> Api {
    Api::with(Options {
        controllers: false,
        admission_plugins: Vec::new(),
        ..Options::default()
    })
}

async fn apply(api: &Api, path: &str, config: &Value) -> (u16, Value) {
    let path = format!("{path}?fieldManager=hpa");
    api.send(Method::PATCH, &path, "application/apply-patch+yaml", config)
        .await
}

async fn start_running(api: &Api, names: &[&str]) {
    for name in names {
        api.post(PODS, pod(name)).await;
        let running = |pod: &Value| pod["status"]["phase"] == "Running";
        api.until(&format!("{PODS}/{name}"), running).await;
    }
}

#[tokio::test]
async fn a_binding_assigns_a_pod_once() {
    let api = alone();
    for name in ["a", "b"] {
        api.post(PODS, pod(name)).await;
    }
    let binding = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": name, "annotations": {"by": "hand"}},
            "target": {"kind": "Node", "name": "n"},
        })
    };
    let (code, status) = api.post(&format!("{PODS}/a/binding"), binding("a")).await;
    assert_eq!((code, &status["status"]), (201, &json!("Success")));
    let (_, bound) = api.get(&format!("{PODS}/a")).await;
    assert_eq!(bound["spec"]["nodeName"], "n");
    assert_eq!(bound["metadata"]["annotations"]["by"], "hand");
    assert_eq!(bound["metadata"]["generation"], 1);
    let condition = &bound["status"]["conditions"][0];
    assert_eq!(condition["type"], "PodScheduled");
    let managers = bound["metadata"]["managedFields"].to_string();
    assert!(!managers.contains("nodeName"), "{managers}");
    let again = api.post(&format!("{PODS}/a/binding"), binding("a")).await;
    assert_eq!(
        (again.0, message(&again)),
        (
            409,
            "Operation cannot be fulfilled on pods/binding \"a\": \
             pod a is already assigned to node \"n\""
        )
    );
    let bindings = "/api/v1/namespaces/default/bindings";
    assert_eq!(api.post(bindings, binding("b")).await.0, 201);
    let (_, bound) = api.get(&format!("{PODS}/b")).await;
    assert_eq!(bound["spec"]["nodeName"], "n");
    let other = api.post(&format!("{PODS}/b/binding"), binding("a")).await;
    assert_eq!(
        message(&other),
        "name in URL does not match name in Binding object"
    );
}

#[tokio::test]
async fn an_eviction_respects_the_budget() {
    let api = Api::start();
    start_running(&api, &["a", "b"]).await;
    api.post(BUDGETS, budget("one", 1)).await;
    let path = format!("{BUDGETS}/one");
    let is_known = |budget: &Value| budget["status"]["disruptionsAllowed"] == 1;
    let known = api.until(&path, is_known).await;
    assert_eq!(known["status"]["currentHealthy"], 2);
    assert_eq!(known["status"]["conditions"][0]["reason"], "SufficientPods");
    // A dry run counts nothing.
    let dry = format!("{PODS}/a/eviction?dryRun=All");
    assert_eq!(api.post(&dry, eviction("a")).await.0, 201);
    let (code, status) = api.post(&format!("{PODS}/a/eviction"), eviction("a")).await;
    assert_eq!((code, &status["status"]), (201, &json!("Success")));
    let refused = api.post(&format!("{PODS}/b/eviction"), eviction("b")).await;
    assert_eq!(refused.0, 429);
    assert_eq!(
        message(&refused),
        "Cannot evict pod as it would violate the pod's disruption budget."
    );
    let cause = &refused.1["details"]["causes"][0];
    assert_eq!(cause["reason"], "DisruptionBudget");
    api.until(&format!("{PODS}/a"), Value::is_null).await;
    let settled = |budget: &Value| {
        budget["status"]["expectedPods"] == 1 && budget["status"]["disruptedPods"].is_null()
    };
    let settled = api.until(&path, settled).await;
    assert_eq!(settled["status"]["disruptionsAllowed"], 0);
    let refused = api.post(&format!("{PODS}/b/eviction"), eviction("b")).await;
    let cause = &refused.1["details"]["causes"][0];
    assert_eq!(
        cause["message"],
        "The disruption budget one needs 1 healthy pods and has 1 currently"
    );
}

#[tokio::test]
async fn a_budget_counts_the_replicas_of_a_deployment() {
    let api = Api::start();
    api.post(DEPLOYMENTS, deployment("web", 4, "nginx:1")).await;
    let budget = json!({
        "metadata": {"name": "most"},
        "spec": {"maxUnavailable": "25%", "selector": {"matchLabels": {"app": "web"}}},
    });
    api.post(BUDGETS, budget).await;
    let path = format!("{BUDGETS}/most");
    let is_full = |budget: &Value| budget["status"]["currentHealthy"] == 4;
    let full = api.until(&path, is_full).await;
    assert_eq!(full["status"]["expectedPods"], 4);
    assert_eq!(full["status"]["desiredHealthy"], 3);
    assert_eq!(full["status"]["disruptionsAllowed"], 1);
}

#[tokio::test]
async fn an_eviction_needs_no_budget_for_a_pod_that_does_not_run() {
    let api = alone();
    api.post(PODS, pod("a")).await;
    api.post(BUDGETS, budget("one", 1)).await;
    let mut wrong = eviction("a");
    wrong["deleteOptions"] = json!({"preconditions": {"uid": "another"}});
    let path = format!("{PODS}/a/eviction");
    assert_eq!(api.post(&path, wrong).await.0, 409);
    assert_eq!(api.post(&path, eviction("a")).await.0, 201);
    assert_eq!(api.get(&format!("{PODS}/a")).await.0, 404);
    assert_eq!(api.post(&path, eviction("a")).await.0, 404);
}

#[tokio::test]
async fn a_pod_changes_only_by_its_subresources() {
    let api = alone();
    api.post(PODS, pod("a")).await;
    let path = format!("{PODS}/a");
    let image = json!({"spec": {"containers": [{"name": "main", "image": "nginx:2"}]}});
    let strategic = "application/strategic-merge-patch+json";
    let (code, _) = api.send(Method::PATCH, &path, strategic, &image).await;
    assert_eq!(code, 200);
    let fixed = api
        .merge(&path, json!({"spec": {"restartPolicy": "Never"}}))
        .await;
    assert_eq!(fixed.0, 422);
    let want = "spec: Forbidden: pod updates may not change fields other than";
    assert!(message(&fixed).contains(want), "{}", message(&fixed));

    let debug = json!({
        "metadata": {"labels": {"ignored": "x"}},
        "spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox"}]},
    });
    let refused = api.merge(&path, debug.clone()).await;
    assert_eq!(refused.0, 422);
    let sub = format!("{path}/ephemeralcontainers");
    let (code, changed) = api.merge(&sub, debug).await;
    assert_eq!(code, 200, "{changed}");
    let container = &changed["spec"]["ephemeralContainers"][0];
    assert_eq!(container["terminationMessagePolicy"], "File");
    assert_eq!(changed["metadata"]["labels"], json!({"app": "web"}));
    assert_eq!(changed["metadata"]["generation"], 3);
    let gone = api
        .merge(&sub, json!({"spec": {"ephemeralContainers": null}}))
        .await;
    let want = "existing ephemeral containers \"debug\" may not be removed";
    assert!(message(&gone).contains(want), "{}", message(&gone));
}

#[tokio::test]
async fn a_resize_changes_cpu_and_memory() {
    let api = Api::start();
    start_running(&api, &["a"]).await;
    let path = format!("{PODS}/a/resize");
    let strategic = "application/strategic-merge-patch+json";
    let resize = |resources: Value| {
        json!({"spec": {"containers": [{
            "name": "main", "image": "ignored", "resources": resources,
        }]}})
    };
    let bigger = resize(json!({"requests": {"cpu": "2"}}));
    let (code, resized) = api.send(Method::PATCH, &path, strategic, &bigger).await;
    assert_eq!(code, 200, "{resized}");
    let container = &resized["spec"]["containers"][0];
    assert_eq!(container["resources"]["requests"]["cpu"], "2");
    assert_eq!(container["image"], "nginx:1");
    let applied =
        |pod: &Value| pod["status"]["containerStatuses"][0]["resources"]["requests"]["cpu"] == "2";
    api.until(&format!("{PODS}/a"), applied).await;
    let other = resize(json!({"requests": {"cpu": "1", "example.com/gpu": "1"}}));
    let refused = api.send(Method::PATCH, &path, strategic, &other).await;
    let want = "spec: Forbidden: only cpu and memory resources are mutable";
    assert!(message(&refused).contains(want), "{}", message(&refused));
    let main = api
        .send(
            Method::PATCH,
            &format!("{PODS}/a"),
            strategic,
            &resize(json!({"requests": {"cpu": "3"}})),
        )
        .await;
    assert_eq!(main.0, 422);
}

#[tokio::test]
async fn a_signing_request_is_approved_by_its_subresource() {
    let api = Api::start();
    let requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let request = json!({
        "metadata": {"name": "a"},
        "spec": {"request": "eA==", "signerName": "example.com/x", "usages": ["client auth"]},
    });
    let (code, created) = api.post(requests, request).await;
    assert_eq!(code, 201, "{created}");
    let approve = json!({"status": {
        "certificate": "eA==",
        "conditions": [{"type": "Approved", "status": "True", "reason": "ok"}],
    }});
    let refused = api
        .merge(&format!("{requests}/a/status"), approve.clone())
        .await;
    let want = "updates may not add a condition of type \"Approved\"";
    assert!(message(&refused).contains(want), "{}", message(&refused));
    let path = format!("{requests}/a/approval");
    let (code, approved) = api.merge(&path, approve).await;
    assert_eq!(code, 200, "{approved}");
    let condition = &approved["status"]["conditions"][0];
    assert!(condition["lastUpdateTime"].is_string(), "{condition}");
    assert!(approved["status"]["certificate"].is_null());
    let removed = api
        .merge(&path, json!({"status": {"conditions": []}}))
        .await;
    let want = "updates may not remove a condition of type \"Approved\"";
    assert!(message(&removed).contains(want), "{}", message(&removed));
}

#[tokio::test]
async fn a_namespace_goes_when_its_finalizer_is_removed() {
    let api = alone();
    let namespaces = "/api/v1/namespaces";
    let (_, created) = api
        .post(namespaces, json!({"metadata": {"name": "temporary"}}))
        .await;
    assert_eq!(created["spec"]["finalizers"], json!(["kubernetes"]));
    let path = format!("{namespaces}/temporary");
    api.delete(&path, Value::Null).await;
    let (_, mut live) = api.get(&path).await;
    live["spec"]["finalizers"] = json!([]);
    // An update of the object itself does not change the finalizers.
    api.put(&path, live.clone()).await;
    assert_eq!(api.get(&path).await.0, 200);
    let (code, _) = api.put(&format!("{path}/finalize"), live).await;
    assert_eq!(code, 200);
    assert_eq!(api.get(&path).await.0, 404);
}

#[tokio::test]
async fn an_applied_scale_owns_the_replicas() {
    let api = alone();
    let mut created = deployment("web", 2, "nginx:1");
    created["spec"]["minReadySeconds"] = json!(5);
    api.post(DEPLOYMENTS, created).await;
    let path = format!("{DEPLOYMENTS}/web");
    let scale = |replicas: i64| {
        json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"},
            "spec": {"replicas": replicas},
        })
    };
    let scale_path = format!("{path}/scale");
    let conflict = apply(&api, &scale_path, &scale(3)).await;
    assert_eq!(
        message(&conflict),
        "Apply failed with 1 conflict: conflict with \"test\" using autoscaling/v1: .spec.replicas"
    );
    let forced = format!("{scale_path}?fieldManager=hpa&force=true");
    let apply_type = "application/apply-patch+yaml";
    let (code, scaled) = api
        .send(Method::PATCH, &forced, apply_type, &scale(3))
        .await;
    assert_eq!((code, &scaled["spec"]["replicas"]), (200, &json!(3)));
    let (_, live) = api.get(&path).await;
    let managers = live["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(managers[0]["manager"], "hpa");
    assert_eq!(managers[0]["subresource"], "scale");
    assert_eq!(managers[0]["apiVersion"], "apps/v1");
    assert_eq!(
        managers[0]["fieldsV1"],
        json!({"f:spec": {"f:replicas": {}}})
    );
    assert!(managers[1]["fieldsV1"]["f:spec"]["f:replicas"].is_null());
}

#[tokio::test]
async fn kubelets_cannot_be_reached() {
    let api = Api::start();
    start_running(&api, &["a"]).await;
    let logs = api.get(&format!("{PODS}/a/log")).await;
    assert_eq!(logs.0, 500);
    assert_eq!(
        message(&logs),
        "Get \"https://opkit-node:10250/containerLogs/default/a/main\": \
         dial tcp: lookup opkit-node: no such host"
    );
    let wrong = api.get(&format!("{PODS}/a/log?container=x")).await;
    assert_eq!(
        (wrong.0, message(&wrong)),
        (400, "container x is not valid for pod a")
    );
    let exec = api
        .post(&format!("{PODS}/a/exec?command=ls"), Value::Null)
        .await;
    assert_eq!((exec.0, message(&exec)), (400, "Upgrade request required"));
    let proxy = api.get(&format!("{PODS}/a/proxy")).await;
    assert_eq!(proxy.0, 503);
    let service = "/api/v1/namespaces/default/services/kubernetes/proxy";
    let proxy = api.get(service).await;
    assert_eq!(
        (proxy.0, message(&proxy)),
        (404, "services \"kubernetes\" not found")
    );
    assert_eq!(api.get(&format!("{PODS}/none/log")).await.0, 404);
}
