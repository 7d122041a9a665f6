//! Reviews such as SubjectAccessReview: the response to a create request contains the result of the
//! review, and the object is not stored.

use serde_json::{Value, json};

use crate::auth::Identity;
use crate::kinds::{Kind, Verb};
use crate::object;
use crate::status::{ApiError, ApiResult};

/// Reports whether `kind` is a review: a kind with the only verb `create`.
pub(crate) fn is_review(kind: &Kind) -> bool {
    kind.verbs.iter().all(|verb| *verb == Verb::Create)
}

/// Returns the response to a review. Access reviews allow everything to every authenticated user.
pub(crate) fn respond(kind: &Kind, mut review: Value, identity: &Identity) -> ApiResult<Value> {
    let status = match kind.kind.as_str() {
        "SelfSubjectAccessReview" | "SubjectAccessReview" | "LocalSubjectAccessReview" => {
            json!({"allowed": true, "reason": "the embedded control plane allows everything"})
        }
        "SelfSubjectReview" => {
            json!({"userInfo": {"username": identity.user, "groups": identity.groups}})
        }
        _ => return Err(ApiError::not_modelled(&kind.group_resource())),
    };
    object::set(&mut review, &["status"], status);
    Ok(review)
}
