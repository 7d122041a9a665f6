//! Requests that RBAC allows and denies.

use http::Method;
use serde_json::{Value, json};

use super::{Api, CONFIG_MAPS, RBAC, binding, config_map, message};
use crate::{AuthorizationMode, Options};

const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";

#[tokio::test]
async fn a_user_without_roles_may_do_nothing() {
    let api = Api::start();
    let denied = api.get_as_alice(CONFIG_MAPS).await;
    assert_eq!(denied.0, 403);
    assert_eq!(
        message(&denied),
        "configmaps is forbidden: User \"alice\" cannot list resource \"configmaps\" in API group \
         \"\" in the namespace \"default\""
    );
    assert_eq!(denied.1["details"], json!({"kind": "configmaps"}));
    let denied = api.get_as_alice("/apis/apps/v1/deployments?watch=1").await;
    assert_eq!(
        message(&denied),
        "deployments.apps is forbidden: User \"alice\" cannot watch resource \"deployments\" in API \
         group \"apps\" at the cluster scope"
    );
    let denied = api.get_as_alice("/metrics").await;
    assert_eq!(
        message(&denied),
        "forbidden: User \"alice\" cannot get path \"/metrics\""
    );
    assert_eq!(denied.1["details"], json!({}));
    // Discovery is for all authenticated users, also of a path that is not served.
    for (path, code) in [
        ("/api/v1", 200),
        ("/apis", 200),
        ("/version", 200),
        ("/api/v9", 404),
    ] {
        assert_eq!(api.get_as_alice(path).await.0, code, "{path}");
    }
    // A resource that is not served is denied before it is not found.
    let denied = api.get_as_alice("/api/v1/things").await;
    assert_eq!(denied.0, 403);
}

#[tokio::test]
async fn a_role_is_effective_at_once_in_its_namespace() {
    let api = Api::start();
    let rules =
        json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "get"]}]);
    let roles = format!("{RBAC}/namespaces/default/roles");
    let role = json!({"metadata": {"name": "writer"}, "rules": rules});
    assert_eq!(api.post(&roles, role).await.0, 201);
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    let bound = api.post(&bindings, binding("b", "Role", "writer")).await;
    assert_eq!(bound.0, 201, "{}", bound.1);
    let alice = || api.server.service_as("alice", &[]);
    let create = |path: &'static str| {
        let body = config_map("c");
        let alice = alice();
        let api = &api;
        async move { api.send_as(alice, (Method::POST, path), &[], &body).await.0 }
    };
    assert_eq!(create(CONFIG_MAPS).await, 201);
    assert_eq!(
        create("/api/v1/namespaces/kube-system/configmaps").await,
        403
    );
    let one = format!("{CONFIG_MAPS}/c");
    assert_eq!(api.get_as_alice(&one).await.0, 200);
    assert_eq!(api.get_as_alice(CONFIG_MAPS).await.0, 403);
    let deleted = api.delete(&format!("{bindings}/b"), Value::Null).await;
    assert_eq!(deleted.0, 200);
    assert_eq!(api.get_as_alice(&one).await.0, 403);
}

#[tokio::test]
async fn names_are_allowed_in_lists_with_a_field_selector() {
    let api = Api::start();
    let rules = json!([{
        "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["c"],
        "verbs": ["get", "list", "watch"],
    }]);
    api.grant_to_alice("reader", rules).await;
    for (query, code) in [
        ("", 403),
        ("?fieldSelector=metadata.name%3Dc", 200),
        ("?fieldSelector=metadata.name%3Dd", 403),
    ] {
        let path = format!("{CONFIG_MAPS}{query}");
        assert_eq!(api.get_as_alice(&path).await.0, code, "{path}");
    }
    assert_eq!(api.get_as_alice(&format!("{CONFIG_MAPS}/c")).await.0, 404);
    assert_eq!(api.get_as_alice(&format!("{CONFIG_MAPS}/d")).await.0, 403);
}

#[tokio::test]
async fn a_binding_to_a_missing_role_is_the_reason() {
    let api = Api::start();
    let path = format!("{RBAC}/clusterrolebindings");
    let bound = api.post(&path, binding("b", "ClusterRole", "gone")).await;
    assert_eq!(bound.0, 201);
    let denied = api.get_as_alice("/api/v1/pods").await;
    assert_eq!(
        message(&denied),
        "pods is forbidden: User \"alice\" cannot list resource \"pods\" in API group \"\" at the \
         cluster scope: RBAC: clusterrole.rbac.authorization.k8s.io \"gone\" not found"
    );
}

#[tokio::test]
async fn modes_are_asked_in_order() {
    let with = |modes: &[AuthorizationMode]| {
        Api::with(Options {
            authorization: modes.to_vec(),
            ..Options::default()
        })
    };
    let open = with(&[AuthorizationMode::Rbac, AuthorizationMode::AlwaysAllow]);
    assert_eq!(open.get_as_alice("/api/v1/pods").await.0, 200);
    let closed = with(&[AuthorizationMode::AlwaysDeny]);
    let denied = closed.get_as_alice("/api/v1/pods").await;
    assert!(message(&denied).ends_with("scope: Everything is forbidden."));
    // system:masters may do everything in every mode.
    assert_eq!(closed.get("/api/v1/pods").await.0, 200);
    for name in ["RBAC", "AlwaysAllow", "AlwaysDeny", "Node"] {
        assert!(name.parse::<AuthorizationMode>().is_ok());
    }
    assert!("ABAC".parse::<AuthorizationMode>().is_err());
}

#[tokio::test]
async fn a_user_cannot_grant_more_than_the_user_has() {
    let api = Api::start();
    let own = json!([
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"], "verbs": ["create", "patch"]},
    ]);
    api.grant_to_alice("own", own).await;
    let roles = format!("{RBAC}/clusterroles");
    let post = |path: String, body: Value| {
        let alice = api.server.service_as("alice", &[]);
        let api = &api;
        async move { api.send_as(alice, (Method::POST, &path), &[], &body).await }
    };
    let role = |name: &str, verbs: &[&str]| {
        let rule = json!({"apiGroups": [""], "resources": ["pods"], "verbs": verbs});
        json!({"metadata": {"name": name}, "rules": [rule]})
    };
    assert_eq!(post(roles.clone(), role("less", &["get"])).await.0, 201);
    let refused = post(roles.clone(), role("more", &["get", "list", "watch"])).await;
    assert_eq!(refused.0, 403);
    assert_eq!(
        message(&refused),
        "clusterroles.rbac.authorization.k8s.io \"more\" is forbidden: user \"alice\" \
         (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently \
         held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"list\" \"watch\"]}"
    );
    let mut aggregated = role("all", &["get"]);
    aggregated["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
    let refused = post(roles.clone(), aggregated).await;
    let why = "must have cluster-admin privileges to use the aggregationRule";
    assert!(message(&refused).ends_with(why), "{refused:?}");
    let bindings = format!("{RBAC}/clusterrolebindings");
    let bind = |role: &str| {
        post(
            bindings.clone(),
            binding(&format!("b-{role}"), "ClusterRole", role),
        )
    };
    assert_eq!(bind("less").await.0, 201);
    assert_eq!(bind("cluster-admin").await.0, 403);
    let missing = bind("gone").await;
    let why = "clusterrolebindings.rbac.authorization.k8s.io \"gone\" not found";
    assert_eq!((missing.0, message(&missing)), (404, why));
    // The verbs `bind` and `escalate` allow it.
    let more = json!([{
        "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"],
        "verbs": ["bind", "escalate"], "resourceNames": ["cluster-admin", "more"],
    }]);
    api.grant_to_alice("may-bind", more).await;
    assert_eq!(bind("cluster-admin").await.0, 201);
}

#[tokio::test]
async fn a_patch_cannot_escalate() {
    let api = Api::start();
    let own = json!([
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"], "verbs": ["*"]},
    ]);
    api.grant_to_alice("own", own).await;
    let send = |body: Value, kind: &'static str| {
        let alice = api.server.service_as("alice", &[]);
        let query = match kind {
            APPLY => "?fieldManager=m&force=1",
            _ => "",
        };
        let request = http::Request::patch(format!("{RBAC}/clusterroles/own{query}"))
            .header("content-type", kind)
            .body(http_body_util::Full::new(bytes::Bytes::from(
                body.to_string(),
            )))
            .unwrap();
        async move {
            use tower::ServiceExt;
            alice.oneshot(request).await.unwrap().status().as_u16()
        }
    };
    let rules = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    // The verb `*` includes `escalate`.
    assert_eq!(
        send(json!({"metadata": {"labels": {"a": "b"}}}), MERGE).await,
        200
    );
    let own = json!([
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"], "verbs": ["patch"]},
    ]);
    let reduced = api
        .merge(&format!("{RBAC}/clusterroles/own"), json!({"rules": own}))
        .await;
    assert_eq!(reduced.0, 200);
    assert_eq!(send(json!({"rules": rules}), MERGE).await, 403);
    let apply = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "own"}, "rules": rules,
    });
    assert_eq!(send(apply, APPLY).await, 403);
    // What the garbage collector changes is not checked.
    let finalizers = json!({"metadata": {"finalizers": ["example.com/x"]}});
    assert_eq!(send(finalizers, MERGE).await, 200);
}

#[tokio::test]
async fn cluster_roles_are_aggregated() {
    let api = Api::start();
    let roles = format!("{RBAC}/clusterroles");
    let admin = format!("{roles}/admin");
    let has = |role: &Value, resource: &str| role["rules"].to_string().contains(resource);
    api.until(&admin, |role| has(role, "configmaps")).await;
    let labels = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    let rules = json!([{"apiGroups": ["robot.dev"], "resources": ["robots"], "verbs": ["get"]}]);
    let role = json!({"metadata": {"name": "robots-view", "labels": labels}, "rules": rules});
    assert_eq!(api.post(&roles, role).await.0, 201);
    // view is part of edit, and edit is part of admin.
    api.until(&admin, |role| has(role, "robots")).await;
    api.delete(&format!("{roles}/robots-view"), Value::Null)
        .await;
    api.until(&admin, |role| !has(role, "robots")).await;
}

/// The fixture has the rules of a cluster with kube-controller-manager 1.36.3.
#[tokio::test]
async fn aggregated_roles_are_those_of_a_real_cluster() {
    let text = include_str!("../controllers/fixtures/aggregated.json");
    let real: Value = serde_json::from_str(text).unwrap();
    let api = Api::start();
    for name in ["view", "edit", "admin"] {
        let path = format!("{RBAC}/clusterroles/{name}");
        api.until(&path, |role| role["rules"] == real[name]).await;
    }
}
