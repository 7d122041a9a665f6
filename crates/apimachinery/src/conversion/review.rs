//! ConversionReview of `apiextensions.k8s.io/v1`: the request of an API server to a conversion
//! webhook.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{ConversionError, KindVersions};

const API_VERSION: &str = "apiextensions.k8s.io/v1";
const KIND: &str = "ConversionReview";

/// Response to a ConversionReview.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Review {
    /// Status code of the HTTP response: 200, or 400 if the request is not a ConversionReview.
    pub status: u16,
    /// Body of the HTTP response, in JSON.
    pub body: Vec<u8>,
    /// Sentences to log: the error of a failed conversion, and values that were lost.
    pub warnings: Vec<String>,
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(rename = "apiVersion", default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(borrow)]
    request: Option<Request<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    uid: String,
    #[serde(rename = "desiredAPIVersion")]
    desired_api_version: String,
    /// Text of each object. The objects are decoded one at a time, because the list can be large.
    #[serde(borrow, default)]
    objects: Vec<&'a RawValue>,
}

/// Converts the objects of a ConversionReview. Kubernetes has no response for the failure of one
/// object: if one object cannot be converted, then the whole response is a failure whose message
/// names the object.
pub fn review(kinds: &[KindVersions], body: &[u8]) -> Review {
    let request = match parse(body) {
        Ok(request) => request,
        Err(message) => return failure(400, "", message),
    };
    let mut warnings = Vec::new();
    let mut text = format!(
        r#"{{"apiVersion":"{API_VERSION}","kind":"{KIND}","response":{{"convertedObjects":["#
    );
    text.reserve(body.len());
    for (at, object) in request.objects.iter().enumerate() {
        let object = match serde_json::from_str(object.get()) {
            Ok(object) => object,
            Err(error) => return failure(400, "", not_a_review(&error)),
        };
        match convert(kinds, object, &request.desired_api_version, &mut warnings) {
            Ok(converted) => {
                text.push_str(if at == 0 { "" } else { "," });
                text.push_str(&converted.to_string());
            }
            Err(error) => return failure(200, &request.uid, chain(&error)),
        }
    }
    let uid = Value::String(request.uid);
    text.push_str(&format!(
        r#"],"result":{{"status":"Success"}},"uid":{uid}}}}}"#
    ));
    Review {
        status: 200,
        body: text.into_bytes(),
        warnings,
    }
}

fn parse(body: &[u8]) -> Result<Request<'_>, String> {
    let body: Body<'_> = serde_json::from_slice(body).map_err(|error| not_a_review(&error))?;
    if body.api_version != API_VERSION || body.kind != KIND {
        let (api_version, kind) = (body.api_version, body.kind);
        return Err(format!(
            "expected a {KIND} of {API_VERSION}, found kind {kind:?} of {api_version:?}"
        ));
    }
    let missing = || "the ConversionReview has no request".to_owned();
    body.request.ok_or_else(missing)
}

fn not_a_review(error: &serde_json::Error) -> String {
    format!("the request is not a ConversionReview: {error}")
}

/// Converts one object to the version `api_version`.
fn convert(
    kinds: &[KindVersions],
    object: Value,
    api_version: &str,
    warnings: &mut Vec<String>,
) -> Result<Value, ConversionError> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = object.get("kind").and_then(Value::as_str);
    let kind = kind.unwrap_or_default();
    let mut known = kinds.iter();
    let known = known.find(|known| known.group() == group && known.kind() == kind);
    let Some(known) = known else {
        return Err(ConversionError::UnknownKind {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        });
    };
    let result = known.convert(object, version)?;
    if result.lost > 0 {
        let name = result.object.as_object().map(super::object_name);
        warnings.push(format!(
            "{} {}: {} values that {version} cannot express were lost, because the annotations \
             of an object are limited to 256 KiB",
            known.kind(),
            name.unwrap_or_default(),
            result.lost,
        ));
    }
    Ok(result.object)
}

fn failure(status: u16, uid: &str, message: String) -> Review {
    let response = json!({
        "uid": uid,
        "result": {"status": "Failure", "message": message},
        "convertedObjects": [],
    });
    Review {
        status,
        body: document(response),
        warnings: vec![message],
    }
}

fn document(response: Value) -> Vec<u8> {
    let review = json!({"apiVersion": API_VERSION, "kind": KIND, "response": response});
    review.to_string().into_bytes()
}

/// Returns the message of an error and of its cause.
fn chain(error: &ConversionError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
