//! CertificateSigningRequests: the subresource `approval`, and the conditions of a request.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::object;

const CONDITIONS: [&str; 2] = ["status", "conditions"];
const FIELD: &str = "status.conditions";
/// The conditions that only the subresource `approval` can set.
const APPROVAL: [&str; 2] = ["Approved", "Denied"];
/// The conditions that stay once they are set.
const FINAL: [&str; 3] = ["Approved", "Denied", "Failed"];

pub(super) fn is_signing_request(kind: &Kind) -> bool {
    kind.group == "certificates.k8s.io" && kind.plural == "certificatesigningrequests"
}

/// Resets all fields of `new` to those of `live`, except metadata and conditions.
pub(super) fn restrict_to_approval(live: &Value, new: &mut Value, now: &str) {
    let conditions = object::at(new, &CONDITIONS).clone();
    for field in ["spec", "status"] {
        object::set(new, &[field], object::at(live, &[field]).clone());
    }
    object::set(new, &CONDITIONS, conditions);
    set_times(live, new, now);
}

/// Resets the conditions of a new status that only the subresource `approval` can set. If there are
/// more or fewer of them than in `live`, they stay, and are refused later.
pub(super) fn keep_approval(live: &Value, new: &mut Value, now: &str) {
    for type_ in APPROVAL {
        let before = of_type(live, type_);
        let mut conditions = object::items(new, &CONDITIONS).to_vec();
        let places: Vec<&mut Value> = conditions
            .iter_mut()
            .filter(|condition| object::text(condition, &["type"]) == type_)
            .collect();
        if places.is_empty() || places.len() != before.len() {
            continue;
        }
        for (place, before) in places.into_iter().zip(before) {
            *place = before;
        }
        object::set(new, &CONDITIONS, json!(conditions));
    }
    set_times(live, new, now);
}

/// Sets the times of conditions that have none.
fn set_times(live: &Value, new: &mut Value, now: &str) {
    let before = object::items(live, &CONDITIONS).to_vec();
    let conditions = new.pointer_mut("/status/conditions");
    for condition in conditions
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        let is_missing =
            |field: &str, condition: &Value| object::text(condition, &[field]).is_empty();
        if is_missing("lastUpdateTime", condition) {
            object::set_field(condition, "lastUpdateTime", json!(now));
        }
        if is_missing("lastTransitionTime", condition) {
            let is_same = |old: &&Value| {
                ["type", "status"]
                    .iter()
                    .all(|field| object::at(old, &[field]) == object::at(condition, &[field]))
            };
            let old = before.iter().find(is_same);
            let time = old.map(|old| object::text(old, &["lastTransitionTime"]).to_owned());
            let time = time.filter(|time| !time.is_empty());
            let time = time.unwrap_or_else(|| now.to_owned());
            object::set_field(condition, "lastTransitionTime", json!(time));
        }
    }
}

fn of_type(request: &Value, type_: &str) -> Vec<Value> {
    let conditions = object::items(request, &CONDITIONS).iter();
    conditions
        .filter(|condition| object::text(condition, &["type"]) == type_)
        .cloned()
        .collect()
}

/// Returns the errors in a changed request.
pub(super) fn validate_update(subresource: &str, live: &Value, new: &Value) -> Vec<FieldError> {
    let mut errors = condition_errors(live, new);
    for type_ in FINAL {
        if of_type(new, type_).len() < of_type(live, type_).len() {
            let detail = format!("updates may not remove a condition of type {type_:?}");
            errors.push(FieldError::forbidden(FIELD, detail));
        }
    }
    if subresource != "approval" {
        for type_ in APPROVAL {
            let (before, after) = (of_type(live, type_), of_type(new, type_));
            if after.len() > before.len() {
                let detail = format!("updates may not add a condition of type {type_:?}");
                errors.push(FieldError::forbidden(FIELD, detail));
            } else if after.len() == before.len() && after != before {
                let detail = format!("updates may not modify a condition of type {type_:?}\n");
                errors.push(FieldError::forbidden(FIELD, detail));
            }
        }
    }
    let certificate =
        |request: &Value| object::text(request, &["status", "certificate"]).to_owned();
    let (before, after) = (certificate(live), certificate(new));
    if before != after {
        let field = "status.certificate";
        if !after.is_empty() && !has_certificate(&after) {
            let detail = "must contain at least one CERTIFICATE PEM block";
            let value = json!("<certificate data>");
            errors.push(FieldError::invalid(field, &value, detail));
        }
        if subresource != "status" {
            let detail = "updates may not set certificate content";
            errors.push(FieldError::forbidden(field, detail));
        } else if !before.is_empty() {
            let detail = "updates may not modify existing certificate content";
            errors.push(FieldError::forbidden(field, detail));
        }
    }
    errors
}

/// Reports whether a certificate, in base64, has a PEM block.
fn has_certificate(base64: &str) -> bool {
    BASE64_STANDARD
        .decode(base64)
        .is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains("-----BEGIN CERTIFICATE-----"))
}

fn condition_errors(live: &Value, new: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let is_both = |request: &Value| {
        APPROVAL
            .iter()
            .all(|type_| !of_type(request, type_).is_empty())
    };
    let allows_both = is_both(live);
    let mut seen: Vec<&str> = Vec::new();
    for (index, condition) in object::items(new, &CONDITIONS).iter().enumerate() {
        let at = |field: &str| format!("{FIELD}[{index}].{field}");
        let type_ = object::text(condition, &["type"]);
        if type_.is_empty() {
            errors.push(FieldError::required(at("type"), ""));
        }
        let status = object::at(condition, &["status"]);
        let supported: &[&str] = match FINAL.contains(&type_) {
            true => &["True"],
            false => &["False", "True", "Unknown"],
        };
        match status.as_str().unwrap_or_default() {
            // The schema requires the field.
            "" if status.is_null() => {}
            "" => errors.push(FieldError::required(at("status"), "")),
            text if !supported.contains(&text) => {
                errors.push(FieldError::not_supported(at("status"), status, supported));
            }
            _ => {}
        }
        let other = match type_ {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        if !allows_both && !other.is_empty() && seen.contains(&other) {
            let detail = "Approved and Denied conditions are mutually exclusive";
            errors.push(FieldError::invalid(FIELD, &json!(type_), detail));
        }
        if seen.contains(&type_) {
            errors.push(FieldError::duplicate(at("type"), &json!(type_)));
        }
        seen.push(type_);
    }
    errors
}
