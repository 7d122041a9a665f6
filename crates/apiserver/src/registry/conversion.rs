//! Conversion of custom resources between versions, by their `apiVersion` alone or by a webhook.

use std::time::Duration;

use bytes::Bytes;
use opkit_apimachinery::selector;
use opkit_apimachinery::structural::FieldError;
use serde_json::{Map, Value, json};

use super::Registry;
use crate::gotext;
use crate::kinds::Kind;
use crate::object;
use crate::status::{ApiError, ApiResult};

/// Maximum time of the call of a conversion webhook, as in Kubernetes.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Converts objects of a custom resource to `api_version`.
///
/// # Errors
/// If the webhook fails, or if a converted object differs in more than its fields, its labels and
/// its annotations.
pub(super) async fn convert(
    registry: &Registry,
    kind: &Kind,
    mut objects: Vec<Value>,
    api_version: &str,
) -> ApiResult<Vec<Value>> {
    let Some(versions) = kind.versions() else {
        return Ok(objects);
    };
    let is_other = |object: &Value| object::text(object, &["apiVersion"]) != api_version;
    let Some(webhook) = &versions.webhook else {
        for object in &mut objects {
            versions.relabel(object, api_version);
        }
        return Ok(objects);
    };
    let others: Vec<Value> = objects.iter().filter(|o| is_other(o)).cloned().collect();
    if others.is_empty() {
        return Ok(objects);
    }
    let is_list = others.len() > 1;
    let named = others.first().map(kind_name).unwrap_or_default();
    let fail = |what: String| {
        let message = format!("conversion webhook for {named} {what}");
        ApiError::without_reason(500, message)
    };
    let converted = call(registry, webhook, &others, api_version)
        .await
        .map_err(|error| match error {
            CallError::Review(message) => ApiError::without_reason(500, message),
            CallError::Failed(message) => fail(format!("failed: {message}")),
        })?;
    if converted.len() != others.len() {
        let (found, wanted) = (converted.len(), others.len());
        return Err(fail(format!("returned {found} objects, expected {wanted}")));
    }
    let places = objects.iter_mut().filter(|object| is_other(object));
    for (index, (place, converted)) in places.zip(converted).enumerate() {
        let what = match is_list {
            true => format!("converted object at index {index}"),
            false => "object at index 0".to_owned(),
        };
        check_type(place, &converted, api_version)
            .map_err(|error| fail(format!("returned invalid {what}: {error}")))?;
        let what = match is_list {
            true => what,
            false => "object".to_owned(),
        };
        check_identity(place, &converted)
            .map_err(|error| fail(format!("returned invalid {what}: {error}")))?;
        let what = match is_list {
            true => format!("metadata in object at index {index}"),
            false => "metadata".to_owned(),
        };
        let mut new = restore_metadata(place, converted)
            .map_err(|error| fail(format!("returned invalid {what}: {error}")))?;
        versions.coerce(&mut new);
        *place = new;
    }
    Ok(objects)
}

/// The error of a conversion.
enum CallError {
    /// No review could be created.
    Review(String),
    /// The call failed, or the webhook responded with an error.
    Failed(String),
}

/// Sends a ConversionReview with these objects, and returns the converted objects.
async fn call(
    registry: &Registry,
    webhook: &Value,
    objects: &[Value],
    api_version: &str,
) -> Result<Vec<Value>, CallError> {
    let accepted = object::items(webhook, &["conversionReviewVersions"]).iter();
    let mut accepted = accepted.filter_map(Value::as_str);
    let version = accepted.find(|version| matches!(*version, "v1" | "v1beta1"));
    let Some(version) = version else {
        let message = "no supported conversion review versions";
        return Err(CallError::Review(message.to_owned()));
    };
    let uid = registry.random.uid();
    let review = json!({
        "kind": "ConversionReview",
        "apiVersion": format!("apiextensions.k8s.io/{version}"),
        "request": {"uid": uid, "desiredAPIVersion": api_version, "objects": objects},
        "response": {"uid": "", "convertedObjects": null, "result": {"metadata": {}}},
    });
    let config = object::at(webhook, &["clientConfig"]);
    let body = Bytes::from(review.to_string());
    let called = registry
        .webhooks
        .post(&registry.resolver, &registry.store, config, body, TIMEOUT);
    let response = called
        .await
        .map_err(|error| CallError::Failed(error.message))?;
    let response: Value = serde_json::from_slice(&response)
        .map_err(|error| CallError::Failed(format!("the response is not JSON: {error}")))?;
    converted_objects(&response, version, &uid).map_err(CallError::Failed)
}

fn converted_objects(review: &Value, version: &str, uid: &str) -> Result<Vec<Value>, String> {
    if version == "v1" {
        let wanted = "apiextensions.k8s.io/v1, Kind=ConversionReview";
        let found = kind_name(review);
        if found != wanted {
            return Err(format!(
                "expected webhook response of {wanted}, got {found}"
            ));
        }
    }
    let response = object::at(review, &["response"]);
    if response.is_null() {
        return Err("no response provided".to_owned());
    }
    let found = object::text(response, &["uid"]);
    if version == "v1" && found != uid {
        return Err(format!("expected response.uid={uid:?}, got {found:?}"));
    }
    let status = object::text(response, &["result", "status"]);
    if status != "Success" {
        return Err(match object::text(response, &["result", "message"]) {
            "" => format!("response.result.status was '{status}', not 'Success'"),
            message => message.to_owned(),
        });
    }
    Ok(object::items(response, &["convertedObjects"]).to_vec())
}

/// Returns the kind of an object as Kubernetes prints it, such as `apps/v1, Kind=Deployment`.
fn kind_name(object: &Value) -> String {
    let version = match object::text(object, &["apiVersion"]) {
        version if version.contains('/') => version.to_owned(),
        version => format!("/{version}"),
    };
    format!("{version}, Kind={}", object::text(object, &["kind"]))
}

fn check_type(original: &Value, converted: &Value, api_version: &str) -> Result<(), String> {
    let found = object::text(converted, &["apiVersion"]);
    if found != api_version {
        return Err(format!(
            "invalid groupVersion (expected {api_version}, received {found})"
        ));
    }
    let (wanted, found) = (
        object::text(original, &["kind"]),
        object::text(converted, &["kind"]),
    );
    if found != wanted {
        return Err(format!(
            "invalid kind (expected {wanted}, received {found})"
        ));
    }
    Ok(())
}

fn check_identity(original: &Value, converted: &Value) -> Result<(), String> {
    for (what, field) in [("name", "name"), ("namespace", "namespace"), ("UID", "uid")] {
        let (wanted, found) = (
            object::meta(original, field),
            object::meta(converted, field),
        );
        if wanted != found {
            return Err(format!("must have the same {what}: {wanted} != {found}"));
        }
    }
    Ok(())
}

/// Returns the converted object with the metadata of the original, except for labels and
/// annotations, which the webhook can change.
fn restore_metadata(original: &Value, mut converted: Value) -> Result<Value, String> {
    let response = match converted.get("metadata") {
        None => return Err("missing metadata in converted object".to_owned()),
        Some(Value::Object(response)) => response.clone(),
        Some(other) => {
            let found = gotext::type_name(other);
            return Err(format!(
                "invalid metadata of type {found} in converted object"
            ));
        }
    };
    let metadata = object::at(original, &["metadata"]).clone();
    object::set_field(&mut converted, "metadata", metadata);
    for field in ["labels", "annotations"] {
        let Some(new) = response.get(field).filter(|new| !new.is_null()) else {
            object::set_meta(&mut converted, field, Value::Null);
            continue;
        };
        let Value::Object(new) = new else {
            let found = gotext::type_name(new);
            return Err(format!(
                "invalid metadata.{field} of type {found} in converted object"
            ));
        };
        if let Some((key, value)) = new.iter().find(|(_, value)| !value.is_string()) {
            let found = gotext::type_name(value);
            return Err(format!(
                "metadata.{field}[{key}] must be a string, but is {found} in converted object"
            ));
        }
        if object::at(original, &["metadata", field]).as_object() != Some(new) {
            let errors = match field {
                "labels" => label_errors(new),
                _ => annotation_errors(new),
            };
            if !errors.is_empty() {
                return Err(aggregate(&errors));
            }
        }
        object::set_meta(&mut converted, field, Value::Object(new.clone()));
    }
    Ok(converted)
}

fn label_errors(labels: &Map<String, Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in labels {
        let invalid = |value: &str, detail: String| {
            FieldError::invalid("metadata.labels", &json!(value), detail)
        };
        let keys = selector::label_key_errors(key).into_iter();
        errors.extend(keys.map(|detail| invalid(key, detail)));
        let value = value.as_str().unwrap_or_default();
        let values = selector::label_value_errors(value).into_iter();
        errors.extend(values.map(|detail| invalid(value, detail)));
    }
    errors
}

fn annotation_errors(annotations: &Map<String, Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for key in annotations.keys() {
        let wrong = selector::label_key_errors(&key.to_lowercase()).into_iter();
        errors.extend(
            wrong.map(|detail| FieldError::invalid("metadata.annotation", &json!(key), detail)),
        );
    }
    errors
}

/// Returns the text of several errors, as Kubernetes prints them.
fn aggregate(errors: &[FieldError]) -> String {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    match texts.as_slice() {
        [text] => text.clone(),
        texts => format!("[{}]", texts.join(", ")),
    }
}
