//! Forwards a request to an aggregated API server.

use std::net::IpAddr;
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::header::{AUTHORIZATION, CONNECTION, HOST, HeaderName, LOCATION, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri, Version};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;

use super::Route;
use super::transport::RequestBody;
use crate::authentication::Identity;
use crate::registry::Registry;
use crate::response::{self, BodyError, BoxError, HttpResponse};
use crate::status::{ApiError, ApiResult};
use crate::webhook::chain;

/// Headers that belong to one connection and are not forwarded (RFC 9110, section 7.6.1).
const HOP_BY_HOP: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
];
const USER: HeaderName = HeaderName::from_static("x-remote-user");
const UID: HeaderName = HeaderName::from_static("x-remote-uid");
const GROUP: HeaderName = HeaderName::from_static("x-remote-group");
const EXTRA: &str = "x-remote-extra-";
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");
const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
/// Time limit for a request for the resources of a group version.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(5);

/// Forwards a request of a client and returns the response of the aggregated API server.
pub(crate) async fn forward<B>(
    registry: &Registry,
    route: &Route,
    parts: &Parts,
    body: B,
    origin: Origin<'_>,
) -> ApiResult<HttpResponse>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    if !route.is_available {
        return Ok(response::error_text(503, "service unavailable"));
    }
    if parts.headers.contains_key(UPGRADE) {
        return Err(ApiError::not_modelled(
            "an upgraded connection to an aggregated API server",
        ));
    }
    let mut headers = parts.headers.clone();
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
    headers.remove(HOST);
    headers.remove(AUTHORIZATION);
    remove_prefixed(&mut headers, "impersonate-");
    headers.insert(AUDIT_ID, origin.audit_id.clone());
    if let Ok(path) = HeaderValue::from_str(parts.uri.path()) {
        headers.insert(FORWARDED_URI, path);
    }
    if let Some(source) = origin.source {
        append_address(&mut headers, source);
    }
    let body =
        body.map_frame(|frame| frame.map_data(|mut data| data.copy_to_bytes(data.remaining())));
    let body = UnsyncBoxBody::new(body.map_err(Into::into));
    let path_and_query = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut request = Request::new(body);
    *request.method_mut() = parts.method.clone();
    *request.headers_mut() = headers;
    let segments = parts.uri.path().trim_matches('/').split('/').count();
    let sent = send(registry, route, path_and_query, request, origin.user);
    let sent = match segments {
        3 => tokio::time::timeout(DISCOVERY_TIMEOUT, sent)
            .await
            .unwrap_or_else(|_| Err("context deadline exceeded".to_owned())),
        _ => sent.await,
    };
    Ok(match sent {
        Ok(response) => backward(response),
        Err(error) => {
            let text = format!("error trying to reach service: {error}");
            response::error_text(503, &text)
        }
    })
}

/// The origin of a forwarded request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin<'a> {
    pub(crate) user: &'a Identity,
    pub(crate) audit_id: &'a HeaderValue,
    /// Address of the client. `None` for a caller in this process.
    pub(crate) source: Option<IpAddr>,
}

/// Sends a GET request of the API server itself.
pub(super) async fn get(
    registry: &Registry,
    route: &Route,
    path: &str,
    accept: &'static str,
    user: &Identity,
) -> Result<Response<Incoming>, String> {
    let empty = Empty::<Bytes>::new().map_err(|never| match never {});
    let mut request = Request::new(UnsyncBoxBody::new(empty));
    let accept = HeaderValue::from_static(accept);
    request.headers_mut().insert(http::header::ACCEPT, accept);
    send(registry, route, path, request, user).await
}

/// Sends a request with the headers of a front proxy.
async fn send(
    registry: &Registry,
    route: &Route,
    path: &str,
    mut request: Request<RequestBody>,
    user: &Identity,
) -> Result<Response<Incoming>, String> {
    let service = &route.service;
    let address = registry.resolver.resolve(
        &registry.store,
        &service.namespace,
        &service.name,
        service.port,
    )?;
    let uri = Uri::builder().scheme("https").authority(address);
    let uri = uri.path_and_query(path).build();
    *request.uri_mut() = uri.map_err(|error| error.to_string())?;
    *request.version_mut() = Version::HTTP_11;
    set_user(request.headers_mut(), user)?;
    let transport = route.transport.as_ref().map_err(String::clone)?;
    let response = transport.request(request).await;
    response.map_err(|error| chain(&error))
}

/// Sets the headers that name the user of a request, and removes those that the client has sent.
fn set_user(headers: &mut HeaderMap, user: &Identity) -> Result<(), String> {
    let value = |text: &str| {
        let value = HeaderValue::from_bytes(text.as_bytes());
        value.map_err(|_| format!("the user {:?} does not fit into a header", user.user))
    };
    headers.remove(GROUP);
    headers.remove(UID);
    remove_prefixed(headers, EXTRA);
    headers.insert(USER, value(&user.user)?);
    if !user.uid.is_empty() {
        headers.insert(UID, value(&user.uid)?);
    }
    for group in &user.groups {
        headers.append(GROUP, value(group)?);
    }
    for (key, values) in &user.extra {
        let name = format!("{EXTRA}{}", escape_key(key));
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| error.to_string())?;
        for text in values {
            headers.append(name.clone(), value(text)?);
        }
    }
    Ok(())
}

/// Escapes the bytes of a key that cannot be in the name of a header, as client-go does.
fn escape_key(key: &str) -> String {
    let mut escaped = String::new();
    for byte in key.bytes() {
        let is_legal = byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte);
        match is_legal {
            true => escaped.push(char::from(byte)),
            false => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

fn remove_prefixed(headers: &mut HeaderMap, prefix: &str) {
    let names: Vec<HeaderName> = headers
        .keys()
        .filter(|name| name.as_str().starts_with(prefix))
        .cloned()
        .collect();
    for name in names {
        headers.remove(name);
    }
}

/// Adds the address of the client to the header `X-Forwarded-For`.
fn append_address(headers: &mut HeaderMap, source: IpAddr) {
    let earlier = headers.get_all(FORWARDED_FOR).iter();
    let mut addresses: Vec<String> = earlier
        .filter_map(|value| value.to_str().ok().map(str::to_owned))
        .collect();
    addresses.push(source.to_string());
    if let Ok(value) = HeaderValue::from_str(&addresses.join(", ")) {
        headers.insert(FORWARDED_FOR, value);
    }
}

/// Returns the response for the client. As in Kubernetes, redirects are not forwarded.
fn backward(response: Response<Incoming>) -> HttpResponse {
    let (mut parts, body) = response.into_parts();
    if parts.status.is_redirection() && parts.headers.contains_key(LOCATION) {
        let text = "the backend attempted to redirect this request, which is not permitted";
        let mut refused = response::text(502, text);
        refused.headers_mut().clear();
        return refused;
    }
    let own = parts.headers.get(CONNECTION).cloned();
    let own = own.as_ref().and_then(|value| value.to_str().ok());
    for name in own.unwrap_or_default().split(',') {
        parts.headers.remove(name.trim());
    }
    for name in HOP_BY_HOP {
        parts.headers.remove(name);
    }
    // The front adds the ID of its own audit, which the aggregated API server has used as well.
    parts.headers.remove(AUDIT_ID);
    let body = body.map_err(|error| BodyError(error.into()));
    let mut response = Response::new(UnsyncBoxBody::new(body));
    *response.status_mut() = parts.status;
    *response.headers_mut() = parts.headers;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        *response.status_mut() = StatusCode::BAD_GATEWAY;
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_of_a_client_replaces_its_headers() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-remote-user", "admin"),
            ("x-remote-uid", "1"),
            ("x-remote-group", "system:masters"),
            ("x-remote-extra-scopes", "all"),
            ("accept", "*/*"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let mut alice = Identity::authenticated("alice", vec!["a".to_owned()]);
        let extra = ("example.com/rôle%".to_owned(), vec!["x".to_owned()]);
        alice.extra.extend([extra]);
        set_user(&mut headers, &alice).unwrap();
        let mut found: Vec<String> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        found.sort();
        assert_eq!(
            found,
            [
                "accept: */*",
                "x-remote-extra-example.com%2fr%c3%b4le%25: x",
                "x-remote-group: a",
                "x-remote-group: system:authenticated",
                "x-remote-user: alice",
            ]
        );
        let control = Identity::authenticated("a\nb", Vec::new());
        assert!(set_user(&mut headers, &control).is_err());
    }
}
