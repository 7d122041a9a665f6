//! Admission plugins that the recorded scripts do not cover, because they are off by default or
//! depend on the user.

use http::Method;
use serde_json::{Value, json};

use super::{Api, CONFIG_MAPS, config_map, message};
use crate::{AdmissionPlugin, Options};

const PODS: &str = "/api/v1/namespaces/default/pods";

/// Starts a server that has this plugin in addition to those of the default.
fn with_plugin(plugin: AdmissionPlugin) -> Api {
    let mut options = Options::default();
    assert!(!options.admission_plugins.contains(&plugin));
    options.admission_plugins.push(plugin);
    Api::with(options)
}

fn pod(name: &str, spec: Value) -> Value {
    let mut pod = json!({"metadata": {"name": name}, "spec": spec});
    pod["spec"]["containers"] = json!([{"name": "c", "image": "x:1", "imagePullPolicy": "Never"}]);
    pod
}

#[tokio::test]
async fn images_are_always_pulled_if_the_plugin_is_on() {
    let policy = |pod: &Value| pod["spec"]["containers"][0]["imagePullPolicy"].clone();
    let (_, created) = Api::start().post(PODS, pod("a", json!({}))).await;
    assert_eq!(policy(&created), "Never");
    let api = with_plugin(AdmissionPlugin::AlwaysPullImages);
    let (_, created) = api.post(PODS, pod("a", json!({}))).await;
    assert_eq!(policy(&created), "Always", "{created}");
}

/// Returns a ConfigMap that the ConfigMap `owner` owns.
fn owned(name: &str, uid: &Value, blocks: bool) -> Value {
    let mut map = config_map(name);
    map["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid,
        "blockOwnerDeletion": blocks,
    }]);
    map
}

/// Sends a request as the user `alice`, who may do what her roles allow.
async fn send(api: &Api, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let alice = api.server.service_as("alice", &[]);
    api.send_as(alice, (method, path), &[], body).await
}

#[tokio::test]
async fn owner_references_need_permissions_if_the_plugin_is_on() {
    let api = with_plugin(AdmissionPlugin::OwnerReferencesPermissionEnforcement);
    let (_, owner) = api.post(CONFIG_MAPS, config_map("owner")).await;
    let uid = &owner["metadata"]["uid"];
    let rule = |verbs: &[&str], resource: &str| json!([{"apiGroups": [""], "resources": [resource], "verbs": verbs}]);
    let writes = rule(&["create", "update"], "configmaps");
    api.grant_to_alice("writes", writes).await;
    let created = send(&api, Method::POST, CONFIG_MAPS, &owned("a", uid, false)).await;
    assert_eq!(created.0, 201, "{created:?}");
    let refused = send(&api, Method::POST, CONFIG_MAPS, &owned("b", uid, true)).await;
    let expected = "configmaps \"b\" is forbidden: cannot set blockOwnerDeletion if an \
                    ownerReference refers to a resource you can't set finalizers on: , <nil>";
    assert_eq!(message(&refused), expected);
    let path = format!("{CONFIG_MAPS}/a");
    let released = send(&api, Method::PUT, &path, &config_map("a")).await;
    let expected = "configmaps \"a\" is forbidden: cannot set an ownerRef on a resource you can't \
                    delete: , <nil>";
    assert_eq!(message(&released), expected);
    let mut same = owned("a", uid, false);
    same["data"] = json!({"c": "d"});
    assert_eq!(send(&api, Method::PUT, &path, &same).await.0, 200);

    api.grant_to_alice("deletes", rule(&["delete"], "configmaps"))
        .await;
    assert_eq!(
        send(&api, Method::PUT, &path, &config_map("a")).await.0,
        200
    );
    let finalizers = rule(&["update"], "configmaps/finalizers");
    api.grant_to_alice("finalizes", finalizers).await;
    let created = send(&api, Method::POST, CONFIG_MAPS, &owned("b", uid, true)).await;
    assert_eq!(created.0, 201, "{created:?}");
    let mut unknown = owned("c", uid, true);
    unknown["metadata"]["ownerReferences"][0]["kind"] = json!("Other");
    let refused = send(&api, Method::POST, CONFIG_MAPS, &unknown).await;
    let expected = "cannot find RESTMapping for APIVersion v1 Kind Other: no matches for kind \
                    \"Other\" in version \"v1\"";
    assert!(message(&refused).ends_with(expected), "{refused:?}");
}

#[tokio::test]
async fn a_new_node_is_not_ready() {
    let api = Api::start();
    let taints = json!([{"key": "k", "effect": "NoExecute"}]);
    let node = json!({"metadata": {"name": "n"}, "spec": {"taints": taints}});
    let (_, created) = api.post("/api/v1/nodes", node).await;
    let expected = json!([
        {"key": "k", "effect": "NoExecute"},
        {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
    ]);
    assert_eq!(created["spec"]["taints"], expected);
}

#[tokio::test]
async fn there_is_one_default_priority_class() {
    let api = Api::start();
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let class = |name: &str, is_default: bool| json!({"metadata": {"name": name}, "value": 1, "globalDefault": is_default});
    assert_eq!(api.post(classes, class("a", true)).await.0, 201);
    assert_eq!(api.post(classes, class("b", false)).await.0, 201);
    let refused = api.post(classes, class("c", true)).await;
    let expected = "priorityclasses.scheduling.k8s.io \"c\" is forbidden: PriorityClass a is \
                    already marked as default. Only one default can exist";
    assert_eq!(message(&refused), expected);
    let default = json!({"globalDefault": true});
    let refused = api.merge(&format!("{classes}/b"), default.clone()).await;
    assert_eq!(refused.0, 403, "{refused:?}");
    assert_eq!(api.merge(&format!("{classes}/a"), default).await.0, 200);
}

/// Returns a CertificateSigningRequest for a client certificate of this group.
fn signing_request(name: &str, group: &str) -> Value {
    use base64::Engine;
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::default();
    let subject = &mut params.distinguished_name;
    subject.push(rcgen::DnType::CommonName, "alice");
    subject.push(rcgen::DnType::OrganizationName, group);
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    let request = base64::prelude::BASE64_STANDARD.encode(pem);
    json!({"metadata": {"name": name}, "spec": {
        "request": request, "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth"],
    }})
}

#[tokio::test]
async fn certificates_need_the_permission_for_their_signer() {
    let api = Api::start();
    let requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let refused = api
        .post(requests, signing_request("m", "system:masters"))
        .await;
    let expected = "certificatesigningrequests.certificates.k8s.io \"m\" is forbidden: use of \
                    kubernetes.io/kube-apiserver-client signer with system:masters group is not \
                    allowed";
    assert_eq!(message(&refused), expected);
    let (code, mut request) = api.post(requests, signing_request("a", "dev")).await;
    assert_eq!(code, 201, "{request}");

    let resources = [
        "certificatesigningrequests/approval",
        "certificatesigningrequests/status",
    ];
    let group = "certificates.k8s.io";
    let rule = json!([{"apiGroups": [group], "resources": resources, "verbs": ["update"]}]);
    api.grant_to_alice("writes", rule).await;
    let path = format!("{requests}/a/approval");
    let condition = json!({"type": "Approved", "status": "True", "reason": "r"});
    request["status"] = json!({"conditions": [condition]});
    let refused = send(&api, Method::PUT, &path, &request).await;
    let expected = "user not permitted to approve requests with signerName \
                    \"kubernetes.io/kube-apiserver-client\"";
    assert!(message(&refused).ends_with(expected), "{refused:?}");
    let signers = json!([{
        "apiGroups": [group], "resources": ["signers"], "verbs": ["approve"],
        "resourceNames": ["kubernetes.io/*"],
    }]);
    api.grant_to_alice("approves", signers).await;
    let (code, mut request) = send(&api, Method::PUT, &path, &request).await;
    assert_eq!(code, 200, "{request}");
    let condition = json!({"type": "Failed", "status": "True", "reason": "r"});
    request["status"]["conditions"]
        .as_array_mut()
        .unwrap()
        .push(condition);
    let refused = send(&api, Method::PUT, &format!("{requests}/a/status"), &request).await;
    assert!(
        message(&refused).contains("not permitted to sign requests"),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_stricter_namespace_refuses_pods_of_workloads() {
    let api = Api::start();
    let labels =
        json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    assert_eq!(api.merge("/api/v1/namespaces/default", labels).await.0, 200);
    let deployment = super::deployment("d", 1, "x");
    assert_eq!(api.post(super::DEPLOYMENTS, deployment).await.0, 201);
    // The controller of ReplicaSets cannot create the Pod.
    let sets = "/apis/apps/v1/namespaces/default/replicasets";
    let failed = |list: &Value| list["items"][0]["status"]["conditions"][0].is_object();
    let list = api.until(sets, failed).await;
    let message = &list["items"][0]["status"]["conditions"][0]["message"];
    let message = message.as_str().unwrap();
    assert!(
        message.contains("violates PodSecurity \"restricted:latest\""),
        "{message}"
    );
    let (_, pods) = api.get(PODS).await;
    assert_eq!(pods["items"], json!([]));
}
