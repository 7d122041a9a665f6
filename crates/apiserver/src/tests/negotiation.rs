use std::io::Read;

use opkit_apimachinery::protobuf::{CONTENT_TYPE, WatchEventParts, decode};

use super::*;

async fn protobuf(api: &Api, path: &str) -> (u16, Value) {
    let response = api.raw(path, &[("accept", CONTENT_TYPE)]).await;
    assert_eq!(response.headers()["content-type"], CONTENT_TYPE);
    (response.status().as_u16(), decode(response.body()).unwrap())
}

#[tokio::test]
async fn protobuf_has_the_same_content_as_json() {
    let api = with_robots().await;
    api.post(CONFIG_MAPS, config_map("a")).await;
    api.post(DEPLOYMENTS, deployment("d", 2, "nginx")).await;
    let container = json!({"name": "c", "image": "i"});
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [container]}});
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [container]}});
    let job = json!({"metadata": {"name": "j"}, "spec": {"template": template}});
    let storage = json!({"requests": {"storage": "1Gi"}});
    let claim = json!({"metadata": {"name": "c"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": storage,
    }});
    let backend = json!({"service": {"name": "s", "port": {"number": 80}}});
    let ingress = json!({"metadata": {"name": "i"}, "spec": {"defaultBackend": backend}});
    let policy = json!({"metadata": {"name": "n"}, "spec": {"podSelector": {}}});
    let budget = json!({"metadata": {"name": "b"}, "spec": {"selector": {}}});
    let target = json!({"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"});
    let autoscaler = json!({"metadata": {"name": "h"}, "spec": {
        "maxReplicas": 2, "scaleTargetRef": target,
    }});
    let mut paths = Vec::new();
    for (group, kind, resource, mut object) in [
        ("v1", "Pod", "pods", pod),
        ("v1", "Service", "services", service),
        (
            "v1",
            "PersistentVolumeClaim",
            "persistentvolumeclaims",
            claim,
        ),
        (
            "v1",
            "ServiceAccount",
            "serviceaccounts",
            json!({"metadata": {"name": "a"}}),
        ),
        (
            "v1",
            "ResourceQuota",
            "resourcequotas",
            json!({"metadata": {"name": "q"}}),
        ),
        ("batch/v1", "Job", "jobs", job),
        ("networking.k8s.io/v1", "Ingress", "ingresses", ingress),
        (
            "networking.k8s.io/v1",
            "NetworkPolicy",
            "networkpolicies",
            policy,
        ),
        (
            "policy/v1",
            "PodDisruptionBudget",
            "poddisruptionbudgets",
            budget,
        ),
        (
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            "horizontalpodautoscalers",
            autoscaler,
        ),
        (
            "coordination.k8s.io/v1",
            "Lease",
            "leases",
            json!({"metadata": {"name": "l"}}),
        ),
    ] {
        object["apiVersion"] = json!(group);
        object["kind"] = json!(kind);
        let root = if group == "v1" { "api" } else { "apis" };
        let path = format!("/{root}/{group}/namespaces/default/{resource}");
        let (code, created) = api.post(&path, object.clone()).await;
        assert_eq!(code, 201, "{created}");
        paths.push(path);
    }
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for path in [
        &format!("{CONFIG_MAPS}/a"),
        CONFIG_MAPS,
        &format!("{CONFIG_MAPS}/none"),
        &format!("{DEPLOYMENTS}/d"),
        &format!("{DEPLOYMENTS}/d/scale"),
        DEPLOYMENTS,
        "/api/v1/namespaces/default/services",
        crds,
    ] {
        paths.push(path.to_owned());
    }
    for path in &paths {
        let (code, mut json) = api.get(path).await;
        // Protobuf cannot distinguish a list that is null from a missing one.
        let items = json.get_mut("items").and_then(Value::as_array_mut);
        for status in items
            .into_iter()
            .flatten()
            .flat_map(|i| i.get_mut("status"))
        {
            let fields = status.as_object_mut().unwrap();
            fields.retain(|name, value| name != "currentMetrics" || !value.is_null());
        }
        let (same, read) = protobuf(&api, path).await;
        assert_eq!((same, &read), (code, &json), "{path}");
    }
}

#[tokio::test]
async fn every_listed_kind_has_protobuf() {
    let api = Api::start();
    let (_, groups) = api.get("/apis").await;
    let mut versions = vec!["/api/v1".to_owned()];
    for group in groups["groups"].as_array().unwrap() {
        for version in group["versions"].as_array().unwrap() {
            let version = version["groupVersion"].as_str().unwrap();
            versions.push(format!("/apis/{version}"));
        }
    }
    let mut count = 0;
    for version in versions {
        let (_, resources) = api.get(&version).await;
        for resource in resources["resources"].as_array().unwrap() {
            let verbs = resource["verbs"].as_array().unwrap();
            if !verbs.contains(&json!("list")) {
                continue;
            }
            let path = format!("{version}/{}", resource["name"].as_str().unwrap());
            let (code, list) = protobuf(&api, &path).await;
            assert_eq!(code, 200, "{path}: {list}");
            count += 1;
        }
    }
    assert!(count > 50, "{count}");
}

#[tokio::test(start_paused = true)]
async fn watches_are_frames_with_their_length() {
    let api = Api::start();
    api.post(CONFIG_MAPS, config_map("a")).await;
    let path = format!(
        "{CONFIG_MAPS}?watch=true&timeoutSeconds=1&sendInitialEvents=true\
         &resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&fieldSelector=metadata.name=a"
    );
    for (form, kind) in [
        ("", "ConfigMap"),
        (
            ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            "PartialObjectMetadata",
        ),
    ] {
        let accept = format!("{CONTENT_TYPE};stream=watch{form}");
        let response = api.raw(&path, &[("accept", &accept)]).await;
        assert_eq!(
            response.headers()["content-type"],
            format!("{CONTENT_TYPE};stream=watch")
        );
        let mut rest = &response.body()[..];
        let mut events = Vec::new();
        while let Some((length, frame)) = rest.split_first_chunk() {
            let (frame, after) = frame.split_at(u32::from_be_bytes(*length) as usize);
            let event = WatchEventParts::read(frame).unwrap();
            events.push((event.type_.to_owned(), decode(event.object).unwrap()));
            rest = after;
        }
        assert!(rest.is_empty());
        assert_eq!(events.len(), 2);
        assert_eq!(events[0].0, "ADDED");
        assert_eq!(events[0].1["kind"], kind);
        assert_eq!(events[0].1["metadata"]["name"], "a");
        assert_eq!(events[1].0, "BOOKMARK");
        let end = &events[1].1["metadata"]["annotations"]["k8s.io/initial-events-end"];
        assert_eq!(end, "true");
    }
}

#[tokio::test]
async fn custom_resources_have_metadata_in_protobuf_only() {
    let api = with_robots().await;
    let (code, response) = api.post(ROBOTS, robot("a")).await;
    assert_eq!(code, 201, "{response}");
    let (code, status) = protobuf(&api, ROBOTS).await;
    assert_eq!((code, &status["reason"]), (406, &json!("NotAcceptable")));
    let accept = format!("{CONTENT_TYPE};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
    let response = api.raw(ROBOTS, &[("accept", &accept)]).await;
    let list = decode(response.body()).unwrap();
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["items"][0]["metadata"]["name"], "a");
    let either = format!("{CONTENT_TYPE},application/json");
    let response = api.raw(ROBOTS, &[("accept", &either)]).await;
    assert_eq!(response.headers()["content-type"], "application/json");
}

#[tokio::test]
async fn long_responses_are_compressed_if_the_client_accepts_it() {
    let api = Api::start();
    let mut big = config_map("big");
    big["data"]["a"] = json!("x".repeat(200 * 1024));
    api.post(CONFIG_MAPS, big).await;
    let plain = api.raw(CONFIG_MAPS, &[]).await;
    assert!(!plain.headers().contains_key("content-encoding"));
    let response = api
        .raw(CONFIG_MAPS, &[("accept-encoding", "deflate, gzip")])
        .await;
    assert_eq!(response.headers()["content-encoding"], "gzip");
    assert_eq!(response.headers()["vary"], "Accept-Encoding");
    assert!(response.body().len() < 20 * 1024);
    let mut text = Vec::new();
    let mut decoder = flate2::read::GzDecoder::new(&response.body()[..]);
    decoder.read_to_end(&mut text).unwrap();
    assert_eq!(Bytes::from(text), *plain.body());

    let short = "/api/v1/namespaces";
    for (path, accepted) in [
        (short, "gzip"),
        (CONFIG_MAPS, "gzip;q=0.5"),
        (CONFIG_MAPS, "br"),
    ] {
        let response = api.raw(path, &[("accept-encoding", accepted)]).await;
        assert!(
            !response.headers().contains_key("content-encoding"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn yaml_is_returned_if_accepted() {
    let api = Api::start();
    api.post(CONFIG_MAPS, config_map("a")).await;
    let path = format!("{CONFIG_MAPS}/a");
    let response = api.raw(&path, &[("accept", "application/yaml")]).await;
    assert_eq!(response.headers()["content-type"], "application/yaml");
    let object: Value = serde_saphyr::from_slice(response.body()).unwrap();
    assert_eq!(object, api.get(&path).await.1);
}

#[tokio::test]
async fn an_empty_struct_has_no_manager() {
    let api = Api::start();
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "q", "labels": {"a": "b"}},
    });
    let path = "/api/v1/namespaces/default/resourcequotas";
    let (_, quota) = api.post(path, quota).await;
    assert_eq!(quota["spec"], json!({}));
    let fields = &quota["metadata"]["managedFields"][0]["fieldsV1"];
    let expected = json!({"f:metadata": {"f:labels": {".": {}, "f:a": {}}}});
    assert_eq!(*fields, expected);
}
