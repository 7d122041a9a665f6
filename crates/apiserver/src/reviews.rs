//! Reviews such as SubjectAccessReview: the response to a create request contains the result of the
//! review, and the object is not stored.

mod access;
mod rules;
mod selectors;

use serde_json::{Value, json};

use crate::authentication::Identity;
use crate::kinds::{Kind, Verb};
use crate::object;
use crate::registry::Registry;
use crate::status::{ApiError, ApiResult};
use crate::target::Target;

/// Reports whether `kind` is a review: a kind with the only verb `create`.
pub(crate) fn is_review(kind: &Kind) -> bool {
    kind.verbs.iter().all(|verb| *verb == Verb::Create)
}

/// Returns the response to a review that `identity` has created.
pub(crate) async fn respond(
    registry: &Registry,
    target: &Target,
    review: Value,
    identity: &Identity,
) -> ApiResult<Value> {
    let kind = &target.kind;
    match kind.kind.as_str() {
        "SelfSubjectAccessReview" | "SubjectAccessReview" | "LocalSubjectAccessReview" => {
            access::review(registry, target, review, identity).await
        }
        "SelfSubjectRulesReview" => rules::review(registry, &review, identity),
        "SelfSubjectReview" => Ok(json!({
            "kind": kind.kind, "apiVersion": kind.api_version(),
            "metadata": {"creationTimestamp": registry.clock.now_rfc3339()},
            "status": {"userInfo": identity.to_user_info()},
        })),
        "TokenReview" => review_token(registry, review).await,
        _ => Err(ApiError::not_modelled(&kind.group_resource())),
    }
}

/// Returns the user of the token in a TokenReview.
async fn review_token(registry: &Registry, mut review: Value) -> ApiResult<Value> {
    let token = object::text(&review, &["spec", "token"]);
    if token.is_empty() {
        let message = "token is required for TokenReview in authentication";
        return Err(ApiError::bad_request(message));
    }
    let audiences: Vec<String> = texts(&review, &["spec", "audiences"]);
    let reviewed = registry
        .authentication
        .review_token(&registry.token_context(), token, &audiences)
        .await;
    let mut status = json!({"user": {}});
    match reviewed {
        Ok((identity, audiences)) => {
            status = json!({"authenticated": true, "user": identity.to_user_info()});
            if !audiences.is_empty() {
                object::set_field(&mut status, "audiences", json!(audiences));
            }
        }
        Err(error) => object::set_field(&mut status, "error", json!(error.to_string())),
    }
    object::set_field(&mut review, "status", status);
    Ok(review)
}

/// Returns the strings of the list at a path.
fn texts(object: &Value, path: &[&str]) -> Vec<String> {
    let items = object::items(object, path).iter();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}
