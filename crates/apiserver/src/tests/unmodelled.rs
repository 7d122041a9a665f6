//! Warnings about features that objects rely on and the control plane does not have.

use super::*;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

/// Returns the warnings of a write.
async fn warnings(api: &Api, method: Method, path: &str, body: &Value) -> Vec<String> {
    let kind = match method {
        Method::PATCH => "application/apply-patch+yaml",
        _ => "application/json",
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind)
        .body(Full::new(Bytes::from(body.to_string())))
        .unwrap();
    let response = api.server.service().oneshot(request).await.unwrap();
    assert!(response.status().is_success(), "{}", response.status());
    let warnings = response.headers().get_all("warning").into_iter();
    let text = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
    warnings.map(text).collect()
}

fn job(name: &str) -> Value {
    let container = json!({"name": "main", "image": "backup"});
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    })
}

fn crd(schema: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "robots.opkit.dev"},
        "spec": {
            "group": "opkit.dev", "scope": "Namespaced",
            "names": {"plural": "robots", "kind": "Robot"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

#[tokio::test]
async fn a_warning_is_sent_when_an_object_without_effect_is_created() {
    let api = Api::start();
    let one = "299 - \"opkit does not model Jobs: Job one gets no pods and does not complete\"";
    assert_eq!(warnings(&api, Method::POST, JOBS, &job("one")).await, [one]);
    let path = format!("{JOBS}/two?fieldManager=test");
    let two = one.replace("one", "two");
    assert_eq!(
        warnings(&api, Method::PATCH, &path, &job("two")).await,
        [two]
    );
    // There is no second warning for an update, and none for a dry run.
    let mut changed = job("two");
    changed["metadata"]["labels"] = json!({"a": "b"});
    let none: [&str; 0] = [];
    assert_eq!(warnings(&api, Method::PATCH, &path, &changed).await, none);
    let dry = format!("{JOBS}?dryRun=All");
    assert_eq!(
        warnings(&api, Method::POST, &dry, &job("three")).await,
        none
    );
    // The feature is remembered once, with its first object.
    let reported = api.server.unmodelled();
    assert_eq!(
        reported,
        ["opkit does not model Jobs: Job one gets no pods and does not complete"]
    );
}

#[tokio::test]
async fn modelled_features_have_no_warning() {
    let api = Api::start();
    let none: [&str; 0] = [];
    let map = config_map("one");
    assert_eq!(warnings(&api, Method::POST, CONFIG_MAPS, &map).await, none);
    let services = "/api/v1/namespaces/default/services";
    let service = |name: &str, type_: &str| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"type": type_, "ports": [{"port": 80}]},
        })
    };
    let inner = service("inner", "ClusterIP");
    assert_eq!(warnings(&api, Method::POST, services, &inner).await, none);
    let outer = service("outer", "LoadBalancer");
    let expected = "299 - \"opkit does not model load balancers: Service outer gets no address\"";
    assert_eq!(
        warnings(&api, Method::POST, services, &outer).await,
        [expected]
    );
    let plain = crd(json!({"type": "object"}));
    assert_eq!(warnings(&api, Method::POST, CRDS, &plain).await, none);
}
