//! SubjectAccessReview, LocalSubjectAccessReview and SelfSubjectAccessReview.

use std::collections::BTreeMap;

use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use super::{selectors, texts};
use crate::authentication::Identity;
use crate::authorization::{Attributes, Verdict};
use crate::registry::Registry;
use crate::status::{ApiError, ApiResult};
use crate::target::Target;
use crate::{gotext, object};

/// Returns the review with the decision of the authorizers.
pub(super) async fn review(
    registry: &Registry,
    target: &Target,
    mut review: Value,
    identity: &Identity,
) -> ApiResult<Value> {
    let kind = target.kind.kind.as_str();
    let errors = validate(kind, &review);
    if !errors.is_empty() {
        return Err(ApiError::invalid_review(&target.kind.group, &errors));
    }
    if kind == "LocalSubjectAccessReview" {
        let namespace = target.namespace.as_str();
        if namespace.is_empty() {
            let message = "namespace is required on this type: ";
            return Err(ApiError::bad_request(message));
        }
        if namespace != object::namespace(&review) {
            return Err(ApiError::bad_request(format!(
                "spec.resourceAttributes.namespace must match namespace: {namespace}"
            )));
        }
    }
    let spec = object::at(&review, &["spec"]);
    let subject = subject(spec);
    let user = match kind {
        "SelfSubjectAccessReview" => identity,
        _ => &subject,
    };
    let attributes = attributes(spec).into_owned();
    let decision = registry
        .authorizer
        .authorize(&registry.store, user, &attributes)
        .await;
    let mut status = json!({"allowed": decision.is_allowed()});
    if decision.verdict == Verdict::Deny {
        object::set_field(&mut status, "denied", json!(true));
    }
    let problems: Vec<String> = decision
        .error
        .into_iter()
        .chain(selectors::problems(spec))
        .collect();
    for (field, text) in [
        ("reason", decision.reason),
        ("evaluationError", problems.join("; ")),
    ] {
        if !text.is_empty() {
            object::set_field(&mut status, field, json!(text));
        }
    }
    object::set_field(&mut review, "status", status);
    Ok(review)
}

/// Returns the user in the spec of a review.
fn subject(spec: &Value) -> Identity {
    let extra = object::at(spec, &["extra"]).as_object();
    let extra: BTreeMap<String, Vec<String>> = extra
        .into_iter()
        .flatten()
        .map(|(key, values)| {
            let values = values.as_array().into_iter().flatten();
            let values = values.filter_map(Value::as_str).map(str::to_owned);
            (key.to_lowercase(), values.collect())
        })
        .collect();
    Identity {
        user: object::text(spec, &["user"]).to_owned(),
        uid: object::text(spec, &["uid"]).to_owned(),
        groups: texts(spec, &["groups"]),
        extra,
    }
}

/// Returns the request in the spec of a review.
fn attributes(spec: &Value) -> Attributes<'_> {
    let resource = object::at(spec, &["resourceAttributes"]);
    if !resource.is_object() {
        return Attributes {
            verb: object::text(spec, &["nonResourceAttributes", "verb"]).into(),
            path: object::text(spec, &["nonResourceAttributes", "path"]).into(),
            ..Attributes::default()
        };
    }
    let text = |field: &str| object::text(resource, &[field]);
    Attributes {
        verb: text("verb").into(),
        is_resource_request: true,
        group: text("group").into(),
        version: match text("version") {
            "" => "*".into(),
            version => version.into(),
        },
        resource: text("resource").into(),
        subresource: text("subresource").into(),
        namespace: text("namespace").into(),
        name: text("name").into(),
        field_selector: object::text(resource, &["fieldSelector", "rawSelector"]).to_owned(),
        label_selector: object::text(resource, &["labelSelector", "rawSelector"]).to_owned(),
        ..Attributes::default()
    }
}

fn validate(kind: &str, review: &Value) -> Vec<FieldError> {
    let spec = object::at(review, &["spec"]);
    let resource = object::at(spec, &["resourceAttributes"]);
    let other = object::at(spec, &["nonResourceAttributes"]);
    let mut errors = Vec::new();
    let is_local = kind == "LocalSubjectAccessReview";
    // Kubernetes prints its internal type, whose fields have Go's names.
    let other_text = json!({
        "Path": object::text(other, &["path"]), "Verb": object::text(other, &["verb"]),
    });
    if !resource.is_null() && !other.is_null() {
        let detail = "cannot be specified in combination with resourceAttributes";
        let field = "spec.nonResourceAttributes";
        errors.push(FieldError::invalid(field, &other_text, detail));
    }
    if resource.is_null() && other.is_null() {
        let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        let field = "spec.resourceAttributes";
        errors.push(FieldError::invalid(field, &Value::Null, detail));
    }
    let has_no_subject =
        object::text(spec, &["user"]).is_empty() && object::items(spec, &["groups"]).is_empty();
    if kind != "SelfSubjectAccessReview" && has_no_subject {
        let detail = "at least one of user or group must be specified";
        errors.push(FieldError::invalid("spec.user", &json!(""), detail));
    }
    errors.extend(selectors::validate(resource));
    let metadata = object::at(review, &["metadata"]);
    let mut rest = metadata.as_object().cloned().unwrap_or_default();
    rest.remove("managedFields");
    rest.retain(|_, value| !value.is_null());
    if is_local {
        rest.remove("namespace");
    }
    if !rest.is_empty() {
        let detail = match is_local {
            true => "must be empty except for namespace",
            false => "must be empty",
        };
        let mut error = FieldError::invalid("metadata", metadata, detail);
        error.detail = format!("Invalid value: {}: {detail}", gotext::metadata(metadata));
        errors.push(error);
    }
    if !is_local {
        return errors;
    }
    let namespace = object::text(resource, &["namespace"]);
    if !resource.is_null() && namespace != object::namespace(review) {
        let field = "spec.resourceAttributes.namespace";
        let detail = "must match metadata.namespace";
        errors.push(FieldError::invalid(field, &json!(namespace), detail));
    }
    if !other.is_null() {
        let field = "spec.nonResourceAttributes";
        let detail = "disallowed on this kind of request";
        errors.push(FieldError::invalid(field, &other_text, detail));
    }
    errors
}
