//! Writes that the server validates in plan mode without storing them.

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::core::Status;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::{Next, PlanError, refuse};

/// Part of the message with which a server refuses a dry run, because a webhook that it would have
/// to call has side effects.
const REFUSED: &str = "does not support dry run";

/// The object that a write would result in, as far as it is known.
pub(super) enum Validated {
    /// The server returned the object.
    Object(Value),
    /// The server cannot process the write as a dry run, for this reason.
    Unchecked(String),
}

/// Sends a write as a dry run. `body` is JSON of this content type.
pub(super) async fn dry_run<S: Next>(
    server: S,
    parts: &http::request::Parts,
    content_type: &str,
    body: &Value,
) -> Result<Validated, PlanError> {
    let query = parts.uri.query().unwrap_or_default();
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.filter(|pair| pair.split('=').next() != Some("dryRun"));
    let pairs: Vec<&str> = pairs.chain(["dryRun=All"]).collect();
    let path = format!("{}?{}", parts.uri.path(), pairs.join("&"));
    let body = Body::from(serde_json::to_vec(body)?);
    let request = Request::builder().method(parts.method.clone()).uri(path);
    let request = request.header(header::CONTENT_TYPE, content_type);
    let (code, body) = send(server, parts, request.body(body)?).await?;
    if (200..300).contains(&code) {
        return Ok(Validated::Object(serde_json::from_slice(&body)?));
    }
    match serde_json::from_slice::<Status>(&body) {
        Ok(status) if code == 400 && status.message.contains(REFUSED) => {
            Ok(Validated::Unchecked(status.message))
        }
        Ok(status) => Err(PlanError::Status(Box::new(status.with_code(code)))),
        Err(_) => {
            let message = format!("{} {} failed", parts.method, parts.uri.path());
            Err(refuse(code, "Unknown", message))
        }
    }
}

/// Returns the options of a deletion as a dry run. The server reads them from the body; it ignores
/// the query of a deletion with a body.
pub(super) fn deletion(options: &Value) -> Value {
    let mut options = match options {
        Value::Object(_) => options.clone(),
        _ => json!({}),
    };
    if let Some(fields) = options.as_object_mut() {
        fields.insert("apiVersion".to_owned(), "v1".into());
        fields.insert("kind".to_owned(), "DeleteOptions".into());
        fields.insert("dryRun".to_owned(), json!(["All"]));
    }
    options
}

/// Replaces a text everywhere in a value: the resourceVersion of a planned object is unknown to the
/// server, which has another one.
pub(super) fn replace_text(value: &mut Value, text: &str, by: &str) {
    match value {
        Value::String(found) if found == text => by.clone_into(found),
        Value::Array(items) => {
            items
                .iter_mut()
                .for_each(|item| replace_text(item, text, by));
        }
        Value::Object(fields) => {
            fields
                .values_mut()
                .for_each(|field| replace_text(field, text, by));
        }
        _ => {}
    }
}

/// Reads `path` from the server in JSON.
pub(super) async fn fetch<S: Next>(
    server: S,
    parts: &http::request::Parts,
    path: &str,
) -> Result<(u16, Bytes), PlanError> {
    let get = Request::builder().method(Method::GET).uri(path);
    send(server, parts, get.body(Body::empty())?).await
}

/// Sends a request, and returns the response in JSON. Copies the authority and the headers of the
/// request `parts`, such as impersonation, except headers about content types, lengths and
/// encodings.
async fn send<S: Next>(
    server: S,
    parts: &http::request::Parts,
    mut request: Request<Body>,
) -> Result<(u16, Bytes), PlanError> {
    if let Some(authority) = parts.uri.authority() {
        let mut uri = request.uri().clone().into_parts();
        uri.scheme = parts.uri.scheme().cloned();
        uri.authority = Some(authority.clone());
        *request.uri_mut() = http::Uri::from_parts(uri)?;
    }
    for (name, value) in &parts.headers {
        // The response is not decompressed, so no encoding may be accepted.
        let about_body = [
            header::CONTENT_TYPE,
            header::CONTENT_LENGTH,
            header::ACCEPT,
            header::ACCEPT_ENCODING,
        ];
        if !about_body.contains(name) {
            request.headers_mut().append(name, value.clone());
        }
    }
    request.headers_mut().insert(
        header::ACCEPT,
        http::HeaderValue::from_static("application/json"),
    );
    let response = server.oneshot(request).await?;
    let code = response.status().as_u16();
    Ok((code, response.into_body().collect().await?.to_bytes()))
}
