//! Requests with impersonation headers.

use http::Method;
use serde_json::{Value, json};

use super::{Api, message};

const REVIEW: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// Returns the user as whom a request with these headers is executed, or the error.
async fn user(api: &Api, sender: Option<&str>, headers: &[(&str, &str)]) -> Value {
    let service = match sender {
        None => api.server.service(),
        Some(user) => api.server.service_as(user, &[]),
    };
    let sent = api
        .send_as(service, (Method::POST, REVIEW), headers, &json!({}))
        .await;
    match sent.0 {
        201 => sent.1["status"]["userInfo"].clone(),
        _ => json!(message(&sent)),
    }
}

#[tokio::test]
async fn an_administrator_impersonates_everybody() {
    let api = Api::start();
    let bob = user(&api, None, &[("impersonate-user", "bob")]).await;
    assert_eq!(
        bob,
        json!({"username": "bob", "groups": ["system:authenticated"]})
    );
    let headers = [
        ("impersonate-user", "bob"),
        ("impersonate-group", "dev"),
        ("impersonate-group", "ops"),
        ("impersonate-uid", "7"),
        ("impersonate-extra-example.com%2fscope", "view"),
    ];
    let bob = user(&api, None, &headers).await;
    let wanted = json!({
        "username": "bob", "uid": "7", "groups": ["dev", "ops", "system:authenticated"],
        "extra": {"example.com/scope": ["view"]},
    });
    assert_eq!(bob, wanted);
    let headers = [("impersonate-user", "system:serviceaccount:a:robot")];
    let robot = user(&api, None, &headers).await;
    let groups = json!([
        "system:serviceaccounts",
        "system:serviceaccounts:a",
        "system:authenticated"
    ]);
    assert_eq!(robot["groups"], groups);
    let headers = [("impersonate-user", "system:anonymous")];
    let nobody = user(&api, None, &headers).await;
    assert_eq!(
        nobody,
        json!(
            "selfsubjectreviews.authentication.k8s.io is forbidden: User \
        \"system:anonymous\" cannot create resource \"selfsubjectreviews\" in API group \
        \"authentication.k8s.io\" at the cluster scope"
        )
    );
}

#[tokio::test]
async fn a_group_without_a_user_is_refused() {
    let api = Api::start();
    let refused = user(&api, None, &[("impersonate-group", "dev")]).await;
    assert_eq!(
        refused,
        "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"dev\"}, \
         Extra:map[string][]string(nil)} without impersonating a user name"
    );
}

#[tokio::test]
async fn a_user_needs_a_rule_for_each_part() {
    let api = Api::start();
    let headers = [("impersonate-user", "bob")];
    let refused = user(&api, Some("alice"), &headers).await;
    assert_eq!(
        refused,
        "selfsubjectreviews.authentication.k8s.io is forbidden: User \"alice\" cannot \
         impersonate-on:user-info:create resource \"selfsubjectreviews\" in API group \
         \"authentication.k8s.io\" at the cluster scope"
    );
    let rules = json!([{"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"]}]);
    api.grant_to_alice("users", rules).await;
    assert_eq!(user(&api, Some("alice"), &headers).await["username"], "bob");
    let more = [headers[0], ("impersonate-group", "dev")];
    let refused = user(&api, Some("alice"), &more).await;
    let start =
        "groups \"dev\" is forbidden: User \"alice\" cannot impersonate resource \"groups\"";
    assert!(refused.as_str().unwrap().starts_with(start), "{refused}");
}

#[tokio::test]
async fn constrained_impersonation_needs_two_rules() {
    let api = Api::start();
    let group = "authentication.k8s.io";
    let who = json!({"apiGroups": [group], "resources": ["users"], "resourceNames": ["bob"],
        "verbs": ["impersonate:user-info"]});
    api.grant_to_alice("who", json!([who])).await;
    let headers = [("impersonate-user", "bob")];
    let refused = user(&api, Some("alice"), &headers).await;
    assert!(
        refused
            .to_string()
            .contains("cannot impersonate-on:user-info:create")
    );
    let on = json!({"apiGroups": [group], "resources": ["selfsubjectreviews"],
        "verbs": ["impersonate-on:user-info:create"]});
    api.grant_to_alice("on", json!([on])).await;
    assert_eq!(user(&api, Some("alice"), &headers).await["username"], "bob");
    let other = user(&api, Some("alice"), &[("impersonate-user", "eve")]).await;
    assert!(
        other
            .to_string()
            .contains("cannot impersonate:user-info resource"),
        "{other}"
    );
    let masters = [headers[0], ("impersonate-group", "system:masters")];
    let refused = user(&api, Some("alice"), &masters).await;
    assert!(refused.to_string().contains("system:masters"), "{refused}");
}
