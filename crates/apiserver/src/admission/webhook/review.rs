//! AdmissionReviews: the request to a webhook, and its response.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::configuration::{Webhook, WebhookType};
use crate::admission::request::{self, Presented};
use crate::object;

/// A version of AdmissionReview.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ReviewVersion {
    V1,
    V1Beta1,
}

impl ReviewVersion {
    /// Returns the first version that the webhook accepts and that Kubernetes knows.
    pub(super) fn of(webhook: &Webhook) -> Option<Self> {
        let versions = webhook.review_versions.iter();
        versions
            .filter_map(|version| match version.as_str() {
                "v1" => Some(Self::V1),
                "v1beta1" => Some(Self::V1Beta1),
                _ => None,
            })
            .next()
    }

    fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V1Beta1 => "v1beta1",
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "admission.k8s.io/v1",
            Self::V1Beta1 => "admission.k8s.io/v1beta1",
        }
    }
}

/// Returns the review for a webhook.
pub(super) fn review(version: ReviewVersion, uid: &str, presented: &Presented<'_>) -> Value {
    let mut request = Map::new();
    request.insert("uid".to_owned(), json!(uid));
    request.extend(request::fields(presented));
    request.insert("object".to_owned(), presented.object.clone());
    request.insert("oldObject".to_owned(), presented.old.clone());
    request.insert(
        "dryRun".to_owned(),
        json!(presented.attributes.is_dry_run()),
    );
    request.insert("options".to_owned(), presented.attributes.options());
    json!({"kind": "AdmissionReview", "apiVersion": version.as_str(), "request": request})
}

/// The response of a webhook.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) is_allowed: bool,
    /// The field `status`, which explains a denial.
    pub(super) status: Value,
    /// The patch, which is empty if the webhook changes nothing.
    pub(super) patch: Vec<u8>,
    pub(super) patch_type: String,
    pub(super) audit_annotations: Vec<(String, String)>,
    pub(super) warnings: Vec<String>,
}

/// The body of a webhook's response.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ReviewBody {
    kind: String,
    api_version: String,
    response: Option<ResponseBody>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResponseBody {
    uid: String,
    allowed: bool,
    status: Value,
    patch: Option<String>,
    patch_type: Option<String>,
    audit_annotations: Option<std::collections::BTreeMap<String, String>>,
    warnings: Option<Vec<String>>,
}

/// An invalid response.
#[derive(Debug)]
pub(super) enum Invalid {
    /// The body is not an AdmissionReview.
    Body(String),
    /// The AdmissionReview is not a valid response to the request.
    Response(String),
}

/// Parses the response to the review with this UID.
pub(super) fn parse(
    type_: WebhookType,
    version: ReviewVersion,
    uid: &str,
    body: &[u8],
) -> Result<Verdict, Invalid> {
    let refuse = |why: String| Err(Invalid::Response(why));
    let review: ReviewBody =
        serde_json::from_slice(body).map_err(|error| Invalid::Body(body_error(body, &error)))?;
    check_kind(version, &review).map_err(Invalid::Body)?;
    let Some(response) = review.response else {
        return refuse("webhook response was absent".to_owned());
    };
    let patch = match &response.patch {
        Some(text) => BASE64_STANDARD.decode(text).map_err(|error| {
            Invalid::Body(format!("illegal base64 data in response.patch: {error}"))
        })?,
        None => Vec::new(),
    };
    let mut verdict = Verdict {
        is_allowed: response.allowed,
        status: response.status,
        patch_type: response.patch_type.clone().unwrap_or_default(),
        patch,
        audit_annotations: response.audit_annotations.into_iter().flatten().collect(),
        warnings: response.warnings.unwrap_or_default(),
    };
    if version == ReviewVersion::V1Beta1 {
        if !verdict.patch.is_empty() {
            verdict.patch_type = "JSONPatch".to_owned();
        }
        return Ok(verdict);
    }
    if response.uid != uid {
        return refuse(format!(
            "expected response.uid={uid:?}, got {:?}",
            response.uid
        ));
    }
    if (review.api_version.as_str(), review.kind.as_str()) != (version.as_str(), "AdmissionReview")
    {
        let wanted = "admission.k8s.io/v1, Kind=AdmissionReview";
        let (api_version, kind) = (review.api_version, review.kind);
        return refuse(format!(
            "expected webhook response of {wanted}, got {api_version}, Kind={kind}"
        ));
    }
    let has_patch = !verdict.patch.is_empty();
    match (type_, has_patch, &response.patch_type) {
        (WebhookType::Validating, true, _) => {
            refuse("validating webhook may not return response.patch".to_owned())
        }
        (WebhookType::Validating, false, Some(_)) => {
            refuse("validating webhook may not return response.patchType".to_owned())
        }
        (WebhookType::Mutating, true, None) => {
            refuse("webhook returned response.patch but not response.patchType".to_owned())
        }
        (WebhookType::Mutating, false, Some(_)) => {
            refuse("webhook returned response.patchType but not response.patch".to_owned())
        }
        (WebhookType::Mutating, true, Some(type_)) if type_.is_empty() => {
            refuse("webhook returned invalid response.patchType of \"\"".to_owned())
        }
        _ => Ok(verdict),
    }
}

/// Checks that the body is of a kind that Kubernetes can decode as the response. A body without a
/// kind is decoded as the kind of the request.
fn check_kind(version: ReviewVersion, review: &ReviewBody) -> Result<(), String> {
    let (api_version, kind) = (review.api_version.as_str(), review.kind.as_str());
    if api_version.is_empty() || kind.is_empty() {
        return Ok(());
    }
    let known = [ReviewVersion::V1, ReviewVersion::V1Beta1];
    let found = known
        .into_iter()
        .find(|known| known.as_str() == api_version && kind == "AdmissionReview");
    match found {
        Some(found) if found == version => Ok(()),
        Some(found) => Err(format!(
            "converting ({}.AdmissionReview) to ({}.AdmissionReview): unknown conversion",
            found.name(),
            version.name()
        )),
        None => Err(format!(
            "no kind {kind:?} is registered for version {api_version:?} in scheme \
             \"pkg/runtime/scheme.go:111\""
        )),
    }
}

/// Returns the error of Kubernetes' decoder, which reads YAML, for a body that is not an
/// AdmissionReview.
fn body_error(body: &[u8], error: &serde_json::Error) -> String {
    let text = String::from_utf8_lossy(body);
    let read: Result<Value, _> = serde_saphyr::from_str(&text);
    let kind = match read {
        Ok(Value::String(_)) => "string",
        Ok(Value::Number(_)) => "number",
        Ok(Value::Bool(_)) => "bool",
        Ok(Value::Array(_)) => "array",
        _ => return format!("couldn't get version/kind; json parse error: {error}"),
    };
    format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {kind} into Go value \
         of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
         \"json:\\\"kind,omitempty\\\"\" }}"
    )
}

/// Returns the `Status` of a denial, with the texts of Kubernetes.
pub(super) fn denial(webhook: &str, status: &Value) -> (u16, Value) {
    let mut denied = match status {
        Value::Object(_) => status.clone(),
        _ => json!({}),
    };
    let code = object::int(&denied, &["code"]);
    let code = u16::try_from(code).unwrap_or(400).max(400);
    object::set_field(&mut denied, "code", json!(code));
    object::set_field(&mut denied, "status", json!("Failure"));
    let denied_by = format!("admission webhook {webhook:?} denied the request");
    let message = match (
        object::text(&denied, &["message"]),
        object::text(&denied, &["reason"]),
    ) {
        ("", "") => format!("{denied_by} without explanation"),
        ("", reason) => format!("{denied_by}: {reason}"),
        (message, _) => format!("{denied_by}: {message}"),
    };
    object::set_field(&mut denied, "message", json!(message));
    (code, denied)
}
