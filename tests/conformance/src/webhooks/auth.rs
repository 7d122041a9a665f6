//! Authentication and authorization webhooks, asked by a second API server.

use k8s_openapi::api::authentication::v1::{SelfSubjectReview, TokenReviewSpec};
use k8s_openapi::api::authorization::v1::SubjectAccessReviewSpec;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use opkit::prelude::*;
use opkit::webhook::{Authentication, Authorization};

/// State of the operator: the known tokens.
struct Tokens {
    jane: &'static str,
}

async fn authenticate(spec: TokenReviewSpec, cx: WebhookContext<Tokens>) -> Result<Authentication> {
    Ok(match spec.token == cx.state().jane {
        true => Authentication::authenticated("jane").group("developers"),
        false => Authentication::unauthenticated("the token is not known"),
    })
}

async fn authorize(spec: SubjectAccessReviewSpec, _: WebhookContext) -> Result<Authorization> {
    let resource = spec.resource_attributes.unwrap_or_default();
    Ok(match resource.resource.as_deref() {
        Some("configmaps") if spec.user.as_deref() == Some("jane") => Authorization::allowed(),
        Some("secrets") => Authorization::denied("secrets stay secret"),
        _ => Authorization::no_opinion("not known here"),
    })
}

fn operator() -> Operator {
    Operator::new("auth-operator")
        .state_value(Tokens {
            jane: "janes-token",
        })
        .authentication_webhook(authenticate)
        .authorization_webhook(authorize)
}

async fn user(client: Client) -> Result<Option<String>, kube::Error> {
    let api: Api<SelfSubjectReview> = Api::all(client);
    let review = SelfSubjectReview::default();
    let review = api.create(&PostParams::default(), &review).await?;
    let user = review.status.and_then(|status| status.user_info);
    Ok(user.and_then(|user| user.username))
}

fn code<T: std::fmt::Debug>(result: Result<T, kube::Error>) -> (u16, String) {
    match result.unwrap_err() {
        kube::Error::Api(status) => (status.code, status.message),
        error => panic!("{error}"),
    }
}

#[opkit::test]
async fn a_server_asks_who_a_token_belongs_to_and_what_the_user_may_do(
    plane: ControlPlane,
) -> opkit::Result {
    let server = plane.start_auth_server(operator()).await?;
    let jane = server.client("janes-token").await?;
    assert_eq!(user(jane.clone()).await?.as_deref(), Some("jane"));
    let stranger = server.client("another-token").await?;
    assert_eq!(code(user(stranger).await).0, 401);

    let maps: Api<ConfigMap> = Api::namespaced(jane.clone(), "default");
    maps.list(&ListParams::default()).await?;
    let secrets: Api<Secret> = Api::namespaced(jane.clone(), "default");
    let (status, message) = code(secrets.list(&ListParams::default()).await);
    assert_eq!(status, 403);
    assert!(message.ends_with("secrets stay secret"), "{message}");
    let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(jane);
    let (status, message) = code(nodes.list(&ListParams::default()).await);
    assert_eq!(status, 403);
    assert!(message.ends_with("not known here"), "{message}");
    server.shutdown().await;
    Ok(())
}
