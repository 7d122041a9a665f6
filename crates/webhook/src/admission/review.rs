//! `AdmissionReview`, the message of the API server and of the response. The functions do no I/O.
//!
//! The versions `v1` and `v1beta1` of `admission.k8s.io` have the same fields. A response has the
//! version of its request; a request without a version counts as `v1`.

use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use k8s_openapi::api::authentication::v1::UserInfo;
use opkit_client::{GroupVersionKind, GroupVersionResource};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::request::{Attributes, Operation};
use super::{Admission, Subject};

/// Version of responses to requests that cannot be decoded.
const V1: &str = "admission.k8s.io/v1";
/// Versions that are accepted.
const VERSIONS: [&str; 2] = [V1, "admission.k8s.io/v1beta1"];

/// Decoded request. The objects are still JSON, and share the memory of the request's body.
#[derive(Debug)]
pub(crate) struct ParsedReview {
    pub(crate) api_version: &'static str,
    pub(crate) attributes: Arc<Attributes>,
    pub(crate) object: Option<Bytes>,
    pub(crate) old_object: Option<Bytes>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(borrow)]
    request: Option<Request<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    kind: KindName,
    #[serde(default)]
    resource: ResourceName,
    sub_resource: Option<String>,
    request_kind: Option<KindName>,
    name: Option<String>,
    namespace: Option<String>,
    #[serde(default)]
    operation: String,
    #[serde(default)]
    user_info: UserInfo,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
    #[serde(borrow)]
    old_object: Option<&'a RawValue>,
    dry_run: Option<bool>,
    #[serde(borrow)]
    options: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct KindName {
    group: String,
    version: String,
    kind: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResourceName {
    group: String,
    version: String,
    resource: String,
}

impl From<KindName> for GroupVersionKind {
    fn from(name: KindName) -> Self {
        Self::new(name.group, name.version, name.kind)
    }
}

/// Metadata of an object, as much as is needed before the object is decoded.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    metadata: HeadMetadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct HeadMetadata {
    deletion_timestamp: Option<serde::de::IgnoredAny>,
}

/// Decodes JSON. The text is checked once as a whole, which takes less time than a check of each
/// string.
///
/// # Errors
/// Returns an error if the bytes are not UTF-8, not JSON or of another type.
pub(crate) fn decode<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, serde_json::Error> {
    serde_json::from_str(text(json)?)
}

/// Returns bytes as text.
///
/// # Errors
/// Returns an error if the bytes are not UTF-8.
pub(crate) fn text(json: &[u8]) -> Result<&str, serde_json::Error> {
    std::str::from_utf8(json).map_err(<serde_json::Error as serde::de::Error>::custom)
}

/// Decodes the body of a request.
///
/// # Errors
/// A sentence about the part that is missing or not valid.
pub(crate) fn parse(body: &Bytes) -> Result<ParsedReview, String> {
    let review: Review<'_> =
        decode(body).map_err(|error| format!("cannot decode the AdmissionReview: {error}"))?;
    let Review {
        api_version, kind, ..
    } = &review;
    if !kind.is_empty() && kind != "AdmissionReview" {
        return Err(format!("the body is a {kind:?}, expected AdmissionReview"));
    }
    let api_version = match api_version.as_str() {
        "" => V1,
        version => (VERSIONS.into_iter().find(|it| *it == version)).ok_or_else(|| {
            format!("no kind \"AdmissionReview\" is registered for version {version:?}")
        })?,
    };
    let request = review.request.ok_or("the AdmissionReview has no request")?;
    if request.uid.is_empty() {
        return Err("the request has no uid".to_owned());
    }
    let operation = match request.operation.as_str() {
        "CREATE" => Operation::Create,
        "UPDATE" => Operation::Update,
        "DELETE" => Operation::Delete,
        "CONNECT" => Operation::Connect,
        unknown => return Err(format!("unknown operation {unknown:?}")),
    };
    let share = |raw: &RawValue| body.slice_ref(raw.get().as_bytes());
    let ResourceName {
        group,
        version,
        resource,
    } = request.resource;
    let attributes = Attributes {
        uid: request.uid,
        operation,
        kind: request.kind.into(),
        resource: GroupVersionResource::new(group, version, resource),
        subresource: request.sub_resource.unwrap_or_default(),
        request_kind: request.request_kind.map(Into::into),
        name: request.name.unwrap_or_default(),
        namespace: request.namespace.unwrap_or_default(),
        user: request.user_info,
        is_dry_run: request.dry_run.unwrap_or_default(),
        options: request.options.map(share),
    };
    Ok(ParsedReview {
        api_version,
        attributes: Arc::new(attributes),
        object: request.object.map(share),
        old_object: request.old_object.map(share),
    })
}

/// Reports whether an object is being deleted, without decoding all of it.
pub(crate) fn is_deleting(object: &[u8]) -> bool {
    let head: Result<Head, _> = decode(object);
    head.is_ok_and(|head| head.metadata.deletion_timestamp.is_some())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReviewResponse<'a> {
    api_version: &'a str,
    kind: &'static str,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    status: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
    #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    audit_annotations: &'a std::collections::BTreeMap<String, String>,
}

/// Returns the body of the response to a request. A patch is left out if the request is refused or
/// the patch is empty.
pub(crate) fn respond(review: &ParsedReview, admission: &Admission, patch: &[Value]) -> Bytes {
    let attributes = &review.attributes;
    let subject = Subject {
        group: &attributes.kind.group,
        kind: &attributes.kind.kind,
        name: &attributes.name,
    };
    let is_allowed = admission.is_allowed();
    let patch = (is_allowed && !patch.is_empty()).then(|| serde_json::to_vec(patch));
    let patch = patch.and_then(Result::ok);
    write(&ReviewResponse {
        api_version: review.api_version,
        kind: "AdmissionReview",
        response: Response {
            uid: &attributes.uid,
            allowed: is_allowed,
            status: admission.status(&subject),
            patch_type: patch.as_ref().map(|_| "JSONPatch"),
            patch: patch.map(|patch| BASE64_STANDARD.encode(patch)),
            warnings: admission.warnings(),
            audit_annotations: admission.audit_annotations(),
        },
    })
}

/// Returns the body of the response to a request that cannot be decoded.
pub(crate) fn refuse(code: u16, message: &str) -> Bytes {
    write(&ReviewResponse {
        api_version: V1,
        kind: "AdmissionReview",
        response: Response {
            uid: "",
            allowed: false,
            status: serde_json::json!({"code": code, "message": message}),
            patch: None,
            patch_type: None,
            warnings: &[],
            audit_annotations: &std::collections::BTreeMap::new(),
        },
    })
}

/// Writes a response as JSON, which cannot fail: all keys are strings.
pub(crate) fn write(response: &impl Serialize) -> Bytes {
    serde_json::to_vec(response).unwrap_or_default().into()
}
