//! ConversionReview of `apiextensions.k8s.io/v1`: the request of an API server to a conversion
//! webhook.

use serde::Deserialize;
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
struct Body {
    #[serde(rename = "apiVersion", default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    request: Option<Request>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    uid: String,
    #[serde(rename = "desiredAPIVersion")]
    desired_api_version: String,
    #[serde(default)]
    objects: Vec<Value>,
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
    match convert(
        kinds,
        request.objects,
        &request.desired_api_version,
        &mut warnings,
    ) {
        Ok(objects) => {
            let response = json!({
                "uid": request.uid,
                "result": {"status": "Success"},
                "convertedObjects": objects,
            });
            Review {
                status: 200,
                body: document(response),
                warnings,
            }
        }
        Err(error) => failure(200, &request.uid, chain(&error)),
    }
}

fn parse(body: &[u8]) -> Result<Request, String> {
    let body: Body = serde_json::from_slice(body)
        .map_err(|error| format!("the request is not a ConversionReview: {error}"))?;
    if body.api_version != API_VERSION || body.kind != KIND {
        let (api_version, kind) = (body.api_version, body.kind);
        return Err(format!(
            "expected a {KIND} of {API_VERSION}, found kind {kind:?} of {api_version:?}"
        ));
    }
    let missing = || "the ConversionReview has no request".to_owned();
    body.request.ok_or_else(missing)
}

fn convert(
    kinds: &[KindVersions],
    objects: Vec<Value>,
    api_version: &str,
    warnings: &mut Vec<String>,
) -> Result<Vec<Value>, ConversionError> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let mut converted = Vec::with_capacity(objects.len());
    for object in objects {
        let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
        let kind = text("kind");
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
        converted.push(result.object);
    }
    Ok(converted)
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
